//! Crashes and lost answers at every point of every workflow. Each workflow is run once undisturbed; then
//! again for every write with the engine dropped there, and with that write's answer lost on either side
//! of the commit. Whatever happens, the end is that of the undisturbed run, and no step of the way breaks
//! I1 (one resource, one claim), I2 (one provision) or I4 (Retain destroys nothing).

use crate::support::{
    CLAIM, Driver, RESOURCE, Scene, With, annotation, answer_to, claim_key, db, held_by, is_write, kept_for,
    makes, part_of, ready, requests, summary, system_key, world,
};
use conductor::action::{Action, PartAction};
use conductor::engine::Binding;
use conductor::event::{Answer, Event};
use conductor::model::{Capacity, Object, ObjectKey, Part};
use conductor_simulator::world::{World, key_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A user's step: it changes the world and says what a watch would show.
type Act = fn(&mut World) -> Vec<Event>;

/// One story: a world, whether it has settled before the story begins, and what users do once so many
/// writes have been committed.
struct Workflow {
    scene: Scene,
    settled: bool,
    acts: Vec<(usize, Act)>,
    /// Whether several claims want the same.
    contended: bool,
    /// Its final state, as `summary` shows it.
    ends: &'static [&'static str],
}

/// What goes wrong, by the number of the write that it happens at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The engine is dropped before this write.
    Crash(usize),
    /// The engine is dropped before this write, and its successor before that one.
    TwoCrashes(usize, usize),
    /// The write is committed, its answer is lost, and the watch is late.
    AnswerLost(usize),
    /// The write is committed and the engine is dropped before it knows.
    AnswerLostThenCrash(usize),
    /// The write never arrives, and its answer is lost.
    WriteLost(usize),
    /// The write is refused because another client changed the object meanwhile.
    Touched(usize),
}

impl Fault {
    fn crashes_before(self, write: usize) -> bool {
        match self {
            Fault::Crash(at) => at == write,
            Fault::TwoCrashes(first, second) => first == write || second == write,
            Fault::AnswerLostThenCrash(_) | Fault::Nothing => false,
            Fault::AnswerLost(_) | Fault::WriteLost(_) | Fault::Touched(_) => false,
        }
    }
}

struct Trial {
    driver: Driver,
    acts: Vec<(usize, Act)>,
    fault: Fault,
    /// Writes that were sent, committed or not.
    attempts: usize,
    committed: usize,
    crashed: Vec<usize>,
    late: Vec<Event>,
    creates: BTreeMap<String, usize>,
    log: Vec<String>,
}

impl Trial {
    fn run(workflow: &Workflow, fault: Fault) -> Trial {
        let mut driver = Driver::start(workflow.scene.clone().into_world());
        if workflow.settled {
            settle_with_actor(&mut driver);
        }
        let mut trial = Trial {
            driver,
            acts: workflow.acts.clone(),
            fault,
            attempts: 0,
            committed: 0,
            crashed: Vec::new(),
            late: Vec::new(),
            creates: BTreeMap::new(),
            log: Vec::new(),
        };
        while trial.step() {}
        trial
    }

    /// One thing happens; false once nothing is left to happen.
    fn step(&mut self) -> bool {
        let due = self.acts.first().is_some_and(|(at, _)| *at <= self.committed);
        if due {
            self.act();
        } else if let Some(action) = self.driver.outbox.pop_front() {
            self.carry_out(action);
        } else if let Some(event) = self.driver.inbox.pop_front() {
            self.driver.deliver_event(event);
        } else if let Some(event) = implement(&mut self.driver.world) {
            self.driver.inbox.push_back(event);
        } else if let Some(at) = self.driver.next_wake(deadline(&self.driver)) {
            self.driver.now = self.driver.now.max(at);
            self.driver.inbox.push_back(Event::Tick);
        } else if !self.late.is_empty() {
            self.driver.inbox.extend(self.late.drain(..));
        } else if !self.acts.is_empty() {
            self.act();
        } else {
            return false;
        }
        true
    }

