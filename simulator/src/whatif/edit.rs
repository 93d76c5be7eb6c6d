//! Edits of a recorded state: what an administrator or an outage would do to the objects, before anything is
//! decided about them. What follows from an edit is the engine's to say.

use super::copies::{COPIES_MAX, copy};
use super::target::{FieldPath, Target};
use crate::load::{UnknownField, unknown_fields};
use crate::plan::unreadable;
use conductor::model::{Kind, Name, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::fmt;
use thiserror::Error;

/// One thing that is done to the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A manifest is applied. Of an object that is there, what the cluster wrote stays: UID, times, finalizers,
    /// status, and who holds it.
    Apply(Box<Object>),
    /// A field is set, or removed where the value is null.
    Set {
        /// Whose field.
        target: Target,
        /// Which field.
        path: FieldPath,
        /// What it becomes.
        value: Value,
    },
    /// The object is there no longer, and nobody asked it to leave. A namespace takes along what is in it.
    Lose(Target),
    /// Its deletion is asked for: what is protected waits, what is held is reclaimed by its policy. With a namespace
    /// goes everything that is in it.
    Delete(Target),
    /// So many more claims like one that is there, or resources like one. They come after all that wait.
    Copies {
        /// Like this one.
        like: Target,
        /// How many.
        count: usize,
    },
}

/// Why an edit cannot be made. Every one is the caller's to mend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// Not a target.
    #[error("{text:?} names no object: write KIND/NAME or KIND/NAMESPACE/NAME, such as claim/team-a/orders")]
    NoTarget {
        /// As written.
        text: String,
    },
    /// Not a kind.
    #[error(
        "{word:?} is no kind: write claim, resource, class, quota, clusterquota, limits, profile or namespace"
    )]
    NoKind {
        /// As written.
        word: String,
    },
    /// Not a path.
    #[error("field {path:?}: {why}; write a path such as spec.capacity.storage or metadata.labels['a/b']")]
    NoPath {
        /// As written.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Not an edit.
    #[error(
        "{text:?} sets nothing: write KIND/[NAMESPACE/]NAME:FIELD=VALUE, such as resource/db-1:spec.version=16"
    )]
    NoSet {
        /// As written.
        text: String,
    },
    /// Not a value.
    #[error("the value of {path} cannot be read: {why}")]
    NoValue {
        /// Which field.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// No such object.
    #[error("there is no {target} in the state; of that kind there is: {there}")]
    Missing {
        /// What was meant.
        target: String,
        /// What there is.
        there: String,
    },
    /// A field that says which object it is.
    #[error("{path} says which object it is, and cannot be set: apply another object with -f instead")]
    Identity {
        /// Which field.
        path: String,
    },
    /// A field that no schema names: setting it would change nothing, and say so.
    #[error("{target}: {field}")]
    NoField {
        /// Whose field.
        target: String,
        /// Which field, and which was most likely meant.
        field: UnknownField,
    },
    /// The engine cannot read the object after the edit: it would drop out, and the answer be about another state.
    #[error("{edit}: then {object} cannot be read: {why}")]
    Broken {
        /// What was tried.
        edit: String,
        /// Which object.
        object: String,
        /// Which field, what is wrong with it, what to write instead.
        why: String,
    },
    /// More than fit into memory.
    #[error("{count} more like {target} are too many: ask for at most {COPIES_MAX}")]
    TooMany {
        /// How many were asked for.
        count: usize,
        /// Like which.
        target: String,
    },
    /// Only claims and resources can be copied.
    #[error("{target} cannot be copied: name a claim or a resource")]
    NoCopies {
        /// What was meant.
        target: String,
    },
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Apply(object) => {
                write!(f, "apply {} {}", object.kind.name(), crate::world::key_of(object))
            }
            Edit::Set { target, path, value: Value::Null } => write!(f, "remove {path} of {target}"),
            Edit::Set { target, path, value } => write!(f, "set {path} of {target} to {value}"),
            Edit::Lose(target) => write!(f, "lose {target}"),
            Edit::Delete(target) => write!(f, "delete {target}"),
            Edit::Copies { like, count } => write!(f, "add {count} like {like}"),
        }
    }
}

