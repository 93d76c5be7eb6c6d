//! The managed fields of an object, one entry per manager; read from metadata and written back.

use super::path::Step;
use super::set::FieldSet;
use crate::object;
use serde_json::{Map, Value, json};

/// Managers that only ever update and are older than the newest so many share one entry.
const UPDATERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Who, how, in which version, through which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub manager: String,
    pub applies: bool,
    pub version: String,
    pub sub: String,
}

impl Who {
    /// An applier is the same in every version.
    pub fn is(&self, other: &Who) -> bool {
        self.manager == other.manager
            && self.applies == other.applies
            && self.sub == other.sub
            && (self.applies || self.version == other.version)
    }
}

/// What one manager manages, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub who: Who,
    pub time: String,
    pub set: FieldSet,
}

/// The entries of every manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ManagedFields(pub Vec<Entry>);

impl ManagedFields {
    pub fn read(object: &Value) -> ManagedFields {
        let entries =
            object::meta(object).and_then(|meta| meta.get("managedFields")).and_then(Value::as_array);
        ManagedFields(entries.into_iter().flatten().filter_map(read_entry).collect())
    }

    pub fn find(&self, who: &Who) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.who.is(who))
    }

    /// Sets a manager's entry; an empty one is removed.
    pub fn set(&mut self, who: Who, set: FieldSet, time: &str) {
        let at = self.0.iter().position(|entry| entry.who.is(&who));
        match (at, set.is_empty()) {
            (Some(at), true) => drop(self.0.remove(at)),
            (None, true) => {}
            (Some(at), false) => {
                let entry = &mut self.0[at];
                // An unchanged entry keeps its time.
                if entry.set != set || entry.who != who {
                    *entry = Entry { who, time: time.to_owned(), set };
                }
            }
            (None, false) => self.0.push(Entry { who, time: time.to_owned(), set }),
        }
    }

    /// Removes fields from every manager but one.
    pub fn take_from_others(&mut self, but: &Who, taken: &FieldSet) {
        for entry in self.0.iter_mut().filter(|entry| !entry.who.is(but)) {
            entry.set = entry.set.difference(taken);
        }
        self.0.retain(|entry| entry.who.is(but) || !entry.set.is_empty());
    }

    /// Writes itself into an object.
    pub fn write(mut self, object: &mut Value) {
        self.cap();
        let order = |entry: &Entry| {
            let Who { manager, applies, version, sub } = &entry.who;
            (!*applies, entry.time.clone(), manager.clone(), version.clone(), sub.clone())
        };
        self.0.sort_by_key(order);
        let entries: Vec<Value> = self.0.iter().map(write_entry).collect();
        let value = if entries.is_empty() { Value::Null } else { Value::Array(entries) };
        object::set_meta(object, "managedFields", value);
    }

    /// The oldest of too many updaters become one.
    fn cap(&mut self) {
        let mut updaters: Vec<usize> = (0..self.0.len()).filter(|at| !self.0[*at].who.applies).collect();
        if updaters.len() <= UPDATERS_MAX {
            return;
        }
        updaters.sort_by(|one, two| self.0[*one].time.cmp(&self.0[*two].time));
        let excess = updaters.len() - UPDATERS_MAX + 1;
        let mut old: Vec<usize> = updaters.into_iter().take(excess).collect();
        old.sort_unstable();
        let mut merged: Option<Entry> = None;
        for at in old.into_iter().rev() {
            let entry = self.0.remove(at);
            merged = Some(match merged {
                None => entry,
                Some(other) => Entry {
                    time: entry.time.clone().max(other.time.clone()),
                    set: entry.set.union(&other.set),
                    who: entry.who,
                },
            });
        }
        if let Some(mut entry) = merged {
            entry.who = Who { manager: ANCIENT.to_owned(), sub: String::new(), ..entry.who };
            self.0.push(entry);
        }
    }
}

fn read_entry(json: &Value) -> Option<Entry> {
    let text = |field: &str| json.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let who = Who {
        manager: text("manager"),
        applies: text("operation") == "Apply",
        version: text("apiVersion"),
        sub: text("subresource"),
    };
    Some(Entry { who, time: text("time"), set: FieldSet::read(json.get("fieldsV1")?) })
}

fn write_entry(entry: &Entry) -> Value {
    let Who { manager, applies, version, sub } = &entry.who;
    let mut json = Map::new();
    json.insert("manager".to_owned(), manager.as_str().into());
    json.insert("operation".to_owned(), if *applies { "Apply" } else { "Update" }.into());
    json.insert("apiVersion".to_owned(), version.as_str().into());
    if !entry.time.is_empty() {
        json.insert("time".to_owned(), entry.time.as_str().into());
    }
    json.insert("fieldsType".to_owned(), "FieldsV1".into());
    json.insert("fieldsV1".to_owned(), entry.set.write());
    if !sub.is_empty() {
        json.insert("subresource".to_owned(), sub.as_str().into());
    }
    Value::Object(json)
}

/// Whether the client resets the managed fields: one empty entry.
pub(super) fn resets_managed_fields(object: &Value) -> bool {
    let entries = object::meta(object).and_then(|meta| meta.get("managedFields"));
    match entries.and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => *one == json!({}),
        _ => false,
    }
}

/// The fields that no manager owns: the server's own.
pub(super) fn unmanaged() -> FieldSet {
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[Step::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[Step::field("metadata"), Step::field(name)]);
    }
    set
}
