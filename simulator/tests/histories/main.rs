//! Thousands of random histories: users, administrators and faults against one engine, the world checked after
//! every write. `CONDUCTOR_HISTORIES` asks for more, `CONDUCTOR_SEED` replays one and prints it, shortened.

// The generator and the plain scheduler are the oracle's; a history needs only parts of them.
#[allow(dead_code)]
#[path = "../oracle/brute/mod.rs"]
mod brute;
mod driver;
mod finale;
mod laws;
mod paths;
#[allow(dead_code)]
#[path = "../oracle/rng.rs"]
mod rng;
mod users;
#[allow(dead_code)]
#[path = "../oracle/worlds.rs"]
mod worlds;

use driver::{Run, Step, steps};
use rng::{Rng, seeds};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What became of a history: how many writes the engine sent, or what went wrong, and the trace.
fn play(seed: u64, steps: &[Step], traced: bool) -> Result<usize, (String, String)> {
    let mut run = Run::start(seed, traced).map_err(|e| (e, String::new()))?;
    let lived = catch_unwind(AssertUnwindSafe(|| {
        for step in steps {
            run.step(*step)?;
        }
        finale::conclude(&mut run, &mut Rng::new(seed ^ 0xF1A1E))
    }));
    match lived {
        Ok(Ok(())) => Ok(run.writes),
        Ok(Err(wrong)) => Err((wrong, run.trace())),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err((format!("panic: {}", words.unwrap_or_default()), run.trace()))
        }
    }
}

fn steps_of(seed: u64) -> Vec<Step> {
    steps(&mut Rng::new(seed ^ 0x57E5))
}

/// The same failure with as few steps as leaving out one at a time can reach.
fn shorten(seed: u64, wrong: &str, mut steps: Vec<Step>) -> Vec<Step> {
    let law = |text: &str| text.split(':').next().unwrap_or("").to_owned();
    let fails =
        |steps: &[Step]| matches!(play(seed, steps, false), Err((text, _)) if law(&text) == law(wrong));
    loop {
        let before = steps.len();
        let mut at = steps.len();
        while at > 0 {
            at -= 1;
            let mut fewer = steps.clone();
            fewer.remove(at);
            if fails(&fewer) {
                steps = fewer;
            }
        }
        if steps.len() == before {
            return steps;
        }
    }
}

fn report(seed: u64, wrong: &str) -> String {
    let steps = shorten(seed, wrong, steps_of(seed));
    let (wrong, trace) = play(seed, &steps, true).err().unwrap_or_default();
    format!("CONDUCTOR_SEED={seed}, {} steps: {wrong}\n{trace}\n{wrong}", steps.len())
}

#[test]
fn every_history_ends_whole_and_at_rest() {
    let all: Vec<u64> = seeds("CONDUCTOR_HISTORIES", 10_000).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let play_some = |part: usize| {
        let mut wrong = Vec::new();
        let mut writes = 0;
        for seed in all.iter().copied().filter(|seed| *seed as usize % threads == part) {
            match play(seed, &steps_of(seed), false) {
                Ok(sent) => writes += sent,
                Err((why, _)) => wrong.push((seed, why)),
            }
        }
        (writes, wrong)
    };
    let parts: Vec<(usize, Vec<(u64, String)>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|part| scope.spawn(move || play_some(part))).collect();
        workers.into_iter().map(|w| w.join().expect("a worker ends")).collect()
    });
    let writes: usize = parts.iter().map(|(writes, _)| writes).sum();
    let mut wrong: Vec<(u64, String)> = parts.into_iter().flat_map(|(_, wrong)| wrong).collect();
    wrong.sort();
    println!("{} histories, {writes} writes, {} failures", all.len(), wrong.len());
    for (seed, why) in wrong.iter().take(40) {
        println!("  {seed}: {}", &why[..why.len().min(200)]);
    }
    if let Some((seed, why)) = wrong.first() {
        panic!("{}", report(*seed, why));
    }
}
