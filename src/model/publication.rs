//! Objects that are published for a claim, and the Secrets that connections come from: names, revisions and digests.
//! Nothing here contains the data of a Secret.

use super::key::{Name, ObjectKey, Revision, Uid};
use super::meta::Meta;
use super::object::Kind;
use crate::api::database::{REVOKED, TROUBLE};
use crate::api::names::{CLAIM_UID, CONTENT_HASH, MADE_FROM, PUBLISHABLE, PUBLISHED_SECRETS, TOGETHER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The kinds of object that are published for a claim, in the order of writing: an application that finds the Secret
/// finds all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A Service: a stable DNS name.
    Service,
    /// An EndpointSlice: the addresses of the Service, if the host is an IP address.
    Endpoints,
    /// A ConfigMap: the keys that are not secret.
    Config,
    /// The Secret with the whole connection.
    Secret,
}

impl Slot {
    /// The kinds that Conductor lists and watches in all namespaces. Not Secrets: the right to list them is the right to read
    /// them all.
    pub const LISTED: [Slot; 3] = [Slot::Service, Slot::Endpoints, Slot::Config];

    /// The kind's name.
    pub fn kind(self) -> &'static str {
        match self {
            Slot::Service => "Service",
            Slot::Endpoints => "EndpointSlice",
            Slot::Config => "ConfigMap",
            Slot::Secret => "Secret",
        }
    }

    /// The `apiVersion` of the kind.
    pub fn api_version(self) -> &'static str {
        match self {
            Slot::Endpoints => "discovery.k8s.io/v1",
            Slot::Service | Slot::Config | Slot::Secret => "v1",
        }
    }
}

/// An object that is published for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedView {
    /// Its kind.
    pub slot: Slot,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Its resourceVersion.
    pub revision: Revision,
    /// The UID of its claim.
    pub claim: Uid,
    /// A digest of what it was written from; None if another client changed it since.
    pub made_from: Option<Name>,
    /// The number of objects that were published together.
    pub together: usize,
    /// On a ConfigMap: the names under which a Secret may be published for the claim.
    pub secrets: Vec<Name>,
}

/// The maximum number of recorded Secret names that are read. Conductor records one, or two during a change; a user who
/// adds more causes no more reads.
const RECORDED_MAX: usize = 16;

/// The names of Secrets that an object records.
pub fn recorded_secrets(object: &Value) -> Vec<Name> {
    let record = object.pointer("/metadata/annotations").and_then(|a| a.get(PUBLISHED_SECRETS));
    let names = record.and_then(Value::as_str).unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).take(RECORDED_MAX).map(Name::from).collect()
}

impl PublishedView {
    /// Parses an object with Conductor's label; None if it does not name its claim.
    pub fn read(slot: Slot, object: &Value) -> Option<PublishedView> {
        let metadata: ObjectMeta = serde_json::from_value(object.get("metadata")?.clone()).ok()?;
        let annotation = |name| metadata.annotations.as_ref().and_then(|a| a.get(name)).cloned();
        let meta = Meta::read(&metadata);
        let intact = annotation(CONTENT_HASH) == Some(content_hash(object));
        Some(PublishedView {
            slot,
            claim: Uid::from(annotation(CLAIM_UID)?),
            made_from: annotation(MADE_FROM).filter(|_| intact && !meta.deleting).map(Name::from),
            together: annotation(TOGETHER).and_then(|count| count.parse().ok()).unwrap_or_default(),
            secrets: if slot == Slot::Config { recorded_secrets(object) } else { Vec::new() },
            key: meta.key,
            uid: meta.uid,
            revision: meta.revision,
        })
    }
}

/// A hash of the content of an object: its `data`, or the target of a Service or EndpointSlice.
pub fn content_hash(object: &Value) -> String {
    let at = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let ports = |pointer| at(pointer).as_array().into_iter().flatten().map(port).collect::<Vec<Value>>();
    let content = Value::from(vec![
        at("/type"),
        at("/data"),
        at("/spec/type"),
        at("/spec/externalName"),
        ports("/spec/ports").into(),
        ports("/ports").into(),
        at("/endpoints/0/addresses"),
    ]);
    let digest = Sha256::digest(content.to_string().as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The fields of a port that Conductor writes; the API server adds others.
fn port(port: &Value) -> Value {
    let fields = ["name", "port"].map(|name| (name.to_owned(), port.get(name).cloned().unwrap_or_default()));
    Value::Object(Map::from_iter(fields))
}

/// A Secret in the system namespace that a connection can come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// Its name.
    pub name: Name,
    /// Its UID.
    pub uid: Uid,
    /// Its resourceVersion.
    pub revision: Revision,
    /// Its `type`.
    pub kind: Name,
    /// The UIDs of its owners.
    pub owners: Vec<Uid>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Why it has no connection, if its writer reports that.
    pub trouble: Option<Name>,
    /// Whether all its earlier logins were revoked.
    pub is_revoked: bool,
}

/// Types of Secret that connections can come from: not tokens, certificates, registry credentials or packages.
const SOURCE_KINDS: [&str; 4] =
    ["", "Opaque", "kubernetes.io/basic-auth", "connection.crossplane.io/v1alpha1"];

impl SourceView {
    /// Parses the metadata of a Secret, not its data.
    pub fn read(secret: &Value) -> Option<SourceView> {
        let metadata: ObjectMeta = serde_json::from_value(secret.get("metadata")?.clone()).ok()?;
        let meta = Meta::read(&metadata);
        let owners = metadata.owner_references.unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        Some(SourceView {
            name: meta.key.name,
            uid: meta.uid,
            revision: meta.revision,
            kind: Name::from(secret.get("type").and_then(Value::as_str).unwrap_or_default()),
            owners: owners.into_iter().map(|owner| Uid::from(owner.uid)).collect(),
            labels: metadata.labels.unwrap_or_default(),
            trouble: annotations.remove(TROUBLE).map(Name::from),
            is_revoked: annotations.get(REVOKED).is_some_and(|value| value == "true"),
        })
    }

    /// Whether a connection can come from a Secret of its type.
    pub fn is_of_right_kind(&self) -> bool {
        SOURCE_KINDS.contains(&&*self.kind) || self.kind.starts_with("servicebinding.io/")
    }

    /// Whether an administrator labelled it as publishable.
    pub fn is_publishable(&self) -> bool {
        self.labels.get(PUBLISHABLE).is_some_and(|value| value == "true")
    }
}

/// Everything for publishing a connection, except the data of the Secret that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// The claim's kind.
    pub kind: Kind,
    /// Namespace and name of the claim.
    pub claim: ObjectKey,
    /// The UID of the claim.
    pub uid: Uid,
    /// The name of the Secret.
    pub secret_name: Name,
    /// Earlier names under which a Secret of the claim may still exist; they stay recorded.
    pub former: Vec<Name>,
    /// Earlier names under which no Secret exists any more; they are removed from the record.
    pub gone: Vec<Name>,
    /// Keys that are known.
    pub values: BTreeMap<String, Value>,
    /// Keys that are computed from the data of the source, as written.
    pub later: Map<String, Value>,
    /// Further inputs of that computation.
    pub inputs: Value,
    /// The Secret that the other keys come from: its key, UID and last known resourceVersion.
    pub source: Option<(ObjectKey, Uid, Revision)>,
    /// A digest of what is published, without the earlier names.
    pub digest: Name,
}
