//! A concise form of worlds: objects are written as the JSON of their specs, and outcomes are read back as short
//! lines. Also the driver that crashes engines. Nothing here knows a rule.

use conductor::action::Action;
use conductor::engine::{Binding, Config, Engine};
use conductor::event::{Answer, Event};
use conductor::model::{Kind, Object, ObjectKey, Part, PartKey, PartKind, Time, TypeId, Uid};
use conductor_simulator::harness::Harness;
use conductor_simulator::world::{World, key_of};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
pub const CLAIM: Kind = Kind::Claim(TYPE);
pub const RESOURCE: Kind = Kind::Resource(TYPE);
pub const CLASS: Kind = Kind::Class(TYPE);
const SYSTEM: &str = "conductor-system";
/// Where claims live that name no namespace.
const APP: &str = "app";
pub const START: Time = Time(1_800_000_000_000);

/// A PostgreSQL 14.2 of so many GiB.
pub fn db(gib: u32) -> Value {
    json!({"engine": "postgresql", "version": "14.2", "capacity": {"storage": format!("{gib}Gi")}})
}

/// A claim for a PostgreSQL of so many GiB.
pub fn requests(gib: u32) -> Value {
    json!({"engine": "postgresql", "resources": {"requests": {"storage": format!("{gib}Gi")}}})
}

/// A reference to a claim, without a UID: a reservation.
pub fn kept_for(claim: &str) -> Value {
    let key = claim_key(claim);
    json!({"claimRefs": [{"namespace": &*key.namespace, "name": &*key.name}]})
}

/// A reference to one life of a claim.
pub fn held_by(claim: &str, uid: &str) -> Value {
    let key = claim_key(claim);
    json!({"claimRefs": [{"namespace": &*key.namespace, "name": &*key.name, "uid": uid}]})
}

/// A class that provisions whatever is requested.
pub fn makes(policy: &str) -> Value {
    json!({"reclaimPolicy": policy, "template": {"apiVersion": "example.com/v1", "kind": "Instance"}})
}

/// The kind that `makes` makes.
pub fn instance() -> PartKind {
    PartKind::new("example.com/v1", "Instance")
}

/// The only part of a resource, if it has one.
pub fn part_of<'a>(world: &'a World, resource: &str) -> Option<&'a Part> {
    let uid = world.get(RESOURCE, &system_key(resource))?.metadata.uid.clone()?;
    let mut own = world.parts().filter(|p| annotation(p, "conductor.io/resource-uid") == Some(&uid));
    let part = own.next();
    assert!(own.next().is_none(), "{resource} has two parts");
    part
}

pub fn annotation<'a>(part: &'a Part, name: &str) -> Option<&'a str> {
    part.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// What a part says that is ready.
pub fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

/// JSON objects that can be laid over one another.
pub trait With {
    /// `self` with the fields of `more` on top.
    fn with(self, more: Value) -> Value;
}

impl With for Value {
    fn with(mut self, more: Value) -> Value {
        for (key, value) in more.as_object().unwrap() {
            self[key] = value.clone();
        }
        self
    }
}

/// `name` in the namespace of claims, or `namespace/name`.
pub fn claim_key(claim: &str) -> ObjectKey {
    match claim.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(APP, claim),
    }
}

pub fn system_key(name: &str) -> ObjectKey {
    ObjectKey::new(SYSTEM, name)
}

/// A claim as an object.
pub fn claim(name: &str, spec: Value) -> Object {
    object(CLAIM, &claim_key(name), json!({ "spec": spec }))
}

/// A resource as an object.
pub fn resource(name: &str, spec: Value) -> Object {
    object(RESOURCE, &system_key(name), json!({ "spec": spec }))
}

/// A class as an object.
pub fn class(name: &str, body: Value) -> Object {
    object(CLASS, &system_key(name), body)
}

/// A quota of one namespace as an object.
pub fn quota(name: &str, limits: Value) -> Object {
    object(Kind::Quota, &claim_key(name), json!({"spec": {"limits": limits}}))
}

/// A scheduling profile as an object.
pub fn profile(name: &str, spec: Value) -> Object {
    object(Kind::Profile, &ObjectKey::new("", name), json!({ "spec": spec }))
}

fn object(kind: Kind, key: &ObjectKey, body: Value) -> Object {
    let mut metadata = json!({"name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = Value::from(&*key.namespace);
    }
    Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body }
}

