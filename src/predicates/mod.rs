//! Why a resource is refused: one file per predicate, and one line per predicate in the registry below.
//!
//! # How a predicate takes part
//! A [`Definition`] says everything about one predicate: the field that it reads, what the index keys on and which keys a
//! query accepts ([`Key`]), the refusal, the remedy, the summary, who acts, whether a profile switches it off, and what
//! of it a recording keeps. Nothing outside its file repeats any of that:
//!
//! ```text
//! registry line -> Definition -> model::types   the type's fields: what claims and resources are read for
//!                             -> cache          index keys: which keys to visit, which to accept, what to count
//!                             -> scheduler      check of the chosen resource, explanation, profiles, drift
//!                             -> simulator      recordings keep its fields; the oracle scans with its rule
//!                             -> docs           docs/reference/predicates.md
//! ```
//!
//! The same `accepts` function decides for a key of the index and for one resource. The index applies it once per distinct
//! key and skips what a query cannot accept; [`Step::refuses`] applies it to a single resource: the check of the chosen
//! one, and the property tests that compare index and predicates.
//!
//! A resource is counted under the first predicate that refuses it. Predicates are applied by the kind of their key, in
//! the order of [`Key`], and those of one kind in the order of the registry.
//!
//! # What is absent
//! Searching (the cache), choosing (the scheduler), scores, and the use of quotas, which the cache adds up.

mod capabilities;
mod capacity;
mod class;
mod cordoned;
mod definition;
mod engine;
mod highly_available;
mod limits;
mod phase;
mod query;
mod quota;
mod recorded;
mod refusal;
mod reserved;
mod resource_name;
mod selector;
mod sharing;
#[cfg(test)]
mod testing;
mod version;
#[cfg(any(test, feature = "example-predicate"))]
mod zone;

#[cfg(test)]
pub(crate) use capabilities::BY_SET;
pub use definition::{Actor, Case, Check, Definition, Field, Key, Occupants, Pairing, RelaxedQuery, Step};
#[cfg(test)]
pub(crate) use engine::BY_GROUP;
pub use limits::{apply_defaults, outside_limits};
pub use query::{Candidate, ClassQuery, Described, Occupancy, Query, Standing};
pub use quota::{Charge, Headroom, Holding, Overrun, QuotaKey, Room, over_quota, quota_name};
pub(crate) use quota::{counts, counts_engine, limit_overruns, room};
pub use recorded::{Recorded, Shape, Side};
pub use refusal::{Considered, Reason, Refusal};
pub use resource_name::missing;

use crate::model::types::FieldRule;
use crate::model::{Profile, TypeId};
use std::fmt;
use std::sync::LazyLock;

