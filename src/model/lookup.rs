//! A map for looking things up by key, many times a decision. It has no order, so it cannot be walked;
//! who wants all of it gets it sorted.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hash;

/// A map that is looked into, not walked.
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
    /// What is under `key`.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.map.get(key)
    }

    /// What is under `key`, to be changed.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.map.get_mut(key)
    }

    /// Whether anything is under `key`.
    pub fn contains<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.map.contains_key(key)
    }

    /// Puts `value` under `key`; returns what was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.map.insert(key, value)
    }

    /// Takes out what is under `key`.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.map.remove(key)
    }

    /// What is under `key`; where there is nothing, the default is put there first.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.map.entry(key).or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// How many there are of each sort. That is all that can be told of everything without an order.
    pub fn count_by<S: Ord>(&self, sort: impl Fn(&V) -> S) -> BTreeMap<S, usize> {
        let mut counts = BTreeMap::new();
        self.map.values().for_each(|value| *counts.entry(sort(value)).or_default() += 1);
        counts
    }

    /// Does the same to each: what order that is in cannot matter.
    pub fn each_mut(&mut self, change: impl FnMut(&mut V)) {
        self.map.values_mut().for_each(change);
    }

    /// All of it, in the order of its keys, when it is needed no more.
    pub fn into_sorted(self) -> Vec<(K, V)> {
        let mut all: Vec<_> = self.map.into_iter().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// All of it, in the order of its keys. Takes a sort: not for decisions.
    pub fn sorted(&self) -> Vec<(&K, &V)> {
        let mut all: Vec<_> = self.map.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }
}
