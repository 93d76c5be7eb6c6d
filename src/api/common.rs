//! Values that several kinds share: scalars, quantities, free-form objects, policies.
//! Shapes only: whether `50Gi` or `>= 5.6` can be read is asked in `model`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

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

/// A version or a range of versions. `5.6` without quotes is a YAML number, and is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionText(pub Scalar);

impl fmt::Display for VersionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// A structural schema has no "string or number": int-or-string refuses 5.6, and `type` may not stand
// under anyOf. So the type stays open, and each keyword shuts out one of the other types;
// CEL sees no field without a type, so what slips through (`{}`, `[]`) is the controller's to refuse.
impl JsonSchema for VersionText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-preserve-unknown-fields": true,
            "minLength": 1,
            "maxLength": 256,
            "minimum": 0,
            "maxItems": 0,
            "maxProperties": 0,
            "not": {"enum": [true, false]},
        })
    }
}

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

/// Kubernetes' own pattern, without the minus: no capacity, request or limit is negative.
const QUANTITY_PATTERN: &str = r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

impl JsonSchema for QuantityText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "pattern": QUANTITY_PATTERN,
            "maxLength": 64,
            "minimum": 0,
        })
    }
}

/// Named amounts: `storage`, `connections`, whatever the administrator and the users agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantities(pub BTreeMap<String, QuantityText>);

impl JsonSchema for Quantities {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantities".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<QuantityText>(),
            "maxProperties": 32,
        })
    }
}

/// An object whose fields Conductor does not prescribe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FreeForm(pub Map<String, Value>);

impl JsonSchema for FreeForm {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FreeForm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// A value of any shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyValue(pub Value);

impl JsonSchema for AnyValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-preserve-unknown-fields": true})
    }
}

/// What becomes of a resource when its last claim is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ReclaimPolicy {
    /// It stays, Released, and is not offered again until an administrator decides.
    #[default]
    Retain,
    /// It and its implementation are deleted.
    Delete,
}

/// How many claims a resource takes, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Sharing {
    /// The most claims that may hold the resource at once.
    #[serde(default = "one_claim")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_claims: i32,
    /// Namespaces whose claims may hold it; absent means every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// Drops a type's own description, which would otherwise win over the field's in `Option<Enum>`.
pub(super) fn leave_description_to_field(schema: &mut Schema) {
    schema.remove("description");
}
