//! What an engine is configured with, once.

use crate::model::{AllowedKinds, Name};
use crate::template::Adapters;
use std::sync::Arc;

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace of resources and classes; those elsewhere are ignored.
    pub system_namespace: Name,
    /// Whether a resource with a template and without a phase counts as Available. True for plans over manifests; on a
    /// cluster a missing phase means that the resource was not provisioned yet.
    pub absent_phase_is_available: bool,
    /// Whether implementations are created, watched and deleted. False for plans, which have no cluster for them: there
    /// the phase of a resource says whether it is implemented.
    pub makes_parts: bool,
    /// How many claims are decided about in one turn before further events are handled.
    pub decisions_per_turn: usize,
    /// How many resources of bound claims may be missing at once for their claims to become Lost. More at once point to
    /// a fault of the cluster, a restored backup or a deleted CRD rather than to as many losses: then the claims keep
    /// their status, and the loss is reported.
    pub lost_at_once_max: usize,
    /// Adapters for well-known kinds of implementation.
    pub adapters: Arc<Adapters>,
    /// The kinds of which parts may be created.
    pub allowed_kinds: AllowedKinds,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            system_namespace: Name::from("conductor-system"),
            absent_phase_is_available: false,
            makes_parts: true,
            decisions_per_turn: 1_000,
            lost_at_once_max: usize::MAX,
            adapters: Adapters::builtin(),
            allowed_kinds: AllowedKinds::default(),
        }
    }
}
