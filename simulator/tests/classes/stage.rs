//! A cluster in memory with a controller on it and operators that say what was recorded of real ones. Manifests go
//! in as they are written; nothing here knows what should come of them.

use crate::operators::Operators;
use conductor::engine::Config;
use conductor::lifecycle::decode;
use conductor::model::{Kind, Object, ObjectKey, Part, PartKey, PartKind, Slot, Time, TypeId};
use conductor_simulator::harness::Harness;
use conductor_simulator::world::World;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
pub const CLAIM: Kind = Kind::Claim(TYPE);
pub const RESOURCE: Kind = Kind::Resource(TYPE);
pub const SYSTEM: &str = "conductor-system";

/// A path of the repository.
pub fn root(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// Operators as they were recorded.
pub fn operators() -> Operators {
    Operators::read(&root("tests/fixtures/adapters"))
}

/// The kind of an `apiVersion` and `kind`.
pub fn part_kind((api_version, kind): (&str, &str)) -> PartKind {
    PartKind::new(api_version, kind)
}

/// An object of ours, as written.
pub fn object(manifest: Value) -> Object {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
    let kind = Kind::find(&text("apiVersion"), &text("kind")).unwrap_or_else(|| panic!("{manifest}"));
    let metadata = serde_json::from_value(manifest["metadata"].clone()).expect("it has metadata");
    let mut body = manifest;
    for field in ["apiVersion", "kind", "metadata"] {
        body.as_object_mut().expect("it is a map").remove(field);
    }
    Object { kind, metadata, body }
}

/// A Secret as the API keeps it: what was written in clear is encoded.
fn encoded(mut secret: Value) -> Value {
    let clear = secret.as_object_mut().and_then(|fields| fields.remove("stringData")).unwrap_or_default();
    for (key, value) in clear.as_object().into_iter().flatten() {
        let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
        secret["data"][key] = json!(ByteString(bytes));
    }
    secret
}

/// A cluster, its controller, its operators.
pub struct Stage {
    pub harness: Harness,
}

impl Stage {
    /// Everything is there before the controller starts.
    pub fn new(kinds: &[PartKind]) -> Stage {
        let mut world = World::new();
        kinds.iter().for_each(|kind| drop(world.install(kind)));
        Stage { harness: Harness::start(world, Config::default(), Time(1_800_000_000_000)) }
    }

    /// Applies a manifest: an object of ours, or a Secret.
    pub fn apply(&mut self, manifest: Value) {
        match manifest["kind"].as_str() {
            Some("Secret") => {
                self.harness.touch_parts(|world| [world.put_side(Slot::Secret, encoded(manifest))])
            }
            _ => self.harness.put(object(manifest)),
        }
    }

    /// Every part as the API has it.
    pub fn parts(&self) -> Vec<(PartKey, Value)> {
        self.harness.world.parts().map(|part| (part.key(), part.to_json())).collect()
    }

    /// Runs the operators of all parts until none changes anything.
    pub fn play(&mut self, operators: &Operators) {
        let mut heard = BTreeSet::new();
        while let Some((key, part)) = self.parts().into_iter().find(|(key, _)| !heard.contains(key)) {
            let answer = operators.answer(&part);
            answer.status.into_iter().for_each(|status| self.says(&key, status));
            answer.secret.into_iter().for_each(|secret| self.apply(secret));
            heard.insert(key);
        }
    }

    /// The only part of a kind.
    pub fn part(&self, kind: (&str, &str)) -> Part {
        let found: Vec<&Part> =
            self.harness.world.parts().filter(|part| part.kind == part_kind(kind)).collect();
        assert_eq!(found.len(), 1, "{kind:?}: {:?}", self.resources());
        found[0].clone()
    }

    pub fn says(&mut self, part: &PartKey, status: Value) {
        self.harness.touch_parts(|world| world.set_part_status(part, status));
    }

    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Value {
        let found = self.harness.world.get(kind, &ObjectKey::new(namespace, name));
        found.map(|object| object.body.clone()).unwrap_or_default()
    }

    /// Every resource, with its phase and what it says of its readiness.
    pub fn resources(&self) -> Vec<String> {
        let own = self.harness.world.objects().filter(|object| object.kind == RESOURCE);
        let shown = |object: &Object| {
            let phase = object.body["status"]["phase"].as_str().unwrap_or("no phase");
            format!("{phase}: {}", condition(&object.body, "Ready"))
        };
        own.map(shown).collect()
    }

    /// A condition of a claim: status, reason, message.
    pub fn claim_says(&self, namespace: &str, name: &str, which: &str) -> String {
        condition(&self.get(CLAIM, namespace, name), which)
    }

    /// What an application finds.
    pub fn published(&self, namespace: &str, secret: &str) -> BTreeMap<String, String> {
        let found = self.harness.world.side(Slot::Secret, &ObjectKey::new(namespace, secret));
        found.map(decode).unwrap_or_default()
    }
}

fn condition(body: &Value, which: &str) -> String {
    let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let Some(found) = conditions.iter().find(|c| c["type"] == which) else { return "nothing".to_owned() };
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}
