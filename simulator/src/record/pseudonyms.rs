//! Stand-ins for names: the same name always gets the same stand-in, and stand-ins sort like their names, because the
//! scheduler breaks ties by name. Without the key, a stand-in does not reveal its name.
//!
//! A stand-in is a sort position and a keyed digest, such as `mfuqa-6a1be0c2`. The digest is the same in all recordings
//! with the same key. The position has two parts: a prefix for the gap between two names that are kept, and an index
//! within the gap, chosen between the indices of the neighbours known so far.
//!
//! Names often come in order (lists are sorted, counters rise). An index therefore grows in the direction of the last one,
//! and deeper digits are wider: a million rising names need no more than a dozen letters.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Assigns stand-ins.
#[derive(Clone)]
pub struct Pseudonyms {
    key: Vec<u8>,
    known: BTreeMap<String, StandIn>,
    /// Names that are kept.
    kept: BTreeSet<String>,
    fixed: Vec<String>,
    /// The last index assigned; the next name in order gets a neighbouring one.
    last: Index,
}

#[derive(Clone)]
struct StandIn {
    name: String,
    index: Index,
}

impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Shows neither the key nor a name.
        f.debug_struct("Pseudonyms").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Pseudonyms {
    /// Uses the given key. Keeps names made of one of the `fixed` prefixes and a UID, because a replay creates them again.
    pub fn new(key: &[u8], fixed: &[&str]) -> Pseudonyms {
        // Each prefix keeps its whole range, so that the order around it is preserved.
        let kept = fixed.iter().flat_map(|prefix| [(*prefix).to_owned(), format!("{prefix}~")]).collect();
        let fixed = fixed.iter().map(|f| (*f).to_owned()).collect();
        Pseudonyms { key: key.to_vec(), known: BTreeMap::new(), kept, fixed, last: Index::default() }
    }

    /// Keeps a name. The order around it is preserved only if this precedes all stand-ins.
    pub fn keep(&mut self, name: &str) {
        self.kept.insert(name.to_owned());
    }

    /// Returns the stand-in of a name.
    pub fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.known.get(name) {
            return known.name.clone();
        }
        let stays = |prefix: &String| is_made(name, prefix);
        if name.is_empty() || self.kept.contains(name) || self.fixed.iter().any(stays) {
            return name.to_owned();
        }
        let below = (Bound::Unbounded, Bound::Excluded(name));
        let above = (Bound::Excluded(name), Bound::Unbounded);
        let low = self.kept.range::<str, _>(below).next_back().map_or("", String::as_str);
        let high = self.kept.range::<str, _>(above).next().map_or("", String::as_str);
        let in_gap = |(name, _): &(&String, &StandIn)| {
            name.as_str() > low && (high.is_empty() || name.as_str() < high)
        };
        let index = Index::between(
            self.known.range::<str, _>(below).next_back().filter(in_gap).map(|(_, s)| &s.index),
            self.known.range::<str, _>(above).next().filter(in_gap).map(|(_, s)| &s.index),
            &self.last,
        );
        let stand_in = format!("{}{index}-{}", gap(low.as_bytes(), high.as_bytes()), self.digest(name));
        self.last.clone_from(&index);
        self.known.insert(name.to_owned(), StandIn { name: stand_in.clone(), index });
        stand_in
    }

    fn digest(&self, name: &str) -> String {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(name.as_bytes());
        super::writer::hex(&mac.finalize().into_bytes()[..4])
    }
}

