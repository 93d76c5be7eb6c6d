//! An edited class, and the resources that it provisioned: what would change for each, and, where the class says Follow,
//! the change. Whether a class may be edited is decided elsewhere.

use crate::action::Change;
use crate::model::{Class, FieldError, Name, Resource, Script};
use crate::template::{CompiledClass, Inputs, Rendered, Source, parameters};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for the object of an edit that concerns none: how the resource is reached, and when it is ready.
const CLASS: &str = "class";

/// One thing that an edit of a class changes in what it provisioned.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Which object, `main` where there is only one; `class` for `connection`, and for `ready` of a single object.
    pub object: Name,
    /// Where in it, such as `spec.storage.size`; empty where the whole object is created or deleted.
    pub path: String,
    /// The value now, if there is one.
    pub was: Option<Value>,
    /// The value afterwards, if there is one.
    pub becomes: Option<Value>,
}

/// The change that updates a resource from the class that provisioned it; `None` where it is current, or another class
/// provisioned it, or its parameters are not allowed any more.
pub fn plan_class_update(class: &Class, resource: &Resource) -> Option<Change> {
    let script = resource.script.as_ref()?;
    let next = next_script(class, resource)?.ok()?;
    let mut spec = Map::new();
    for name in ["template", "templates"] {
        let of = |source: &Value| source.get(name).cloned().unwrap_or_default();
        insert(&mut spec, name, difference(&of(&script.source), &of(&next.source)));
    }
    let mut inputs = Map::new();
    for name in ["class", "parameters"] {
        let of = |inputs: &Value| inputs.get(name).cloned().unwrap_or_default();
        insert(&mut inputs, name, difference(&of(&script.inputs), &of(&next.inputs)));
    }
    if !inputs.is_empty() {
        spec.insert("inputs".to_owned(), Value::Object(inputs));
    }
    (!spec.is_empty()).then(|| Change::ResourceRecipe { patch: json!({"spec": spec}) })
}

/// What a class would change in the objects of a resource that it provisioned, object by object. An object that needs
/// outputs of another is compared as it is written, with its expressions; so are `connection` and `ready`.
///
/// # Errors
/// A class that provisions nothing, that does not allow the resource's parameters any more, or whose templates cannot be
/// rendered with them.
pub fn preview(class: &Class, resource: &Resource) -> Result<Vec<Edit>, FieldError> {
    let Some(script) = resource.script.as_ref() else { return Ok(Vec::new()) };
    class.recipe.as_ref().map_err(Clone::clone)?;
    let Some(next) = next_script(class, resource) else { return Ok(Vec::new()) };
    let next = next?;
    let (was, becomes) = (objects(script, Wrong::AsWritten)?, objects(&next, Wrong::Fails)?);
    let ids: BTreeSet<&Name> = was.keys().chain(becomes.keys()).collect();
    let mut edits = Vec::new();
    for id in ids {
        compare(id, "", was.get(id), becomes.get(id), &mut edits);
        if was.contains_key(id) && becomes.contains_key(id) {
            let of =
                |script: &Script| entry_of(&script.source, id).and_then(|entry| entry.get("ready").cloned());
            compare(id, "ready", of(script).as_ref(), of(&next).as_ref(), &mut edits);
        }
    }
    compare_class(script, &next, &mut edits);
    Ok(edits)
}

/// What the class says of the whole. A connection of the resource's own is not the class's to change.
fn compare_class(script: &Script, next: &Script, edits: &mut Vec<Edit>) {
    let class_field = |script: &'_ Script, field: &str| {
        let said = script.inputs.get("class").and_then(|class| class.get(field));
        said.filter(|value| !value.is_null()).cloned()
    };
    let owns = script.source.get("connection").cloned() != class_field(script, "connection");
    for field in ["connection", "ready"].into_iter().filter(|field| *field != "connection" || !owns) {
        let (was, becomes) = (class_field(script, field), class_field(next, field));
        compare(&Name::from(CLASS), field, was.as_ref(), becomes.as_ref(), edits);
    }
}

