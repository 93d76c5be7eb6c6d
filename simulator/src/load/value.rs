//! Reads a JSON value defensively: a duplicate key is an error, and growth by aliases is limited. The parsers themselves
//! limit nesting.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::{cell::Cell, fmt};

/// Maximum nesting. serde_json stops here too; real manifests nest less than twenty deep.
pub(super) const DEPTH_MAX: usize = 127;

/// How much a value may still grow, in bytes of text plus a flat price per node.
pub(super) struct Allowance(Cell<usize>);

const NODE_PRICE: usize = 16;

impl Allowance {
    /// Enough for any `text` without aliases, and for some aliases.
    pub(super) fn of(text: &str) -> Self {
        Allowance(Cell::new(text.len().saturating_mul(32).saturating_add(4 << 20)))
    }

    fn spend<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes.saturating_add(NODE_PRICE));
        self.0.set(left.ok_or_else(|| E::custom("aliases multiply the document too much; write them out"))?);
        Ok(())
    }
}

/// Reads one value within an allowance.
#[derive(Clone, Copy)]
pub(super) struct Guarded<'a>(pub(super) &'a Allowance);

impl<'de> DeserializeSeed<'de> for Guarded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Guarded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.spend(0).map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.0.spend(0).map(|()| value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.0.spend(0).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.0.spend(0).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.0.spend(0).map(|()| value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.spend(value.len()).map(|()| value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.0.spend(value.len()).map(|()| value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.spend(0)?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.0.spend(0)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.spend(key.len())?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is written twice")));
            }
            map.insert(key, entries.next_value_seed(self)?);
        }
        Ok(Value::Object(map))
    }
}
