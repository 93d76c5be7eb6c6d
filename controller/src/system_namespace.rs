//! Whether the system namespace exists, is missing or is being deleted. Only reports it: nothing can be created in a
//! namespace that is being deleted.

use conductor::action::Note;
use conductor::api::reasons::event::SYSTEM_NAMESPACE_TERMINATING;
use conductor::event::Event;
use conductor::model::{Kind, Name, Object, ObjectKey, Uid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Not listed yet.
    Unknown,
    Exists,
    Missing,
    Terminating,
}

/// The system namespace.
#[derive(Debug)]
pub(super) struct SystemNamespace {
    name: Name,
    seen: Seen,
}

impl SystemNamespace {
    pub fn new(name: &Name) -> SystemNamespace {
        SystemNamespace { name: name.clone(), seen: Seen::Unknown }
    }

    /// Takes what an event shows of the namespace; returns the note to record.
    pub fn observe(&mut self, event: &Event) -> Option<Note> {
        let is_ours = |object: &&Object| object.metadata.name.as_deref() == Some(&*self.name);
        let found = match event {
            Event::Listed { kind: Kind::Namespace, objects, .. } => objects.iter().find(is_ours),
            Event::Seen(object) if object.kind == Kind::Namespace && is_ours(&object) => Some(object),
            Event::Gone(gone) if gone.kind == Kind::Namespace && gone.key.name == self.name => None,
            Event::Listed { .. }
            | Event::Seen(_)
            | Event::Gone(_)
            | Event::Synced
            | Event::Answered { .. }
            | Event::Read { .. }
            | Event::Part(_)
            | Event::Publish(_)
            | Event::Tick => return None,
        };
        let was = self.seen;
        self.seen = match found {
            None => Seen::Missing,
            Some(object) if object.metadata.deletion_timestamp.is_some() => Seen::Terminating,
            Some(_) => Seen::Exists,
        };
        let began = self.is_terminating() && was != self.seen;
        let uid = found.and_then(|object| object.metadata.uid.as_deref()).unwrap_or_default();
        began.then(|| Note {
            kind: Kind::Namespace,
            key: ObjectKey::new("", &*self.name),
            uid: Uid::from(uid),
            warning: true,
            reason: SYSTEM_NAMESPACE_TERMINATING,
            message: self.trouble().unwrap_or_default(),
        })
    }

    pub fn is_terminating(&self) -> bool {
        self.seen == Seen::Terminating
    }

    /// What is wrong with it, and what to do.
    pub fn trouble(&self) -> Option<String> {
        let name = &self.name;
        match self.seen {
            Seen::Unknown | Seen::Exists => None,
            Seen::Missing => Some(format!(
                "namespace {name} does not exist: create it, or name the right one by --system-namespace"
            )),
            Seen::Terminating => Some(format!(
                "namespace {name} is being deleted: bound claims keep their resources and nothing new can be created; \
                 Kubernetes cannot undo this: back up what must stay, delete the claims, and install again when the \
                 namespace is gone"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::Revision;
    use serde_json::json;

    fn object(name: &str, deleting: bool) -> Object {
        let mut json =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": "u"}});
        if deleting {
            json["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        super::super::rest::read_object(Kind::Namespace, json).unwrap()
    }

    fn listed(objects: Vec<Object>) -> Event {
        Event::Listed { kind: Kind::Namespace, objects, revision: Revision::read(Some("1")) }
    }

    #[test]
    fn a_deletion_of_the_system_namespace_is_reported_once() {
        let mut namespace = SystemNamespace::new(&Name::from("system"));
        assert_eq!(namespace.trouble(), None, "nothing is known yet");
        assert!(namespace.observe(&listed(vec![object("system", false), object("other", true)])).is_none());
        assert_eq!(namespace.trouble(), None);
        let note = namespace.observe(&Event::Seen(object("system", true))).expect("it is reported");
        assert_eq!((note.reason, note.warning), (SYSTEM_NAMESPACE_TERMINATING, true));
        assert!(note.message.contains("namespace system is being deleted"), "{}", note.message);
        assert!(namespace.observe(&Event::Seen(object("system", true))).is_none(), "once");
        assert!(namespace.is_terminating());
        namespace.observe(&listed(vec![object("other", false)]));
        assert!(namespace.trouble().is_some_and(|text| text.contains("does not exist")));
    }
}