    fn act(&mut self) {
        let (_, act) = self.acts.remove(0);
        let events = act(&mut self.driver.world);
        self.driver.inbox.extend(events);
    }

    fn carry_out(&mut self, action: Action) {
        if !is_write(&action) {
            return self.driver.carry_out(action);
        }
        let number = self.attempts;
        if self.fault.crashes_before(number) && !self.crashed.contains(&number) {
            self.crashed.push(number);
            return self.driver.crash();
        }
        self.attempts += 1;
        match self.fault {
            Fault::WriteLost(at) if at == number => {
                let answer = Answer::Unknown("the connection was lost".to_owned());
                self.driver.inbox.push_back(answer_to(&action, answer));
            }
            Fault::Touched(at) if at == number => {
                let touched = touch(&mut self.driver.world, &action);
                self.commit(&action);
                self.driver.inbox.extend(touched);
            }
            Fault::AnswerLost(at) if at == number => {
                let held: Vec<Event> = self.driver.inbox.drain(..).collect();
                self.commit(&action);
                let mut reported = std::mem::replace(&mut self.driver.inbox, held.into());
                reported.pop_front();
                self.late.extend(reported);
                let answer = Answer::Unknown("timed out".to_owned());
                self.driver.inbox.push_back(answer_to(&action, answer));
            }
            Fault::AnswerLostThenCrash(at) if at == number => {
                self.commit(&action);
                self.driver.crash();
            }
            _ => self.commit(&action),
        }
    }

    fn commit(&mut self, action: &Action) {
        self.log.push(short_name(action));
        if let Action::Delete { kind, key, .. } = action {
            let policy = self.driver.world.get(*kind, key).map(|o| o.body["spec"]["reclaimPolicy"].clone());
            assert!(policy.is_none_or(|p| p == "Delete"), "I4: {key} is destroyed against its policy");
        }
        if let Action::Part(PartAction::Delete { key, .. }) = action {
            let part = self.driver.world.part(key);
            let owner = part.and_then(|p| annotation(p, "conductor.io/resource-uid"));
            let resource = self.driver.world.objects().find(|o| o.metadata.uid.as_deref() == owner);
            let policy = resource.map(|o| o.body["spec"]["reclaimPolicy"].clone());
            assert!(part.is_none() || policy == Some(json!("Delete")), "I4: {key} is destroyed");
        }
        let before = self.driver.world.revision();
        self.driver.carry_out(action.clone());
        holds_one_part_each(&self.driver.world);
        let landed = self.driver.world.revision() != before;
        self.committed += usize::from(landed);
        if let (Action::Create { object, .. }, true) = (action, landed) {
            let annotations = object.metadata.annotations.clone().unwrap_or_default();
            let made_for = annotations.get("conductor.io/provisioned-for").cloned().unwrap_or_default();
            let count = self.creates.entry(made_for.clone()).or_default();
            *count += 1;
            assert_eq!(*count, 1, "I2: a second resource is made for {made_for}");
        }
        holds_i1(&self.driver.world);
    }

    /// The end is quiet, complete and sound.
    fn check_end(&self) {
        self.driver.engine.audit().unwrap();
        assert!(self.driver.engine.is_idle());
        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for resource in self.driver.world.objects().filter(|o| o.kind == RESOURCE) {
            for uid in uids(resource) {
                holders.entry(uid).or_default().push(key_of(resource).name.to_string());
            }
        }
        for (uid, resources) in holders {
            assert_eq!(resources.len(), 1, "I1: claim {uid} is held by {resources:?}");
        }
    }
}

/// Nothing waits longer than this for a retry; the safety flush must not be what helps.
fn deadline(driver: &Driver) -> conductor::model::Time {
    let _ = driver;
    conductor::model::Time(1_800_000_000_000).plus_ms(240_000)
}

fn settle_with_actor(driver: &mut Driver) {
    driver.run();
    while let Some(event) = implement(&mut driver.world) {
        driver.deliver_event(event);
        driver.run();
    }
}

/// Plays the implementation: a part that says nothing comes up.
fn implement(world: &mut World) -> Option<Event> {
    let key = world.parts().find(|part| part.body["status"].is_null())?.key();
    world.set_part_status(&key, ready())
}

