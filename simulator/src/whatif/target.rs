//! Names of objects and fields on the command line: `claim/NS/NAME`, `resource/NAME`, `class/NAME` and field paths.
//! Whether they exist is checked when they are edited.

use super::EditError;
use conductor::model::{Kind, Object, ObjectKey, TypeId};
use serde_json::{Map, Value};
use std::fmt;

/// Larger indices are not filled up to.
const BEFORE_MAX: usize = 1_000;

/// An object by kind and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The object's kind.
    pub kind: Kind,
    /// The object's key.
    pub key: ObjectKey,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.key)
    }
}

impl Target {
    /// Parses `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    ///
    /// # Errors
    /// The kind is unknown, or the name is missing.
    pub fn read(text: &str, namespace: &str, system_namespace: &str) -> Result<Target, EditError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, place) = match parts[..] {
            [kind, name] if !name.is_empty() => (kind, (None, name)),
            [kind, namespace, name] if !namespace.is_empty() && !name.is_empty() => {
                (kind, (Some(namespace), name))
            }
            _ => return Err(EditError::NoTarget(text.to_owned())),
        };
        let kind = find_kind(kind).ok_or_else(|| EditError::NoKind(kind.to_owned()))?;
        let home = match kind {
            Kind::Claim(_) | Kind::Quota | Kind::Limits => place.0.unwrap_or(namespace),
            Kind::Resource(_) | Kind::Class(_) => place.0.unwrap_or(system_namespace),
            Kind::ClusterQuota | Kind::Profile | Kind::Namespace => "",
        };
        Ok(Target { kind, key: ObjectKey::new(home, place.1) })
    }

    /// The object's position.
    pub(super) fn find(&self, objects: &[Object]) -> Result<usize, EditError> {
        let is_meant = |o: &Object| o.kind == self.kind && crate::world::key_of(o) == self.key;
        objects.iter().position(is_meant).ok_or_else(|| {
            let same = objects.iter().filter(|o| o.kind == self.kind);
            let names: Vec<String> = same.map(|o| crate::world::key_of(o).to_string()).take(5).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            EditError::Missing { target: self.to_string(), there }
        })
    }

    /// Sorted positions of the object and everything that is removed with it: of a namespace, all its objects. A namespace
    /// may exist only through its objects.
    pub(super) fn find_all(&self, objects: &[Object]) -> Result<Vec<usize>, EditError> {
        let Kind::Namespace = self.kind else { return Ok(vec![self.find(objects)?]) };
        let goes = |o: &Object| {
            let key = crate::world::key_of(o);
            key.namespace == self.key.name || (o.kind == self.kind && key == self.key)
        };
        let going: Vec<usize> =
            objects.iter().enumerate().filter(|(_, o)| goes(o)).map(|(at, _)| at).collect();
        if going.is_empty() { self.find(objects).map(|at| vec![at]) } else { Ok(going) }
    }
}

/// Finds a kind by its common, short or full name.
fn find_kind(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    let fixed = match name.as_str() {
        "quota" | "claimquota" => Some(Kind::Quota),
        "clusterquota" | "clusterclaimquota" => Some(Kind::ClusterQuota),
        "limits" | "claimlimits" => Some(Kind::Limits),
        "profile" | "schedulingprofile" => Some(Kind::Profile),
        "namespace" | "ns" => Some(Kind::Namespace),
        "claim" => Some(Kind::Claim(TypeId::RELATIONAL_DATABASE)),
        "resource" => Some(Kind::Resource(TypeId::RELATIONAL_DATABASE)),
        "class" => Some(Kind::Class(TypeId::RELATIONAL_DATABASE)),
        _ => None,
    };
    fixed.or_else(|| {
        TypeId::all().find_map(|ty| {
            let rules = ty.rules();
            let is = |kind: &str, short: &str| {
                name == kind.to_ascii_lowercase() || name == format!("{}{short}", rules.short)
            };
            let kinds = [
                (Kind::Claim(ty), rules.claim, "c"),
                (Kind::Resource(ty), rules.resource, ""),
                (Kind::Class(ty), rules.class, "class"),
            ];
            kinds.into_iter().find(|(_, kind, short)| is(kind, short)).map(|(kind, ..)| kind)
        })
    })
}

