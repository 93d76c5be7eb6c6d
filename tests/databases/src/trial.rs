//! Crashes at every boundary: a workflow is run once undisturbed, and then once for each message to the server and each
//! write to the API that it was seen to make, with the process dead right there. What a workflow is, how it ends and
//! what must hold afterwards is the test's to say.

use crate::{Cluster, Cut, Login, RealServer, Said, Tap};
use conductor::api::database::ADMIN_HOSTS;
use conductor_controller::Options;
use conductor_live::fault::{Call, Fault, Wire};
use conductor_live::scope::Scope;
use conductor_live::{PATIENCE, Portion};
use conductor_sql_plan::sql::Dialect;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Trials at a time: most of one is waiting.
const SIDE_BY_SIDE: usize = 8;
/// A message that chance spares is tried again.
const TRIES: usize = 3;

/// Where the process dies.
#[derive(Clone, Debug)]
pub enum Boundary {
    /// It lives.
    Nowhere,
    /// At a message to the server.
    Sql(Cut),
    /// At a call of the API.
    Api(Call, Fault),
}

/// What a run said, and to whom.
#[derive(Debug)]
pub struct Trace {
    /// To the server.
    pub said: Vec<Said>,
    /// To the API.
    pub called: Vec<Call>,
    /// Whether the boundary was met.
    pub was_hit: bool,
}

/// Which of what was said and called is the workflow's own, and a boundary.
#[derive(Clone, Copy, Debug)]
pub struct Boundaries {
    /// Of the messages.
    pub is_counted: fn(&Said) -> bool,
    /// Of the calls.
    pub is_called: fn(&Call) -> bool,
}

/// Runs every workflow with a crash at each boundary of the chosen [`Portion`], and prints how many there were.
///
/// # Panics
/// Where a trial fails, or so many are spared by chance that it is no enumeration.
pub async fn enumerate<W, F>(
    title: &str,
    workflows: &[W],
    boundaries: Boundaries,
    trial: impl Fn(W, Boundary) -> F,
) where
    W: Copy + Debug,
    F: Future<Output = Result<Trace, String>>,
{
    let begun = Instant::now();
    let mut trials = Vec::new();
    for workflow in workflows.iter().copied() {
        let trace = trial(workflow, Boundary::Nowhere).await.expect("the undisturbed run");
        let said: Vec<Said> = trace.said.into_iter().filter(boundaries.is_counted).collect();
        let called: Vec<Call> = trace.called.into_iter().filter(boundaries.is_called).collect();
        println!("{title} {workflow:?}: {} messages, {} writes", said.len(), called.len());
        let cuts = said.into_iter().flat_map(|said| [Cut::Before(said.clone()), Cut::After(said)]);
        trials.extend(cuts.map(|cut| (workflow, Boundary::Sql(cut))));
        let faults = called.into_iter().flat_map(|call| {
            [Fault::CrashBefore, Fault::CrashAfter]
                .map(|fault| (workflow, Boundary::Api(call.clone(), fault)))
        });
        trials.extend(faults);
    }
    assert!(trials.len() > 30, "{} boundaries: this is no enumeration", trials.len());
    let part = Portion::chosen();
    let trials = part.of(trials);
    let (count, trial) = (trials.len(), &trial);
    let run = trials.into_iter().map(|(workflow, boundary)| async move {
        for _ in 0..TRIES {
            match trial(workflow, boundary.clone()).await {
                Ok(trace) if trace.was_hit => return Ok(true),
                Ok(_) => {}
                Err(why) => return Err(format!("{workflow:?} at {boundary:?}: {why}")),
            }
        }
        Ok(false)
    });
    let outcomes: Vec<Result<bool, String>> =
        futures::stream::iter(run).buffer_unordered(SIDE_BY_SIDE).collect().await;
    let failed: Vec<&str> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).map(String::as_str).collect();
    let spared = outcomes.iter().filter(|outcome| **outcome == Ok(false)).count();
    println!(
        "{title}, {part}: {count} trials, {} failed, {spared} spared by chance, {:.0} s",
        failed.len(),
        begun.elapsed().as_secs_f32()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    let most = if part == Portion::Whole { count / 10 } else { count / 2 };
    assert!(spared <= most, "{spared} of {count} were spared: this is no enumeration");
}

