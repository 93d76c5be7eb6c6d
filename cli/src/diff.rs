//! `conductor diff class`: previews an edited class against every resource that was provisioned from it. The engine
//! computes the changes; this file prints them.

use crate::args::{DiffClassArguments, Format};
use crate::sim::plural;
use crate::{cluster, output, table};
use anyhow::{Context, Result, bail};
use conductor::lifecycle::{Edit, preview, with_checked_templates};
use conductor::model::{AllowedKinds, Class, Kind, Name, Object, Resource, TypeId};
use conductor_simulator::load::{self, LoadOptions};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

/// What would change in all resources.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Diff {
    class: String,
    /// Whether existing resources follow an applied edit.
    follows: bool,
    resources: Vec<ResourceDiff>,
}

/// What would change in one resource.
#[derive(Debug, Serialize)]
struct ResourceDiff {
    name: String,
    changes: Vec<Shown>,
    /// Why the class cannot be compared with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Shown {
    object: String,
    path: String,
    was: Option<Value>,
    becomes: Option<Value>,
}

impl From<Edit> for Shown {
    fn from(edit: Edit) -> Shown {
        let Edit { object, path, was, becomes } = edit;
        Shown { object: object.to_string(), path, was, becomes }
    }
}

/// `conductor diff class`.
pub fn class(arguments: &DiffClassArguments) -> Result<u8> {
    let system = arguments.cluster.system_namespace.as_str();
    let edited = arguments.file.as_ref().map(|file| from_file(file, &arguments.class, system)).transpose()?;
    let (classes, resources) = cluster::block_on(async {
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        let classes = conductor_controller::list(&client, Kind::Class(TYPE), None, system).await?;
        Ok((classes, conductor_controller::list(&client, Kind::Resource(TYPE), None, system).await?))
    })?;
    let known = classes.into_iter().find(|c| c.metadata.name.as_ref() == Some(&arguments.class));
    let Some(object) = edited.or(known) else {
        bail!("no class {} on the cluster: see `conductor get classes`", arguments.class);
    };
    let diff = compare(&object, &resources)?;
    let differs = diff.resources.iter().any(|r| r.error.is_some() || !r.changes.is_empty());
    let mut out = output::stdout();
    match arguments.output {
        Format::Json => output::json(&mut out, &diff)?,
        Format::Table => show(&mut output::sanitized(&mut out), &diff)?,
    }
    out.flush()?;
    Ok(u8::from(differs))
}

fn from_file(file: &std::path::Path, class: &str, system: &str) -> Result<Object> {
    let options = LoadOptions { system_namespace: system.into(), ..LoadOptions::default() };
    let loaded = load::load(&[file], &options)?;
    for rounded in &loaded.rounded {
        output::diagnostic_once(&format!("warning: {rounded}"));
    }
    let mut objects = loaded.objects.into_iter().map(|loaded| loaded.object);
    let of_class = objects
        .find(|object| object.kind == Kind::Class(TYPE) && object.metadata.name.as_deref() == Some(class));
    of_class.with_context(|| format!("{} has no RelationalDatabaseClass {class}", file.display()))
}

fn compare(object: &Object, resources: &[Object]) -> Result<Diff> {
    let class = with_checked_templates(Class::read(TYPE, object), &AllowedKinds::default());
    let name = class.meta.key.name.clone();
    let recipe =
        class.recipe.as_ref().map_err(|error| anyhow::anyhow!("class {name} cannot be read: {error}"))?;
    let provisioned = resources.iter().map(|object| Resource::read(TYPE, object));
    let provisioned = provisioned.filter(|resource| resource.provisioned_by.as_ref() == Some(&name));
    let resources = provisioned.map(|resource| compare_one(&class, &resource)).collect();
    Ok(Diff { class: name.to_string(), follows: recipe.follows, resources })
}