/// A path to a field: `spec.capacity.storage`, `metadata.labels['a.b/c']`, `spec.limits[0].claims`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FieldPath {
    /// Parses a path.
    ///
    /// # Errors
    /// A step is empty, or a bracket is not closed.
    pub fn read(text: &str) -> Result<FieldPath, EditError> {
        let wrong = |why: &'static str| EditError::NoPath(text.to_owned(), why);
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (step, after) = bracket(inner).ok_or_else(|| wrong("a bracket is not closed"))?;
                steps.push(step);
                rest = after.strip_prefix('.').unwrap_or(after);
                continue;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return Err(wrong("a name is missing"));
            }
            steps.push(Step::Key(rest[..end].to_owned()));
            rest = &rest[end..];
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        match steps.first() {
            Some(Step::Key(_)) => Ok(FieldPath { text: text.to_owned(), steps }),
            Some(Step::Item(_)) | None => Err(wrong("it must begin with a field such as spec")),
        }
    }

    /// Whether the path leads to a field that identifies the object.
    pub(super) fn is_identity(&self) -> bool {
        let key = |at: usize| match self.steps.get(at) {
            Some(Step::Key(key)) => key.as_str(),
            _ => "",
        };
        match key(0) {
            "kind" | "apiVersion" => true,
            "metadata" => matches!(key(1), "" | "name" | "namespace" | "uid" | "resourceVersion"),
            _ => false,
        }
    }

    /// Whether the field is always text: a label or an annotation.
    pub(super) fn is_text(&self) -> bool {
        let key = |at: usize, name: &str| matches!(self.steps.get(at), Some(Step::Key(key)) if key == name);
        self.steps.len() == 3 && key(0, "metadata") && (key(1, "labels") || key(1, "annotations"))
    }

    /// Wraps `value` in an object that contains only this path.
    pub(super) fn around(&self, value: &Value) -> Map<String, Value> {
        let whole = self.steps.iter().rev().fold(value.clone(), |inner, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), inner)])),
            // Items before it do not matter; do not create arbitrarily many.
            Step::Item(at) => {
                let before = std::iter::repeat_n(Value::Null, (*at).min(BEFORE_MAX));
                before.chain([inner]).collect()
            }
        });
        match whole {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Writes `value` at the path; null removes the field. Creates missing mappings.
    pub(super) fn write(&self, target: &mut Value, value: Value) -> Result<(), EditError> {
        let wrong = |why: &'static str| EditError::NoPath(self.text.clone(), why);
        let (last, way) = self.steps.split_last().ok_or_else(|| wrong("it is empty"))?;
        let mut here = target;
        for step in way {
            here = match step {
                Step::Key(key) => fields(here).map_err(wrong)?.entry(key.clone()).or_insert(Value::Null),
                Step::Item(at) => here.get_mut(*at).ok_or_else(|| wrong("there is no such item"))?,
            };
        }
        match last {
            Step::Key(key) if value.is_null() => drop(fields(here).map_err(wrong)?.remove(key)),
            Step::Key(key) => drop(fields(here).map_err(wrong)?.insert(key.clone(), value)),
            Step::Item(at) => {
                let items = here.as_array_mut().ok_or_else(|| wrong("it is not a list"))?;
                match (*at < items.len(), value.is_null()) {
                    (true, true) => drop(items.remove(*at)),
                    (true, false) => items[*at] = value,
                    (false, false) if *at == items.len() => items.push(value),
                    (false, _) => return Err(wrong("there is no such item")),
                }
            }
        }
        Ok(())
    }
}

/// The fields of a mapping, created if missing.
fn fields(here: &mut Value) -> Result<&mut Map<String, Value>, &'static str> {
    if here.is_null() {
        *here = Value::Object(Map::new());
    }
    here.as_object_mut().ok_or("it leads through a value")
}

/// Parses a bracket after its opening; returns the step and the rest.
fn bracket(inner: &str) -> Option<(Step, &str)> {
    let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'));
    if let Some(quote) = quote {
        let end = inner[1..].find(quote)? + 1;
        let after = inner[end + 1..].strip_prefix(']')?;
        return Some((Step::Key(inner[1..end].to_owned()), after));
    }
    let end = inner.find(']')?;
    let step = match inner[..end].parse() {
        Ok(at) => Step::Item(at),
        Err(_) => Step::Key(inner[..end].to_owned()),
    };
    Some((step, &inner[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_writes_where_it_leads() {
        for (path, value, expected) in [
            ("spec.a", json!(1), json!({"spec": {"a": 1, "list": [1, 2]}})),
            ("spec.list[0]", json!(9), json!({"spec": {"a": 0, "list": [9, 2]}})),
            ("spec.list[2]", json!(9), json!({"spec": {"a": 0, "list": [1, 2, 9]}})),
            ("spec.a", Value::Null, json!({"spec": {"list": [1, 2]}})),
            (
                "x['a.b/c'].d",
                json!("y"),
                json!({"spec": {"a": 0, "list": [1, 2]}, "x": {"a.b/c": {"d": "y"}}}),
            ),
        ] {
            let mut object = json!({"spec": {"a": 0, "list": [1, 2]}});
            FieldPath::read(path).unwrap().write(&mut object, value).unwrap();
            assert_eq!(object, expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        for path in ["", ".a", "a..b", "[0]", "a['b", "a[b"] {
            assert!(FieldPath::read(path).is_err(), "{path}");
        }
        for path in ["spec.a.b", "spec.list[7].x", "spec[0]"] {
            let mut object = json!({"spec": {"a": 0, "list": [1]}});
            assert!(FieldPath::read(path).unwrap().write(&mut object, json!(1)).is_err(), "{path}");
        }
    }

    #[test]
    fn kinds_go_by_several_names() {
        for (text, kind, key) in [
            ("claim/a/x", "RelationalDatabaseClaim", "a/x"),
            ("rdbc/x", "RelationalDatabaseClaim", "mine/x"),
            ("resource/db", "RelationalDatabase", "sys/db"),
            ("RelationalDatabaseClass/c", "RelationalDatabaseClass", "sys/c"),
            ("profile/default", "SchedulingProfile", "default"),
        ] {
            let target = Target::read(text, "mine", "sys").unwrap();
            assert_eq!((target.kind.name(), target.key.to_string().as_str()), (kind, key), "{text}");
        }
        for text in ["claim", "claim/", "pod/a/x", "claim/a/b/c"] {
            assert!(Target::read(text, "mine", "sys").is_err(), "{text}");
        }
    }
}
