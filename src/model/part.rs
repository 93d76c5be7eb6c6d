//! Parts: the objects of other kinds that implement a resource, as the API serves them. `implementation` reads their
//! readiness and owner.

use super::key::Name;
use super::object::{CONDUCTOR_GROUP, whole};
use super::types::{TYPES, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The kind of a part: any kind that is installed and allowed, never one of Conductor's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKind {
    /// Group and version, `v1` for the core group.
    pub api_version: Name,
    /// The kind's name.
    pub kind: Name,
}

/// Kind, namespace and name of a part. Objects that are recreated with the same name have the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKey {
    /// Its kind.
    pub kind: PartKind,
    /// Always the system namespace: Conductor never creates cluster-scoped parts.
    pub namespace: Name,
    /// Its name, derived from its resource.
    pub name: Name,
}

/// One object of a resource's implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its kind.
    pub kind: PartKind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Every other top-level field.
    pub body: Value,
}

/// Why parts of a kind cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyMissing {
    /// The cluster does not serve the kind.
    NotInstalled,
    /// The kind is cluster-scoped.
    NotNamespaced,
    /// RBAC forbids to list, watch, create or delete it; the message of the API.
    NotAllowed(String),
    /// `--allow-kinds` does not list it.
    NotListed,
}

/// Identifies a part by its resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// The resource's type.
    pub ty: TypeId,
    /// The resource's name.
    pub resource: Name,
    /// The id of the part in its resource.
    pub part: Name,
}

/// The id of the part of a resource with a single `template`.
pub const MAIN: &str = "main";

impl PartId {
    /// A part of a resource.
    pub fn new(ty: TypeId, resource: &Name, part: &Name) -> PartId {
        PartId { ty, resource: resource.clone(), part: part.clone() }
    }
}

/// Groups whose kinds are never created, whatever rights the controller has: they grant rights, or change what the API
/// accepts or serves. Leases are among them because leader election uses one.
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

/// Core kinds that are never created. A Secret of the right type is a service account's token; a Pod chooses the account
/// that it runs as. Workloads do too, through their controllers: the ClusterRole of the installation decides about them.
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

    /// Whether parts of this kind are never created. That includes Conductor's own groups by their exact names; an
    /// implementation can be in a subgroup, such as database.aws.conductor.io.
    pub fn is_denied(&self) -> bool {
        let group = self.group();
        let ours = group == CONDUCTOR_GROUP || TYPES.iter().any(|ty| ty.group == group);
        ours || DENIED_GROUPS.contains(&group)
            || (group.is_empty() && DENIED_CORE_KINDS.contains(&&*self.kind))
    }
}

/// The kinds that the installation allows. Denied kinds stay denied even if listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedKinds(Option<BTreeSet<String>>);

impl AllowedKinds {
    /// Only these kinds, each as `Kind.group`; `*.group` is every kind of a group.
    pub fn new(kinds: impl IntoIterator<Item = String>) -> AllowedKinds {
        AllowedKinds(Some(kinds.into_iter().map(|kind| kind.to_lowercase()).collect()))
    }

    /// Whether the kind is allowed.
    pub fn allows(&self, kind: &PartKind) -> bool {
        let Some(list) = &self.0 else { return true };
        let any = format!("*.{}", kind.group()).to_lowercase();
        list.contains(&kind.to_string().to_lowercase()) || list.contains(&any)
    }
}

impl Part {
    /// Its key.
    pub fn key(&self) -> PartKey {
        let text = |t: &Option<String>| Name::from(t.as_deref().unwrap_or_default());
        PartKey {
            kind: self.kind.clone(),
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
        }
    }

    /// The object as the API serves it.
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
