//! How far each claim's binding is, and which claims the start must still settle.

use crate::engine::{Binding, ClaimState};
use crate::model::{Lookup, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// The binding of every claim that was settled.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Bindings {
    of: Lookup<Uid, Binding>,
    /// Whether everything was listed, and claims are settled as they come.
    is_started: bool,
    /// The claims that the start must still settle, where others were settled before it.
    unsettled: Option<BTreeSet<Uid>>,
}

impl Bindings {
    pub fn get(&self, claim: &Uid) -> Option<&Binding> {
        self.of.get(claim)
    }

    pub fn insert(&mut self, claim: Uid, binding: Binding) {
        self.of.insert(claim, binding);
    }

    pub fn remove(&mut self, claim: &Uid) -> Option<Binding> {
        self.of.remove(claim)
    }

    pub fn len(&self) -> usize {
        self.of.len()
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn count(&self) -> BTreeMap<ClaimState, usize> {
        self.of.count_by(Binding::state)
    }

    pub fn is_started(&self) -> bool {
        self.is_started
    }

    /// Begins to settle claims as they come. Returns those that must be settled now; `None` stands for all.
    pub fn start(&mut self) -> Option<BTreeSet<Uid>> {
        self.is_started = true;
        self.unsettled.take()
    }

    /// Says which claims the start must settle, of `all`: those that were not settled before it.
    pub fn presettled<'a>(&mut self, all: impl Iterator<Item = &'a Uid>) {
        self.unsettled = Some(all.filter(|uid| !self.of.contains(*uid)).cloned().collect());
    }

    /// The start must settle this claim, as any other.
    pub fn unsettle(&mut self, claim: &Uid) {
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.insert(claim.clone());
        }
    }
}
