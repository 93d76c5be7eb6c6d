//! `sim plan -o json`: the contract, byte for byte, and the same bytes whatever the order of the input.

use super::*;
use expect_test::expect;

const SEED: [&str; 3] = [
    "tests/fixtures/seed-004/relational-database.yaml",
    "tests/fixtures/seed-004/relational-database-claim.yaml",
    "tests/fixtures/seed-004/relational-database-class.yaml",
];

#[test]
fn the_seeds_claim_is_bound_to_its_database() {
    let plan = json(&run(&[&["sim", "plan", "-o", "json"], &SEED[..]].concat()));
    let claim = &plan["claims"][0];
    assert_eq!((&claim["namespace"], &claim["name"]), (&"wordpress".into(), &"wordpress-db".into()));
    assert_eq!((&claim["outcome"], &claim["resource"]["name"]), (&"Bound".into(), &"database-445".into()));
    assert_eq!(plan["resources"][0]["claims"][0], "wordpress/wordpress-db");
}

#[test]
fn the_document_is_the_contracts() {
    let input = documents(&[
        resource("db-1", "engine: mysql, version: 5.7"),
        resource("db-2", "engine: mysql, version: 7.5"),
        claim("x", "engine: mysql"),
        claim("y", "engine: mysql, version: '>= 8'"),
    ]);
    expect![[r#"
        {
          "apiVersion": "simulator.conductor.io/v1alpha1",
          "kind": "Plan",
          "digest": "sha256:",
          "summary": {
            "claims": 2,
            "bound": 1,
            "provision": 0,
            "pending": 1,
            "lost": 0
          },
          "claims": [
            {
              "kind": "RelationalDatabaseClaim",
              "namespace": "a",
              "name": "x",
              "outcome": "Bound",
              "resource": {
                "namespace": "conductor-system",
                "name": "db-1"
              },
              "class": null,
              "message": "would be bound to db-1",
              "reasons": [],
              "nearest": []
            },
            {
              "kind": "RelationalDatabaseClaim",
              "namespace": "a",
              "name": "y",
              "outcome": "Pending",
              "resource": null,
              "class": null,
              "message": "0/2 resources fit: 2 version",
              "reasons": [
                {
                  "predicate": "Version",
                  "count": 2,
                  "message": "2 resources have no version in >= 8"
                }
              ],
              "nearest": [
                {
                  "change": "widen the claim's version to >= 7",
                  "binds": "db-2"
                }
              ]
            }
          ],
          "resources": [
            {
              "namespace": "conductor-system",
              "name": "db-1",
              "phase": "Bound",
              "claims": [
                "a/x"
              ],
              "reclaim": null
            },
            {
              "namespace": "conductor-system",
              "name": "db-2",
              "phase": "Available",
              "claims": [],
              "reclaim": null
            }
          ]
        }
    "#]]
    .assert_eq(&without_digest(&succeed(&run_with(&["sim", "plan", "-", "-o", "json"], &input))));
}

fn without_digest(text: &str) -> String {
    let at = text.find("sha256:").expect("there is a digest") + "sha256:".len();
    format!("{}{}", &text[..at], &text[at + 64..])
}

#[test]
fn any_order_and_any_run_gives_the_same_bytes() {
    let first = succeed(&run(&["sim", "plan", "examples/plan/teams.yaml", "-o", "json"]));
    let manifest = std::fs::read_to_string(root().join("examples/plan/teams.yaml")).unwrap();
    let mut parts: Vec<&str> = manifest.split("\n---\n").collect();
    for turn in 0..parts.len() {
        parts.rotate_left(1);
        if turn.is_multiple_of(3) {
            parts.reverse();
        }
        let again = succeed(&run_with(&["sim", "plan", "-", "-o", "json"], parts.join("\n---\n").as_bytes()));
        assert!(first == again, "turn {turn} differs");
    }
}

#[test]
fn the_digest_follows_the_content() {
    let digest = |claims: &[String]| {
        let plan = json(&run_with(&["sim", "plan", "-", "-o", "json"], &documents(claims)));
        plan["digest"].as_str().unwrap().to_owned()
    };
    let one = digest(&[claim("x", "")]);
    assert_eq!(one.len(), "sha256:".len() + 64);
    assert_ne!(one, digest(&[claim("y", "")]));
    assert_eq!(one, digest(&[claim("x", "")]));
}

#[test]
fn the_example_plans_as_its_comments_say() {
    let plan = json(&run(&["sim", "plan", "examples/plan/teams.yaml", "-o", "json"]));
    let claims = plan["claims"].as_array().unwrap().iter();
    let reported: Vec<String> = claims
        .map(|c| {
            let gets = c["resource"]["name"].as_str().or(c["class"].as_str()).unwrap_or("-");
            let text = |field: &str| c[field].as_str().unwrap().to_owned();
            format!("{}/{} {} {gets}", text("namespace"), text("name"), text("outcome"))
        })
        .collect();
    assert_eq!(
        reported,
        [
            "blog/comments Bound shared-mysql",
            "blog/old-blog Pending -",
            "blog/search Provision postgres-small",
            "reports/archive Bound warehouse-14",
            "reports/warehouse Pending -",
            "shop/orders Bound orders-primary",
            "shop/sessions Bound shared-mysql",
            "shop/tests Pending -",
        ]
    );
    let old = plan["resources"].as_array().unwrap().iter().find(|r| r["name"] == "old-blog").unwrap();
    assert_eq!(old["reclaim"], "Delete");
}

#[test]
fn the_crds_are_the_files() {
    let printed = succeed(&run(&["crds"]));
    let documents: Vec<&str> = printed.split("---\n").collect();
    let json = json(&run(&["crds", "-o", "json"]));
    let items = json["items"].as_array().unwrap();
    assert_eq!(documents.len(), items.len());
    let mut files = 0;
    for (document, item) in documents.iter().zip(items) {
        let file = root().join("crds").join(format!("{}.yaml", item["metadata"]["name"].as_str().unwrap()));
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.ends_with(document), "{} differs", file.display());
        let back: Value = serde_saphyr::from_str(document).unwrap();
        assert_eq!(&back, item);
        files += 1;
    }
    // Beside them there is only what lists them for kubectl.
    let there = std::fs::read_dir(root().join("crds")).unwrap().filter_map(Result::ok);
    let yaml = there.filter(|file| file.path().extension().is_some_and(|ending| ending == "yaml"));
    assert_eq!(files, yaml.count());
}
