//! Every call of every workflow goes wrong in every way, one at a time, on either API: the process dies
//! before it or after it, the API refuses, the answer is lost. Enumerated from the trace of an undisturbed
//! run, not sampled: all of them in `make test-all`, a tenth in `make test`, another one each day. The end is always that of the undisturbed run, and no revision breaks an invariant.

use conductor_controlplane::{ControlPlane, Part};
use conductor_live::fault::{Call, Fault};
use conductor_live::operator;
use conductor_live::trial::{Lab, Normal, install};
use conductor_live::workflow::{self, Workflow};
use conductor_live::{Portion, Side, Site};
use futures::StreamExt;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Instant;

/// Trials at a time: most of one is waiting for rest.
const SIDE_BY_SIDE: usize = 16;
/// The same where the namespace controller is waited for, which takes its time.
const SIDE_BY_SIDE_SLOW: usize = 52;
/// Calls go out in parallel and Events are merged, so a call may be spared by chance: then it is tried again.
const TRIES: usize = 4;
/// One trial in so many may be spared each time: two undisturbed runs do not know every chance. More, and the
/// enumeration is no longer one.
const SPARED_PART: usize = 50;

/// How a trial ended.
enum Outcome {
    /// As the undisturbed run ends, with the fault.
    Passed,
    /// As the undisturbed run ends, but the call never came: the fault was not tried.
    Spared(String),
    Failed(String),
}

