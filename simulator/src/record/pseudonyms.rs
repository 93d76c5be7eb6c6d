//! Other names for names: the same name always gets the same one, and names keep their order, because a scheduler
//! breaks ties by name. Without the key nobody learns a name from its stand-in.
//!
//! A stand-in is a place in the order and a keyed digest, such as `mfu-6a1be0c2`. The place is chosen between those
//! of the neighbours that are known by then; the digest is the same in every recording made with the same key.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Hands out stand-ins.
#[derive(Clone)]
pub struct Pseudonyms {
    key: Vec<u8>,
    known: BTreeMap<String, String>,
    fixed: Vec<String>,
}

impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the key nor a name.
        f.debug_struct("Pseudonyms").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Pseudonyms {
    /// With a key of one's own. Names that begin with one of `fixed` stay as they are: they are made from UIDs, and
    /// are made again in a replay.
    pub fn new(key: &[u8], fixed: &[&str]) -> Pseudonyms {
        let mut known = BTreeMap::new();
        // The fixed names have their range to themselves, so that the order around them can be kept.
        for prefix in fixed {
            known.insert((*prefix).to_owned(), (*prefix).to_owned());
            known.insert(format!("{prefix}~"), format!("{prefix}~"));
        }
        Pseudonyms { key: key.to_vec(), known, fixed: fixed.iter().map(|f| (*f).to_owned()).collect() }
    }

    /// Lets a name stay as it is. Said before any stand-in is handed out, the order around it is kept.
    pub fn keep(&mut self, name: &str) {
        self.known.insert(name.to_owned(), name.to_owned());
    }

    /// The stand-in of a name.
    pub fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        if name.is_empty() || self.fixed.iter().any(|prefix| is_made(name, prefix)) {
            return name.to_owned();
        }
        let below = self.known.range::<str, _>((Bound::Unbounded, Bound::Excluded(name))).next_back();
        let above = self.known.range::<str, _>((Bound::Excluded(name), Bound::Unbounded)).next();
        let place = between(
            below.map_or(&[][..], |(_, s)| s.as_bytes()),
            above.map_or(&[][..], |(_, s)| s.as_bytes()),
        );
        let stand_in = format!("{place}-{}", self.digest(name));
        self.known.insert(name.to_owned(), stand_in.clone());
        stand_in
    }

    fn digest(&self, name: &str) -> String {
        // HMAC takes keys of any length.
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

/// A word of letters that sorts after `low` and before `high`, and is the beginning of neither. An empty `high` is
/// no bound.
fn between(low: &[u8], high: &[u8]) -> String {
    let mut word = Vec::new();
    let (mut bounded_below, mut bounded_above) = (true, !high.is_empty());
    for at in 0.. {
        let least = if bounded_below { low.get(at).copied() } else { None };
        let most = if bounded_above { high.get(at).copied() } else { None };
        // At the end of `low` every letter is after it; past the end of an unbounded `high` every letter is before it.
        let from = least.map_or(b'a' - 1, |b| b.max(b'a' - 1));
        let to = if bounded_above { most.unwrap_or(0).min(b'z' + 1) } else { b'z' + 1 };
        if to > from + 1 {
            word.push(from + (to - from) / 2);
            break;
        }
        // No letter in between here: follow the lower bound, or the upper one where the lower has ended.
        let step = least.or(most).unwrap_or(b'a');
        bounded_below &= least == Some(step);
        bounded_above &= most == Some(step);
        word.push(step);
        if at > 4_096 {
            break;
        }
    }
    String::from_utf8_lossy(&word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_keep_their_order_and_their_difference(names in prop::collection::vec("[a-z][a-z0-9.-]{0,6}", 1..60)) {
            let mut pseudonyms = Pseudonyms::new(b"key", &["rdb-"]);
            let mut pairs: Vec<(String, String)> = names.iter().map(|n| (n.clone(), pseudonyms.of(n))).collect();
            pairs.sort();
            pairs.dedup();
            for pair in pairs.windows(2) {
                prop_assert!(pair[0].1 < pair[1].1, "{:?}", pair);
            }
        }
    }

    #[test]
    fn rising_and_falling_names_do_not_run_out_of_places() {
        for reverse in [false, true] {
            let mut names: Vec<String> = (0..2_000).map(|n| format!("claim-{n:05}")).collect();
            if reverse {
                names.reverse();
            }
            let mut pseudonyms = Pseudonyms::new(b"key", &["rdb-"]);
            let given: Vec<String> = names.iter().map(|n| pseudonyms.of(n)).collect();
            let mut sorted = given.clone();
            sorted.sort();
            if reverse {
                sorted.reverse();
            }
            assert_eq!(given, sorted);
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
