//! `conductor diff class`: the class as it would be, held against every resource that was made from it. What would
//! change is the library's to say; here it is asked and shown.

use crate::args::{DiffClassArguments, Format};
use crate::{cluster, output, table};
use anyhow::{Context, Result, bail};
use conductor::lifecycle::{Edit, preview, with_checked_templates};
use conductor::model::{AllowedKinds, Class, Kind, Name, Object, Resource, TypeId};
use conductor_simulator::load::{self, LoadOptions};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

/// What would change, everywhere.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Diff {
    class: String,
    /// Whether existing resources follow once the edit is applied.
    follows: bool,
    resources: Vec<ResourceDiff>,
}

/// What would change in one resource.
#[derive(Debug, Serialize)]
struct ResourceDiff {
    name: String,
    changes: Vec<Shown>,
    /// Why the class cannot be held against it.
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
pub fn class(arguments: &DiffClassArguments) -> Result<ExitCode> {
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
        Format::Table => show(&mut output::plain(&mut out), &diff)?,
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(differs)))
}

fn from_file(file: &std::path::Path, class: &str, system: &str) -> Result<Object> {
    let options = LoadOptions { system_namespace: system.into(), ..LoadOptions::default() };
    let loaded = load::load(&[file], &options)?;
    for rounded in &loaded.rounded {
        output::complain_once(&format!("warning: {rounded}"));
    }
    let mut objects = loaded.objects.into_iter().map(|loaded| loaded.object);
    let of_class = objects
        .find(|object| object.kind == Kind::Class(TYPE) && object.metadata.name.as_deref() == Some(class));
    of_class.with_context(|| format!("{}: there is no RelationalDatabaseClass {class} in it", file.display()))
}

fn compare(object: &Object, resources: &[Object]) -> Result<Diff> {
    let class = with_checked_templates(Class::read(TYPE, object), &AllowedKinds::default());
    let name = class.meta.key.name.clone();
    let recipe =
        class.recipe.as_ref().map_err(|error| anyhow::anyhow!("class {name} cannot be read: {error}"))?;
    let made = resources.iter().map(|object| Resource::read(TYPE, object));
    let made = made.filter(|resource| resource.provisioned_by.as_ref() == Some(&name));
    let resources = made.map(|resource| compare_one(&class, &resource)).collect();
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
        output::complain(&format!(
            "nothing would change in {} resources of class {}",
            diff.resources.len(),
            diff.class
        ));
        return Ok(());
    }
    table::listed(out, &["RESOURCE", "OBJECT", "WHERE", "WAS", "BECOMES"], rows)?;
    output::complain(match diff.follows {
        true => "updatePolicy Follow: existing resources change once this is applied",
        false => "updatePolicy Never: existing resources stay as they were made",
    });
    Ok(())
}

fn rows(resource: &ResourceDiff) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if let Some(error) = &resource.error {
        rows.push(vec![resource.name.clone(), "-".to_owned(), "-".to_owned(), "-".to_owned(), error.clone()]);
    }
    for change in &resource.changes {
        let path = if change.path.is_empty() { "the whole" } else { &change.path };
        let (was, becomes) = (short(change.was.as_ref()), becomes(change));
        rows.push(vec![resource.name.clone(), change.object.clone(), path.to_owned(), was, becomes]);
    }
    rows
}

/// What would be there. An object that a class no longer names is not taken from under its resource.
fn becomes(change: &Shown) -> String {
    match (&change.becomes, change.path.is_empty()) {
        (None, true) => "stays as it is, and goes with the resource".to_owned(),
        (becomes, _) => short(becomes.as_ref()),
    }
}

/// How much of a value a table shows; JSON has all of it.
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
    fn what_a_class_says_of_the_whole_is_shown_too() {
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
    fn a_template_that_cannot_be_rendered_is_its_resources_error_and_not_its_value() {
        let edited = class("${parameters.size}");
        let diff = compare(&edited, &[resource()]).expect("the class can be read");
        let told = diff.resources[0].error.as_deref().unwrap_or_default();
        assert!(told.contains("template.spec.size") && told.contains("which is not set"), "{told}");
        assert!(diff.resources[0].changes.is_empty());
    }

    #[test]
    fn an_edit_shows_what_it_changes_where_and_nothing_else() {
        let diff = compare(&class("large"), &[resource()]).expect("the class can be read");
        let rows: Vec<_> = diff.resources.iter().flat_map(rows).collect();
        assert_eq!(rows, [["r", "main", "spec.size", "small", "large"]]);
        let same = compare(&class("small"), &[resource()]).expect("the class can be read");
        assert!(same.resources[0].changes.is_empty() && same.resources[0].error.is_none());
    }
}
