//! Selects the part of a long enumeration that runs. `make test-all` runs all of it; `make test` runs a tenth, another one
//! each day. The log names the part, and `CONDUCTOR_PORTION` selects it again.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many parts an enumeration has.
const PARTS: usize = 10;
const DAY: u64 = 24 * 60 * 60;

/// The part of an enumeration that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// Everything.
    Whole,
    /// Each tenth trial, starting with this one.
    Tenth(usize),
}

impl Portion {
    /// The part that `CONDUCTOR_PORTION` selects (`all`, or a number from 0 to 9), or that of this day.
    ///
    /// # Panics
    /// It has another value.
    pub fn chosen() -> Portion {
        match std::env::var("CONDUCTOR_PORTION") {
            Ok(selected) => {
                Portion::read(&selected).unwrap_or_else(|why| panic!("CONDUCTOR_PORTION={selected}: {why}"))
            }
            Err(_) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                Portion::Tenth((now / DAY) as usize % PARTS)
            }
        }
    }

    fn read(selected: &str) -> Result<Portion, String> {
        match selected.parse() {
            _ if selected == "all" => Ok(Portion::Whole),
            Ok(tenth) if tenth < PARTS => Ok(Portion::Tenth(tenth)),
            _ => Err(format!("write all, or a number from 0 to {}", PARTS - 1)),
        }
    }

    /// The trials of this part, in their order.
    pub fn of<T>(self, trials: impl IntoIterator<Item = T>) -> Vec<T> {
        match self {
            Portion::Whole => trials.into_iter().collect(),
            Portion::Tenth(first) => trials.into_iter().skip(first).step_by(PARTS).collect(),
        }
    }
}

impl fmt::Display for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Portion::Whole => f.write_str("all parts"),
            Portion::Tenth(first) => write!(f, "part {first} of {PARTS} (CONDUCTOR_PORTION={first})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_together_are_the_whole_and_do_not_overlap() {
        let mut together: Vec<usize> = (0..PARTS).flat_map(|part| Portion::Tenth(part).of(0..97)).collect();
        together.sort_unstable();
        assert_eq!(together, Portion::Whole.of(0..97));
    }

    #[test]
    fn a_part_is_read_or_refused() {
        assert_eq!(Portion::read("all"), Ok(Portion::Whole));
        assert_eq!(Portion::read("9"), Ok(Portion::Tenth(9)));
        for wrong in ["10", "", "-1", "ALL", "1/10"] {
            assert!(Portion::read(wrong).is_err(), "{wrong}");
        }
    }
}