impl Edit {
    /// Reads `KIND/[NAMESPACE/]NAME:FIELD=VALUE`; what a value is, [`read_value`] says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_set(text: &str, namespace: &str, system_namespace: &str) -> Result<Edit, EditError> {
        let wrong = || EditError::NoSet { text: text.to_owned() };
        let (target, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (path, value) = rest.split_once('=').ok_or_else(wrong)?;
        let target = Target::read(target, namespace, system_namespace)?;
        let path = FieldPath::read(path)?;
        if path.is_identity() {
            return Err(EditError::Identity { path: path.to_string() });
        }
        let value = read_value(value, path.is_text())
            .map_err(|why| EditError::NoValue { path: path.to_string(), why })?;
        if let Some(field) = unknown_fields(target.kind, &path.around(&value)).into_iter().next() {
            return Err(EditError::NoField { target: target.to_string(), field });
        }
        Ok(Edit::Set { target, path, value })
    }

    /// Where the object is that it speaks of.
    pub(super) fn place(&self) -> (Kind, ObjectKey) {
        match self {
            Edit::Apply(object) => (object.kind, crate::world::key_of(object)),
            Edit::Set { target, .. } | Edit::Lose(target) | Edit::Delete(target) => {
                (target.kind, target.key.clone())
            }
            Edit::Copies { like, .. } => (like.kind, like.key.clone()),
        }
    }

    /// The namespace that goes, and everything in it.
    pub(super) fn namespace(&self) -> Option<&Name> {
        match self {
            Edit::Lose(target) | Edit::Delete(target) if target.kind == Kind::Namespace => {
                Some(&target.key.name)
            }
            Edit::Lose(_) | Edit::Delete(_) | Edit::Apply(_) | Edit::Set { .. } | Edit::Copies { .. } => None,
        }
    }

    /// Makes the edit.
    ///
    /// # Errors
    /// Why it cannot be made; `objects` are then as they were.
    pub fn make(&self, objects: &mut Vec<Object>) -> Result<(), EditError> {
        match self {
            Edit::Apply(object) => {
                self.require_readable(object)?;
                apply(objects, object);
            }
            Edit::Set { target, path, value } => {
                let at = target.find(objects)?;
                let edited = set(&objects[at], path, value).map_err(|error| match error {
                    SetError::Path(error) => error,
                    SetError::Metadata(why) => self.broken(&objects[at], why),
                })?;
                // What could not be read before is not the edit's doing.
                if unreadable(&objects[at]).is_none() {
                    self.require_readable(&edited)?;
                }
                objects[at] = edited;
            }
            Edit::Lose(target) => lose(objects, &target.find_all(objects)?),
            Edit::Delete(target) => delete(objects, &target.find_all(objects)?),
            Edit::Copies { like, count } => copy(objects, like, *count)?,
        }
        Ok(())
    }

    fn require_readable(&self, object: &Object) -> Result<(), EditError> {
        unreadable(object).map_or(Ok(()), |why| Err(self.broken(object, why)))
    }

    fn broken(&self, object: &Object, why: String) -> EditError {
        let object = format!("{} {}", object.kind.name(), crate::world::key_of(object));
        EditError::Broken { edit: self.to_string(), object, why }
    }
}

