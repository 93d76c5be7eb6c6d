//! The objects of a recording at some time, after applying its lines in order. Objects are kept as text with patches
//! beside them and parsed on demand: a hundred thousand parsed objects would fill most of a GiB.

use super::line::{Change, Header, Line};
use super::line_scan::{Beside, EnginePatch, ScannedLine};
use super::reader::{ReadError, Reader};
use super::redact::widen_old_class;
use crate::merge_patch::merge;
use conductor::model::{Kind, Name, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Maximum size of an object's patches before they are merged into its text.
const PATCHES_MAX: usize = 2_048;

/// Recorded objects by kind and key.
#[derive(Clone, Debug, Default)]
pub struct RecordedObjects {
    objects: BTreeMap<Kind, BTreeMap<Name, BTreeMap<Name, StoredObject>>>,
    /// Kinds by name, for the look-up in every line.
    kinds: BTreeMap<String, Kind>,
}

/// One object.
#[derive(Clone, Debug)]
struct StoredObject {
    text: Box<str>,
    /// Patches not yet merged, one per line.
    patches: String,
    /// Position of the last patch of references, and what else that patch writes.
    held: Option<(Range<usize>, Beside)>,
    /// Whether its spec has a field that is the engine's or a user's, depending on other fields.
    is_mixed: bool,
}

/// The effect of a change.
#[derive(Clone, Debug)]
pub(crate) struct AppliedChange {
    pub kind: Kind,
    pub key: ObjectKey,
    /// The object before; `None` if it is new.
    pub old: Option<Value>,
    /// The object after; `None` if it was deleted.
    pub new: Option<Value>,
}

impl StoredObject {
    fn new(kind: Kind, object: &Value) -> StoredObject {
        StoredObject {
            text: object.to_string().into_boxed_str(),
            patches: String::new(),
            held: None,
            is_mixed: is_mixed(kind, object),
        }
    }

    fn value(&self) -> Result<Value, String> {
        let unreadable = |error: serde_json::Error| format!("unreadable: {error}");
        let mut value = serde_json::from_str(&self.text).map_err(unreadable)?;
        for patch in self.patches.lines() {
            merge(&mut value, serde_json::from_str(patch).map_err(unreadable)?);
        }
        Ok(value)
    }

    /// Whether the object may contain a text. Texts that JSON would escape count as contained.
    fn mentions(&self, text: &str) -> bool {
        let is_plain =
            text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/'));
        !is_plain || self.text.contains(text) || self.patches.contains(text)
    }

    /// Adds a patch. A patch of references replaces the one before: each repeats all references of a shared resource.
    fn add(&mut self, kind: Kind, patch: &str, beside: Option<Beside>) -> Result<(), String> {
        if let (Some(new), Some((at, old))) = (beside, self.held.clone())
            && new.replaces(old)
        {
            self.patches.drain(at);
        }
        let from = self.patches.len();
        self.patches.push_str(patch);
        self.patches.push('\n');
        if let Some(beside) = beside {
            self.held = Some((from..self.patches.len(), beside));
        }
        if self.patches.len() > PATCHES_MAX {
            *self = StoredObject::new(kind, &self.value()?);
        }
        Ok(())
    }
}

/// The resource name in a claim's spec is a user's or the engine's; a reference to a claim is a holder's or a user's
/// reservation.
fn is_mixed(kind: Kind, object: &Value) -> bool {
    match kind {
        Kind::Claim(_) => object.pointer("/spec/resourceName").is_some(),
        Kind::Resource(_) => object.pointer("/spec/claimRefs").is_some_and(|refs| {
            let holds = |r: &Value| {
                let uid = r.get("uid").and_then(Value::as_str).unwrap_or_default();
                !uid.is_empty() && r.get("reserved").is_none()
            };
            !refs.as_array().is_some_and(|refs| refs.iter().all(holds))
        }),
        _ => false,
    }
}

impl RecordedObjects {
    /// Adds an initial object.
    pub(crate) fn put(&mut self, object: &Value) -> Result<(Kind, ObjectKey), String> {
        let (kind, key) = place(object)?;
        self.insert(kind, &key, object);
        Ok((kind, key))
    }

    /// Applies a line.
    pub(crate) fn take(&mut self, line: ScannedLine) -> Result<(), String> {
        match line {
            ScannedLine::Line(Line::Obj { o }) => self.put(&o).map(drop),
            ScannedLine::Line(Line::Ev(change)) => self.apply(change).map(drop),
            ScannedLine::EnginePatch(report) => match self.apply_engine_patch(&report)? {
                true => Ok(()),
                false => self.apply(report.into_change()?).map(drop),
            },
            ScannedLine::Line(
                Line::Header(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) | Line::End(_),
            ) => Ok(()),
        }
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: Change) -> Result<AppliedChange, String> {
        let kind = self.require_kind(&change.kind)?;
        let key = ObjectKey::new(change.ns.as_str(), change.name.as_str());
        let kept = self.find_mut(kind, &key.namespace, &key.name);
        let old = kept.map(|kept| kept.value()).transpose()?;
        let new = match change {
            Change { gone: true, .. } => None,
            Change { new: Some(new), .. } => Some(new),
            Change { patch: Some(patch), .. } => {
                let known = old.as_ref().ok_or_else(|| format!("a change of {key}, which does not exist"))?;
                let mut new = known.clone();
                merge(&mut new, patch);
                Some(new)
            }
            Change { new: None, patch: None, gone: false, .. } => {
                return Err(format!("a change of {key} that changes nothing"));
            }
        };
        match &new {
            Some(new) => self.insert(kind, &key, new),
            None => self.remove(kind, &key),
        }
        Ok(AppliedChange { kind, key, old, new })
    }

    /// Applies a patch without parsing the object, unless the patch may change a user's field. Returns whether it did.
    pub(crate) fn apply_engine_patch(&mut self, patch: &EnginePatch) -> Result<bool, String> {
        let kind = self.require_kind(&patch.kind)?;
        let Some(kept) = self.find_mut(kind, &patch.ns, &patch.name) else {
            return Err(format!("a change of {}/{}, which does not exist", patch.ns, patch.name));
        };
        let is_plain = match kind {
            Kind::Claim(_) => !(patch.names_holders || (patch.names_resource && kept.is_mixed)),
            Kind::Resource(_) => !(patch.names_holders && kept.is_mixed),
            _ => !patch.names_holders,
        };
        if is_plain {
            kept.add(kind, &patch.patch, patch.beside)?;
        }
        Ok(is_plain)
    }

    fn insert(&mut self, kind: Kind, key: &ObjectKey, object: &Value) {
        let of_kind = self.objects.entry(kind).or_default();
        let there = of_kind.entry(key.namespace.clone()).or_default();
        there.insert(key.name.clone(), StoredObject::new(kind, object));
    }

    fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        if let Some(there) = self.objects.get_mut(&kind).and_then(|of_kind| of_kind.get_mut(&key.namespace)) {
            there.remove(&key.name);
        }
    }

    fn find_mut(&mut self, kind: Kind, namespace: &str, name: &str) -> Option<&mut StoredObject> {
        self.objects.get_mut(&kind)?.get_mut(namespace)?.get_mut(name)
    }

    fn require_kind(&mut self, name: &str) -> Result<Kind, String> {
        if let Some(kind) = self.kinds.get(name) {
            return Ok(*kind);
        }
        let kind = find_kind(name).ok_or_else(|| format!("unknown kind {name:?}"))?;
        self.kinds.insert(name.to_owned(), kind);
        Ok(kind)
    }

    /// Finds and parses an object.
    pub(crate) fn get(&self, kind: Kind, key: &ObjectKey) -> Option<Value> {
        self.objects.get(&kind)?.get(&key.namespace)?.get(&key.name)?.value().ok()
    }

    /// All objects of a kind that may contain a text, parsed, sorted by key.
    pub(crate) fn mentioning(&self, kind: Kind, text: &str) -> impl Iterator<Item = (ObjectKey, Value)> {
        let kept = self.of(kind).filter(move |(_, _, kept)| kept.mentions(text));
        kept.filter_map(|(namespace, name, kept)| {
            Some((ObjectKey::new(namespace.clone(), name.clone()), kept.value().ok()?))
        })
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (&Name, &Name, &StoredObject)> {
        let of_kind = self.objects.get(&kind).into_iter().flatten();
        of_kind.flat_map(|(namespace, there)| there.iter().map(move |(name, kept)| (namespace, name, kept)))
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects, parsed, sorted by kind and key.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.objects.keys().flat_map(|kind| self.of(*kind)).filter_map(|(_, _, kept)| kept.value().ok())
    }

    /// All objects as the engine takes them, sorted by kind and key.
    ///
    /// # Errors
    /// The first object that cannot be parsed.
    pub fn to_objects(&self) -> Result<Vec<Object>, String> {
        let kinds = self.objects.keys();
        let kept = kinds.flat_map(|kind| self.of(*kind).map(move |(_, _, kept)| (*kind, kept)));
        kept.map(|(kind, kept)| into_object(kind, kept.value()?)).collect()
    }
}

fn find_kind(name: &str) -> Option<Kind> {
    let conductor = Kind::find("conductor.io/v1alpha1", name);
    let storage = conductor::model::TypeId::all()
        .find_map(|ty| Kind::find(&format!("{}/{}", ty.rules().group, ty.rules().version), name));
    conductor.or(storage).or_else(|| Kind::find("v1", name))
}

fn place(object: &Value) -> Result<(Kind, ObjectKey), String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = Kind::find(text("/apiVersion"), text("/kind"));
    let kind = kind.ok_or_else(|| format!("unknown kind {:?}", text("/kind")))?;
    match text("/metadata/name") {
        "" => Err("an object without a name".to_owned()),
        name => Ok((kind, ObjectKey::new(text("/metadata/namespace"), name))),
    }
}

