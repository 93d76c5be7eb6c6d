//! Quota: what a namespace, or a set of them, may claim in sum. A claim over quota waits and blocks no other. What a claim
//! requests counts, and of what it does not request, what it would hold. What cannot be counted is refused.
//! The cache adds up what is used.

use super::{Actor, Considered, Definition, Predicate, Reason, Refusal};
use crate::model::quota::QuotaLimit;
use crate::model::{Capacity, Name, Offer, Quantity};

pub(super) const QUOTA: Definition = Definition {
    about: "The quotas of the claim's namespace leave room for what the claim would hold.",
    actor: Actor::Administrator,
    optional: true,
    ..Definition::BASE
};

/// What a claim would get.
#[derive(Clone, Copy, Debug)]
pub enum Holding<'a> {
    /// A resource of its own.
    Resource(&'a Name),
    /// Part of a shared resource.
    PartOf(&'a Name),
    /// What a class provisions.
    Made(&'a Name),
    /// What a class provisions, of an amount that parameters may decide.
    MadeByParameters(&'a Name, &'a [Name]),
    /// Part of the shared resource that a class provisions.
    PartOfMade(&'a Name),
}

/// Which quota: namespace and name, the namespace empty for cluster quotas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaKey {
    /// Empty for a `ClusterClaimQuota`.
    pub namespace: Name,
    /// The quota's name.
    pub name: Name,
}

/// What one claim counts for. Of what it requests, that counts; of what it does not, what it holds: no claim counts for
/// nothing by leaving a request out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The claim's namespace.
    pub namespace: Name,
    /// The class that it is of.
    pub class: Option<Name>,
    /// The engine that it requests; a claim that names none counts against every engine.
    pub engine: Option<Name>,
    /// What it counts for, by capacity.
    pub amounts: Capacity,
}

/// What the quotas of a namespace leave for one more claim of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// Limit by limit.
    pub rooms: Vec<Room>,
}

/// What one limit leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// For resources of this class only.
    class: Option<Name>,
    /// Whether it leaves one more claim.
    has_slot: bool,
    /// By capacity: what is used, and the limit.
    amounts: Vec<(Name, Quantity, Quantity)>,
}

impl Headroom {
    /// Whether the quotas leave room for a claim with these requests on this resource. An amount that is limited and that
    /// neither says anything of cannot be counted, and has no room.
    pub fn allows(&self, offer: &Offer, requests: &Capacity, is_exclusive: bool) -> bool {
        let is_alone = offer.is_held_alone(is_exclusive);
        let counts = |room: &&Room| room.class.is_none() || room.class == offer.class;
        let fits = |(name, used, most): &(Name, Quantity, Quantity)| {
            let counted = match requests.get(name) {
                requested if is_alone && requested.is_zero() => offer.capacity.get(name),
                requested => requested,
            };
            !counted.is_zero() && used.saturating_add(counted) <= *most
        };
        self.rooms.iter().filter(counts).all(|room| room.has_slot && room.amounts.iter().all(fits))
    }
}

/// A quota that a claim would exceed, with the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// Which quota.
    pub quota: QuotaKey,
    /// `claims`, or the name of a capacity.
    pub what: Name,
    /// The class or engine that the limit is for.
    pub scope: Option<Name>,
    /// How much is used.
    pub used: Quantity,
    /// How much this claim would add; zero where that cannot be counted.
    pub added: Quantity,
    /// How much there may be.
    pub limit: Quantity,
}

impl Overrun {
    /// Whether the limit is on something of which the claim would get an unknown amount.
    pub fn is_uncounted(&self) -> bool {
        self.added.is_zero()
    }

    /// By how much the limit would have to grow.
    pub fn missing(&self) -> Quantity {
        self.used.saturating_add(self.added).saturating_sub(self.limit)
    }
}

/// Why quotas refuse a claim that requests this much what it would hold, by the limits that it would exceed.
pub fn over_quota(
    overruns: &[Overrun],
    requests: &Capacity,
    holding: Option<Holding<'_>>,
) -> Option<Refusal> {
    let sentences: Vec<String> =
        overruns.iter().map(|overrun| sentence(overrun, requests, holding)).collect();
    let message = sentences.join("; ");
    let of = match holding {
        Some(Holding::Resource(_) | Holding::PartOf(_)) => Considered::Resources,
        Some(Holding::Made(_) | Holding::MadeByParameters(..) | Holding::PartOfMade(_)) => {
            Considered::Classes
        }
        None => Considered::Claim,
    };
    let reason = Reason { predicate: Predicate::Quota, count: overruns.len(), of, message: message.clone() };
    (!overruns.is_empty()).then(|| Refusal { message, reasons: vec![reason] })
}