/// One API after the other: what is measured as rest is the controller's, not the machine's.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_every_workflow_may_go_wrong_on_the_embedded_api() {
    let _one = ONE.lock().await;
    let site = Site::start(Side::Embedded).await;
    install(|arguments, input| site.kubectl_with_input(arguments, input));
    let config = conductor_controller::find_cluster(Some(site.kubeconfig()), None).await.unwrap();
    let api = conductor_controller::connect(config).unwrap();
    let lab = Lab::new(api.clone()).await.unwrap();
    let operator = tokio::spawn(operator::operate(api));
    let mut failures = enumerate(&lab, vec![workflow::namespace_deletion()], SIDE_BY_SIDE_SLOW).await;
    failures.extend(enumerate(&lab, workflow::all(), SIDE_BY_SIDE).await);
    operator.abort();
    assert!(failures.is_empty(), "{} trials failed:\n{}", failures.len(), failures.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_every_workflow_may_go_wrong() {
    let _one = ONE.lock().await;
    let mut plane = ControlPlane::start().unwrap();
    install(|arguments, input| plane.kubectl_with_input(arguments, input).unwrap());
    // Only one workflow needs them, and they work on every namespace that is made.
    plane.start_part(Part::ControllerManager).unwrap();
    let config = conductor_controller::find_cluster(Some(plane.kubeconfig()), None).await.unwrap();
    let api = conductor_controller::connect(config).unwrap();
    let lab = Lab::new(api.clone()).await.unwrap();
    let operator = tokio::spawn(operator::operate(api));
    let mut failures = enumerate(&lab, vec![workflow::namespace_deletion()], SIDE_BY_SIDE_SLOW).await;
    plane.kill(Part::ControllerManager);
    failures.extend(enumerate(&lab, workflow::all(), SIDE_BY_SIDE).await);
    operator.abort();
    assert!(failures.is_empty(), "{} trials failed:\n{}", failures.len(), failures.join("\n\n"));
}

/// Runs each workflow undisturbed, then once for every call and fault. Gives what failed.
async fn enumerate(lab: &Lab, workflows: Vec<Workflow>, side_by_side: usize) -> Vec<String> {
    let begun = Instant::now();
    let mut trials = Vec::new();
    let only = std::env::var("CONDUCTOR_WORKFLOW").ok();
    let mut failures = Vec::new();
    for workflow in workflows.into_iter().filter(|w| only.as_deref().is_none_or(|only| only == w.name)) {
        match boundaries(lab, &workflow).await {
            Ok((normal, calls, chance)) => {
                println!("{}: {} calls: {}", workflow.name, calls.len(), names(&calls));
                if let Err(many) = within_its_means(&workflow, &calls) {
                    failures.push(many);
                }
                for call in calls.iter().chain(&chance) {
                    let certain = calls.contains(call);
                    let trial = |fault| (workflow.clone(), normal.clone(), call.clone(), fault, certain);
                    trials.extend(workflow.faults().iter().copied().map(trial));
                }
            }
            Err(failed) => failures.push(format!("{}, undisturbed: {failed}", workflow.name)),
        }
    }
    let part = Portion::chosen();
    let trials = part.of(trials);
    let count = trials.len();
    let run = trials.into_iter().map(|(workflow, normal, call, fault, certain)| async move {
        match try_until_hit(lab, &workflow, &normal, &call, fault).await {
            Ok(hit) if hit || !certain => Outcome::Passed,
            Ok(_) => Outcome::Spared(format!("{}, {fault:?} at {call}", workflow.name)),
            Err(failed) => Outcome::Failed(format!("{}, {fault:?} at {call}: {failed}", workflow.name)),
        }
    });
    let ran: Vec<Outcome> = futures::stream::iter(run).buffer_unordered(side_by_side).collect().await;
    let mut spared = Vec::new();
    for outcome in ran {
        match outcome {
            Outcome::Passed => {}
            Outcome::Spared(trial) => spared.push(trial),
            Outcome::Failed(trial) => failures.push(trial),
        }
    }
    // Past the test harness, which keeps to itself what a passed test prints.
    let (seconds, failed) = (begun.elapsed().as_secs_f32(), failures.len());
    let _ = writeln!(
        std::io::stderr(),
        "{part}: {count} trials in {seconds:.0} s, {failed} failed, {} whose call did not come in {TRIES} runs{}{}",
        spared.len(),
        if spared.is_empty() { "" } else { ": " },
        spared.join("; ")
    );
    if spared.len() * SPARED_PART > count.max(SPARED_PART) {
        failures.push(format!("too many calls did not come in {TRIES} runs: {}", spared.join("; ")));
    }
    failures
}

/// The calls of a workflow: those that always come, and those that come by chance, such as a list that the API
/// had to be requested twice. Two undisturbed runs distinguish them.
async fn boundaries(
    lab: &Lab,
    workflow: &Workflow,
) -> Result<(Normal, BTreeSet<Call>, BTreeSet<Call>), String> {
    let (one, two) = tokio::join!(lab.run_undisturbed(workflow), lab.run_undisturbed(workflow));
    let (one, two) = (one?, two?);
    if one.end != two.end {
        let differs = conductor_live::normal::difference(&one.end, &two.end);
        return Err(format!("two undisturbed runs end differently:\n{}", differs.join("\n")));
    }
    let set = |normal: &Normal| normal.trace.iter().cloned().collect::<BTreeSet<Call>>();
    let (always, chance) = (&set(&one) & &set(&two), &set(&one) ^ &set(&two));
    Ok((one, always, chance))
}

/// A static bind is four writes: both sides, and both statuses. Events are not counted.
fn within_its_means(workflow: &Workflow, calls: &BTreeSet<Call>) -> Result<(), String> {
    let is_write = |call: &&Call| !call.what.starts_with("GET") && !call.what.ends_with(" events");
    let writes = calls.iter().filter(is_write).count();
    match workflow.name {
        "static bind" if writes > 4 => Err(format!("a static bind took {writes} writes: {}", names(calls))),
        _ => Ok(()),
    }
}

/// Whether the call came in any of a few runs, and everything ended well each time.
async fn try_until_hit(
    lab: &Lab,
    workflow: &Workflow,
    normal: &Normal,
    call: &Call,
    fault: Fault,
) -> Result<bool, String> {
    for _ in 0..TRIES {
        if lab.run_faulty(workflow, normal, call, fault).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn names(calls: &BTreeSet<Call>) -> String {
    calls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
