//! Who is charged for what: the use of every quota, kept as claims are assumed and forgotten.
//! A charge is made with the decision and taken back with it, so two claims can never share the last slot.

use crate::model::{Capacity, Labels, Lookup, Name, Quota, Uid};
use crate::predicates::{Charge, Headroom, Overrun, QuotaKey, counts, counts_engine, limit_overruns, room};
use std::collections::{BTreeMap, BTreeSet};

/// The use of one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Claims counted.
    pub claims: u64,
    /// Sum of their amounts.
    pub amounts: Capacity,
}

#[derive(Clone, Debug)]
struct Account {
    quota: Quota,
    used: Vec<Use>,
}

/// All quotas, all charges.
#[derive(Clone, Debug, Default)]
pub struct QuotaUsage {
    accounts: BTreeMap<QuotaKey, Account>,
    charges: Lookup<Uid, Charge>,
    by_namespace: BTreeMap<Name, BTreeSet<Uid>>,
    namespaces: BTreeMap<Name, Labels>,
}

impl QuotaUsage {
    /// Takes in a quota, new or changed. Says whether it limits anything else than before; only then
    /// is its use counted afresh.
    pub fn set_quota(&mut self, quota: Quota) -> (QuotaKey, bool) {
        let key = QuotaKey { namespace: quota.meta.key.namespace.clone(), name: quota.meta.key.name.clone() };
        match self.accounts.get_mut(&key) {
            Some(account)
                if (&account.quota.limits, &account.quota.namespaces)
                    == (&quota.limits, &quota.namespaces) =>
            {
                account.quota = quota;
                (key, false)
            }
            _ => {
                self.accounts.insert(key.clone(), Account { quota, used: Vec::new() });
                self.recount(&key);
                (key, true)
            }
        }
    }

    /// Forgets a quota.
    pub fn remove_quota(&mut self, key: &QuotaKey) {
        self.accounts.remove(key);
    }

    /// Takes in a namespace's labels; returns the cluster quotas, whose use may have changed with them.
    pub fn set_namespace(&mut self, name: Name, labels: Option<Labels>) -> Vec<QuotaKey> {
        let unchanged = self.namespaces.get(&name) == labels.as_ref();
        match labels {
            Some(labels) => self.namespaces.insert(name, labels),
            None => self.namespaces.remove(&name),
        };
        if unchanged {
            return Vec::new();
        }
        let cluster: Vec<QuotaKey> =
            self.accounts.keys().filter(|k| k.namespace.is_empty()).cloned().collect();
        cluster.iter().for_each(|key| self.recount(key));
        cluster
    }

    /// The namespaces whose labels are known.
    pub fn namespaces(&self) -> impl Iterator<Item = &Name> {
        self.namespaces.keys()
    }

    /// The charge of a claim, where it has one.
    pub fn find_charge(&self, claim: &Uid) -> Option<&Charge> {
        self.charges.get(claim)
    }

    /// Charges a claim, in place of what it was charged before.
    pub fn charge(&mut self, claim: &Uid, charge: Charge) {
        if self.charges.get(claim) == Some(&charge) {
            return;
        }
        self.release(claim);
        self.apply(&charge, true);
        self.by_namespace.entry(charge.namespace.clone()).or_default().insert(claim.clone());
        self.charges.insert(claim.clone(), charge);
    }

    /// Takes a claim's charge back; returns the quotas that have room again.
    pub fn release(&mut self, claim: &Uid) -> Vec<QuotaKey> {
        let Some(charge) = self.charges.remove(claim) else { return Vec::new() };
        if let Some(claims) = self.by_namespace.get_mut(&charge.namespace) {
            claims.remove(claim);
            if claims.is_empty() {
                self.by_namespace.remove(&charge.namespace);
            }
        }
        self.apply(&charge, false)
    }

    /// Whether there is no quota at all.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// What the quotas of a namespace leave; nothing where none limits claims of this engine there.
    pub fn headroom(&self, namespace: &Name, engine: Option<&Name>) -> Option<Headroom> {
        let mut rooms = Vec::new();
        for (_, account) in self.accounts_for(namespace) {
            let limits = account.quota.limits.iter().flatten().zip(&account.used);
            for (limit, used) in limits.filter(|(limit, _)| counts_engine(limit, engine)) {
                rooms.push(room(limit, used.claims, &used.amounts));
            }
        }
        (!rooms.is_empty()).then_some(Headroom { rooms })
    }

