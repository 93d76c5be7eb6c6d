//! Compares two scenarios: the same state under two profiles, or two states. Reports figures for each and every
//! difference with its cause.

use crate::diff::{Difference, Side, diff};
use crate::plan::{API_VERSION, Options, Plan, Planned, Summary};
use crate::replay::Percentiles;
use conductor::api::names::DEFAULT_PROFILE;
use conductor::model::{Capacity, Claim, Kind, Object, ObjectKey, Quantity, Resource, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Two scenarios compared.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Figures of the first scenario.
    pub a: Figures,
    /// Figures of the second scenario.
    pub b: Figures,
    /// Claims bound to another resource in the second scenario.
    pub moved: usize,
    /// Differences from the first to the second.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Figures of one scenario.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The scenario's name.
    pub name: String,
    pub digest: String,
    pub summary: Summary,
    /// Resources with at least one claim.
    pub used: usize,
    /// Capacity of held resources beyond their claims' requests, in each type's first dimension.
    pub waste: String,
    /// The same in per cent of their capacity; 0 if no resource is held.
    pub waste_percent: u64,
    /// The same for every capacity of a held resource, by name.
    pub waste_by_capacity: BTreeMap<String, Waste>,
    /// How long claims waited, if the state is a recording: in a replay under the profile, or as recorded.
    pub waiting: Option<Percentiles>,
}

/// Unused capacity of held resources in one dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waste {
    /// The unused amount.
    pub left: String,
    /// The amount in per cent of their capacity; 0 if they have none.
    pub percent: u64,
}

/// A state to compare.
pub struct Scenario {
    /// Its name in the output.
    pub name: String,
    /// Its objects.
    pub objects: Vec<Object>,
    /// How long claims waited, if it is a recording.
    pub waiting: Option<Percentiles>,
}

/// Plans both scenarios and compares them.
pub fn compare(a: Scenario, b: Scenario, options: &Options) -> Comparison {
    let first = Planned::new(a.objects.clone(), options);
    let second = Planned::new(b.objects.clone(), options);
    let (was, is) = (first.plan(), second.plan());
    let difference = diff(Side { planned: &first, plan: &was }, Side { planned: &second, plan: &is });
    let moved = difference.claims.iter().filter(|c| c.change == crate::diff::ClaimChange::Moved).count();
    Comparison {
        api_version: API_VERSION,
        kind: "Comparison",
        a: figures(a, &was),
        b: figures(b, &is),
        moved,
        difference,
    }
}

/// Renames a profile so that it applies to all claims that name none.
pub fn as_default(profile: &Object) -> Object {
    let mut profile = profile.clone();
    profile.metadata.name = Some(DEFAULT_PROFILE.to_owned());
    profile
}

/// The built-in defaults as a profile that replaces the default one.
pub fn built_in() -> Object {
    let metadata = ObjectMeta { name: Some(DEFAULT_PROFILE.to_owned()), ..ObjectMeta::default() };
    Object { kind: Kind::Profile, metadata, body: json!({"spec": {}}) }
}

fn figures(way: Scenario, plan: &Plan) -> Figures {
    let sums = wastes(&way.objects, plan);
    let percent = |sum: &Sum| {
        let (part, whole) = (sum.left.nanos(), sum.all.nanos());
        if whole > 0 { u64::try_from(part.saturating_mul(100) / whole).unwrap_or(100) } else { 0 }
    };
    let each = sums
        .by_capacity
        .iter()
        .map(|(name, sum)| (name.clone(), Waste { left: sum.left.to_string(), percent: percent(sum) }));
    Figures {
        name: way.name,
        digest: plan.digest.clone(),
        summary: plan.summary,
        used: plan.resources.iter().filter(|r| !r.claims.is_empty()).count(),
        waste: sums.first.left.to_string(),
        waste_percent: percent(&sums.first),
        waste_by_capacity: each.collect(),
        waiting: way.waiting,
    }
}

/// Unused and total capacity.
#[derive(Clone, Copy, Default)]
struct Sum {
    left: Quantity,
    all: Quantity,
}

impl Sum {
    fn add(&mut self, has: Quantity, taken: Quantity) {
        self.all = self.all.saturating_add(has);
        let left = if has > taken { has.saturating_sub(taken) } else { Quantity::default() };
        self.left = self.left.saturating_add(left);
    }
}

#[derive(Default)]
struct Sums {
    /// Each type's first dimension.
    first: Sum,
    by_capacity: BTreeMap<String, Sum>,
}

/// Unused capacity of held resources, by dimension.
fn wastes(objects: &[Object], plan: &Plan) -> Sums {
    let mut requested: BTreeMap<ObjectKey, Capacity> = BTreeMap::new();
    let mut offered: BTreeMap<String, (TypeId, Capacity)> = BTreeMap::new();
    for object in objects {
        let key = crate::world::key_of(object);
        match object.kind {
            Kind::Claim(ty) => {
                if let Ok(wants) = &Claim::read(ty, object).wants {
                    requested.insert(key, wants.requests.clone());
                }
            }
            Kind::Resource(ty) => {
                if let Ok(offer) = &Resource::read(ty, object).offer {
                    offered.insert(key.name.to_string(), (ty, offer.capacity.clone()));
                }
            }
            _ => {}
        }
    }
    let mut sums = Sums::default();
    for resource in plan.resources.iter().filter(|r| !r.claims.is_empty()) {
        let Some((ty, has)) = offered.get(&*resource.name) else { continue };
        let taken = resource.claims.iter().filter_map(|claim| requested.get(&claim.0));
        let taken = taken.fold(Capacity::default(), |sum, one| sum.saturating_add(one));
        let first = ty.rules().primary_capacity;
        sums.first.add(has.get(first), taken.get(first));
        for (dim, amount) in has.iter() {
            let sum = sums.by_capacity.entry(dim.name().to_owned()).or_default();
            sum.add(amount, taken.get(dim.name()));
        }
    }
    sums
}
