//! The invariants bite: every deliberately broken engine is caught, and its history shrinks to something that people read.

use conductor_simulator::fuzz::{Mutant, fuzz, shrink};

/// More than the shyest mutant needs.
const SEEDS_MAX: u64 = 2_000;
/// Seeds are played in stretches: most mutants fall within the first, and those that go in circles are slow.
const STRETCH: u64 = 10;

fn first_caught(mutant: Mutant) -> Option<(u64, String)> {
    (0..SEEDS_MAX).step_by(STRETCH as usize).find_map(|from| {
        let found = fuzz(from, STRETCH, Some(mutant), |_| {});
        found.failures.into_iter().next().map(|failure| (failure.seed, failure.wrong))
    })
}

#[test]
fn every_mutant_is_caught() {
    // A mutant may panic; the panic is caught and reported below.
    std::panic::set_hook(Box::new(|_| {}));
    let mut alive = Vec::new();
    for mutant in Mutant::all() {
        match first_caught(*mutant) {
            Some((seed, wrong)) => println!("{}: seed {seed}: {wrong:.120}", mutant.name()),
            None => alive.push(mutant.name()),
        }
    }
    assert!(Mutant::all().len() >= 30, "{} mutants", Mutant::all().len());
    assert!(alive.is_empty(), "not caught in {SEEDS_MAX} seeds: {alive:?}");
}

#[test]
fn a_failing_history_shrinks_and_fails_the_same_way_again() {
    let mutant = Mutant::find("retain-is-delete").expect("there is such a mutant");
    let (seed, wrong) = first_caught(mutant).expect("it is caught");
    let small = shrink(seed, Some(mutant)).expect("it fails again");
    assert_eq!(small.wrong.split(':').next(), wrong.split(':').next());
    assert!(small.steps.1 <= small.steps.0, "{:?} steps", small.steps);
    assert!(!small.history.is_empty());
    for line in &small.history {
        for code in ["TypeId(", "Some(", "None", "Claim(", "Resource(", "Written(", "Part(", "uid: "] {
            assert!(!line.contains(code), "no code in the text: {line}");
        }
    }
    let names: Vec<&str> = small.state.iter().filter_map(|o| o["metadata"]["name"].as_str()).collect();
    let lists = small.history.iter().filter(|line| line.contains("receives list of")).take(8);
    for line in lists {
        let listed = line.rsplit(": ").next().unwrap_or_default();
        let is_there = |name: &str| names.contains(&name) || name == "none";
        assert!(
            listed.split(", ").all(is_there),
            "the history begins with the cluster that is shown: {line}"
        );
    }
    assert_eq!(shrink(seed, Some(mutant)), Some(small), "the same again");
}

#[test]
fn the_engine_itself_does_not_shrink() {
    assert_eq!(shrink(1, None), None);
}
