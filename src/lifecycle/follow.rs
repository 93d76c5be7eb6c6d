//! A class that is edited, and the resources that were made from it: what would change for each, and, where the class
//! says Follow, the change. Nothing here decides whether a class may be edited.

use crate::action::Change;
use crate::model::{Class, FieldError, Name, Resource, Script};
use crate::template::{Blueprint, Inputs, Rendered, Source, parameters};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// One thing that an edit of a class changes in an object that was made from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Which object; `main` where there is only one.
    pub object: Name,
    /// Where in it, such as `spec.storage.size`; empty where the whole object comes or goes.
    pub path: String,
    /// What is there; nothing where nothing is.
    pub was: Option<Value>,
    /// What would be there; nothing where nothing would be.
    pub becomes: Option<Value>,
}

/// The change that brings a resource in line with the class that it was made from; nothing where it is, or was not
/// made from this one, or its parameters are not allowed any more.
pub fn plan_follow(class: &Class, resource: &Resource) -> Option<Change> {
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

/// What a class would change in the objects of a resource that was made from it, object by object. An object that
/// needs what another tells of itself is compared as it is written, with its expressions.
///
/// # Errors
/// A class that makes nothing, or that does not allow the resource's parameters any more.
pub fn preview(class: &Class, resource: &Resource) -> Result<Vec<Edit>, FieldError> {
    let Some(script) = resource.script.as_ref() else { return Ok(Vec::new()) };
    class.recipe.as_ref().map_err(Clone::clone)?;
    let Some(next) = next_script(class, resource) else { return Ok(Vec::new()) };
    let (was, becomes) = (objects(&script.source, &script.inputs)?, objects_of(&next?)?);
    let ids: BTreeSet<&Name> = was.keys().chain(becomes.keys()).collect();
    let mut edits = Vec::new();
    for id in ids {
        compare(id, "", was.get(id), becomes.get(id), &mut edits);
    }
    Ok(edits)
}

/// What would be computed for a resource, had it been made from the class as it is now; nothing where it was not
/// made from it, or is going.
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

fn objects_of(script: &Script) -> Result<BTreeMap<Name, Value>, FieldError> {
    objects(&script.source, &script.inputs)
}

/// The objects of a source, rendered as far as that can be done without looking at any.
fn objects(source: &Value, inputs: &Value) -> Result<BTreeMap<Name, Value>, FieldError> {
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
    let rendered = Blueprint::compile(&fields)?.render(&seen);
    let known = rendered.into_iter().filter_map(|(id, rendered)| match rendered {
        Rendered::Made(object) => Some((id, object)),
        Rendered::LeftOut => None,
        Rendered::Waits(_) | Rendered::Wrong(_) => {
            let written = as_written(source, &id);
            Some((id, written))
        }
    });
    Ok(known.collect())
}

fn as_written(source: &Value, id: &str) -> Value {
    let several = source.get("templates").and_then(Value::as_array).into_iter().flatten();
    let named = several.into_iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(id));
    let template = named.and_then(|entry| entry.get("template")).or_else(|| source.get("template"));
    template.cloned().unwrap_or_default()
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

/// The merge patch that makes `wanted` of `was`; nothing where they are the same. Lists are replaced whole.
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
    fn a_difference_takes_away_what_is_no_longer_wanted() {
        let was = json!({"a": 1, "b": {"c": [1, 2], "d": 3}, "e": 5});
        let wanted = json!({"a": 1, "b": {"c": [1], "d": 3}, "f": {"g": 1}});
        assert_eq!(difference(&was, &wanted), Some(json!({"b": {"c": [1]}, "e": null, "f": {"g": 1}})));
        assert_eq!(difference(&was, &was), None);
    }
}
