//! Help that teaches: every command with examples, and every example a command that exists.

use super::*;

#[test]
fn every_help_has_examples() {
    for command in [&[][..], &["up"], &["demo"], &["sim"], &["sim", "plan"], &["sim", "explain"], &["crds"]] {
        let help = succeed(&run(&[command, &["--help"]].concat()));
        assert!(help.contains("Examples:"), "{command:?}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{command:?}: {help}");
    }
}

#[test]
fn the_plans_help_lists_inputs_and_exit_codes() {
    let help = succeed(&run(&["sim", "plan", "--help"]));
    for word in
        ["PATH", "--system-namespace", "--namespace", "table", "json", "Exit codes", "standard input", "gzip"]
    {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[test]
fn every_question_has_help_with_examples_and_exit_codes() {
    let help = succeed(&run(&["sim", "--help"]));
    for question in [
        "plan",
        "explain",
        "whatif",
        "fit",
        "size",
        "class-impact",
        "compare",
        "record",
        "inspect",
        "audit",
        "import",
        "export",
        "replay",
        "gate",
        "fuzz",
        "shrink",
    ] {
        assert!(help.contains(&format!("\n  {question}")), "{question} is not offered");
        let taught = succeed(&run(&["sim", question, "--help"]));
        let (example, codes) = (format!("conductor sim {question}"), "xit codes");
        assert!(taught.contains(&example) && taught.contains(codes), "{taught}");
    }
}

#[test]
fn the_example_of_a_failing_history_fails() {
    let help = succeed(&run(&["sim", "shrink", "--help"]));
    let example = help.lines().find_map(|line| line.trim().strip_prefix("conductor ")).expect("an example");
    let output = run(&example.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{example}: {}", text(&output.stdout));
}

#[test]
fn the_version_is_printed() {
    assert_eq!(succeed(&run(&["--version"])), format!("conductor {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_command_is_a_usage_error_that_helps() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Examples:"));
}
