//! Whether logins change in time: of claims' databases and of DatabaseRoles in the same words.

use super::clock;
use super::figures::Figures;
use conductor::api::database::logical::ServerRef;
use conductor::api::status::Condition;
use conductor_sql_plan::ledger::Ledger;
use conductor_sql_plan::plan::{is_due, is_overdue};
use conductor_sql_plan::rules::Deadline;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;

/// The condition that says whether a login changes in time.
const IN_TIME: &str = "RotationInTime";
/// What is told between the end of the old logins and the next one.
pub(super) const REVOKED: &str =
    "every login is revoked, and its sessions are ended; another login is on its way";

/// Whether a login changes in time.
pub(super) enum Rotation {
    OnTime,
    Overdue(String),
    /// It has no login.
    None,
}

/// What an object with a login reports: whether it is ready, and whether its login changes in time.
pub(super) struct Report<'a> {
    pub is_ready: bool,
    pub reason: &'a str,
    pub message: String,
    /// Unknown where no pass came to its end: then the condition stays as it is.
    pub rotation: Option<Rotation>,
}

impl Report<'_> {
    /// The conditions. `Ready` is the first, because commands read it there. One whose status stays keeps its time.
    pub fn conditions(self, before: Option<&[Condition]>, generation: Option<i64>) -> Vec<Condition> {
        let find = |of: &str| before.and_then(|all| all.iter().find(|c| c.type_ == of));
        let condition = |of: &str, is_true: bool, reason: &str, message: String| {
            let status = if is_true { "True" } else { "False" };
            let since = find(of).filter(|c| c.status == status).map(|c| c.last_transition_time.clone());
            Condition {
                type_: of.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message,
                last_transition_time: since.unwrap_or_else(|| MetaTime(Timestamp::now())),
                observed_generation: generation,
            }
        };
        let in_time = match self.rotation {
            None => find(IN_TIME).cloned(),
            Some(Rotation::None) => None,
            Some(Rotation::OnTime) => {
                Some(condition(IN_TIME, true, "OnTime", "its login changes in time".to_owned()))
            }
            Some(Rotation::Overdue(message)) => Some(condition(IN_TIME, false, "Overdue", message)),
        };
        let ready = condition("Ready", self.is_ready, self.reason, self.message);
        [Some(ready), in_time].into_iter().flatten().collect()
    }
}

/// Whose login, and how it is to change.
pub(super) struct Changing<'a> {
    pub dialect: Dialect,
    /// Of the database or the role.
    pub id: &'a str,
    pub rotation_ms: i64,
    pub deadline: Deadline,
    pub server: &'a ServerRef,
}

impl Changing<'_> {
    /// Whether a login at rest changes in time; counted where something holds it up, and `why` says what.
    pub fn judge(&self, ledger: Option<&Ledger>, why: Option<&str>, figures: &Figures) -> Rotation {
        match self.is_overdue(ledger, figures) {
            false => Rotation::OnTime,
            true => Rotation::Overdue(format!(
                "the change of its login is overdue: {}. Shorten the life of pooled connections, end these sessions, or set \
                 spec.databases.rotationDeadlinePolicy of {} {} to EndSessions",
                why.unwrap_or("it is held up"),
                self.server.kind.word(),
                self.server.name
            )),
        }
    }

    /// The same where something fails on the way to it. Nothing is known where every login is revoked: the request for that
    /// says how far it came.
    pub fn judge_failed(&self, ledger: Option<&Ledger>, why: &str, figures: &Figures) -> Option<Rotation> {
        ledger.and_then(|ledger| ledger.rotated_at)?;
        Some(match self.is_overdue(ledger, figures) {
            false => Rotation::OnTime,
            true => Rotation::Overdue(format!("the change of its login is overdue: {why}")),
        })
    }

    /// Whether the change is overdue; counted where it is due.
    fn is_overdue(&self, ledger: Option<&Ledger>, figures: &Figures) -> bool {
        let Changing { dialect, id, rotation_ms, deadline, server: _ } = self;
        let now = clock::now();
        let is_overdue = is_overdue((*rotation_ms, *deadline), ledger, now);
        let is_blocked = is_due(*rotation_ms, ledger, now);
        figures.rotation_blocked(*dialect, id, is_blocked.then_some(is_overdue));
        is_overdue
    }
}