    /// Every limit that `charge` would exceed on top of what is used, in a stable order. Where the charge `is_final`, it is
    /// known what the claim would get, and what is limited and not in the charge cannot be counted.
    pub fn overruns(&self, charge: &Charge, is_final: bool) -> Vec<Overrun> {
        let mut overruns = Vec::new();
        for (key, account) in self.accounts_for(&charge.namespace) {
            let limits = account.quota.limits.iter().flatten();
            for (limit, used) in limits.zip(&account.used).filter(|(limit, _)| counts(limit, charge)) {
                overruns.extend(limit_overruns(key, limit, (used.claims, &used.amounts), charge, is_final));
            }
        }
        overruns
    }

    /// Every quota with its limits' use, in a stable order.
    pub fn quotas(&self) -> impl Iterator<Item = (&QuotaKey, &Quota, &[Use])> {
        self.accounts.iter().map(|(key, account)| (key, &account.quota, account.used.as_slice()))
    }

    /// One quota with its limits' use.
    pub fn find_quota(&self, key: &QuotaKey) -> Option<(&Quota, &[Use])> {
        self.accounts.get(key).map(|account| (&account.quota, account.used.as_slice()))
    }

    /// The quotas that count claims of `namespace`.
    pub fn keys_for(&self, namespace: &Name) -> Vec<QuotaKey> {
        self.accounts_for(namespace).map(|(key, _)| key.clone()).collect()
    }

    fn accounts_for<'a>(&'a self, namespace: &'a Name) -> impl Iterator<Item = (&'a QuotaKey, &'a Account)> {
        let own = QuotaKey { namespace: namespace.clone(), name: Name::from("") };
        let own = self.accounts.range(own..).take_while(move |(key, _)| key.namespace == *namespace);
        let cluster = self.accounts.iter().take_while(|(key, _)| key.namespace.is_empty());
        let cluster = cluster.filter(move |(_, account)| self.selects(account, namespace));
        own.filter(|(key, _)| !key.namespace.is_empty()).chain(cluster)
    }

    fn selects(&self, account: &Account, namespace: &Name) -> bool {
        let labels = self.namespaces.get(namespace);
        let label = |key: &str| labels.and_then(|l| l.get(key));
        account.quota.namespaces.as_ref().is_some_and(|selector| selector.matches(label))
    }

    fn apply(&mut self, charge: &Charge, add: bool) -> Vec<QuotaKey> {
        if self.accounts.is_empty() {
            return Vec::new();
        }
        let keys = self.keys_for(&charge.namespace);
        for key in &keys {
            let Some(Account { quota, used }) = self.accounts.get_mut(key) else { continue };
            for (limit, used) in quota.limits.iter().flatten().zip(used) {
                if counts(limit, charge) {
                    used.add(charge, add);
                }
            }
        }
        keys
    }

    fn recount(&mut self, key: &QuotaKey) {
        let Some(mut account) = self.accounts.remove(key) else { return };
        let limits = account.quota.limits.iter().flatten();
        account.used = limits.map(|_| Use::default()).collect();
        let counted = |namespace: &Name| {
            if key.namespace.is_empty() {
                self.selects(&account, namespace)
            } else {
                key.namespace == *namespace
            }
        };
        let namespaces = self.by_namespace.iter().filter(|(namespace, _)| counted(namespace));
        let charges: Vec<&Charge> =
            namespaces.flat_map(|(_, uids)| uids).filter_map(|u| self.charges.get(u)).collect();
        for (limit, used) in account.quota.limits.iter().flatten().zip(&mut account.used) {
            charges.iter().filter(|charge| counts(limit, charge)).for_each(|charge| used.add(charge, true));
        }
        self.accounts.insert(key.clone(), account);
    }
}

impl Use {
    fn add(&mut self, charge: &Charge, add: bool) {
        if add {
            self.claims += 1;
            self.amounts = self.amounts.saturating_add(&charge.amounts);
        } else {
            self.claims = self.claims.saturating_sub(1);
            self.amounts = self.amounts.saturating_sub(&charge.amounts);
        }
    }
}
