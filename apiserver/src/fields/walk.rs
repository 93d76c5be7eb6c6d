//! Two states of an object compared, merged and cut, field by field, with a schema that says which lists and maps are
//! one value. Follows the rules of structured merges.

use super::path::Step;
use super::set::FieldSet;
use crate::schema::{Kind, List, Node};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Where no schema says anything: maps are open, lists are one value.
static ANYTHING: LazyLock<Node> = LazyLock::new(|| {
    let mut node = Node::new(Kind::Any);
    node.open = true;
    node
});

/// What is different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

/// How a value is treated here.
enum Shape {
    /// As one value.
    Leaf,
    Fields,
    Items,
}

fn shape(node: &Node, value: &Value) -> Shape {
    match value {
        Value::Object(_) if !node.atomic => Shape::Fields,
        Value::Array(_) if node.list != List::Atomic => Shape::Items,
        _ => Shape::Leaf,
    }
}

fn below<'a>(node: &'a Node, name: &str) -> &'a Node {
    node.field(name).map_or(&ANYTHING, AsRef::as_ref)
}

fn item_node(node: &Node) -> &Node {
    node.items.as_ref().map_or(&ANYTHING, AsRef::as_ref)
}

/// How an item is named.
pub(crate) fn step_of(item: &Value, node: &Node) -> Option<Step> {
    match &node.list {
        List::Atomic => None,
        List::Set => Some(Step::Value(item.clone())),
        List::Map(keys) => {
            let fields = item.as_object()?;
            let mut found = Map::new();
            for key in keys {
                let default = || node.items.as_ref()?.properties.get(key)?.default.clone();
                if let Some(value) = fields.get(key).cloned().or_else(default) {
                    found.insert(key.clone(), value);
                }
            }
            (!found.is_empty()).then_some(Step::Keys(found))
        }
    }
}

/// Items with their names; of those that share a name the last one counts.
fn named_items<'a>(items: &'a [Value], node: &Node) -> Vec<(Step, &'a Value)> {
    let mut found: Vec<(Step, &Value)> = Vec::new();
    for item in items {
        let Some(step) = step_of(item, node) else { continue };
        match found.iter_mut().find(|(name, _)| *name == step) {
            Some((_, place)) => *place = item,
            None => found.push((step, item)),
        }
    }
    found
}

