//! The objects of a recording at a time: lines followed one after the other, from the first to where one looks.
//! They are kept as the text that they are in the file, patches beside them, and read when somebody asks: parsed, a
//! hundred thousand objects would fill most of a GiB.

use super::glance::{Beside, Glance, Report};
use super::line::{Change, Header, Line};
use super::patch::apply;
use super::reader::{ReadError, Reader};
use super::redact::widen_old_class;
use conductor::model::{Kind, Name, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// So much of patches is kept beside an object before it is written anew with them.
const LATER_MAX: usize = 2_048;

/// Objects as a recording has them, by kind and place.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    objects: BTreeMap<Kind, BTreeMap<Name, BTreeMap<Name, Kept>>>,
    /// The kinds by their names: a name is looked up with every line.
    kinds: BTreeMap<String, Kind>,
}

/// One object.
#[derive(Clone, Debug)]
struct Kept {
    text: Box<str>,
    /// The patches since then, one a line.
    later: String,
    /// Where among them the last is that writes references, and what it writes beside them.
    held: Option<(Range<usize>, Beside)>,
    /// Whether its spec says something that is the engine's record or somebody's wish, depending on the rest of it.
    is_mixed: bool,
}

/// What a change did to an object.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// As it was; absent where it is new.
    pub old: Option<Value>,
    /// As it is; absent where it is gone.
    pub new: Option<Value>,
}

impl Kept {
    fn new(kind: Kind, object: &Value) -> Kept {
        Kept {
            text: object.to_string().into_boxed_str(),
            later: String::new(),
            held: None,
            is_mixed: is_mixed(kind, object),
        }
    }

    fn value(&self) -> Result<Value, String> {
        let unreadable = |error: serde_json::Error| format!("unreadable: {error}");
        let mut value = serde_json::from_str(&self.text).map_err(unreadable)?;
        for patch in self.later.lines() {
            apply(&mut value, serde_json::from_str(patch).map_err(unreadable)?);
        }
        Ok(value)
    }

    /// Whether a word stands in it. One that JSON would write otherwise may stand anywhere.
    fn mentions(&self, word: &str) -> bool {
        let is_plain =
            word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/'));
        !is_plain || self.text.contains(word) || self.later.contains(word)
    }

    /// Adds a patch. One that writes references takes the place of the one before: a resource for many is told of with
    /// all its references at each of them.
    fn add(&mut self, kind: Kind, patch: &str, beside: Option<Beside>) -> Result<(), String> {
        if let (Some(new), Some((at, old))) = (beside, self.held.clone())
            && new.replaces(old)
        {
            self.later.drain(at);
        }
        let from = self.later.len();
        self.later.push_str(patch);
        self.later.push('\n');
        if let Some(beside) = beside {
            self.held = Some((from..self.later.len(), beside));
        }
        if self.later.len() > LATER_MAX {
            *self = Kept::new(kind, &self.value()?);
        }
        Ok(())
    }
}

/// A name in a claim's spec is its author's, or the record of what it got; a reference to a claim is a holder's, or
/// keeps the resource for it.
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
        Kind::Class(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => false,
    }
}

