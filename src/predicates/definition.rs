//! What a predicate consists of, and how the checks of a type apply it.

use super::{Candidate, ClassQuery, Described, Occupancy, Predicate, Query, Recorded, Standing};
use crate::model::selector::Requirement;
use crate::model::types::FieldRule;
use crate::model::{Capacity, ClassWant, FieldValue, FieldWant, Name, VersionRange, Wants};

/// Everything about one predicate.
#[derive(Debug)]
pub struct Definition {
    /// What it means, in a sentence for the reference.
    pub about: &'static str,
    /// The name in a one-line count, where that is not the name in lower case.
    pub short_name: Option<&'static str>,
    /// Who settles its refusal.
    pub actor: Actor,
    /// Whether a profile may switch it off. Predicates that keep data safe stay on.
    pub optional: bool,
    /// The field of a type that it decides on, where it decides on one.
    pub field: Option<FieldRule>,
    /// What a recording keeps for it, beside its field.
    pub recorded: &'static [Recorded],
    /// Whether it does not apply to a claim and a resource that are paired in this way.
    pub is_skipped_for: fn(&Pairing) -> bool,
    /// How resources are checked. Without any, it decides on the claim alone.
    pub checks: &'static [Check],
    /// Takes it out of a query.
    pub relax: fn(&mut RelaxedQuery, Option<usize>),
    /// One sentence over the number of refused resources.
    pub summary: fn(&Query<'_>, &Field, usize) -> String,
}

impl Definition {
    /// What most predicates have in common; they add the rest.
    pub(super) const BASE: Definition = Definition {
        about: "",
        short_name: None,
        actor: Actor::Author,
        optional: false,
        field: None,
        recorded: &[],
        is_skipped_for: |pairing| matches!(pairing, Pairing::Named { is_mutual: true, .. }),
        checks: &[],
        relax: |_, _| {},
        summary: |_, _, _| String::new(),
    };
}

/// Who settles a refusal. Explanations list remedies in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The claim's author edits the claim.
    Author,
    /// The claim's author edits the claim, and the application with it: another engine needs another client.
    Application,
    /// An administrator changes the resource or the quota.
    Administrator,
}

/// How a claim and a resource belong together before they match.
#[derive(Clone, Copy, Debug)]
pub enum Pairing {
    /// An administrator reserved the resource for the claim.
    Reserved,
    /// The claim names the resource.
    Named {
        /// Whether the resource names the claim, too: then only what takes something from others applies.
        is_mutual: bool,
        /// Whether the resource has no class.
        is_classless: bool,
        /// Whether several claims may hold the resource.
        is_shared: bool,
    },
    /// A class is provisioning the resource, and the claim may join.
    Provisioning,
}