/// The fields that a configuration sets.
pub(crate) fn field_set(value: &Value, node: &Node) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, node, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, node: &Node, path: &mut Vec<Step>, set: &mut FieldSet) {
    match (shape(node, value), value) {
        (Shape::Fields, Value::Object(fields)) => {
            for (name, field) in fields {
                path.push(Step::field(name));
                collect(field, below(node, name), path, set);
                let is_empty = field.is_null() || field.as_object().is_some_and(Map::is_empty);
                if is_empty || !node.properties.contains_key(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Shape::Items, Value::Array(items)) => {
            for (step, item) in named_items(items, node) {
                path.push(step);
                collect(item, item_node(node), path, set);
                set.insert(path);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
}

/// What changed from one state to another.
pub(crate) fn compare(old: &Value, new: &Value, node: &Node) -> Comparison {
    let mut comparison = Comparison::default();
    Compare { out: &mut comparison, path: Vec::new() }.walk(Some(old), Some(new), node);
    comparison
}

struct Compare<'a> {
    out: &'a mut Comparison,
    path: Vec<Step>,
}

impl Compare<'_> {
    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, node: &Node) {
        let is_leaf = match (old, new) {
            (None, None) => return,
            (Some(one), None) | (None, Some(one)) => self.enter(one, old, new, node),
            (Some(before), Some(after)) => {
                let same_kind = std::mem::discriminant(before) == std::mem::discriminant(after);
                match same_kind {
                    true if before == after => return,
                    true => self.enter(after, old, new, node),
                    false => self.enter_different(before, after, node),
                }
            }
        };
        if !is_leaf {
            match (old, new) {
                (None, Some(_)) => self.out.added.insert(&self.path),
                (Some(_), None) => self.out.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Values of two kinds: a null beside a map or list counts as empty, everything else is one change.
    fn enter_different(&mut self, before: &Value, after: &Value, node: &Node) -> bool {
        match (before, after) {
            (Value::Null, Value::Object(_) | Value::Array(_)) => self.enter(after, None, Some(after), node),
            (Value::Object(_) | Value::Array(_), Value::Null) => self.enter(before, Some(before), None, node),
            _ => {
                self.out.modified.insert(&self.path);
                true
            }
        }
    }

    /// Says whether the place is one value.
    fn enter(&mut self, sample: &Value, old: Option<&Value>, new: Option<&Value>, node: &Node) -> bool {
        let fields = |value: Option<&Value>| value.and_then(Value::as_object).map_or(0, Map::len);
        let items = |value: Option<&Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
        match shape(node, sample) {
            Shape::Fields if fields(old) + fields(new) > 0 => self.fields(old, new, node),
            Shape::Items if items(old) + items(new) > 0 => self.items(old, new, node),
            _ => {
                match (old, new) {
                    (None, Some(_)) => self.out.added.insert(&self.path),
                    (Some(_), None) => self.out.removed.insert(&self.path),
                    (Some(old), Some(new)) if old != new => self.out.modified.insert(&self.path),
                    _ => {}
                }
                return true;
            }
        }
        false
    }

    fn fields(&mut self, old: Option<&Value>, new: Option<&Value>, node: &Node) {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let names = new.into_iter().flat_map(Map::keys);
        let lost = old
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| !new.is_some_and(|new| new.contains_key(*name)));
        for name in names.chain(lost) {
            self.path.push(Step::field(name));
            let (before, after) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            self.walk(before, after, below(node, name));
            self.path.pop();
        }
    }

    fn items(&mut self, old: Option<&Value>, new: Option<&Value>, node: &Node) {
        let named = |value: Option<&'_ Value>| -> Vec<(Step, Value)> {
            let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            named_items(items, node).into_iter().map(|(step, item)| (step, item.clone())).collect()
        };
        let (old, new) = (named(old), named(new));
        let find = |list: &[(Step, Value)], step: &Step| {
            list.iter().find(|(found, _)| found == step).map(|(_, item)| item.clone())
        };
        let lost = old.iter().filter(|(step, _)| !new.iter().any(|(found, _)| found == step));
        for (step, _) in new.iter().chain(lost) {
            self.path.push(step.clone());
            self.walk(find(&old, step).as_ref(), find(&new, step).as_ref(), item_node(node));
            self.path.pop();
        }
    }
}

/// A live object with a configuration laid over it.
pub(crate) fn merge_typed(live: &Value, config: &Value, node: &Node) -> Value {
    match (shape(node, config), live, config) {
        (Shape::Fields, Value::Object(live), Value::Object(config)) => {
            let mut made = live.clone();
            for (name, value) in config {
                let merged = match live.get(name) {
                    Some(old) => merge_typed(old, value, below(node, name)),
                    None => value.clone(),
                };
                made.insert(name.clone(), merged);
            }
            Value::Object(made)
        }
        (Shape::Items, Value::Array(live), Value::Array(config)) => {
            Value::Array(merge_items(live, config, node))
        }
        _ => config.clone(),
    }
}

/// Items in the order of the configuration, with those that only the live object has where they stood among the rest.
fn merge_items(live: &[Value], config: &[Value], node: &Node) -> Vec<Value> {
    let (live, config) = (named_items(live, node), named_items(config, node));
    let in_config = |step: &Step| config.iter().any(|(found, _)| found == step);
    let old = |step: &Step| live.iter().find(|(found, _)| found == step).map(|(_, item)| *item);
    let mut shared = config.iter().map(|(step, _)| step).filter(|step| old(step).is_some()).peekable();
    let mut made = Vec::new();
    let mut done: Vec<&Step> = Vec::new();
    let take = |step: &Step, item: &Value| match old(step) {
        Some(before) => merge_typed(before, item, item_node(node)),
        None => item.clone(),
    };
    let (mut at_live, mut at_config) = (0, 0);
    while at_live < live.len() || at_config < config.len() {
        if let (Some((step, _)), Some((wanted, item))) = (live.get(at_live), config.get(at_config)) {
            if step == wanted {
                made.push(take(wanted, item));
                done.push(wanted);
                at_live += 1;
                at_config += 1;
                shared.next();
                continue;
            }
            if in_config(step) && shared.peek().is_some_and(|next| *next != step) {
                at_live += 1;
                continue;
            }
        }
        if let Some((step, item)) = live.get(at_live) {
            if !in_config(step) {
                made.push((*item).clone());
                at_live += 1;
                continue;
            }
            if done.contains(&step) {
                at_live += 1;
            }
        }
        if let Some((step, item)) = config.get(at_config) {
            made.push(take(step, item));
            done.push(step);
            at_config += 1;
            if shared.peek() == Some(&step) {
                shared.next();
            }
        }
    }
    made
}

/// A value without what a set names.
pub(crate) fn remove(value: &Value, set: &FieldSet, node: &Node) -> Value {
    match (shape(node, value), value) {
        (Shape::Fields, Value::Object(fields)) => {
            let mut made = Map::new();
            for (name, field) in fields {
                let step = Step::field(name);
                if set.has(&step) {
                    continue;
                }
                let kept = match set.below(&step) {
                    Some(inner) => remove(field, inner, below(node, name)),
                    None => field.clone(),
                };
                made.insert(name.clone(), kept);
            }
            Value::Object(made)
        }
        (Shape::Items, Value::Array(items)) => {
            let mut made = Vec::new();
            for item in items {
                let Some(step) = step_of(item, node) else {
                    made.push(item.clone());
                    continue;
                };
                if set.has(&step) {
                    continue;
                }
                made.push(match set.below(&step) {
                    Some(inner) => remove(item, inner, item_node(node)),
                    None => item.clone(),
                });
            }
            Value::Array(made)
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Library;
    use serde_json::json;

    #[test]
    fn new_maps_and_items_are_added_as_a_whole_and_in_part() {
        let node = Library::get().node("io.k8s.api.core.v1.Pod");
        let old = json!({"metadata": {}, "spec": {}});
        let new = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]},
        });
        let added = compare(&old, &new, &node).added.write();
        assert_eq!(
            added,
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {"f:containers": {
                    ".": {},
                    "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:resources": {}},
                }},
            })
        );
    }

    #[test]
    fn a_configuration_keeps_what_others_added_to_a_list() {
        let node = Library::get().node("io.k8s.api.core.v1.Pod");
        let live =
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}});
        let config =
            json!({"spec": {"containers": [{"name": "c", "image": "3"}, {"name": "b", "image": "4"}]}});
        let merged = merge_typed(&live, &config, &node);
        let names: Vec<_> =
            merged["spec"]["containers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["a", "c", "b"]);
        assert_eq!(merged["spec"]["containers"][2]["image"], "4");
    }
}
