//! A second type, for tests only: a bucket of objects in a region. Nothing outside this file knows its fields.

use super::{FieldRule, Predicate, Rule, TypeId, TypeRules};

/// The bucket's place in the table.
pub(crate) const TYPE: TypeId = TypeId(1);

/// A bucket: matched by region without case, by what it can do, and by how many objects it holds.
pub(super) const BUCKET: TypeRules = TypeRules {
    group: "storage.conductor.io",
    version: "v1alpha1",
    resource: "Bucket",
    claim: "BucketClaim",
    class: "BucketClass",
    short: "bkt",
    primary_capacity: "objects",
    fields: &[
        FieldRule {
            predicate: Predicate::Field("Region"),
            claim: "region",
            resource: "region",
            rule: Rule::Name { aliases: &[("frankfurt", "eu-central-1")] },
        },
        FieldRule {
            predicate: Predicate::Field("Features"),
            claim: "needs",
            resource: "features",
            rule: Rule::Contains,
        },
    ],
};
