//! Reading a world for the plain scheduler: JSON in, plain structs out. Nothing is decided here.

use super::{Amounts, Ask, Budget, Db, Limit, Maker, Oracle, Other, Reference};
use conductor::model::types::{FieldRule, Rule};
use conductor::model::{Kind, Object, Quantity, Selector, TypeId, Version, VersionRange};
use conductor::predicates::of_field;
use serde_json::Value;
use std::collections::BTreeSet;

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).filter(|t| !t.is_empty())
}

fn engine(value: &Value) -> Option<String> {
    let lower = text(value)?.trim().to_lowercase();
    Some(if lower == "postgres" { "postgresql".to_owned() } else { lower })
}

pub fn amounts(value: &Value) -> Amounts {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, q)| (name.clone(), Quantity::from_json(q).expect("a quantity"))).collect()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}

fn selector(value: &Value) -> Selector {
    if value.is_null() { Selector::default() } else { Selector::from_json(value).expect("a selector") }
}

/// The fields that the oracle has rules of its own for.
const KNOWN: [&str; 4] = ["engine", "version", "highly-available", "requests"];

/// The values of all other fields of databases, on the claim's side or on the resource's.
fn others(spec: &Value, is_claim: bool) -> Vec<Other> {
    let fields = TypeId::RELATIONAL_DATABASE.rules().fields.iter().enumerate();
    let unknown = fields.filter(|(_, field)| !KNOWN.contains(&field.claim));
    let read = |(at, field): (usize, &FieldRule)| Other {
        predicate: of_field(TypeId::RELATIONAL_DATABASE, at).name(),
        field: field.resource,
        rule: field.rule,
        value: spec[if is_claim { field.claim } else { field.resource }].clone(),
    };
    unknown.map(read).collect()
}

fn name(value: &Value, aliases: &[(&str, &str)]) -> Option<String> {
    let name = text(value)?.trim().to_lowercase();
    let alias = aliases.iter().find(|(spelling, _)| *spelling == name);
    Some(alias.map_or(name.clone(), |(_, name)| (*name).to_owned()))
}

impl Other {
    /// Why it refuses that, where names are compared.
    pub(super) fn refusal(&self, have: &Other) -> String {
        let Rule::Name { aliases } = self.rule else { return String::new() };
        let (want, have) = (name(&self.value, aliases), name(&have.value, aliases));
        let have = have.unwrap_or_else(|| "not given".to_owned());
        format!("its {} is {have}, not {}", self.field, want.unwrap_or_default())
    }

    /// Whether a claim that wants this refuses a resource that has that.
    pub(super) fn refuses(&self, have: &Other) -> bool {
        let (want, have) = (&self.value, &have.value);
        match self.rule {
            Rule::Name { aliases } => {
                name(want, aliases).is_some_and(|want| Some(want) != name(have, aliases))
            }
            Rule::Flag => want == true && have != true,
            Rule::Contains => strings(want).iter().any(|name| !strings(have).contains(name)),
            Rule::VersionRange => {
                let version = text(have).map(|have| Version::parse(&have).expect("a version"));
                let range = text(want).map(|want| VersionRange::parse(&want).expect("a range"));
                range.is_some_and(|range| !version.is_some_and(|version| range.matches(&version)))
            }
        }
    }
}

impl Db {
    pub fn read(object: &Object) -> Db {
        let (spec, status) = (&object.body["spec"], &object.body["status"]);
        let slots = spec["sharing"]["maxClaims"].as_i64().unwrap_or(1);
        let references = spec["claimRefs"].as_array().into_iter().flatten().map(|r| Reference {
            claim: format!("{}/{}", r["namespace"].as_str().unwrap_or(""), r["name"].as_str().unwrap_or("")),
            uid: text(&r["uid"]),
            requests: amounts(&r["requests"]),
            // Its claim says, once all are read.
            exclusive: false,
        });
        let template = !spec["template"].is_null();
        let meta = &object.metadata;
        let readable = slots >= 1;
        Db {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            readable,
            class: text(&spec["class"]).filter(|_| readable),
            engine: engine(&spec["engine"]),
            // What is reported wins over what was to be made.
            version: text(&status["version"])
                .or_else(|| text(&spec["version"]))
                .map(|v| Version::parse(&v).expect("a version")),
            highly_available: spec["highly-available"] == true,
            capabilities: strings(&spec["capabilities"]).into_iter().collect(),
            labels: meta.labels.clone().unwrap_or_default(),
            capacity: amounts(&spec["capacity"]),
            slots: slots.max(1) as usize,
            allowed: strings(&spec["sharing"]["allowedNamespaces"]),
            cordoned: spec["unschedulable"] == true,
            deleting: meta.deletion_timestamp.is_some(),
            claimable: match status["phase"].as_str() {
                Some("Available" | "Bound") => true,
                None | Some("Pending" | "Creating") => !template,
                Some(_) => false,
            },
            says_released: status["phase"] == "Released"
                || status["phase"] == "Failed"
                    && status["conditions"].as_array().into_iter().flatten().any(|condition| {
                        condition["type"] == "Ready" && condition["reason"] == "ReclaimFailed"
                    }),
            references: references.collect(),
            gone: BTreeSet::new(),
            made_for: meta.annotations.as_ref().and_then(|a| a.get("conductor.io/provisioned-for").cloned()),
            reclaim: spec["reclaimPolicy"].as_str().unwrap_or("Retain").to_owned(),
            others: others(spec, false),
        }
    }
}

