//! The names that an expression can use, with their known fields: a reference to a field that cannot exist is an error when
//! the class is compiled.

use serde_json::Value;
use std::collections::BTreeMap;

/// The known fields of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Any fields.
    Open,
    /// Only these fields.
    Fields(BTreeMap<String, Shape>),
}

impl Shape {
    /// The shape of a structural schema.
    pub fn of_schema(schema: &Value) -> Shape {
        let open = |key: &str| schema.get(key).is_some_and(|v| *v != Value::Bool(false));
        let properties = schema.get("properties").and_then(Value::as_object);
        match properties {
            Some(properties)
                if !open("x-kubernetes-preserve-unknown-fields") && !open("additionalProperties") =>
            {
                let field = |(name, schema): (&String, &Value)| (name.clone(), Shape::of_schema(schema));
                Shape::Fields(properties.iter().map(field).collect())
            }
            Some(_) | None => Shape::Open,
        }
    }

    /// A shape of these fields.
    pub fn of_fields(fields: impl IntoIterator<Item = (String, Shape)>) -> Shape {
        Shape::Fields(fields.into_iter().collect())
    }

    /// The first field of a path that cannot exist, with those that can.
    pub fn find_missing<'a>(&self, path: &'a [String]) -> Option<(&'a str, String)> {
        match (self, path) {
            (Shape::Open, _) | (Shape::Fields(_), []) => None,
            (Shape::Fields(fields), [step, rest @ ..]) => match fields.get(step) {
                Some(shape) => shape.find_missing(rest),
                None => Some((step, fields.keys().cloned().collect::<Vec<_>>().join(", "))),
            },
        }
    }
}

/// The names that expressions can use.
pub(super) type Scope = BTreeMap<String, Shape>;