/// Objects in the making. Modifiers apply to the object that was added last.
#[derive(Clone, Default)]
pub struct Scene {
    objects: Vec<Object>,
    lacks_kinds: bool,
}

/// An empty world.
pub fn world() -> Scene {
    Scene::default()
}

impl Scene {
    /// No kind of parts is installed.
    pub fn without_kinds(mut self) -> Scene {
        self.lacks_kinds = true;
        self
    }

    /// Adds any object.
    pub fn object(mut self, object: Object) -> Scene {
        self.objects.push(object);
        self
    }

    pub fn resource(self, name: &str, spec: Value) -> Scene {
        self.object(resource(name, spec))
    }

    pub fn claim(self, name: &str, spec: Value) -> Scene {
        self.object(claim(name, spec))
    }

    pub fn class(self, name: &str, body: Value) -> Scene {
        self.object(class(name, body))
    }

    pub fn default_class(self, name: &str, body: Value) -> Scene {
        self.class(name, body).annotated(json!({"conductor.io/is-default-class": "true"}))
    }

    pub fn quota(self, name: &str, limits: Value) -> Scene {
        self.object(quota(name, limits))
    }

    pub fn cluster_quota(self, name: &str, selector: Value, limits: Value) -> Scene {
        let spec = json!({"namespaceSelector": selector, "limits": limits});
        self.object(object(Kind::ClusterQuota, &ObjectKey::new("", name), json!({ "spec": spec })))
    }

    pub fn limits(self, name: &str, spec: Value) -> Scene {
        self.object(object(Kind::Limits, &claim_key(name), json!({ "spec": spec })))
    }

    /// The profile of every claim that names none.
    pub fn profile(self, spec: Value) -> Scene {
        self.object(profile("default", spec))
    }

    pub fn namespace(self, name: &str, labels: Value) -> Scene {
        self.object(object(Kind::Namespace, &ObjectKey::new("", name), json!({}))).labelled(labels)
    }

    fn last(&mut self) -> &mut Object {
        self.objects.last_mut().expect("an object comes before its modifiers")
    }

    pub fn labelled(mut self, labels: Value) -> Scene {
        self.last().metadata.labels = serde_json::from_value(labels).unwrap();
        self
    }

    pub fn annotated(mut self, annotations: Value) -> Scene {
        self.last().metadata.annotations = serde_json::from_value(annotations).unwrap();
        self
    }

    pub fn uid(mut self, uid: &str) -> Scene {
        self.last().metadata.uid = Some(uid.to_owned());
        self
    }

    pub fn status(mut self, status: Value) -> Scene {
        self.last().body["status"] = status;
        self
    }

    /// Created so many seconds after the epoch.
    pub fn created(mut self, second: i64) -> Scene {
        let time = k8s_openapi::jiff::Timestamp::from_second(second).unwrap();
        self.last().metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        self
    }

    /// Being deleted, and held by another client's finalizer.
    pub fn deleting(mut self) -> Scene {
        let time = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
        let metadata = &mut self.last().metadata;
        metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        metadata.finalizers = Some(vec!["example.com/keep".to_owned()]);
        self
    }

    /// The cluster before any controller.
    pub fn into_world(self) -> World {
        let mut world = World::new();
        if !self.lacks_kinds {
            world.install(&instance());
        }
        for object in self.objects {
            world.put(object);
        }
        world
    }

    /// Starts a controller and lets it settle.
    pub fn settle(self) -> Run {
        Run::on(self.into_world())
    }
}

/// Settles a world and compares how every claim came out, one line each: `c -> db`, or `c: Reason`.
#[track_caller]
pub fn check(scene: Scene, expected: &[&str]) {
    let run = scene.settle();
    assert_eq!(run.outcomes(), expected, "{:#?}", run.messages());
}

/// A settled world that can be touched.
pub struct Run {
    pub harness: Harness,
}

impl Run {
    /// Starts a controller on a world and lets it settle.
    pub fn on(world: World) -> Run {
        let mut run = Run { harness: Harness::start(world, Config::default(), START) };
        run.audit();
        run
    }

    fn audit(&mut self) {
        self.harness.engine.audit().unwrap();
    }

    /// Every claim and what became of it.
    pub fn outcomes(&self) -> Vec<String> {
        outcomes(&self.harness.world)
    }

