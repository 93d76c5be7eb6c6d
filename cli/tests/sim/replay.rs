//! Recordings, replays and worlds that are empty, damaged or too large: reported as such, never as success.

use super::*;

const TEAMS: &str = "examples/plan/teams.yaml";

fn recording(name: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let file = folder.join("x.rec").display().to_string();
    succeed(&run(&["sim", "import", TEAMS, "--out", &file]));
    (folder, file)
}

#[test]
fn a_recording_without_a_decision_verifies_nothing() {
    let (_, file) = recording("nothing-decided");
    let output = run(&["sim", "replay", &file, "--verify"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).ends_with("no decision was recorded, nothing was verified\n"));
    let output = run(&["sim", "replay", &file, "--verify", "-o", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(document["agreement"]["percent"].is_null());
    assert_eq!(run(&["sim", "replay", &file]).status.code(), Some(0), "without --verify it is only played");
}

#[test]
fn nothing_is_played_without_a_seed_and_none_beyond_the_last() {
    for arguments in [
        &["sim", "fuzz", "--seeds", "0"][..],
        &["sim", "fuzz", "--seeds", "10", "--from", "18446744073709551610"],
    ] {
        refused(&run(arguments));
    }
}

#[test]
fn canaries_that_are_none_are_refused() {
    let (folder, file) = recording("no-canaries");
    let list = folder.join("canaries.txt");
    std::fs::write(&list, "\n  \n").unwrap();
    let reported = refused(&run(&["sim", "audit", &file, "--canaries", list.to_str().unwrap()]));
    assert!(reported.contains("holds no text to search for"), "{reported}");
}

#[test]
fn a_recording_comes_by_standard_input_too() {
    let (_, file) = recording("by-pipe");
    let bytes = std::fs::read(&file).unwrap();
    for arguments in [
        &["plan", "-o", "json"][..],
        &["explain"],
        &["inspect"],
        &["audit"],
        &["export"],
        &["replay", "-o", "json"],
    ] {
        let (by_pipe, by_name) = (["sim", arguments[0], "-"], ["sim", arguments[0], &file]);
        let piped = run_with(&[&by_pipe, &arguments[1..]].concat(), &bytes);
        assert_eq!(succeed(&piped), succeed(&run(&[&by_name, &arguments[1..]].concat())), "{arguments:?}");
    }
    let reported = refused(&run_with(&["sim", "compare", "-", "--a", "built-in", "--b", "default"], &bytes));
    assert!(reported.contains("which standard input does not allow"), "{reported}");
}

#[test]
fn a_recording_is_imported_and_gets_stand_ins_afterwards() {
    let (folder, file) = recording("import-again");
    let at = |name: &str| folder.join(name).display().to_string();
    let (key, again, renamed, both) = (at("key"), at("again.rec"), at("renamed.rec"), at("both.rec"));
    std::fs::write(&key, "0123456789abcdef").unwrap();
    let export = |file: &str| succeed(&run(&["sim", "export", file]));
    succeed(&run(&["sim", "import", &file, "--out", &again]));
    assert_eq!(export(&again), export(&file));
    let output = run_with(
        &["sim", "import", "-", "--out", &renamed, "--pseudonym-key", &key],
        &std::fs::read(&file).unwrap(),
    );
    succeed(&output);
    assert!(text(&output.stderr).starts_with("imported "), "{}", text(&output.stderr));
    let reported = export(&renamed);
    assert!(!reported.contains("warehouse") && !reported.contains("shared-mysql"), "{reported}");
    assert!(succeed(&run(&["sim", "audit", &renamed])).starts_with("nothing found"));
    let summary = |file: &str| json(&run(&["sim", "plan", file, "-o", "json"]))["summary"].clone();
    assert_eq!(summary(&renamed), summary(&file));
    let claim_file = folder.join("claim.yaml");
    std::fs::write(&claim_file, claim("one-more", "")).unwrap();
    succeed(&run(&["sim", "import", &file, claim_file.to_str().unwrap(), "--out", &both]));
    assert_eq!(summary(&both)["claims"], summary(&file)["claims"].as_u64().unwrap() + 1);
}

#[test]
fn a_recording_where_manifests_belong_is_reported_as_a_recording() {
    let (_, file) = recording("no-manifest");
    let reported = refused(&run(&["sim", "whatif", TEAMS, "-f", &file]));
    assert!(
        reported.contains("this is a recording") && reported.contains("conductor sim export"),
        "{reported}"
    );
}

#[test]
fn what_is_exported_as_json_is_a_list_that_is_planned_alike() {
    let (folder, file) = recording("export-json");
    let list = json(&run(&["sim", "export", &file, "-o", "json"]));
    assert_eq!((&list["apiVersion"], &list["kind"]), (&"v1".into(), &"List".into()));
    let path = folder.join("list.json");
    std::fs::write(&path, list.to_string()).unwrap();
    let plan = |path: &str| succeed(&run(&["sim", "plan", path, "-o", "json"]));
    assert_eq!(plan(path.to_str().unwrap()), plan(&file));
}

#[test]
fn what_comes_after_the_end_is_damage_to_every_command() {
    let (_, file) = recording("after-the-end");
    let whole = std::fs::read(&file).unwrap();
    let hidden = [&[0x50, 0x2a, 0x4d, 0x18, 7, 0, 0, 0][..], b"hunter2"].concat();
    for (rest, commands) in [
        (&whole[..], &["inspect", "audit", "replay", "export", "plan"][..]),
        (b"hunter2", &["inspect", "audit", "replay", "export", "plan"]),
        (&hidden, &["audit"]),
    ] {
        std::fs::write(&file, [&whole[..], rest].concat()).unwrap();
        for command in commands {
            assert!(refused(&run(&["sim", command, &file])).contains("damaged"), "{command}");
        }
    }
    std::fs::write(&file, &whole[..whole.len() - 60]).unwrap();
    let reported = succeed(&run(&["sim", "audit", &file]));
    assert!(reported.contains("was interrupted"), "{reported}");
}

#[test]
fn a_good_recording_outlives_a_cluster_that_cannot_be_reached() {
    let (folder, file) = recording("outlives");
    let whole = std::fs::read(&file).unwrap();
    let config = folder.join("kubeconfig");
    std::fs::write(
        &config,
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n\
         users: [{name: x, user: {}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n",
    )
    .unwrap();
    let record = |file: &str, more: &[&str]| {
        let arguments = [&["sim", "record", "--for", "1s", "--out", file], more].concat();
        conductor(&arguments).env("KUBECONFIG", &config).output().expect("conductor starts")
    };
    assert_eq!(record(&file, &["--force"]).status.code(), Some(2));
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    let other = folder.join("other.rec");
    assert_eq!(record(other.to_str().unwrap(), &[]).status.code(), Some(2));
    assert!(!other.exists(), "nothing half-written is left behind");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    std::fs::write(folder.join("other.2.rec"), "mine").unwrap();
    let reported = text(&record(other.to_str().unwrap(), &["--rotate", "1MiB"]).stderr);
    assert!(reported.contains("other.2.rec exists"), "{reported}");
    assert!(text(&record("-", &[]).stderr).contains("a recording needs a file"));
}

#[test]
fn a_view_without_a_terminal_is_refused_in_a_sentence() {
    let (_, file) = recording("no-terminal");
    assert!(refused(&run(&["sim", "replay", &file, "--tui"])).contains("--tui needs a terminal"));
}

#[test]
fn pages_are_offered_where_there_are_pages() {
    for question in ["plan", "whatif", "class-impact", "compare", "replay", "gate"] {
        assert!(succeed(&run(&["sim", question, "--help"])).contains("--html"), "{question}");
    }
    for question in ["explain", "fit", "size", "inspect", "audit", "fuzz", "shrink"] {
        assert!(!succeed(&run(&["sim", question, "--help"])).contains("--html"), "{question}");
    }
}

#[test]
fn every_answer_of_a_world_is_a_document() {
    let listed = json(&run(&["sim", "fuzz", "--list-mutants", "-o", "json"]));
    assert_eq!(listed["kind"], "Mutants");
    assert!(listed["mutants"].as_array().is_some_and(|m| m.len() >= 28 && m[0]["name"].is_string()));
    let held = json(&run(&["sim", "shrink", "--seed", "0", "-o", "json"]));
    assert_eq!((&held["kind"], &held["seed"], &held["wrong"]), (&"Shrunk".into(), &0.into(), &Value::Null));
}