/// One check of a resource: what the index keys on, and what the refusal says.
#[derive(Debug)]
pub struct Check {
    /// What the index keys on, and which keys a query accepts.
    pub key: Key,
    /// Why the resource is refused.
    pub refusal: fn(&Case<'_>) -> String,
    /// The change after which it passes.
    pub remedy: fn(&Case<'_>) -> String,
    /// Applies the remedy to what the claim wants, where the remedy edits the claim.
    pub apply_remedy: fn(&mut Wants, &Case<'_>) -> bool,
    /// Where the remedy changes the resource: how many other claims hold it afterwards, or nothing where the claim does
    /// not get it even so.
    pub holders_after_remedy: fn(&Occupants<'_>, &Case<'_>) -> Option<usize>,
}

impl Check {
    pub(super) const fn new(
        key: Key,
        refusal: fn(&Case<'_>) -> String,
        remedy: fn(&Case<'_>) -> String,
    ) -> Check {
        let apply_remedy = |_: &mut Wants, _: &Case<'_>| false;
        let holders_after_remedy = |occupants: &Occupants<'_>, _: &Case<'_>| Some(occupants.count);
        Check { key, refusal, remedy, apply_remedy, holders_after_remedy }
    }
}

/// What the index keys on, from the root of its tree to the leaves, with the rule by which a query accepts a key.
#[derive(Debug)]
pub enum Key {
    /// The class, which the query names.
    Class(fn(&ClassQuery<'_>, Option<&Name>) -> bool),
    /// A name of which most queries want one; one field of a type at most.
    Group {
        /// Whether a value is accepted.
        accepts: fn(&FieldWant, &FieldValue) -> bool,
        /// The only name that can be accepted, where there is only one: others are not visited.
        only: fn(&FieldWant) -> Option<&Name>,
    },
    /// The namespaces that the resource is open to, which are none where it is open to all.
    Namespaces(fn(&str, &[Name]) -> bool),
    /// An ordered value; one field of a type at most.
    Range {
        /// Whether a value is accepted.
        accepts: fn(&FieldWant, &FieldValue) -> bool,
        /// The range outside which no value can be accepted: values outside are not visited.
        within: fn(&FieldWant) -> Option<&VersionRange>,
    },
    /// Any other field: evaluated once per distinct value.
    Attribute(fn(&FieldWant, &FieldValue) -> bool),
    /// The labels: each requirement is evaluated once per distinct value of its label.
    Labels(fn(&Requirement, Option<&str>) -> bool),
    /// How the resource stands to claims at large.
    Standing {
        /// Whether the resource is withheld from every claim.
        withholds: fn(&Occupancy<'_>) -> bool,
        /// Whether a claim joins others on a resource that they hold.
        joins: fn(&Wants) -> bool,
    },
    /// What is left of the capacity, in best-fit order.
    Capacity(fn(&Capacity, &Capacity) -> bool),
}

impl Key {
    /// The place in the order in which checks are applied.
    pub fn rank(&self) -> u8 {
        match self {
            Key::Class(_) => 0,
            Key::Group { .. } => 1,
            Key::Namespaces(_) => 2,
            Key::Range { .. } => 3,
            Key::Attribute(_) => 4,
            Key::Labels(_) => 5,
            Key::Standing { .. } => 6,
            Key::Capacity(_) => 7,
        }
    }

    /// What the index keys on, for the reference.
    pub fn name(&self) -> &'static str {
        ["class", "group", "namespaces", "range", "attribute", "labels", "standing", "capacity"]
            [usize::from(self.rank())]
    }
}

/// The field that a predicate decides on; without a place and a rule where it decides on none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field {
    /// Its place in the type's table.
    pub at: Option<usize>,
    /// Its names on both sides.
    pub rule: Option<&'static FieldRule>,
}

impl Field {
    /// Its name in the claim's spec.
    pub fn claim(&self) -> &'static str {
        self.rule.map_or("", |rule| rule.claim)
    }

    /// Its name in the resource's spec.
    pub fn resource(&self) -> &'static str {
        self.rule.map_or("", |rule| rule.resource)
    }

    /// What a claim wants of it.
    pub fn want<'a>(&self, wants: &'a Wants) -> &'a FieldWant {
        self.at.map_or(&FieldWant::Any, |at| &wants.fields[at])
    }

    /// Replaces what a claim wants of it.
    pub fn set(&self, wants: &mut Wants, want: FieldWant) {
        if let Some(at) = self.at {
            wants.fields[at] = want;
        }
    }
}

/// A claim and a resource that a check refuses to it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What the claim looks for.
    pub query: &'a Query<'a>,
    /// The resource.
    pub resource: &'a Described<'a>,
    /// The field that the check decides on.
    pub field: Field,
}

impl<'a> Case<'a> {
    /// What the claim wants of the field.
    pub fn want(&self) -> &'a FieldWant {
        self.field.want(self.query.wants)
    }

    /// What the resource has of the field.
    pub fn have(&self) -> &'a FieldValue {
        self.field.at.map_or(&FieldValue::Absent, |at| &self.resource.candidate.offer.fields[at])
    }
}

/// The other claims on a resource, when a remedy is considered that changes the resource.
#[derive(Clone, Copy, Debug)]
pub struct Occupants<'a> {
    /// How many hold it or have it reserved.
    pub count: usize,
    /// Whether one of them holds it.
    pub is_held: bool,
    /// Whether it takes one more claim beside them.
    pub has_room: bool,
    /// Whether the resource is being deleted.
    pub is_deleting: bool,
    /// What the claim wants.
    pub wants: &'a Wants,
}