impl Ask {
    pub fn read(object: &Object, now: i64) -> Ask {
        let (spec, status) = (&object.body["spec"], &object.body["status"]);
        let meta = &object.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let range = text(&spec["version"]).map(|r| VersionRange::parse(&r));
        let readable = !matches!(range, Some(Err(_)));
        Ask {
            key: format!("{namespace}/{}", meta.name.as_deref().unwrap_or("")),
            namespace,
            uid: meta.uid.clone().unwrap_or_default(),
            priority: spec["priority"].as_i64().unwrap_or(0),
            created: meta.creation_timestamp.as_ref().map_or(now, |t| t.0.as_millisecond()),
            deleting: meta.deletion_timestamp.is_some(),
            phase: status["phase"].as_str().unwrap_or("Pending").to_owned(),
            recorded: text(&status["resourceRef"]["name"]),
            recorded_uid: text(&status["resourceRef"]["uid"]),
            misbound: status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Bound" && condition["reason"] == "Misbound"),
            named: text(&spec["resourceName"]),
            profile: meta
                .annotations
                .as_ref()
                .and_then(|a| a.get("conductor.io/scheduling-profile").cloned()),
            class: spec["class"].as_str().map(str::to_owned),
            classes: strings(&spec["classes"]),
            engine: engine(&spec["engine"]).filter(|_| readable),
            counted_engine: engine(&spec["engine"]),
            readable,
            range: range.and_then(Result::ok),
            highly_available: spec["highly-available"] == true,
            capabilities: strings(&spec["requests"]).into_iter().collect(),
            selector: selector(&spec["selector"]),
            requests: amounts(&spec["resources"]["requests"]),
            exclusive: readable && spec["exclusive"] == true,
            others: others(spec, true),
        }
    }
}

impl Maker {
    pub(super) fn read(object: &Object) -> Maker {
        let (body, meta) = (&object.body, &object.metadata);
        let annotation = meta.annotations.as_ref().and_then(|a| a.get("conductor.io/is-default-class"));
        let ranges = text(&body["version"]).into_iter();
        Maker {
            name: meta.name.clone().unwrap_or_default(),
            default: annotation.is_some_and(|v| v == "true"),
            created: meta.creation_timestamp.as_ref().map_or(i64::MIN, |t| t.0.as_millisecond()),
            deleting: meta.deletion_timestamp.is_some(),
            template: !body["template"].is_null(),
            engine: engine(&body["engine"]),
            ranges: ranges.map(|r| VersionRange::parse(&r).expect("a range")).collect(),
            highly_available: body["highly-available"].as_bool(),
            capabilities: body["capabilities"]
                .as_array()
                .map(|_| strings(&body["capabilities"]).into_iter().collect()),
            labels: serde_json::from_value(body["labels"].clone()).unwrap_or_default(),
            slots: body["sharing"]["maxClaims"].as_i64().unwrap_or(1),
            sizes: body["capacity"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
            takes: texts(&body["template"]).join("\n"),
        }
    }
}

/// Every text in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

impl Limit {
    pub(super) fn read(value: &Value) -> Limit {
        Limit {
            class: text(&value["class"]),
            engine: engine(&value["engine"]),
            claims: value["claims"].as_i64(),
            requests: amounts(&value["requests"]),
        }
    }
}

impl Oracle {
    pub fn read<'a>(objects: impl IntoIterator<Item = &'a Object>, now: i64) -> Oracle {
        let mut oracle = Oracle::default();
        for object in objects {
            let (spec, meta) = (&object.body["spec"], &object.metadata);
            let (namespace, name) =
                (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
            match object.kind {
                Kind::Claim(_) => oracle.asks.push(Ask::read(object, now)),
                Kind::Resource(_) => oracle.dbs.push(Db::read(object)),
                Kind::Class(_) => oracle.makers.push(Maker::read(object)),
                Kind::Quota | Kind::ClusterQuota => {
                    let own = object.kind == Kind::Quota;
                    let title = if own {
                        format!("quota {namespace}/{name}")
                    } else {
                        format!("cluster quota {name}")
                    };
                    oracle.budgets.push(Budget {
                        title,
                        namespace: own.then_some(namespace),
                        selector: selector(&spec["namespaceSelector"]),
                        limits: spec["limits"].as_array().into_iter().flatten().map(Limit::read).collect(),
                    });
                }
                Kind::Limits => {
                    let three = ["min", "max", "default"].map(|part| amounts(&spec[part]));
                    oracle.bounds.insert((namespace, name), three);
                }
                Kind::Profile => {
                    let profile = (spec["preferNewest"] == true, strings(&spec["order"]));
                    oracle.profiles.insert(name, profile);
                }
                Kind::Namespace => {
                    drop(oracle.namespaces.insert(name, meta.labels.clone().unwrap_or_default()))
                }
            }
        }
        let alone = oracle.asks.iter().filter(|ask| ask.exclusive).map(|ask| ask.uid.clone());
        let alone: BTreeSet<String> = alone.collect();
        for reference in oracle.dbs.iter_mut().flat_map(|db| &mut db.references) {
            reference.exclusive = reference.uid.as_ref().is_some_and(|uid| alone.contains(uid));
        }
        oracle.dbs.sort_by(|a, b| a.name.cmp(&b.name));
        oracle.asks.sort_by(|a, b| a.uid.cmp(&b.uid));
        // The namespace's own quotas are checked first, then the cluster's.
        oracle.budgets.sort_by_key(|b| (b.namespace.is_none(), b.title.clone()));
        oracle
    }
}
