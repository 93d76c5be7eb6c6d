//! One resource: its names, its versions, and what each of them serves.

use super::common::Common;
use crate::schema::{Node, Rules};
use crate::status::Named;
use serde_json::Value;
use std::sync::Arc;

/// What a resource is beyond its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Common(Common),
    Custom,
}

/// A kind of objects.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Where its objects are kept.
    pub table: Arc<str>,
    pub group: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub versions: Vec<Version>,
    pub flavour: Flavour,
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    /// The warning for clients that use a deprecated version.
    pub deprecated: Option<String>,
    pub status: bool,
    pub scale: Option<Scale>,
    pub columns: Vec<Column>,
    pub schema: Arc<Node>,
    /// The same for telling fields apart when objects are applied, with the metadata of every object.
    pub fields: Arc<Node>,
    pub rules: Option<Arc<Rules>>,
    /// The schema as it is published: of a CRD its own, of a common kind the name of its definition.
    pub published: Arc<Value>,
    /// Fields that selectors may name, as paths.
    pub selectable: Vec<String>,
}

/// Where a scale is in an object.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub selector: Option<String>,
}

/// One column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub path: String,
}

impl Resource {
    /// Group and plural, for messages.
    pub fn named(&self) -> Named {
        Named { group: self.group.clone(), name: self.plural.clone() }
    }

    /// Group and kind, for messages.
    pub fn kind_named(&self) -> Named {
        // Both kinds of Events are checked as the older one.
        let is_event = self.flavour == Flavour::Common(Common::NewEvent);
        let group = if is_event { String::new() } else { self.group.clone() };
        Named { group, name: self.kind.clone() }
    }

    /// The version in which objects are kept.
    pub fn storage(&self) -> usize {
        self.versions.iter().position(|version| version.storage).unwrap_or(0)
    }

    /// The kinds of patch that it takes. Clients choose by what the OpenAPI document lists.
    pub fn patch_media(&self) -> &'static [&'static str] {
        if self.is_custom() {
            &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
        } else {
            &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ]
        }
    }

    pub fn is_custom(&self) -> bool {
        self.flavour == Flavour::Custom
    }

    pub fn common(&self) -> Option<Common> {
        match self.flavour {
            Flavour::Common(common) => Some(common),
            Flavour::Custom => None,
        }
    }
}

/// How much a version is preferred: stable before beta before alpha, newer before older, other names last.
pub(crate) fn precedence(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, tail) = rest.split_at(digits);
    let Ok(major) = major.parse::<u64>() else { return other() };
    let minor = |text: &str| text.parse::<u64>().ok();
    let nothing = std::cmp::Reverse(String::new());
    if tail.is_empty() {
        return (3, major, 0, nothing);
    }
    let known = [(2, "beta"), (1, "alpha")];
    let found = known.into_iter().find_map(|(rank, stage)| Some((rank, minor(tail.strip_prefix(stage)?)?)));
    found.map_or_else(other, |(rank, minor)| (rank, major, minor, nothing))
}

#[test]
fn versions_are_preferred_as_kubernetes_prefers_them() {
    let mut versions = [
        "foo10",
        "v1beta1",
        "v11alpha2",
        "v10",
        "v2",
        "foo1",
        "v11beta2",
        "v1",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
    ];
    versions.sort_by_key(|version| std::cmp::Reverse(precedence(version)));
    assert_eq!(
        versions,
        [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v1beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10"
        ]
    );
}