fn sentence(overrun: &Overrun, requests: &Capacity, holding: Option<Holding<'_>>) -> String {
    let Overrun { quota, what, scope, used, added, limit } = overrun;
    let scope = scope.as_ref().map(|s| format!(" for {s}")).unwrap_or_default();
    let quota = quota_name(quota);
    let is_requested = &**what == CLAIMS || !requests.get(what).is_zero();
    let more = match holding {
        Some(holding) if overrun.is_uncounted() => {
            return format!("{quota}{scope} limits {what}, and {}", uncounted(holding, what));
        }
        Some(Holding::Resource(name)) if !is_requested => format!("resource {name} has {added}"),
        Some(Holding::Made(class) | Holding::MadeByParameters(class, _)) if !is_requested => {
            format!("class {class} makes {added}")
        }
        _ => format!("{added} more asked"),
    };
    format!("over {quota}{scope}: {what} {used} of {limit} used, {more}")
}

/// What a limit on the number of claims is called.
const CLAIMS: &str = "claims";

/// Why an amount cannot be counted, with what to do about it.
fn uncounted(holding: Holding<'_>, what: &str) -> String {
    match holding {
        Holding::Resource(name) => {
            format!("resource {name} lists none that could be counted: add spec.capacity.{what} to it")
        }
        Holding::MadeByParameters(class, amounts) if amounts.iter().any(|amount| **amount == *what) => {
            format!(
                "parameters may decide how much class {class} makes: declare one size in its capacity.{what}, or let its \
             template take ${{resource.spec.capacity.{what}}} alone"
            )
        }
        Holding::Made(class) | Holding::MadeByParameters(class, _) => {
            format!("class {class} declares none that could be counted: add capacity.{what} to it")
        }
        Holding::PartOf(name) => format!(
            "the claim requests none of the shared resource {name} that could be counted: add \
             spec.resources.requests.{what} to the claim"
        ),
        Holding::PartOfMade(class) => format!(
            "the claim requests none of the shared resource that class {class} makes: add \
             spec.resources.requests.{what} to the claim"
        ),
    }
}

/// The quota as an operator would call it.
pub fn quota_name(quota: &QuotaKey) -> String {
    match &*quota.namespace {
        "" => format!("cluster quota {}", quota.name),
        namespace => format!("quota {namespace}/{}", quota.name),
    }
}

/// What a limit leaves of so many claims and these amounts.
pub(crate) fn room(limit: &QuotaLimit, claims: u64, amounts: &Capacity) -> Room {
    let limited = limit.requests.iter();
    Room {
        class: limit.class.clone(),
        has_slot: limit.claims.is_none_or(|most| claims < most),
        amounts: limited.map(|(name, most)| (name.clone(), amounts.get(name), *most)).collect(),
    }
}

/// Whether `limit` counts a claim with this charge.
pub(crate) fn counts(limit: &QuotaLimit, charge: &Charge) -> bool {
    let class = limit.class.as_ref().is_none_or(|class| charge.class.as_ref() == Some(class));
    class && counts_engine(limit, charge.engine.as_ref())
}

/// Whether `limit` counts claims of this engine. A claim that names none counts against every engine.
pub(crate) fn counts_engine(limit: &QuotaLimit, engine: Option<&Name>) -> bool {
    match (&limit.engine, engine) {
        (None, _) | (Some(_), None) => true,
        (Some(limit), Some(engine)) => limit == engine,
    }
}

