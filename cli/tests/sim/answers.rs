//! Recordings, replays, gates and worlds as scripts run them: files, forms and exit codes.

use super::*;

const TEAMS: &str = "examples/plan/teams.yaml";

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn manifests_become_a_recording_and_come_back_with_the_same_plan() {
    let folder = folder("import");
    let (file, yaml) = (path(&folder, "teams.rec"), path(&folder, "teams.yaml"));
    succeed(&run(&["sim", "import", TEAMS, "--out", &file]));
    let again = refused(&run(&["sim", "import", TEAMS, "--out", &file]));
    assert!(again.contains("exists: choose another file, or overwrite it with --force"), "{again}");
    std::fs::write(&yaml, succeed(&run(&["sim", "export", &file]))).expect("it is written");
    let digest = |state: &str| json(&run(&["sim", "plan", state, "-o", "json"]))["digest"].clone();
    assert_eq!(digest(&file), digest(TEAMS), "a recording is accepted as a state");
    assert_eq!(digest(&yaml), digest(TEAMS));
    let found = json(&run(&["sim", "inspect", &file, "-o", "json", "--double-run"]));
    assert_eq!((&found["complete"], &found["objects"]["RelationalDatabaseClaim"]), (&true.into(), &8.into()));
    assert!(succeed(&run(&["sim", "audit", &file])).starts_with("nothing found in"));
}

#[test]
fn a_key_gives_stand_ins_and_a_short_one_is_refused() {
    let folder = folder("key");
    let (file, key) = (path(&folder, "teams.rec"), path(&folder, "key"));
    std::fs::write(&key, "short").expect("it is written");
    let reported = refused(&run(&["sim", "import", TEAMS, "--out", &file, "--pseudonym-key", &key]));
    assert!(reported.contains("a key needs at least 16"), "{reported}");
    assert!(!folder.join("teams.rec").exists(), "nothing is half-written");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").expect("it is written");
    succeed(&run(&["sim", "import", TEAMS, "--out", &file, "--pseudonym-key", &key]));
    let exported = succeed(&run(&["sim", "export", &file]));
    assert!(!exported.contains("shop") && !exported.contains("orders"), "{exported}");
    let summary = |state: &str| json(&run(&["sim", "plan", state, "-o", "json"]))["summary"].clone();
    assert_eq!(summary(&file), summary(TEAMS));
}

#[test]
fn what_is_no_recording_is_exit_code_2() {
    let folder = folder("broken-recordings");
    let file = path(&folder, "x.rec");
    succeed(&run(&["sim", "import", TEAMS, "--out", &file]));
    let whole = std::fs::read(&file).expect("it is there");
    let mut bent = whole.clone();
    let middle = bent.len() / 2;
    bent[middle] ^= 0x55;
    for (bytes, why) in
        [(&b"kind: X"[..], "is not a recording"), (&bent, "damaged"), (&[], "is not a recording")]
    {
        std::fs::write(&file, bytes).expect("it is written");
        for command in ["inspect", "audit", "replay", "export"] {
            let reported = refused(&run(&["sim", command, &file]));
            assert!(reported.contains(why), "{command}: {reported}");
        }
    }
    std::fs::write(&file, &whole[..whole.len() - 60]).expect("it is written");
    let found = succeed(&run(&["sim", "inspect", &file]));
    assert!(found.contains(", interrupted, "), "{found}");
}

/// The exit code of a run whose reader closes the output before the first byte, and its messages.
fn unread(arguments: &[&str], complaints_too: bool) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = conductor(arguments);
    if complaints_too {
        command.stderr(writer.try_clone().expect("the same pipe"));
    }
    let output = command.stdout(writer).output().expect("conductor starts");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    let folder = folder("unread");
    let (file, suite) = (path(&folder, "teams.rec"), path(&folder, "suite.yaml"));
    succeed(&run(&["sim", "import", TEAMS, "--out", &file]));
    let state = root().join(TEAMS).display().to_string();
    let head = "apiVersion: simulator.conductor.io/v1alpha1\nkind: GateSuite\n";
    let suite_text = format!("{head}state: [{state}]\nthresholds: {{pending: 0}}\n");
    std::fs::write(&suite, suite_text).expect("it is written");
    let storage = "quota/shop/shop:spec.limits[0].requests.storage=80Gi";
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["crds"],
        &["sim", "plan", TEAMS],
        &["sim", "plan", TEAMS, "-o", "json"],
        &["sim", "explain", TEAMS],
        &["sim", "whatif", TEAMS, "--set", storage],
        &["sim", "fit", TEAMS, "--like", "blog/comments"],
        &["sim", "size", TEAMS, "--class", "analytics"],
        &["sim", "compare", TEAMS, "--with", TEAMS],
        &["sim", "gate", &suite],
        &["sim", "gate", &suite, "-o", "json"],
        &["sim", "inspect", &file],
        &["sim", "audit", &file],
        &["sim", "export", &file],
        &["sim", "replay", &file, "--verify"],
        &["sim", "fuzz", "--seeds", "2"],
        &["sim", "fuzz", "--list-mutants"],
    ] {
        let code = run(arguments).status.code();
        let (without_reader, reported) = unread(arguments, false);
        assert_eq!(without_reader, code, "{arguments:?}: {reported}");
        assert!(
            !reported.contains("panicked") && !reported.contains("roken pipe"),
            "{arguments:?}: {reported}"
        );
        assert_eq!(unread(arguments, true).0, code, "{arguments:?} without a reader of standard error");
    }
    assert_eq!(run(&["sim", "gate", &suite]).status.code(), Some(1), "a verdict that must not be lost");
}

