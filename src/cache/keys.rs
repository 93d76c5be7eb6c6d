//! What the index keys on: the checks of its type, by the kind of their key. `predicates` defines which key a
//! query accepts. A refusal is counted under the predicate that stands here; no other file of the cache names one.

use crate::model::selector::Requirement;
use crate::model::{FieldValue, FieldWant, Name, TypeId, VersionRange, Wants};
use crate::predicates::{Candidate, ClassQuery, Key, Predicate, Query, Step, steps};

type AcceptsClass = fn(&ClassQuery<'_>, Option<&Name>) -> bool;
type AcceptsField = fn(&FieldWant, &FieldValue) -> bool;
type AcceptsLabel = fn(&Requirement, Option<&str>) -> bool;

/// The checks of a type, by what they key on.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    steps: &'static [Step],
    pub class: (Predicate, AcceptsClass),
    pub group: Option<GroupKey>,
    pub namespaces: Predicate,
    pub range: Option<RangeKey>,
    pub attributes: Vec<FieldKey>,
    pub labels: (Predicate, AcceptsLabel),
    /// In the order of their places.
    standings: Vec<&'static Step>,
    pub capacity: Predicate,
}

/// A field of which each value is a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldKey {
    pub predicate: Predicate,
    pub at: usize,
    accepts: AcceptsField,
}

/// The field by which resources are grouped.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupKey {
    pub field: FieldKey,
    pub only: fn(&FieldWant) -> Option<&Name>,
}

/// The field whose values are in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeKey {
    pub field: FieldKey,
    pub within: fn(&FieldWant) -> Option<&VersionRange>,
}

impl FieldKey {
    /// Whether a claim that wants this accepts a value.
    pub fn accepts(&self, wants: &Wants, value: &FieldValue) -> bool {
        (self.accepts)(&wants.fields[self.at], value)
    }
}

impl Keys {
    pub fn of(ty: TypeId) -> Keys {
        let steps = steps(ty);
        // Every type has the checks without a field; a test in `predicates` says so.
        let any = steps[0].predicate;
        let mut keys = Keys {
            steps,
            class: (any, |_, _| true),
            group: None,
            namespaces: any,
            range: None,
            attributes: Vec::new(),
            labels: (any, |_, _| true),
            standings: Vec::new(),
            capacity: any,
        };
        for step in steps {
            let field = |accepts| step.at.map(|at| FieldKey { predicate: step.predicate, at, accepts });
            match step.check.key {
                Key::Class(accepts) => keys.class = (step.predicate, accepts),
                Key::Group { accepts, only } => {
                    keys.group = field(accepts).map(|field| GroupKey { field, only })
                }
                Key::Namespaces(_) => keys.namespaces = step.predicate,
                Key::Capacity(_) => keys.capacity = step.predicate,
                Key::Range { accepts, within } => {
                    keys.range = field(accepts).map(|field| RangeKey { field, within });
                }
                Key::Attribute(accepts) => keys.attributes.extend(field(accepts)),
                Key::Labels(accepts) => keys.labels = (step.predicate, accepts),
                Key::Standing { .. } => keys.standings.push(step),
            }
        }
        keys
    }

    /// The first check that refuses a resource.
    pub fn first_refusal(&self, query: &Query<'_>, candidate: &Candidate<'_>) -> Option<Predicate> {
        self.steps.iter().find(|step| step.refuses(query, candidate)).map(|step| step.predicate)
    }

    /// The predicate that keeps a claim from a resource that others hold, where one does.
    pub fn refuses_shared(&self, wants: &Wants) -> Option<Predicate> {
        let refuses = |step: &&&Step| match step.check.key {
            Key::Standing { joins, .. } => !joins(wants),
            _ => false,
        };
        self.standings.iter().find(refuses).map(|step| step.predicate)
    }

    /// The places of the standings in which resources are withheld, each with the predicate that withholds them.
    pub fn withheld(&self) -> impl Iterator<Item = (u8, Predicate)> {
        self.standings.iter().filter_map(|step| Some((step.withheld()?, step.predicate)))
    }
}
