//! A hash map for look-ups by key. It has no order, so it cannot be iterated, except sorted: decisions must not depend on
//! hash order.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hash;

/// A hash map without iteration.
#[derive(Clone, Debug)]
pub struct Lookup<K, V> {
    map: FxHashMap<K, V>,
}

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Lookup { map: FxHashMap::default() }
    }
}

impl<K: Hash + Ord, V> Lookup<K, V> {
    /// The value under `key`.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.map.get(key)
    }

    /// The value under `key`, mutable.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.map.get_mut(key)
    }

    /// Whether `key` has a value.
    pub fn contains<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.map.contains_key(key)
    }

    /// Inserts `value` under `key` and returns the previous value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.map.insert(key, value)
    }

    /// Removes and returns the value under `key`.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.map.remove(key)
    }

    /// The value under `key`, inserting the default if there is none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.map.entry(key).or_default()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of values of each sort, which does not depend on the order.
    pub fn count_by<S: Ord>(&self, sort: impl Fn(&V) -> S) -> BTreeMap<S, usize> {
        let mut counts = BTreeMap::new();
        self.map.values().for_each(|value| *counts.entry(sort(value)).or_default() += 1);
        counts
    }

    /// Applies the same change to each value; the order must not matter.
    pub fn each_mut(&mut self, change: impl FnMut(&mut V)) {
        self.map.values_mut().for_each(change);
    }

    /// The entries sorted by key, consuming the map.
    pub fn into_sorted(self) -> Vec<(K, V)> {
        let mut all: Vec<_> = self.map.into_iter().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The entries sorted by key. Sorts on each call: not for decisions.
    pub fn sorted(&self) -> Vec<(&K, &V)> {
        let mut all: Vec<_> = self.map.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }
}
