//! `docs/reference/fields.md` is what the types say of each field of each kind.

use conductor::api::crds;
use conductor::predicates::{Actor, Definition, Predicate, Side};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use std::fmt::Write;
use std::path::Path;

const HEADER: &str = "# Fields

What each kind has, field by field; `kubectl explain` shows the same. Generated from the types by `make references`.
Do not edit. `[]` is an item of a list, `.*` the value of a key that its author chooses, and **bold** a field that must
be there.
";

#[test]
fn the_reference_of_fields_is_what_the_types_say() {
    let mut page = HEADER.to_owned();
    crds().iter().for_each(|crd| add_kind(crd, &mut page));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/fields.md");
    if std::env::var_os("UPDATE_REFERENCES").is_some() {
        std::fs::write(&path, &page).expect("docs/reference can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/fields.md is stale: run `make references`");
}

const PREDICATES: &str = "# Predicates

Why a resource is refused, in the order of the registry in `src/predicates/mod.rs`. Generated from the definitions by
`make references`. Do not edit. A resource is counted under the first predicate that refuses it, by the kind of its key:
class, group, namespaces, range, attribute, labels, standing, capacity. A predicate without a key decides on the claim.

| predicate | holds where | claim's field | resource's field | key | settled by | profile |
|---|---|---|---|---|---|---|
";

#[test]
fn the_reference_of_predicates_is_what_their_definitions_say() {
    let mut page = PREDICATES.to_owned();
    Predicate::ALL
        .iter()
        .for_each(|predicate| add_predicate(predicate.name(), predicate.definition(), &mut page));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/predicates.md");
    if std::env::var_os("UPDATE_REFERENCES").is_some() {
        std::fs::write(&path, &page).expect("docs/reference can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/predicates.md is stale: run `make references`");
}

fn add_predicate(name: &str, definition: &Definition, page: &mut String) {
    let fields = |side: Side| {
        let kept = definition.recorded.iter().filter(|kept| kept.side == side).map(|kept| kept.field);
        let own = definition.field.map(|field| match side {
            Side::Claim => field.claim,
            Side::Resource => field.resource,
        });
        own.into_iter().chain(kept).map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
    };
    let keys: Vec<&str> = definition.checks.iter().map(|check| check.key.name()).collect();
    let actor = match definition.actor {
        Actor::Author => "author",
        Actor::Application => "author, with the application",
        Actor::Administrator => "administrator",
    };
    let profile = if definition.optional { "may switch it off" } else { "" };
    let (claim, resource) = (fields(Side::Claim), fields(Side::Resource));
    let about = definition.about;
    let _ = writeln!(
        page,
        "| {name} | {about} | {claim} | {resource} | {} | {actor} | {profile} |",
        keys.join(", ")
    );
}

fn add_kind(crd: &CustomResourceDefinition, page: &mut String) {
    let version = &crd.spec.versions[0];
    let schema =
        version.schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref()).expect("it has a schema");
    let (kind, group) = (&crd.spec.names.kind, &crd.spec.group);
    let _ = writeln!(page, "\n## {kind}\n\n`{group}/{}`. {}\n", version.name, one_line(schema));
    page.push_str("| field | type | meaning |\n|---|---|---|\n");
    for part in ["spec", "status"] {
        if let Some(part_schema) = schema.properties.as_ref().and_then(|p| p.get(part)) {
            add_fields(part_schema, part, page);
        }
    }
}

/// Adds a row for each field of an object, each followed by those inside it.
fn add_fields(schema: &JSONSchemaProps, path: &str, page: &mut String) {
    let is_required = |name: &String| schema.required.iter().flatten().any(|required| required == name);
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let shown = if is_required(name) { format!("**`{path}`**") } else { format!("`{path}`") };
        let _ = writeln!(page, "| {shown} | {} | {} |", type_of(field), cell(&one_line(field)));
        add_inside(field, &path, page);
    }
}

fn add_inside(schema: &JSONSchemaProps, path: &str, page: &mut String) {
    add_fields(schema, path, page);
    if let Some(item) = item_of(schema) {
        add_inside(item, &format!("{path}[]"), page);
    }
    if let Some(value) = value_of(schema) {
        add_inside(value, &format!("{path}.*"), page);
    }
}

fn item_of(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(item) => Some(item),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

fn value_of(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrBool::Schema;
    match schema.additional_properties.as_ref()? {
        Schema(value) => Some(value),
        _ => None,
    }
}

fn type_of(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".to_owned();
    }
    let words = schema.enum_.iter().flatten().filter_map(|word| word.0.as_str());
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match (schema.type_.as_deref(), schema.format.as_deref()) {
        (Some("string"), _) if !words.is_empty() => words.join(", "),
        (Some("array"), _) => format!("list of {}", item_of(schema).map_or("any".to_owned(), type_of)),
        (Some("object"), _) if value_of(schema).is_some() => {
            format!("map of {}", value_of(schema).map_or("any".to_owned(), type_of))
        }
        (Some("string"), Some("date-time")) => "time".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

fn one_line(schema: &JSONSchemaProps) -> String {
    schema.description.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
