//! Two answers side by side: the parts that a step compares, and where they differ. A place is a JSON pointer in
//! which `{name=apps}` finds the item of a list with that field, and `*` stands for every item.

use crate::check::Step;
use serde_json::{Map, Value};

/// One place where the sides differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where.
    pub at: String,
    /// What the real API says there.
    pub real: Value,
    /// What the embedded one says.
    pub embedded: Value,
}

/// The parts of a normalised answer that the step compares.
pub fn compared(step: &Step, mut answer: Value) -> Value {
    if step.quiet {
        return answer["status"].take();
    }
    if !step.pick.is_empty() {
        let picked = step.pick.iter().map(|at| (at.clone(), find(&answer["body"], at)));
        let picked: Map<String, Value> = picked.collect();
        answer["body"] = Value::Object(picked);
    }
    step.ignore.iter().for_each(|at| remove(&mut answer["body"], at));
    answer
}

/// Where two values differ, at most so many places.
pub fn differences(real: &Value, embedded: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(String::new(), real, embedded, &mut found);
    found
}

fn walk(at: String, real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    match (real, embedded) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let side = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or(absent());
                walk(format!("{at}/{key}"), &side(a), &side(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                walk(format!("{at}/{n}"), a, b, found);
            }
        }
        _ if real != embedded => {
            found.push(Difference { at, real: real.clone(), embedded: embedded.clone() });
        }
        _ => {}
    }
}

fn absent() -> Value {
    Value::from("<absent>")
}

/// What stands at a place; null where nothing does.
fn find(value: &Value, at: &str) -> Value {
    let Some((key, rest)) = next(at) else { return value.clone() };
    match value {
        Value::Array(items) if key == "*" => items.iter().map(|item| find(item, rest)).collect(),
        Value::Array(items) => index(items, key).map_or(Value::Null, |n| find(&items[n], rest)),
        Value::Object(fields) => fields.get(&unescape(key)).map_or(Value::Null, |inner| find(inner, rest)),
        _ => Value::Null,
    }
}

fn remove(value: &mut Value, at: &str) {
    let Some((key, rest)) = next(at) else { return };
    match value {
        Value::Array(items) if key == "*" => items.iter_mut().for_each(|item| remove(item, rest)),
        Value::Array(items) => {
            if let Some(n) = index(items, key) {
                remove(&mut items[n], rest);
            }
        }
        Value::Object(fields) if rest.is_empty() => {
            fields.remove(&unescape(key));
        }
        Value::Object(fields) => {
            if let Some(inner) = fields.get_mut(&unescape(key)) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

fn next(at: &str) -> Option<(&str, &str)> {
    let at = at.strip_prefix('/')?;
    Some(at.find('/').map_or((at, ""), |end| at.split_at(end)))
}

fn index(items: &[Value], key: &str) -> Option<usize> {
    match key.strip_prefix('{').and_then(|key| key.strip_suffix('}')?.split_once('=')) {
        Some((field, wanted)) => {
            let (field, wanted) = (format!("/{}", field.replace('.', "/")), unescape(wanted));
            items.iter().position(|item| item.pointer(&field).is_some_and(|found| *found == wanted))
        }
        None => key.parse().ok().filter(|n| *n < items.len()),
    }
}

fn unescape(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_reported_with_their_place() {
        let (a, b) = (json!({"x": [1, {"y": 2}], "z": 1}), json!({"x": [1, {"y": 3}], "w": null}));
        let found: Vec<_> = differences(&a, &b).into_iter().map(|difference| difference.at).collect();
        assert_eq!(found, ["/w", "/x/1/y", "/z"]);
        assert_eq!(differences(&a, &a), []);
    }

    #[test]
    fn places_are_found_and_removed() {
        let mut value = json!({"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "b/c": 3});
        assert_eq!(find(&value, "/a/{name=y}/v"), json!(2));
        assert_eq!(find(&json!([{"m": {"n": "a/b"}}]), "/{m.n=a~1b}/m/n"), json!("a/b"));
        assert_eq!(find(&value, "/a/*/v"), json!([1, 2]));
        assert_eq!(find(&value, "/b~1c"), json!(3));
        assert_eq!(find(&value, "/nowhere/0"), Value::Null);
        remove(&mut value, "/a/*/v");
        remove(&mut value, "/b~1c");
        assert_eq!(value, json!({"a": [{"name": "x"}, {"name": "y"}]}));
    }
}
