//! Where manifests come from: standard input, gzip, directories, lists. All of them give the same plan.

use super::*;
use flate2::{Compression, write::GzEncoder};

fn small() -> Vec<String> {
    vec![resource("db-1", "engine: mysql"), claim("x", "engine: mysql"), claim("y", "engine: mysql")]
}

fn expected() -> String {
    succeed(&run_with(&["sim", "plan", "-", "-o", "json"], &documents(&small())))
}

fn planned(path: &Path) -> String {
    succeed(&run(&["sim", "plan", path.to_str().unwrap(), "-o", "json"]))
}

#[test]
fn a_directory_is_read_whole() {
    let folder = folder("a-directory");
    for (at, document) in small().iter().enumerate() {
        std::fs::write(folder.join(format!("{at}.yaml")), document).unwrap();
    }
    std::fs::write(folder.join("notes.txt"), "no manifest").unwrap();
    assert_eq!(planned(&folder), expected());
}

#[test]
fn gzip_is_unpacked() {
    let path = folder("gzip").join("all.yaml.gz");
    let mut packed = GzEncoder::new(std::fs::File::create(&path).unwrap(), Compression::default());
    packed.write_all(&documents(&small())).unwrap();
    packed.finish().unwrap();
    assert_eq!(planned(&path), expected());
    assert_eq!(
        succeed(&run_with(&["sim", "plan", "-", "-o", "json"], &std::fs::read(&path).unwrap())),
        expected()
    );
}

#[test]
fn a_pipe_is_read_once_and_whole() {
    let input = documents(&small());
    assert_eq!(succeed(&run_with(&["sim", "plan", "/dev/stdin", "-o", "json"], &input)), expected());
    let path = folder("a-pipe").join("all.yaml");
    std::fs::write(&path, &input).unwrap();
    for script in [
        r#""$0" sim plan -o json <(cat "$1")"#,
        r#"mkfifo "$1.fifo" && { cat "$1" >"$1.fifo" & "$0" sim plan -o json "$1.fifo"; }"#,
    ] {
        let mut shell = Command::new("bash");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_conductor"), path.to_str().unwrap()]);
        let output = shell.stdin(Stdio::null()).output().expect("bash starts");
        assert_eq!(succeed(&output), expected(), "{script}");
    }
}

#[test]
fn a_recording_in_a_pipe_is_refused_with_how_to_pass_it() {
    let file = folder("recording-by-a-pipe").join("x.rec").display().to_string();
    succeed(&run(&["sim", "import", "examples/plan/teams.yaml", "--out", &file]));
    let bytes = std::fs::read(&file).unwrap();
    let again = folder("recording-by-a-pipe-again").join("y.rec").display().to_string();
    for arguments in [
        &["sim", "plan", "/dev/stdin"][..],
        &["sim", "compare", "/dev/stdin", "--a", "built-in", "--b", "built-in"],
        &["sim", "import", "/dev/stdin", "--out", &again],
    ] {
        let reported = refused(&run_with(arguments, &bytes));
        assert!(reported.contains("/dev/stdin is a recording in a pipe"), "{reported}");
        assert!(reported.contains("as `-`"), "{reported}");
    }
}

#[test]
fn a_list_is_opened() {
    let items: Vec<String> =
        small().iter().map(|document| format!("- {}", document.replace('\n', "\n  "))).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", items.join("\n"));
    assert_eq!(succeed(&run_with(&["sim", "plan", "-", "-o", "json"], list.as_bytes())), expected());
}

#[test]
fn an_empty_input_is_refused_by_every_command_that_reads_state() {
    let folder = folder("empty-input");
    let (file, like) = (folder.join("empty.yaml"), folder.join("like.yaml"));
    std::fs::write(&file, "").unwrap();
    std::fs::write(&like, claim("x", "")).unwrap();
    let (file, like) = (file.display().to_string(), like.display().to_string());
    let out = folder.join("x.rec").display().to_string();
    let commands: [&[&str]; 7] = [
        &["plan"],
        &["what-if", "--delete", "resource/a"],
        &["fit", "--like", "a/x"],
        &["size", "--like", "db-1"],
        &["class-impact", "-f", &like],
        &["compare", "--a", "built-in", "--b", "built-in"],
        &["import", "-o", &out],
    ];
    for command in commands {
        for (input, name) in [("-", "stdin"), (file.as_str(), file.as_str())] {
            let arguments = [&["sim", command[0], input], &command[1..]].concat();
            let reported = refused(&run_with(&arguments, b""));
            assert!(reported.contains(&format!("{name}: it is empty")), "{arguments:?}: {reported}");
        }
    }
    // A failed command beside good files.
    let reported = refused(&run_with(&["sim", "plan", &like, "-"], b""));
    assert!(reported.contains("stdin: it is empty"), "{reported}");
}