    /// Every claim's message.
    pub fn messages(&self) -> Vec<String> {
        let message = |c: &Object| bound_condition(c)["message"].as_str().unwrap_or_default().to_owned();
        self.claims().map(|c| format!("{}: {}", short(&key_of(c)), message(c))).collect()
    }

    fn claims(&self) -> impl Iterator<Item = &Object> {
        self.harness.world.objects().filter(|o| o.kind == CLAIM)
    }

    pub fn find(&self, kind: Kind, name: &str) -> Option<&Object> {
        let key = match kind {
            Kind::Claim(_) | Kind::Quota | Kind::Limits => claim_key(name),
            Kind::Resource(_) | Kind::Class(_) => system_key(name),
            Kind::ClusterQuota | Kind::Profile | Kind::Namespace => ObjectKey::new("", name),
        };
        self.harness.world.get(kind, &key)
    }

    fn require(&self, kind: Kind, name: &str) -> &Object {
        self.find(kind, name).unwrap_or_else(|| panic!("there is no {} {name}", kind.name()))
    }

    /// The outcome of one claim, as in `check`, without its name.
    pub fn outcome(&self, name: &str) -> String {
        outcome(self.require(CLAIM, name)).trim_start_matches([':', ' ']).to_owned()
    }

    pub fn message(&self, name: &str) -> String {
        bound_condition(self.require(CLAIM, name))["message"].as_str().unwrap_or_default().to_owned()
    }

    pub fn uid(&self, name: &str) -> String {
        self.require(CLAIM, name).metadata.uid.clone().unwrap()
    }

    /// A resource's phase and who it names, as `Bound by c` or `Available`.
    pub fn resource(&self, name: &str) -> String {
        standing(self.require(RESOURCE, name))
    }

    pub fn body(&self, kind: Kind, name: &str) -> &Value {
        &self.require(kind, name).body
    }

    pub fn put(&mut self, object: Object) {
        self.harness.put(object);
        self.audit();
    }

    pub fn edit(&mut self, kind: Kind, name: &str, edit: impl FnOnce(&mut Object)) {
        let key = key_of(self.require(kind, name));
        self.harness.edit(kind, &key, edit);
        self.audit();
    }

    /// Changes a spec by hand.
    pub fn edit_spec(&mut self, kind: Kind, name: &str, more: Value) {
        self.edit(kind, name, |object| {
            let spec = object.body["spec"].take();
            object.body["spec"] = spec.with(more);
        });
    }

    /// Requests the deletion of an object.
    pub fn delete(&mut self, kind: Kind, name: &str) {
        let key = key_of(self.require(kind, name));
        self.harness.delete(kind, &key);
        self.audit();
    }

    /// Removes an object at once, as an administrator does who strips its finalizers.
    pub fn destroy(&mut self, kind: Kind, name: &str) {
        let key = key_of(self.require(kind, name));
        let mut world = std::mem::take(&mut self.harness.world);
        world.edit(kind, &key, |object| object.metadata.finalizers = None);
        self.harness.world = world;
        self.delete(kind, name);
    }

    /// The implementation comes up.
    pub fn becomes_available(&mut self, name: &str) {
        self.part_says(name, ready());
    }

    /// The only part of a resource.
    pub fn part(&self, resource: &str) -> Option<&Part> {
        part_of(&self.harness.world, resource)
    }

    pub fn part_key(&self, resource: &str) -> PartKey {
        self.part(resource).unwrap_or_else(|| panic!("{resource} has no part")).key()
    }

    /// The part of a resource says something of itself.
    pub fn part_says(&mut self, resource: &str, status: Value) {
        let key = self.part_key(resource);
        self.harness.touch_parts(|world| world.set_part_status(&key, status));
        self.audit();
    }

    /// A resource's Ready condition, as `Reason: message`.
    pub fn reported(&self, resource: &str) -> String {
        let conditions = &self.body(RESOURCE, resource)["status"]["conditions"];
        let ready = conditions.as_array().into_iter().flatten().find(|c| c["type"] == "Ready");
        let text = |field: &str| ready.and_then(|c| c[field].as_str()).unwrap_or_default();
        format!("{}: {}", text("reason"), text("message"))
    }

    /// The names of all resources.
    pub fn resources(&self) -> Vec<String> {
        let all = self.harness.world.objects().filter(|o| o.kind == RESOURCE);
        all.map(|o| o.metadata.name.clone().unwrap()).collect()
    }

