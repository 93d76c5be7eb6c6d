//! The fixture that every program reads: resources and claims in terms that all of them can express. Seeded, so that every run
//! and every machine gets the same. The matching is in the other files.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const CLASSES: [&str; 8] =
    ["analytics", "archive", "bronze", "dev", "gold", "performance", "platinum", "silver"];
const ENGINES: [&str; 3] = ["mariadb", "mysql", "postgresql"];
/// Release lines from this one on, each with four releases.
const FIRST_LINE: u64 = 10;
const LINES: u64 = 6;
const RELEASES: u64 = 4;
/// Claims of a fixture. Peers decide about the first few, we about all.
pub const CLAIMS: usize = 64;

/// How the resources are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Evenly over classes, engines and versions; all free.
    Uniform,
    /// Nine of ten in one class and one engine.
    Skewed,
    /// As uniform, nine of ten held by a claim.
    Held,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 3] = [Shape::Uniform, Shape::Skewed, Shape::Held];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Uniform => "uniform",
            Shape::Skewed => "skewed",
            Shape::Held => "90 % held",
        }
    }
}

/// Everything that is matched.
#[derive(Debug, Deserialize, Serialize)]
pub struct Fixture {
    pub resources: Vec<Resource>,
    pub claims: Vec<Claim>,
}

/// One database that can be had, or is held already.
#[derive(Debug, Deserialize, Serialize)]
pub struct Resource {
    pub name: String,
    pub class: String,
    pub engine: String,
    pub version: String,
    /// In bytes; no two are alike, so that best fit has one answer.
    pub storage: u64,
    pub bound: bool,
}

/// A class, an engine, versions `from` one to `below` another, and storage.
#[derive(Debug, Deserialize, Serialize)]
pub struct Claim {
    pub name: String,
    pub class: String,
    pub engine: String,
    pub from: String,
    pub below: String,
    /// The same range, release by release: label selectors know no order.
    pub versions: Vec<String>,
    pub storage: u64,
}

/// Splitmix64: chance that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// `count` resources of a shape, and claims of which most can be served.
pub fn make(count: u64, shape: Shape) -> Fixture {
    let mut dice = Dice(count ^ (shape as u64) << 32);
    let resources = (0..count).map(|n| resource(&mut dice, n, count, shape)).collect();
    let claims = (0..CLAIMS as u64).map(|n| claim(&mut dice, n, count, shape)).collect();
    Fixture { resources, claims }
}

fn class_and_engine(dice: &mut Dice, shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Skewed if dice.below(10) > 0 => ("gold", "postgresql"),
        Shape::Uniform | Shape::Skewed | Shape::Held => (dice.pick(&CLASSES), dice.pick(&ENGINES)),
    }
}

fn resource(dice: &mut Dice, n: u64, count: u64, shape: Shape) -> Resource {
    let (class, engine) = class_and_engine(dice, shape);
    let line = FIRST_LINE + dice.below(LINES);
    Resource {
        name: format!("db-{n:07}"),
        class: class.to_owned(),
        engine: engine.to_owned(),
        version: format!("{line}.{}", dice.below(RELEASES)),
        // A step that shares no factor with any count visits every size once.
        storage: (1024 + n * 7_919 % count) * MIB,
        bound: shape == Shape::Held && dice.below(10) > 0,
    }
}

fn claim(dice: &mut Dice, n: u64, count: u64, shape: Shape) -> Claim {
    let (class, engine) = class_and_engine(dice, shape);
    let from = FIRST_LINE + dice.below(LINES - 1);
    let below = from + 1 + dice.below(FIRST_LINE + LINES - from);
    let releases = |line: u64| (0..RELEASES).map(move |release| format!("{line}.{release}"));
    // One in eight requests more than any resource has.
    let storage = if n % 8 == 7 { 2 * count + 1024 } else { 1024 + dice.below(count * 9 / 10) };
    Claim {
        name: format!("claim-{n}"),
        class: class.to_owned(),
        engine: engine.to_owned(),
        from: format!("{from}.0"),
        below: format!("{below}.0"),
        versions: (from..below).flat_map(releases).collect(),
        storage: storage * MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_resources_are_of_one_size() {
        for shape in Shape::ALL {
            let sizes: BTreeSet<u64> = make(1_000, shape).resources.iter().map(|r| r.storage).collect();
            assert_eq!(sizes.len(), 1_000, "{}", shape.name());
        }
    }
}