/// One trial's part of the cluster.
#[derive(Clone)]
pub struct Place {
    /// The administrator's client.
    pub api: Client,
    /// Where the application is.
    pub namespace: String,
    /// Where the server and the records are.
    pub system: String,
}

impl Place {
    /// In namespaces of its own.
    pub fn new(cluster: &Cluster, namespace: String) -> Place {
        Place { api: cluster.client.clone(), system: format!("{namespace}-system"), namespace }
    }

    /// Its namespaces, the server behind `port`, and its administrator. `databases` are the server's rules.
    pub async fn set_up(&self, cluster: &Cluster, server: &RealServer, port: u16, databases: Value) {
        let access = server.access();
        let engine = match server.plan.dialect {
            Dialect::Postgresql => "postgresql",
            Dialect::Mariadb => "mariadb",
            Dialect::Mysql => "mysql",
        };
        cluster.turn.namespace(&self.namespace).await;
        cluster.turn.namespace(&self.system).await;
        let objects = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "admin", "namespace": self.system,
                    "annotations": {ADMIN_HOSTS: format!("127.0.0.1:{port}")}},
                "stringData": {"username": access.username, "password": access.password.expose()}}),
            json!({"apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseServer",
                "metadata": {"name": "main", "namespace": self.system},
                "spec": {"engine": engine, "host": "127.0.0.1", "port": port, "admin": {"secretName": "admin"},
                    "databases": databases, "offer": {}}}),
        ];
        for object in objects {
            cluster.turn.put(object).await;
        }
    }

    /// Objects of a kind in a namespace.
    pub fn of(&self, group: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1alpha1", kind);
        let plural = format!("{}s", kind.to_lowercase());
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
        Api::namespaced_with(self.api.clone(), namespace, &resource)
    }

    /// The records of databases.
    pub fn records(&self) -> Api<DynamicObject> {
        self.of("database.conductor.io", "LogicalDatabase", &self.system)
    }

    /// The claims.
    pub fn claims(&self) -> Api<DynamicObject> {
        self.of("storage.conductor.io", "RelationalDatabaseClaim", &self.namespace)
    }

    /// A controller's options here.
    pub fn options(&self) -> Options {
        Options { system_namespace: self.system.clone(), lease: None, databases: true, ..Options::default() }
    }

    /// What a controller sees here.
    pub fn scope(&self) -> Scope {
        Scope { namespace: self.namespace.clone() }
    }

    /// What is published under a name now.
    pub async fn published(&self, dialect: Dialect, name: &str) -> Option<Login> {
        let secrets: Api<Secret> = Api::namespaced(self.api.clone(), &self.namespace);
        let data = secrets.get_opt(name).await.ok()??.data?;
        let keys = data.into_iter().filter_map(|(k, v)| Some((k, String::from_utf8(v.0).ok()?)));
        Some(Login::new(dialect, keys.collect()))
    }
}

impl Boundary {
    /// Lays the trap: from here on the next such message or call is the last.
    pub fn arm(&self, tap: &Tap, wire: &Wire) {
        let (cut, call) = match self {
            Boundary::Nowhere => (Cut::Never, None),
            Boundary::Sql(cut) => (cut.clone(), None),
            Boundary::Api(call, fault) => (Cut::Never, Some((call.clone(), *fault))),
        };
        tap.arm(cut);
        wire.arm(call);
    }
}

/// Waits for the crash or, where chance spares the process, for the end of its work. Returns what it did until then.
///
/// # Errors
/// What the end was waited for in vain by.
pub async fn until_struck(
    tap: &mut Tap,
    wire: &Wire,
    finished: impl Future<Output = Result<(), String>>,
) -> Result<Trace, String> {
    let mut was_hit = tokio::select! {
        () = tap.wait_for_cut() => true,
        () = wire.death() => true,
        done = finished => { done?; false }
    };
    if !was_hit && tap.is_struck() {
        // The end came between the message and the cut.
        tap.wait_for_cut().await;
        was_hit = true;
    }
    Ok(Trace { said: tap.said(), called: wire.trace(), was_hit })
}

/// Waits for an answer.
///
/// # Errors
/// What was waited for in vain.
pub async fn wait<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> Result<T, String> {
    let end = Instant::now() + PATIENCE * 2;
    loop {
        if let Some(answer) = find().await {
            return Ok(answer);
        }
        if Instant::now() > end {
            return Err(format!("waited in vain: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
