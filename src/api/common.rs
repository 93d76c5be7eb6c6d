//! Values that several kinds share: scalars, quantities, free-form objects, policies.
//! Shapes only: `model` parses `50Gi` and `>= 5.6`.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;
use std::fmt;

/// Declares the schema of a type whose Rust form says less than its schema does. The schema is written in place, because
/// a structural schema has no `$ref`.
macro_rules! inline_schema {
    ($type:ident, |$generator:pat_param| $schema:tt) => {
        impl ::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema($generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!($schema)
            }
        }
    };
}
pub(super) use inline_schema;

/// A value that users write with or without quotes; kept as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// Written as a string.
    Text(String),
    /// Written as a number.
    Number(Number),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => f.write_str(text),
            Scalar::Number(number) => write!(f, "{number}"),
        }
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Scalar::Text(text.to_owned())
    }
}

/// A version or a range of versions, as text or as the YAML number that `5.6` without quotes is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionText(pub Scalar);

impl fmt::Display for VersionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// A structural schema cannot say "string or number": int-or-string refuses 5.6, and `type` is not allowed under anyOf.
// So the type stays open and each keyword excludes one other type. CEL rules cannot see a field without a type: the
// controller refuses what remains (`{}`, `[]`).
inline_schema!(VersionText, |_| {
    "x-kubernetes-preserve-unknown-fields": true,
    "minLength": 1,
    "maxLength": 256,
    "minimum": 0,
    "maxItems": 0,
    "maxProperties": 0,
    "not": {"enum": [true, false]},
});

/// An amount such as `25Gi`, `500m` or `100`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuantityText(pub Scalar);

impl fmt::Display for QuantityText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for QuantityText {
    fn from(text: &str) -> Self {
        QuantityText(text.into())
    }
}

/// The pattern of Kubernetes without the minus sign: no capacity, request or limit is negative.
const QUANTITY_PATTERN: &str = r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

inline_schema!(QuantityText, |_| {
    "x-kubernetes-int-or-string": true,
    "pattern": QUANTITY_PATTERN,
    "maxLength": 64,
    "minimum": 0,
});

/// Quantities by name: `storage`, `connections`, or any name that the administrator and the users agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantities(pub BTreeMap<String, QuantityText>);

inline_schema!(Quantities, |generator| {
    "type": "object",
    "additionalProperties": generator.subschema_for::<QuantityText>(),
    "maxProperties": 32,
});

/// An object whose fields Conductor does not prescribe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FreeForm(pub Map<String, Value>);

inline_schema!(FreeForm, |_| {"type": "object", "x-kubernetes-preserve-unknown-fields": true});

/// A value of any shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyValue(pub Value);

inline_schema!(AnyValue, |_| {"x-kubernetes-preserve-unknown-fields": true});

/// What happens to a resource when its last claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ReclaimPolicy {
    /// Keep the resource in phase Released; no claim binds to it until an administrator decides.
    #[default]
    Retain,
    /// Delete the resource and its implementation, data included.
    Delete,
}

/// How many claims can share a resource, and from which namespaces.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Sharing {
    /// The maximum number of claims that can be bound to the resource at the same time. Default 1.
    #[serde(default = "one_claim")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_claims: i32,
    /// The namespaces whose claims can bind to the resource, such as [team-a, team-b]. Absent: every namespace.
    #[schemars(length(max = 1024), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_namespaces: Option<Vec<String>>,
}

impl Default for Sharing {
    fn default() -> Self {
        Sharing { max_claims: one_claim(), allowed_namespaces: None }
    }
}

fn one_claim() -> i32 {
    1
}

/// Reads null as the default, as the API server does where a schema has one.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Removes a type's own description, which would otherwise replace the field's in `Option<Enum>`.
pub(super) fn leave_description_to_field(schema: &mut Schema) {
    schema.remove("description");
}
