//! What is published for a claim, and what it is published from, as far as the engine knows it: names, revisions and
//! digests. Nothing here ever holds the content of a Secret.

use super::key::{Name, ObjectKey, Revision, Uid};
use super::meta::Meta;
use super::object::Kind;
use crate::api::database::{REVOKED, TROUBLE};
use crate::api::names::{CLAIM_UID, CONTENT_HASH, MADE_FROM, PUBLISHABLE, PUBLISHED_SECRETS, TOGETHER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The kinds of object that are published for a claim, in the order in which they are written: an application that
/// finds the Secret finds everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A Service: a name that stays.
    Service,
    /// An EndpointSlice: where the Service leads, where that is an address and not a name.
    Endpoints,
    /// A ConfigMap: what is not secret.
    Config,
    /// The Secret.
    Secret,
}

impl Slot {
    /// Those that are listed and watched in every namespace. Secrets are not: whoever may list them may read all.
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

/// Something that is published for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedView {
    /// What it is.
    pub slot: Slot,
    /// Where it is.
    pub key: ObjectKey,
    /// Which life of that name.
    pub uid: Uid,
    /// How far it has come.
    pub revision: Revision,
    /// The claim that it is for.
    pub claim: Uid,
    /// A digest of what it was made from; nothing where somebody has changed it since.
    pub made_from: Option<Name>,
    /// How many objects were published together.
    pub together: usize,
    /// On a ConfigMap: the names under which a Secret may be published for the claim.
    pub secrets: Vec<Name>,
}

/// How many names of Secrets are believed of one record. We keep one, two while it changes; who writes more into it
/// gets no more reads for it.
const RECORDED_MAX: usize = 16;

/// The names of Secrets that are on record in an object.
pub fn recorded_secrets(object: &Value) -> Vec<Name> {
    let record = object.pointer("/metadata/annotations").and_then(|a| a.get(PUBLISHED_SECRETS));
    let names = record.and_then(Value::as_str).unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).take(RECORDED_MAX).map(Name::from).collect()
}

impl PublishedView {
    /// Reads an object that carries our label; nothing where it does not say whose it is.
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

/// A hash of what an object holds: its `data`, and of a Service or its endpoints what leads to the database.
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

/// The fields of a port that we write; the API adds others.
fn port(port: &Value) -> Value {
    let fields = ["name", "port"].map(|name| (name.to_owned(), port.get(name).cloned().unwrap_or_default()));
    Value::Object(Map::from_iter(fields))
}

/// A Secret in the system namespace that a connection may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// Its name.
    pub name: Name,
    /// Which life of that name.
    pub uid: Uid,
    /// How far it has come.
    pub revision: Revision,
    /// Its `type`.
    pub kind: Name,
    /// The UIDs of its owners.
    pub owners: Vec<Uid>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Why it has nothing to give, where whoever writes it says so.
    pub trouble: Option<Name>,
    /// Whether what it gave before does not work any more.
    pub is_revoked: bool,
}

/// Types of Secret that connections are made of. Tokens, certificates, registries' passwords and packages are not.
const SOURCE_KINDS: [&str; 4] =
    ["", "Opaque", "kubernetes.io/basic-auth", "connection.crossplane.io/v1alpha1"];

impl SourceView {
    /// Reads a Secret, and nothing of what it holds.
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

    /// Whether its type is one that a connection may be made of.
    pub fn is_of_right_kind(&self) -> bool {
        SOURCE_KINDS.contains(&&*self.kind) || self.kind.starts_with("servicebinding.io/")
    }

    /// Whether an administrator has said that it may be published.
    pub fn is_publishable(&self) -> bool {
        self.labels.get(PUBLISHABLE).is_some_and(|value| value == "true")
    }
}

/// Everything that is needed to publish a connection but the content of the Secret that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// The claim's kind.
    pub kind: Kind,
    /// The claim that it is for.
    pub claim: ObjectKey,
    /// Which life of that name.
    pub uid: Uid,
    /// What the Secret is called.
    pub secret_name: Name,
    /// Other names under which a Secret of the claim may still be: they stay on record.
    pub former: Vec<Name>,
    /// Names under which there is none any more: they go from the record.
    pub gone: Vec<Name>,
    /// Keys that are known.
    pub values: BTreeMap<String, Value>,
    /// Keys that are computed with the source's content, as written.
    pub later: Map<String, Value>,
    /// What that needs beside the source.
    pub inputs: Value,
    /// The Secret that the rest comes from: where it is, which life, as last seen.
    pub source: Option<(ObjectKey, Uid, Revision)>,
    /// A digest of what is published: the names of former Secrets are not part of that.
    pub digest: Name,
}