/// The parts of a limit that a charge would exceed on top of what is used: so many claims, and these amounts.
pub(crate) fn limit_overruns(
    key: &QuotaKey,
    limit: &QuotaLimit,
    (claims, amounts): (u64, &Capacity),
    charge: &Charge,
    is_final: bool,
) -> Vec<Overrun> {
    let overrun = |what: &str, used: Quantity, added: Quantity, most: Quantity| {
        let uncounted = is_final && added.is_zero();
        // A claim that requests nothing of a capacity does not exceed it, even where it is exceeded already.
        let exceeds = !added.is_zero() && used.saturating_add(added) > most;
        (uncounted || exceeds).then(|| Overrun {
            quota: key.clone(),
            what: Name::from(what),
            scope: limit.class.clone().or_else(|| limit.engine.clone()),
            used,
            added,
            limit: most,
        })
    };
    let count = |n: u64| Quantity::from_units(i64::try_from(n).unwrap_or(i64::MAX));
    let claims = limit.claims.and_then(|most| overrun(CLAIMS, count(claims), count(1), count(most)));
    let limited = limit.requests.iter();
    let amounts =
        limited.filter_map(|(name, most)| overrun(name, amounts.get(name), charge.amounts.get(name), *most));
    claims.into_iter().chain(amounts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::QuotaUsage;
    use crate::model::{self, Capacity, Kind, Name, Object, Uid};
    use serde_json::json;

    fn ledger(limits: serde_json::Value) -> QuotaUsage {
        let metadata = serde_json::from_value(json!({"namespace": "team-a", "name": "dbs"})).unwrap();
        let body = json!({"spec": {"limits": limits}});
        let mut ledger = QuotaUsage::default();
        ledger.set_quota(model::Quota::read(&Object { kind: Kind::Quota, metadata, body }));
        ledger
    }

    fn charge(class: Option<&str>, storage: &str) -> Charge {
        let amounts = Capacity::parse("storage", &json!({"storage": storage})).unwrap();
        Charge { namespace: Name::from("team-a"), class: class.map(Name::from), engine: None, amounts }
    }

    fn refusal(ledger: &QuotaUsage, charge: &Charge) -> Option<String> {
        refusal_of(ledger, charge, &charge.amounts, None)
    }

    fn refusal_of(
        ledger: &QuotaUsage,
        charge: &Charge,
        requests: &Capacity,
        holding: Option<Holding<'_>>,
    ) -> Option<String> {
        over_quota(&ledger.overruns(charge, holding.is_some()), requests, holding).map(|r| r.message)
    }

    #[test]
    fn what_is_not_requested_counts_as_held_or_is_refused() {
        let mut ledger = ledger(json!([{"requests": {"storage": "50Gi"}}]));
        ledger.charge(&Uid::from("u1"), charge(None, "30Gi"));
        let (db, small) = (Name::from("db-1"), Name::from("small"));
        for (holding, storage, expected) in [
            (None, "0", None),
            (Some(Holding::Resource(&db)), "20Gi", None),
            (
                Some(Holding::Resource(&db)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, resource db-1 has 25Gi"),
            ),
            (
                Some(Holding::Made(&small)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, class small makes 25Gi"),
            ),
            (
                Some(Holding::PartOf(&db)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked"),
            ),
            (
                Some(Holding::Resource(&db)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and resource db-1 lists none that could be counted: add \
                     spec.capacity.storage to it",
                ),
            ),
            (
                Some(Holding::Made(&small)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and class small declares none that could be counted: add \
                     capacity.storage to it",
                ),
            ),
            (
                Some(Holding::PartOf(&db)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and the claim requests none of the shared resource db-1 that could \
                     be counted: add spec.resources.requests.storage to the claim",
                ),
            ),
            (
                Some(Holding::PartOfMade(&small)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and the claim requests none of the shared resource that class small \
                     makes: add spec.resources.requests.storage to the claim",
                ),
            ),
        ] {
            let none = Capacity::default();
            let refused = refusal_of(&ledger, &charge(None, storage), &none, holding);
            assert_eq!(refused.as_deref(), expected, "{holding:?}");
        }
        let asked = charge(None, "25Gi");
        let refused = refusal_of(&ledger, &asked, &asked.amounts, Some(Holding::Resource(&db)));
        let expected = "over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked";
        assert_eq!(refused.as_deref(), Some(expected));
    }

    #[test]
    fn a_refusal_over_quota_names_the_numbers() {
        let mut ledger = ledger(json!([{"claims": 2, "requests": {"storage": "50Gi"}}]));
        assert_eq!(refusal(&ledger, &charge(None, "50Gi")), None);
        ledger.charge(&Uid::from("u1"), charge(None, "30Gi"));
        let over = "over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked";
        assert_eq!(refusal(&ledger, &charge(None, "25Gi")).as_deref(), Some(over));
        assert_eq!(refusal(&ledger, &charge(None, "20Gi")), None);
        ledger.charge(&Uid::from("u2"), charge(None, "0"));
        let over = "over quota team-a/dbs: claims 2 of 2 used, 1 more asked";
        assert_eq!(refusal(&ledger, &charge(None, "0")).as_deref(), Some(over));
        ledger.release(&Uid::from("u2"));
        assert_eq!(refusal(&ledger, &charge(None, "0")), None);
    }

    #[test]
    fn a_limit_of_a_class_counts_that_class_only() {
        let mut ledger = ledger(json!([{"class": "fast", "claims": 1}]));
        ledger.charge(&Uid::from("u1"), charge(Some("fast"), "0"));
        let over = "over quota team-a/dbs for fast: claims 1 of 1 used, 1 more asked";
        assert_eq!(refusal(&ledger, &charge(Some("fast"), "0")).as_deref(), Some(over));
        assert_eq!(refusal(&ledger, &charge(Some("slow"), "0")), None);
        assert_eq!(refusal(&ledger, &charge(None, "0")), None);
    }
}
