//! Quotas of the plain scheduler: who is charged for what, and what is over. Everything is added up anew each time.

use super::{Amounts, Ask, Budget, Db, Limit, Oracle, add, get};

/// What a claim counts for in quotas.
#[derive(Clone, Debug)]
pub struct Charge {
    pub namespace: String,
    pub class: Option<String>,
    pub engine: Option<String>,
    pub amounts: Amounts,
}

/// What a claim would get, as part of a message: for an amount that it does not request and that is too large, and for
/// one that cannot be counted.
pub(super) struct Holding {
    pub has: String,
    pub uncounted: String,
}

impl Db {
    fn is_alone(&self, ask: &Ask) -> bool {
        self.readable && (self.slots == 1 || ask.exclusive)
    }

    /// What quotas count for a claim that was given so much of it: of what it was not given, everything, where it has it
    /// alone.
    pub(super) fn counted(&self, ask: &Ask, given: &Amounts) -> Amounts {
        let mut counted = given.clone();
        if self.is_alone(ask) {
            for (name, has) in self.capacity.iter().filter(|(name, _)| get(given, name).is_zero()) {
                counted.insert(name.clone(), *has);
            }
        }
        counted
    }

    fn holding(&self, ask: &Ask) -> Holding {
        let name = &self.name;
        match self.is_alone(ask) {
            true => Holding {
                has: format!("resource {name} has"),
                uncounted: format!(
                    "resource {name} lists none that could be counted: add spec.capacity.WHAT to it"
                ),
            },
            false => Holding {
                has: String::new(),
                uncounted: format!(
                    "the claim requests none of the shared resource {name} that could be counted: add \
                     spec.resources.requests.WHAT to the claim"
                ),
            },
        }
    }
}

impl Limit {
    fn counts(&self, charge: &Charge) -> bool {
        (self.class.is_none() || self.class == charge.class)
            && (self.engine.is_none() || charge.engine.is_none() || self.engine == charge.engine)
    }
}

impl Oracle {
    /// Charges every claim that a resource holds, and no other.
    pub fn charge_holders(&mut self) {
        for ask in self.asks.clone().iter().filter(|ask| !ask.deleting) {
            let Some(db) = self.dbs.iter().find(|db| db.holds(&ask.uid)) else { continue };
            let held = db.references.iter().find(|r| r.uid.as_ref() == Some(&ask.uid));
            let given = held.map(|r| r.requests.clone()).unwrap_or_default();
            let (class, counted) = (db.class.clone(), db.counted(ask, &given));
            self.charge(ask, class, counted);
        }
    }

    pub(super) fn charge(&mut self, ask: &Ask, class: Option<String>, amounts: Amounts) {
        let charge = charge_of(ask, class.as_deref(), amounts);
        self.charges.insert(ask.uid.clone(), charge);
    }

    fn selects(&self, budget: &Budget, namespace: &str) -> bool {
        match &budget.namespace {
            Some(own) => own == namespace,
            None => {
                let labels = self.namespaces.get(namespace);
                budget.selector.matches(|key| labels.and_then(|l| l.get(key)).map(String::as_str))
            }
        }
    }

    /// A message for every limit that the claim would exceed with this charge. Where it is known what the claim would
    /// get, what is limited and not in the charge cannot be counted.
    fn over_quota(&self, charge: &Charge, requests: &Amounts, holding: Option<&Holding>) -> Vec<String> {
        let mut over = Vec::new();
        for budget in self.budgets.iter().filter(|b| self.selects(b, &charge.namespace)) {
            for limit in budget.limits.iter().filter(|l| l.counts(charge)) {
                let counted =
                    self.charges.values().filter(|c| self.selects(budget, &c.namespace) && limit.counts(c));
                let mut used = Amounts::new();
                let mut claims = 0;
                for charge in counted {
                    claims += 1;
                    add(&mut used, &charge.amounts);
                }
                let scope = limit.class.as_ref().or(limit.engine.as_ref());
                let scope = scope.map(|s| format!(" for {s}")).unwrap_or_default();
                if let Some(most) = limit.claims.filter(|most| claims + 1 > *most) {
                    over.push(format!(
                        "over {}{scope}: claims {claims} of {most} used, 1 more asked",
                        budget.title
                    ));
                }
                for (name, most) in &limit.requests {
                    let (used, added) = (get(&used, name), get(&charge.amounts, name));
                    let by_how_much = match holding {
                        Some(Holding { has, .. }) if get(requests, name).is_zero() => {
                            format!("{has} {added}")
                        }
                        _ => format!("{added} more asked"),
                    };
                    let title = &budget.title;
                    match holding {
                        Some(holding) if added.is_zero() => {
                            let why = holding.uncounted.replace("WHAT", name);
                            over.push(format!("{title}{scope} limits {name}, and {why}"));
                        }
                        _ if !added.is_zero() && used.saturating_add(added) > *most => {
                            over.push(format!(
                                "over {title}{scope}: {name} {used} of {most} used, {by_how_much}"
                            ));
                        }
                        _ => {}
                    }
                }
            }
        }
        over
    }

    /// Whether a charge exceeds a quota that counts it.
    pub fn exceeds_quota(&self, charge: &Charge) -> Option<String> {
        let over = self.over_quota(charge, &charge.amounts, None);
        (!over.is_empty()).then(|| over.join("; "))
    }

    /// What quotas say before it is known what the claim would get.
    pub(super) fn gate(&self, ask: &Ask, class: Option<&str>) -> Option<(String, usize)> {
        self.refusal_by_quota(&charge_of(ask, class, ask.requests.clone()), ask, None)
    }

    /// What quotas say about this resource for the claim.
    pub(super) fn gate_db(&self, ask: &Ask, db: &Db) -> Option<(String, usize)> {
        let charge = charge_of(ask, db.class.as_deref(), db.counted(ask, &ask.requests));
        self.refusal_by_quota(&charge, ask, Some(&db.holding(ask)))
    }

    pub(super) fn refusal_by_quota(
        &self,
        charge: &Charge,
        ask: &Ask,
        holding: Option<&Holding>,
    ) -> Option<(String, usize)> {
        let over = self.over_quota(charge, &ask.requests, holding);
        (!over.is_empty()).then(|| (over.join("; "), over.len()))
    }
}

pub(super) fn charge_of(ask: &Ask, class: Option<&str>, amounts: Amounts) -> Charge {
    let (namespace, engine) = (ask.namespace.clone(), ask.counted_engine.clone());
    Charge { namespace, class: class.map(str::to_owned), engine, amounts }
}
