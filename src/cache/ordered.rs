//! An ordered map that costs little while it holds few: most shapes have one resource or two, and a tree's
//! first node has room for eleven. What is in it has no meaning here.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::slice;

/// Up to so many are kept in one sorted list.
const FEW_MAX: usize = 8;

/// An ordered map.
#[derive(Clone, Debug)]
pub(super) enum Ordered<K, V> {
    /// Sorted by key.
    Few(Vec<(K, V)>),
    Many(BTreeMap<K, V>),
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Ordered::Few(Vec::new())
    }
}

impl<K: Ord, V> Ordered<K, V> {
    pub fn insert(&mut self, key: K, value: V) {
        match self {
            Ordered::Few(few) => match few.binary_search_by(|(known, _)| known.cmp(&key)) {
                Ok(at) => few[at].1 = value,
                Err(at) if few.len() < FEW_MAX => {
                    few.reserve_exact(1);
                    few.insert(at, (key, value));
                }
                Err(_) => {
                    let mut many: BTreeMap<K, V> = std::mem::take(few).into_iter().collect();
                    many.insert(key, value);
                    *self = Ordered::Many(many);
                }
            },
            Ordered::Many(many) => drop(many.insert(key, value)),
        }
    }

    pub fn remove(&mut self, key: &K) {
        match self {
            Ordered::Few(few) => {
                if let Ok(at) = few.binary_search_by(|(known, _)| known.cmp(key)) {
                    few.remove(at);
                }
            }
            Ordered::Many(many) => drop(many.remove(key)),
        }
        if self.is_empty() {
            *self = Ordered::default();
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Ordered::Few(few) => few.is_empty(),
            Ordered::Many(many) => many.is_empty(),
        }
    }

    /// All of it, in order.
    pub fn iter(&self) -> Walk<'_, K, V> {
        match self {
            Ordered::Few(few) => Walk::Few(few.iter()),
            Ordered::Many(many) => Walk::Many(many.range(..)),
        }
    }

    /// Everything from `key` on, in order.
    pub fn from(&self, key: &K) -> Walk<'_, K, V> {
        match self {
            Ordered::Few(few) => Walk::Few(few[few.partition_point(|(known, _)| known < key)..].iter()),
            Ordered::Many(many) => Walk::Many(many.range(key..)),
        }
    }

    /// Everything beyond `key`, in order.
    pub fn beyond(&self, key: &K) -> Walk<'_, K, V> {
        match self {
            Ordered::Few(few) => Walk::Few(few[few.partition_point(|(known, _)| known <= key)..].iter()),
            Ordered::Many(many) => Walk::Many(many.range((Bound::Excluded(key), Bound::Unbounded))),
        }
    }
}

/// A walk through an ordered map.
pub(super) enum Walk<'a, K, V> {
    Few(slice::Iter<'a, (K, V)>),
    Many(btree_map::Range<'a, K, V>),
}

impl<'a, K, V> Iterator for Walk<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Walk::Few(few) => few.next().map(|(key, value)| (key, value)),
            Walk::Many(many) => many.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn answers_as_a_tree_does_however_many_it_holds(
            steps in prop::collection::vec((0_u8..24, any::<bool>()), 0..80),
            at in 0_u8..24,
        ) {
            let (mut ordered, mut tree) = (Ordered::default(), BTreeMap::new());
            for (step, (key, add)) in steps.into_iter().enumerate() {
                if add {
                    ordered.insert(key, step);
                    tree.insert(key, step);
                } else {
                    ordered.remove(&key);
                    tree.remove(&key);
                }
                prop_assert_eq!(ordered.is_empty(), tree.is_empty());
            }
            prop_assert!(ordered.iter().eq(tree.iter()));
            prop_assert!(ordered.from(&at).eq(tree.range(at..)));
            prop_assert!(ordered.beyond(&at).eq(tree.range((Bound::Excluded(at), Bound::Unbounded))));
        }
    }
}