/// Makes the enum of all predicates from the registry's lines.
macro_rules! registry {
    ($($(#[$attribute:meta])* $name:ident => $definition:expr),* $(,)?) => {
        /// A predicate. Its name is a contract: plans, conditions and metrics show it, and scripts read it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Predicate {
            $($(#[$attribute])* #[doc = concat!("The predicate `", stringify!($name), "`.")] $name),*
        }

        impl Predicate {
            /// Every predicate, in the order of the registry.
            pub const ALL: &'static [Predicate] = &[$($(#[$attribute])* Predicate::$name),*];

            /// The name, as plans, conditions and metrics show it.
            pub fn name(self) -> &'static str {
                match self { $($(#[$attribute])* Predicate::$name => stringify!($name)),* }
            }

            /// What defines it.
            pub const fn definition(self) -> &'static Definition {
                match self { $($(#[$attribute])* Predicate::$name => &$definition),* }
            }
        }
    };
}

// One line per predicate. Among equally frequent refusals, messages list them in this order.
registry! {
    Class => class::CLASS,
    Engine => engine::ENGINE,
    Version => version::VERSION,
    HighlyAvailable => highly_available::HIGHLY_AVAILABLE,
    Capabilities => capabilities::CAPABILITIES,
    #[cfg(any(test, feature = "example-predicate"))] Zone => zone::ZONE,
    #[cfg(test)] Region => crate::model::types::bucket::REGION,
    #[cfg(test)] Features => crate::model::types::bucket::FEATURES,
    Selector => selector::SELECTOR,
    Phase => phase::PHASE,
    Cordoned => cordoned::CORDONED,
    Reserved => reserved::RESERVED,
    Sharing => sharing::SHARING,
    Capacity => capacity::CAPACITY,
    ResourceName => resource_name::RESOURCE_NAME,
    Limits => limits::LIMITS,
    Quota => quota::QUOTA,
}

/// How many checks key on a standing: the index counts resources by each.
pub const STANDINGS: usize = {
    let (mut count, mut at) = (0, 0);
    while at < Predicate::ALL.len() {
        let checks = Predicate::ALL[at].definition().checks;
        let mut check = 0;
        while check < checks.len() {
            count += matches!(checks[check].key, Key::Standing { .. }) as usize;
            check += 1;
        }
        at += 1;
    }
    count
};

impl Predicate {
    /// The short name in a one-line count of refusals.
    pub fn short_name(self) -> String {
        self.definition().short_name.map_or_else(|| self.name().to_lowercase(), str::to_owned)
    }

    /// The predicates that a profile may switch off. The others keep data safe.
    pub fn optional() -> impl Iterator<Item = Predicate> {
        Predicate::ALL.iter().copied().filter(|predicate| predicate.definition().optional)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields that a type matches by, each with its predicate, in the order of the registry.
pub(crate) fn fields_of(resource_kind: &str) -> impl Iterator<Item = (Predicate, FieldRule)> {
    let fields =
        Predicate::ALL.iter().filter_map(|predicate| Some((*predicate, predicate.definition().field?)));
    fields.filter(move |(_, field)| field.of == resource_kind)
}

/// The predicate that decides on a field of a type.
pub fn of_field(ty: TypeId, at: usize) -> Predicate {
    let step = steps(ty).iter().find(|step| step.at == Some(at));
    step.expect("a field is in the type's table because a predicate defines it").predicate
}

/// The checks of a type, in the order in which a resource is checked.
pub fn steps(ty: TypeId) -> &'static [Step] {
    static STEPS: LazyLock<Vec<Vec<Step>>> = LazyLock::new(|| TypeId::all().map(steps_of).collect());
    &STEPS[usize::from(ty.0)]
}

fn steps_of(ty: TypeId) -> Vec<Step> {
    let mut standing = 0;
    let mut steps = Vec::new();
    for predicate in Predicate::ALL {
        let definition = predicate.definition();
        let of_type = |field: &FieldRule| field.of == ty.rules().resource;
        let at = definition.field.filter(of_type).and_then(|field| ty.rules().find_field(field.claim));
        for check in definition.checks {
            let step = Step { predicate: *predicate, definition, check, at, standing };
            standing += u8::from(matches!(check.key, Key::Standing { .. }));
            steps.extend((definition.field.is_none() || at.is_some()).then_some(step));
        }
    }
    steps.sort_by_key(|step| step.check.key.rank());
    steps
}

/// The standing of a resource: withheld by the first predicate that withholds it, or else by whether claims hold it.
pub fn standing_of(ty: TypeId, occupancy: &Occupancy<'_>) -> Standing {
    let withheld = steps(ty).iter().find(|step| match step.check.key {
        Key::Standing { withholds, .. } => withholds(occupancy),
        _ => false,
    });
    match withheld {
        Some(step) => Standing::Withheld(step.standing),
        None if occupancy.holders == 0 => Standing::Vacant,
        None => Standing::Shared,
    }
}

/// Takes out of a query what the profile switches off.
pub fn relax_for(profile: &Profile, ty: TypeId, query: &mut RelaxedQuery) {
    steps(ty).iter().filter(|step| !profile.asks(step.predicate)).for_each(|step| step.relax(query));
}

/// `1 resource` or `3 resources`, with the verb that goes with it.
fn resources(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 resource {one}"),
        n => format!("{n} resources {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_at_most_one_predicate_of_each_tree_level() {
        for ty in TypeId::all() {
            let ranks: Vec<u8> = steps(ty).iter().map(|step| step.check.key.rank()).collect();
            for (kind, expected) in [(0, 1), (2, 1), (5, 1), (7, 1)] {
                assert_eq!(
                    ranks.iter().filter(|rank| **rank == kind).count(),
                    expected,
                    "{ty:?}: kind {kind}"
                );
            }
            for kind in [1, 3] {
                assert!(ranks.iter().filter(|rank| **rank == kind).count() <= 1, "{ty:?}: kind {kind}");
            }
        }
    }

    #[test]
    fn a_predicate_says_everything_about_itself() {
        for predicate in Predicate::ALL {
            let definition = predicate.definition();
            assert!(
                definition.about.ends_with('.') && definition.about.len() > 20,
                "{predicate}: {}",
                definition.about
            );
        }
    }
}
