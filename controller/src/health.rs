//! How the controller is, as its parts report it: whether the engine works, everything is listed, the watches are
//! current, the lease is known, the system namespace is there, and what the caller asks for besides. Nothing is
//! measured here; who is asked over HTTP is `serve.rs`.

use super::gate::Gate;
use super::options::Check;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The owner of the engine shows itself at least this often while it lives, or it is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// What is known of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseView {
    /// No leader is elected.
    Unneeded,
    /// It has not been read yet.
    Unread,
    /// It is ours; the gate says for how long.
    Held,
    /// Another process holds it, and this one is ready to take over.
    StandingBy,
    /// It could not be read, taken or renewed the last time that was tried.
    Failed(String),
}

/// How the controller is.
#[derive(Debug)]
pub(super) struct Health {
    vitals: Mutex<Vitals>,
    gate: Gate,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct Vitals {
    unlisted: Vec<&'static str>,
    /// When the owner began what it is doing, or ended what it did.
    beat: Instant,
    /// The watches that fail, by what they watch, and why.
    watches: BTreeMap<String, String>,
    lease: LeaseView,
    /// What is wrong with the system namespace.
    namespace: Option<String>,
    /// Whether that namespace is being deleted while it has resources.
    holds_resources: bool,
}

/// One thing that was checked, and what is wrong with it.
pub(super) type Checked = (&'static str, Option<String>);

impl Health {
    pub fn new(unlisted: Vec<&'static str>, lease: LeaseView, gate: Gate, checks: Vec<Check>) -> Health {
        let vitals = Vitals {
            unlisted,
            beat: Instant::now(),
            watches: BTreeMap::new(),
            lease,
            namespace: None,
            holds_resources: false,
        };
        Health { vitals: Mutex::new(vitals), gate, checks }
    }

    fn vitals(&self) -> MutexGuard<'_, Vitals> {
        self.vitals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn beat(&self) {
        self.vitals().beat = Instant::now();
    }

    pub fn set_unlisted(&self, unlisted: Vec<&'static str>) {
        self.vitals().unlisted = unlisted;
    }

    /// A watch fails, for this reason, or works again.
    pub fn set_watch(&self, what: &str, trouble: Option<&str>) {
        let watches = &mut self.vitals().watches;
        match trouble {
            Some(why) => drop(watches.insert(what.to_owned(), why.to_owned())),
            None => drop(watches.remove(what)),
        }
    }

    pub fn set_lease(&self, lease: LeaseView) {
        self.vitals().lease = lease;
    }

    /// What is wrong with the system namespace, and whether its deletion waits for resources.
    pub fn set_namespace(&self, trouble: Option<String>, holds_resources: bool) {
        let mut vitals = self.vitals();
        (vitals.namespace, vitals.holds_resources) = (trouble, holds_resources);
    }

    /// Whether the system namespace is being deleted while it has resources: then the Lease must stay.
    pub fn keeps_lease(&self) -> bool {
        self.vitals().holds_resources
    }

    /// Why the process should be started again, if so.
    pub fn find_stuck(&self) -> Option<String> {
        let silent = self.vitals().beat.elapsed();
        (silent >= SILENCE_MAX).then(|| format!("the engine has been silent for {} s", silent.as_secs()))
    }

    /// Everything that readiness depends on. A process that stands by is ready to lead.
    pub fn checks(&self) -> Vec<Checked> {
        let vitals = self.vitals();
        let listed =
            (!vitals.unlisted.is_empty()).then(|| format!("not listed yet: {}", vitals.unlisted.join(", ")));
        let failing = vitals.watches.iter().map(|(what, why)| format!("{what}: {why}"));
        let failing = failing.collect::<Vec<_>>().join("; ");
        let lease = match &vitals.lease {
            LeaseView::Held if !self.gate.is_open() => Some("it was not renewed in time".to_owned()),
            LeaseView::Unread => Some("it has not been read yet".to_owned()),
            LeaseView::Failed(why) => Some(why.clone()),
            LeaseView::Unneeded | LeaseView::Held | LeaseView::StandingBy => None,
        };
        let own = [
            ("listed", listed),
            ("watches", (!failing.is_empty()).then_some(failing)),
            ("lease", lease),
            ("system_namespace", vitals.namespace.clone()),
        ];
        drop(vitals);
        let others = self.checks.iter().map(|check| (check.name, (check.ask)()));
        own.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn failing(health: &Health) -> Vec<&'static str> {
        health.checks().into_iter().filter(|(_, trouble)| trouble.is_some()).map(|(name, _)| name).collect()
    }

    #[test]
    fn readiness_says_which_of_its_claims_does_not_hold() {
        let full = Arc::new(Mutex::new(Some("no space".to_owned())));
        let asked = Arc::clone(&full);
        let check = Check { name: "store", ask: Arc::new(move || asked.lock().unwrap().clone()) };
        let gate = Gate::new();
        let health = Health::new(vec!["A"], LeaseView::Unread, gate.clone(), vec![check]);
        assert_eq!(failing(&health), ["listed", "lease", "store"]);
        health.set_unlisted(Vec::new());
        health.set_lease(LeaseView::StandingBy);
        *full.lock().unwrap() = None;
        assert_eq!(failing(&health), Vec::<&str>::new(), "one that stands by is ready to lead");
        health.set_lease(LeaseView::Held);
        assert_eq!(failing(&health), ["lease"], "its time is over, whether or not anybody noticed");
        gate.open();
        health.set_watch("RelationalDatabase", Some("no answer"));
        health.set_namespace(Some("being deleted".to_owned()), true);
        assert_eq!(failing(&health), ["watches", "system_namespace"]);
        health.set_watch("RelationalDatabase", None);
        health.set_namespace(None, false);
        assert_eq!(failing(&health), Vec::<&str>::new());
    }
}
