//! The greeting of `conductor up`: addresses, and commands to type next. Every command works as it stands, with and without
//! `-f`, at the first start and at later ones; a test types them.

use super::databases;
use crate::args::UpArguments;
use crate::output;
use anyhow::Result;
use conductor_sql::local::find_missing;
use conductor_sql_plan::sql::Dialect;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The namespace that the examples name.
const SYSTEM_NAMESPACE: &str = "conductor-system";

/// Prints the greeting.
pub fn print(arguments: &UpArguments, kubeconfig: &Path, api: SocketAddr, web: SocketAddr) -> Result<()> {
    let shown = kubeconfig.display();
    let kept = match &arguments.data {
        Some(folder) => format!("stored in {}", folder.display()),
        None => "in memory: it ends with this process; --data DIR stores it".to_owned(),
    };
    let databases = databases::summary();
    let next = Next {
        program: program(),
        system_namespace: arguments.system_namespace.clone(),
        has_server: find_missing(Dialect::Postgresql).is_none(),
    };
    output::say(&format!(
        "conductor is up.

  kubeconfig  {shown}
  API         https://{api}  ({kept})
  web         http://{web}  (/healthz, /readyz, /metrics)
  databases   {databases}

Type next, in another terminal, in the folder of the repository:

  export KUBECONFIG={}
{}
{}
Ctrl-C ends it. Progress:
",
        quoted(&shown.to_string()),
        next.lines(),
        next.note(),
    ))
}

/// The inputs of the commands to type next.
struct Next {
    program: String,
    system_namespace: String,
    has_server: bool,
}

impl Next {
    /// Commands that create a claim, wait until it is Bound and Ready, and show it.
    fn lines(&self) -> String {
        let Next { program, system_namespace, has_server } = self;
        let is_usual = system_namespace == SYSTEM_NAMESPACE;
        let elsewhere =
            if is_usual { String::new() } else { format!(" --system-namespace {system_namespace}") };
        let apply = match (has_server, is_usual) {
            (true, _) => "kubectl apply -f examples/first-claim.yaml".to_owned(),
            (false, true) => "kubectl apply -f examples/first-claim-address-only.yaml".to_owned(),
            (false, false) => format!(
                "sed 's/{SYSTEM_NAMESPACE}/{system_namespace}/' examples/first-claim-address-only.yaml | kubectl apply -f -"
            ),
        };
        [
            apply,
            "kubectl -n my-team wait rdbc/my-db --for=condition=Ready --timeout=120s".to_owned(),
            format!("{program} get claims -A"),
            format!("{program} explain claim my-team/my-db{elsewhere}"),
            "kubectl -n my-team describe secret my-db".to_owned(),
        ]
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect()
    }

    fn note(&self) -> &'static str {
        if self.has_server {
            "The Secret my-team/my-db has the login of a working database. A claim of a class whose operator does not run here
becomes Bound and never Ready: its stand-in has no connection to publish.
"
        } else {
            "PostgreSQL is not installed, so the address in the Secret my-team/my-db does not answer. A claim of a class whose
operator does not run here becomes Bound and never Ready: its stand-in has no connection to publish.
"
        }
    }
}

/// How to call this program: by its name if PATH has it, else by its path.
fn program() -> String {
    let Ok(own) = std::env::current_exe() else { return "conductor".to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("conductor")).find(|file| file.is_file());
    let real = |file: PathBuf| file.canonicalize().ok();
    let is_own = found.and_then(real).is_some_and(|found| real(own.clone()) == Some(found));
    if is_own { "conductor".to_owned() } else { quoted(&own.display().to_string()) }
}

/// A path as a shell reads it.
fn quoted(path: &str) -> String {
    let is_plain = path.chars().all(|c| c.is_alphanumeric() || "/._-+~:@%".contains(c));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(has_server: bool, system_namespace: &str) -> String {
        Next { program: "conductor".to_owned(), system_namespace: system_namespace.to_owned(), has_server }
            .lines()
    }

    #[test]
    fn without_a_server_the_claim_needs_none() {
        assert!(next(true, "conductor-system").contains("examples/first-claim.yaml"));
        let without = next(false, "conductor-system");
        assert!(without.contains("apply -f examples/first-claim-address-only.yaml"), "{without}");
    }

    #[test]
    fn another_system_namespace_is_in_the_commands() {
        let lines = next(false, "other");
        assert!(lines.contains("sed 's/conductor-system/other/'"), "{lines}");
        assert!(lines.contains("my-team/my-db --system-namespace other"), "{lines}");
    }

    #[test]
    fn a_path_with_a_space_can_be_typed() {
        assert_eq!(quoted("/tmp/a"), "/tmp/a");
        assert_eq!(quoted("/tmp/a b'c"), r"'/tmp/a b'\''c'");
    }
}
