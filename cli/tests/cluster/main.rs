//! The binary on a real cluster, as people and scripts use it: run, look, explain, stop. What the controller
//! does in detail is tested in `tests/live`.

mod administer;
mod owner;

use conductor_controlplane::ControlPlane;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

struct Cluster {
    plane: ControlPlane,
    port: u16,
}

impl Cluster {
    fn start() -> Cluster {
        let plane = ControlPlane::start().unwrap();
        let port = conductor_controlplane::free_port().unwrap();
        Cluster { plane, port }
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.plane.kubectl_with_input(arguments, input).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {}: {}", arguments.join(" "), text(&output.stderr));
        text(&output.stdout)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.args(arguments).env("KUBECONFIG", self.plane.kubeconfig()).env_remove("RUST_LOG");
        command
    }

    fn conductor(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn listen(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn run(&self) -> Child {
        self.run_with(Stdio::piped(), &["--log-format", "json"])
    }

    fn run_with(&self, log: Stdio, more: &[&str]) -> Child {
        let listen = self.listen();
        let arguments = [&["run", "--listen", &listen][..], more].concat();
        self.command(&arguments).stderr(log).spawn().unwrap()
    }

    /// What the process serves at a path: the status and the body.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.listen()).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

#[track_caller]
fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = probe() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn root(path: &str) -> String {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).display().to_string()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One control plane serves all of it: starting one costs more than everything below.
#[test]
fn the_binary_runs_on_a_cluster_reports_what_it_did_and_stops_when_asked() {
    let mut cluster = Cluster::start();
    says_how_to_install_the_kinds(&cluster);
    let crds = out(&cluster.conductor(&["crds"]));
    cluster.kubectl(&["apply", "-f", "-"], &crds);
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], "");
    for namespace in ["conductor-system", "wordpress"] {
        cluster.kubectl(&["create", "namespace", namespace], "");
    }
    let mut child = cluster.run();
    until("/readyz says ok", || cluster.get("/readyz").filter(|(status, _)| *status == 200));
    assert_eq!(cluster.get("/healthz"), Some((200, "ok\n".to_owned())));
    cluster.kubectl(&["apply", "-f", &root("tests/fixtures/seed-004/relational-database.yaml")], "");
    cluster.kubectl(&["apply", "-f", &root("tests/fixtures/seed-004/relational-database-claim.yaml")], "");
    lists_and_explains(&cluster);
    serves_the_figures(&cluster);
    stops_when_asked(&cluster, &mut child);
    administer::administrators_import_compare_and_abandon(&cluster);
    owner::owners_see_what_is_offered_and_why_they_wait(&mut cluster);
}

fn says_how_to_install_the_kinds(cluster: &Cluster) {
    let output = cluster.conductor(&["get", "claims", "-A"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("run `conductor crds | kubectl apply -f -`"), "{}", err(&output));
    let output = cluster.conductor(&["get", "claims", "--kubeconfig", "/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("/nowhere"), "{}", err(&output));
}

fn lists_and_explains(cluster: &Cluster) {
    let bound = |text: &String| text.contains("Bound") && text.contains("database-445");
    let claims = || Some(out(&cluster.conductor(&["get", "claims", "-A"]))).filter(bound);
    assert!(until("the claim is bound", claims).contains("wordpress/wordpress-db"));
    let list = out(&cluster.conductor(&["get", "resources", "-o", "json"]));
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["items"][0]["spec"]["claimRefs"][0]["name"], "wordpress-db");
    for what in ["classes", "quotas"] {
        let output = cluster.conductor(&["get", what]);
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(0), ""), "{what}");
    }
    let waiting = "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
                   metadata: {name: other, namespace: wordpress}\nspec: {engine: postgresql}\n";
    cluster.kubectl(&["apply", "-f", "-"], waiting);
    let output = cluster.conductor(&["explain", "claim", "wordpress/other"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).starts_with("wordpress/other is Pending: 0/1 resources fit: 1 engine"),
        "{}",
        out(&output)
    );
    let unknown = cluster.conductor(&["explain", "claim", "nowhere/other"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("there is wordpress/other"), "{}", err(&unknown));
}

fn serves_the_figures(cluster: &Cluster) {
    let text = until("the waiting claim is parked", || {
        let (_, text) = cluster.get("/metrics")?;
        text.contains("conductor_queue_claims{place=\"parked\"} 1").then_some(text)
    });
    for series in [
        "conductor_claims_bound_total 1",
        "conductor_leader 1",
        "conductor_refusals_total{predicate=\"Engine\"} 1",
        "conductor_bind_seconds_count 1",
        "conductor_decision_seconds_bucket",
        "conductor_api_calls_total{verb=\"PATCH\",kind=\"RelationalDatabase\",code=\"200\"} ",
        "conductor_conflicts_total 0",
        "conductor_claims_bound_after_flush_total 0",
        // How often: an API server ends the watches of kinds that were just installed when it likes.
        "conductor_watch_restarts_total{kind=\"RelationalDatabaseClaim\",why=\"expired\"} ",
    ] {
        assert!(text.contains(series), "{series} is not among\n{text}");
    }
}

fn stops_when_asked(cluster: &Cluster, child: &mut Child) {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bound = lines.iter().filter(|line| line["reason"] == "Bound").count();
    assert_eq!(bound, 1, "one line for one bind:\n{log}");
    let lease = cluster.kubectl(&["get", "lease", "-n", "conductor-system", "conductor", "-o", "json"], "");
    let lease: Value = serde_json::from_str(&lease).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default(), "", "it was released");
}
