//! Every check of `checks/`, sent to both APIs: one test each, by the name of its file and its sentence.
//!
//! ```text
//! cargo test -p conductor-conformance --test api -- watch              the checks of one file
//! CONFORMANCE_RECORD=folder cargo test -p conductor-conformance        keeps the real side's answers, to read
//! ```

use conductor_conformance::check::{self, Check};
use conductor_conformance::compare::{Difference, compared, differences};
use conductor_conformance::here;
use conductor_conformance::normal::Normaliser;
use conductor_conformance::run::{self, Answer};
use conductor_conformance::side::{Own, Real, connect, install_kinds};
use kube::Client;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};
use tokio::runtime::Runtime;

/// Most differences that are shown per check; the others usually follow from them.
const SHOWN_MAX: usize = 20;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Checks mostly wait: for watches to end, for garbage to be collected.
    arguments.test_threads = arguments.test_threads.or(Some(12));
    let checks = check::read_all(&here("checks")).unwrap_or_else(|error| panic!("{error}"));
    let known = check::read_differing().unwrap_or_else(|error| panic!("{error}"));
    let known: usize = known.iter().map(|known| known.checks.len()).sum();
    let stage = Arc::new(LazyLock::new(Stage::set as fn() -> Stage));
    let trials = checks.into_iter().enumerate().map(|(number, check)| {
        let name = format!("{}: {}", check.group, check.check);
        let stage = Arc::clone(&stage);
        Trial::test(name, move || stage.play(&check, number + 1).map_err(Failed::from))
    });
    let done = libtest_mimic::run(&arguments, trials.collect());
    if !arguments.list {
        let failed = done.num_failed;
        println!(
            "{} checks, {known} of them with known differences (differs.yaml), {failed} wrong",
            done.num_passed + failed
        );
    }
    // End the sides before the process: the real one would outlive it.
    drop(stage);
    done.exit_code()
}

/// Both APIs, with the kinds that checks share.
struct Stage {
    real: Client,
    embedded: Client,
    record: Option<PathBuf>,
    /// What is known to differ.
    differs: BTreeSet<String>,
    // In the order in which they end.
    _own: Own,
    _plane: Real,
    runtime: Runtime,
}

impl Stage {
    fn set() -> Stage {
        let runtime = Runtime::new().expect("the runtime starts");
        let set = async {
            let (plane, own) = (Real::start()?, Own::start().await?);
            let real = connect(plane.plane.kubeconfig()).await?;
            let embedded = connect(&own.kubeconfig).await?;
            install_kinds(&real).await?;
            install_kinds(&embedded).await?;
            Ok::<_, String>((plane, own, real, embedded))
        };
        let (plane, own, real, embedded) = runtime.block_on(set).unwrap_or_else(|error| panic!("{error}"));
        let record = std::env::var_os("CONFORMANCE_RECORD").map(PathBuf::from);
        let differs = check::read_differing().unwrap_or_else(|error| panic!("{error}"));
        let differs = differs.into_iter().flat_map(|known| known.checks).collect();
        Stage { real, embedded, record, differs, _own: own, _plane: plane, runtime }
    }

    fn play(&self, check: &Check, number: usize) -> Result<(), String> {
        let (real, embedded) = self.runtime.block_on(async {
            let sides = (run::run(&self.real, check, number), run::run(&self.embedded, check, number));
            futures::join!(sides.0, sides.1)
        });
        let real = real.map_err(|error| format!("on the real API: {error}"))?;
        guard(check, &real)?;
        let real = normal(check, &real);
        self.keep(check, number, &real)?;
        let agreed = match embedded {
            Ok(embedded) => report(check, &real, &normal(check, &embedded)),
            Err(error) => Err(format!("on the embedded API: {error}")),
        };
        let name = format!("{}: {}", check.group, check.check);
        match (agreed, self.differs.contains(&name)) {
            (agreed, false) => agreed,
            (Err(_), true) => Ok(()),
            (Ok(()), true) => {
                println!("{name}: it agrees, take it off differs.yaml");
                Ok(())
            }
        }
    }

    fn keep(&self, check: &Check, number: usize, real: &[Value]) -> Result<(), String> {
        let Some(folder) = &self.record else { return Ok(()) };
        let shown = |error: std::io::Error| error.to_string();
        std::fs::create_dir_all(folder).map_err(shown)?;
        let record = serde_json::json!({"check": check.check, "answers": real});
        let text = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())?;
        std::fs::write(folder.join(format!("{}-{number:03}.json", check.group)), text).map_err(shown)
    }
}

/// The script does what it is about: the real API answers with the status codes that it names.
fn guard(check: &Check, answers: &[Answer]) -> Result<(), String> {
    for (at, (step, answer)) in check.steps.iter().zip(answers).enumerate() {
        let right = step.is.map_or(answer.status / 100 == 2, |wanted| wanted == answer.status);
        if !right {
            let wanted = step.is.map_or("2xx".to_owned(), |wanted| wanted.to_string());
            return Err(format!("step {}: not {wanted}: {} {}", at + 1, answer.status, answer.body));
        }
    }
    Ok(())
}

fn normal(check: &Check, answers: &[Answer]) -> Vec<Value> {
    let mut normaliser = Normaliser::default();
    let pairs = check.steps.iter().zip(answers);
    pairs.map(|(step, answer)| compared(step, normaliser.normalise(answer))).collect()
}

fn report(check: &Check, real: &[Value], embedded: &[Value]) -> Result<(), String> {
    let mut lines = Vec::new();
    for (at, (real, embedded)) in real.iter().zip(embedded).enumerate() {
        let request =
            check.steps[at].request().map_or_else(String::new, |(method, path)| format!("{method} {path}"));
        let found = differences(real, embedded);
        lines.extend(found.into_iter().map(|Difference { at: place, real, embedded }| {
            format!("step {} ({request}) {place}\n      real:     {real}\n      embedded: {embedded}", at + 1)
        }));
    }
    match lines.len() {
        0 => Ok(()),
        many => Err(format!("{many} differences\n  {}", lines[..many.min(SHOWN_MAX)].join("\n  "))),
    }
}
