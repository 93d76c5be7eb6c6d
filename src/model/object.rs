//! An object as the API serves it: typed metadata, untyped body. Each view parses the body itself, so that an invalid
//! object affects only itself.

use super::types::{TYPES, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// The kinds that the engine reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A claim of an abstract type.
    Claim(TypeId),
    /// A resource of an abstract type.
    Resource(TypeId),
    /// A class of an abstract type.
    Class(TypeId),
    /// `ClaimQuota`.
    Quota,
    /// `ClusterClaimQuota`.
    ClusterQuota,
    /// `ClaimLimits`.
    Limits,
    /// `SchedulingProfile`.
    Profile,
    /// A core `Namespace`, read for its labels.
    Namespace,
}

/// Group of Conductor's kinds that belong to no abstract type.
pub const CONDUCTOR_GROUP: &str = "conductor.io";

impl Kind {
    /// The kind of an `apiVersion` and `kind`; None if the engine does not read it.
    pub fn find(api_version: &str, kind: &str) -> Option<Kind> {
        let (group, _version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (group, kind) {
            ("", "Namespace") => Some(Kind::Namespace),
            (CONDUCTOR_GROUP, "ClaimQuota") => Some(Kind::Quota),
            (CONDUCTOR_GROUP, "ClusterClaimQuota") => Some(Kind::ClusterQuota),
            (CONDUCTOR_GROUP, "ClaimLimits") => Some(Kind::Limits),
            (CONDUCTOR_GROUP, "SchedulingProfile") => Some(Kind::Profile),
            _ => TypeId::all().find_map(|ty| {
                let rules = &TYPES[usize::from(ty.0)];
                match kind {
                    _ if rules.group != group => None,
                    k if k == rules.claim => Some(Kind::Claim(ty)),
                    k if k == rules.resource => Some(Kind::Resource(ty)),
                    k if k == rules.class => Some(Kind::Class(ty)),
                    _ => None,
                }
            }),
        }
    }

    /// The kind's name as in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Claim(ty) => ty.rules().claim,
            Kind::Resource(ty) => ty.rules().resource,
            Kind::Class(ty) => ty.rules().class,
            Kind::Quota => "ClaimQuota",
            Kind::ClusterQuota => "ClusterClaimQuota",
            Kind::Limits => "ClaimLimits",
            Kind::Profile => "SchedulingProfile",
            Kind::Namespace => "Namespace",
        }
    }

    /// The `apiVersion` as in a manifest.
    pub fn api_version(self) -> String {
        match self {
            Kind::Claim(ty) | Kind::Resource(ty) | Kind::Class(ty) => {
                let rules = ty.rules();
                format!("{}/{}", rules.group, rules.version)
            }
            Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile => {
                format!("{CONDUCTOR_GROUP}/v1alpha1")
            }
            Kind::Namespace => "v1".to_owned(),
        }
    }

    /// Whether the kind is cluster-scoped.
    pub fn is_cluster_scoped(self) -> bool {
        matches!(self, Kind::ClusterQuota | Kind::Profile | Kind::Namespace)
    }
}

/// One object: its kind, its metadata, and the rest of its JSON as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Every other top-level field (`spec`, `status`, or a class's own).
    pub body: Value,
}

impl Object {
    /// The object as the API serves it.
    pub fn to_json(&self) -> Value {
        whole(&self.kind.api_version(), self.kind.name(), &self.metadata, &self.body)
    }
}

/// An object as the API serves it.
pub(super) fn whole(api_version: &str, kind: &str, metadata: &ObjectMeta, body: &Value) -> Value {
    let mut whole = body.as_object().cloned().unwrap_or_default();
    whole.insert("apiVersion".to_owned(), Value::from(api_version));
    whole.insert("kind".to_owned(), Value::from(kind));
    whole.insert("metadata".to_owned(), json!(metadata));
    Value::Object(whole)
}