    /// Reasons of the events about an object.
    pub fn notes(&self, name: &str) -> Vec<&'static str> {
        self.harness.notes().iter().filter(|n| &*n.key.name == name).map(|n| n.reason).collect()
    }

    /// How many claims bound only because of the safety flush: each is a wake-up that was missed.
    pub fn bound_after_flush(&self) -> u64 {
        self.harness.engine.bound_after_flush()
    }

    pub fn decisions(&self) -> u64 {
        self.harness.engine.stats().decisions
    }

    /// A new controller on the same cluster.
    pub fn restart(self) -> Run {
        let mut run = Run { harness: self.harness.restart(Config::default()) };
        run.audit();
        run
    }
}

fn short(key: &ObjectKey) -> String {
    if &*key.namespace == APP { key.name.to_string() } else { key.to_string() }
}

fn bound_condition(claim: &Object) -> &Value {
    let conditions = claim.body["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|c| c["type"] == "Bound").unwrap_or(&Value::Null)
}

fn outcome(claim: &Object) -> String {
    let status = &claim.body["status"];
    let reason = bound_condition(claim)["reason"].as_str().unwrap_or("untouched");
    match status["phase"].as_str() {
        Some("Bound") => format!(" -> {}", status["resourceRef"]["name"].as_str().unwrap_or("nothing")),
        Some("Lost") => format!(": Lost {reason}"),
        _ => format!(": {reason}"),
    }
}

fn outcomes(world: &World) -> Vec<String> {
    let claims = world.objects().filter(|o| o.kind == CLAIM);
    claims.map(|c| format!("{}{}", short(&key_of(c)), outcome(c))).collect()
}

fn standing(resource: &Object) -> String {
    let body = &resource.body;
    let phase = body["status"]["phase"].as_str().unwrap_or("no phase");
    let refs: Vec<String> = body["spec"]["claimRefs"].as_array().into_iter().flatten().map(holder).collect();
    if refs.is_empty() { phase.to_owned() } else { format!("{phase} by {}", refs.join(", ")) }
}

/// Every claim, every resource and every part of a world, one line each.
pub fn summary(world: &World) -> Vec<String> {
    let resources = world.objects().filter(|o| o.kind == RESOURCE);
    let line = |r: &Object| format!("{}: {}", key_of(r).name, standing(r));
    let parts = world.parts().map(|part| format!("{} of {}", part.kind.kind, label(part)));
    outcomes(world).into_iter().chain(resources.map(line)).chain(parts).collect()
}

fn label(part: &Part) -> &str {
    let labels = part.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get("conductor.io/resource")).map_or("none", String::as_str)
}

fn holder(claim_ref: &Value) -> String {
    let text = |field: &str| claim_ref[field].as_str().unwrap_or_default().to_owned();
    let name = short(&ObjectKey::new(text("namespace"), text("name")));
    if claim_ref["uid"].is_string() { name } else { format!("{name} (kept)") }
}

/// An engine and a world with everything between them in the open: what was sent is carried out, held back
/// or forgotten as a test says.
pub struct Driver {
    pub world: World,
    pub engine: Engine,
    pub now: Time,
    /// Every action of the engine.
    pub sent: Vec<Action>,
    /// Actions not yet carried out.
    pub outbox: VecDeque<Action>,
    /// Events not yet delivered.
    pub inbox: VecDeque<Event>,
    wakes: BTreeSet<Time>,
}

impl Driver {
    /// A new engine on a world: it has listed everything and carried out nothing.
    pub fn start(world: World) -> Driver {
        Driver::start_without(world, &[])
    }

    /// The same with some kinds left out of the list, as a stale cache would.
    pub fn start_without(world: World, hidden: &[Kind]) -> Driver {
        let mut driver = Driver {
            world,
            engine: Engine::new(Config::default()),
            now: START,
            sent: Vec::new(),
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            wakes: BTreeSet::new(),
        };
        driver.list(hidden);
        driver
    }

    fn list(&mut self, hidden: &[Kind]) {
        let seen: Vec<Object> = self.world.objects().filter(|o| !hidden.contains(&o.kind)).cloned().collect();
        seen.into_iter().for_each(|object| self.deliver_event(Event::Seen(object)));
        self.world.published().into_iter().for_each(|event| self.deliver_event(event));
        self.deliver_event(Event::Synced);
    }

