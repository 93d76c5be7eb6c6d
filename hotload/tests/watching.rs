//! A folder is followed through every way in which files change. No server is needed: logins are tried against a list
//! of passwords.

#[path = "servers/mount.rs"]
mod mount;

use hotload::{Login, Settings, Source};
use mount::Mount;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for any machine; nothing waits for it to pass.
const WITHIN: Duration = Duration::from_secs(60);
/// No test lasts as long.
const NEVER: Duration = Duration::from_secs(3600);

/// A server in name only: knows which passwords work, and remembers who knocked.
#[derive(Clone, Default)]
struct Door(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    works: BTreeSet<String>,
    knocks: Vec<String>,
}

impl Door {
    fn allow(&self, password: &str) {
        self.0.lock().unwrap().works.insert(password.to_owned());
    }

    fn follow(&self, folder: &Path) -> Settings {
        let door = self.clone();
        // Only file events report changes, unless a test says otherwise.
        Source::at(folder).patience(WITHIN).poll(NEVER).probe(move |login| {
            let door = door.clone();
            async move { door.knock(&login) }
        })
    }

    fn knock(&self, login: &Login) -> Result<(), String> {
        use secrecy::ExposeSecret;
        let mut state = self.0.lock().unwrap();
        let password = login.password().expose_secret();
        state.knocks.push(format!("{} {password}", login.username()));
        match state.works.contains(password) {
            true => Ok(()),
            false => Err("wrong password".to_owned()),
        }
    }
}

