//! Schemas as the API works with them: read once from OpenAPI, then asked to default, prune, check and merge.
//! A node knows shape and limits; what a kind means beyond its schema lives with the kind.

mod checks;
mod core;
mod default;
mod formats;
mod go;
mod lists;
mod overlay;
mod prune;
mod read;
mod rule_check;
mod rules;
mod validate;

pub(super) use self::core::Library;
pub(super) use default::default;
pub(super) use go::find_mismatch;
pub(super) use lists::check_lists;
pub(super) use prune::{prune, unknown_fields};
pub(super) use read::read;
pub(super) use rule_check::find_fault;
pub(super) use rules::Rules;
pub(super) use validate::validate;

use checks::Checks;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything at all.
    Any,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// They are not: the list is one value.
    Atomic,
    /// By themselves.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

/// How a strategic merge patch treats a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    Replace,
    /// Items are merged by this field; without one, as a set.
    Merge(Option<String>),
    /// Other keys than those of the patch are dropped.
    RetainKeys,
    MergeRetainKeys(Option<String>),
}

/// What may stand at one place.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub nullable: bool,
    pub properties: BTreeMap<String, Arc<Node>>,
    pub items: Option<Arc<Node>>,
    /// The values of a map.
    pub values: Option<Arc<Node>>,
    /// Fields that are not named here are kept.
    pub open: bool,
    /// A whole object lives here, with its own apiVersion, kind and metadata.
    pub embedded: bool,
    pub list: List,
    /// The object or map is one value.
    pub atomic: bool,
    pub patch: Patch,
    pub default: Option<Value>,
    pub checks: Checks,
    /// The name of the type in Go, for messages about the kinds that every cluster has.
    pub go: Option<Arc<str>>,
}

impl Node {
    pub fn new(kind: Kind) -> Node {
        Node {
            kind,
            nullable: false,
            properties: BTreeMap::new(),
            items: None,
            values: None,
            open: false,
            embedded: false,
            list: List::Atomic,
            atomic: false,
            patch: Patch::Replace,
            default: None,
            checks: Checks::default(),
            go: None,
        }
    }

    /// What lives under a field, where the schema declares anything about it.
    pub fn field(&self, name: &str) -> Option<&Arc<Node>> {
        self.properties.get(name).or(self.values.as_ref())
    }
}
