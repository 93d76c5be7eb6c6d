//! A real MySQL server for a test. No distribution that we know has it beside MariaDB, so `scripts/install-mysql` keeps
//! one in a folder of its own; Conductor itself runs none.

use crate::login::Login;
use conductor_sql::local::process::Plan;
use conductor_sql::verifier;
use conductor_sql_plan::sql::Dialect;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Every engine that can be tried here. MySQL takes a download of its own: where that is not installed, a line reports it.
pub fn engines() -> Vec<Dialect> {
    let mut all = vec![Dialect::Postgresql, Dialect::Mariadb];
    let answer = Command::new(home().join("bin/mysqld")).arg("--version").output();
    match answer.is_ok_and(|answer| answer.status.success()) {
        true => all.push(Dialect::Mysql),
        false => println!("MySQL is not installed (scripts/install-mysql): left out"),
    }
    all
}

/// How long it may take to answer.
const WITHIN: Duration = Duration::from_secs(120);
/// Ends the server when the test ends, however that ends.
const GUARD: &str = r#"
"$@" </dev/null &
server=$!
read -r _
kill "$server"
wait "$server"
"#;

/// A server that runs. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Mysqld(Child);

impl Mysqld {
    /// Starts one as it is planned, and waits until it answers.
    pub async fn start(plan: &Plan) -> Mysqld {
        let (home, data) = (home(), plan.folder.join("data"));
        let common = [
            "--no-defaults".to_owned(),
            "--user=root".to_owned(),
            format!("--basedir={}", home.display()),
            format!("--datadir={}", data.display()),
            "--innodb-use-native-aio=0".to_owned(),
        ];
        let program = home.join("bin/mysqld");
        if !data.exists() {
            std::fs::create_dir_all(&plan.folder).expect("a folder can be made");
            let made = Command::new(&program).args(&common).arg("--initialize-insecure").output();
            let made = made.expect("scripts/install-mysql has installed it");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let hash = verifier(plan.dialect, &plan.password);
        let begin = plan.folder.join("begin.sql");
        let root = format!(
            "CREATE USER IF NOT EXISTS 'root'@'%';\nGRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;\n\
             ALTER USER 'root'@'%' IDENTIFIED WITH caching_sha2_password AS '{hash}';\n"
        );
        std::fs::write(&begin, root).expect("a file can be written");
        let log = std::fs::File::create(plan.log()).expect("a file can be written");
        let child = Command::new("/bin/sh")
            .args(["-c", GUARD, "sh"])
            .arg(&program)
            .args(&common)
            .args([
                format!("--init-file={}", begin.display()),
                format!("--port={}", plan.port),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--socket={}", plan.folder.join("socket").display()),
                format!("--pid-file={}", plan.folder.join("pid").display()),
                "--skip-log-bin".to_owned(),
                "--mysqlx=0".to_owned(),
                "--skip-name-resolve".to_owned(),
                format!("--max-connections={}", plan.max_connections),
            ])
            .args(&plan.more)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn();
        let server = Mysqld(child.expect("a shell can be started"));
        let (admin, end) = (Login::admin(&plan.access()), Instant::now() + WITHIN);
        while let Err(why) = admin.run("SELECT 1").await {
            assert!(Instant::now() < end, "MySQL does not answer: {why}; see {}", plan.log().display());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        server
    }

    /// The process that guards it.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Mysqld {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Where it is installed.
fn home() -> PathBuf {
    let of_the_user = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/conductor"));
    let cache = std::env::var_os("CONDUCTOR_CACHE").map(PathBuf::from).or_else(of_the_user);
    cache.unwrap_or_default().join("mysql")
}
