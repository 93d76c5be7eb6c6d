//! Deliberately broken engines, to test the invariants: events or actions are changed at the engine's edge, as a fault
//! inside it would change them. Production code is untouched.

use crate::world::World;
use conductor::action::{Action, Change, PartAction, Write};
use conductor::event::{Answer, Event};
use conductor::model::{ClaimPhase, Kind, Object, Revision};
use serde_json::json;
use std::sync::Arc;

/// A way in which the engine is broken.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    name: &'static str,
    what: &'static str,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The engine sees changed objects.
    Object(fn(&mut Object)),
    /// The engine receives changed events, or none.
    Event(fn(Event) -> Option<Event>),
    /// The engine's actions are replaced.
    Action(fn(Action, &World) -> Vec<Action>),
}

macro_rules! mutants {
    ($($name:literal, $what:literal, $fault:expr;)*) => {
        /// All mutants.
        pub const MUTANTS: &[Mutant] = &[$(Mutant { name: $name, what: $what, fault: $fault }),*];
    };
}

mutants! {
    // Changed objects.
    "cordon-ignored", "binds cordoned resources",
        Fault::Object(|o| if is_resource(o) { o.body["spec"]["unschedulable"] = json!(false) });
    "retain-is-delete", "treats Retain as Delete",
        Fault::Object(|o| if is_resource(o) { o.body["spec"]["reclaimPolicy"] = json!("Delete") });
    "slots-off-by-one", "lets one claim too many share",
        Fault::Object(|o| if is_resource(o) {
            let slots = o.body["spec"]["sharing"]["maxClaims"].as_u64().unwrap_or(1);
            o.body["spec"]["sharing"]["maxClaims"] = json!(slots + 1);
        });
    "capacity-doubled", "counts every capacity twice",
        Fault::Object(|o| if is_resource(o) && o.body["spec"]["sharing"]["maxClaims"].as_u64() > Some(1) {
            o.body["spec"]["capacity"] = json!({"storage": "64Gi"});
        });
    "engine-ignored", "ignores the engine that a claim requests",
        Fault::Object(|o| if is_claim(o) { forget(o, "engine") });
    "version-ignored", "ignores the version that a claim requests",
        Fault::Object(|o| if is_claim(o) { forget(o, "version") });
    "selector-ignored", "ignores the labels that a claim requests",
        Fault::Object(|o| if is_claim(o) { forget(o, "selector") });
    "closed-is-open", "opens a resource to namespaces that are not allowed",
        Fault::Object(|o| if let Some(sharing) = o.body["spec"]["sharing"].as_object_mut() {
            sharing.remove("allowedNamespaces");
        });
    "delete-is-retain", "treats Delete as Retain",
        Fault::Object(|o| if is_resource(o) { o.body["spec"]["reclaimPolicy"] = json!("Retain") });
    "quota-unseen", "does not see quotas",
        Fault::Object(|o| if matches!(o.kind, Kind::Quota | Kind::ClusterQuota) { o.body["spec"]["limits"] = json!([]) });
    "quota-late", "sees a quota one claim too large, as if it were charged after the decision",
        Fault::Object(|o| if matches!(o.kind, Kind::Quota | Kind::ClusterQuota) {
            for limit in o.body["spec"]["limits"].as_array_mut().into_iter().flatten() {
                if let Some(claims) = limit["claims"].as_u64() {
                    limit["claims"] = json!(claims + 1);
                }
            }
        });
    "deletion-unseen", "does not see that a claim is being deleted",
        Fault::Object(|o| if is_claim(o) { o.metadata.deletion_timestamp = None });
    "resource-deletion-unseen", "does not see that a resource is being deleted",
        Fault::Object(|o| if is_resource(o) { o.metadata.deletion_timestamp = None });
    "uid-ignored", "takes a new object for an earlier one of the same name",
        Fault::Object(|o| if is_claim(o) { o.metadata.uid = o.metadata.name.clone() });
    "revision-frozen", "does not see that an object has changed",
        Fault::Object(|o| if is_resource(o) { o.metadata.resource_version = Some("1".to_owned()) });
    // Changed events.
    "claim-event-lost", "loses every third change of a claim",
        Fault::Event(|e| drop_some(e, is_claim));
    "resource-event-lost", "loses every third change of a resource",
        Fault::Event(|e| drop_some(e, is_resource));
    "class-event-lost", "receives no classes",
        Fault::Event(|e| match e { Event::Seen(o) if matches!(o.kind, Kind::Class(_)) => None, e => Some(e) });
    "resource-gone-unheard", "receives no deletions of resources",
        Fault::Event(|e| match e { Event::Gone(g) if matches!(g.kind, Kind::Resource(_)) => None, e => Some(e) });
    "answer-unheard", "waits forever for the answers to some writes",
        Fault::Event(|e| match e { Event::Answered { id, .. } if id.0.is_multiple_of(5) => None, e => Some(e) });
    "tick-unheard", "receives no ticks",
        Fault::Event(|e| match e { Event::Tick => None, e => Some(e) });
    "claim-read-missing", "takes every claim for missing after a live read",
        Fault::Event(|e| match e {
            Event::Read { kind: kind @ Kind::Claim(_), key, .. } => Some(Event::Read { kind, key, found: None }),
            e => Some(e),
        });
    "resource-read-missing", "takes every resource for missing after a live read",
        Fault::Event(|e| match e {
            Event::Read { kind: kind @ Kind::Resource(_), key, .. } => Some(Event::Read { kind, key, found: None }),
            e => Some(e),
        });
    // Changed actions.
    "bind-without-precondition", "binds a resource at any revision",
        Fault::Action(|a, world| vec![with_write(a, |w| if let Kind::Resource(_) = w.kind {
            w.revision = None;
            let now = world.get(w.kind, &w.key).and_then(|o| o.metadata.uid.as_deref());
            w.uid = now.map_or(w.uid.clone(), Into::into);
        })]);
    "claim-side-forgotten", "never writes the claim's side of a binding",
        Fault::Action(|a, _| match &a {
            Action::Write(Write { change: Change::ClaimStatus { phase: ClaimPhase::Bound, .. }, .. }) => Vec::new(),
            _ => vec![a],
        });
    "lost-is-not-final", "writes Lost to waiting claims",
        Fault::Action(|a, _| vec![with_write(a, |w| if let Change::ClaimStatus { phase: phase @ ClaimPhase::Pending, .. } = &mut w.change
            && w.id.0.is_multiple_of(3)
        {
            *phase = ClaimPhase::Lost
        })]);
    "holder-dropped", "writes only the first of several holders",
        Fault::Action(|a, _| vec![with_write(a, |w| if let Change::ResourceSpec { claim_refs, .. } = &mut w.change {
            claim_refs.truncate(1)
        })]);
    "claim-protection-kept", "never removes its finalizer from a claim",
        Fault::Action(|a, _| match &a {
            Action::Write(Write { change: Change::ClaimSpec { finalizers, .. }, .. }) if finalizers.is_empty() => Vec::new(),
            _ => vec![a],
        });
    "made-twice", "provisions a second resource under another name",
        Fault::Action(|a, _| match a {
            Action::Create { id, object } => {
                let mut twin = object.clone();
                twin.metadata.name = twin.metadata.name.map(|name| format!("{name}-b"));
                let other = conductor::model::WriteId(id.0 + 1_000_000);
                vec![Action::Create { id, object }, Action::Create { id: other, object: twin }]
            }
            a => vec![a],
        });
    "owner-not-recorded", "does not record which claim a resource was provisioned for",
        Fault::Action(|a, _| vec![match a {
            Action::Create { id, mut object } => {
                object.metadata.annotations = None;
                Action::Create { id, object }
            }
            a => a,
        }]);
    "part-left-behind", "never deletes a part",
        Fault::Action(|a, _| match &a { Action::Part(PartAction::Delete { .. }) => Vec::new(), _ => vec![a] });
    "read-skipped", "sends no live reads",
        Fault::Action(|a, _| match &a { Action::Read { .. } => Vec::new(), _ => vec![a] });
    "written-twice", "sends every binding twice",
        Fault::Action(|a, _| match &a {
            Action::Write(Write { change: Change::ResourceSpec { .. }, .. }) => vec![a.clone(), a],
            _ => vec![a],
        });
}

