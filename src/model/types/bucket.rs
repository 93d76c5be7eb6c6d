//! A second type, for tests only: a bucket of objects in a region. Only this file and its predicates' registry lines know
//! its fields.

use super::{FieldRule, Rule, TypeId, TypeRules};
// tidy-allow: for tests only, and the type brings predicates of its own
use crate::predicates::{BY_GROUP, BY_SET, Definition, Shape};

/// The bucket's place in the table.
pub(crate) const TYPE: TypeId = TypeId(1);

/// A bucket: matched by region without case, by what it can do, and by how many objects it holds.
pub(super) fn bucket() -> TypeRules {
    TypeRules {
        group: "storage.conductor.io",
        version: "v1alpha1",
        resource: "Bucket",
        claim: "BucketClaim",
        class: "BucketClass",
        short: "bkt",
        primary_capacity: "objects",
        fields: Vec::new(),
    }
}

pub(crate) const REGION: Definition = Definition {
    about: "The bucket is in the region that the claim names.",
    field: Some(FieldRule {
        of: "Bucket",
        claim: "region",
        resource: "region",
        rule: Rule::Name { aliases: &[("frankfurt", "eu-central-1")] },
        recorded: Shape::Leaf,
    }),
    ..BY_GROUP
};

pub(crate) const FEATURES: Definition = Definition {
    about: "The bucket has every feature that the claim needs.",
    field: Some(FieldRule {
        of: "Bucket",
        claim: "needs",
        resource: "features",
        rule: Rule::Contains,
        recorded: Shape::NAMES,
    }),
    ..BY_SET
};
