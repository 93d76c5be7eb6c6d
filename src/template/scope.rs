//! Which names an expression may use, and which fields they are known to have. A field that nothing could ever
//! have is a slip of the pen, and told before anything is made.

use serde_json::Value;
use std::collections::BTreeMap;

/// What is known of a value before there is one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Anything.
    Open,
    /// These fields and no others.
    Fields(BTreeMap<String, Shape>),
}

impl Shape {
    /// The shape that a structural schema describes.
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

    /// The first step of a path that leads nowhere, with what could stand there.
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

/// The names that expressions may use.
pub(super) type Scope = BTreeMap<String, Shape>;
