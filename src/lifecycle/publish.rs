//! From what is known of a resource and its implementation to the connection that its claim gets. Whether a Secret
//! may be published is decided here; what it holds is never seen.
//!
//! ```text
//! spec.connection of the resource, or of its class, or the adapter for its kind
//!   -> what is known now, and the Secret that has the rest
//!   -> Publication -> the controller reads that Secret -> compose -> Service, ConfigMap, Secret
//! ```

mod compose;

pub use compose::{Meeting, compose, decode, meet};

use super::part::{View, inputs_of, present};
use crate::api::reasons::ready as reason;
use crate::cache::{Publications, ResourceEntry, Sight};
use crate::model::implementation::digest;
use crate::model::{Claim, Kind, Name, ObjectKey, Publication, SourceView, Uid};
use crate::template::{Prepared, SecretRef};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The state of a claim's connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Connecting {
    /// It is not available, or not yet.
    Not {
        /// The reason for the condition.
        reason: &'static str,
        /// The message for the condition.
        message: String,
        /// The Secret that is waited for.
        source: Option<Name>,
    },
    /// This must be published.
    Known(Box<Publication>),
}

fn not(reason: &'static str, message: String) -> Connecting {
    Connecting::Not { reason, message, source: None }
}

/// The connection of `claim` to the resource that it holds.
pub fn plan_connection(
    entry: &ResourceEntry,
    view: &View<'_>,
    publications: &Publications,
    claim: &Claim,
    system_namespace: &Name,
) -> Connecting {
    let (prepared, spoken_of) = match prepare(entry, view, claim) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => {
            let name = &entry.resource.meta.key.name;
            let message = format!("resource {name} does not say how it is reached: give it spec.connection");
            return not(reason::CONNECTION_INCOMPLETE, message);
        }
        Err(why) => return not(reason::CONNECTION_INCOMPLETE, why),
    };
    if !prepared.waits.is_empty() {
        let missing = prepared.waits.iter().map(|(key, outputs)| format!("{key} ({outputs})"));
        let missing = missing.collect::<Vec<_>>().join(", ");
        return not(reason::CONNECTION_INCOMPLETE, format!("not known yet: {missing}"));
    }
    let source = match &prepared.secret {
        None => None,
        Some(secret) => match find_source(entry, view, publications, secret, spoken_of.as_ref()) {
            Ok(source) => {
                let key = ObjectKey { namespace: system_namespace.clone(), name: source.name.clone() };
                Some((key, source.uid.clone(), source.revision))
            }
            Err((reason, message)) => {
                return Connecting::Not { reason, message, source: Some(Name::from(secret.name.as_str())) };
            }
        },
    };
    let mut publication = publication(claim, prepared, source);
    let wanted = publication.secret_name.clone();
    let others = publications.secret_names(&claim.meta.uid).filter(|(name, _)| **name != wanted);
    let (former, gone): (Vec<_>, Vec<_>) = others.partition(|(_, may_be_there)| *may_be_there);
    publication.former = former.into_iter().map(|(name, _)| name.clone()).collect();
    publication.gone = gone.into_iter().map(|(name, _)| name.clone()).collect();
    Connecting::Known(Box::new(publication))
}

fn publication(
    claim: &Claim,
    prepared: Prepared,
    source: Option<(ObjectKey, Uid, crate::model::Revision)>,
) -> Publication {
    let Prepared { values, waits: _, secret: _, later, inputs } = prepared;
    let secret_name = claim.wanted_secret().clone();
    let from =
        source.as_ref().map(|(key, uid, revision)| json!([key.to_string(), &**uid, revision.to_string()]));
    let all = json!([&*claim.meta.uid, &*secret_name, values, later, inputs, from]);
    Publication {
        kind: Kind::Claim(claim.ty),
        claim: claim.meta.key.clone(),
        uid: claim.meta.uid.clone(),
        secret_name,
        former: Vec::new(),
        gone: Vec::new(),
        values,
        later,
        inputs,
        source,
        digest: Name::from(digest(&all.to_string())),
    }
}