impl Mutant {
    /// All mutants.
    pub fn all() -> &'static [Mutant] {
        MUTANTS
    }

    /// Finds a mutant by name.
    pub fn find(name: &str) -> Option<Mutant> {
        MUTANTS.iter().find(|m| m.name == name).copied()
    }

    /// The mutant's name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// A description of its fault.
    pub fn what(self) -> &'static str {
        self.what
    }

    /// Changes an event on its way to the engine.
    pub(super) fn on_event(mutant: Option<Mutant>, event: Event) -> Option<Event> {
        match mutant.map(|m| m.fault) {
            Some(Fault::Event(bend)) => bend(event),
            Some(Fault::Object(bend)) => Some(bend_objects(event, bend)),
            Some(Fault::Action(_)) | None => Some(event),
        }
    }

    /// Changes an action on its way from the engine.
    pub(super) fn on_action(mutant: Option<Mutant>, action: Action, world: &World) -> Vec<Action> {
        match mutant.map(|m| m.fault) {
            Some(Fault::Action(bend)) => bend(action, world),
            Some(Fault::Event(_) | Fault::Object(_)) | None => vec![action],
        }
    }
}

fn is_claim(object: &Object) -> bool {
    matches!(object.kind, Kind::Claim(_))
}

fn is_resource(object: &Object) -> bool {
    matches!(object.kind, Kind::Resource(_))
}

fn forget(object: &mut Object, field: &str) {
    if let Some(spec) = object.body["spec"].as_object_mut() {
        spec.remove(field);
    }
}

fn bend_objects(event: Event, bend: fn(&mut Object)) -> Event {
    match event {
        Event::Seen(mut object) => {
            bend(&mut object);
            Event::Seen(object)
        }
        Event::Listed { kind, mut objects, revision } => {
            objects.iter_mut().for_each(bend);
            Event::Listed { kind, objects, revision }
        }
        Event::Read { kind, key, found: Some(mut object) } => {
            bend(&mut object);
            Event::Read { kind, key, found: Some(object) }
        }
        Event::Answered { id, answer: Answer::Written(mut object) } => {
            bend(Arc::make_mut(&mut object));
            Event::Answered { id, answer: Answer::Written(object) }
        }
        other => other,
    }
}

fn drop_some(event: Event, is_meant: fn(&Object) -> bool) -> Option<Event> {
    match event {
        Event::Seen(object) if is_meant(&object) => {
            let revision = Revision::read(object.metadata.resource_version.as_deref());
            (!revision.0.is_multiple_of(3)).then_some(Event::Seen(object))
        }
        event => Some(event),
    }
}

fn with_write(action: Action, bend: impl FnOnce(&mut Write)) -> Action {
    match action {
        Action::Write(mut write) => {
            bend(&mut write);
            Action::Write(write)
        }
        other => other,
    }
}
