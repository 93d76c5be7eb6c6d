//! One trial: a workflow in its own namespaces, with a controller that fails at one call, dies where the fault says so, and
//! is restarted. Callers check its end.

use crate::fault::{Call, Fault, Wire};
use crate::kinds::{NAMESPACE, api_of};
use crate::normal::{difference, normalise};
use crate::observer::{Observer, State};
use crate::scope::Scope;
use crate::workflow::{Act, Workflow};
use crate::{invariants, kinds, operator};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a trial may take to settle. Generous: machines are slow at times, and nothing is timed.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);
/// A controller that sends nothing for this long, retries included, is idle.
const REST: Duration = Duration::from_millis(700);
/// The same during the set-up, before the fault.
const SHORT_REST: Duration = Duration::from_millis(200);

/// The end of a trial: its objects, normalised.
pub type End = BTreeMap<String, String>;

/// Runs trials: one API server, one observer.
pub struct Lab {
    api: Client,
    observer: Observer,
    trials: AtomicUsize,
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab").field("trials", &self.trials).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What an undisturbed run shows.
#[derive(Clone, Debug)]
pub struct Normal {
    /// Every call from the trigger to the rest after it.
    pub trace: Vec<Call>,
    /// How it ends.
    pub end: End,
}

/// A running trial.
pub struct Trial<'a> {
    lab: &'a Lab,
    workflow: &'a Workflow,
    name: String,
    controller: Option<Life>,
    rest: Duration,
    heeds_events: bool,
    /// The wire with the fault; its controller may be dead by now.
    armed: Option<Wire>,
}

/// One life of a controller.
struct Life {
    wire: Wire,
    task: JoinHandle<Result<(), conductor_controller::Error>>,
}

