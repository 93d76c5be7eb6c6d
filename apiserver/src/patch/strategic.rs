//! Strategic merge patches, for kinds whose schemas say how lists merge: items by a key, or as a set. Directives
//! (`$patch`, `$retainKeys`, `$setElementOrder`, `$deleteFromPrimitiveList`) are carried out.

use crate::schema::{Node, Patch};
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const REMOVE: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object.
///
/// # Errors
/// A directive or an item that cannot be understood.
pub(crate) fn merge_strategic(target: &mut Value, patch: &Value, node: &Node) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    merge_object(fields, patch, Some(node))
}

fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    node: Option<&Node>,
) -> Result<(), String> {
    match patch.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            *target = patch
                .iter()
                .filter(|(name, _)| *name != PATCH)
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("Unknown patch type: {other}")),
    }
    if let Some(keys) = patch.get(RETAIN).and_then(Value::as_array) {
        target.retain(|name, _| keys.iter().any(|key| key == name));
    }
    for (name, value) in patch.iter().filter(|(name, _)| !is_directive(name)) {
        let child = node.and_then(|node| node.field(name)).map(AsRef::as_ref);
        merge_field(target, name, value, child)?;
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(REMOVE) {
            remove_primitives(target, list, value);
        }
        if let Some(list) = name.strip_prefix(ORDER) {
            let child = node.and_then(|node| node.field(list)).map(AsRef::as_ref);
            order(target, list, value, child);
        }
    }
    Ok(())
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN || name.starts_with(ORDER) || name.starts_with(REMOVE)
}

fn merge_field(
    target: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    node: Option<&Node>,
) -> Result<(), String> {
    match value {
        Value::Null => {
            target.remove(name);
            Ok(())
        }
        Value::Object(patch) => {
            let entry = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            let Some(fields) = entry.as_object_mut() else { return Ok(()) };
            merge_object(fields, patch, node)?;
            if patch.get(PATCH).and_then(Value::as_str) == Some("delete") {
                target.remove(name);
            }
            Ok(())
        }
        Value::Array(patch) => {
            let key = match node.map(|node| &node.patch) {
                Some(Patch::Merge(key) | Patch::MergeRetainKeys(key)) => key.as_deref(),
                _ => {
                    let plain = patch.iter().filter(|item| item.get(PATCH).is_none());
                    target.insert(name.to_owned(), plain.cloned().collect());
                    return Ok(());
                }
            };
            let mut items = match target.remove(name) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            let before = items.clone();
            match key {
                Some(key) => merge_items(&mut items, patch, key, node)?,
                None => {
                    for item in patch.iter().filter(|item| !item.is_object()) {
                        if !items.contains(item) {
                            items.push(item.clone());
                        }
                    }
                }
            }
            target.insert(name.to_owned(), Value::Array(woven(items, patch, &before, key)));
            Ok(())
        }
        value => {
            target.insert(name.to_owned(), value.clone());
            Ok(())
        }
    }
}

fn merge_items(
    items: &mut Vec<Value>,
    patch: &[Value],
    key: &str,
    node: Option<&Node>,
) -> Result<(), String> {
    if patch
        .iter()
        .any(|item| item.get(PATCH).and_then(Value::as_str) == Some("replace") && item.get(key).is_none())
    {
        *items = patch.iter().filter(|item| item.get(PATCH).is_none()).cloned().collect();
        return Ok(());
    }
    let node = node.and_then(|node| node.items.as_deref());
    for item in patch {
        let Some(fields) = item.as_object() else {
            return Err(format!("an item of a list that merges by {key} is no object"));
        };
        let Some(wanted) = fields.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key}"));
        };
        let place = items.iter().position(|found| found.get(key) == Some(wanted));
        match (fields.get(PATCH).and_then(Value::as_str), place) {
            (Some("delete"), _) => items.retain(|found| found.get(key) != Some(wanted)),
            (_, Some(at)) => {
                if let Some(found) = items.get_mut(at).and_then(Value::as_object_mut) {
                    merge_object(found, fields, node)?;
                }
            }
            (_, None) => {
                let mut made = Map::new();
                merge_object(&mut made, fields, node)?;
                items.push(Value::Object(made));
            }
        }
    }
    Ok(())
}

