//! The page for authors of classes, docs/classes.md: its manifests can be used, and its expressions give what it says.

use crate::stage::{Stage, object, part_kind, root};
use conductor::lifecycle::with_checked_templates;
use conductor::model::{AllowedKinds, Class, Kind, TypeId};
use conductor::template::Adapters;
use serde_json::{Value, json};

const INSTANCE: (&str, &str) = ("example.com/v1", "Instance");

fn page() -> String {
    std::fs::read_to_string(root("docs/classes.md")).expect("the page is there")
}

/// The page's manifests, as text.
fn blocks(page: &str) -> Vec<&str> {
    let fenced = page.split("```yaml\n").skip(1);
    fenced.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The expressions of the page, each with what it says they give.
fn rows(page: &str) -> Vec<(&str, Value)> {
    let cells =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `"));
    let reported = cells.filter(|(expression, _)| expression.contains("${"));
    reported.map(|(expression, gives)| (expression, serde_json::from_str(gives).expect(gives))).collect()
}

#[test]
fn every_manifest_on_the_page_can_be_used() {
    let page = page();
    let mut adapters = 0;
    for block in blocks(&page) {
        let manifest = yaml(block);
        if manifest.get("group").is_some() {
            adapters += 1;
            Adapters::read([("docs/classes.md", block)]).unwrap_or_else(|error| panic!("{error}"));
            continue;
        }
        let object = object(manifest);
        if let Kind::Class(ty) = object.kind {
            let class = with_checked_templates(Class::read(ty, &object), &AllowedKinds::default());
            class.recipe.unwrap_or_else(|error| panic!("{error}\n{block}"));
        }
    }
    assert_eq!((blocks(&page).len(), adapters), (5, 1));
}

#[test]
fn every_expression_on_the_page_gives_what_it_says() {
    let page = page();
    let manifests: Vec<Value> = blocks(&page).into_iter().map(yaml).collect();
    let (class, claim) = (&manifests[0], &manifests[1]);
    assert_eq!(object(claim.clone()).kind, Kind::Claim(TypeId::RELATIONAL_DATABASE));
    let rows = rows(&page);
    assert!(rows.len() >= 14, "{rows:?}");
    for (expression, gives) in rows {
        let mut class = class.clone();
        class["template"] =
            json!({"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": {"value": expression}});
        let mut stage = Stage::new(&[part_kind(INSTANCE)]);
        stage.apply(class);
        stage.apply(claim.clone());
        assert_eq!(
            stage.part(INSTANCE).body["spec"]["value"],
            gives,
            "{expression}: {:?}",
            stage.resources()
        );
    }
}