    /// The engine dies with all that it knew, and another takes its place.
    pub fn crash(&mut self) {
        self.engine = Engine::new(Config::default());
        self.outbox.clear();
        self.inbox.clear();
        self.wakes.clear();
        self.list(&[]);
    }

    /// Delivers an event to the engine.
    pub fn deliver_event(&mut self, event: Event) {
        let actions = self.engine.handle(event, self.now);
        self.sent.extend(actions.iter().cloned());
        self.outbox.extend(actions);
    }

    /// Puts an object into the world and delivers the event.
    pub fn put(&mut self, object: Object) {
        let event = self.world.put(object);
        self.deliver_event(event);
    }

    /// Carries out one action.
    pub fn carry_out(&mut self, action: Action) {
        match action {
            Action::Emit(_) => {}
            Action::WakeAt(at) if at <= self.now => self.inbox.push_back(Event::Tick),
            Action::WakeAt(at) => {
                self.wakes.insert(at);
            }
            action => self.inbox.extend(self.world.carry_out(&action)),
        }
    }

    /// Carries out every action, and all that follows from it.
    pub fn run(&mut self) {
        loop {
            if let Some(action) = self.outbox.pop_front() {
                self.carry_out(action);
            } else if let Some(event) = self.inbox.pop_front() {
                self.deliver_event(event);
            } else {
                return self.engine.audit().unwrap();
            }
        }
    }

    /// Carries out everything but writes, which stay in the outbox in their order.
    pub fn run_holding_writes(&mut self) {
        let mut held = VecDeque::new();
        loop {
            if let Some(action) = self.outbox.pop_front() {
                if is_write(&action) { held.push_back(action) } else { self.carry_out(action) }
            } else if let Some(event) = self.inbox.pop_front() {
                self.deliver_event(event);
            } else {
                self.outbox = held;
                return self.engine.audit().unwrap();
            }
        }
    }

    /// The next write that is held back.
    pub fn take_write(&mut self) -> Action {
        let at = self.outbox.iter().position(is_write).expect("a write is on its way");
        self.outbox.remove(at).unwrap()
    }

    /// Lets time pass without carrying out any write.
    pub fn wait_holding_writes(&mut self, ms: i64) {
        let until = self.now.plus_ms(ms);
        while let Some(next) = self.wakes.first().copied().filter(|at| *at <= until) {
            self.wakes.remove(&next);
            self.now = self.now.max(next);
            self.deliver_event(Event::Tick);
            self.run_holding_writes();
        }
        self.now = until;
    }

    /// Lets time pass.
    pub fn wait(&mut self, ms: i64) {
        let until = self.now.plus_ms(ms);
        while let Some(next) = self.wakes.first().copied().filter(|at| *at <= until) {
            self.wakes.remove(&next);
            self.now = self.now.max(next);
            self.deliver_event(Event::Tick);
            self.run();
        }
        self.now = until;
    }

    /// The next time at which the engine wants to be called.
    pub fn next_wake(&mut self, until: Time) -> Option<Time> {
        let next = self.wakes.first().copied().filter(|at| *at <= until)?;
        self.wakes.remove(&next);
        Some(next)
    }

    pub fn phase_of(&self, kind: Kind, name: &str) -> String {
        let key = if kind == CLAIM { claim_key(name) } else { system_key(name) };
        let object = self.world.get(kind, &key).unwrap_or_else(|| panic!("there is no {name}"));
        object.body["status"]["phase"].as_str().unwrap_or("no phase").to_owned()
    }

    pub fn outcome(&self, name: &str) -> String {
        let claim = self.world.get(CLAIM, &claim_key(name)).unwrap();
        outcome(claim).trim_start_matches([':', ' ']).to_owned()
    }

    pub fn binding(&self, name: &str) -> &Binding {
        let uid = self.world.get(CLAIM, &claim_key(name)).unwrap().metadata.uid.clone().unwrap();
        self.engine.binding(&Uid::from(uid)).unwrap()
    }
}

/// Whether an action changes the world.
pub fn is_write(action: &Action) -> bool {
    action.write_id().is_some()
}

/// The id of a write, to answer it by hand.
pub fn answer_to(action: &Action, answer: Answer) -> Event {
    let Some(id) = action.write_id() else { panic!("not a write: {action:?}") };
    Event::Answered { id, answer }
}
