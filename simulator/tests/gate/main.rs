//! The gate: what passes, what fails, what is refused; and the forms that others read.

use conductor::model::Object;
use conductor_simulator::gate::{
    Baseline, Gate, MARKDOWN_MAX, Suite, SuiteError, Verdict, junit, markdown, sarif,
};
use conductor_simulator::load::{LoadOptions, load_with_stdin};
use conductor_simulator::plan::Options;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gate-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

const HEAD: &str =
    "apiVersion: simulator.conductor.io/v1alpha1\nkind: GateSuite\nmetadata: {name: s}\nstate: [x.yaml]\n";

fn suite(name: &str, rest: &str) -> Result<Suite, SuiteError> {
    let path = folder(name).join("suite.yaml");
    std::fs::write(&path, format!("{HEAD}{rest}")).expect("it is written");
    Suite::read(&path)
}

fn objects(text: &str) -> Vec<Object> {
    let loaded = load_with_stdin(&["-"], text.as_bytes(), &LoadOptions::default()).expect("manifests");
    loaded.objects.into_iter().map(|l| l.object).collect()
}

fn state() -> Vec<Object> {
    let mut text = String::new();
    for name in ["c1", "c2"] {
        text += &format!(
            "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
             metadata: {{name: {name}, namespace: a, labels: {{team: red}}}}\nspec: {{engine: mysql}}\n"
        );
    }
    text += "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
             metadata: {name: db, namespace: conductor-system}\nspec: {engine: mysql}\n";
    objects(&text)
}

fn judge(
    name: &str,
    rest: &str,
    baseline: Option<Baseline>,
    policies: Vec<Object>,
) -> Result<Verdict, String> {
    let suite = suite(name, rest).map_err(|e| e.to_string())?;
    let gate = Gate { suite: &suite, state: state(), policies, baseline, options: Options::default() };
    gate.judge().map(|(verdict, _)| verdict)
}

#[test]
fn cases_hold_or_say_why_not() {
    for (rest, passed, why) in [
        ("cases: [{name: n, select: {names: [c1]}, expect: {outcome: Bound, resources: ['d*']}}]", true, ""),
        ("cases: [{name: n, expect: {outcome: Bound}}]", false, "a/c2 is Pending, not Bound"),
        ("cases: [{name: n, select: {labels: {team: red}}, expect: {count: {min: 2, max: 2}}}]", true, ""),
        ("cases: [{name: n, select: {labels: {team: blue}}, expect: {count: {max: 0}}}]", true, ""),
        (
            "cases: [{name: n, select: {namespaces: ['b*']}, expect: {outcome: Bound}}]",
            false,
            "selects no claim",
        ),
        ("cases: [{name: n, expect: {count: {min: 3}}}]", false, "expected at least 3"),
        (
            "cases: [{name: n, expect: {every: \"claim.outcome == 'Bound' || spec.engine == 'mysql'\"}}]",
            true,
            "",
        ),
        (
            "cases: [{name: n, expect: {every: \"claim.outcome == 'Bound'\"}}]",
            false,
            "a/c2: `every` is false",
        ),
        (
            "cases: [{name: n, expect: {any: \"claim.outcome == 'Lost'\"}}]",
            false,
            "`any` is false for every claim",
        ),
        (
            "cases: [{name: n, select: {cel: \"labels.team == 'red'\"}, expect: {any: \"claim.outcome == 'Bound'\"}}]",
            true,
            "",
        ),
        ("cases: [{name: n, expect: {plan: 'plan.summary.pending <= 1'}}]", true, ""),
        ("cases: [{name: n, expect: {plan: 'plan.summary.pending == 0'}}]", false, "`plan` is false"),
        ("thresholds: {pending: 1, lost: 0}", true, ""),
        ("thresholds: {pending: 0}", false, "1, limit 0"),
        ("thresholds: {pendingPercent: 10}", false, "50.0 % of 2"),
    ] {
        let verdict = judge("cases", rest, None, Vec::new()).expect(rest);
        assert_eq!(verdict.passed, passed, "{rest}: {:?}", verdict.judged);
        let reported: Vec<&String> = verdict.judged.iter().flat_map(|j| &j.failures).collect();
        assert!(why.is_empty() || reported.iter().any(|t| t.contains(why)), "{rest}: {reported:?}");
    }
}