/// The script of a resource, had its class provisioned it as it is now; `None` where another class provisioned it, or it
/// is being deleted.
fn next_script(class: &Class, resource: &Resource) -> Option<Result<Script, FieldError>> {
    let recipe = class.recipe.as_ref().ok()?;
    let script = resource.script.as_ref()?;
    if resource.provisioned_by.as_ref() != Some(&class.meta.key.name) || resource.meta.deleting {
        return None;
    }
    let (field, template) = recipe.template.as_ref()?;
    let source = json!({*field: template});
    let mut inputs = script.inputs.clone();
    if let (Some(new), Some(_)) = (&recipe.inputs, script.inputs.get("class")) {
        let claim = script.inputs.get("claim").unwrap_or(&Value::Null);
        match parameters(new, claim) {
            Ok(parameters) => {
                inputs["class"] = new.clone();
                inputs["parameters"] = parameters;
            }
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(Script { text: source.to_string(), source, inputs }))
}

/// How an object that cannot be rendered is treated.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    /// It is compared as it is written.
    AsWritten,
    /// It is an error.
    Fails,
}

/// The objects of a script, rendered as far as that is possible without outputs.
fn objects(script: &Script, wrong: Wrong) -> Result<BTreeMap<Name, Value>, FieldError> {
    let Script { source, inputs, .. } = script;
    let fields = Source {
        template: source.get("template"),
        templates: source.get("templates"),
        ready: None,
        connection: None,
    };
    let seen = Inputs {
        claim: inputs.get("claim"),
        class: inputs.get("class"),
        resource: inputs.get("resource"),
        parameters: inputs.get("parameters"),
        objects: BTreeMap::new(),
    };
    let rendered = CompiledClass::compile(&fields)?.render(&seen);
    let known = rendered.into_iter().filter_map(|(id, rendered)| match rendered {
        Rendered::Made(object) => Some(Ok((id, object))),
        Rendered::LeftOut => None,
        Rendered::Wrong(error) if wrong == Wrong::Fails => Some(Err(error)),
        Rendered::Waits(_) | Rendered::Wrong(_) => {
            let written = as_written(source, &id);
            Some(Ok((id, written)))
        }
    });
    known.collect()
}

fn as_written(source: &Value, id: &str) -> Value {
    let named = entry_of(source, id).and_then(|entry| entry.get("template"));
    named.or_else(|| source.get("template")).cloned().unwrap_or_default()
}

/// The entry of `templates` that has this id.
fn entry_of<'a>(source: &'a Value, id: &str) -> Option<&'a Value> {
    let several = source.get("templates").and_then(Value::as_array).into_iter().flatten();
    several.into_iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(id))
}

/// Walks two values side by side down to where they differ. Lists are compared whole.
fn compare(object: &Name, path: &str, was: Option<&Value>, becomes: Option<&Value>, edits: &mut Vec<Edit>) {
    match (was, becomes) {
        (was, becomes) if was == becomes => {}
        (Some(Value::Object(was)), Some(Value::Object(becomes))) => {
            let keys: BTreeSet<&String> = was.keys().chain(becomes.keys()).collect();
            for key in keys {
                let point = if path.is_empty() { "" } else { "." };
                let below = format!("{path}{point}{key}");
                compare(object, &below, was.get(key), becomes.get(key), edits);
            }
        }
        (was, becomes) => edits.push(Edit {
            object: object.clone(),
            path: path.to_owned(),
            was: was.cloned(),
            becomes: becomes.cloned(),
        }),
    }
}

fn insert(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value);
    }
}

/// The merge patch from `was` to `wanted`; `None` where they are the same. Lists are replaced whole.
pub fn difference(was: &Value, wanted: &Value) -> Option<Value> {
    if was == wanted {
        return None;
    }
    let (Value::Object(was), Value::Object(wanted)) = (was, wanted) else { return Some(wanted.clone()) };
    let gone = was.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = wanted.iter().filter_map(|(key, value)| {
        Some((key.clone(), difference(was.get(key).unwrap_or(&Value::Null), value)?))
    });
    Some(Value::Object(gone.chain(changed).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_removes_what_is_no_longer_wanted() {
        let was = json!({"a": 1, "b": {"c": [1, 2], "d": 3}, "e": 5});
        let wanted = json!({"a": 1, "b": {"c": [1], "d": 3}, "f": {"g": 1}});
        assert_eq!(difference(&was, &wanted), Some(json!({"b": {"c": [1]}, "e": null, "f": {"g": 1}})));
        assert_eq!(difference(&was, &was), None);
    }
}
