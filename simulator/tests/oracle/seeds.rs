//! Which seeds a test runs. `CONDUCTOR_SEED` runs that one; a variable of the test's own sets how many seeds run.

/// The seeds to run: the one in `CONDUCTOR_SEED`, or as many as `variable` says, or `default`.
pub fn seeds(variable: &str, default: u64) -> std::ops::Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match read("CONDUCTOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read(variable).unwrap_or(default),
    }
}