/// Another client writes a label on the object that a write is about to land on.
fn touch(world: &mut World, action: &Action) -> Option<Event> {
    let (kind, key) = match action {
        Action::Write(write) => (write.kind, write.key.clone()),
        Action::Delete { kind, key, .. } => (*kind, key.clone()),
        _ => return None,
    };
    world.edit(kind, &key, |o| {
        o.metadata
            .annotations
            .get_or_insert_default()
            .insert("example.com/touched".to_owned(), "yes".to_owned());
    })
}

fn uids(resource: &Object) -> Vec<String> {
    let refs = resource.body["spec"]["claimRefs"].as_array();
    refs.into_iter().flatten().filter_map(|r| r["uid"].as_str().map(str::to_owned)).collect()
}

fn holds_i1(world: &World) {
    for resource in world.objects().filter(|o| o.kind == RESOURCE) {
        let spec = &resource.body["spec"];
        let slots = spec["sharing"]["maxClaims"].as_u64().unwrap_or(1) as usize;
        let name = key_of(resource).name;
        assert!(uids(resource).len() <= slots, "I1: {name} is held beyond its slots");
        let capacity = |v: &Value| Capacity::parse("storage", v).unwrap_or_default();
        // The size is unknown if the class declares none.
        if spec["capacity"].is_null() && slots == 1 {
            continue;
        }
        let refs = spec["claimRefs"].as_array().into_iter().flatten();
        let taken = refs.fold(Capacity::default(), |sum, r| sum.saturating_add(&capacity(&r["requests"])));
        assert!(
            capacity(&spec["capacity"]).find_lacking(&taken).is_none(),
            "I1: {name} is held beyond its capacity"
        );
    }
}

/// I2 and I5: a resource has at most one part, and a part a resource that is there or was retained.
fn holds_one_part_each(world: &World) {
    for resource in world.objects().filter(|o| o.kind == RESOURCE) {
        part_of(world, &key_of(resource).name);
    }
    for part in world.parts() {
        let uid = annotation(part, "conductor.io/resource-uid");
        let owned = world.objects().any(|o| o.metadata.uid.as_deref() == uid);
        let retained = part.body["spec"]["retained"] == true;
        assert!(owned || retained, "I5: {} is an orphan", part.key());
    }
}

fn short_name(action: &Action) -> String {
    match action {
        Action::Write(write) => {
            let change = format!("{:?}", write.change);
            let change = change.split([' ', '{']).next().unwrap_or_default();
            format!("{change} {}", write.key.name)
        }
        Action::Create { object, .. } => format!("Create {}", key_of(object).name),
        Action::Delete { key, .. } => format!("Delete {}", key.name),
        Action::Part(PartAction::Create { part, .. }) => format!("Create {}", part.key()),
        Action::Part(PartAction::Update { part, .. }) => format!("Update {}", part.key()),
        Action::Part(PartAction::Delete { key, .. }) => format!("Delete {key}"),
        Action::Publish { publication, .. } => format!("Publish {}", publication.claim),
        Action::Withdraw { slot, key, .. } => format!("Withdraw {} {key}", slot.kind()),
        Action::Watch(_) | Action::Part(PartAction::Read { .. }) => String::new(),
        Action::Read { .. } | Action::ReadSecret { .. } => String::new(),
        Action::Emit(_) | Action::WakeAt(_) => String::new(),
    }
}