/// The value that a text on the command line means: JSON where it is a list, a mapping, a quoted text, a whole number,
/// `true`, `false` or `null`; nothing at all is `null` too. Lists and mappings may be written as YAML writes them in one
/// line. Everything else is text as it stands: `>= 16`, `*` and `!=15.6` are ranges, and `9.10` is not 9.1.
fn read_value(text: &str, is_text: bool) -> Result<Value, String> {
    if text.starts_with(['{', '[']) {
        let as_yaml = || serde_saphyr::from_str(text).map_err(|e| first_line(&e.to_string()));
        return serde_json::from_str(text).or_else(|_| as_yaml());
    }
    if let Some(inner) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Ok(Value::from(inner.replace("\'\'", "\'")));
    }
    Ok(match serde_json::from_str(text) {
        _ if text.is_empty() => Value::Null,
        Ok(Value::Number(number)) if number.is_f64() || is_text => Value::from(text),
        Ok(Value::Bool(_)) if is_text => Value::from(text),
        Ok(value) => value,
        Err(_) => Value::from(text),
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Why a field cannot be set.
enum SetError {
    Path(EditError),
    Metadata(String),
}

fn apply(objects: &mut Vec<Object>, new: &Object) {
    let key = crate::world::key_of(new);
    let Some(old) = objects.iter_mut().find(|o| o.kind == new.kind && crate::world::key_of(o) == key) else {
        return objects.push(new.clone());
    };
    let mut merged = new.clone();
    let ObjectMeta { uid, creation_timestamp, finalizers, resource_version, generation, .. } = &old.metadata;
    merged.metadata.uid = uid.clone().or(merged.metadata.uid);
    merged.metadata.creation_timestamp = creation_timestamp.clone();
    merged.metadata.finalizers = finalizers.clone();
    merged.metadata.resource_version = resource_version.clone();
    merged.metadata.generation = generation.map(|g| g + 1);
    keep(&old.body, &mut merged.body, "/status");
    keep(&old.body, &mut merged.body, "/spec/claimRefs");
    if let Kind::Claim(_) = old.kind {
        keep(&old.body, &mut merged.body, "/spec/resourceName");
    }
    *old = merged;
}

/// Takes a field over that the manifest does not speak of.
fn keep(old: &Value, new: &mut Value, pointer: &str) {
    let (Some(value), None) = (old.pointer(pointer), new.pointer(pointer)) else { return };
    let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    if let Some(Value::Object(map)) = new.pointer_mut(parent) {
        map.insert(field.to_owned(), value.clone());
    }
}

fn set(object: &Object, path: &FieldPath, value: &Value) -> Result<Object, SetError> {
    let mut whole = object.to_json();
    path.write(&mut whole, value.clone()).map_err(SetError::Path)?;
    let Value::Object(mut fields) = whole else { return Ok(object.clone()) };
    fields.remove("apiVersion");
    fields.remove("kind");
    let metadata = fields.remove("metadata").unwrap_or_default();
    let mut metadata: ObjectMeta = crate::load::read_metadata(metadata).map_err(SetError::Metadata)?;
    metadata.generation = metadata.generation.map(|g| g + 1);
    Ok(Object { kind: object.kind, metadata, body: Value::Object(fields) })
}

/// Takes away the objects at these places, which are in order.
fn lose(objects: &mut Vec<Object>, places: &[usize]) {
    let mut at = 0..;
    objects.retain(|_| at.next().is_some_and(|at: usize| places.binary_search(&at).is_err()));
}

/// Asks for the deletion of the objects at these places, which are in order.
fn delete(objects: &mut Vec<Object>, places: &[usize]) {
    let is_protected =
        |at: &usize| matches!(objects[*at].kind, Kind::Claim(_) | Kind::Resource(_) | Kind::Class(_));
    // Nothing protects the others: they are gone at once.
    let (protected, others): (Vec<usize>, Vec<usize>) = places.iter().partition(|at| is_protected(at));
    protected.into_iter().for_each(|at| doom(&mut objects[at]));
    lose(objects, &others);
}

fn doom(object: &mut Object) {
    object.metadata.deletion_timestamp.get_or_insert(Time(Timestamp::UNIX_EPOCH));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_what_it_says_and_nothing_that_yaml_makes_of_it() {
        for (text, value) in [
            ("80Gi", json!("80Gi")),
            ("16", json!(16)),
            ("-3", json!(-3)),
            ("9.10", json!("9.10")),
            ("1e3", json!("1e3")),
            ("007", json!("007")),
            ("!=15.6", json!("!=15.6")),
            (">= 16", json!(">= 16")),
            ("*", json!("*")),
            ("&a", json!("&a")),
            ("yes", json!("yes")),
            ("a: b", json!("a: b")),
            ("true", json!(true)),
            ("null", Value::Null),
            ("", Value::Null),
            ("\"16\"", json!("16")),
            ("'it''s 16'", json!("it's 16")),
            ("[\"a\", 1]", json!(["a", 1])),
            ("[a, b]", json!(["a", "b"])),
            ("{storage: 5Gi}", json!({"storage": "5Gi"})),
        ] {
            assert_eq!(read_value(text, false), Ok(value), "{text}");
        }
        assert!(read_value("{storage: ", false).is_err());
        assert_eq!(read_value("1", true), Ok(json!("1")), "a label is text");
        assert_eq!(read_value("true", true), Ok(json!("true")));
    }
}
