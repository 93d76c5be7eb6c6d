//! Metrics about databases, beside the others on `/metrics`. Labels come from fixed sets: engines and reasons; never a
//! name, a host or an address.

use conductor_sql_plan::Step;
use conductor_sql_plan::sql::Dialect;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EngineLabels {
    engine: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

type Count = Family<EngineLabels, Counter>;
type Seconds = Family<EngineLabels, Histogram, fn() -> Histogram>;

/// The metrics about databases. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    users_created: Count,
    users_failed: Count,
    user_seconds: Seconds,
    databases_failed: Count,
    databases_created: Count,
    databases_dropped: Count,
    statements: Count,
    rotations: Count,
    rotations_failed: Count,
    rotation_seconds: Seconds,
    rotations_blocked: Gauge,
    rotations_overdue: Gauge,
    blocked: Arc<Mutex<BTreeMap<String, bool>>>,
    errors: Family<ReasonLabels, Counter>,
    claims_refused: Counter,
    claims_loaded: Counter,
    load_seconds: Histogram,
    databases: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            users_created: Family::default(),
            users_failed: Family::default(),
            databases_failed: Family::default(),
            rotations_failed: Family::default(),
            user_seconds: Family::new_with_constructor(seconds),
            databases_created: Family::default(),
            databases_dropped: Family::default(),
            statements: Family::default(),
            rotations: Family::default(),
            rotation_seconds: Family::new_with_constructor(seconds),
            rotations_blocked: Gauge::default(),
            rotations_overdue: Gauge::default(),
            blocked: Arc::default(),
            errors: Family::default(),
            claims_refused: Counter::default(),
            claims_loaded: Counter::default(),
            load_seconds: seconds(),
            databases: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers them.
    #[rustfmt::skip]
    pub fn register(&self, r: &mut Registry) {
        let Metrics {
            users_created, users_failed, user_seconds, databases_created, databases_failed, databases_dropped,
            statements, rotations, rotations_failed, rotation_seconds, rotations_blocked, rotations_overdue, blocked: _, errors,
            claims_refused, claims_loaded, load_seconds, databases,
        } = self.clone();
        r.register("database_users_created", "Users created on database servers", users_created);
        r.register("database_users_failed", "Users that could not be created", users_failed);
        r.register("database_user_seconds", "Time to create a user", user_seconds);
        r.register("databases_created", "Databases created", databases_created);
        r.register("databases_failed", "Databases that could not be created or set up", databases_failed);
        r.register("databases_dropped", "Databases dropped", databases_dropped);
        r.register("database_statements", "Messages with statements sent to database servers", statements);
        r.register("database_rotations", "Logins rotated", rotations);
        r.register("database_rotations_failed", "Rotations that failed or were held up", rotations_failed);
        r.register("database_rotation_seconds", "Time from a new password to its publication", rotation_seconds);
        r.register("database_rotations_blocked", "Databases and DatabaseRoles whose rotation is due and held up", rotations_blocked);
        r.register("database_rotations_overdue", "Databases and DatabaseRoles whose rotation is held up beyond its deadline", rotations_overdue);
        r.register("database_claims_refused", "DatabaseClaims that were refused", claims_refused);
        r.register("database_errors", "Failed reconciles of a database, by reason", errors);
        r.register("database_claims_loaded", "Completed reconciles of a claim's database", claims_loaded);
        r.register("database_claim_load_seconds", "Time of one reconcile of a claim's database", load_seconds);
        r.register("databases", "Recorded databases", databases);
    }

    pub(super) fn user_created(&self, dialect: Dialect, took: Duration) {
        self.users_created.get_or_create(&engine(dialect)).inc();
        self.user_seconds.get_or_create(&engine(dialect)).observe(took.as_secs_f64());
    }

    pub(super) fn database_created(&self, dialect: Dialect) {
        self.databases_created.get_or_create(&engine(dialect)).inc();
    }

    pub(super) fn database_dropped(&self, dialect: Dialect) {
        self.databases_dropped.get_or_create(&engine(dialect)).inc();
    }

    pub(super) fn sent(&self, dialect: Dialect, messages: usize) {
        self.statements.get_or_create(&engine(dialect)).inc_by(messages as u64);
    }

    pub(super) fn rotated(&self, dialect: Dialect, took: Duration) {
        self.rotations.get_or_create(&engine(dialect)).inc();
        self.rotation_seconds.get_or_create(&engine(dialect)).observe(took.as_secs_f64());
    }

    /// Counts a step that failed.
    pub(super) fn step_failed(&self, dialect: Dialect, step: &Step) {
        let counted = match step {
            Step::CreateUser(_) | Step::DropUser(_) => &self.users_failed,
            Step::StorePending { .. }
            | Step::SetPassword(_)
            | Step::Publish(_)
            | Step::Promote(_)
            | Step::Revoke(_)
            | Step::EndRights { .. }
            | Step::CloseRequest { .. } => &self.rotations_failed,
            _ => &self.databases_failed,
        };
        counted.get_or_create(&engine(dialect)).inc();
    }

    /// Counts a due rotation that is held up, or no longer is; one that becomes held up counts as failed once. `is_overdue`:
    /// whether it is held up beyond its deadline; none if it is not held up.
    pub(super) fn rotation_blocked(&self, dialect: Dialect, id: &str, is_overdue: Option<bool>) {
        let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        match is_overdue {
            Some(is_overdue) => {
                if blocked.insert(id.to_owned(), is_overdue).is_none() {
                    self.rotations_failed.get_or_create(&engine(dialect)).inc();
                }
            }
            None => drop(blocked.remove(id)),
        }
        self.rotations_blocked.set(blocked.len() as i64);
        self.rotations_overdue.set(blocked.values().filter(|is_overdue| **is_overdue).count() as i64);
    }

    /// Counts a DatabaseClaim that is refused.
    pub(super) fn claim_refused(&self) {
        self.claims_refused.inc();
    }

    pub(super) fn failed(&self, reason: &'static str) {
        self.errors.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub(super) fn loaded(&self, took: Duration) {
        self.claims_loaded.inc();
        self.load_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn on_record(&self, databases: usize) {
        self.databases.set(databases as i64);
    }
}

fn engine(dialect: Dialect) -> EngineLabels {
    EngineLabels { engine: dialect.word() }
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(metrics: &Metrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text takes everything");
        text
    }

    #[test]
    fn a_blocked_rotation_counts_as_failed_once_until_it_goes_on() {
        let metrics = Metrics::default();
        for is_overdue in [Some(false), Some(true), None, Some(false)] {
            metrics.rotation_blocked(Dialect::Postgresql, "a", is_overdue);
        }
        metrics.rotation_blocked(Dialect::Postgresql, "b", Some(true));
        let text = shown(&metrics);
        assert!(text.contains("database_rotations_failed_total{engine=\"postgresql\"} 3"), "{text}");
        assert!(text.contains("database_rotations_blocked 2"), "{text}");
        assert!(text.contains("database_rotations_overdue 1"), "{text}");
        metrics.rotation_blocked(Dialect::Postgresql, "a", None);
        assert!(shown(&metrics).contains("database_rotations_blocked 1"));
    }
}