/// The world without what may differ between two runs: revisions, generations, times, generated UIDs.
fn normal(world: &World) -> Vec<(String, Value)> {
    let mut names: BTreeMap<String, String> = world
        .objects()
        .filter_map(|o| Some((o.metadata.uid.clone()?, format!("uid of {}", key_of(o)))))
        .collect();
    names.extend(world.parts().filter_map(|p| Some((p.metadata.uid.clone()?, "uid of a part".to_owned()))));
    let plain = |object: &Object| {
        let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        // A class stays protected once it has been used; a race decides whether it ever was.
        finalizers.retain(|f| f != "conductor.io/class-protection");
        finalizers.sort();
        let mut value = json!({
            "labels": object.metadata.labels,
            "finalizers": finalizers,
            "deleting": object.metadata.deletion_timestamp.is_some(),
            "body": object.body,
        });
        scrub(&mut value, &names);
        (format!("{} {}", object.kind.name(), key_of(object)), value)
    };
    let part = |part: &Part| {
        let mut value = json!({"labels": part.metadata.labels, "body": part.body});
        scrub(&mut value, &names);
        (format!("{} of {:?}", part.key().kind, part.metadata.labels), value)
    };
    world.objects().map(plain).chain(world.parts().map(part)).collect()
}

fn scrub(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| key != "lastTransitionTime" && key != "observedGeneration");
            map.values_mut().for_each(|v| scrub(v, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| scrub(v, names)),
        Value::String(text) => {
            if let Some(name) = names.get(text) {
                *text = name.clone();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Runs a workflow with every fault at every write, and compares the ends.
fn survives(workflow: Workflow) -> usize {
    let undisturbed = Trial::run(&workflow, Fault::Nothing);
    undisturbed.check_end();
    assert_eq!(
        summary(&undisturbed.driver.world),
        workflow.ends,
        "the undisturbed end; {:#?}",
        undisturbed.log
    );
    let expected = normal(&undisturbed.driver.world);
    let writes = undisturbed.attempts;
    assert!(writes > 0, "a workflow writes");
    let mut faults = Vec::new();
    for k in 0..=writes {
        faults.extend([Fault::Crash(k), Fault::AnswerLost(k), Fault::AnswerLostThenCrash(k)]);
        faults.push(Fault::WriteLost(k));
        // A refused write puts a claim behind its peers: where they want the same, that changes the end.
        faults.extend((!workflow.contended).then_some(Fault::Touched(k)));
        faults.extend((k + 1..=writes + 1).map(|j| Fault::TwoCrashes(k, j)));
    }
    for fault in &faults {
        let trial = Trial::run(&workflow, *fault);
        let story = || format!("{fault:?} of {:#?}: went {:#?}", undisturbed.log, trial.log);
        assert_eq!(normal(&trial.driver.world), expected, "{}", story());
        trial.check_end();
    }
    println!("{} trials over {} writes: {}", faults.len(), writes, undisturbed.log.join(", "));
    faults.len()
}

fn delete(kind: conductor::model::Kind, key: ObjectKey) -> impl Fn(&mut World) -> Vec<Event> {
    move |world| world.delete(kind, &key).into_iter().collect()
}

fn delete_c(world: &mut World) -> Vec<Event> {
    delete(CLAIM, claim_key("c"))(world)
}

fn delete_d(world: &mut World) -> Vec<Event> {
    delete(CLAIM, claim_key("d"))(world)
}

fn r_key() -> ObjectKey {
    ObjectKey::new("conductor-system", "r")
}

fn clear_r(world: &mut World) -> Vec<Event> {
    world.edit(RESOURCE, &r_key(), |o| o.body["spec"]["claimRefs"] = json!([])).into_iter().collect()
}

fn destroy_r(world: &mut World) -> Vec<Event> {
    world.edit(RESOURCE, &r_key(), |o| o.metadata.finalizers = None);
    world.delete(RESOURCE, &r_key()).into_iter().collect()
}

fn of_class() -> Value {
    requests(1).with(json!({"class": "fast"}))
}

#[test]
fn a_static_bind_is_finished_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", db(5)).resource("big", db(9)).claim("c", requests(1)),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> r", "big: Available", "r: Bound by c"],
    });
}

#[test]
fn a_reserved_bind_is_finished_after_any_crash() {
    survives(Workflow {
        scene: world()
            .resource("r", db(50).with(kept_for("c")))
            .resource("small", db(1))
            .claim("c", requests(1)),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> r", "r: Bound by c", "small: Available"],
    });
}

