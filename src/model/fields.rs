//! Reading untyped JSON field by field, with errors that name the path. No meaning is given to a value here.

use super::error::{FieldError, ValueError};
use super::key::Name;
use serde_json::Value;
use smallvec::SmallVec;

/// One place in an object's body: the value there, if any, and the way that leads to it.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    /// Put into words only for an error: most fields are read without one.
    way: SmallVec<[Step<'a>; 4]>,
    value: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    /// The field whose name is this with an `s`.
    Plural(&'a str),
    Item(usize),
}

impl<'a> Field<'a> {
    pub fn root(body: &'a Value) -> Self {
        Field { way: SmallVec::new(), value: Some(body) }
    }

    /// The field `name` below this one. An explicit null counts as absent, as it does to the API server.
    pub fn at(&self, name: &'a str) -> Field<'a> {
        let value = self.value.and_then(|v| v.get(name)).filter(|v| !v.is_null());
        self.step(Step::Field(name), value)
    }

    /// The field `name` with an `s`: several where the other holds one.
    pub fn at_plural(&self, name: &'a str) -> Field<'a> {
        let value = self.value.and_then(|v| v.get(format!("{name}s"))).filter(|v| !v.is_null());
        self.step(Step::Plural(name), value)
    }

    fn step(&self, step: Step<'a>, value: Option<&'a Value>) -> Field<'a> {
        let mut way = self.way.clone();
        way.push(step);
        Field { way, value }
    }

    /// The path as in the manifest, `spec.claimRefs[0].name`.
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.way {
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

    /// Reads the field with `read`, where it is there, and places an error in it.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&'a Value) -> Result<T, ValueError>,
    ) -> Result<Option<T>, FieldError> {
        self.value.map(|v| read(v).map_err(|e| e.in_field(self.path()))).transpose()
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

    /// Insists that the field is a map, where it is there: what was meant by anything else would be passed over.
    pub fn require_map(&self) -> Result<(), FieldError> {
        match self.value {
            Some(value) if !value.is_object() => Err(self.error("is not a map", "write its fields below it")),
            Some(_) | None => Ok(()),
        }
    }

    /// The elements of a list; an absent field is an empty list.
    pub fn items(&self) -> Result<Vec<Field<'a>>, FieldError> {
        let Some(value) = self.value else { return Ok(Vec::new()) };
        let items = value
            .as_array()
            .ok_or_else(|| unexpected(value, "is not a list", "write a list").in_field(self.path()))?;
        let place = |(at, item)| self.step(Step::Item(at), Some(item));
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// A list of texts, sorted and without repetition.
    pub fn names(&self) -> Result<Vec<Name>, FieldError> {
        let mut names = Vec::new();
        for item in self.items()? {
            names.extend(item.name()?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// An error at this place.
    pub fn error(&self, problem: &str, fix: &str) -> FieldError {
        let shown = self.value.map(shown).unwrap_or_default();
        ValueError::new(&shown, problem, fix).in_field(self.path())
    }

    /// Puts an error that names a path below this field into its place.
    pub fn place(&self, error: FieldError) -> FieldError {
        let field = match error.field.as_str() {
            "" => self.path(),
            below => format!("{}.{below}", self.path()),
        };
        FieldError { field, error: error.error }
    }
}

fn unexpected(value: &Value, problem: &str, fix: &str) -> ValueError {
    ValueError::new(&shown(value), problem, fix)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
