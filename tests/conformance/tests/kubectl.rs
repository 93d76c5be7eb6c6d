//! The real kubectl on both APIs: what people type prints the same on each.

use conductor_conformance::commands::{self, Command, Outcome};
use conductor_conformance::side::{Own, Real, connect, install_kinds};
use conductor_controlplane::find_kubectl;
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_prints_the_same_on_both_apis() {
    let (real, own) = (Real::start().unwrap(), Own::start().await.unwrap());
    for kubeconfig in [real.plane.kubeconfig(), &own.kubeconfig] {
        install_kinds(&connect(kubeconfig).await.unwrap()).await.unwrap();
    }
    let commands = commands::read_all().unwrap();
    let home = own.folder.join("real");
    let (theirs, ours) = tokio::join!(
        all(&commands, real.plane.kubeconfig(), &home),
        all(&commands, &own.kubeconfig, &own.folder),
    );
    let mut differences = Vec::new();
    for (command, (theirs, ours)) in commands.iter().zip(theirs.iter().zip(&ours)) {
        assert_eq!(theirs.done, !command.fails, "kubectl {} on the real API: {theirs:?}", command.run);
        let is_same = if command.differs.is_some() { theirs.done == ours.done } else { theirs == ours };
        if !is_same {
            differences.push(format!(
                "kubectl {}\n  real: {}\n  embedded: {}",
                command.run,
                show(theirs),
                show(ours)
            ));
        }
    }
    println!("{} of {} commands print the same", commands.len() - differences.len(), commands.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Runs them in a thread: a command waits for its end.
async fn all(commands: &[Command], kubeconfig: &Path, home: &Path) -> Vec<Outcome> {
    let (commands, kubeconfig, home) = (commands.to_vec(), kubeconfig.to_owned(), home.to_owned());
    let run = move || {
        std::fs::create_dir_all(&home).unwrap();
        let kubectl = find_kubectl().unwrap();
        commands.iter().map(|command| command.run(&kubectl, &kubeconfig, &home).unwrap()).collect()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn show(outcome: &Outcome) -> String {
    let Outcome { done, output, complaints } = outcome;
    format!("{}\n{output}{complaints}", if *done { "done" } else { "failed" })
        .trim_end()
        .replace('\n', "\n    ")
}
