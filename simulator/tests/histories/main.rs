//! Thousands of random histories: users, administrators and faults against one engine, the world checked after
//! every write. `CONDUCTOR_HISTORIES` sets a larger number, `CONDUCTOR_SEED` replays one and prints it, shortened.

mod mutants;
mod paths;
#[path = "../oracle/seeds.rs"]
mod seeds;

use conductor_simulator::fuzz::{fuzz, shrink};

#[test]
fn every_history_ends_whole_and_at_rest() {
    let seeds = seeds::seeds("CONDUCTOR_HISTORIES", 10_000);
    let found = fuzz(seeds.start, seeds.end - seeds.start, None, |_| {});
    println!("{} histories, {} writes, {} failures", found.seeds, found.writes, found.failures.len());
    for failure in found.failures.iter().take(40) {
        println!("  {}: {}", failure.seed, failure.wrong.chars().take(200).collect::<String>());
    }
    if let Some(failure) = found.failures.first() {
        let small = shrink(failure.seed, None).expect("it fails again");
        let history = small.history.join("\n");
        panic!(
            "CONDUCTOR_SEED={}, {} steps: {}\n{history}\n{}",
            small.seed, small.steps.1, small.wrong, small.wrong
        );
    }
}
