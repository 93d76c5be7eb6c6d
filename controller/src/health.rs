//! The health of the controller as its parts report it: whether the engine works, everything is listed, the watches are
//! current, the lease is known, the system namespace exists, and the checks of the caller. Measures nothing; `serve.rs`
//! serves it over HTTP.

use super::options::Check;
use conductor_runtime::elector::{LeaseObserver, LeaseState};
use conductor_runtime::leadership::Leadership;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An event loop that is silent for this long is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The health of the controller.
#[derive(Debug)]
pub(super) struct Health {
    vitals: Mutex<Vitals>,
    leadership: Leadership,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct Vitals {
    unlisted: Vec<&'static str>,
    /// When the event loop last reported that it lives.
    beat: Instant,
    /// Failing watches by name, and why they fail.
    watches: BTreeMap<String, String>,
    lease: LeaseState,
    /// What is wrong with the system namespace.
    namespace: Option<String>,
    /// Whether that namespace is being deleted while it has resources.
    holds_resources: bool,
}

/// The name of a check, and what is wrong.
pub(super) type Checked = (&'static str, Option<String>);

impl Health {
    pub fn new(
        unlisted: Vec<&'static str>,
        lease: LeaseState,
        leadership: Leadership,
        checks: Vec<Check>,
    ) -> Health {
        let vitals = Vitals {
            unlisted,
            beat: Instant::now(),
            watches: BTreeMap::new(),
            lease,
            namespace: None,
            holds_resources: false,
        };
        Health { vitals: Mutex::new(vitals), leadership, checks }
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

    /// What is wrong with the system namespace, and whether its deletion waits for resources.
    pub fn set_namespace(&self, trouble: Option<String>, holds_resources: bool) {
        let mut vitals = self.vitals();
        (vitals.namespace, vitals.holds_resources) = (trouble, holds_resources);
    }

    /// Why the process should be restarted, if it should.
    pub fn find_stuck(&self) -> Option<String> {
        let silent = self.vitals().beat.elapsed();
        (silent >= SILENCE_MAX).then(|| format!("the engine has been silent for {} s", silent.as_secs()))
    }

    /// Every check of readiness. A standby process is ready.
    pub fn checks(&self) -> Vec<Checked> {
        let vitals = self.vitals();
        let listed =
            (!vitals.unlisted.is_empty()).then(|| format!("not listed yet: {}", vitals.unlisted.join(", ")));
        let failing = vitals.watches.iter().map(|(what, why)| format!("{what}: {why}"));
        let failing = failing.collect::<Vec<_>>().join("; ");
        let lease = match &vitals.lease {
            LeaseState::Held if !self.leadership.leads() => Some("it was not renewed in time".to_owned()),
            LeaseState::Unread => Some("it has not been read yet".to_owned()),
            LeaseState::Failed(why) => Some(why.clone()),
            LeaseState::Unneeded | LeaseState::Held | LeaseState::StandingBy => None,
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

impl LeaseObserver for Health {
    fn set_lease(&self, lease: LeaseState) {
        self.vitals().lease = lease;
    }

    /// Keeps the Lease while the system namespace is being deleted and has resources.
    fn keeps_lease(&self) -> bool {
        self.vitals().holds_resources
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
    fn readiness_names_the_failing_checks() {
        let full = Arc::new(Mutex::new(Some("no space".to_owned())));
        let shared = Arc::clone(&full);
        let check = Check { name: "store", ask: Arc::new(move || shared.lock().unwrap().clone()) };
        let leadership = Leadership::new(None);
        let health = Health::new(vec!["A"], LeaseState::Unread, leadership.clone(), vec![check]);
        assert_eq!(failing(&health), ["listed", "lease", "store"]);
        health.set_unlisted(Vec::new());
        health.set_lease(LeaseState::StandingBy);
        *full.lock().unwrap() = None;
        assert_eq!(failing(&health), Vec::<&str>::new(), "a standby process is ready");
        health.set_lease(LeaseState::Held);
        assert_eq!(failing(&health), ["lease"], "its leadership has expired");
        leadership.lead();
        health.set_watch("RelationalDatabase", Some("no answer"));
        health.set_namespace(Some("being deleted".to_owned()), true);
        assert_eq!(failing(&health), ["watches", "system_namespace"]);
        health.set_watch("RelationalDatabase", None);
        health.set_namespace(None, false);
        assert_eq!(failing(&health), Vec::<&str>::new());
    }
}
