//! `conductor up` and `conductor demo` as processes: what a user does in the first minutes, and what must
//! survive the end. They need only the loopback interface.

use conductor_controlplane::{find_kubectl, run_kubectl};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Generous: machines are slow at times.
const WITHIN: Duration = Duration::from_secs(60);

fn conductor() -> Command {
    Command::new(env!("CARGO_BIN_EXE_conductor"))
}

fn root(path: &str) -> String {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).display().to_string()
}

/// The test's own folder, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("conductor-up-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running `conductor up`. Dropping it kills it, as a power cut would.
struct Up {
    child: Child,
    printed: Arc<Mutex<String>>,
}

impl Up {
    fn start(arguments: &[&str]) -> Up {
        let mut command = conductor();
        command.arg("up").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(&printed));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Up { child, printed }
    }

    fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    fn until_printed(&self, text: &str) {
        let end = Instant::now() + WITHIN;
        while !self.printed().contains(text) {
            assert!(Instant::now() < end, "{text:?} was not printed in\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(mut self) -> Option<i32> {
        let interrupt = format!("kill -INT {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kubectl(folder: &Folder, arguments: &[&str]) -> String {
    let (program, config) = (find_kubectl().unwrap(), folder.0.join("kubeconfig"));
    let output = run_kubectl(&program, &config, &folder.0, arguments, "").unwrap();
    succeed(&output)
}

#[track_caller]
fn succeed(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}

#[test]
fn the_demo_ends_with_the_expected_results() {
    let output = conductor().arg("demo").env("CI", "true").output().unwrap();
    let printed = succeed(&output);
    for expected in [
        "claim     wordpress/wordpress-db       Bound      bound to database-445",
        "claim     shop/tests                   Pending    QuotaExceeded: over quota shop/shop",
        "columns-16  widen the claim's version to >= 16",
        "resource  orders-primary               Released   its last claim is gone; policy Retain",
        "read the row on PostgreSQL",
        "As expected:",
    ] {
        assert!(printed.contains(expected), "{expected:?} is missing in\n{printed}");
    }
    assert!(!printed.contains('\x1b'), "plain lines without a terminal:\n{printed}");
    assert!(!printed.contains("not-a-real-password"), "a secret was printed:\n{printed}");
}

#[test]
fn what_was_bound_is_bound_after_a_power_cut_and_kubectl_sees_it() {
    let folder = Folder::new("data");
    let (data, kubeconfig) = (folder.path("data"), folder.path("kubeconfig"));
    let keep = ["--data", data.as_str(), "--write-kubeconfig", kubeconfig.as_str()];
    let (existing, claim) = (root("examples/existing-database.yaml"), folder.path("claim.yaml"));
    fs::write(
        &claim,
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {name: mine, namespace: orders}\nspec: {engine: postgresql, version: '>= 15'}\n",
    )
    .unwrap();
    let first = Up::start(&[&keep[..], &["-f", &existing, "-f", &claim]].concat());
    first.until_printed("claim     orders/mine                  Bound      bound to orders-primary");
    let uid = ["-n", "orders", "get", "rdbc", "mine", "-o", "jsonpath={.metadata.uid} {.status.phase}"];
    let before = kubectl(&folder, &uid);
    assert!(before.ends_with(" Bound"), "{before}");
    drop(first);

    let copied = folder.path("copied");
    fs::copy(&kubeconfig, &copied).unwrap();
    let second = Up::start(&keep);
    second.until_printed("claim     orders/mine                  Bound      bound to orders-primary");
    let printed = second.printed();
    assert!(printed.starts_with("conductor is up."), "progress appears below the greeting:\n{printed}");
    let greeting = printed.find("Progress:").expect("it greets");
    assert!(printed.find("orders/mine").is_some_and(|line| line > greeting), "{printed}");
    assert_eq!(kubectl(&folder, &uid), before, "the same claim, still bound");
    assert!(kubectl(&folder, &["get", "rdb", "-A"]).contains("orders-primary"));
    fs::copy(&copied, &kubeconfig).unwrap();
    assert_eq!(kubectl(&folder, &uid), before, "a kubeconfig from before goes on working");
    kubectl(&folder, &["-n", "orders", "delete", "rdbc", "mine"]);
    second.until_printed("claim     orders/mine                  deleted");
    assert_eq!(second.interrupt(), Some(0), "it stops on a signal");
}

fn mode(path: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("shut");
    let data = folder.path("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(folder.path("data/objects.redb"), "").unwrap();
    for (path, open) in [("data", 0o755), ("data/objects.redb", 0o644)] {
        fs::set_permissions(folder.path(path), fs::Permissions::from_mode(open)).unwrap();
    }
    let up = Up::start(&["--data", &data]);
    up.until_printed("Progress:");
    assert_eq!(mode(&folder.path("data/objects.redb")), 0o600);
    // No other user can list it. Root's servers run as other users, who pass through.
    assert_eq!(mode(&data) & 0o066, 0);
    assert_eq!(up.interrupt(), Some(0));
}

#[test]
fn data_that_is_damaged_is_reported_with_what_to_do() {
    let folder = Folder::new("damaged");
    for damage in ["no database at all".repeat(1000), "x".to_owned()] {
        fs::write(folder.path("objects.redb"), damage).unwrap();
        let output = conductor().args(["up", "--data", &folder.path("")]).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(
            complaint.contains("objects.redb is damaged") && complaint.contains("move it away"),
            "{complaint}"
        );
    }
}

#[test]
fn a_second_controller_stands_by() {
    let folder = Folder::new("second");
    let kubeconfig = folder.path("kubeconfig");
    let up = Up::start(&["--write-kubeconfig", &kubeconfig]);
    up.until_printed("Progress:");
    let holder =
        ["-n", "conductor-system", "get", "lease", "conductor", "-o", "jsonpath={.spec.holderIdentity}"];
    let end = Instant::now() + WITHIN;
    while kubectl(&folder, &holder) != "conductor-up" {
        assert!(Instant::now() < end, "it does not take the Lease");
    }
    let mut run = conductor()
        .args(["run", "--kubeconfig", &kubeconfig, "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let stands_by = lines.map_while(Result::ok).any(|line| line.contains("standing by"));
    let _ = run.kill();
    let _ = run.wait();
    assert!(stands_by, "both decide");
    assert_eq!(up.interrupt(), Some(0));
}

/// A wrong `--system-namespace`, of a second process and then of a restart.
#[test]
fn another_system_namespace_loses_no_claim() {
    let folder = Folder::new("elsewhere");
    let (kubeconfig, data, claim) =
        (folder.path("kubeconfig"), folder.path("data"), folder.path("claim.yaml"));
    fs::write(
        &claim,
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {name: mine, namespace: orders}\nspec: {engine: postgresql, version: '>= 15'}\n",
    )
    .unwrap();
    let keep = ["--write-kubeconfig", kubeconfig.as_str(), "--data", data.as_str()];
    let existing = root("examples/existing-database.yaml");
    let up = Up::start(&[&keep[..], &["-f", &existing, "-f", &claim]].concat());
    up.until_printed("claim     orders/mine                  Bound");
    let status =
        ["-n", "orders", "get", "rdbc", "mine", "-o", "jsonpath={.status.phase} {.status.resourceRef}"];
    let before = kubectl(&folder, &status);
    kubectl(&folder, &["create", "namespace", "elsewhere"]);
    let mut run = conductor();
    run.args([
        "run",
        "--kubeconfig",
        &kubeconfig,
        "--system-namespace",
        "elsewhere",
        "--listen",
        "127.0.0.1:0",
    ]);
    let mut run = run.stderr(Stdio::null()).spawn().unwrap();
    let why = ["-n", "orders", "get", "events.events.k8s.io", "-o", "jsonpath={.items[*].note}"];
    let until_reported = || {
        let end = Instant::now() + WITHIN;
        while !kubectl(&folder, &why).contains("which this controller does not manage") {
            assert!(Instant::now() < end, "nothing says why: {}", kubectl(&folder, &why));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until_reported();
    assert_eq!(terminate(&mut run), Some(0));
    assert_eq!(kubectl(&folder, &status), before);
    kubectl(&folder, &["-n", "orders", "delete", "events.events.k8s.io", "--all"]);
    assert_eq!(up.interrupt(), Some(0));

    let wrong = Up::start(&[&keep[..], &["--system-namespace", "elsewhere"]].concat());
    wrong.until_printed("Progress:");
    until_reported();
    assert_eq!(kubectl(&folder, &status), before);
    assert_eq!(wrong.interrupt(), Some(0));
    let right = Up::start(&keep);
    right.until_printed("claim     orders/mine                  Bound      bound to orders-primary");
    assert_eq!(kubectl(&folder, &status), before);
    assert_eq!(right.interrupt(), Some(0));
}

#[test]
fn who_was_stopped_for_longer_than_the_lease_goes_on() {
    let folder = Folder::new("stopped");
    let kubeconfig = folder.path("kubeconfig");
    let up = Up::start(&["--write-kubeconfig", &kubeconfig, "-f", &root("examples/existing-database.yaml")]);
    up.until_printed("resource  orders-primary               Available");
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &up.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(12));
    signal("-CONT");
    up.until_printed("the controllers lost their Lease");
    kubectl(&folder, &["create", "namespace", "orders"]);
    let claim = folder.path("late.yaml");
    fs::write(
        &claim,
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {name: mine, namespace: orders}\nspec: {engine: postgresql, version: '>= 15'}\n",
    )
    .unwrap();
    kubectl(&folder, &["apply", "-f", &claim]);
    up.until_printed("claim     orders/mine                  Bound");
    assert_eq!(up.interrupt(), Some(0));
}

#[test]
fn every_example_of_a_class_is_served_by_stand_ins() {
    let folder = Folder::new("classes");
    let kubeconfig = folder.path("kubeconfig");
    let up = Up::start(&["--write-kubeconfig", &kubeconfig, "-f", &root("examples/classes")]);
    up.until_printed("Progress:");
    let phases =
        ["get", "rdbc", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}"];
    let end = Instant::now() + WITHIN;
    loop {
        let seen = kubectl(&folder, &phases);
        let claims: Vec<&str> = seen.split_whitespace().collect();
        if claims.len() >= 11 && claims.iter().all(|claim| claim.ends_with("=Bound")) {
            break;
        }
        assert!(Instant::now() < end, "{seen}\n{}", up.printed());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(up.interrupt(), Some(0));
}

#[test]
fn a_manifest_that_cannot_be_applied_is_named_and_nothing_runs() {
    let folder = Folder::new("broken");
    let file = folder.path("broken.yaml");
    for (text, reported) in [
        ("{oops", "not YAML or JSON"),
        ("apiVersion: v1\nkind: Secret\n", "needs metadata.name"),
        (
            "apiVersion: x.example.com/v1\nkind: Thing\nmetadata: {name: a}\n",
            "apply its CustomResourceDefinition too",
        ),
        (
            "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
             metadata: {name: a, namespace: conductor-system}\nspec: {capacity: {storage: 1Gi}}\n",
            "spec.engine: Required value",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let output = conductor().args(["up", "-f", &file]).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("broken.yaml") && complaint.contains(reported), "{complaint}");
        assert!(!complaint.contains("Status {") && !complaint.contains("Some("), "{complaint}");
    }
}

#[test]
fn a_web_address_in_use_is_refused_before_anything_is_announced() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = conductor().args(["up", "--web", &address]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(complaint.contains(&format!("--web {address}: cannot listen on it")), "{complaint}");
}

/// A kubeconfig of an API that no server serves.
fn unreachable(folder: &Folder) -> String {
    let config = "apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: a, user: {}}]
";
    let path = folder.path("unreachable");
    fs::write(&path, config).unwrap();
    path
}

fn run_command(folder: &Folder) -> Command {
    let mut command = conductor();
    command.args(["run", "--kubeconfig", &unreachable(folder), "--no-leader-election"]);
    command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

fn terminate(child: &mut Child) -> Option<i32> {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap().code()
}

#[test]
fn the_port_that_is_bound_is_logged_and_a_lost_log_is_no_panic() {
    let folder = Folder::new("run-log");
    let mut child = run_command(&folder).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving health and metrics") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended without serving");
    }
    assert!(line.contains("127.0.0.1:") && !line.contains("127.0.0.1:0\n"), "{line}");
    assert!(!line.contains("127.0.0.1:0 "), "{line}");
    // The reader goes away, and the controller fails to list, which it logs.
    drop(log);
    let port: u16 =
        line.split("127.0.0.1:").nth(1).unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let end = Instant::now() + WITHIN;
    while get(port, "/metrics").is_none_or(|page| !page.contains("HTTP/1.1 200")) {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none(), "it ended, or serves nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(terminate(&mut child), Some(0));
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    std::io::read_to_string(stream).ok()
}

#[test]
fn other_addresses_than_loopback_require_listen_anywhere() {
    let output = conductor().args(["up", "--listen", "0.0.0.0:0"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("is not a loopback address"), "{complaint}");
    assert!(complaint.contains("--listen-anywhere"), "{complaint}");
}

#[test]
fn a_kind_that_the_user_defined_gets_no_stand_in() {
    let folder = Folder::new("defined");
    let kubeconfig = folder.path("kubeconfig");
    let definition = folder.path("definition.yaml");
    let schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    fs::write(
        &definition,
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: clusters.postgresql.cnpg.io}}\nspec:\n  group: postgresql.cnpg.io\n  scope: Namespaced\n  \
             names: {{kind: Cluster, plural: clusters}}\n  versions: [{{name: v1, served: true, storage: true, {schema}}}]\n"
        ),
    )
    .unwrap();
    let class = root("examples/class-cloudnative-pg.yaml");
    let claim = root("examples/claim.yaml");
    let up = Up::start(&["--write-kubeconfig", &kubeconfig, "-f", &definition, "-f", &class, "-f", &claim]);
    up.until_printed("Creating   ImplementationNotReady: Cluster.postgresql.cnpg.io");
    let printed = up.printed();
    let (_, happened) = printed.split_once("Progress:").expect("it greets");
    assert!(!happened.contains("stand-in"), "{printed}");
    assert_eq!(up.interrupt(), Some(0));
}

/// A status and a body, by one plain request.
fn get_body(address: &str, path: &str) -> Option<(u16, String)> {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(WITHIN)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

/// The address of health and metrics, as printed.
fn web(up: &Up) -> String {
    up.until_printed("Ctrl-C ends it");
    let printed = up.printed();
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("web ")).unwrap_or_default();
    let address = line.trim().trim_start_matches("http://");
    address.split(' ').next().unwrap_or_default().to_owned()
}

fn until_ready(address: &str, status: u16) -> String {
    let end = Instant::now() + WITHIN;
    loop {
        match get_body(address, "/readyz") {
            Some((found, body)) if found == status => return body,
            other => assert!(Instant::now() < end, "/readyz is not {status}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_system_namespace_is_not_deleted_with_what_is_bound() {
    let folder = Folder::new("namespace");
    let config = folder.path("kubeconfig");
    let arguments = ["--write-kubeconfig", &config, "--web", "127.0.0.1:0", "--data", &folder.path("data")];
    let up = Up::start(&arguments);
    let address = web(&up);
    let resource = folder.path("resource.yaml");
    fs::write(
        &resource,
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
         metadata: {name: orders-primary, namespace: conductor-system}\n\
         spec: {engine: postgresql, version: \"15.4\", capacity: {storage: 100Gi}}\n",
    )
    .unwrap();
    kubectl(&folder, &["apply", "-f", &resource]);
    kubectl(&folder, &["create", "namespace", "shop"]);
    kubectl(&folder, &["apply", "-f", &root("examples/claim.yaml")]);
    up.until_printed("shop/shop-db                 Bound");
    let program = find_kubectl().unwrap();
    let delete = ["delete", "namespace", "conductor-system", "--timeout=30s"];
    let refused = run_kubectl(&program, &folder.0.join("kubeconfig"), &folder.0, &delete, "").unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("claim shop/shop-db holds a resource in it"),
        "{said}"
    );
    until_ready(&address, 200);
    assert_eq!(up.interrupt(), Some(0));
    let again = Up::start(&arguments);
    until_ready(&web(&again), 200);
}

/// Connections that say nothing, or send half a request.
fn hold(address: &str) -> Vec<std::net::TcpStream> {
    let mut held = Vec::new();
    for n in 0..320 {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        if n % 2 == 0 {
            // Where it was closed at once, it holds nothing.
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHos");
        }
        held.push(stream);
    }
    held
}

#[test]
fn silent_connections_keep_no_client_from_health_nor_from_the_api() {
    let folder = Folder::new("silent");
    let up = Up::start(&["--write-kubeconfig", &folder.path("kubeconfig"), "--web", "127.0.0.1:0"]);
    let address = web(&up);
    until_ready(&address, 200);
    let api =
        up.printed().split("https://").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
    let held = (hold(&address), hold(&api));
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get_body(&address, path).map(|(status, _)| status), Some(200), "{path}");
    }
    assert!(kubectl(&folder, &["get", "namespaces"]).contains("conductor-system"));
    drop(held);
    assert_eq!(up.interrupt(), Some(0));
}

/// A small file system, unmounted with the test. Needs root.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Folder) -> Option<Small> {
        let path = folder.0.join("small");
        fs::create_dir_all(&path).ok()?;
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=24m", "conductor-test"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Small(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_not_ready_and_space_makes_it_so_again() {
    let folder = Folder::new("full");
    let Some(small) = Small::mount(&folder) else {
        println!("skipped: a tmpfs cannot be mounted here (root is needed)");
        return;
    };
    let (config, data) = (folder.path("kubeconfig"), small.0.join("data").display().to_string());
    let up = Up::start(&["--write-kubeconfig", &config, "--web", "127.0.0.1:0", "--data", &data]);
    let address = web(&up);
    until_ready(&address, 200);
    let filler = small.0.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    let mut size = 1 << 20;
    while size > 0 {
        if file.write_all(&vec![0_u8; size]).is_err() {
            size /= 2;
        }
    }
    // What the file has spare would take renewals of the Lease for long: larger writes use it up, then smaller ones.
    let program = find_kubectl().unwrap();
    let write = |size: usize| {
        let map = |n: usize| {
            let padding = "x".repeat(size);
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{generateName: full-{n}-}}, data: {{a: {padding}}}}}"
            )
        };
        let maps: Vec<String> = (0..20).map(map).collect();
        let all = maps.join("\n---\n");
        let create = ["create", "-f", "-"];
        run_kubectl(&program, &folder.0.join("kubeconfig"), &folder.0, &create, &all)
            .unwrap()
            .status
            .success()
    };
    for size in [100_000, 10_000, 1_000, 1] {
        assert!((0..200).any(|_| !write(size)), "a full disk refuses");
    }
    let end = Instant::now() + WITHIN;
    let unready = loop {
        match get_body(&address, "/readyz") {
            Some((503, body)) if body.contains("[-]store: ") => break body,
            other => assert!(Instant::now() < end, "a store that cannot be written is ready: {other:?}"),
        }
        write(1);
    };
    assert!(unready.contains("No space left") && unready.contains("free space"), "{unready}");
    fs::remove_file(&filler).unwrap();
    drop(file);
    until_ready(&address, 200);
    let large = format!("--from-literal=padding={}", "x".repeat(100_000));
    kubectl(&folder, &["create", "configmap", "after", &large]);
    assert_eq!(up.interrupt(), Some(0));
}
