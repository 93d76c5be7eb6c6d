//! The objects of a recording at a time: lines followed one after the other, from the first to where one looks.

use super::line::{Change, Header, Line};
use super::patch::apply;
use super::reader::{ReadError, Reader};
use conductor::model::{Kind, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Objects as a recording has them, by kind and place.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    objects: BTreeMap<(Kind, ObjectKey), Value>,
}

impl Recorded {
    /// Takes in an object of the beginning.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn put(&mut self, object: Value) -> Result<(Kind, ObjectKey), String> {
        let (kind, key) = place(&object)?;
        self.objects.insert((kind, key.clone()), object);
        Ok((kind, key))
    }

    /// Follows a change. Returns what it was before and where it is.
    ///
    /// # Errors
    /// A change of an object that is not there, or to something that is none.
    pub fn follow(&mut self, change: Change) -> Result<(Kind, ObjectKey, Option<Value>), String> {
        let kind = find_kind(&change.kind).ok_or_else(|| format!("kind {:?} is not known", change.kind))?;
        let key = ObjectKey::new(change.ns.as_str(), change.name.as_str());
        let place = (kind, key);
        let old = match change {
            Change { gone: true, .. } => self.objects.remove(&place),
            Change { new: Some(new), .. } => self.objects.insert(place.clone(), new),
            Change { patch: Some(patch), .. } => {
                let object = self
                    .objects
                    .get_mut(&place)
                    .ok_or_else(|| format!("{} is changed and was never there", place.1))?;
                let old = object.clone();
                apply(object, patch);
                Some(old)
            }
            Change { new: None, patch: None, gone: false, .. } => {
                return Err(format!("a change of {} that changes nothing", place.1));
            }
        };
        Ok((place.0, place.1, old))
    }

    /// Follows a patch, where nobody asks what was before.
    ///
    /// # Errors
    /// As [`Recorded::follow`].
    pub fn follow_patch(&mut self, change: Change) -> Result<(), String> {
        let kind = find_kind(&change.kind).ok_or_else(|| format!("kind {:?} is not known", change.kind))?;
        let place = (kind, ObjectKey::new(change.ns.as_str(), change.name.as_str()));
        let object = self.objects.get_mut(&place);
        let object = object.ok_or_else(|| format!("{} is changed and was never there", place.1))?;
        apply(object, change.patch.unwrap_or_default());
        Ok(())
    }

    /// The object at a place.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(&(kind, key.clone()))
    }

    /// All of a kind, with their places.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter().filter(move |((k, _), _)| *k == kind).map(|((_, key), value)| (key, value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// All of them, in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }

    /// All of them as the engine reads them.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn to_objects(&self) -> Result<Vec<Object>, String> {
        self.objects.iter().map(|((kind, _), value)| to_object(*kind, value)).collect()
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
pub fn to_object(kind: Kind, value: &Value) -> Result<Object, String> {
    let mut body = value.as_object().cloned().unwrap_or_default();
    let metadata = body.remove("metadata").unwrap_or_default();
    body.remove("apiVersion");
    body.remove("kind");
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
    while let Some(line) = reader.next_line()? {
        if until.zip(line.at()).is_some_and(|(until, at)| at > until) {
            break;
        }
        let taken = match line {
            Line::Obj { o } => objects.put(o).map(drop),
            Line::Ev(change) => objects.follow(change).map(drop),
            Line::Header(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) | Line::End(_) => Ok(()),
        };
        taken.map_err(|why| ReadError::Damaged {
            file: path.display().to_string(),
            line: reader.count(),
            why,
        })?;
    }
    Ok(Moment { header: reader.header().clone(), objects, interrupted: reader.was_interrupted() })
}