/// What is known of the connection; and, where that comes from an adapter, the name of the part that it describes: the
/// adapter decides which Secrets belong to that.
fn prepare(
    entry: &ResourceEntry,
    view: &View<'_>,
    claim: &Claim,
) -> Result<Option<(Prepared, Option<Name>)>, String> {
    let resource = &entry.resource;
    let Some(script) = &resource.script else { return Ok(None) };
    let compiled = match view.compiled {
        Some(Ok(compiled)) => compiled,
        Some(Err(error)) => return Err(error.to_string()),
        None => return Ok(None),
    };
    let objects = present(view);
    let mut inputs = inputs_of(script, &objects);
    let holder = of_holder(claim);
    let made_for = inputs.claim.and_then(|claim| claim.pointer("/metadata/uid")).and_then(Value::as_str);
    if made_for != Some(&*claim.meta.uid) {
        inputs.claim = Some(&holder);
    }
    let (prepared, spoken_of) = match compiled.prepare(&inputs) {
        Some(prepared) => (prepared, None),
        None => {
            // The last object that is known how to be reached: what comes before it is what it stands on. What its class no
            // longer names implements nothing.
            let named = resource.template.objects();
            let is_named = |id: &Name| named.is_empty() || named.iter().any(|part| part.id == *id);
            let parts: Vec<_> = resource.parts().filter(|(id, _)| is_named(id)).collect();
            let known = parts.iter().rev().find_map(|(id, key)| {
                Some((view.adapters.find(&key.kind)?.connection()?, objects.get(*id)?, &key.name))
            });
            match known {
                Some(((connection, _), object, name)) => {
                    (connection.prepare(&inputs, Some(object)), Some(name.clone()))
                }
                None => return Ok(None),
            }
        }
    };
    let mut prepared = prepared.map_err(|error| error.to_string())?;
    let spec = |pointer: &str| script.inputs.pointer(pointer).and_then(Value::as_str);
    let engine = spec("/resource/spec/engine").unwrap_or("database").to_lowercase();
    let engine = if engine == "postgres" { "postgresql".to_owned() } else { engine };
    let provider = spec("/class/metadata/name").unwrap_or("conductor").to_owned();
    prepared.values.entry("type".to_owned()).or_insert_with(|| Value::from(engine));
    prepared.values.entry("provider".to_owned()).or_insert_with(|| Value::from(provider));
    Ok(Some((prepared, spoken_of)))
}

/// A claim that holds a resource provisioned for another: its identity, and no more.
fn of_holder(claim: &Claim) -> Value {
    let key = &claim.meta.key;
    json!({"metadata": {"namespace": &*key.namespace, "name": &*key.name, "uid": &*claim.meta.uid}, "spec": {}})
}

/// The Secret that a connection comes from, if it exists and may be published: it belongs to the implementation, or an
/// administrator allows it. Else a user who may name a Secret could read any in the system namespace.
fn find_source<'a>(
    entry: &ResourceEntry,
    view: &View<'_>,
    publications: &'a Publications,
    secret: &SecretRef,
    spoken_of: Option<&Name>,
) -> Result<&'a SourceView, (&'static str, String)> {
    let name = &secret.name;
    let source = publications
        .source(name)
        .ok_or_else(|| (reason::CONNECTION_INCOMPLETE, format!("Secret {name} does not exist yet")))?;
    if !source.is_of_right_kind() {
        let message = format!("Secret {name} is of type {}, which is never published", source.kind);
        return Err((reason::SECRET_NOT_ALLOWED, message));
    }
    let owners = owners(entry, view);
    let is_owned = source.owners.iter().any(|owner| owners.contains(owner));
    let is_known = spoken_of.is_some_and(|part| is_of_part(source, secret, part));
    match is_owned || is_known || source.is_publishable() {
        true => match &source.trouble {
            Some(why) if source.is_revoked => Err((reason::LOGIN_REVOKED, why.to_string())),
            Some(why) => Err((reason::CONNECTION_INCOMPLETE, why.to_string())),
            None => Ok(source),
        },
        false => {
            let fix = "let an object of the implementation own it, or label it conductor.io/publishable=true";
            let message =
                format!("Secret {name} does not belong to resource {}: {fix}", entry.resource.meta.key.name);
            Err((reason::SECRET_NOT_ALLOWED, message))
        }
    }
}

/// Whether a Secret belongs to a part according to an adapter: by the labels that its operator gives, else by its name.
/// Parts are named by us, after a UID: what is named after one was created for it.
fn is_of_part(source: &SourceView, secret: &SecretRef, part: &str) -> bool {
    match secret.labels.is_empty() {
        true => source.name.strip_prefix(part).is_some_and(|rest| rest.starts_with('-')),
        false => has_labels(&source.labels, &secret.labels),
    }
}

fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// The UIDs of a resource and its parts.
fn owners(entry: &ResourceEntry, view: &View<'_>) -> Vec<Uid> {
    let parts = view.parts.values().filter_map(|part| match &part.sight {
        Sight::Present(part) => Some(part.uid.clone()),
        Sight::Unknown | Sight::InFlight | Sight::KindMissing(_) | Sight::Absent { .. } | Sight::Taken => {
            None
        }
    });
    parts.chain([entry.resource.meta.uid.clone()]).collect()
}
