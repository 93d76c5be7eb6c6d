//! The one table that says which abstract types exist and how a type's fields match.
//! A new type is a new entry here; the scheduler reads the table and knows no field by name.

use std::fmt;

/// Why a resource, a class or a claim was refused. The names are a contract: scripts read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Predicate {
    /// The claim's class is not the resource's.
    Class,
    /// Another engine.
    Engine,
    /// A version outside the claim's range.
    Version,
    /// The claim asks for high availability.
    HighlyAvailable,
    /// A requested capability is missing.
    Capabilities,
    /// A field of a type other than the relational database, by its own name.
    Field(&'static str),
    /// The labels do not match the claim's selector.
    Selector,
    /// Not in a phase in which it can be claimed.
    Phase,
    /// Marked unschedulable by an administrator.
    Cordoned,
    /// Reserved for, or held by, another claim.
    Reserved,
    /// Not open to the namespace, no slot left, or the claim wants it for itself.
    Sharing,
    /// Too little capacity left.
    Capacity,
    /// The claim names a resource that cannot be had.
    ResourceName,
    /// The claim's requests are outside the namespace's limits.
    Limits,
    /// A quota is used up.
    Quota,
}

impl Predicate {
    /// The name as it stands in plans, conditions and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Predicate::Class => "Class",
            Predicate::Engine => "Engine",
            Predicate::Version => "Version",
            Predicate::HighlyAvailable => "HighlyAvailable",
            Predicate::Capabilities => "Capabilities",
            Predicate::Field(name) => name,
            Predicate::Selector => "Selector",
            Predicate::Phase => "Phase",
            Predicate::Cordoned => "Cordoned",
            Predicate::Reserved => "Reserved",
            Predicate::Sharing => "Sharing",
            Predicate::Capacity => "Capacity",
            Predicate::ResourceName => "ResourceName",
            Predicate::Limits => "Limits",
            Predicate::Quota => "Quota",
        }
    }
}

impl Predicate {
    /// The word in a one-line count of refusals.
    pub fn word(self) -> String {
        match self {
            Predicate::HighlyAvailable => "high availability".to_owned(),
            other => other.name().to_lowercase(),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the claim's value of a field is held against the resource's.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Equal without case; each pair lists a spelling and the name it stands for.
    Name {
        /// Other spellings: (spelling, canonical name), both in lower case.
        aliases: &'static [(&'static str, &'static str)],
    },
    /// The resource's version lies in the claim's range.
    VersionRange,
    /// A claim that says true needs a resource that says true.
    Flag,
    /// Every string that the claim lists is among the resource's.
    Contains,
}

/// One field of a type: where it stands on each side, and how the two are compared.
#[derive(Clone, Copy, Debug)]
pub struct FieldRule {
    /// The predicate that a mismatch is counted under.
    pub predicate: Predicate,
    /// The field's name under the claim's `spec`.
    pub claim: &'static str,
    /// The field's name under the resource's `spec`.
    pub resource: &'static str,
    /// How they compare.
    pub rule: Rule,
}

/// An abstract type: its three kinds and its matching rules.
#[derive(Debug)]
pub struct TypeRules {
    /// API group of all three kinds.
    pub group: &'static str,
    /// API version of all three kinds.
    pub version: &'static str,
    /// Kind of the resource.
    pub resource: &'static str,
    /// Kind of the claim.
    pub claim: &'static str,
    /// Kind of the class.
    pub class: &'static str,
    /// Prefix of the names of provisioned resources; also the resource's short name.
    pub short: &'static str,
    /// The capacity that fit is judged by first.
    pub primary_capacity: &'static str,
    /// The fields that take part in matching, in the order in which they are asked.
    pub fields: &'static [FieldRule],
}

impl TypeRules {
    /// The field by which resources are grouped (the engine), where the type has a name field.
    pub fn group_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.rule, Rule::Name { .. }))
    }

    /// The field that is a version, where the type has one.
    pub fn version_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.rule, Rule::VersionRange))
    }
}

/// Index of a type in [`TYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u16);

/// Every type that Conductor schedules. Tests of this crate, and nobody else, know one more: it proves that
/// a type needs no more than its entry.
pub static TYPES: &[TypeRules] = &[
    RELATIONAL_DATABASE,
    #[cfg(test)]
    bucket::BUCKET,
];

const RELATIONAL_DATABASE: TypeRules = TypeRules {
    group: "storage.conductor.io",
    version: "v1alpha1",
    resource: "RelationalDatabase",
    claim: "RelationalDatabaseClaim",
    class: "RelationalDatabaseClass",
    short: "rdb",
    primary_capacity: "storage",
    fields: &[
        FieldRule {
            predicate: Predicate::Engine,
            claim: "engine",
            resource: "engine",
            rule: Rule::Name { aliases: &[("postgres", "postgresql")] },
        },
        FieldRule {
            predicate: Predicate::Version,
            claim: "version",
            resource: "version",
            rule: Rule::VersionRange,
        },
        FieldRule {
            predicate: Predicate::HighlyAvailable,
            claim: "highly-available",
            resource: "highly-available",
            rule: Rule::Flag,
        },
        FieldRule {
            predicate: Predicate::Capabilities,
            claim: "requests",
            resource: "capabilities",
            rule: Rule::Contains,
        },
    ],
};

#[cfg(test)]
pub(crate) mod bucket;

impl TypeId {
    /// The relational database, the first type.
    pub const RELATIONAL_DATABASE: TypeId = TypeId(0);

    /// The rules of this type.
    pub fn rules(self) -> &'static TypeRules {
        &TYPES[usize::from(self.0)]
    }

    /// Every type in the table.
    pub fn all() -> impl Iterator<Item = TypeId> {
        (0..TYPES.len()).map(|at| TypeId(at as u16))
    }
}