#[test]
fn a_named_bind_is_finished_after_any_crash() {
    survives(Workflow {
        scene: world()
            .resource("r", db(50))
            .resource("small", db(1))
            .claim("c", requests(1).with(json!({"resourceName": "r"}))),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> r", "r: Bound by c", "small: Available"],
    });
}

#[test]
fn several_claims_over_few_resources_end_the_same_after_any_crash() {
    survives(Workflow {
        scene: world()
            .resource("r", db(5))
            .resource("s", db(3).with(json!({"sharing": {"maxClaims": 2}})))
            .claim("a", requests(4))
            .claim("b", requests(2))
            .claim("c", requests(1))
            .claim("d", requests(1)),
        settled: false,
        contended: true,
        acts: vec![],
        ends: &["a -> r", "b -> s", "c -> s", "d: NoMatch", "r: Bound by a", "s: Bound by b, c"],
    });
}

#[test]
fn a_provision_is_finished_once_after_any_crash() {
    survives(Workflow {
        scene: world().class("fast", makes("Delete")).claim("c", of_class()),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> rdb-uid-000002", "rdb-uid-000002: Bound by c", "Instance of rdb-uid-000002"],
    });
}

#[test]
fn claims_that_share_what_is_being_made_end_the_same_after_any_crash() {
    let shared = makes("Delete").with(json!({"sharing": {"maxClaims": 2}, "capacity": {"storage": "10Gi"}}));
    survives(Workflow {
        scene: world()
            .class("fast", shared)
            .claim("a", of_class())
            .uid("a")
            .created(1)
            .claim("b", of_class())
            .uid("b")
            .created(2),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["a -> rdb-a", "b -> rdb-a", "rdb-a: Bound by a, b", "Instance of rdb-a"],
    });
}

#[test]
fn a_release_that_retains_is_finished_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", db(5)).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &["r: Released by c"],
    });
}

#[test]
fn a_release_that_deletes_is_finished_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", db(5).with(json!({"reclaimPolicy": "Delete"}))).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &[],
    });
}

#[test]
fn a_provisioned_resource_is_destroyed_with_its_claim_after_any_crash() {
    survives(Workflow {
        scene: world().class("fast", makes("Delete")).claim("c", of_class()),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &[],
    });
}

fn templated(policy: &str) -> Value {
    let mut template = makes("Delete")["template"].clone();
    template["spec"] = json!({"retained": policy == "Retain"});
    db(5).with(json!({"reclaimPolicy": policy, "template": template}))
}

fn delete_r(world: &mut World) -> Vec<Event> {
    delete(RESOURCE, r_key())(world)
}

#[test]
fn a_resource_with_a_template_is_made_and_bound_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", templated("Retain")).claim("c", requests(1)),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> r", "r: Bound by c", "Instance of r"],
    });
}

#[test]
fn a_part_goes_with_a_resource_that_an_administrator_deletes_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", templated("Delete")),
        settled: true,
        contended: false,
        acts: vec![(0, delete_r)],
        ends: &[],
    });
}

#[test]
fn a_part_goes_with_the_last_claim_where_the_policy_says_delete_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", templated("Delete")).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &[],
    });
}

#[test]
fn a_retained_part_outlives_claim_and_resource_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", templated("Retain")).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c), (3, delete_r)],
        ends: &["Instance of r"],
    });
}

#[test]
fn a_resource_deleted_while_its_part_is_being_made_leaves_none_behind() {
    for at in 1..=5 {
        survives(Workflow {
            scene: world().resource("r", templated("Delete")),
            settled: false,
            contended: false,
            acts: vec![(at, delete_r)],
            ends: &[],
        });
    }
}

#[test]
fn a_shared_resource_is_released_by_the_last_of_its_claims_after_any_crash() {
    let shared = db(5).with(json!({"sharing": {"maxClaims": 2}}));
    survives(Workflow {
        scene: world().resource("r", shared.clone()).claim("c", requests(1)).claim("d", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &["d -> r", "r: Bound by d"],
    });
    survives(Workflow {
        scene: world().resource("r", shared).claim("c", requests(1)).claim("d", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c), (3, delete_d)],
        ends: &["r: Released by d"],
    });
}

