//! The objects that an application finds in its namespace, composed from a publication and the content of its source
//! Secret. Pure, so that the controller and the simulator publish the same. Errors name keys, never values.

use crate::api::names::{CLAIM_UID, CONTENT_HASH, MADE_FROM, PUBLISHED, PUBLISHED_SECRETS, TOGETHER};
use crate::model::implementation::digest;
use crate::model::publication::{content_hash, recorded_secrets};
use crate::model::{Kind, Name, Publication, Slot};
use crate::template::{Prepared, complete};
use core::net::IpAddr;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What every connection has.
const REQUIRED: [&str; 8] = ["type", "provider", "host", "port", "username", "password", "database", "uri"];
/// The keys that the ConfigMap shows, to every user who may read ConfigMaps.
const OPEN: [&str; 8] = ["type", "provider", "host", "port", "database", "sslMode", "options", "version"];
/// The keys of an address; taken from the source under the same name, where the connection does not say otherwise.
const ADDRESS: [&str; 5] = ["host", "port", "username", "password", "database"];
/// Most bytes of a connection: an API object has its limits.
const BYTES_MAX: usize = 256 * 1024;

/// The content of a Secret, as far as it is text.
pub fn decode(secret: &Value) -> BTreeMap<String, String> {
    let data = secret.get("data").cloned().unwrap_or_default();
    let data: BTreeMap<String, ByteString> = serde_json::from_value(data).unwrap_or_default();
    data.into_iter().filter_map(|(key, bytes)| Some((key, String::from_utf8(bytes.0).ok()?))).collect()
}

/// The objects to be published, in the order in which they are written.
///
/// # Errors
/// What is missing, by name.
pub fn compose(
    publication: &Publication,
    source: Option<&BTreeMap<String, String>>,
) -> Result<Vec<(Slot, Value)>, String> {
    let empty = BTreeMap::new();
    let values = values(publication, source.unwrap_or(&empty))?;
    let name = publication.claim.name.to_string();
    let mut objects = service(&service_name(&name), &values);
    let open: Map<String, Value> = values
        .iter()
        .filter(|(key, _)| OPEN.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), json!(v)))
        .collect();
    let mut config = json!({"metadata": {"name": name}, "data": open});
    if !objects.is_empty() {
        let leads = format!("{}.{}.svc", service_name(&name), publication.claim.namespace);
        config["data"]["service"] = Value::from(leads);
    }
    objects.push((Slot::Config, config));
    let kind = format!("servicebinding.io/{}", values.get("type").map(String::as_str).unwrap_or_default());
    let data: BTreeMap<&String, ByteString> =
        values.iter().map(|(key, value)| (key, ByteString(value.clone().into_bytes()))).collect();
    let secret = json!({"metadata": {"name": &*publication.secret_name}, "type": kind, "data": data});
    objects.push((Slot::Secret, secret));
    let together = objects.len();
    Ok(objects.into_iter().map(|(slot, object)| (slot, sign(publication, slot, object, together))).collect())
}

/// Every key as text.
fn values(
    publication: &Publication,
    source: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let prepared = Prepared {
        values: publication.values.clone(),
        later: publication.later.clone(),
        inputs: publication.inputs.clone(),
        ..Prepared::default()
    };
    let computed = complete(&prepared, source).map_err(|error| error.to_string())?;
    let mut values = BTreeMap::new();
    for (key, value) in computed {
        let text = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("connection.{key} is a list or a map: make it text"));
            }
        };
        values.insert(key, text);
    }
    // An address of the source that leads elsewhere than the rest of the connection would mislead.
    let agrees = |key: &&str| values.get(*key).is_none_or(|value| source.get(*key) == Some(value));
    let whole = ADDRESS.iter().all(agrees).then(|| source.get("uri")).flatten();
    let taken = ADDRESS.iter().filter_map(|key| Some((*key, source.get(*key)?)));
    for (key, value) in taken.chain(whole.map(|uri| ("uri", uri))) {
        values.entry(key.to_owned()).or_insert_with(|| value.clone());
    }
    if let (false, Some(uri)) = (values.contains_key("uri"), uri(&values)) {
        values.insert("uri".to_owned(), uri);
    }
    check(&values)?;
    Ok(values)
}

