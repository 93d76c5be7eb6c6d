//! The real binary on a real API server, with the rights that `deploy/` gives and no others: it binds, provisions and
//! reclaims; a leader that was stopped and wakes too late writes nothing; one that is killed under load and
//! started again forgets no claim. Other tests cover single failing calls.

use conductor_controlplane::{ControlPlane, Part};
use conductor_live::kinds::{CLAIM, INSTANCE, RESOURCE, api_of};
use conductor_live::observer::{Observer, State};
use conductor_live::{invariants, operator};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "trial-90001";
const SYSTEM: &str = "trial-90001-system";
/// Generous: a lease runs out in fifteen seconds, and machines are slow at times.
const WITHIN: Duration = Duration::from_secs(120);

/// One control plane serves all of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_binary_works_as_a_process() {
    let stage = Stage::set().await;
    stage.the_rights_of_the_manifests_are_enough().await;
    stage.a_leader_that_wakes_too_late_writes_nothing().await;
    stage.killed_under_load_it_forgets_no_claim().await;
    invariants::check(&stage.observer.history(NAMESPACE)).unwrap();
}

struct Stage {
    plane: ControlPlane,
    api: Client,
    observer: Observer,
    /// Of the service account, not of the administrator.
    kubeconfig: PathBuf,
    folder: PathBuf,
    _operator: tokio::task::JoinSet<()>,
}

/// A process that is killed when it is dropped.
struct Controller {
    child: Child,
    log: PathBuf,
}

impl Controller {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success(), "kill {signal}");
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    async fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it did not end:\n{}", self.log());
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