#[test]
fn a_freed_slot_goes_to_the_next_claim_after_any_crash() {
    survives(Workflow {
        scene: world()
            .resource("r", db(5).with(json!({"sharing": {"maxClaims": 2}})))
            .claim("c", requests(1))
            .claim("d", requests(1))
            .claim("e", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, delete_c)],
        ends: &["d -> r", "e -> r", "r: Bound by d, e"],
    });
}

#[test]
fn a_reference_that_was_cleared_is_restored_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", db(5)).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, clear_r)],
        ends: &["c -> r", "r: Bound by c"],
    });
}

#[test]
fn a_claim_is_lost_once_after_any_crash() {
    survives(Workflow {
        scene: world().resource("r", db(5)).resource("s", db(5)).claim("c", requests(1)),
        settled: true,
        contended: false,
        acts: vec![(0, destroy_r)],
        ends: &["c: Lost Lost", "s: Available"],
    });
}

#[test]
fn the_loser_of_two_holders_is_unbound_after_any_crash() {
    let mut reserved = held_by("c", "life-1");
    reserved["claimRefs"][0]["reserved"] = json!(true);
    for (loser, end) in [(held_by("c", "life-1"), "s: Available"), (reserved, "s: Available by c (kept)")] {
        let ends: &'static [&'static str] = Box::leak(Box::new(["c -> r", "r: Bound by c", end]));
        survives(Workflow {
            scene: world()
                .resource("r", db(5).with(held_by("c", "life-1")))
                .resource("s", db(5).with(loser))
                .claim("c", requests(1))
                .uid("life-1"),
            settled: false,
            contended: false,
            acts: vec![],
            ends,
        });
    }
}

#[test]
fn a_loser_that_was_made_for_the_claim_is_destroyed_after_any_crash() {
    survives(Workflow {
        scene: world()
            .resource("r", db(5).with(held_by("c", "life-1")))
            .resource("s", db(5).with(json!({"reclaimPolicy": "Delete"})).with(held_by("c", "life-1")))
            .annotated(json!({"conductor.io/provisioned-for": "life-1"}))
            .claim("c", requests(1))
            .uid("life-1"),
        settled: false,
        contended: false,
        acts: vec![],
        ends: &["c -> r", "r: Bound by c"],
    });
}

#[test]
fn a_claim_deleted_while_it_is_being_bound_leaves_no_trace_of_itself() {
    // The claim goes after the commit on the resource: the resource is released.
    for at in 3..=5 {
        survives(
            Workflow {
                scene: world().resource("r", db(5)).claim("c", requests(1)),
                settled: true,
                contended: false,
                acts: vec![],
                ends: &["c -> r", "r: Bound by c"],
            }
            .beginning_unsettled_with_deletion_at(at),
        );
    }
}

impl Workflow {
    fn beginning_unsettled_with_deletion_at(mut self, at: usize) -> Workflow {
        self.settled = false;
        self.acts = vec![(at, delete_c)];
        self.ends = &["r: Released by c"];
        self
    }
}

#[test]
fn a_claim_deleted_while_its_resource_is_being_made_takes_the_resource_with_it() {
    for at in 1..=6 {
        survives(Workflow {
            scene: world().class("fast", makes("Delete")).claim("c", of_class()),
            settled: false,
            contended: false,
            acts: vec![(at, delete_c)],
            ends: &[],
        });
    }
}

#[test]
fn a_kept_resource_that_is_seen_again_takes_back_nothing_that_is_being_written() {
    let world = world().resource("r", db(5).with(kept_for("c"))).claim("c", requests(1)).into_world();
    let seen = world.get(RESOURCE, &system_key("r")).cloned().expect("it is there");
    let mut driver = Driver::start(world);
    driver.run_holding_writes();
    assert!(matches!(driver.binding("c"), Binding::Assumed { .. }));
    // The watch shows late what a read has shown before.
    driver.deliver_event(Event::Seen(seen));
    assert!(matches!(driver.binding("c"), Binding::Assumed { .. }), "{:?}", driver.binding("c"));
}