#[test]
fn a_suite_that_nothing_could_meet_is_refused() {
    for (rest, why) in [
        ("", "expects nothing"),
        ("cases: [{name: n, expect: {}}]", "expects nothing"),
        ("cases: [{name: n, expect: {count: {min: 3, max: 1}}}]", "min above its max"),
        ("cases: [{name: n, expect: {outcome: Fine}}]", "none of Bound"),
        ("cases: [{name: n, expect: {outcome: Pending, resources: [x]}}]", "an outcome other than Bound"),
        ("cases: [{name: n, expect: {count: {max: 0}, outcome: Bound}}]", "keep one of the two"),
        (
            "cases: [{name: n, expect: {outcome: Bound}}, {name: n, expect: {outcome: Bound}}]",
            "has the same name",
        ),
        (
            "cases: [{name: n, expect: {outcome: Bound}}, {name: m, expect: {outcome: Pending}}]",
            "selects the same claims as case \"n\" but expects another outcome",
        ),
        (
            "cases: [{name: n, expect: {resources: [x]}}, {name: m, expect: {outcome: Lost}}]",
            "expects another outcome",
        ),
        (
            "cases: [{name: n, expect: {count: {min: 3}}}, {name: m, expect: {count: {max: 2}}}]",
            "expects another count",
        ),
        ("thresholds: {moved: 0}", "against a baseline"),
        ("cases: [{name: n, expect: {outcom: Bound}}]", "outcom"),
        ("cases: [{name: n, expect: {every: 'claim.'}}]", "is not valid CEL"),
        ("cases: [{name: n, expect: {every: 'unknown.x'}}]", "cannot be evaluated"),
        ("cases: [{name: n, expect: {every: '1 + 1'}}]", "other than true or false"),
        ("cases: [{name: n, expect: {", ""),
    ] {
        let error = judge("wrong", rest, None, Vec::new()).expect_err(rest);
        assert!(error.contains(why), "{rest}: {error}");
    }
}

#[test]
fn a_state_without_a_claim_passes_only_where_it_is_counted() {
    for (rest, passed) in [
        ("cases: [{name: n, expect: {plan: 'plan.summary.pending == 0'}}]", false),
        ("thresholds: {pending: 0, lost: 0, pendingPercent: 5}", false),
        ("cases: [{name: n, expect: {count: {max: 0}}}]", true),
    ] {
        let suite = suite("empty", rest).expect("a suite");
        let (state, policies) = (Vec::new(), Vec::new());
        let gate = Gate { suite: &suite, state, policies, baseline: None, options: Options::default() };
        let (verdict, _) = gate.judge().expect("it is judged");
        assert_eq!(verdict.passed, passed, "{rest}: {:?}", verdict.judged);
    }
}

#[test]
fn a_case_is_found_on_its_line() {
    let rest = "cases:\n  - name: first\n    expect: {outcome: Bound}\n  - {name: 'the second', expect: {plan: 'true'}}\n";
    let lines = suite("lines", rest).expect("a suite").lines;
    assert_eq!((lines["first"], lines["the second"]), (6, 8));
}

#[test]
fn a_baseline_is_kept_and_what_differs_is_reported_with_its_cause() {
    let rest = "baseline: b.json";
    let open = judge("baseline", rest, None, Vec::new()).expect("it is judged");
    assert!(open.inconclusive && !open.passed);
    let suite = suite("baseline", rest).expect("a suite");
    let gate = Gate {
        suite: &suite,
        state: state(),
        policies: Vec::new(),
        baseline: None,
        options: Options::default(),
    };
    let (_, plan) = gate.judge().expect("it is judged");
    let baseline = Baseline::of(&plan);
    assert!(judge("baseline", rest, Some(baseline.clone()), Vec::new()).expect("judged").passed);
    let cordon = objects(
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
         metadata: {name: db, namespace: conductor-system}\nspec: {engine: mysql, unschedulable: true}\n",
    );
    let failed = judge("baseline", rest, Some(baseline.clone()), cordon.clone()).expect("judged");
    assert!(!failed.passed && !failed.inconclusive);
    let reported = &failed.judged.last().expect("the baseline").failures[0];
    assert!(reported.starts_with("a/c1: Bound db -> Pending (Cordoned"), "{reported}");
    let some = judge("baseline", "baseline: b.json\nthresholds: {changed: 1}", Some(baseline), cordon)
        .expect("judged");
    assert!(some.passed, "one change is allowed: {:?}", some.judged);
}

#[test]
fn every_format_shows_what_failed_and_where() {
    let rest = "cases: [{name: 'all <bound> | *', expect: {outcome: Bound}}, {name: good, expect: {count: {min: 1}}}]";
    let verdict = judge("forms", rest, None, Vec::new()).expect("judged");
    let xml = junit(&verdict).expect("XML");
    assert!(xml.contains("failures=\"1\"") && xml.contains("all &lt;bound&gt;"), "{xml}");
    let sarif = sarif(
        &verdict,
        "suite.yaml",
        &["policies/x.yaml".to_owned()],
        &[("all <bound> | *".to_owned(), 9)].into(),
    );
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "policies/x.yaml");
    assert_eq!(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 9);
    assert!(result["message"]["text"].as_str().expect("text").contains("a/c2 is Pending"), "{result}");
    let text = markdown(&verdict);
    assert!(text.contains("failed") && text.contains("all &lt;bound&gt; \\| \\*"), "{text}");
}

#[test]
fn markdown_stays_within_a_comment() {
    let mut verdict = judge("long", "thresholds: {pending: 0}", None, Vec::new()).expect("judged");
    let judged = verdict.judged[0].clone();
    verdict.judged = (0..5_000).map(|_| judged.clone()).collect();
    let text = markdown(&verdict);
    assert!(text.len() < MARKDOWN_MAX + 200, "{}", text.len());
    assert!(text.contains("more lines do not fit here"));
}