/// Converts JSON to an object of the engine.
///
/// # Errors
/// Its metadata is invalid.
pub fn to_object(kind: Kind, value: impl Borrow<Value>) -> Result<Object, String> {
    into_object(kind, value.borrow().clone())
}

/// As [`to_object`], consuming the value.
pub(crate) fn into_object(kind: Kind, value: Value) -> Result<Object, String> {
    let mut body = match value {
        Value::Object(body) => body,
        _ => Map::new(),
    };
    let metadata = body.remove("metadata").unwrap_or_default();
    body.remove("apiVersion");
    body.remove("kind");
    if let Kind::Class(_) = kind {
        widen_old_class(&mut body);
    }
    let metadata: ObjectMeta = serde_json::from_value(metadata).map_err(|e| format!("metadata: {e}"))?;
    Ok(Object { kind, metadata, body: Value::Object(body) })
}

/// A recording's objects at some time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The file's header.
    pub header: Header,
    /// The objects at that time.
    pub objects: RecordedObjects,
    /// Whether the file stopped without its end line before that time.
    pub interrupted: bool,
}

/// Reads a recording up to `until` milliseconds after its beginning, or to its end.
///
/// # Errors
/// It cannot be read.
pub fn snapshot_at(path: &Path, until: Option<u64>) -> Result<Snapshot, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut objects = RecordedObjects::default();
    while let Some(line) = reader.next_scanned()? {
        if until.zip(line.at()).is_some_and(|(until, at)| at > until) {
            break;
        }
        objects.take(line).map_err(|why| reader.damaged_here(why))?;
    }
    Ok(Snapshot { header: reader.header().clone(), objects, interrupted: reader.was_interrupted() })
}

