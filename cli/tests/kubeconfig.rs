//! Kubeconfigs that no request can be made with: every command that reads one says what is wrong with it, in one line,
//! and shows nothing of what stands in it.

use std::fs;
use std::process::{Command, Stdio};

const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZS1sb25nLXRva2VuLW9mLTY0LWNoYXJzIn0";

#[test]
fn a_token_that_ends_with_a_line_break_is_reported_by_every_command() {
    let folder = std::env::temp_dir().join(format!("conductor-kubeconfig-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: me}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\nusers:\n- name: me\n  user:\n    token: |\n      {TOKEN}\n"
    );
    fs::write(&path, config).unwrap();
    let named = path.display().to_string();
    let recording = folder.join("recording").display().to_string();
    for arguments in [
        &["run", "--listen", "127.0.0.1:0"][..],
        &["get", "claims"],
        &["get", "classes"],
        &["explain", "claim", "shop/a"],
        &["rotate", "shop/a"],
        &["undelete", "shop/a"],
        &["sim", "record", "--out", &recording],
    ] {
        for by_variable in [false, true] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
            command.args(arguments).stdin(Stdio::null()).env_remove("KUBECONFIG");
            match by_variable {
                true => command.env("KUBECONFIG", &named),
                false => command.args(["--kubeconfig", &named]),
            };
            let output = command.output().unwrap();
            let reported = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {reported}");
            assert!(
                reported.contains(&format!("kubeconfig {named}: user me: token: it begins or ends with")),
                "{reported}"
            );
            assert!(!reported.contains("panicked") && !reported.contains("eyJ"), "{arguments:?}: {reported}");
        }
    }
    let _ = fs::remove_dir_all(folder);
}
