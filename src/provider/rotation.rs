//! Whether logins change in time: of claims' databases and of DatabaseRoles in the same words.

use super::clock;
use super::figures::Figures;
use crate::api::database::logical::ServerRef;
use crate::database::ledger::Ledger;
use crate::database::plan::{is_due, is_overdue};
use crate::database::rules::Deadline;
use crate::database::sql::Dialect;

/// The condition that says whether a login changes in time.
pub(super) const IN_TIME: &str = "RotationInTime";
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

impl Rotation {
    /// The condition: its status, reason and message.
    pub fn told(self) -> Option<(&'static str, &'static str, String)> {
        match self {
            Rotation::None => None,
            Rotation::OnTime => Some(("True", "OnTime", "its login changes in time".to_owned())),
            Rotation::Overdue(message) => Some(("False", "Overdue", message)),
        }
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
