//! A real run, on a real API server and on the embedded one, recorded and played again: claims by the hundred, churn,
//! restarts of the controller, edits of a quota. Replay repeats every decision, and no secret of the cluster is in the
//! file.

use conductor_live::{Side, Site, on_both_apis};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(240);
const CLAIMS: usize = 200;
const CANARY: &str = "canary-9f3b1c-do-not-record";

on_both_apis!(a_run_played_again_decides_as_it_did);

struct Cluster {
    site: Site,
    folder: PathBuf,
}

impl Cluster {
    async fn start(side: Side) -> Cluster {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorded-{side:?}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Cluster { site: Site::start(side).await, folder }
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.site.kubectl_with_input(arguments, input);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {}: {}", arguments.join(" "), text(&output.stderr));
        text(&output.stdout)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.args(arguments).env("KUBECONFIG", self.site.kubeconfig()).env("RUST_LOG", "warn");
        command
    }

    fn conductor(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn controller(&self) -> Child {
        let arguments = ["run", "--listen", "127.0.0.1:0", "--no-leader-election"];
        self.command(&arguments).stderr(Stdio::null()).spawn().unwrap()
    }

    fn record(&self, file: &Path) -> Child {
        let arguments = ["sim", "record", "--out", file.to_str().unwrap(), "--force"];
        self.command(&arguments).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Claims by phase.
    fn phases(&self) -> (usize, usize) {
        let list = self.kubectl(&["get", "rdbc", "-A", "-o", "json"], "");
        let list: Value = serde_json::from_str(&list).unwrap();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let bound = items.iter().filter(|c| c["status"]["phase"] == "Bound").count();
        let reported = items.iter().filter(|c| !c["status"]["conditions"].is_null()).count();
        (bound, reported)
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn end(child: &mut Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let _ = child.wait();
}

fn database(at: usize) -> String {
    let (engine, version) = if at.is_multiple_of(3) { ("mysql", "8.0.36") } else { ("postgresql", "16.2") };
    format!(
        "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
         metadata: {{name: db-{at:03}, namespace: conductor-system, labels: {{zone: z{}}}}}\n\
         spec: {{engine: {engine}, version: '{version}', capacity: {{storage: {}Gi}}, sharing: {{maxClaims: {}}}, reclaimPolicy: {}}}\n",
        at % 4,
        10 + at % 7,
        1 + at % 3,
        if at.is_multiple_of(2) { "Retain" } else { "Delete" }
    )
}

fn claim(at: usize) -> String {
    let engine = if at.is_multiple_of(4) { "mysql" } else { "postgres" };
    format!(
        "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {{name: claim-{at:03}, namespace: team-{}, annotations: {{note: {CANARY}}}}}\n\
         spec: {{engine: {engine}, priority: {}, resources: {{requests: {{storage: {}Gi}}}}}}\n",
        at % 3,
        at % 5,
        1 + at % 4
    )
}

async fn a_run_played_again_decides_as_it_did(side: Side) {
    let cluster = Cluster::start(side).await;
    let crds = String::from_utf8(cluster.conductor(&["crds"]).stdout).unwrap();
    cluster.kubectl(&["apply", "--server-side", "-f", "-"], &crds);
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], "");
    for namespace in ["conductor-system", "team-0", "team-1", "team-2"] {
        cluster.kubectl(&["create", "namespace", namespace], "");
        cluster.kubectl(
            &[
                "create",
                "secret",
                "generic",
                "hidden",
                "-n",
                namespace,
                &format!("--from-literal=password={CANARY}"),
            ],
            "",
        );
    }
    cluster.kubectl(&["apply", "-f", "-"], &(0..60).map(database).collect::<String>());
    let file = cluster.folder.join("run.rec");
    let mut controller = cluster.controller();
    let mut recorder = cluster.record(&file);
    until("the recorder has begun", || std::fs::metadata(&file).is_ok_and(|m| m.len() > 0));
    live_through(&cluster, &mut controller);
    // The last writes are in the file a second later.
    std::thread::sleep(Duration::from_secs(3));
    end(&mut recorder, "-INT");
    end(&mut controller, "-TERM");
    plays_alike(&cluster, &file);
    holds_no_secret(&cluster, &file);
}

/// Two hundred claims in bursts, deletions, a quota that comes and grows, new databases, and two restarts.
fn live_through(cluster: &Cluster, controller: &mut Child) {
    for burst in 0..4 {
        let claims: String = (burst * CLAIMS / 4..(burst + 1) * CLAIMS / 4).map(claim).collect();
        cluster.kubectl(&["apply", "-f", "-"], &claims);
        let expected = (burst + 1) * CLAIMS / 4;
        until("every claim has an answer", || cluster.phases().1 == expected);
        if burst.is_multiple_of(2) {
            // Not amid the burst: what a killed controller had decided and not written yet is in no recording, and what it
            // decided beside that would rightly stay unexplained.
            end(controller, "-KILL");
            *controller = cluster.controller();
        }
    }
    let quota = |claims: usize| {
        format!(
            "apiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\nmetadata: {{name: q, namespace: team-0}}\nspec: {{limits: [{{claims: {claims}}}]}}\n"
        )
    };
    cluster.kubectl(&["apply", "-f", "-"], &quota(2));
    let (before, _) = cluster.phases();
    cluster.kubectl(&["apply", "-f", "-"], &(60..90).map(database).collect::<String>());
    until("the new databases are used", || cluster.phases().0 > before);
    for at in (0..CLAIMS).step_by(9) {
        cluster.kubectl(
            &["delete", "rdbc", "--wait=false", "-n", &format!("team-{}", at % 3), &format!("claim-{at:03}")],
            "",
        );
    }
    cluster.kubectl(&["apply", "-f", "-"], &quota(90));
    let left = CLAIMS - (0..CLAIMS).step_by(9).count();
    until("the deleted objects do not exist", || cluster.phases().1 == left);
}

fn plays_alike(cluster: &Cluster, file: &Path) {
    let file = file.to_str().unwrap();
    let inspected = cluster.conductor(&["sim", "inspect", file, "-o", "json"]);
    let found: Value = serde_json::from_slice(&inspected.stdout).expect("it is whole");
    assert_eq!(found["complete"], true, "{found}");
    let played = cluster.conductor(&["sim", "replay", file, "--verify", "-o", "json", "--double-run"]);
    let replay: Value = serde_json::from_slice(&played.stdout).expect("it plays");
    let agreement = &replay["agreement"];
    println!("{agreement}");
    for divergence in replay["divergences"].as_array().into_iter().flatten().take(20) {
        println!("{divergence}");
    }
    assert!(agreement["decisions"].as_u64() >= Some(CLAIMS as u64), "{agreement}");
    assert_eq!(agreement["explained"]["Rule"], Value::Null, "every divergence has an explanation");
    // How many races there are is the machine's business: those that are explained are not counted against the replay.
    let explained = agreement["explained"].as_object().into_iter().flatten();
    let explained: u64 = explained.filter_map(|(_, count)| count.as_u64()).sum();
    let agreed = agreement["agreed"].as_u64().unwrap_or_default();
    assert_eq!(Some(agreed + explained), agreement["decisions"].as_u64(), "{agreement}");
    assert!(agreement["percent"].as_f64() >= Some(90.0), "{agreement}");
    assert!(matches!(played.status.code(), Some(0 | 3)), "{:?}", played.status);
}

fn holds_no_secret(cluster: &Cluster, file: &Path) {
    let canaries = cluster.folder.join("canaries.txt");
    std::fs::write(&canaries, CANARY).unwrap();
    let audit = cluster.conductor(&[
        "sim",
        "audit",
        file.to_str().unwrap(),
        "--canaries",
        canaries.to_str().unwrap(),
    ]);
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}
