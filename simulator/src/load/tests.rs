//! Tables over whole inputs, through the same door that the commands use.

use super::{LoadError, LoadFailure, LoadOptions, Loaded, load_with_stdin};
use expect_test::{Expect, expect};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::{fmt::Write as _, io::Write as _};

fn read(input: impl AsRef<[u8]>) -> Result<Loaded, LoadError> {
    load_with_stdin(&["-"], input.as_ref(), &LoadOptions::default())
}

/// One line for each object, ignored kind and problem, or the error.
fn check(input: impl AsRef<[u8]>, expected: Expect) {
    let shown = match read(input) {
        Ok(loaded) => show(&loaded),
        Err(error) => format!("error: {error}\n"),
    };
    expected.assert_eq(&shown);
}

fn show(loaded: &Loaded) -> String {
    let mut shown = String::new();
    for loaded in &loaded.objects {
        let metadata = &loaded.object.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let (kind, body) = (loaded.object.kind.name(), &loaded.object.body);
        let (namespace, name) = (namespace.unwrap_or("-"), name.unwrap_or("?"));
        writeln!(shown, "{}:{} {kind} {namespace}/{name} {body}", loaded.source, loaded.line).unwrap();
    }
    for (kind, count) in &loaded.ignored {
        writeln!(shown, "ignored {count} {kind}").unwrap();
    }
    for rounded in &loaded.rounded {
        writeln!(shown, "rounded {rounded}").unwrap();
    }
    for problem in &loaded.problems {
        writeln!(shown, "problem {problem}").unwrap();
    }
    shown
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const CLAIM: &str = "apiVersion: storage.conductor.io/v1alpha1
kind: RelationalDatabaseClaim
metadata: {name: a}
";

#[test]
fn reads_many_documents_with_their_lines() {
    check(
        format!(
            "# a comment\n---\n{CLAIM}spec: {{version: 5.6}}\n---\n\n---\n{}",
            CLAIM.replace("name: a", "name: b")
        ),
        expect![[r#"
            stdin:3 RelationalDatabaseClaim default/a {"spec":{"version":5.6}}
            stdin:10 RelationalDatabaseClaim default/b {}
        "#]],
    );
}

#[test]
fn fills_namespaces_by_kind() {
    let input = "
{apiVersion: storage.conductor.io/v1alpha1, kind: RelationalDatabaseClaim, metadata: {name: a}}
---
{apiVersion: storage.conductor.io/v1alpha1, kind: RelationalDatabase, metadata: {name: a, namespace: ''}}
---
{apiVersion: storage.conductor.io/v1alpha1, kind: RelationalDatabaseClass, metadata: {name: a}, reclaimPolicy: Retain}
---
{apiVersion: conductor.io/v1alpha1, kind: ClaimQuota, metadata: {name: a}}
---
{apiVersion: conductor.io/v1alpha1, kind: ClaimLimits, metadata: {name: a, namespace: b}}
---
{apiVersion: conductor.io/v1alpha1, kind: ClusterClaimQuota, metadata: {name: a, namespace: b}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {password: aGlkZGVu}}
";
    check(
        input,
        expect![[r#"
            stdin:2 RelationalDatabaseClaim default/a {}
            stdin:4 RelationalDatabase conductor-system/a {}
            stdin:6 RelationalDatabaseClass conductor-system/a {"reclaimPolicy":"Retain"}
            stdin:8 ClaimQuota default/a {}
            stdin:12 ClusterClaimQuota -/a {}
            stdin:10 ClaimLimits b/a {}
            stdin:14 Namespace -/a {}
            ignored 1 v1/Secret
        "#]],
    );
}

#[test]
fn opens_lists_as_kubectl_writes_them() {
    check(
        "apiVersion: v1
items:
- apiVersion: storage.conductor.io/v1alpha1
  kind: RelationalDatabase
  metadata:
    name: a
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: '{}'
    managedFields: [{manager: kubectl}]
- apiVersion: v1
  kind: ConfigMap
- nonsense
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: storage.conductor.io/v1alpha1, kind: RelationalDatabase, metadata: {name: b}}
kind: List
metadata: {resourceVersion: ''}
",
        expect![[r#"
            stdin:3 RelationalDatabase conductor-system/a {}
            stdin:13 RelationalDatabase conductor-system/b {}
            ignored 1 v1/ConfigMap
            problem stdin:12: item 3 of document 1: it is a piece of text, not an object: write a mapping with `apiVersion` and `kind`
        "#]],
    );
}

#[test]
fn fills_the_items_of_typed_lists_from_the_list() {
    let json = r#"{"apiVersion":"storage.conductor.io/v1alpha1","kind":"RelationalDatabaseClaimList","items":[
  {"metadata":{"name":"a"}},
  {"metadata":{"name":"b"},
   "spec":{"version":5.6}}]}
{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"p"}},{}]}{"kind":"List","items":null}"#;
    check(
        json,
        expect![[r#"
            stdin:2 RelationalDatabaseClaim default/a {}
            stdin:3 RelationalDatabaseClaim default/b {"spec":{"version":5.6}}
            ignored 2 v1/Pod
        "#]],
    );
}

#[test]
fn reads_json_lines_and_gzip_and_byte_order_marks() {
    let lines = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}\n";
    let lines = format!("\u{feff}{lines}{}", lines.replace("\"a\"", "\"b\""));
    for input in [lines.clone().into_bytes(), gzip(&lines), [gzip(&lines), gzip("\n")].concat()] {
        let loaded = read(input).unwrap();
        assert_eq!(loaded.objects.len(), 2);
        assert!(loaded.problems.is_empty());
    }
}

#[test]
fn a_broken_object_hurts_only_itself() {
    check(
        format!(
            "{CLAIM}---
[1, 2]
---
kind: 5
metadata: {{name: b}}
---
apiVersion: v1
---
kind: RelationalDatabaseClaim
metadata: {{name: c, namespace: d}}
---
{}---
{}---
{}---
{}---
{}---
apiVersion: v1
kind: List
items: 5
---
{}",
            CLAIM.replace("{name: a}", "{generateName: a-}"),
            CLAIM.replace("{name: a}", "{name: yes}"),
            CLAIM.replace("{name: a}", "{name: e, labels: {v: 5}}"),
            CLAIM.replace("{name: a}", "{name: f, labels: [v]}"),
            CLAIM.replace("{name: a}", "name"),
            CLAIM.replace("{name: a}", "{name: g, finalizers: 5}"),
        ),
        expect![[r#"
            stdin:1 RelationalDatabaseClaim default/a {}
            problem stdin:5: document 2: it is a list, not an object: write a mapping with `apiVersion` and `kind`
            problem stdin:7: object b: `kind` is a number, not text: put it in quotes
            problem stdin:10: document 4: no `kind`: write one, such as `kind: RelationalDatabaseClaim`
            problem stdin:12: RelationalDatabaseClaim d/c: no `apiVersion`: write it, such as `storage.conductor.io/v1alpha1`
            problem stdin:15: document 6: only `generateName`, but names are not generated offline: write `metadata.name`
            problem stdin:19: document 7: `metadata.name` is a boolean (true), not text: put it in quotes
            problem stdin:23: RelationalDatabaseClaim e: `metadata.labels.v` is a number, not text: put it in quotes
            problem stdin:27: RelationalDatabaseClaim f: `metadata.labels` is a list, not a mapping
            problem stdin:31: document 10: `metadata` is a piece of text, not a mapping
            problem stdin:35: document 11: `items` is not a list: write each object after a dash
            problem stdin:39: RelationalDatabaseClaim g: `metadata`: invalid type: integer `5`, expected a sequence
        "#]],
    );
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let cases: &[(&[u8], Expect)] = &[
        (b"a: 1\n---\nb: [1\n", expect!["stdin:3:4: not valid YAML: unclosed bracket '['; fix the line or leave the file out"]),
        (b"a: 1\nb: 2\na: 3\n", expect!["stdin:3:1: not valid YAML: duplicate mapping key: a not allowed here; fix the line or leave the file out"]),
        (b"{\"a\": 1,\n \"b\": {\"c\": tru}}", expect![[r#"
            loaded:
            problem stdin:1: document 1: no `kind`: write one, such as `kind: RelationalDatabaseClaim`
        "#]]),
        (b"{\"kind\": \"X\",\n \"kind\": \"Y\"}", expect![[r#"stdin:2:7: not valid JSON: the key "kind" is written twice; fix the line or leave the file out"#]]),
        (b"{\"apiVersion\": \"v1\", \"kind\": \"Namespace\",\n \"metadata\": {\n\"name\": \"a\", \"name\": \"b\"}}", expect![[r#"stdin:3:19: not valid JSON: the key "name" is written twice; fix the line or leave the file out"#]]),
        (b"{\"a\": 1", expect!["stdin:1:7: not valid JSON: EOF while parsing an object; fix the line or leave the file out"]),
        (b"only plain text\n", expect!["stdin:1: not a manifest: it holds a piece of text where an object with `apiVersion` and `kind` should be; leave the file out"]),
        (b"[1, 2]", expect!["stdin:1: not a manifest: it holds a list where an object with `apiVersion` and `kind` should be; leave the file out"]),
        (b"ok: 1\nbad: \xff\n", expect!["stdin:2:6: not UTF-8 text; convert it, for example with `iconv -t utf-8`"]),
        (b"\x1f\x8b\x08nonsense", expect!["stdin: damaged gzip (invalid gzip header); pack or download the file again"]),
        (b"a: .inf\n", expect!["stdin:1:4: not valid YAML: value `.inf` is not a finite number; fix the line or leave the file out"]),
        (b"{{ .Values.name }}: 1\n", expect!["stdin:1:2: not valid JSON: key must be a string; fix the line or leave the file out"]),
        (b"a: *unknown\n", expect!["stdin:1:4: not valid YAML: reference to unknown value; fix the line or leave the file out"]),
        (b"a:\n\tb: 1\n", expect!["stdin:2:2: not valid YAML: tabs disallowed within this context (block indentation); fix the line or leave the file out"]),
    ];
    for (input, expected) in cases {
        match read(input) {
            Ok(loaded) => expected.assert_eq(&format!("loaded:\n{}", show(&loaded))),
            Err(error) => expected.assert_eq(&error.to_string()),
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let deep = |open: &str, close: &str, levels: usize| open.repeat(levels) + &close.repeat(levels);
    let inputs = [
        deep("[", "]", 100_000),
        deep("{\"a\":", "}", 100_000),
        format!("{CLAIM}spec: {}", deep("[", "]", 100_000)),
        format!("{CLAIM}spec: {}", deep("{a: ", "}", 100_000)),
        format!("{CLAIM}spec:\n  {}", "- ".repeat(100_000)),
        format!("{CLAIM}spec: {}", "? ".repeat(100_000)),
        (0..5_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect(),
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"a"}},"spec":{}}}"#,
            deep("[", "]", 100_000)
        ),
    ];
    for input in inputs {
        assert!(
            matches!(read(&input), Err(LoadError { failure: LoadFailure::Syntax { .. }, .. })),
            "{:?}",
            &input[..80]
        );
    }
    let nested_lists = r#"{"kind":"List","items":["#.repeat(100_000) + &"]}".repeat(100_000);
    let loaded = read(nested_lists).unwrap();
    assert_eq!(loaded.problems.len(), 1, "{loaded:?}");
}

#[test]
fn reasonable_nesting_is_read_in_both_formats() {
    let nested = "[".repeat(100) + &"]".repeat(100);
    assert_eq!(read(format!("{CLAIM}spec: {nested}")).unwrap().objects.len(), 1);
    let json = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":"#;
    assert_eq!(read(format!("{json}{nested}}}")).unwrap().objects.len(), 1);
}

#[test]
fn aliases_are_read_and_bombs_refused() {
    let shared = format!("{CLAIM}a: &x {{storage: 1Gi}}\nb: [{}]\n", ["*x"; 500].join(", "));
    assert_eq!(read(shared).unwrap().objects.len(), 1);

    let mut laughs = format!("{CLAIM}a0: &a0 [lol, lol]\n");
    for level in 1..30 {
        let last = level - 1;
        writeln!(laughs, "a{level}: &a{level} [{}]", vec![format!("*a{last}"); 10].join(", ")).unwrap();
    }
    let long = format!("{CLAIM}a: &x {}\nb: [{}]\n", "y".repeat(1 << 20), vec!["*x"; 20_000].join(", "));
    for bomb in [laughs, long] {
        assert!(matches!(read(bomb), Err(LoadError { failure: LoadFailure::Syntax { .. }, .. })));
    }
}

#[test]
fn yaml_is_read_as_kubectl_reads_it() {
    check(
        format!(
            "{CLAIM}spec: {{a: yes, b: Off, c: 'no', d: 5.10, e: 014, f: ~, g: 2024-01-01, h: 9.10.1}}\n"
        ),
        expect![[r#"
            stdin:1 RelationalDatabaseClaim default/a {"spec":{"a":true,"b":false,"c":"no","d":5.1,"e":12,"f":null,"g":"2024-01-01","h":"9.10.1"}}
        "#]],
    );
}

#[test]
fn a_version_that_loses_digits_is_reported_with_its_object() {
    let list = "apiVersion: v1
kind: List
items:
- {apiVersion: storage.conductor.io/v1alpha1, kind: RelationalDatabase, metadata: {name: a}, spec: {version: 5.1}}
- apiVersion: storage.conductor.io/v1alpha1
  kind: RelationalDatabase
  metadata: {name: b}
  spec:
    version: 5.10
";
    check(
        format!("{CLAIM}spec: {{version: 5.10}}\n---\n{list}"),
        expect![[r#"
            stdin:1 RelationalDatabaseClaim default/a {"spec":{"version":5.1}}
            stdin:9 RelationalDatabase conductor-system/a {"spec":{"version":5.1}}
            stdin:10 RelationalDatabase conductor-system/b {"spec":{"version":5.1}}
            rounded stdin:4: RelationalDatabaseClaim default/a: spec.version: 5.10 without quotes is the number 5.1; quote it: "5.10"
            rounded stdin:14: RelationalDatabase conductor-system/b: spec.version: 5.10 without quotes is the number 5.1; quote it: "5.10"
        "#]],
    );
}

#[test]
fn an_input_without_a_document_is_an_error() {
    for empty in ["", "\n", "# nothing\n", "---\n---\n", "null\n"] {
        let error = read(empty).unwrap_err();
        assert!(matches!(error.failure, LoadFailure::Empty), "{empty:?}: {error}");
    }
    for nothing in ["{\"kind\": \"List\", \"items\": []}", "kind: List\n", "apiVersion: v1\nkind: Secret\n"] {
        assert!(read(nothing).is_ok(), "{nothing:?}");
    }
}

#[test]
fn the_newer_of_two_copies_wins_in_any_order() {
    let with = |version: &str, spec: &str| {
        format!("{}spec: {spec}\n", CLAIM.replace("{name: a}", &format!("{{name: a{version}}}")))
    };
    let cases = [
        (vec![with("", "1"), with("", "1")], "1", 0),
        (vec![with(", resourceVersion: '9'", "1"), with(", resourceVersion: '10'", "2")], "2", 0),
        (vec![with(", resourceVersion: '9'", "1"), with(", resourceVersion: '9'", "2")], "2", 1),
        (vec![with("", "1"), with("", "2"), with("", "1")], "2", 1),
        (
            vec![with("", "3"), with(", resourceVersion: '9'", "1"), with(", resourceVersion: '7'", "5")],
            "3",
            1,
        ),
    ];
    for (documents, kept, problems) in cases {
        let mut reversed = documents.clone();
        reversed.reverse();
        for documents in [documents, reversed] {
            let loaded = read(documents.join("---\n")).unwrap();
            assert_eq!(loaded.objects.len(), 1);
            assert_eq!(loaded.objects[0].object.body["spec"].to_string(), kept, "{documents:?}");
            assert_eq!(loaded.problems.len(), problems, "{:?}", loaded.problems);
        }
    }
}

#[test]
fn a_long_stream_is_read_whole_and_in_order() {
    let document = |at: usize| format!("---\n{}", CLAIM.replace("name: a", &format!("name: a-{at:05}")));
    let mut stream: String = (0..3000).map(document).collect();
    let loaded = read(&stream).unwrap();
    assert_eq!(loaded.objects.len(), 3000);
    assert!(loaded.objects.iter().enumerate().all(|(at, object)| object.line == at * 4 + 2));
    stream += "---\na: [\n---\nb: [\n";
    assert_eq!(read(&stream).unwrap_err().line, Some(12_002));
}

#[test]
fn the_size_guard_counts_unpacked_bytes() {
    let options = LoadOptions { bytes_max: 1000, ..LoadOptions::default() };
    for input in [gzip(&" ".repeat(10_000)), vec![b' '; 1001]] {
        let error = load_with_stdin(&["-"], &input[..], &options).unwrap_err();
        assert!(matches!(error.failure, LoadFailure::TooLarge(_)), "{error}");
    }
    let full = format!("{CLAIM:1000}");
    assert!(load_with_stdin(&["-"], full.as_bytes(), &options).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes);
    }

    #[test]
    fn no_text_of_yaml_and_json_marks_panics(text in "(\\{|\\}|\\[|\\]|:|,|\"|'|&a|\\*a|- |\\? |\n|  |---|\\.\\.\\.|kind|List|items|metadata|name|#|%|\\||>|!|<<|é){0,60}") {
        let _ = read(text);
    }
}