/// Whether a name is a prefix and a UID.
fn is_made(name: &str, prefix: &str) -> bool {
    let uid = name.strip_prefix(prefix).unwrap_or_default();
    uid.len() == 36 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Characters of prefixes, best first.
const CHARACTERS: [&[u8]; 3] = [b"abcdefghijklmnopqrstuvwxyz", b"0123456789", b"-"];

/// A prefix such that it and everything that starts with it sorts between `low` and `high`. An empty `high` is no bound.
/// Prefers letters, then digits (before `aa`), then a dash. If no name fits (between `kube` and `kube-`), it is close.
fn gap(low: &[u8], high: &[u8]) -> String {
    let mut prefix = Vec::new();
    let (mut bounded_below, mut bounded_above) = (true, !high.is_empty());
    for at in 0..=low.len() + high.len() {
        // After the end of `low`, any character sorts after it; without an upper bound, any sorts before it.
        let least = low.get(at).copied().filter(|_| bounded_below);
        let most = high.get(at).copied().filter(|_| bounded_above);
        let ended = bounded_above && most.is_none();
        let fits = |c: &u8| {
            let between = least.is_none_or(|least| *c > least) && most.is_none_or(|most| *c < most);
            between && !ended && (at > 0 || *c != b'-')
        };
        let middle = |some: &&[u8]| {
            let some: Vec<u8> = some.iter().copied().filter(fits).collect();
            some.get(some.len() / 2).copied()
        };
        if let Some(c) = CHARACTERS.iter().find_map(middle) {
            prefix.push(c);
            break;
        }
        // No character fits: follow the lower bound, or the upper one after its end.
        let step = least.or(most).unwrap_or(b'a');
        bounded_below &= least == Some(step);
        bounded_above &= most == Some(step);
        prefix.push(step);
    }
    String::from_utf8_lossy(&prefix).into_owned()
}

/// A position in a dense order. The last digit is never zero, so that something fits below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Index(Vec<u64>);

impl Index {
    /// A position between two others, close to `last`; `None` is no bound.
    fn between(low: Option<&Index>, high: Option<&Index>, last: &Index) -> Index {
        let mut digits = Vec::new();
        let (mut below, mut above) = (low.map(|i| &i.0), high.map(|i| &i.0));
        loop {
            let level = digits.len();
            let least = below.and_then(|digits| digits.get(level)).copied();
            let most = above.and_then(|digits| digits.get(level)).copied();
            let (from, to) = (least.map_or(1, |l| l + 1), most.unwrap_or(base(level)));
            if from < to {
                digits.push(match () {
                    () if low == Some(last) => from,
                    () if high == Some(last) => to - 1,
                    () => from + (to - from) / 2,
                });
                return Index(digits);
            }
            let step = least.unwrap_or(0);
            below = below.filter(|_| least == Some(step));
            above = above.filter(|_| most == Some(step));
            digits.push(step);
        }
    }
}

impl std::fmt::Display for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (level, digit) in self.0.iter().enumerate() {
            for at in (0..width(level)).rev() {
                write!(f, "{}", char::from(b'a' + (digit / 26_u64.pow(at) % 26) as u8))?;
            }
        }
        Ok(())
    }
}

/// Number of letters of a digit.
fn width(level: usize) -> u32 {
    u32::try_from(level).unwrap_or(u32::MAX).saturating_add(3).min(8)
}

fn base(level: usize) -> u64 {
    26_u64.pow(width(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_keep_their_order_and_their_difference(
            kept in prop::collection::vec("[a-z][a-z]{0,3}(-[a-z]{1,3})?", 0..4),
            names in prop::collection::vec("[a-z][a-z0-9.-]{0,6}", 1..60),
        ) {
            let mut pseudonyms = Pseudonyms::new(b"key", &["rdb-"]);
            kept.iter().for_each(|name| pseudonyms.keep(name));
            let mut pairs: Vec<(String, String)> =
                names.iter().chain(&kept).map(|n| (n.clone(), pseudonyms.of(n))).collect();
            pairs.sort();
            pairs.dedup();
            for pair in pairs.windows(2) {
                prop_assert!(pair[0].1 < pair[1].1, "{:?}", pair);
            }
        }
    }

    #[test]
    fn a_name_fits_below_the_shortest_name_that_stays() {
        for (kept, name) in
            [(&["aa"][..], "a"), (&["a", "a-a"], "a--b"), (&["a", "aa"], "a-b"), (&["x", "x-0"], "x--z")]
        {
            let mut pseudonyms = Pseudonyms::new(b"key", &[]);
            kept.iter().for_each(|name| pseudonyms.keep(name));
            let given = pseudonyms.of(name);
            for kept in kept {
                assert_eq!(name.cmp(kept), given.as_str().cmp(kept), "{name} is {given}, beside {kept}");
            }
        }
    }

    #[test]
    fn a_hundred_thousand_names_rising_falling_or_mixed_keep_their_order_and_stay_short() {
        let rising: Vec<String> = (0..100_000).map(|n| format!("claim-{n:06}")).collect();
        let falling: Vec<String> = rising.iter().rev().cloned().collect();
        let mixed: Vec<String> = (0..100_000).map(|n| rising[n * 7_919 % 100_000].clone()).collect();
        for names in [rising, falling, mixed] {
            let mut pseudonyms = Pseudonyms::new(b"key", &["rdb-"]);
            names.iter().for_each(|name| drop(pseudonyms.of(name)));
            let given: Vec<&String> = pseudonyms.known.values().map(|s| &s.name).collect();
            assert_eq!(given.len(), 100_000);
            assert!(given.is_sorted(), "{} first", names[0]);
            let longest = given.iter().map(|name| name.len()).max();
            assert!(longest <= Some(32), "{longest:?} letters, {} first", names[0]);
        }
    }

    #[test]
    fn made_names_stay_and_no_name_shows_through() {
        let made = "rdb-4f0d6c1e-0000-4000-8000-000000000001";
        let mut pseudonyms = Pseudonyms::new(b"key", &["rdb-"]);
        assert_eq!(pseudonyms.of(made), made);
        let (first, second) = (pseudonyms.of("alpha"), pseudonyms.of("zulu"));
        assert!(*first < *made && *made < *second, "{first} {second}");
        assert!(!format!("{pseudonyms:?} {first} {second}").contains("alpha"));
        let mut other = Pseudonyms::new(b"another", &[]);
        assert_ne!(other.of("alpha").rsplit('-').next(), first.rsplit('-').next());
    }
}