fn check(values: &BTreeMap<String, String>) -> Result<(), String> {
    let has = |key: &&str| values.get(*key).is_some_and(|value| !value.is_empty());
    let missing: Vec<&str> = REQUIRED.into_iter().filter(|key| !has(key)).collect();
    if !missing.is_empty() {
        return Err(format!("the connection lacks {}", missing.join(", ")));
    }
    for (key, value) in values {
        check_value(key, value)?;
    }
    match values.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > BYTES_MAX {
        true => Err("the connection is larger than 256 KiB: keep less in it".to_owned()),
        false => Ok(()),
    }
}

/// What a value must look like: others read files, build addresses and name objects from it.
fn check_value(key: &str, value: &str) -> Result<(), String> {
    let is_of = |more: &str, most: usize| {
        value.len() <= most && value.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let problem = match key {
        "port" if !value.parse::<u16>().is_ok_and(|port| port != 0) => {
            "is no port: write a number from 1 to 65535"
        }
        "host" if value.parse::<IpAddr>().is_err() && !is_of("-._", 253) => {
            "is neither a name nor an address: write db.example.com or 10.0.0.1"
        }
        "type" if !is_of("-._", 63) => "cannot be the type of a Secret: use letters, digits, - . and _",
        "options" if !is_of("-._~%&=,:+", 1_024) => "cannot stand in an address: write name=value&name=value",
        _ if value.contains('\0') => "holds the character NUL, which no environment takes: leave it out",
        "provider" | "username" | "database" | "sslMode" | "uri" if value.chars().any(char::is_control) => {
            "holds a line break or another control character: leave it out"
        }
        _ => return Ok(()),
    };
    Err(format!("connection.{key} {problem}"))
}

/// The address that drivers read.
fn uri(values: &BTreeMap<String, String>) -> Option<String> {
    let of = |key: &str| values.get(key).filter(|value| !value.is_empty());
    let scheme = match of("type")?.as_str() {
        "mariadb" => "mysql",
        other => other,
    };
    let (user, password) = (escape(of("username")?), escape(of("password")?));
    let host = of("host")?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let options = of("options").map(|options| format!("?{options}")).unwrap_or_default();
    Some(format!("{scheme}://{user}:{password}@{host}:{}/{}{options}", of("port")?, escape(of("database")?)))
}

/// Percent-encodes everything that has a meaning in an address.
fn escape(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A name that stays while the database moves: a Service that leads to a name, or to an address.
fn service(name: &str, values: &BTreeMap<String, String>) -> Vec<(Slot, Value)> {
    let of = |key: &str| values.get(key).map(String::as_str).unwrap_or_default();
    let (host, port) = (of("host"), of("port").parse::<u16>().unwrap_or_default());
    let ports = json!([{"name": "database", "port": port}]);
    let metadata = json!({"name": name});
    match host.parse::<IpAddr>() {
        Ok(address) if !address.is_loopback() && !address.is_unspecified() => {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            let labels = json!({"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "conductor.io"});
            let mut spec = json!({"type": "ClusterIP", "ports": ports});
            if address.is_ipv6() {
                // One of the default family alone would lead nowhere. Where the cluster has no other, nothing changes.
                spec["ipFamilyPolicy"] = Value::from("PreferDualStack");
            }
            vec![
                (Slot::Service, json!({"metadata": metadata, "spec": spec})),
                (
                    Slot::Endpoints,
                    json!({"metadata": {"name": name, "labels": labels}, "addressType": family,
                        "endpoints": [{"addresses": [host]}], "ports": ports}),
                ),
            ]
        }
        Err(_) if is_dns_name(host) => {
            // Names are equal in any case; a Service accepts lower case only.
            let leads = host.trim_end_matches('.').to_ascii_lowercase();
            let spec = json!({"type": "ExternalName", "externalName": leads, "ports": ports});
            vec![(Slot::Service, json!({"metadata": metadata, "spec": spec}))]
        }
        // An address of this machine, or no name that a Service could lead to: the Secret has it anyway.
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn is_dns_name(host: &str) -> bool {
    let label = |label: &str| {
        let inner = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        !label.is_empty() && label.len() <= 63 && inner && !label.starts_with('-') && !label.ends_with('-')
    };
    let host = host.trim_end_matches('.');
    !host.eq_ignore_ascii_case("localhost") && host.len() <= 253 && host.split('.').all(label)
}

/// A Service's name begins with a letter and has no dots; a claim's may.
fn service_name(claim: &str) -> String {
    let is_plain = claim.len() <= 63
        && claim.starts_with(|c: char| c.is_ascii_lowercase())
        && claim.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !claim.ends_with('-');
    if is_plain { claim.to_owned() } else { format!("claim-{}", digest(claim)) }
}

/// Adds the owner, what the object was composed from, and how many are published together.
fn sign(publication: &Publication, slot: Slot, mut object: Value, together: usize) -> Value {
    let Publication { kind, claim, uid, digest, secret_name, former, .. } = publication;
    object["apiVersion"] = Value::from(slot.api_version());
    object["kind"] = Value::from(slot.kind());
    let metadata = &mut object["metadata"];
    metadata["namespace"] = Value::from(&*claim.namespace);
    metadata["labels"][PUBLISHED] = Value::from("true");
    metadata["labels"]["app.kubernetes.io/managed-by"] = Value::from("conductor");
    metadata["ownerReferences"] = json!([owner(*kind, &claim.name, uid)]);
    metadata["annotations"] =
        json!({CLAIM_UID: &**uid, MADE_FROM: &**digest, TOGETHER: together.to_string()});
    if slot == Slot::Config {
        let names: Vec<&Name> = [secret_name].into_iter().chain(former).collect();
        object["metadata"]["annotations"][PUBLISHED_SECRETS] = record(&names);
    }
    let hash = content_hash(&object);
    object["metadata"]["annotations"][CONTENT_HASH] = Value::from(hash);
    object
}

fn record(names: &[&Name]) -> Value {
    Value::from(names.iter().map(|name| &***name).collect::<Vec<&str>>().join(","))
}

fn owner(kind: Kind, name: &str, uid: &str) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.name(), "name": name, "uid": uid, "controller": true})
}

/// The next step of an object that must be published.
#[derive(Clone, Debug, PartialEq)]
pub enum Meeting {
    /// It does not exist: it is created.
    Create,
    /// It is ours and differs: this replaces it.
    Replace(Value),
    /// It is ours and differs in an immutable field: the one of this UID is deleted, and this created at once. Its name is
    /// on record, so a crash in between loses nothing.
    Remake {
        /// The UID to delete.
        uid: String,
        /// The object to create.
        wanted: Value,
    },
    /// It is as it should be.
    Rest,
    /// It is not ours: it is not touched.
    Taken,
    /// It is ours and being deleted: only after that can another be created.
    Going,
}

/// Compares what exists with what should exist. A name leaves the record only where it is known that no Secret of that
/// name exists: its writer may have crashed before the Secret was deleted.
pub fn meet(found: Option<&Value>, wanted: &Value, publication: &Publication) -> Meeting {
    let Some(found) = found else { return Meeting::Create };
    let mut wanted = wanted.clone();
    keep_record(found, &mut wanted, &publication.gone);
    let annotation = |object: &Value, name: &str| {
        object
            .pointer("/metadata/annotations")
            .and_then(|a| a.get(name))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let same = |name: &str| annotation(found, name) == annotation(&wanted, name);
    let is_intact = annotation(found, CONTENT_HASH) == Some(content_hash(found));
    match () {
        () if !same(CLAIM_UID) => Meeting::Taken,
        () if !found["metadata"]["deletionTimestamp"].is_null() => Meeting::Going,
        () if [MADE_FROM, TOGETHER, CONTENT_HASH, PUBLISHED_SECRETS].into_iter().all(same) && is_intact => {
            Meeting::Rest
        }
        () if is_fixed(found, &wanted) => {
            let uid = found["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            Meeting::Remake { uid, wanted }
        }
        () => {
            for field in ["uid", "resourceVersion"] {
                wanted["metadata"][field] = found["metadata"][field].clone();
            }
            Meeting::Replace(wanted)
        }
    }
}

/// Whether one object cannot become another by a write: the type of a Secret and the family of an EndpointSlice are
/// immutable, and so is everything in an immutable Secret. A ConfigMap is never deleted here: it is the record.
fn is_fixed(found: &Value, wanted: &Value) -> bool {
    let differs = |field: &str| wanted.get(field).is_some() && found.get(field) != wanted.get(field);
    let locked = wanted["kind"] == Slot::Secret.kind() && found["immutable"] == true;
    differs("type") || differs("addressType") || locked
}

/// Adds to a record the names that are recorded already and not known to be deleted.
fn keep_record(found: &Value, wanted: &mut Value, gone: &[Name]) {
    let mut names = recorded_secrets(wanted);
    if names.is_empty() {
        return;
    }
    let kept = recorded_secrets(found).into_iter().filter(|name| !gone.contains(name));
    let kept: Vec<Name> = kept.filter(|name| !names.contains(name)).collect();
    names.extend(kept);
    wanted["metadata"]["annotations"][PUBLISHED_SECRETS] = record(&names.iter().collect::<Vec<_>>());
}
