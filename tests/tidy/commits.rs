//! The commit-message hook, `scripts/commit-msg`, which developers install themselves: it accepts good subjects and refuses bad
//! ones. History is not checked here.

use std::{fs, path::Path, process::Command};

#[test]
fn the_commit_hook_refuses_bad_subjects() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = std::env::temp_dir().join(format!("conductor-commit-msg-{}", std::process::id()));
    let long = "Fix ".repeat(20);
    for (message, accepted) in [
        ("Fix the watch", true),
        ("Process the queue\n\nBecause it grew.", true),
        ("Merge branch 'main'", true),
        ("Fixed the watch", false),
        ("Adds a predicate", false),
        ("fix the watch", false),
        ("Fix the watch.", false),
        ("Fix the watch\nBecause it broke.", false),
        ("# only a comment", false),
        (&long, false),
    ] {
        fs::write(&file, message).expect("the folder for temporary files is writable");
        let run =
            Command::new(root.join("scripts/commit-msg")).arg(&file).output().expect("bash is installed");
        assert_eq!(run.status.success(), accepted, "{message:?}: {}", String::from_utf8_lossy(&run.stderr));
    }
    let _ = fs::remove_file(&file);
}
