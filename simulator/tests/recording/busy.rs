//! A busy cluster: what changes all the time excuses no decision that it does not concern, and an honest recording of
//! one is found to be honest.

use super::*;
use conductor_simulator::replay::{Divergence, Explanation, Replay};

const CLAIMS: usize = 30;

fn named(at: usize) -> String {
    format!("claim-{at:02}")
}

fn wants(gib: usize) -> Value {
    json!({"engine": "mysql", "resources": {"requests": {"storage": format!("{gib}Gi")}}})
}

fn offers(engine: &str, gib: usize) -> Value {
    json!({"engine": engine, "capacity": {"storage": format!("{gib}Gi")}})
}

/// Databases that fit exactly, others that are far too large, and others of another engine.
fn databases() -> Vec<Object> {
    let of = |at: usize| {
        [
            database(&format!("right-{at:02}"), offers("mysql", 1 + at)),
            database(&format!("vast-{at:02}"), offers("mysql", 500 + at)),
            database(&format!("other-{at:02}"), offers("postgresql", 500 + at)),
        ]
    };
    (0..CLAIMS).flat_map(of).collect()
}

/// What changes beside the claims, every tenth of a second: nothing that they depend on.
fn noise(at: usize) -> Object {
    let labels = json!({"labels": {"seen": at.to_string()}});
    match at % 4 {
        0 => object(Kind::Quota, "elsewhere", "q", json!({}), json!({"spec": {"limits": [{"claims": at}]}})),
        1 => object(Kind::Claim(TYPE), "elsewhere", "waits", labels, json!({"spec": {"engine": "oracle"}})),
        2 => object(Kind::Profile, "", "of-others", labels, json!({"spec": {"preferNewest": at % 8 == 2}})),
        _ => object(Kind::Resource(TYPE), SYSTEM, "spare", labels, json!({"spec": {"engine": "sqlite"}})),
    }
}

fn honest(path: &Path) {
    let mut live = Live::start(databases(), path, Redaction::fields_only());
    for at in 0..CLAIMS {
        live.happen_after(100, |harness| {
            harness.put(noise(at));
            harness.put(claim(&named(at), wants(1 + at)));
        });
    }
    live.finish();
}

/// What a replay says of the decisions about these claims.
fn of_claims(found: &Replay) -> Vec<&Divergence> {
    found.divergences.iter().filter(|d| d.claim.starts_with("team/claim-") && d.live.is_some()).collect()
}

#[test]
fn every_forged_decision_of_a_busy_recording_is_found() {
    let folder = folder("forged");
    let (good, bad) = (folder.join("good.rec"), folder.join("bad.rec"));
    honest(&good);
    assert_eq!(replay(&good, &Options::default()).expect("it plays").divergences, []);
    let forgeries: [&dyn Fn(usize) -> Verdict; 6] = [
        &|at| Verdict::Bind { resource: format!("vast-{at:02}") },
        &|at| Verdict::Bind { resource: format!("right-{:02}", (at + 7) % CLAIMS) },
        &|at| Verdict::Bind { resource: format!("other-{at:02}") },
        &|_| Verdict::Refuse { reason: "NoMatch".to_owned() },
        &|_| Verdict::Lost { reason: "Lost".to_owned() },
        &|_| Verdict::Provision { class: "none".to_owned() },
    ];
    for forged in 0..CLAIMS {
        let verdict = forgeries[forged % forgeries.len()](forged);
        rewritten(&good, &bad, |line| match line {
            Line::Dec(mut decision) if decision.name == named(forged) => {
                decision.verdict = verdict.clone();
                vec![Line::Dec(decision)]
            }
            line => vec![line],
        });
        let found = replay(&bad, &Options::default()).expect("it plays");
        let of_forged = of_claims(&found);
        assert_eq!(of_forged.len(), 1, "{verdict:?}: {:?}", found.divergences);
        assert_eq!(of_forged[0].explanation, Explanation::Rule, "{verdict:?}: {}", of_forged[0].message);
    }
}

/// What happens at one time in a history without an engine.
enum Step {
    Put(Box<Object>),
    /// A hand gives a claim so many GiB of a resource, and the object says so.
    Give(String, String, usize),
}

