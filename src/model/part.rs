//! Parts: the objects of other kinds that implement a resource, as the API serves them.
//! What makes a part ready, and whose it is, is read in `implementation`; nothing here decides about one.

use super::key::Name;
use super::object::{CONDUCTOR_GROUP, whole};
use super::types::{TYPES, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A kind of parts. Not one of ours: whatever is installed and allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKind {
    /// Group and version, `v1` for the core group.
    pub api_version: Name,
    /// The kind's name.
    pub kind: Name,
}

/// Where a part is. Says nothing about which life of that name is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKey {
    /// What it is.
    pub kind: PartKind,
    /// Always the system namespace: a part of a kind that lives in no namespace is never made.
    pub namespace: Name,
    /// Its name, derived from its resource.
    pub name: Name,
}

/// A part is one object of a resource's implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Every other top-level field.
    pub body: Value,
}

/// Why a kind of parts cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyMissing {
    /// The cluster does not serve it.
    NotInstalled,
    /// Its objects live in no namespace, and parts never do.
    NotNamespaced,
    /// We may not list, watch, create or delete it; in the API's words.
    NotAllowed(String),
    /// It is not on the installation's list of kinds.
    NotListed,
}

/// Which part of which resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// The resource's type.
    pub ty: TypeId,
    /// The resource's name.
    pub resource: Name,
    /// Which of its parts.
    pub part: Name,
}

/// The part of a resource that has a single `template`.
pub const MAIN: &str = "main";

impl PartId {
    /// A part of a resource.
    pub fn new(ty: TypeId, resource: &Name, part: &Name) -> PartId {
        PartId { ty, resource: resource.clone(), part: part.clone() }
    }
}

/// Groups of which no part is ever made, whatever rights we were given: they hand out rights, change what the
/// API accepts or serves, or speak for us. Leases are among them because ours is one.
const DENIED_GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
];

/// Core kinds of which no part is ever made. A Secret of the right type is a service account's token; a Pod
/// picks the account that it runs as. Workloads do too, but through controllers: whoever installs us grants
/// them or does not.
const DENIED_CORE_KINDS: &[&str] = &["Namespace", "Node", "Pod", "Secret", "ServiceAccount"];

impl PartKind {
    /// The kind of an `apiVersion` and `kind`.
    pub fn new(api_version: impl Into<Name>, kind: impl Into<Name>) -> PartKind {
        PartKind { api_version: api_version.into(), kind: kind.into() }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether no part of this kind is ever made. Our own groups are among them, by their exact names:
    /// an implementation may well live in a group below ours.
    pub fn is_denied(&self) -> bool {
        let group = self.group();
        let ours = group == CONDUCTOR_GROUP || TYPES.iter().any(|ty| ty.group == group);
        ours || DENIED_GROUPS.contains(&group)
            || (group.is_empty() && DENIED_CORE_KINDS.contains(&&*self.kind))
    }
}

/// Which kinds may be made. What is denied is denied whatever stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedKinds(Option<BTreeSet<String>>);

impl AllowedKinds {
    /// These kinds and no others, each as `Kind.group`; `*.group` is every kind of a group.
    pub fn new(kinds: impl IntoIterator<Item = String>) -> AllowedKinds {
        AllowedKinds(Some(kinds.into_iter().map(|kind| kind.to_lowercase()).collect()))
    }

    /// Whether a kind is among them.
    pub fn allows(&self, kind: &PartKind) -> bool {
        let Some(list) = &self.0 else { return true };
        let any = format!("*.{}", kind.group()).to_lowercase();
        list.contains(&kind.to_string().to_lowercase()) || list.contains(&any)
    }
}

impl Part {
    /// Where it is.
    pub fn key(&self) -> PartKey {
        let text = |t: &Option<String>| Name::from(t.as_deref().unwrap_or_default());
        PartKey {
            kind: self.kind.clone(),
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
        }
    }

    /// The part as the API has it.
    pub fn to_json(&self) -> Value {
        whole(&self.kind.api_version, &self.kind.kind, &self.metadata, &self.body)
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group() {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

impl fmt::Display for PartKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
