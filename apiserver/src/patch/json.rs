//! JSON patches as the API server carries them out: a `test` for null holds where nothing stands, a `remove` of what
//! is not there is refused. The published crate differs in the first, on which clients rely.

use serde_json::Value;

/// How many operations one patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// Applies a patch.
///
/// # Errors
/// The first operation that cannot be carried out, and why.
pub(crate) fn apply_json(target: &mut Value, patch: &Value) -> Result<(), Failure> {
    let Some(operations) = patch.as_array() else { return Err(Failure::NoList) };
    if operations.len() > OPERATIONS_MAX {
        let why = format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        );
        return Err(Failure::TooMany(why));
    }
    operations.iter().try_for_each(|operation| apply_one(target, operation))
}

/// Why a patch was not applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is no list of operations.
    NoList,
    TooMany(String),
    /// It cannot be carried out on this object.
    Refused(String),
}

fn apply_one(target: &mut Value, operation: &Value) -> Result<(), Failure> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let kind = text("op").ok_or_else(|| Failure::Refused("an operation has no op".to_owned()))?;
    let path = text("path").ok_or_else(|| Failure::Refused("an operation has no path".to_owned()))?;
    let from = || text("from").ok_or_else(|| Failure::Refused(format!("{kind} has no from")));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => replace(target, path, value()),
        "move" => {
            let moved = remove(target, from()?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = find(target, from()?).cloned().ok_or_else(|| missing("copy", path))?;
            add(target, path, copied)
        }
        "test" => match find(target, path) {
            Some(found) if *found == value() => Ok(()),
            None if value().is_null() => Ok(()),
            _ => Err(Failure::Refused(format!("testing value {path} failed: test failed"))),
        },
        other => Err(Failure::Refused(format!("Unexpected kind: {other}"))),
    }
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    let Some((parent, last)) = split(path)? else {
        *target = value;
        return Ok(());
    };
    match find_mut(target, parent) {
        Some(Value::Object(fields)) => {
            fields.insert(last, value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let at = match last.as_str() {
                "-" => items.len(),
                text => index(text, items.len()).ok_or_else(|| out_of_bounds("add", path, text))?,
            };
            items.insert(at, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, Failure> {
    let Some((parent, last)) = split(path)? else {
        return Ok(std::mem::take(target));
    };
    match find_mut(target, parent) {
        Some(Value::Object(fields)) => fields.remove(&last).ok_or_else(|| {
            Failure::Refused(format!(
                "remove operation does not apply: doc is missing key: {path}: missing value"
            ))
        }),
        Some(Value::Array(items)) => match index(&last, items.len().saturating_sub(1)) {
            Some(at) if at < items.len() => Ok(items.remove(at)),
            _ => Err(out_of_bounds("remove", path, &last)),
        },
        _ => Err(missing("remove", path)),
    }
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    if split(path)?.is_none() {
        *target = value;
        return Ok(());
    }
    if let Some(place) = find_mut(target, path) {
        *place = value;
        return Ok(());
    }
    // A field that is not there is set; an item that is not there is not.
    match split(path)? {
        Some((parent, last)) => match find_mut(target, parent) {
            Some(Value::Object(fields)) => {
                fields.insert(last, value);
                Ok(())
            }
            _ => Err(missing("replace", path)),
        },
        None => Err(missing("replace", path)),
    }
}

fn find<'a>(target: &'a Value, path: &str) -> Option<&'a Value> {
    target.pointer(path)
}

fn find_mut<'a>(target: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    target.pointer_mut(path)
}

/// The path of the parent and the last name, unescaped; nothing for the whole document.
fn split(path: &str) -> Result<Option<(&str, String)>, Failure> {
    match path.rsplit_once('/') {
        Some((parent, last)) => Ok(Some((parent, last.replace("~1", "/").replace("~0", "~")))),
        None if path.is_empty() => Ok(None),
        None => Err(Failure::Refused(format!("the path {path:?} does not begin with a slash"))),
    }
}

fn index(text: &str, max: usize) -> Option<usize> {
    text.parse::<usize>().ok().filter(|at| *at <= max && (text == "0" || !text.starts_with('0')))
}

fn missing(kind: &str, path: &str) -> Failure {
    Failure::Refused(format!("{kind} operation does not apply: doc is missing path: {path:?}: missing value"))
}

fn out_of_bounds(kind: &str, path: &str, text: &str) -> Failure {
    Failure::Refused(format!(
        "error in {kind} for path: '{path}': Unable to access invalid index: {text}: invalid index referenced"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_do_what_the_server_does() {
        for (target, patch, expected) in [
            (
                json!({"a": 1}),
                json!([{"op": "add", "path": "/b", "value": 2}]),
                Some(json!({"a": 1, "b": 2})),
            ),
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                Some(json!({"a": [1, 2, 3]})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                Some(json!({"a": [1, 2]})),
            ),
            (json!({"a": 1}), json!([{"op": "remove", "path": "/a"}]), Some(json!({}))),
            (json!({"a": 1}), json!([{"op": "remove", "path": "/b"}]), None),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "/b", "value": 1}]),
                Some(json!({"a": 1, "b": 1})),
            ),
            (json!({"a": 1}), json!([{"op": "replace", "path": "/b/c", "value": 1}]), None),
            (
                json!({"a/b": 1}),
                json!([{"op": "replace", "path": "/a~1b", "value": 2}]),
                Some(json!({"a/b": 2})),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), Some(json!({"a": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 2}]), None),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), Some(json!({"b": 1}))),
            (json!({"a": [1]}), json!([{"op": "remove", "path": "/a/1"}]), None),
            (json!({}), json!([{"op": "add", "path": "/a/b", "value": 1}]), None),
            (json!({}), json!({"op": "add"}), None),
        ] {
            let mut made = target.clone();
            let result = apply_json(&mut made, &patch);
            assert_eq!(result.ok().map(|()| made), expected, "{target} {patch}");
        }
    }
}