#[cfg(test)]
mod tests {
    use super::super::line_scan::report;
    use super::*;
    use conductor::model::TypeId;
    use proptest::prelude::*;
    use serde_json::json;

    /// Patches of one resource: number of holders, if written, and what else.
    fn patches() -> impl Strategy<Value = Vec<Value>> {
        let patch = (prop::option::of(0..30_usize), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(holders, revision, generation, status)| {
                let mut patch = json!({});
                if let Some(most) = holders {
                    let named =
                        |n| json!({"namespace": "a", "name": format!("c-{n}"), "uid": format!("u-{n}")});
                    patch["spec"]["claimRefs"] = (0..most).map(named).collect();
                }
                if revision {
                    patch["metadata"]["resourceVersion"] = json!(format!("{}", holders.unwrap_or(77)));
                }
                if generation {
                    patch["metadata"]["generation"] = json!(holders.unwrap_or(88));
                }
                if status {
                    patch["status"] = json!({"allocated": {"storage": holders}, "phase": "Bound"});
                }
                patch
            },
        );
        prop::collection::vec(patch, 0..30)
    }

    proptest! {
        #[test]
        fn what_is_noted_leads_to_the_same_object_as_what_is_followed(patches in patches()) {
            let kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
            let object = json!({
                "apiVersion": kind.api_version(), "kind": kind.name(),
                "metadata": {"namespace": "s", "name": "db", "uid": "r", "resourceVersion": "1"}, "spec": {"engine": "x"},
            });
            let (mut noted, mut followed) = (RecordedObjects::default(), RecordedObjects::default());
            noted.put(&object).expect("an object");
            followed.put(&object).expect("an object");
            for patch in patches {
                let change = Change {
                    kind: kind.name().to_owned(), ns: "s".to_owned(), name: "db".to_owned(), uid: "r".to_owned(),
                    patch: Some(patch), ..Change::default()
                };
                let line = serde_json::to_string(&Line::Ev(change.clone())).expect("a line") + "\n";
                let report = report(line.as_bytes()).expect("a report");
                prop_assert!(noted.apply_engine_patch(&report).expect("it is there"));
                followed.apply(change).expect("it is there");
            }
            let key = ObjectKey::new("s", "db");
            prop_assert_eq!(noted.get(kind, &key), followed.get(kind, &key));
        }
    }
}
