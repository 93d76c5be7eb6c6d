//! The CRDs on a real API server: accepted, established, explained, and refusing what the table says they refuse.
//! Conductor itself does not run here.

use conductor_controlplane::ControlPlane;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn root(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// Runs kubectl and wants it to succeed; gives what it printed.
#[track_caller]
fn run(plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = plane.kubectl(arguments).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {}: {err}{out}", arguments.join(" "));
    out.into_owned()
}

fn path(path: PathBuf) -> String {
    path.display().to_string()
}

/// One control plane serves all of it: starting one costs more than everything below.
#[test]
fn a_real_api_server_serves_the_kinds_as_documented() {
    let plane = ControlPlane::start().unwrap();
    install(&plane);
    admission_table(&plane);
    seeds_apply_as_they_stand(&plane);
    columns_answer_the_question(&plane);
    every_field_is_explained(&plane);
}

fn install(plane: &ControlPlane) {
    run(plane, &["apply", "--server-side", "-f", &path(root("crds"))]);
    run(plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    // Kubernetes accepts a schema that is not structural and says so only here.
    let crds: Value = serde_json::from_str(&run(plane, &["get", "crd", "-o", "json"])).unwrap();
    let items = crds["items"].as_array().unwrap();
    // All but the list that kustomize reads.
    assert_eq!(items.len(), fs::read_dir(root("crds")).unwrap().count() - 1);
    for crd in items {
        let conditions = crd["status"]["conditions"].as_array().unwrap();
        let bad = conditions.iter().find(|c| c["type"] == "NonStructuralSchema" && c["status"] == "True");
        assert_eq!(bad, None, "{}", crd["metadata"]["name"]);
    }
}

fn admission_table(plane: &ControlPlane) {
    let text = fs::read_to_string(root("tests/fixtures/admission.yaml")).unwrap();
    let cases: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    let namespaces: BTreeSet<&str> =
        cases.iter().filter_map(|c| c["object"]["metadata"]["namespace"].as_str()).collect();
    for namespace in namespaces.iter().filter(|n| **n != "default") {
        run(plane, &["create", "namespace", namespace]);
    }
    let mut wrong = Vec::new();
    for case in &cases {
        let object = case["object"].to_string();
        let arguments = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
        let output = plane.kubectl_with_input(&arguments, &object).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match case["refuses"].as_str() {
            None if !output.status.success() => wrong.push(format!("{}: refused: {said}", case["case"])),
            Some(_) if output.status.success() => wrong.push(format!("{}: accepted", case["case"])),
            Some(part) if !said.contains(part) => {
                wrong.push(format!("{}: no {part} in: {said}", case["case"]))
            }
            None | Some(_) => {}
        }
    }
    println!("{} admission cases on the real API server", cases.len());
    assert!(cases.len() > 50 && wrong.is_empty(), "{}", wrong.join("\n"));
}

fn seeds_apply_as_they_stand(plane: &ControlPlane) {
    run(plane, &["create", "namespace", "wordpress"]);
    for file in ["relational-database", "relational-database-claim", "relational-database-class"] {
        run(plane, &["apply", "-f", &path(root(&format!("tests/fixtures/seed-004/{file}.yaml")))]);
    }
    let stored = run(plane, &["get", "rdb", "database-445", "-n", "conductor-system", "-o", "json"]);
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["spec"]["version"], 5.6);
    assert_eq!(stored["spec"]["highly-available"], true);
    assert_eq!(stored["spec"]["template"]["metadata"]["label"], "foo");
}

fn columns_answer_the_question(plane: &ControlPlane) {
    let claims = run(plane, &["get", "rdbc", "-n", "wordpress"]);
    for column in ["PHASE", "RESOURCE", "CLASS", "AGE"] {
        assert!(claims.contains(column), "no {column} in\n{claims}");
    }
    let all = run(plane, &["get", "conductor", "-A"]);
    assert!(all.contains("database-445") && all.contains("wordpress-db"), "{all}");
}

fn every_field_is_explained(plane: &ControlPlane) {
    for (kind, field, word) in [
        ("rdbc", "spec.version", "range"),
        ("rdb", "spec.claimRefs", "claim"),
        ("rdbclass", "template", "implements"),
        ("claimquotas", "spec.limits", "limit"),
        ("claimlimits", "spec.default", "claim"),
        ("schedulingprofiles", "spec.batch", "together"),
    ] {
        let said = run(plane, &["explain", &format!("{kind}.{field}")]).to_lowercase();
        assert!(said.contains("description") && said.contains(word), "{kind}.{field}:\n{said}");
    }
}
