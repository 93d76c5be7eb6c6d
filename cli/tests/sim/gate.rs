//! A gate fails closed, and says whose fault it is: unreadable objects, empty states, paths that cannot be written.

use super::*;

const TEAMS: &str = "examples/plan/teams.yaml";

/// A folder with a suite and what it names.
struct Site(PathBuf);

impl Site {
    fn new(name: &str, rest: &str) -> Site {
        let folder = folder(name);
        std::fs::write(folder.join("state.yaml"), std::fs::read(root().join(TEAMS)).unwrap()).unwrap();
        let head = "apiVersion: simulator.conductor.io/v1alpha1\nkind: GateSuite\nstate: [state.yaml]\n";
        std::fs::write(folder.join("suite.yaml"), format!("{head}{rest}\n")).unwrap();
        Site(folder)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn gate(&self, more: &[&str]) -> Output {
        run(&[&["sim", "gate", &self.at("suite.yaml")], more].concat())
    }
}

fn quota(limits: &str) -> String {
    format!(
        "apiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\nmetadata: {{name: shop, namespace: shop}}\n\
         spec: {{limits: [{limits}]}}\n"
    )
}

#[test]
fn a_policy_that_cannot_be_read_is_refused_by_name() {
    let site = Site::new("gate-policy", "policies: [p.yaml]\nthresholds: {lost: 0}");
    for (policy, expected) in [
        (quota("{requests: {storage: 50Gx}}"), "ClaimQuota shop/shop: spec.limits[0].requests.storage"),
        (quota("{claims: '0'}"), "ClaimQuota shop/shop: spec.limits[0].claims"),
        (quota("{claims: 1}").replace("name: shop,", "name: 5,"), "`metadata.name` is a number"),
        (quota("{claims: 1}").replace("ClaimQuota", "ClaimQuotas"), "ClaimQuotas is not a kind"),
        (
            "apiVersion: conductor.io/v1alpha1\nkind: ClusterClaimQuota\nmetadata: {name: gold}\n\
             spec: {namespaceSelector: {matchLabels: {a: b}}, limits: [{claims: 0}]}\n"
                .to_owned(),
            "add them: kubectl get namespaces",
        ),
    ] {
        site.write("p.yaml", &policy);
        let reported = refused(&site.gate(&[]));
        assert!(reported.contains(expected), "{expected}\n{reported}");
    }
    site.write("p.yaml", &quota("{claims: 100}"));
    succeed(&site.gate(&[]));
}

#[test]
fn an_object_of_the_state_that_drops_out_is_refused_and_a_claim_that_waits_is_judged() {
    let site = Site::new("gate-state", "thresholds: {lost: 0}");
    let whole = std::fs::read_to_string(root().join(TEAMS)).unwrap();
    site.write("state.yaml", &format!("{whole}\n---\n{}", quota("{claims: '0'}").replace("shop", "blog")));
    assert!(refused(&site.gate(&[])).contains("ClaimQuota blog/blog: spec.limits[0].claims"));
    site.write("state.yaml", &format!("{whole}\n---\n{}", claim("x", "").replace("'x'", "5")));
    assert!(refused(&site.gate(&[])).contains("`metadata.name` is a number"));
    site.write("state.yaml", &format!("{whole}\n---\n{}", claim("x", "version: '>= banana'")));
    let reported = succeed(&site.gate(&["--double-run"]));
    assert!(reported.starts_with("VERDICT"), "{reported}");
}

#[test]
fn a_recorded_policy_that_cannot_be_read_is_refused() {
    let site = Site::new("gate-recorded", "thresholds: {lost: 0}");
    site.write("q.yaml", &quota("{claims: '0'}").replace("shop", "blog"));
    succeed(&run(&["sim", "import", &site.at("q.yaml"), TEAMS, "--out", &site.at("r.rec")]));
    let text = std::fs::read_to_string(site.0.join("suite.yaml")).unwrap();
    site.write("suite.yaml", &text.replace("state.yaml", "r.rec"));
    assert!(refused(&site.gate(&[])).contains("ClaimQuota blog/blog"));
}

#[test]
fn a_state_without_objects_has_failed_and_an_empty_file_is_refused() {
    let site =
        Site::new("gate-empty", "thresholds: {pending: 0}\ncases: [{name: n, expect: {plan: 'true'}}]");
    site.write("state.yaml", "{apiVersion: v1, kind: List, items: []}");
    let output = site.gate(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("proves nothing"));
    site.write("state.yaml", "");
    let why = refused(&site.gate(&[]));
    assert!(why.contains("state.yaml: it is empty"), "{why}");
}

#[test]
fn a_damaged_baseline_is_repaired_by_blessing() {
    let site = Site::new("gate-damaged", "baseline: b.json");
    site.write("b.json", "{");
    assert!(refused(&site.gate(&[])).contains("replace it with --bless"));
    assert!(succeed(&site.gate(&["--bless"])).contains("passed"));
    succeed(&site.gate(&[]));
}

#[test]
fn forms_are_written_all_or_none_and_the_verdict_is_reported_anyway() {
    let site = Site::new("gate-forms", "thresholds: {lost: 0}");
    let (xml, nowhere) = (site.at("g.xml"), site.at("no/such/g.md"));
    let output = site.gate(&["--junit", &xml, "--markdown", &nowhere]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("passed: 1 check"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("no/such/g.md"), "{}", text(&output.stderr));
    assert!(!Path::new(&xml).exists(), "none of them is written");
    let reported = refused(&site.gate(&["--junit", &xml, "--html", &xml]));
    assert!(reported.contains("--junit and --html are both"), "{reported}");
    assert!(refused(&site.gate(&["--junit", &site.at("suite.yaml")])).contains("the suite and --junit"));
    assert!(refused(&site.gate(&["--html", &site.at("state.yaml")])).contains("its state and --html"));
    let files: Vec<_> = std::fs::read_dir(&site.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn warnings_are_reported_once_though_the_answer_is_given_twice() {
    let input = documents(&[claim("bad", "version: '>= banana'")]);
    let path = folder("twice").join("x.yaml");
    std::fs::write(&path, input).unwrap();
    let output = run(&["sim", "plan", path.to_str().unwrap(), "--double-run"]);
    assert_eq!(text(&output.stderr).matches("warning:").count(), 1, "{}", text(&output.stderr));
}

#[test]
fn a_quota_over_unknown_namespaces_is_reported() {
    let quota = "apiVersion: conductor.io/v1alpha1\nkind: ClusterClaimQuota\nmetadata: {name: gold}\n\
                 spec: {namespaceSelector: {matchLabels: {a: b}}, limits: [{claims: 0}]}\n";
    let reported =
        |more: &str| text(&run_with(&["sim", "plan", "-"], format!("{quota}{more}").as_bytes()).stderr);
    assert!(reported("").contains("kubectl get namespaces"), "{}", reported(""));
    // Where a label must not be there, it is not: such a quota counts.
    assert!(reported("").contains("no Namespace in the input: gold."), "{}", reported(""));
    assert_eq!(reported("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"), "");
}