impl Stage {
    async fn set() -> Stage {
        let mut plane = ControlPlane::start().unwrap();
        // They aggregate the roles.
        plane.start_part(Part::ControllerManager).unwrap();
        let run = |arguments: &[&str], input: &str| {
            let output = plane.kubectl_with_input(arguments, input).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "kubectl {}: {said}", arguments.join(" "));
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["apply", "--server-side", "-f", &root("crds").display().to_string()], "");
        run(&["apply", "-f", "-"], &operator::definition().to_string());
        run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], "");
        run(&["create", "namespace", NAMESPACE], "");
        run(&["create", "namespace", SYSTEM], "");
        run(&["apply", "-f", "-"], &class().to_string());
        for file in [
            "controller-roles.yaml",
            "implementation-roles.yaml",
            "publishing-roles.yaml",
            "admission-policy.yaml",
            "database-roles.yaml",
            "optional/publishing-in-a-namespace.yaml",
        ] {
            let text = fs::read_to_string(root("deploy").join(file)).unwrap();
            let text = text.replace("namespace: shop", &format!("namespace: {NAMESPACE}"));
            run(&["apply", "-f", "-"], &text.replace("conductor-system", SYSTEM));
        }
        run(&["apply", "-f", "-"], &implementation_role().to_string());
        let token = run(&["create", "token", "conductor", "-n", SYSTEM, "--duration=1h"], "");
        let config = conductor_controller::find_cluster(Some(plane.kubeconfig()), None).await.unwrap();
        let api = conductor_controller::connect(config).unwrap();
        let observer = Observer::start(&api).await.unwrap();
        let mut work = tokio::task::JoinSet::new();
        work.spawn(operator::operate(api.clone()));
        let folder = plane.kubeconfig().parent().unwrap().to_owned();
        let kubeconfig = folder.join("account.kubeconfig");
        fs::write(&kubeconfig, account(&fs::read_to_string(plane.kubeconfig()).unwrap(), token.trim()))
            .unwrap();
        let stage = Stage { plane, api, observer, kubeconfig, folder, _operator: work };
        stage.wait_for_rights().await;
        stage
    }

    async fn wait_for_rights(&self) {
        let account = format!("--as=system:serviceaccount:{SYSTEM}:conductor");
        let until = Instant::now() + WITHIN;
        let check =
            ["auth", "can-i", "create", "rdsinstances.database.aws.conductor.io", "-n", SYSTEM, &account];
        while !self.plane.kubectl(&check).unwrap().status.success() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn start(&self, name: &str, more: &[&str]) -> Controller {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.args(["run", "--listen", "127.0.0.1:0", "--system-namespace", SYSTEM, "--kubeconfig"]);
        command.arg(&self.kubeconfig).args(more).env("HOSTNAME", name).env("RUST_LOG", "info");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        Controller { child: command.spawn().unwrap(), log }
    }

    async fn wait(&self, what: &str, logs: &[&Controller], holds: impl Fn(&State) -> bool) {
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            if holds(&self.observer.state(NAMESPACE).1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let logs: Vec<String> = logs.iter().map(|controller| controller.log()).collect();
        panic!("{what} did not come about\n{}", logs.join("\n---\n"));
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let namespace = if kind == CLAIM { NAMESPACE } else { SYSTEM };
        let object = json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api_of(&self.api, kind, Some(namespace)).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn delete_claim(&self, name: &str) {
        api_of(&self.api, CLAIM, Some(NAMESPACE)).delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn holder(&self) -> String {
        let path = ["get", "lease", "conductor", "-n", SYSTEM, "-o", "jsonpath={.spec.holderIdentity}"];
        String::from_utf8(self.plane.kubectl(&path).unwrap().stdout).unwrap()
    }

    async fn wait_for_leader(&self, name: &str) {
        let until = Instant::now() + WITHIN;
        while !self.holder().await.starts_with(name) {
            assert!(Instant::now() < until, "{name} does not lead, {:?} does", self.holder().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn the_rights_of_the_manifests_are_enough(&self) {
        let mut only = self.start("only", &[]);
        self.create(RESOURCE, "first", offer("Delete")).await;
        self.create(CLAIM, "first", want()).await;
        self.wait("a bound claim", &[&only], |state| phase(state, CLAIM, "first") == Some("Bound")).await;
        self.create(CLAIM, "made", json!({"class": "small", "engine": "mysql"})).await;
        self.wait("a claim that was provided for", &[&only], |state| {
            phase(state, CLAIM, "made") == Some("Bound")
        })
        .await;
        self.delete_claim("first").await;
        self.delete_claim("made").await;
        let ended =
            |state: &State| !state.keys().any(|(kind, _, _)| [CLAIM, RESOURCE, INSTANCE].contains(&&**kind));
        self.wait("the end of all", &[&only], ended).await;
        only.signal("-TERM");
        assert!(only.end().await.success(), "{}", only.log());
        assert!(!only.log().contains("forbidden"), "{}", only.log());
        assert_eq!(self.holder().await, "", "the lease should be released");
    }

    /// Stopped in the middle of its work, it wakes long after another has taken over.
    async fn a_leader_that_wakes_too_late_writes_nothing(&self) {
        let mut old = self.start("old", &[]);
        self.wait_for_leader("old").await;
        let new = self.start("new", &[]);
        for n in 0..60 {
            self.create(RESOURCE, &format!("r-{n:02}"), offer(if n % 2 == 0 { "Delete" } else { "Retain" }))
                .await;
        }
        for n in 0..60 {
            self.create(CLAIM, &format!("c-{n:02}"), want()).await;
            if n == 30 {
                old.signal("-STOP");
            }
        }
        self.wait_for_leader("new").await;
        self.wait("all are bound", &[&new], |state| count(state, CLAIM, "Bound") == 60).await;
        for n in 0..20 {
            self.delete_claim(&format!("c-{n:02}")).await;
        }
        let settled = |state: &State| {
            let resources = state.keys().filter(|(kind, _, _)| kind == RESOURCE).count();
            let (bound, released) = (count(state, CLAIM, "Bound"), count(state, RESOURCE, "Released"));
            let (claims, on_its_way) =
                (state.keys().filter(|(kind, _, _)| kind == CLAIM).count(), doomed(state));
            let rests = claims == 40 && !on_its_way && resources == 40 + released && is_recorded(state);
            bound == 40 && count(state, RESOURCE, "Bound") == 40 && rests
        };
        // The new leader's last writes, too: what comes after belongs to another test.
        self.wait("twenty are released", &[&new], settled).await;
        let before = self.observer.state(NAMESPACE).1;
        old.signal("-CONT");
        let status = old.end().await;
        assert_eq!(status.code(), Some(1), "{}", old.log());
        assert!(old.log().contains("lost the lease"), "{}", old.log());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = self.observer.state(NAMESPACE).1;
        let touched: Vec<_> =
            after.iter().filter(|(key, object)| before.get(*key) != Some(*object)).collect();
        assert!(touched.is_empty() && after.len() == before.len(), "after the old leader woke: {touched:?}");
        assert!(self.holder().await.starts_with("new"));
    }

    async fn killed_under_load_it_forgets_no_claim(&self) {
        let more = ["--no-leader-election"];
        let held = count(&self.observer.state(NAMESPACE).1, CLAIM, "Bound");
        let mut controller = self.start("killed", &more);
        for n in 0..200 {
            self.create(RESOURCE, &format!("k-{n:03}"), offer("Retain")).await;
            self.create(CLAIM, &format!("k-{n:03}"), want()).await;
            if n % 50 == 40 {
                controller.signal("-KILL");
                controller.end().await;
                controller = self.start("killed", &more);
            }
        }
        let all = held + 200;
        self.wait("all are bound", &[&controller], |state| count(state, CLAIM, "Bound") == all).await;
        self.wait("all are held", &[&controller], |state| count(state, RESOURCE, "Bound") == all).await;
        controller.signal("-TERM");
        assert!(controller.end().await.success(), "{}", controller.log());
    }
}

fn class() -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": "small", "namespace": SYSTEM},
        "reclaimPolicy": "Delete", "engine": "mysql", "versions": ["8.0.36"],
        "template": {"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": INSTANCE,
            "spec": {"class": "db.t2.small"}},
    })
}

fn offer(policy: &str) -> Value {
    json!({"engine": "mysql", "version": "8.0.36", "reclaimPolicy": policy, "capacity": {"storage": "5Gi"}})
}

fn want() -> Value {
    json!({"engine": "mysql", "version": "8.0", "resources": {"requests": {"storage": "5Gi"}}})
}

fn phase<'a>(state: &'a State, kind: &str, name: &str) -> Option<&'a str> {
    let found = state.iter().find(|((k, _, n), _)| k == kind && n == name)?;
    Some(found.1["status"]["phase"].as_str().unwrap_or_default())
}

fn count(state: &State, kind: &str, wanted: &str) -> usize {
    let of_kind = state.iter().filter(|((k, _, _), _)| k == kind);
    of_kind.filter(|(_, object)| object["status"]["phase"] == wanted).count()
}

/// Whether a resource is released and still to be destroyed.
fn doomed(state: &State) -> bool {
    let mut objects = state.values();
    objects.any(|o| o["status"]["phase"] == "Released" && o["spec"]["reclaimPolicy"] == "Delete")
}

/// Whether every claim has the name of its resource on record: the last that is written of a binding.
fn is_recorded(state: &State) -> bool {
    let mut claims = state.iter().filter(|((kind, _, _), _)| kind == CLAIM);
    claims.all(|(_, claim)| claim["spec"]["resourceName"].is_string())
}

/// The administrator's kubeconfig with the account's token in place of his.
fn account(kubeconfig: &str, token: &str) -> String {
    let with_token = |line: &str| match line.split_once("token: '") {
        Some((before, _)) => format!("{before}token: '{token}'}}"),
        None => line.to_owned(),
    };
    kubeconfig.lines().map(with_token).collect::<Vec<_>>().join("\n")
}

/// What an administrator adds so that classes may make instances.
fn implementation_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "conductor-implementation-rds",
            "labels": {"conductor.io/aggregate-to-implementations": "true"}},
        "rules": [{"apiGroups": ["database.aws.conductor.io"], "resources": ["rdsinstances"],
            "verbs": ["get", "list", "watch", "create", "delete"]}],
    })
}