/// A history without an engine, a step every tenth of a second.
fn by_hand(path: &Path, objects: Vec<Object>, steps: impl IntoIterator<Item = Vec<Step>>) {
    let mut world = World::new();
    objects.into_iter().for_each(|o| drop(world.put(o)));
    let subject = RecordingInfo {
        began: BEGAN,
        system_namespace: SYSTEM.to_owned(),
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let file = File::create(path).expect("a file can be made");
    let mut recorder = Recorder::new(file, subject, Redaction::fields_only());
    let kind = Kind::Resource(TYPE);
    let (objects, revision) = (world.of(kind).cloned().collect(), Revision(world.revision()));
    recorder.take(Event::Listed { kind, objects, revision }, 0).expect("it records");
    recorder.begin().expect("it records");
    for (at, steps) in steps.into_iter().enumerate() {
        for step in steps {
            let event = match step {
                Step::Put(object) => Some(world.put(*object)),
                Step::Give(name, given, gib) => {
                    let id = uid(Kind::Claim(TYPE), "team", &name);
                    world.edit(kind, &ObjectKey::new(SYSTEM, given), |resource| {
                        let requests = json!({"storage": format!("{gib}Gi")});
                        let held =
                            json!({"namespace": "team", "name": name, "uid": id, "requests": requests});
                        let refs = &mut resource.body["spec"]["claimRefs"];
                        let mut all = refs.as_array().cloned().unwrap_or_default();
                        all.push(held);
                        *refs = json!(all);
                    })
                }
            };
            let ms = 100 * (at as u64 + 1);
            event.into_iter().for_each(|event| recorder.take(event, ms).expect("it records"));
        }
    }
    recorder.finish(60_000).expect("it records");
}

/// Each claim is given what a hand chooses.
fn chosen_by_hand(path: &Path, choose: impl Fn(usize) -> String) {
    let steps = |at: usize| {
        let comes = Step::Put(Box::new(claim(&named(at), wants(1 + at))));
        vec![Step::Put(Box::new(noise(at))), comes, Step::Give(named(at), choose(at), 1)]
    };
    by_hand(path, databases(), (0..CLAIMS).map(steps));
}

#[test]
fn no_wrong_choice_is_excused_because_the_cluster_is_busy() {
    let path = folder("by-hand").join("x.rec");
    let choices: [(&str, &dyn Fn(usize) -> String); 3] = [
        ("too large", &|at| format!("vast-{at:02}")),
        ("another engine", &|at| format!("other-{at:02}")),
        ("taken", &|_| "vast-00".to_owned()),
    ];
    for (what, choose) in choices {
        chosen_by_hand(&path, choose);
        let found = replay(&path, &Options::default()).expect("it plays");
        let wrong = of_claims(&found);
        let excused: Vec<_> = wrong.iter().filter(|d| d.explanation != Explanation::Rule).collect();
        assert!(wrong.len() >= CLAIMS && excused.is_empty(), "{what}: {} {excused:?}", wrong.len());
    }
    chosen_by_hand(&path, |at| format!("right-{at:02}"));
    assert_eq!(of_claims(&replay(&path, &Options::default()).expect("it plays")), Vec::<&Divergence>::new());
}

/// A live engine whose watches run apart: it hears of claims before it hears of databases that are older than they are,
/// and of deletions last.
fn watches_apart(path: &Path) {
    let mut live = Live::start(vec![noise(0)], path, Redaction::fields_only());
    for at in 0..CLAIMS {
        live.happen_after(100, |harness| {
            harness.touch_parts(|world| {
                let shared =
                    json!({"engine": "mysql", "capacity": {"storage": "20Gi"}, "sharing": {"maxClaims": 2}});
                let databases = [
                    world.put(database(&format!("own-{at:02}"), offers("mysql", 8 + at % 5))),
                    world.put(database(&format!("shared-{at:02}"), shared)),
                ];
                let mut urgent = wants(1 + at % 7);
                urgent["priority"] = json!(at % 4);
                let claims = [
                    world.put(claim(&named(2 * at), wants(2 + at % 6))),
                    world.put(claim(&named(2 * at + 1), urgent)),
                ];
                let left = at.checked_sub(3).map(|at| ObjectKey::new("team", named(2 * at)));
                let left = left.and_then(|key| world.delete(Kind::Claim(TYPE), &key));
                let mut events: Vec<Event> = Vec::new();
                match at % 3 {
                    0 => events.extend(claims.into_iter().rev().chain(databases)),
                    1 => events.extend(databases.into_iter().chain(claims)),
                    _ => events.extend(claims.into_iter().chain(databases.into_iter().rev())),
                }
                events.into_iter().chain(left).collect::<Vec<Event>>()
            });
        });
    }
    live.finish();
}

#[test]
fn an_honest_recording_of_a_busy_cluster_verifies() {
    let path = folder("apart").join("x.rec");
    watches_apart(&path);
    let found = replay(&path, &Options::default()).expect("it plays");
    assert!(found.agreement.decisions >= CLAIMS as u64, "{:?}", found.agreement);
    assert!(found.agreement.agreed < found.agreement.decisions, "watches that run apart make a difference");
    let rules: Vec<_> = found.divergences.iter().filter(|d| d.explanation == Explanation::Rule).collect();
    assert!(rules.is_empty(), "{} of {}: {rules:#?}", rules.len(), found.divergences.len());
}

/// Two shared databases, a small claim, and a large one that fits the second only and leaves there what the small one
/// wants. Given in the order of their coming, the small one gets the first.
fn small_and_large(path: &Path, steps: impl IntoIterator<Item = Vec<Step>>) -> Vec<(Explanation, String)> {
    let shared = |gib: usize| {
        let mut offer = offers("mysql", gib);
        offer["sharing"] = json!({"maxClaims": 3});
        offer
    };
    let objects = vec![database("first", shared(10)), database("second", shared(13))];
    by_hand(path, objects, steps);
    let found = replay(path, &Options::default()).expect("it plays");
    found.divergences.into_iter().map(|d| (d.explanation, d.message)).collect()
}

#[test]
fn a_choice_is_explained_by_what_was_bound_before_it_in_the_recording() {
    let path = folder("order").join("x.rec");
    let comes = |name: &str, gib: usize| Step::Put(Box::new(claim(name, wants(gib))));
    let gives = |name: &str, to: &str, gib: usize| Step::Give(name.to_owned(), to.to_owned(), gib);
    let together = || vec![comes("small", 2), comes("large", 11)];
    let larger_first = [together(), vec![gives("large", "second", 11)], vec![gives("small", "second", 2)]];
    let found = small_and_large(&path, larger_first);
    assert!(matches!(&found[..], [(Explanation::Race, why)] if why.contains("fits better")), "{found:?}");
    let larger_last = [together(), vec![gives("small", "second", 2)], vec![gives("large", "second", 11)]];
    let found = small_and_large(&path, larger_last);
    assert!(matches!(&found[..], [(Explanation::Rule, _)]), "its write would show the other: {found:?}");
    let alone = [vec![comes("small", 2)], vec![gives("small", "second", 2)]];
    let found = small_and_large(&path, alone);
    assert!(matches!(&found[..], [(Explanation::Rule, _)]), "nothing else was there: {found:?}");
}
