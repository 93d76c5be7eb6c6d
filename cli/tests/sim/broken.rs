//! Input that is wrong: reported with its place, refused whole or in part, and never a panic.

use super::*;
use proptest::prelude::*;

#[test]
fn a_broken_file_is_refused_with_its_name_and_line() {
    let path = folder("broken").join("claims.yaml");
    std::fs::write(&path, "apiVersion: v1\nkind: List\nitems: [\n").unwrap();
    let reported = refused(&run(&["sim", "plan", path.to_str().unwrap()]));
    assert!(reported.starts_with("error: ") && reported.contains("claims.yaml:"), "{reported}");
    let line = reported.split("claims.yaml:").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert!(["3", "4"].contains(&line), "{reported}");
}

#[test]
fn a_path_that_is_not_there_is_refused() {
    let reported = refused(&run(&["sim", "plan", "no/such/file.yaml"]));
    assert!(reported.contains("no/such/file.yaml: no such file"), "{reported}");
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["sim", "plan"][..],
        &["sim", "plan", "-o", "xml", "-"],
        &["sim", "dance"],
        &["sim", "explain", "-", "--claim", "a/b/c"],
        &["sim", "explain", "-", "--claim", "/b"],
    ] {
        refused(&run(arguments));
    }
}

#[test]
fn a_broken_object_hurts_only_itself() {
    let nameless = claim("x", "").replace("name: 'x', ", "");
    let input = documents(&[
        claim("bad", "version: '>= banana'"),
        claim("good", "engine: mysql"),
        nameless,
        resource("db-1", "engine: mysql"),
        resource("db-2", "capacity: {storage: plenty}"),
    ]);
    let output = run_with(&["sim", "plan", "-", "-o", "json"], &input);
    let plan = json(&output);
    assert_eq!(
        plan["summary"],
        serde_json::json!({"claims": 2, "bound": 1, "provision": 0, "pending": 1, "lost": 0})
    );
    assert_eq!(
        (&plan["claims"][0]["name"], &plan["claims"][0]["outcome"]),
        (&"bad".into(), &"Pending".into())
    );
    assert!(plan["claims"][0]["message"].as_str().unwrap().contains("spec.version"), "{plan:#}");
    let reported = text(&output.stderr);
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 3, "{reported}");
    for (line, start) in lines.iter().zip([
        "warning: stdin:11: document 3: no `metadata.name`",
        "warning: stdin:1: RelationalDatabaseClaim a/bad: spec.version",
        "warning: stdin:21: RelationalDatabase conductor-system/db-2: spec.capacity",
    ]) {
        assert!(line.starts_with(start), "{line}\nshould start with\n{start}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let claims: Vec<String> = (0..2_000).map(|at| claim(&format!("c{at}"), "engine: mysql")).collect();
    let mut command = conductor(&["sim", "plan", "-", "-o", "json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&documents(&claims)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn no_input_makes_it_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..4_000, cut in 0usize..50) {
        let mut bytes = std::fs::read(root().join("examples/plan/teams.yaml")).unwrap();
        bytes.splice(at..at + cut, noise);
        let output = run_with(&["sim", "plan", "-", "-o", "json"], &bytes);
        prop_assert!(matches!(output.status.code(), Some(0 | 2)), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn no_value_makes_it_panic(value in "[-0-9a-zA-Z.,:|<>=~^*{}\\[\\] ]{0,20}", field in 0usize..9) {
        let fields = ["engine", "version", "class", "selector", "resources", "priority", "claimRefs", "sharing", "capacity"];
        let spec = format!("{}: {value:?}", fields[field]);
        let input = documents(&[claim("x", &spec), resource("db", &spec)]);
        let output = run_with(&["sim", "explain", "-"], &input);
        prop_assert!(matches!(output.status.code(), Some(0 | 2)), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
