//! Reads untyped JSON field by field, with errors that name the path.

use super::error::{FieldError, ValueError};
use super::key::Name;
use super::quantity::Quantity;
use serde_json::Value;
use smallvec::SmallVec;

/// A field of an object's body: its path and its value, if present.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    /// Formatted only for an error.
    path: SmallVec<[Step<'a>; 4]>,
    value: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    /// The field of this name with an `s` appended.
    Plural(&'a str),
    Item(usize),
}

impl<'a> Field<'a> {
    pub fn root(body: &'a Value) -> Self {
        Field { path: SmallVec::new(), value: Some(body) }
    }

    /// The field `name` below this one. An explicit null counts as absent, as for the API server.
    pub fn at(&self, name: &'a str) -> Field<'a> {
        let value = self.value.and_then(|v| v.get(name)).filter(|v| !v.is_null());
        self.step(Step::Field(name), value)
    }

    /// The field `name` with an `s` appended, which has a list of values of the field `name`.
    pub fn at_plural(&self, name: &'a str) -> Field<'a> {
        let value = self.value.and_then(|v| v.get(format!("{name}s"))).filter(|v| !v.is_null());
        self.step(Step::Plural(name), value)
    }

    fn step(&self, step: Step<'a>, value: Option<&'a Value>) -> Field<'a> {
        // A plain copy: `clone` would copy step by step, and this is the hottest line of reading objects.
        let mut path = SmallVec::from_slice(&self.path);
        path.push(step);
        Field { path, value }
    }

    /// The path as in the manifest, `spec.claimRefs[0].name`.
    fn path_text(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Item(at) => path.push_str(&format!("[{at}]")),
                Step::Field(name) | Step::Plural(name) => {
                    let point = if path.is_empty() { "" } else { "." };
                    let plural = if matches!(step, Step::Plural(_)) { "s" } else { "" };
                    path.extend([point, name, plural]);
                }
            }
        }
        path
    }

    pub fn value(&self) -> Option<&'a Value> {
        self.value
    }

    /// Parses the value with `read`, if present, and adds the path to an error.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&'a Value) -> Result<T, ValueError>,
    ) -> Result<Option<T>, FieldError> {
        self.value.map(|v| read(v).map_err(|e| e.in_field(self.path_text()))).transpose()
    }

    pub fn text(&self) -> Result<Option<&'a str>, FieldError> {
        self.read(|v| v.as_str().ok_or_else(|| unexpected(v, "is not text", "write it in quotes")))
    }

    pub fn name(&self) -> Result<Option<Name>, FieldError> {
        Ok(self.text()?.map(Name::from))
    }

    pub fn flag(&self) -> Result<Option<bool>, FieldError> {
        self.read(|v| {
            v.as_bool().ok_or_else(|| unexpected(v, "is neither true nor false", "write true or false"))
        })
    }

    pub fn integer(&self) -> Result<Option<i64>, FieldError> {
        self.read(|v| {
            v.as_i64().ok_or_else(|| unexpected(v, "is not a whole number", "write a number such as 10"))
        })
    }

    /// Requires the field to be a map, if present: otherwise the fields below would silently count as absent.
    pub fn require_map(&self) -> Result<(), FieldError> {
        match self.value {
            Some(value) if !value.is_object() && !value.is_null() => {
                Err(self.error("is not a map", "write its fields below it"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The elements of a list; an absent field is an empty list.
    pub fn items(&self) -> Result<Vec<Field<'a>>, FieldError> {
        let Some(value) = self.value else { return Ok(Vec::new()) };
        let items = value
            .as_array()
            .ok_or_else(|| unexpected(value, "is not a list", "write a list").in_field(self.path_text()))?;
        let place = |(at, item)| self.step(Step::Item(at), Some(item));
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// The fields of a map with their names, also those that are null; none if the value is not a map.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        let entries = self.value.and_then(Value::as_object).into_iter().flatten();
        entries.map(|(name, value)| (name.as_str(), self.step(Step::Field(name), Some(value))))
    }

    /// A map of names to quantities that are not negative, in the order of the names; an absent field is an empty map.
    pub fn quantities(&self) -> Result<Vec<(&'a str, Quantity)>, FieldError> {
        let entries = match self.value {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                return Err(
                    self.error("is not a map of names to quantities", "write it like {storage: 25Gi}")
                );
            }
        };
        // The path of an entry is built for an error only.
        let read = |(name, value): (&'a String, &'a Value)| match Quantity::from_json(value) {
            Ok(quantity) if quantity.is_negative() => Err(self
                .step(Step::Field(name), Some(value))
                .error("is negative", "write zero or more, like 25Gi, 500m or 100")),
            Ok(quantity) => Ok((name.as_str(), quantity)),
            Err(error) => Err(error.in_field(self.step(Step::Field(name), None).path_text())),
        };
        entries.iter().map(read).collect()
    }

    /// A list of strings, sorted and without duplicates.
    pub fn names(&self) -> Result<Vec<Name>, FieldError> {
        let mut names = Vec::new();
        for item in self.items()? {
            names.extend(item.name()?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// An error about this field.
    pub fn error(&self, problem: &str, fix: &str) -> FieldError {
        let shown = self.value.map(shown).unwrap_or_default();
        ValueError::new(&shown, problem, fix).in_field(self.path_text())
    }
}

fn unexpected(value: &Value, problem: &str, fix: &str) -> ValueError {
    ValueError::new(&shown(value), problem, fix)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
