//! Every predicate and every score, one room each, and the registry that puts them in order.
//! A plugin sees one claim and one resource; searching is the index's, deciding the scheduler's.

mod best_fit;
mod capabilities;
mod capacity;
mod class;
mod cordoned;
mod engine;
mod highly_available;
mod label_preference;
mod limits;
mod occupancy;
mod phase;
mod quota;
mod reserved;
mod resource_name;
mod selector;
mod sharing;
#[cfg(test)]
mod testing;
mod version;
mod version_preference;

pub use limits::apply_defaults;
pub use quota::quota_name;
pub use resource_name::missing;

use crate::framework::{Asked, Filter, Gate, Scorer};
use crate::model::profile::Score;
use crate::model::types::Rule;
use crate::model::{Predicate, Profile, TypeId};

/// The filters of a type in the order in which they are asked: what a resource is, then whether it
/// can be had, then whether enough is left. A resource is counted under the first that refuses it.
pub fn filters(ty: TypeId) -> Vec<Box<dyn Filter>> {
    let rules = ty.rules();
    let group = rules.group_field();
    let version = rules.version_field();
    let rest = (0..rules.fields.len()).filter(|at| Some(*at) != group && Some(*at) != version);
    let mut filters: Vec<Box<dyn Filter>> = vec![Box::new(class::Class)];
    filters.extend(group.map(|at| field(ty, at)));
    filters.push(Box::new(sharing::Access));
    filters.extend(version.into_iter().chain(rest).map(|at| field(ty, at)));
    filters.push(Box::new(selector::Selector));
    filters.push(Box::new(phase::Phase));
    filters.push(Box::new(cordoned::Cordoned));
    filters.push(Box::new(reserved::Reserved));
    filters.push(Box::new(sharing::Slots));
    filters.push(Box::new(capacity::Capacity));
    filters
}

fn field(ty: TypeId, at: usize) -> Box<dyn Filter> {
    let rule = &ty.rules().fields[at];
    match rule.rule {
        Rule::Name { .. } => Box::new(engine::Engine { at, rule }),
        Rule::VersionRange => Box::new(version::Version { at, rule }),
        Rule::Flag => Box::new(highly_available::HighlyAvailable { at, rule }),
        Rule::Contains => Box::new(capabilities::Capabilities { at, rule }),
    }
}

/// The gates that a profile keeps, in the order in which they are asked.
pub fn gates(profile: &Profile) -> Vec<&'static dyn Gate> {
    let all: [&'static dyn Gate; 2] = [&limits::Limits, &quota::Quota];
    all.into_iter().filter(|gate| profile.asks(gate.predicate())).collect()
}

/// Takes out of `asked` what the profile does not ask.
pub fn relax_for(profile: &Profile, ty: TypeId, asked: &mut Asked) {
    for filter in filters(ty).iter().filter(|f| !profile.asks(f.predicate())) {
        filter.relax(asked);
    }
}

/// The scorer behind a score of a profile.
pub fn scorer(score: &Score) -> Box<dyn Scorer + '_> {
    match score {
        Score::BestFit => Box::new(best_fit::BestFit),
        Score::NewestVersion => Box::new(version_preference::VersionPreference { newest: true }),
        Score::OldestVersion => Box::new(version_preference::VersionPreference { newest: false }),
        Score::Spread => Box::new(occupancy::Occupancy { pack: false }),
        Score::Pack => Box::new(occupancy::Occupancy { pack: true }),
        Score::LabelPreference(labels) => Box::new(label_preference::LabelPreference { labels }),
    }
}

/// The filters whose refusal is settled by the claim's author rather than by an administrator.
pub fn is_authors_business(predicate: Predicate) -> bool {
    match predicate {
        Predicate::Class
        | Predicate::Engine
        | Predicate::Version
        | Predicate::HighlyAvailable
        | Predicate::Capabilities
        | Predicate::Field(_)
        | Predicate::Selector
        | Predicate::Capacity
        | Predicate::Limits
        | Predicate::ResourceName => true,
        Predicate::Phase
        | Predicate::Cordoned
        | Predicate::Reserved
        | Predicate::Sharing
        | Predicate::Quota => false,
    }
}

/// `1 resource` or `3 resources`, with the verb that goes with it.
fn resources(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 resource {one}"),
        n => format!("{n} resources {many}"),
    }
}
