//! The one table of abstract types. A new type is a new entry here, and a line in the registry of `predicates` for each
//! field of its own; the scheduler reads the table and knows no field by name.

// tidy-allow: a type's fields are those that its predicates decide on, so that a predicate is defined in one place
use crate::predicates;
use crate::predicates::Shape; // tidy-allow: what a recording keeps of a field is defined with its predicate
use std::sync::LazyLock;

/// What the values of a field are, on either side.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Equal names, ignoring case and aliases.
    Name {
        /// Pairs of (alias, canonical name), both in lower case.
        aliases: &'static [(&'static str, &'static str)],
    },
    /// The claim's range matches the resource's version.
    VersionRange,
    /// A claim with true requires a resource with true.
    Flag,
    /// The resource has all strings that the claim lists.
    Contains,
}

/// One field of a type: where it stands on each side, and how both are read.
#[derive(Clone, Copy, Debug)]
pub struct FieldRule {
    /// The kind of the type's resource.
    pub of: &'static str,
    /// The field's name under the claim's `spec`.
    pub claim: &'static str,
    /// The field's name under the resource's `spec`.
    pub resource: &'static str,
    /// How its values are read.
    pub rule: Rule,
    /// What a recording keeps of it.
    pub recorded: Shape,
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
    /// The capacity that best fit compares first.
    pub primary_capacity: &'static str,
    /// The fields that predicates decide on, in the order of the registry.
    pub fields: Vec<FieldRule>,
}

impl TypeRules {
    /// The place of the field that has this name in a claim's spec.
    pub fn find_field(&self, claim: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.claim == claim)
    }

    /// The field by which resources are grouped (the engine), where the type has a name field.
    pub fn group_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.rule, Rule::Name { .. }))
    }

    /// The index of the version field, if the type has one.
    pub fn version_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.rule, Rule::VersionRange))
    }
}

/// Index of a type in [`TYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u16);

/// Every type that Conductor schedules. Tests of this crate know one more: it proves that a type needs no more than its
/// entry and its predicates.
pub static TYPES: LazyLock<Vec<TypeRules>> = LazyLock::new(|| {
    let mut types = vec![
        relational_database(),
        #[cfg(test)]
        bucket::bucket(),
    ];
    for ty in &mut types {
        ty.fields = predicates::fields_of(ty.resource).map(|(_, field)| field).collect();
    }
    types
});

fn relational_database() -> TypeRules {
    TypeRules {
        group: "storage.conductor.io",
        version: "v1alpha1",
        resource: "RelationalDatabase",
        claim: "RelationalDatabaseClaim",
        class: "RelationalDatabaseClass",
        short: "rdb",
        primary_capacity: "storage",
        fields: Vec::new(),
    }
}

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
