//! Edits of a state, as an administrator or an outage would make them. The engine decides what follows from them.

use super::copy::{COPIES_MAX, copy};
use super::target::{FieldPath, Target};
use crate::load::{UnknownField, unknown_fields};
use crate::plan::unreadable;
use conductor::model::{Kind, Name, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::fmt;
use thiserror::Error;

/// A change of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Applies a manifest. An existing object keeps what the cluster wrote: UID, times, finalizers, status, references.
    Apply(Box<Object>),
    /// Sets a field, or removes it if the value is null.
    Set {
        /// The object.
        target: Target,
        /// The field.
        path: FieldPath,
        /// Its new value.
        value: Value,
    },
    /// Removes an object at once, as if it was lost. A namespace takes everything in it with it.
    Lose(Target),
    /// Deletes an object: finalizers hold it, and what it holds is reclaimed by policy. A namespace takes everything in it
    /// with it.
    Delete(Target),
    /// Adds copies of a claim or a resource, scheduled after all waiting claims.
    Copies {
        /// The object to copy.
        like: Target,
        /// The number of copies.
        count: usize,
    },
}

/// Why an edit fails. The caller can correct each of these.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// Not a target.
    #[error("{0:?} names no object: write KIND/NAME or KIND/NAMESPACE/NAME, such as claim/team-a/orders")]
    NoTarget(String),
    /// Not a kind.
    #[error(
        "{0:?} is not a kind: write claim, resource, class, quota, clusterquota, limits, profile or namespace"
    )]
    NoKind(String),
    /// A field path that is invalid or leads nowhere, and why.
    #[error("field {0:?}: {1}; write a path such as spec.capacity.storage or metadata.labels['a/b']")]
    NoPath(String, &'static str),
    /// Not an assignment.
    #[error(
        "{0:?} sets nothing: write KIND/[NAMESPACE/]NAME:FIELD=VALUE, such as resource/db-1:spec.version=16"
    )]
    NoSet(String),
    /// A value of a field that cannot be parsed, and why.
    #[error("the value of {0} cannot be read: {1}")]
    NoValue(FieldPath, String),
    /// An object that does not exist.
    #[error("there is no {target} in the state; of that kind there is: {there}")]
    Missing {
        /// The missing object.
        target: String,
        /// Objects of its kind.
        there: String,
    },
    /// A field that identifies the object.
    #[error("{0} identifies the object and cannot be set: apply another object with -f instead")]
    Identity(FieldPath),
    /// A field that is in no schema: setting it would change nothing.
    #[error("{0}: {1}")]
    NoField(Target, UnknownField),
    /// The engine cannot read the object after the edit and would ignore it.
    #[error("{edit}: then {object} cannot be read: {why}")]
    Broken {
        /// The edit.
        edit: String,
        /// The object.
        object: String,
        /// The invalid field, and what to write instead.
        why: String,
    },
    /// More copies than fit into memory.
    #[error("{0} copies of {1} are too many: request at most {COPIES_MAX}")]
    TooMany(usize, Target),
    /// Only claims and resources can be copied.
    #[error("{0} cannot be copied: name a claim or a resource")]
    NoCopies(Target),
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
    /// Parses `KIND/[NAMESPACE/]NAME:FIELD=VALUE`; [`read_value`] parses the value.
    ///
    /// # Errors
    /// The text, the field or the value is invalid.
    pub fn read_set(text: &str, namespace: &str, system_namespace: &str) -> Result<Edit, EditError> {
        let wrong = || EditError::NoSet(text.to_owned());
        let (target, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (path, value) = rest.split_once('=').ok_or_else(wrong)?;
        let target = Target::read(target, namespace, system_namespace)?;
        let path = FieldPath::read(path)?;
        if path.is_identity() {
            return Err(EditError::Identity(path));
        }
        let value = read_value(value, path.is_text()).map_err(|why| EditError::NoValue(path.clone(), why))?;
        if let Some(field) = unknown_fields(target.kind, &path.around(&value)).into_iter().next() {
            return Err(EditError::NoField(target, field));
        }
        Ok(Edit::Set { target, path, value })
    }

    /// Kind and key of the edited object.
    pub(super) fn place(&self) -> (Kind, ObjectKey) {
        match self {
            Edit::Apply(object) => (object.kind, crate::world::key_of(object)),
            Edit::Set { target, .. } | Edit::Lose(target) | Edit::Delete(target) => {
                (target.kind, target.key.clone())
            }
            Edit::Copies { like, .. } => (like.kind, like.key.clone()),
        }
    }

    /// The namespace that the edit removes with everything in it.
    pub(super) fn namespace(&self) -> Option<&Name> {
        match self {
            Edit::Lose(target) | Edit::Delete(target) if target.kind == Kind::Namespace => {
                Some(&target.key.name)
            }
            Edit::Lose(_) | Edit::Delete(_) | Edit::Apply(_) | Edit::Set { .. } | Edit::Copies { .. } => None,
        }
    }

    /// Applies the edit.
    ///
    /// # Errors
    /// Why it fails; `objects` are then unchanged.
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
                // If it was unreadable before, the edit is not to blame.
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

/// Parses a value from the command line. JSON lists, mappings, quoted strings, integers, `true`, `false` and `null` are
/// themselves, and empty text is `null`. Lists and mappings may also be YAML in flow style. All else is text: `>= 16`, `*`
/// and `!=15.6` are ranges, and `9.10` is not 9.1.
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

/// Keeps a field that the manifest does not set.
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

/// Removes the objects at these sorted positions.
fn lose(objects: &mut Vec<Object>, places: &[usize]) {
    let mut at = 0..;
    objects.retain(|_| at.next().is_some_and(|at: usize| places.binary_search(&at).is_err()));
}

/// Requests the deletion of the objects at these sorted positions.
fn delete(objects: &mut Vec<Object>, places: &[usize]) {
    let is_protected =
        |at: &usize| matches!(objects[*at].kind, Kind::Claim(_) | Kind::Resource(_) | Kind::Class(_));
    // The others have no finalizers and are deleted at once.
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