/// What Conductor publishes.
fn published(user: &str, password: &str) -> BTreeMap<String, String> {
    let uri = uri(user, password);
    let pairs = [
        ("type", "postgresql"),
        ("provider", "conductor"),
        ("host", "db.example.com"),
        ("port", "5432"),
        ("username", user),
        ("password", password),
        ("database", "orders"),
        ("uri", &uri),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn uri(user: &str, password: &str) -> String {
    format!("postgresql://{user}:{password}@db.example.com:5432/orders")
}

/// Waits until the source is at a user, or in a trouble.
async fn until(source: &mut Source, reached: impl Fn(&Source) -> bool) {
    let waited = tokio::time::timeout(WITHIN, async {
        while !reached(source) {
            source.changed().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not reached: {source:?}, trouble {:?}", source.trouble()));
}

async fn until_user(source: &mut Source, user: &str) {
    until(source, |source| source.login().username() == user).await;
}

#[tokio::test]
async fn a_kubelets_swap_is_followed() {
    let (mut mount, door) = (Mount::new(), Door::default());
    mount.publish(&published("a", "one"));
    door.allow("one");
    let mut source = door.follow(&mount.folder()).open().await.unwrap();
    assert_eq!(
        (source.generation(), source.login().to_string().as_str()),
        (1, "postgresql://a@db.example.com:5432/orders")
    );
    door.allow("two");
    mount.publish(&published("b", "two"));
    until_user(&mut source, "b").await;
    assert_eq!((source.generation(), source.trouble()), (2, None));
}

#[tokio::test]
async fn a_swap_without_a_change_adopts_nothing() {
    let (mut mount, door) = (Mount::new(), Door::default());
    mount.publish(&published("a", "one"));
    door.allow("one");
    door.allow("two");
    let mut source = door.follow(&mount.folder()).open().await.unwrap();
    for _ in 0..5 {
        mount.publish(&published("a", "one"));
    }
    mount.publish(&published("b", "two"));
    until_user(&mut source, "b").await;
    assert_eq!(source.generation(), 2);
    assert_eq!(door.0.lock().unwrap().knocks, ["a one", "b two"]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_yet_is_awaited() {
    let (mut mount, door) = (Mount::new(), Door::default());
    door.allow("one");
    let opening = tokio::spawn(door.follow(&mount.folder()).open());
    // Something else appears above it first.
    fs::write(mount.folder().with_file_name("other"), "").unwrap();
    tokio::task::yield_now().await;
    mount.publish(&published("a", "one"));
    assert_eq!(opening.await.unwrap().unwrap().login().username(), "a");
}

#[tokio::test]
async fn opening_gives_up_with_the_reason() {
    let (mut mount, door) = (Mount::new(), Door::default());
    let open = |patience| door.follow(&mount.folder()).patience(patience).open();
    let error = open(Duration::from_millis(300)).await.unwrap_err().to_string();
    assert!(
        error.contains("no login within 300ms: folder ") && error.ends_with("connection does not exist"),
        "{error}"
    );
    mount.publish(&published("a", "s3cret"));
    let opening = door.follow(&mount.folder()).patience(Duration::from_millis(300)).open();
    let error = opening.await.unwrap_err().to_string();
    assert!(error.ends_with("login postgresql://a@db.example.com:5432/orders: wrong password"), "{error}");
}

#[tokio::test]
async fn plain_renames_are_followed() {
    let (mount, door) = (Mount::new(), Door::default());
    let folder = mount.folder();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("dsn.txt"), uri("a", "one")).unwrap();
    door.allow("one");
    door.allow("two");
    let mut source = door.follow(&folder).dsn("dsn.txt").open().await.unwrap();
    fs::write(folder.join("dsn.tmp"), uri("b", "two")).unwrap();
    fs::rename(folder.join("dsn.tmp"), folder.join("dsn.txt")).unwrap();
    until_user(&mut source, "b").await;
}

#[tokio::test]
async fn a_file_that_is_written_slowly_is_adopted_when_it_is_whole() {
    use std::io::Write;
    let (mount, door) = (Mount::new(), Door::default());
    let folder = mount.folder();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("dsn.txt"), uri("a", "one")).unwrap();
    door.allow("one");
    door.allow("two_and_more");
    let mut source = door.follow(&folder).dsn("dsn.txt").open().await.unwrap();
    let mut file = fs::File::create(folder.join("dsn.txt")).unwrap();
    for byte in uri("b", "two_and_more").bytes() {
        file.write_all(&[byte]).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(file);
    until_user(&mut source, "b").await;
    assert_eq!(source.generation(), 2);
}

#[tokio::test]
async fn a_half_that_stays_is_not_adopted_and_the_whole_is() {
    let (mount, door) = (Mount::new(), Door::default());
    let folder = mount.folder();
    fs::create_dir(&folder).unwrap();
    for (key, value) in published("a", "one") {
        fs::write(folder.join(key), value).unwrap();
    }
    door.allow("one");
    door.allow("two");
    let mut source = door.follow(&folder).open().await.unwrap();
    // The address is the new one's already, the password is not.
    fs::write(folder.join("uri"), uri("a", "two")).unwrap();
    let why = "file uri has another password than file password: update both";
    until(&mut source, |source| source.trouble().as_deref() == Some(why)).await;
    // No file shows that a password was cut off: the server does.
    fs::write(folder.join("uri"), uri("a", "tw")).unwrap();
    fs::write(folder.join("password"), "tw").unwrap();
    until(&mut source, |source| source.trouble().is_some_and(|why| why.ends_with("wrong password"))).await;
    assert_eq!(source.generation(), 1);
    fs::write(folder.join("uri"), uri("a", "two")).unwrap();
    fs::write(folder.join("password"), "two").unwrap();
    until(&mut source, |source| source.generation() == 2).await;
    assert_eq!(source.trouble(), None);
    let knocks = door.0.lock().unwrap().knocks.clone();
    assert!(knocks.iter().all(|knock| ["a one", "a tw", "a two"].contains(&knock.as_str())), "{knocks:?}");
}

#[tokio::test]
async fn what_is_deleted_stays_in_use_until_it_comes_back() {
    let (mut mount, door) = (Mount::new(), Door::default());
    mount.publish(&published("a", "one"));
    ["one", "two", "three"].iter().for_each(|password| door.allow(password));
    // Files behind a kubelet's link never change, so there is no watch.
    let settings = door.follow(&mount.folder()).poll(Duration::from_millis(100));
    let mut source = settings.open().await.unwrap();
    mount.remove();
    until(&mut source, |source| source.trouble().is_some_and(|why| why.ends_with("does not exist"))).await;
    assert_eq!((source.generation(), source.login().username()), (1, "a"));
    mount.publish(&published("b", "two"));
    until_user(&mut source, "b").await;
    // A file alone, and it alone comes back.
    let password = mount.folder().join("..data").join("password");
    fs::remove_file(&password).unwrap();
    let uri_file = mount.folder().join("..data").join("uri");
    fs::remove_file(&uri_file).unwrap();
    until(&mut source, |source| source.trouble().as_deref() == Some("password is missing or empty")).await;
    fs::write(&password, "three").unwrap();
    until(&mut source, |source| source.generation() == 3).await;
}

#[tokio::test]
async fn changes_that_the_kernel_does_not_report_are_found_by_looking() {
    let (mount, door) = (Mount::new(), Door::default());
    let (folder, elsewhere) = (mount.folder(), mount.folder().with_file_name("elsewhere"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("dsn"), uri("a", "one")).unwrap();
    symlink(elsewhere.join("dsn"), folder.join("dsn")).unwrap();
    ["one", "two"].iter().for_each(|password| door.allow(password));
    let settings = door.follow(&folder).poll(Duration::from_millis(100));
    let mut source = settings.open().await.unwrap();
    fs::write(elsewhere.join("next"), uri("b", "two")).unwrap();
    fs::rename(elsewhere.join("next"), elsewhere.join("dsn")).unwrap();
    until_user(&mut source, "b").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_of_hundreds_of_swaps_are_never_mixed() {
    let (mut mount, door) = (Mount::new(), Door::default());
    mount.publish(&published("user0", "pass0"));
    (0..=400).for_each(|at| door.allow(&format!("pass{at}")));
    let mut source = door.follow(&mount.folder()).open().await.unwrap();
    let swapping = tokio::task::spawn_blocking(move || {
        for at in 1..=400 {
            mount.publish(&published(&format!("user{at}"), &format!("pass{at}")));
            std::thread::sleep(Duration::from_millis(3));
        }
        mount
    });
    until_user(&mut source, "user400").await;
    swapping.await.unwrap();
    let knocks = door.0.lock().unwrap().knocks.clone();
    println!("400 swaps, {} logins tried, {} adopted", knocks.len(), source.generation());
    for knock in knocks {
        let (user, password) = knock.split_once(' ').unwrap();
        assert_eq!(user.strip_prefix("user"), password.strip_prefix("pass"), "{knock}");
    }
}

#[tokio::test]
async fn following_ends_with_the_last_source() {
    let (mut mount, door) = (Mount::new(), Door::default());
    mount.publish(&published("a", "one"));
    door.allow("one");
    let source = door.follow(&mount.folder()).open().await.unwrap();
    drop((source.clone(), source));
    let ended = tokio::time::timeout(WITHIN, async {
        while Arc::strong_count(&door.0) > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    ended.await.expect("the follower lets go of its probe");
}
