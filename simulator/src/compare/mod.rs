//! Two ways side by side: the same state under two profiles, or two states. Figures for each, and what differs
//! between them with its cause. Both are planned by the production engine.

use crate::diff::{Difference, Side, diff};
use crate::plan::{API_VERSION, Options, Plan, Planned, Summary};
use crate::replay::Percentiles;
use conductor::api::names::DEFAULT_PROFILE;
use conductor::model::{Capacity, Claim, Kind, Object, ObjectKey, Quantity, Resource, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Two ways side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Comparison`.
    pub kind: &'static str,
    /// The first way.
    pub a: Figures,
    /// The second way.
    pub b: Figures,
    /// Claims that are bound to another resource in the second.
    pub moved: usize,
    /// What differs from the first to the second.
    #[serde(flatten)]
    pub difference: Difference,
}

/// One way in figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// What it is called.
    pub name: String,
    /// The plan's digest.
    pub digest: String,
    /// Claims by outcome.
    pub summary: Summary,
    /// Resources that somebody holds.
    pub used: usize,
    /// Of the type's first capacity: what held resources have beyond what their claims ask for.
    pub waste: String,
    /// The same in per cent of what they have; 0 where nothing is held.
    pub waste_percent: u64,
    /// The same for every capacity that a held resource has, by its name.
    pub waste_by_capacity: BTreeMap<String, Waste>,
    /// How long claims waited, where the state is a recording: in its replay under a profile, else as recorded.
    pub waiting: Option<Percentiles>,
}

/// What held resources have of one capacity beyond what their claims ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waste {
    /// How much.
    pub left: String,
    /// In per cent of what they have; 0 where they have none.
    pub percent: u64,
}

/// One of the two ways.
pub struct Way {
    /// What it is called.
    pub name: String,
    /// Its state.
    pub objects: Vec<Object>,
    /// How long claims waited, where it is a recording.
    pub waiting: Option<Percentiles>,
}

/// Plans both and compares.
pub fn compare(a: Way, b: Way, options: &Options) -> Comparison {
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

/// A profile as the one that applies everywhere.
pub fn as_default(profile: &Object) -> Object {
    let mut profile = profile.clone();
    profile.metadata.name = Some(DEFAULT_PROFILE.to_owned());
    profile
}

/// What applies where there is no profile, as a profile that takes the place of whichever there is.
pub fn built_in() -> Object {
    let metadata = ObjectMeta { name: Some(DEFAULT_PROFILE.to_owned()), ..ObjectMeta::default() };
    Object { kind: Kind::Profile, metadata, body: json!({"spec": {}}) }
}

fn figures(way: Way, plan: &Plan) -> Figures {
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

/// What held resources have of a capacity beyond what is asked of them, and what they have.
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
    /// Of each type's first capacity.
    first: Sum,
    by_capacity: BTreeMap<String, Sum>,
}

/// What held resources have beyond what is asked of them, capacity by capacity.
fn wastes(objects: &[Object], plan: &Plan) -> Sums {
    let mut asked: BTreeMap<ObjectKey, Capacity> = BTreeMap::new();
    let mut offered: BTreeMap<String, (TypeId, Capacity)> = BTreeMap::new();
    for object in objects {
        let key = crate::world::key_of(object);
        match object.kind {
            Kind::Claim(ty) => {
                if let Ok(wants) = &Claim::read(ty, object).wants {
                    asked.insert(key, wants.requests.clone());
                }
            }
            Kind::Resource(ty) => {
                if let Ok(offer) = &Resource::read(ty, object).offer {
                    offered.insert(key.name.to_string(), (ty, offer.capacity.clone()));
                }
            }
            Kind::Class(_)
            | Kind::Quota
            | Kind::ClusterQuota
            | Kind::Limits
            | Kind::Profile
            | Kind::Namespace => {}
        }
    }
    let mut sums = Sums::default();
    for resource in plan.resources.iter().filter(|r| !r.claims.is_empty()) {
        let Some((ty, has)) = offered.get(&*resource.name) else { continue };
        let taken = resource.claims.iter().filter_map(|claim| asked.get(&claim.0));
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
