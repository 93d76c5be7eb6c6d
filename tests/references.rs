//! The generated references: `docs/reference/fields.md` from the types, `docs/reference/conditions.md` from the reasons.

use conductor::api::crds;
use conductor::api::reasons::{Reason, TABLES, Table};
use conductor::predicates::{Actor, Definition, Predicate, Side};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEADER: &str = "# Fields

The fields of each kind, as `kubectl explain` shows them. Generated from the types by `make references`; do not edit.
`[]` is an item of a list, `.*` the value of a user-defined key, and **bold** a required field.
";

const CONDITIONS_HEADER: &str = "# Conditions and reasons

Every reason that Conductor sets, by kind and condition: when it sets the reason, and what to do. The message of the
condition names the objects, fields and quantities. Generated from `src/api/reasons.rs` by `make references`; do not edit.
";

const EVENTS_HEADER: &str = "
## Events

Changes of the conditions above appear as Events with the same reason. These reasons appear on Events only.

| reason | type | emitted when | what to do |
|---|---|---|---|
";

#[test]
fn the_reference_of_fields_matches_the_types() {
    let mut page = HEADER.to_owned();
    crds().iter().for_each(|crd| add_kind(crd, &mut page));
    check_page("docs/reference/fields.md", &page);
}

#[test]
fn the_reference_of_conditions_matches_the_table() {
    let mut page = CONDITIONS_HEADER.to_owned();
    for crd in crds() {
        add_conditions(&crd.spec.names.kind, &mut page);
    }
    page.push_str(EVENTS_HEADER);
    for table in TABLES.iter().filter(|table| table.condition.is_none()) {
        table.reasons.iter().for_each(|reason| add_reason(reason, &mut page));
    }
    check_page("docs/reference/conditions.md", &page);
}

fn check_page(file: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_REFERENCES").is_some() {
        std::fs::write(&path, page).expect("docs/reference can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "{file} is stale: run `make references`");
}

/// Adds the conditions of a kind, each with the reasons of all tables that it appears in.
fn add_conditions(kind: &str, page: &mut String) {
    let mut conditions: BTreeMap<&str, Vec<&Table>> = BTreeMap::new();
    for table in TABLES.iter().filter(|table| table.kinds.contains(&kind)) {
        if let Some(condition) = table.condition {
            conditions.entry(condition).or_default().push(table);
        }
    }
    if !conditions.is_empty() {
        let _ = write!(page, "\n## {kind}\n");
    }
    for (condition, tables) in conditions {
        let _ = writeln!(page, "\n### `{condition}`\n");
        page.push_str("| reason | status | set when | what to do |\n|---|---|---|---|\n");
        tables.iter().flat_map(|table| table.reasons).for_each(|reason| add_reason(reason, page));
    }
}

fn add_reason(reason: &Reason, page: &mut String) {
    let Reason { name, status, meaning, action, .. } = reason;
    let _ = writeln!(page, "| `{name}` | {status} | {} | {} |", cell(meaning), cell(action));
}

/// The shipped Rust sources but the table itself, as lines without comments and without tests.
fn shipped_lines() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut lines) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_left_out = ["target", "tests", "benches"].contains(&&*name) || name.starts_with('.');
            if path.is_dir() && !is_left_out {
                folders.push(path);
            } else if name.ends_with(".rs") && !["tests.rs", "reasons.rs"].contains(&&*name) {
                let text = std::fs::read_to_string(&path).expect("it can be read");
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let code = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
                lines.extend(code.map(|line| (path.clone(), line.to_owned())));
            }
        }
    }
    lines
}

#[test]
fn every_reason_of_the_table_is_used() {
    let code: String = shipped_lines().into_iter().map(|(_, line)| line + "\n").collect();
    for table in TABLES {
        for Reason { constant, name, .. } in table.reasons {
            let used = Regex::new(&format!(r"\b{constant}\b")).expect("it is a pattern");
            assert!(used.is_match(&code), "{}::{constant} ({name}) is not used anywhere", table.module);
        }
    }
}

#[test]
fn every_reason_in_the_code_is_a_constant_of_the_table() {
    let literal = Regex::new(r#""([A-Z][a-z]+){2,}""#).expect("it is a pattern");
    let reporting =
        Regex::new(r"\breason: |\btell\w*\(|\bwarn\(|Says::|not_ready\(|waits\(").expect("it is a pattern");
    let names: Vec<String> =
        TABLES.iter().flat_map(|table| table.reasons).map(|reason| format!("{:?}", reason.name)).collect();
    for (path, line) in shipped_lines() {
        let is_conditions = line.contains("find(") || line.contains("matches!") || line.contains("==");
        for found in literal.find_iter(&line).map(|found| found.as_str()) {
            let is_reason = names.iter().any(|name| name == found && found.len() > 12) && !is_conditions;
            assert!(
                !is_reason && !reporting.is_match(&line),
                "{}: {line}: use a constant of conductor::api::reasons",
                path.display()
            );
        }
    }
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
