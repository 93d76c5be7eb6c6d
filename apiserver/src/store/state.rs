//! Everything at one revision: the tables, and who owns what. Checks what a write expects; knows no disk.

use super::table::{LogLimits, Table};
use super::{Expect, Leave, Refusal, Stored, Write};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where an object with an owner is.
pub(crate) type Owned = (Arc<str>, Arc<str>);

/// One state of the world.
#[derive(Debug)]
pub(crate) struct State {
    revision: u64,
    /// Nothing is remembered of what happened up to here.
    base: u64,
    limits: LogLimits,
    tables: BTreeMap<Arc<str>, Table>,
    /// The dependents of each owner's UID. Never walked as a whole.
    owned: FxHashMap<Box<str>, BTreeSet<Owned>>,
}

impl State {
    pub(super) fn new(limits: LogLimits) -> State {
        State { revision: 1, base: 0, limits, tables: BTreeMap::new(), owned: FxHashMap::default() }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn table(&self, table: &str) -> Option<&Table> {
        self.tables.get(table)
    }

    pub fn tables(&self) -> impl Iterator<Item = (&Arc<str>, &Table)> {
        self.tables.iter()
    }

    pub fn find(&self, table: &str, key: &str) -> Option<&Arc<Stored>> {
        self.tables.get(table)?.find(key)
    }

    /// The objects that name this UID as an owner.
    pub fn owned_by(&self, uid: &str) -> Vec<Owned> {
        self.owned.get(uid).map(|owned| owned.iter().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn ensure(&mut self, table: &Arc<str>) -> &mut Table {
        let (limits, floor) = (self.limits, self.base);
        self.tables.entry(Arc::clone(table)).or_insert_with(|| Table::new(limits, floor))
    }

    pub(super) fn compact(&mut self) {
        self.base = self.revision;
        let base = self.base;
        self.tables.values_mut().for_each(|table| table.compact(base));
    }

    /// What was on disk. Nothing is remembered of how it came about, so the logs begin here.
    pub(super) fn restore(&mut self, kept: super::journal::Kept) -> Result<(), String> {
        self.revision = kept.revision.max(1);
        for (table, key, bytes) in kept.objects {
            let failed = |error| format!("{table} {key}: what is kept of it cannot be read: {error}");
            let value: Value = serde_json::from_slice(&bytes).map_err(failed)?;
            let revision = revision_of(&value).unwrap_or(self.revision);
            let table: Arc<str> = Arc::from(table.as_str());
            for owner in owners(&value) {
                let place = (Arc::clone(&table), Arc::from(key.as_str()));
                self.owned.entry(owner.into()).or_default().insert(place);
            }
            self.ensure(&table).restore(&key, Arc::new(Stored::new(value, revision)));
        }
        self.compact();
        Ok(())
    }

    /// Whether what a write expects is there.
    pub(super) fn check(expect: Expect, found: Option<u64>) -> Result<(), Refusal> {
        match (expect, found) {
            (Expect::Absent, None) => Ok(()),
            (Expect::Absent, Some(_)) => Err(Refusal::Exists),
            (Expect::Revision(expected), Some(found)) if expected == found => Ok(()),
            (Expect::Revision(_), Some(_) | None) => Err(Refusal::Changed),
        }
    }

    pub(super) fn commit(&mut self, write: Write) -> Result<Arc<Stored>, Refusal> {
        let found = self.find(&write.table, &write.key).map(|stored| stored.revision);
        State::check(write.expect, found)?;
        let (stored, deleted) = numbered(write.leave, self.revision + 1);
        self.publish(&write.table, &write.key, Arc::clone(&stored), deleted);
        Ok(stored)
    }

    /// Puts a numbered state in its place.
    pub(super) fn publish(&mut self, table: &Arc<str>, key: &str, stored: Arc<Stored>, deleted: bool) {
        self.revision = stored.revision;
        let after = Arc::clone(&stored);
        let before = self.ensure(table).record(key, stored, deleted);
        if let Some(before) = &before {
            self.disown(table, key, &before.value);
        }
        if !deleted {
            self.own(table, key, &after.value);
        }
    }

    fn own(&mut self, table: &Arc<str>, key: &str, value: &Value) {
        for owner in owners(value) {
            let place = (Arc::clone(table), Arc::from(key));
            self.owned.entry(owner.into()).or_default().insert(place);
        }
    }

    fn disown(&mut self, table: &Arc<str>, key: &str, value: &Value) {
        for owner in owners(value) {
            let Some(owned) = self.owned.get_mut(owner) else { continue };
            owned.remove(&(Arc::clone(table), Arc::from(key)));
            if owned.is_empty() {
                self.owned.remove(owner);
            }
        }
    }
}

/// A state under its revision, which it also carries in its metadata.
pub(super) fn numbered(leave: Leave, revision: u64) -> (Arc<Stored>, bool) {
    let (mut value, deleted) = match leave {
        Leave::Put(value) => (value, false),
        Leave::Nothing(value) => (value, true),
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
    }
    (Arc::new(Stored::new(value, revision)), deleted)
}

fn revision_of(value: &Value) -> Option<u64> {
    value.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

fn owners(value: &Value) -> impl Iterator<Item = &str> {
    let references = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str())
}