/// Installs the kinds of trials with kubectl: ours, and that of the operator.
///
/// # Panics
/// They are not served afterwards; the message has kubectl's output.
pub fn install(kubectl: impl Fn(&[&str], &str) -> Output) {
    let crds = crate::root("crds").display().to_string();
    for (arguments, input) in [
        (&["apply", "--server-side", "-f", &crds][..], String::new()),
        (&["apply", "-f", "-"], operator::definition().to_string()),
        (&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], String::new()),
    ] {
        let output = kubectl(arguments, &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Lab {
    /// A lab on the cluster of this client, which retries nothing by itself.
    ///
    /// # Errors
    /// The observer cannot watch.
    pub async fn new(api: Client) -> kube::Result<Lab> {
        Ok(Lab { observer: Observer::start(&api).await?, api, trials: AtomicUsize::new(1) })
    }

    /// The administrator's client.
    pub fn api(&self) -> &Client {
        &self.api
    }

    /// Runs a workflow undisturbed.
    ///
    /// # Errors
    /// What did not happen, or the broken invariant.
    pub async fn run_undisturbed(&self, workflow: &Workflow) -> Result<Normal, String> {
        let mut trial = Trial::begin(self, workflow).await?;
        trial.trigger(None).await?;
        trial.wait("its end", |state, _| (workflow.done)(state)).await?;
        let trace = trial.life().wire.trace();
        let end = trial.end();
        trial.close()?;
        Ok(Normal { trace, end })
    }

    /// Runs a workflow with a fault at one call. True if the call came and failed.
    ///
    /// # Errors
    /// How the end differs from the undisturbed one, or the broken invariant.
    pub async fn run_faulty(
        &self,
        workflow: &Workflow,
        normal: &Normal,
        call: &Call,
        fault: Fault,
    ) -> Result<bool, String> {
        let mut trial = Trial::begin(self, workflow).await?;
        trial.trigger(Some((call.clone(), fault))).await?;
        let waited = trial.wait("the end of the undisturbed run", |_, end| *end == normal.end).await;
        waited.map_err(|late| format!("{late}\n{}", difference(&normal.end, &trial.end()).join("\n")))?;
        let hit = trial.armed.as_ref().is_some_and(Wire::was_hit);
        trial.close()?;
        Ok(hit)
    }
}

impl<'a> Trial<'a> {
    /// Creates the namespaces and the workflow's objects, and waits until the controller is idle.
    ///
    /// # Errors
    /// What could not be created, or did not happen.
    pub async fn begin(lab: &'a Lab, workflow: &'a Workflow) -> Result<Trial<'a>, String> {
        let name = format!("trial-{:05}", lab.trials.fetch_add(1, Ordering::Relaxed));
        let mut trial = Trial {
            lab,
            workflow,
            name: name.clone(),
            controller: None,
            rest: SHORT_REST,
            heeds_events: true,
            armed: None,
        };
        for namespace in [name.clone(), format!("{name}-system")] {
            trial.create(&json!({"kind": NAMESPACE, "metadata": {"name": namespace}})).await?;
        }
        if workflow.begins_cold {
            trial.act(&workflow.before).await?;
        } else {
            trial.start();
            trial.act(&workflow.before).await?;
            trial.rest().await?;
        }
        Ok(trial)
    }

    /// Arms the wire and triggers the workflow, with a controller that is started now if none runs.
    ///
    /// # Errors
    /// What failed.
    pub async fn trigger(&mut self, fault: Option<(Call, Fault)>) -> Result<(), String> {
        if self.controller.is_none() {
            self.start_armed(fault);
        } else {
            self.life().wire.arm(fault);
        }
        self.armed = Some(self.life().wire.clone());
        self.rest = REST;
        self.act(&self.workflow.trigger).await
    }

    fn start(&mut self) {
        self.start_armed(None);
    }

    fn start_armed(&mut self, fault: Option<(Call, Fault)>) {
        let wire = Wire::default();
        wire.arm(fault);
        let client = wire.client(&self.lab.api, Scope { namespace: self.name.clone() });
        let options = conductor_controller::Options {
            system_namespace: format!("{}-system", self.name),
            identity: self.name.clone(),
            lease: None,
            ..conductor_controller::Options::default()
        };
        let task = tokio::spawn(conductor_controller::run(client, options, CancellationToken::new()));
        self.controller = Some(Life { wire, task });
    }

    fn life(&self) -> &Life {
        self.controller.as_ref().expect("a trial that was triggered has a controller")
    }

    /// A controller whose wire is cut is dropped where it stands, and the next one starts.
    async fn mourn(&mut self) -> Result<(), String> {
        if let Some(life) = self.controller.take_if(|life| life.wire.is_dead()) {
            life.task.abort();
            let _ = life.task.await;
            self.start();
        }
        match self.controller.take_if(|life| life.task.is_finished()) {
            Some(life) => Err(format!("the controller ended by itself: {:?}", life.task.await)),
            None => Ok(()),
        }
    }

    /// Acts as a user or another client.
    ///
    /// # Errors
    /// What failed.
    pub async fn act(&mut self, acts: &[Act]) -> Result<(), String> {
        for act in acts {
            match act {
                Act::Create(object) => self.create(&self.named(object)).await?,
                Act::Patch(kind, name, patch) => self.patch(kind, name, &self.named(patch)).await?,
                Act::Delete(kind, name) => self.delete(kind, name).await?,
                Act::Wait(what, holds) => self.wait(what, |state, _| holds(state)).await?,
            }
        }
        Ok(())
    }

    /// `NS` in a manifest is the trial's namespace.
    fn named(&self, object: &Value) -> Value {
        let text = object.to_string().replace("\"NS", &format!("\"{}", self.name));
        serde_json::from_str(&text).expect("a name in JSON is still JSON")
    }

    fn api(&self, kind: &str, namespace: Option<&str>) -> kube::Api<DynamicObject> {
        let home = match kind {
            kinds::RESOURCE | kinds::CLASS | kinds::INSTANCE | kinds::SECRET => {
                format!("{}-system", self.name)
            }
            _ => self.name.clone(),
        };
        api_of(&self.lab.api, kind, Some(namespace.unwrap_or(&home)))
    }

    /// Creates an object, however often the API does not answer. One that exists was created by an earlier attempt.
    ///
    /// # Errors
    /// The API refuses it.
    pub async fn create_surely(&self, act: &Act) -> Result<(), String> {
        let Act::Create(object) = act else { return Err(format!("{act:?} creates nothing")) };
        loop {
            match self.try_create(&self.named(object)).await {
                Ok(()) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
                Err(kube::Error::Api(status)) if (400..429).contains(&status.code) => {
                    return Err(status.to_string());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn create(&self, object: &Value) -> Result<(), String> {
        let created = self.try_create(object).await;
        created.map_err(|error| format!("cannot create {}: {error}", object["kind"]))
    }

    async fn try_create(&self, object: &Value) -> kube::Result<()> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let mut whole = object.clone();
        whole["apiVersion"] = Value::from(kinds::resource_of(kind).api_version);
        let whole: DynamicObject = serde_json::from_value(whole).map_err(kube::Error::SerdeError)?;
        self.api(kind, None).create(&PostParams::default(), &whole).await.map(drop)
    }

    async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<(), String> {
        let patched = self.api(kind, None).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| format!("cannot patch {kind} {name}: {error}"))
    }

    async fn delete(&self, kind: &str, name: &str) -> Result<(), String> {
        let name = if kind == NAMESPACE { &self.name } else { name };
        let deleted = self.api(kind, None).delete(name, &DeleteParams::default()).await;
        deleted.map(drop).map_err(|error| format!("cannot delete {kind} {name}: {error}"))
    }

    /// Waits until a condition holds and the controller is idle; restarts the controller where it dies.
    ///
    /// # Errors
    /// The condition does not hold in time; with the last calls.
    pub async fn wait(&mut self, what: &str, holds: impl Fn(&State, &End) -> bool) -> Result<(), String> {
        let until = Instant::now() + SETTLES_WITHIN;
        let mut judged = None;
        while Instant::now() < until {
            self.mourn().await?;
            let page = self.lab.observer.page(&self.name);
            let held = match judged {
                Some((seen, held)) if seen == page => held,
                Some(_) | None => {
                    let (_, state) = self.lab.observer.state(&self.name);
                    holds(&state, &self.normal(&state))
                }
            };
            judged = Some((page, held));
            if held && self.rests() && self.lab.observer.page(&self.name) == page {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let trace = self.controller.as_ref().map(|life| life.wire.trace()).unwrap_or_default();
        let calls: Vec<_> = trace.iter().rev().take(12).rev().map(ToString::to_string).collect();
        Err(format!("{}: {what} did not happen; last calls: {}", self.name, calls.join(", ")))
    }

    fn rests(&self) -> bool {
        let quiet =
            |wire: &Wire| if self.heeds_events { wire.quiet_for() } else { wire.quiet_but_for_events() };
        self.controller.as_ref().is_none_or(|life| quiet(&life.wire) >= self.rest)
    }

    /// From now on an idle controller may send Events: they are many, at their own pace.
    pub fn disregard_events(&mut self) {
        self.heeds_events = false;
    }

    /// The trial's name, which is that of its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The controller's wire.
    pub fn wire(&self) -> &Wire {
        &self.life().wire
    }

    /// The trial's objects now.
    pub fn state(&self) -> State {
        self.lab.observer.state(&self.name).1
    }

    async fn rest(&mut self) -> Result<(), String> {
        self.wait("rest", |_, _| true).await
    }

    fn normal(&self, state: &State) -> End {
        normalise(state.values(), &self.name)
    }

    fn end(&self) -> End {
        self.normal(&self.lab.observer.state(&self.name).1)
    }

    /// Ends the controller and checks what it did.
    ///
    /// # Errors
    /// The broken invariant.
    pub fn close(mut self) -> Result<(), String> {
        if let Some(life) = self.controller.take() {
            life.wire.cut();
            life.task.abort();
        }
        let judged = invariants::check(&self.lab.observer.history(&self.name));
        self.lab.observer.forget(&self.name);
        judged.map_err(|broken| format!("{}: {broken}", self.name))
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if let Some(life) = self.controller.take() {
            life.task.abort();
        }
    }
}