impl Recorded {
    /// Takes in an object of the beginning.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn put(&mut self, object: &Value) -> Result<(Kind, ObjectKey), String> {
        let (kind, key) = place(object)?;
        self.insert(kind, &key, object);
        Ok((kind, key))
    }

    /// Takes in whatever a line says of an object.
    ///
    /// # Errors
    /// As [`Recorded::put`] and [`Recorded::follow`].
    pub fn take(&mut self, glance: Glance) -> Result<(), String> {
        match glance {
            Glance::Line(Line::Obj { o }) => self.put(&o).map(drop),
            Glance::Line(Line::Ev(change)) => self.follow(change).map(drop),
            Glance::Report(report) => match self.note(&report)? {
                true => Ok(()),
                false => self.follow(report.into_change()?).map(drop),
            },
            Glance::Line(Line::Header(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) | Line::End(_)) => {
                Ok(())
            }
        }
    }

    /// Follows a change.
    ///
    /// # Errors
    /// A change of an object that is not there, or to something that is none.
    pub fn follow(&mut self, change: Change) -> Result<Followed, String> {
        let kind = self.require_kind(&change.kind)?;
        let key = ObjectKey::new(change.ns.as_str(), change.name.as_str());
        let kept = self.find_mut(kind, &key.namespace, &key.name);
        let old = kept.map(|kept| kept.value()).transpose()?;
        let new = match change {
            Change { gone: true, .. } => None,
            Change { new: Some(new), .. } => Some(new),
            Change { patch: Some(patch), .. } => {
                let known = old.as_ref().ok_or_else(|| format!("{key} is changed and was never there"))?;
                let mut new = known.clone();
                apply(&mut new, patch);
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
        Ok(Followed { kind, key, old, new })
    }

    /// Follows a report without reading its object, where it holds no wish whatever the object says. Says whether it did.
    ///
    /// # Errors
    /// As [`Recorded::follow`].
    pub fn note(&mut self, report: &Report) -> Result<bool, String> {
        let kind = self.require_kind(&report.kind)?;
        let Some(kept) = self.find_mut(kind, &report.ns, &report.name) else {
            return Err(format!("{}/{} is changed and was never there", report.ns, report.name));
        };
        let is_plain = match kind {
            Kind::Claim(_) => !(report.names_holders || (report.names_resource && kept.is_mixed)),
            Kind::Resource(_) => !(report.names_holders && kept.is_mixed),
            Kind::Class(_)
            | Kind::Quota
            | Kind::ClusterQuota
            | Kind::Limits
            | Kind::Profile
            | Kind::Namespace => !report.names_holders,
        };
        if is_plain {
            kept.add(kind, &report.patch, report.beside)?;
        }
        Ok(is_plain)
    }

    fn insert(&mut self, kind: Kind, key: &ObjectKey, object: &Value) {
        let of_kind = self.objects.entry(kind).or_default();
        let there = of_kind.entry(key.namespace.clone()).or_default();
        there.insert(key.name.clone(), Kept::new(kind, object));
    }

    fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        if let Some(there) = self.objects.get_mut(&kind).and_then(|of_kind| of_kind.get_mut(&key.namespace)) {
            there.remove(&key.name);
        }
    }

    fn find_mut(&mut self, kind: Kind, namespace: &str, name: &str) -> Option<&mut Kept> {
        self.objects.get_mut(&kind)?.get_mut(namespace)?.get_mut(name)
    }

    fn require_kind(&mut self, name: &str) -> Result<Kind, String> {
        if let Some(kind) = self.kinds.get(name) {
            return Ok(*kind);
        }
        let kind = find_kind(name).ok_or_else(|| format!("kind {name:?} is not known"))?;
        self.kinds.insert(name.to_owned(), kind);
        Ok(kind)
    }

    /// The object at a place; nothing where it is not there or cannot be read.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<Value> {
        self.objects.get(&kind)?.get(&key.namespace)?.get(&key.name)?.value().ok()
    }

    /// All of a kind that have a word somewhere and can be read, with their places, in order.
    pub fn mentioning(&self, kind: Kind, word: &str) -> impl Iterator<Item = (ObjectKey, Value)> {
        let kept = self.of(kind).filter(move |(_, _, kept)| kept.mentions(word));
        kept.filter_map(|(namespace, name, kept)| {
            Some((ObjectKey::new(namespace.clone(), name.clone()), kept.value().ok()?))
        })
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (&Name, &Name, &Kept)> {
        let of_kind = self.objects.get(&kind).into_iter().flatten();
        of_kind.flat_map(|(namespace, there)| there.iter().map(move |(name, kept)| (namespace, name, kept)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them that can be read, by kind and place.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.objects.keys().flat_map(|kind| self.of(*kind)).filter_map(|(_, _, kept)| kept.value().ok())
    }

    /// All of them as the engine reads them, by kind and place.
    ///
    /// # Errors
    /// The first that cannot be read.
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
    let kind = kind.ok_or_else(|| format!("kind {:?} is not known", text("/kind")))?;
    match text("/metadata/name") {
        "" => Err("an object without a name".to_owned()),
        name => Ok((kind, ObjectKey::new(text("/metadata/namespace"), name))),
    }
}

/// An object as the engine reads it.
///
/// # Errors
/// Its metadata cannot be read.
pub fn to_object(kind: Kind, value: impl Borrow<Value>) -> Result<Object, String> {
    into_object(kind, value.borrow().clone())
}

/// As [`to_object`], of a value that nobody else needs.
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

/// A recording followed to a time, or to its end.
#[derive(Clone, Debug)]
pub struct Moment {
    /// What the file says of itself.
    pub header: Header,
    /// The objects by then.
    pub objects: Recorded,
    /// Whether the file stops without its end, and no time before that was asked for.
    pub interrupted: bool,
}

/// The objects of a recording `until` so many milliseconds after its beginning, or at its end.
///
/// # Errors
/// It cannot be read.
pub fn moment(path: &Path, until: Option<u64>) -> Result<Moment, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut objects = Recorded::default();
    while let Some(glance) = reader.next_glance()? {
        if until.zip(glance.at()).is_some_and(|(until, at)| at > until) {
            break;
        }
        objects.take(glance).map_err(|why| reader.damaged_here(why))?;
    }
    Ok(Moment { header: reader.header().clone(), objects, interrupted: reader.was_interrupted() })
}

#[cfg(test)]
mod tests {
    use super::super::glance::report;
    use super::*;
    use conductor::model::TypeId;
    use proptest::prelude::*;
    use serde_json::json;

    /// One report: how many hold the resource, where it says so, and what else it says.
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
            let (mut noted, mut followed) = (Recorded::default(), Recorded::default());
            noted.put(&object).expect("an object");
            followed.put(&object).expect("an object");
            for patch in patches {
                let change = Change {
                    kind: kind.name().to_owned(), ns: "s".to_owned(), name: "db".to_owned(), uid: "r".to_owned(),
                    patch: Some(patch), ..Change::default()
                };
                let line = serde_json::to_string(&Line::Ev(change.clone())).expect("a line") + "\n";
                let report = report(line.as_bytes()).expect("a report");
                prop_assert!(noted.note(&report).expect("it is there"));
                followed.follow(change).expect("it is there");
            }
            let key = ObjectKey::new("s", "db");
            prop_assert_eq!(noted.get(kind, &key), followed.get(kind, &key));
        }
    }
}
