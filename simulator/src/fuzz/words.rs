//! A history in words, line by line, for whoever reads the smallest one that fails. Nothing is decided here.

use super::driver::Fate;
use conductor::action::{Action, PartAction};
use conductor::event::{Answer, Event, PartEvent, PublishEvent};
use conductor::model::{Object, ObjectKey};

/// What the engine hears, or a user does.
pub fn event(event: &Event) -> String {
    match event {
        Event::Seen(object) => format!("{} {}", place(object), object.body),
        Event::Gone(gone) => format!("{} {} is gone", gone.kind.name(), gone.key),
        Event::Listed { kind, objects, .. } => {
            let names: Vec<&str> = objects.iter().map(name).collect();
            let names = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
            format!("the list of {}: {names}", kind.name())
        }
        Event::Synced => "that it has heard every list".to_owned(),
        Event::Answered { id, answer } => format!("of write {}: {}", id.0, self::answer(answer)),
        Event::Read { kind, key, found } => {
            format!(
                "what it asked for: {} {key} {}",
                kind.name(),
                found.as_ref().map_or("is not there", |_| "is there")
            )
        }
        Event::Part(event) => part(event),
        Event::Publish(event) => published(event),
        Event::Tick => "that time has passed".to_owned(),
    }
}

fn place(object: &Object) -> String {
    let revision = object.metadata.resource_version.as_deref().unwrap_or("0");
    format!("{} {} at revision {revision}", object.kind.name(), crate::world::key_of(object))
}

fn name(object: &Object) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Written(_) | Answer::PartWritten(_) | Answer::Published(_) => "it is written".to_owned(),
        Answer::Deleted => "it is deleted".to_owned(),
        Answer::Conflict => "somebody else wrote before".to_owned(),
        Answer::Missing => "it is not there".to_owned(),
        Answer::Exists => "it is there already".to_owned(),
        Answer::Incomplete(why) | Answer::Taken(why) | Answer::Invalid(why) | Answer::Unknown(why) => {
            why.clone()
        }
    }
}

fn part(event: &PartEvent) -> String {
    match event {
        PartEvent::Listed { kind, parts, .. } => format!("the list of {kind}: {} of them", parts.len()),
        PartEvent::Seen(part) => format!("{} {}", part.key(), part.body),
        PartEvent::Gone { key, .. } => format!("{key} is gone"),
        PartEvent::KindMissing { kind, .. } => format!("that {kind} cannot be had"),
        PartEvent::Read { key, found } => {
            format!("what it asked for: {key} {}", found.as_ref().map_or("is not there", |_| "is there"))
        }
    }
}

fn published(event: &PublishEvent) -> String {
    match event {
        PublishEvent::Listed { published, .. } => {
            format!("the list of what is published: {} of them", published.len())
        }
        PublishEvent::Refused(_) => "that it may not list what is published".to_owned(),
        PublishEvent::SecretRead { key, found, .. } => {
            format!("the Secret {key} {}", found.as_ref().map_or("is not there", |_| "is there"))
        }
        PublishEvent::SecretRefused { key, .. } => format!("that it may not read the Secret {key}"),
        PublishEvent::Recheck { .. } => "that it is to look again at what is published".to_owned(),
        PublishEvent::Seen(_) => "that something published is there".to_owned(),
        PublishEvent::Gone(_) => "that something published is gone".to_owned(),
        PublishEvent::SourcesListed(_) => "the list of Secrets that connections come from".to_owned(),
        PublishEvent::SourceSeen(_) => "that a Secret is there that a connection comes from".to_owned(),
        PublishEvent::SourceGone(_) => "that a Secret is gone that a connection came from".to_owned(),
    }
}

/// What the engine sends.
pub fn action(action: &Action) -> String {
    match action {
        Action::Write(write) => {
            let at = write.revision.map(|r| format!(" at revision {}", r.0)).unwrap_or_default();
            let patch = write.change.merge_patch();
            format!("write {} of {} {}{at}: {patch}", write.id.0, write.kind.name(), write.key)
        }
        Action::Create { id, object } => {
            format!(
                "write {}: a new {} {} {}",
                id.0,
                object.kind.name(),
                crate::world::key_of(object),
                object.body
            )
        }
        Action::Delete { id, kind, key, revision, .. } => {
            format!("write {}: the deletion of {} {key} at revision {revision}", id.0, kind.name())
        }
        Action::Read { kind, key } => format!("a question for {} {key}", kind.name()),
        Action::Follow(kind) => format!("a watch of {kind}"),
        Action::Part(PartAction::Create { id, part }) => {
            format!("write {}: a new {} {}", id.0, part.key(), part.body)
        }
        Action::Part(PartAction::Update { id, part, .. }) => {
            format!("write {}: {} {}", id.0, part.key(), part.body)
        }
        Action::Part(PartAction::Delete { id, key, .. }) => format!("write {}: the deletion of {key}", id.0),
        Action::Part(PartAction::Read { key }) => format!("a question for {key}"),
        Action::Publish { id, .. } => format!("write {}: a connection", id.0),
        Action::ReadSecret { key, .. } => format!("a question for the Secret {key}"),
        Action::Withdraw { id, key, .. } => format!("write {}: the withdrawal of {key}", id.0),
        Action::Tell(_) => "an event for people".to_owned(),
        Action::WakeAt(time) => format!("a wish to be woken at {} ms", time.0),
    }
}

/// What becomes of a write.
pub fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Told => "is done and answered",
        Fate::Waits => "is done, its answer waits",
        Fate::Unknown => "is done, and nobody knows",
        Fate::NotDone => "is not done, and nobody knows",
        Fate::Refused => "is refused",
    }
}

/// Which object, as a user says it.
pub fn object(kind: conductor::model::Kind, key: &ObjectKey) -> String {
    format!("{} {key}", kind.name())
}
