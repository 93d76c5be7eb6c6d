//! Fields that no schema names are dropped, or only named where a client asked to hear of them.

use super::{Library, Node};
use serde_json::Value;

/// What every object has, whatever its schema says of itself.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops what the schema does not know.
pub(crate) fn prune(value: &mut Value, node: &Node, whole_object: bool) {
    Pruner { found: None }.walk(value, node, whole_object, &mut String::new());
}

/// Drops what the schema does not know, and says where it stood.
pub(crate) fn unknown_fields(value: &mut Value, node: &Node, whole_object: bool) -> Vec<String> {
    let mut pruner = Pruner { found: Some(Vec::new()) };
    pruner.walk(value, node, whole_object, &mut String::new());
    pruner.found.unwrap_or_default()
}

struct Pruner {
    found: Option<Vec<String>>,
}

impl Pruner {
    fn walk(&mut self, value: &mut Value, node: &Node, whole_object: bool, path: &mut String) {
        match value {
            Value::Object(fields) => self.walk_object(fields, node, whole_object, path),
            Value::Array(items) => {
                let Some(node) = &node.items else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    let length = path.len();
                    path.push_str(&format!("[{at}]"));
                    self.walk(item, node, node.embedded, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn walk_object(
        &mut self,
        fields: &mut serde_json::Map<String, Value>,
        node: &Node,
        whole_object: bool,
        path: &mut String,
    ) {
        let keeps = |name: &str| {
            node.open
                || node.values.is_some()
                || node.properties.contains_key(name)
                || (whole_object && OBJECT_FIELDS.contains(&name))
        };
        for (name, field) in fields.iter_mut() {
            if !keeps(name) {
                if let Some(found) = &mut self.found {
                    found.push(joined(path, name));
                }
                continue;
            }
            if whole_object && name == "metadata" {
                self.walk_metadata(field, path);
            }
            if whole_object && OBJECT_FIELDS.contains(&name.as_str()) {
                continue;
            }
            let Some(child) = node.field(name) else { continue };
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            self.walk(field, child, child.embedded, path);
            path.truncate(length);
        }
        fields.retain(|name, _| keeps(name));
    }

    /// The metadata of an object within an object is metadata like any other.
    fn walk_metadata(&mut self, metadata: &mut Value, path: &mut String) {
        if path.is_empty() {
            return;
        }
        let length = path.len();
        path.push_str(".metadata");
        self.walk(metadata, Library::metadata(), false, path);
        path.truncate(length);
    }
}

fn joined(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}