#[test]
fn a_version_that_loses_digits_is_reported_and_the_rest_is_quiet() {
    let input = documents(&[resource("db-1", "engine: mysql, version: 5.10"), claim("x", "version: 5.6")]);
    let output = run_with(&["sim", "plan", "-", "-o", "json"], &input);
    assert_eq!(json(&output)["resources"][0]["name"], "db-1");
    assert_eq!(
        text(&output.stderr),
        "warning: stdin:4: RelationalDatabase conductor-system/db-1: spec.version: 5.10 without quotes is the \
         number 5.1; quote it: \"5.10\"\n"
    );
}

#[test]
fn json_is_yaml_too() {
    let input = br#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"storage.conductor.io/v1alpha1","kind":"RelationalDatabase",
         "metadata":{"name":"db-1","namespace":"conductor-system"},"spec":{"engine":"mysql"}},
        {"apiVersion":"storage.conductor.io/v1alpha1","kind":"RelationalDatabaseClaim",
         "metadata":{"name":"x","namespace":"a"},"spec":{"engine":"mysql"}},
        {"apiVersion":"storage.conductor.io/v1alpha1","kind":"RelationalDatabaseClaim",
         "metadata":{"name":"y","namespace":"a"},"spec":{"engine":"mysql"}}]}"#;
    assert_eq!(succeed(&run_with(&["sim", "plan", "-", "-o", "json"], input)), expected());
}

#[test]
fn kinds_that_do_not_take_part_are_counted() {
    let other = |api: &str, kind: &str, name: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}}}\n")
    };
    let input = documents(&[
        other("v1", "Secret", "a"),
        other("v1", "Secret", "b"),
        other("apps/v1", "Deployment", "c"),
        claim("x", ""),
    ]);
    let output = run_with(&["sim", "plan", "-"], &input);
    assert!(succeed(&output).ends_with("1 claim: 1 pending\n"));
    assert_eq!(
        text(&output.stderr),
        "ignored 3 objects of kinds that decisions do not read: 1 apps/v1/Deployment, 2 v1/Secret\n"
    );
}

#[test]
fn namespaces_that_are_left_out_are_filled_in() {
    let input =
        b"apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\nmetadata: {name: x}\n";
    let plan = json(&run_with(&["sim", "plan", "-", "-o", "json", "--namespace", "shop"], input));
    assert_eq!(plan["claims"][0]["namespace"], "shop");
}

#[test]
fn resources_outside_the_system_namespace_are_reported() {
    let input = documents(&[resource("db-1", "engine: mysql"), claim("x", "")]);
    let output = run_with(&["sim", "plan", "-", "-o", "json", "--system-namespace", "infra"], &input);
    assert_eq!(json(&output)["resources"], serde_json::json!([]));
    let reported = text(&output.stderr);
    assert!(
        reported.starts_with("warning: stdin:1: RelationalDatabase conductor-system/db-1: "),
        "{reported}"
    );
    assert!(reported.contains("--system-namespace conductor-system"), "{reported}");
}

#[test]
fn holders_missing_from_the_input_are_reported() {
    let held = "claimRefs: [{namespace: b, name: gone, uid: u}], reclaimPolicy: Delete";
    let output = run_with(&["sim", "plan", "-", "-o", "json"], &documents(&[resource("db-1", held)]));
    assert_eq!(json(&output)["resources"][0]["reclaim"], "Delete");
    assert!(text(&output.stderr).contains("count as deleted: db-1;"), "{}", text(&output.stderr));
}

#[test]
fn a_resource_that_is_released_already_is_nobodys_news() {
    let held = "claimRefs: [{namespace: b, name: gone, uid: u}], reclaimPolicy: Retain";
    let released = format!("{}status: {{phase: Released}}\n", resource("db-1", held));
    let bound = format!("{}status: {{phase: Bound}}\n", resource("db-2", held));
    let output = run_with(&["sim", "plan", "-", "-o", "json"], &documents(std::slice::from_ref(&released)));
    assert_eq!(
        (json(&output)["resources"][0]["phase"].as_str(), text(&output.stderr)),
        (Some("Released"), String::new())
    );
    let output = run_with(&["sim", "plan", "-", "-o", "json"], &documents(&[released, bound]));
    assert!(text(&output.stderr).contains("1 resource held by claims"), "{}", text(&output.stderr));
}
