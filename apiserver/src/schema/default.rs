//! Defaults of a schema, put where nothing stands. A null that may not be null counts as nothing.

use super::Node;
use serde_json::Value;

/// Fills a value in.
pub(crate) fn default(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, child) in &node.properties {
                let Some(default) = &child.default else { continue };
                let absent = match fields.get(name) {
                    None => true,
                    Some(Value::Null) => !child.nullable,
                    Some(_) => false,
                };
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                let Some(child) = node.field(name) else { continue };
                if field.is_null()
                    && !child.nullable
                    && !node.properties.contains_key(name)
                    && let Some(default) = &child.default
                {
                    *field = default.clone();
                }
                self::default(field, child);
            }
        }
        Value::Array(items) => {
            let Some(node) = &node.items else { return };
            for item in items {
                if item.is_null()
                    && !node.nullable
                    && let Some(default) = &node.default
                {
                    *item = default.clone();
                }
                self::default(item, node);
            }
        }
        _ => {}
    }
}