#[test]
fn a_page_says_which_files_it_was_made_from() {
    let folder = folder("provenance");
    let (page, again) = (path(&folder, "plan.html"), path(&folder, "again.html"));
    succeed(&run(&["sim", "plan", TEAMS, "--html", &page]));
    succeed(&run(&["sim", "plan", TEAMS, "--html", &again]));
    let read = |path: &str| std::fs::read_to_string(path).expect("it is written").replace("&#x2f;", "/");
    let text = read(&page);
    assert!(text.contains(&format!("Source: {TEAMS}, last changed 20")), "{text}");
    assert!(text.contains(concat!("Created by conductor ", env!("CARGO_PKG_VERSION"))), "{text}");
    assert_eq!(text, read(&again), "the same files give the same page");
    let input = std::fs::read(root().join(TEAMS)).expect("it is there");
    succeed(&run_with(&["sim", "plan", "-", "--html", &page], &input));
    assert!(read(&page).contains("Source: standard input<"));
}

#[test]
fn two_profiles_are_held_side_by_side() {
    let arguments =
        ["sim", "compare", TEAMS, "--a", "built-in", "--b", "examples/profile.yaml", "-o", "json"];
    let output = run(&arguments);
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["kind"], "Comparison");
    assert_eq!(document["a"]["summary"]["claims"], 8);
    let differs = !document["claims"].as_array().expect("a list").is_empty();
    assert_eq!(output.status.code(), Some(i32::from(differs)));
    let same = succeed(&run(&["sim", "compare", TEAMS, "--with", TEAMS]));
    assert!(same.ends_with("no difference\n"), "{same}");
    let reported = refused(&run(&["sim", "compare", TEAMS, "--a", "nope", "--b", "built-in"]));
    assert!(reported.contains("no profile \"nope\": give a SchedulingProfile of the state"), "{reported}");
    assert!(refused(&run(&["sim", "compare", TEAMS])).contains("nothing to compare"));
}

#[test]
fn the_example_gate_passes_and_every_form_is_written() {
    let folder = folder("gate");
    let at = |name: &str| path(&folder, name);
    let reported = succeed(&run(&[
        "sim",
        "gate",
        "examples/gate/suite.yaml",
        "--double-run",
        "--junit",
        &at("g.xml"),
        "--sarif",
        &at("g.sarif"),
        "--markdown",
        &at("g.md"),
        "--html",
        &at("g.html"),
    ]));
    assert!(reported.ends_with("passed: 7 checks\n"), "{reported}");
    for (name, part) in
        [("g.xml", "<testsuites"), ("g.sarif", "2.1.0"), ("g.md", "passed"), ("g.html", "<!doctype")]
    {
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        assert!(text.contains(part), "{name}: {text:.200}");
    }
}

#[test]
fn a_gate_is_inconclusive_until_it_is_blessed_and_fails_when_the_plan_changes() {
    let folder = folder("bless");
    let suite = |limits: &str| {
        let teams = root().join(TEAMS).display().to_string();
        let text = format!(
            "apiVersion: simulator.conductor.io/v1alpha1\nkind: GateSuite\nstate: ['{teams}']\n\
             policies: [quota.yaml]\nbaseline: baseline.json\n"
        );
        std::fs::write(folder.join("suite.yaml"), text).expect("it is written");
        let quota = format!(
            "apiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\nmetadata: {{name: shop, namespace: shop}}\n\
             spec: {{limits: [{limits}]}}\n"
        );
        std::fs::write(folder.join("quota.yaml"), quota).expect("it is written");
    };
    let file = path(&folder, "suite.yaml");
    suite("{requests: {storage: 50Gi}}");
    assert_eq!(run(&["sim", "gate", &file]).status.code(), Some(3), "there is no baseline yet");
    assert_eq!(run(&["sim", "gate", &file, "--bless"]).status.code(), Some(0));
    assert_eq!(run(&["sim", "gate", &file]).status.code(), Some(0));
    suite("{requests: {storage: 80Gi}}");
    let output = run(&["sim", "gate", &file]);
    assert_eq!(output.status.code(), Some(1));
    let reported = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(reported.contains("shop/tests: Pending -> Bound shared-mysql (Quota"), "{reported}");
    std::fs::write(folder.join("baseline.json"), "{}").expect("it is written");
    assert!(refused(&run(&["sim", "gate", &file])).contains("replace it with --bless"));
}

#[test]
fn worlds_hold_and_a_broken_engine_is_caught_and_shrunk() {
    let found = json(&run(&["sim", "fuzz", "--seeds", "40", "-o", "json", "--double-run"]));
    assert_eq!((&found["seeds"], found["failures"].as_array().map(Vec::len)), (&40.into(), Some(0)));
    let output = run(&["sim", "fuzz", "--seeds", "60", "--mutant", "retain-is-delete", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let seed = found["failures"][0]["seed"].to_string();
    let folder = folder("shrunk");
    let output = run(&[
        "sim",
        "shrink",
        "--seed",
        &seed,
        "--mutant",
        "retain-is-delete",
        "--write",
        &folder.display().to_string(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("reproduce the failure"));
    let state = folder.join("state.yaml").display().to_string();
    succeed(&run(&["sim", "plan", &state]));
    assert!(refused(&run(&["sim", "fuzz", "--mutant", "unknown"])).contains("--list-mutants"));
    assert!(succeed(&run(&["sim", "fuzz", "--list-mutants"])).lines().count() >= 28);
}