fn remove_primitives(target: &mut Map<String, Value>, list: &str, values: &Value) {
    let Some(values) = values.as_array() else { return };
    if let Some(items) = target.get_mut(list).and_then(Value::as_array_mut) {
        items.retain(|item| !values.contains(item));
    }
}

/// Puts items in the order that the sender saw.
fn order(target: &mut Map<String, Value>, list: &str, wanted: &Value, node: Option<&Node>) {
    let (Some(wanted), Some(items)) = (wanted.as_array(), target.get_mut(list).and_then(Value::as_array_mut))
    else {
        return;
    };
    let key = match node.map(|node| &node.patch) {
        Some(Patch::Merge(key) | Patch::MergeRetainKeys(key)) => key.as_deref(),
        _ => None,
    };
    let before = items.clone();
    *items = woven(std::mem::take(items), wanted, &before, key);
}

/// Items that the patch names in its order, with the others woven in as they stood before.
fn woven(items: Vec<Value>, named: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let same = |one: &Value, two: &Value| match key {
        Some(key) => one.get(key).is_some() && one.get(key) == two.get(key),
        None => one == two,
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|one| same(one, item));
    let mut ours: Vec<(usize, Value)> = Vec::new();
    let mut theirs: Vec<Value> = Vec::new();
    for item in items {
        match place(named, &item) {
            Some(rank) => ours.push((rank, item)),
            None => theirs.push(item),
        }
    }
    ours.sort_by_key(|(rank, _)| *rank);
    let (mut ours, mut theirs) =
        (ours.into_iter().map(|(_, item)| item).peekable(), theirs.into_iter().peekable());
    let mut made = Vec::new();
    loop {
        let take_theirs = match (theirs.peek(), ours.peek()) {
            (None, None) => return made,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(their), Some(our)) => match (place(before, their), place(before, our)) {
                (Some(their), Some(our)) => their < our,
                _ => false,
            },
        };
        made.extend(if take_theirs { theirs.next() } else { ours.next() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Library;
    use serde_json::json;

    #[test]
    fn containers_merge_by_name() {
        let node = Library::get().node("io.k8s.api.core.v1.Pod");
        let mut pod =
            json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
        let patch = json!({"spec": {"containers": [
            {"name": "b", "image": "z"}, {"name": "c", "image": "w"}, {"name": "a", "$patch": "delete"},
        ]}});
        merge_strategic(&mut pod, &patch, &node).unwrap();
        assert_eq!(
            pod,
            json!({"spec": {"containers": [{"name": "b", "image": "z"}, {"name": "c", "image": "w"}]}})
        );
    }

    #[test]
    fn finalizers_merge_as_a_set_and_can_be_taken_out() {
        let node = Library::get().node("io.k8s.api.core.v1.ConfigMap");
        let mut map = json!({"metadata": {"finalizers": ["a/b", "c/d"]}});
        let patch =
            json!({"metadata": {"finalizers": ["e/f"], "$deleteFromPrimitiveList/finalizers": ["a/b"]}});
        merge_strategic(&mut map, &patch, &node).unwrap();
        assert_eq!(map, json!({"metadata": {"finalizers": ["e/f", "c/d"]}}));
    }

    #[test]
    fn an_order_is_kept() {
        let node = Library::get().node("io.k8s.api.core.v1.Pod");
        let mut pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
        merge_strategic(&mut pod, &patch, &node).unwrap();
        assert_eq!(pod, json!({"spec": {"containers": [{"name": "b"}, {"name": "a"}]}}));
    }
}
