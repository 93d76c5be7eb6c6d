//! A history as text, line by line, for readers of a shrunk failure.

use super::driver::Fate;
use crate::world::key_of;
use conductor::action::{Action, PartAction};
use conductor::event::{Answer, Event, PartEvent, PublishEvent};
use conductor::model::{Kind, Object, ObjectKey};

/// An event of the engine, or the result of a user's action.
pub fn event(event: &Event) -> String {
    match event {
        Event::Seen(object) => {
            let revision = object.metadata.resource_version.as_deref().unwrap_or("0");
            format!("{} at revision {revision} {}", new(object), object.body)
        }
        Event::Gone(gone) => format!("{} {} is deleted", gone.kind.name(), gone.key),
        Event::Listed { kind, objects, .. } => {
            let names: Vec<&str> = objects.iter().filter_map(|o| o.metadata.name.as_deref()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("list of {}: {names}", kind.name())
        }
        Event::Synced => "every list is complete".to_owned(),
        Event::Answered { id, answer } => format!("answer to write {}: {}", id.0, self::answer(answer)),
        Event::Read { kind, key, found } => format!("{} {key} {}", kind.name(), exists(found)),
        Event::Part(event) => part(event),
        Event::Publish(event) => published(event),
        Event::Tick => "a tick".to_owned(),
    }
}

fn exists<T>(found: &Option<T>) -> &'static str {
    if found.is_some() { "exists" } else { "does not exist" }
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Written(_) | Answer::PartWritten(_) | Answer::Published(_) => "written".to_owned(),
        Answer::Deleted => "deleted".to_owned(),
        Answer::Conflict => "conflict with another write".to_owned(),
        Answer::Missing => "does not exist".to_owned(),
        Answer::Exists => "exists already".to_owned(),
        Answer::Incomplete(why) | Answer::Taken(why) | Answer::Invalid(why) | Answer::Unknown(why) => {
            why.clone()
        }
    }
}

fn part(event: &PartEvent) -> String {
    match event {
        PartEvent::Listed { kind, parts, .. } => format!("list of {kind}: {} objects", parts.len()),
        PartEvent::Seen(part) => format!("{} {}", part.key(), part.body),
        PartEvent::Gone { key, .. } => format!("{key} is deleted"),
        PartEvent::KindMissing { kind, .. } => format!("{kind} is not available"),
        PartEvent::Read { key, found } => format!("{key} {}", exists(found)),
    }
}

fn published(event: &PublishEvent) -> String {
    match event {
        PublishEvent::Listed { published, .. } => format!("list of {} published objects", published.len()),
        PublishEvent::Refused(_) => "listing published objects is forbidden".to_owned(),
        PublishEvent::SecretRead { key, found, .. } => format!("Secret {key} {}", exists(found)),
        PublishEvent::SecretRefused { key, .. } => format!("reading Secret {key} is forbidden"),
        PublishEvent::Recheck { .. } => "a resync of published objects".to_owned(),
        PublishEvent::Seen(_) => "a published object".to_owned(),
        PublishEvent::Gone(_) => "a published object is deleted".to_owned(),
        PublishEvent::SourcesListed(_) => "list of source Secrets".to_owned(),
        PublishEvent::SourceSeen(_) => "a source Secret".to_owned(),
        PublishEvent::SourceGone(_) => "a source Secret is deleted".to_owned(),
    }
}

/// An action of the engine.
pub fn action(action: &Action) -> String {
    match action {
        Action::Write(write) => {
            let at = write.revision.map(|r| format!(" at revision {}", r.0)).unwrap_or_default();
            let (target, patch) = (object(write.kind, &write.key), write.change.merge_patch());
            format!("write {} of {target}{at}: {patch}", write.id.0)
        }
        Action::Create { id, object } => format!("write {}: create {} {}", id.0, new(object), object.body),
        Action::Delete { id, kind, key, revision, .. } => {
            format!("write {}: delete {} at revision {revision}", id.0, object(*kind, key))
        }
        Action::Part(PartAction::Create { id, part }) => {
            format!("write {}: create {} {}", id.0, part.key(), part.body)
        }
        Action::Part(PartAction::Update { id, part, .. }) => {
            format!("write {}: update {} {}", id.0, part.key(), part.body)
        }
        Action::Part(PartAction::Delete { id, key, .. }) => format!("write {}: delete {key}", id.0),
        Action::Publish { id, .. } => format!("write {}: publish a connection", id.0),
        Action::Withdraw { id, key, .. } => format!("write {}: withdraw {key}", id.0),
        Action::Read { kind, key } => format!("read {}", object(*kind, key)),
        Action::Part(PartAction::Read { key }) => format!("read {key}"),
        Action::ReadSecret { key, .. } => format!("read Secret {key}"),
        Action::Watch(kind) => format!("watch {kind}"),
        Action::Emit(_) => "record an event".to_owned(),
        Action::WakeAt(time) => format!("wake at {} ms", time.0),
    }
}

/// The fate of a write.
pub fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "executed and answered",
        Fate::Waits => "executed, answer delayed",
        Fate::Unknown => "executed, answer lost",
        Fate::NotDone => "lost",
        Fate::Refused => "refused",
    }
}

/// Kind and key of an object.
pub fn object(kind: Kind, key: &ObjectKey) -> String {
    format!("{} {key}", kind.name())
}

fn new(object: &Object) -> String {
    self::object(object.kind, &key_of(object))
}
