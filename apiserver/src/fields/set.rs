//! Sets of fields: which paths are in it, as a tree. Union, intersection and difference, and the form in which objects
//! carry them.

use super::path::Step;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A set of paths below one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: BTreeSet<Step>,
    children: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(FieldSet::is_empty)
    }

    pub fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => drop(self.members.insert(last.clone())),
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub fn has(&self, step: &Step) -> bool {
        self.members.contains(step)
    }

    pub fn below(&self, step: &Step) -> Option<&FieldSet> {
        self.children.get(step)
    }

    pub fn union(&self, other: &FieldSet) -> FieldSet {
        let members = self.members.union(&other.members).cloned().collect();
        let mut children = self.children.clone();
        for (step, set) in &other.children {
            let merged = children.get(step).map_or_else(|| set.clone(), |own| own.union(set));
            children.insert(step.clone(), merged);
        }
        FieldSet { members, children }
    }

    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let members = self.members.intersection(&other.members).cloned().collect();
        let both =
            self.children.iter().filter_map(|(step, set)| Some((step, set, other.children.get(step)?)));
        let children = both.map(|(step, one, two)| (step.clone(), one.intersection(two)));
        FieldSet { members, children: children.filter(|(_, set)| !set.is_empty()).collect() }
    }

    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().map(|(step, set)| {
            let left = other.children.get(step).map_or_else(|| set.clone(), |theirs| set.difference(theirs));
            (step.clone(), left)
        });
        FieldSet { members, children: children.filter(|(_, set)| !set.is_empty()).collect() }
    }

    /// Without whole branches: `except` names their roots.
    pub fn without_branches(&self, except: &FieldSet) -> FieldSet {
        let members = self.members.difference(&except.members).cloned().collect();
        let children = self.children.iter().filter(|(step, _)| !except.members.contains(*step));
        let children = children.map(|(step, set)| {
            let left =
                except.children.get(step).map_or_else(|| set.clone(), |below| set.without_branches(below));
            (step.clone(), left)
        });
        FieldSet { members, children: children.filter(|(_, set)| !set.is_empty()).collect() }
    }

    /// Fields on the way to members become members, so that what holds only removed fields goes too.
    pub fn with_named_parents(&self) -> FieldSet {
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (step, set) in &self.children {
            if matches!(step, Step::Field(_)) {
                members.insert(step.clone());
            }
            children.insert(step.clone(), set.with_named_parents());
        }
        FieldSet { members, children }
    }

    /// Every path, in order.
    pub fn paths(&self) -> Vec<Vec<Step>> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
        for step in &self.members {
            path.push(step.clone());
            found.push(path.clone());
            path.pop();
        }
        for (step, set) in &self.children {
            path.push(step.clone());
            set.collect(path, found);
            path.pop();
        }
    }

    /// Reads what an object carries; what cannot be understood is left out.
    pub fn read(value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (text, below) in value.as_object().into_iter().flatten() {
            let Some(step) = Step::read(text) else { continue };
            let fields = below.as_object();
            if fields.is_none_or(|fields| fields.is_empty() || fields.contains_key(".")) {
                set.members.insert(step.clone());
            }
            let child = FieldSet::read(below);
            if !child.is_empty() {
                set.children.insert(step, child);
            }
        }
        set
    }

    /// The form in which objects carry it.
    pub fn write(&self) -> Value {
        let mut fields = Map::new();
        for step in &self.members {
            fields.insert(step.write(), Value::Object(Map::new()));
        }
        for (step, set) in self.children.iter().filter(|(_, set)| !set.is_empty()) {
            let mut below = set.write();
            if self.members.contains(step)
                && let Some(below) = below.as_object_mut()
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(step.write(), below);
        }
        Value::Object(fields)
    }
}

#[test]
fn a_set_is_read_as_it_was_written() {
    let written = serde_json::json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:y": {}}}, "f:set": {"v:\"z\"": {}}},
    });
    let set = FieldSet::read(&written);
    assert_eq!(set.write(), written);
    assert!(set.difference(&set).is_empty());
    assert_eq!(set.union(&set), set);
    assert_eq!(set.intersection(&set), set);
}