fn compare_one(class: &Class, resource: &Resource) -> ResourceDiff {
    let name: &Name = &resource.meta.key.name;
    let (changes, error) = match preview(class, resource) {
        Ok(edits) => (edits.into_iter().map(Shown::from).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    ResourceDiff { name: name.to_string(), changes, error }
}

fn show(out: &mut impl Write, diff: &Diff) -> Result<()> {
    let rows: Vec<Vec<String>> = diff.resources.iter().flat_map(rows).collect();
    if rows.is_empty() {
        output::diagnostic(&format!(
            "class {}: nothing would change in {}",
            diff.class,
            plural(diff.resources.len(), "resource")
        ));
        return Ok(());
    }
    table::listed(out, &["RESOURCE", "OBJECT", "PATH", "WAS", "BECOMES"], rows)?;
    output::diagnostic(match diff.follows {
        true => "updatePolicy Follow: existing resources follow once the class is applied",
        false => "updatePolicy Never: existing resources stay unchanged",
    });
    Ok(())
}

fn rows(resource: &ResourceDiff) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if let Some(error) = &resource.error {
        rows.push(vec![resource.name.clone(), "-".to_owned(), "-".to_owned(), "-".to_owned(), error.clone()]);
    }
    for change in &resource.changes {
        let path = if change.path.is_empty() { "(object)" } else { &change.path };
        let (was, becomes) = (short(change.was.as_ref()), becomes(change));
        rows.push(vec![resource.name.clone(), change.object.clone(), path.to_owned(), was, becomes]);
    }
    rows
}

/// The value after the edit. An object that the class no longer names stays with its resource.
fn becomes(change: &Shown) -> String {
    match (&change.becomes, change.path.is_empty()) {
        (None, true) => "stays until the resource is deleted".to_owned(),
        (becomes, _) => short(becomes.as_ref()),
    }
}

/// Longest value that a table shows whole; JSON has all of it.
const SHOWN_CHARS_MAX: usize = 60;

fn short(value: Option<&Value>) -> String {
    let text = match value {
        None => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(size: &str) -> Object {
        let metadata = json!({"name": "k", "namespace": "conductor-system"});
        let template = json!({"apiVersion": "example.com/v1", "kind": "Instance",
            "spec": {"size": size, "for": "${claim.metadata.name}"}});
        Object {
            kind: Kind::Class(TYPE),
            metadata: serde_json::from_value(metadata).expect("it is metadata"),
            body: json!({"template": template}),
        }
    }

    fn resource() -> Object {
        let metadata = json!({"name": "r", "namespace": "conductor-system", "uid": "u",
            "annotations": {"conductor.io/provisioned-by": "k"}});
        let claim = json!({"metadata": {"name": "orders"}, "spec": {}});
        Object {
            kind: Kind::Resource(TYPE),
            metadata: serde_json::from_value(metadata).expect("it is metadata"),
            body: json!({"spec": {
                "template": class("small").body["template"],
                "inputs": {"claim": claim, "class": class("small").body, "parameters": {}},
            }}),
        }
    }

    fn with(mut class: Object, field: &str, value: Value) -> Object {
        class.body[field] = value;
        class
    }

    #[test]
    fn changes_outside_the_template_are_shown_too() {
        let edited = with(class("small"), "connection", json!({"host": "db.example.com"}));
        let edited = with(edited, "ready", json!("object.status.ok"));
        let diff = compare(&edited, &[resource()]).expect("the class can be read");
        let rows: Vec<_> = diff.resources.iter().flat_map(rows).collect();
        let shown = [
            ["r", "class", "connection", "-", r#"{"host":"db.example.com"}"#],
            ["r", "class", "ready", "-", "object.status.ok"],
        ];
        assert_eq!(rows, shown);
    }

    #[test]
    fn a_template_that_cannot_be_rendered_is_an_error() {
        let edited = class("${parameters.size}");
        let diff = compare(&edited, &[resource()]).expect("the class can be read");
        let error = diff.resources[0].error.as_deref().unwrap_or_default();
        assert!(error.contains("template.spec.size") && error.contains("which is not set"), "{error}");
        assert!(diff.resources[0].changes.is_empty());
    }

    #[test]
    fn an_edit_shows_only_what_it_changes() {
        let diff = compare(&class("large"), &[resource()]).expect("the class can be read");
        let rows: Vec<_> = diff.resources.iter().flat_map(rows).collect();
        assert_eq!(rows, [["r", "main", "spec.size", "small", "large"]]);
        let same = compare(&class("small"), &[resource()]).expect("the class can be read");
        assert!(same.resources[0].changes.is_empty() && same.resources[0].error.is_none());
    }
}
