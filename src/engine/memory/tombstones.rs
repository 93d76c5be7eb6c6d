//! UIDs of deleted objects: a late update of one must not bring it back.

use crate::model::Uid;
use std::collections::{BTreeSet, VecDeque};

/// So many are kept; late updates come within seconds.
const TOMBSTONES_MAX: usize = 65_536;

/// The UIDs that were deleted last.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Tombstones {
    uids: BTreeSet<Uid>,
    oldest_first: VecDeque<Uid>,
}

impl Tombstones {
    pub fn insert(&mut self, uid: &Uid) {
        if self.uids.insert(uid.clone()) {
            self.oldest_first.push_back(uid.clone());
        }
        if self.oldest_first.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub fn contains(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_tombstones_make_room() {
        let mut tombstones = Tombstones::default();
        let uid = |n: usize| Uid::from(n.to_string());
        (0..=TOMBSTONES_MAX).for_each(|n| tombstones.insert(&uid(n)));
        tombstones.insert(&uid(1));
        assert!(!tombstones.contains("0") && tombstones.contains("1"));
        assert!(tombstones.contains(&uid(TOMBSTONES_MAX)));
    }
}
