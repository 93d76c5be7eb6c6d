//! Operators as they were recorded: what each says of its object from creation to readiness, and the Secret that it
//! makes. Only JSON goes in and out, so that they play in a world in memory and on a real API server alike.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What was recorded of one operator.
#[derive(Clone, Debug)]
pub struct Recorded(Value);

/// What the recorded object is called, and its UID.
const NAME: &str = "orders-4f1c";
const UID: &str = "0c0b7d52-6f0e-4d4e-9d55-6a1d5a0f2a11";

impl Recorded {
    /// The kind of the recorded object: its `apiVersion` and `kind`.
    pub fn kind(&self) -> (&str, &str) {
        kind_of(&self.0["object"])
    }

    /// The same of another object.
    pub fn of(&self, object: &Value) -> Recorded {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let renamed = self.0.to_string().replace(NAME, text("name")).replace(UID, text("uid"));
        Recorded(serde_json::from_str(&renamed).expect("names and UIDs need no escape"))
    }

    pub fn at(&self, field: &str) -> &Value {
        &self.0[field]
    }

    /// The object's states over time, and what is reported of each.
    pub fn stages(&self) -> Vec<(Value, String)> {
        self.0["stages"].as_array().into_iter().flatten().map(stage).collect()
    }

    /// What the object says once it is ready.
    pub fn ready(&self) -> Value {
        self.stages().pop().map(|(status, _)| status).unwrap_or_default()
    }

    /// The object's failed state, if its operator reports failures.
    pub fn failed(&self) -> Option<(Value, String)> {
        self.0.get("failed").map(stage)
    }

    /// What an application finds.
    pub fn connection(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.0["connection"].clone()).expect("keys and texts")
    }
}

fn stage(stage: &Value) -> (Value, String) {
    (stage["status"].clone(), stage["says"].as_str().unwrap_or_default().to_owned())
}

fn kind_of(object: &Value) -> (&str, &str) {
    (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default())
}

/// Every recorded operator, and a few that are too simple to be recorded.
#[derive(Clone, Debug)]
pub struct Operators(BTreeMap<String, Recorded>);

/// What an operator has to say of an object.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: Option<Value>,
    pub secret: Option<Value>,
}

impl Operators {
    /// Reads a folder of recordings.
    pub fn read(folder: &Path) -> Operators {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path).expect("it is readable");
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, Recorded(serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}"))))
        };
        Operators(entries.map(|entry| read(&entry.expect("it is readable").path())).collect())
    }

    /// All of them, with the names of their files.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Recorded)> {
        self.0.iter().map(|(file, recorded)| (file.as_str(), recorded))
    }

    /// The recording of an object's kind, for that object.
    pub fn find(&self, object: &Value) -> Option<Recorded> {
        let recorded = self.0.values().find(|recorded| recorded.kind() == kind_of(object))?;
        Some(recorded.of(object))
    }

    /// What an object's operator says once it is ready.
    pub fn answer(&self, object: &Value) -> Answer {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "SecretSynced"}]});
        match (kind_of(object).1, self.find(object)) {
            ("ExternalSecret", _) => Answer { status: Some(ready), secret: Some(generated(object)) },
            ("Pooler", _) => Answer { status: Some(json!({"instances": 1})), secret: None },
            // The object's author has created the Secret.
            ("DBInstance", Some(recorded)) => Answer { status: Some(recorded.ready()), secret: None },
            (_, Some(recorded)) => {
                let mut secret = recorded.at("secret").clone();
                if let Some(name) = object.pointer("/spec/writeConnectionSecretToRef/name") {
                    secret["metadata"]["name"] = name.clone();
                }
                Answer { status: Some(recorded.ready()), secret: Some(secret) }
            }
            (_, None) => Answer::default(),
        }
    }
}

/// What External Secrets makes of a generator: a Secret that the object owns.
fn generated(object: &Value) -> Value {
    let (version, kind) = kind_of(object);
    let metadata = &object["metadata"];
    let owner =
        json!({"apiVersion": version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": object["spec"]["target"]["name"], "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "stringData": {"password": "k3Yv-generated"},
    })
}