impl Occupants<'_> {
    /// Whether the claim accepts the company that it would have.
    pub fn are_accepted(&self) -> bool {
        self.count == 0 || !self.wants.exclusive
    }
}

/// A query that owns its parts, so that a predicate can be taken out.
#[derive(Clone, Debug)]
pub struct RelaxedQuery {
    /// The claim's namespace.
    pub namespace: Name,
    /// The classes that are searched; absent where every class is.
    pub classes: Option<Vec<Option<Name>>>,
    /// Everything else.
    pub wants: Wants,
}

impl RelaxedQuery {
    /// The query, borrowed.
    pub fn query(&self) -> Query<'_> {
        let class = self.classes.as_deref().map_or(ClassQuery::Any, ClassQuery::OneOf);
        Query { namespace: &self.namespace, class, wants: &self.wants, headroom: None }
    }

    /// Accepts every class.
    pub fn forget_class(&mut self) {
        self.classes = None;
        self.wants.class = ClassWant::Any;
    }
}

/// One check of a type, in its place.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The predicate that refusals are counted under.
    pub predicate: Predicate,
    /// Its definition.
    pub definition: &'static Definition,
    /// The check.
    pub check: &'static Check,
    /// The place of the field that it decides on, in the type's table.
    pub at: Option<usize>,
    /// Its place among the checks that key on a standing, where it is one of them.
    pub(super) standing: u8,
}

impl Step {
    /// Whether it refuses a resource to a query.
    pub fn refuses(&self, query: &Query<'_>, candidate: &Candidate<'_>) -> bool {
        let offer = candidate.offer;
        let field = |accepts: fn(&FieldWant, &FieldValue) -> bool| {
            self.at.is_none_or(|at| accepts(&query.wants.fields[at], &offer.fields[at]))
        };
        !match self.check.key {
            Key::Class(accepts) => accepts(&query.class, offer.class.as_ref()),
            Key::Group { accepts, .. } | Key::Range { accepts, .. } | Key::Attribute(accepts) => {
                field(accepts)
            }
            Key::Namespaces(accepts) => accepts(query.namespace, &offer.allowed_namespaces),
            Key::Labels(accepts) => {
                let mut requirements = query.wants.selector.requirements().iter();
                requirements.all(|r| accepts(r, offer.labels.get(&r.key)))
            }
            Key::Standing { joins, .. } => match candidate.standing {
                Standing::Vacant => true,
                Standing::Shared => joins(query.wants),
                Standing::Withheld(place) => place != self.standing,
            },
            Key::Capacity(accepts) => accepts(&candidate.free, &query.wants.requests),
        }
    }

    /// Why it refuses a resource, or nothing where it does not.
    pub fn refusal(&self, query: &Query<'_>, resource: &Described<'_>) -> Option<String> {
        let refuses = self.refuses(query, &resource.candidate);
        refuses.then(|| (self.check.refusal)(&Case { query, resource, field: self.field() }))
    }

    /// The change after which it would not.
    pub fn remedy(&self, query: &Query<'_>, resource: &Described<'_>) -> String {
        (self.check.remedy)(&Case { query, resource, field: self.field() })
    }

    /// Takes it out of a query.
    pub fn relax(&self, query: &mut RelaxedQuery) {
        (self.definition.relax)(query, self.at);
    }

    /// One sentence over `count` refused resources.
    pub fn summary(&self, query: &Query<'_>, count: usize) -> String {
        (self.definition.summary)(query, &self.field(), count)
    }

    /// The field that it decides on.
    pub fn field(&self) -> Field {
        Field { at: self.at, rule: self.definition.field.as_ref() }
    }

    /// The place of the standing that it gives, where it keys on one.
    pub fn withheld(&self) -> Option<u8> {
        matches!(self.check.key, Key::Standing { .. }).then_some(self.standing)
    }
}
