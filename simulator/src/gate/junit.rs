//! A verdict as JUnit XML for CI systems.

use super::document::Verdict;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// Formats the verdict as XML.
///
/// # Errors
/// The XML writer's.
pub fn junit(verdict: &Verdict) -> Result<String, String> {
    let name = if verdict.suite.is_empty() { "conductor gate" } else { &verdict.suite };
    let mut suite = TestSuite::new(name);
    for judged in &verdict.judged {
        let status = match judged.passed {
            true => TestCaseStatus::success(),
            false => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(judged.failures.first().cloned().unwrap_or_default());
                status.set_description(judged.failures.join("\n"));
                status
            }
        };
        let mut case = TestCase::new(judged.name.clone(), status);
        case.set_classname(format!("{:?}", judged.kind));
        suite.add_test_case(case);
    }
    if verdict.inconclusive {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message("there is no baseline yet: create one with --bless");
        suite.add_test_case(TestCase::new("baseline", status));
    }
    let mut report = Report::new(name);
    report.add_test_suite(suite);
    report.to_string().map_err(|error| error.to_string())
}
