//! Who may have a login, as a table; and the plan against a server in memory that does what each step says.

use super::*;
use crate::ledger::Pending;
use crate::seen::Stranger;
use conductor::api::database::role::GrantFrom;
use proptest::prelude::*;

fn asked(access: RoleAccess) -> Asked<'static> {
    Asked { role: ("analytics", "reports"), claim: ("shop", "orders"), access }
}

fn grant(
    namespace: &str,
    name: Option<&str>,
    claims: Option<&[&str]>,
    access: RoleAccess,
) -> DatabaseGrantSpec {
    DatabaseGrantSpec {
        from: vec![GrantFrom { namespace: namespace.to_owned(), name: name.map(str::to_owned) }],
        claims: claims.map(|claims| claims.iter().map(|claim| (*claim).to_owned()).collect()),
        access,
    }
}

#[test]
fn another_namespace_needs_a_grant_that_names_it_and_goes_as_far() {
    let (read, write) = (RoleAccess::ReadOnly, RoleAccess::ReadWrite);
    for (wants, grants, is_allowed) in [
        (read, vec![], false),
        (read, vec![grant("analytics", None, None, read)], true),
        (read, vec![grant("analytics", None, None, write)], true),
        (write, vec![grant("analytics", None, None, read)], false),
        (write, vec![grant("analytics", None, None, read), grant("analytics", None, None, write)], true),
        (read, vec![grant("analytics", Some("reports"), None, read)], true),
        (read, vec![grant("analytics", Some("others"), None, read)], false),
        (read, vec![grant("billing", None, None, write)], false),
        (read, vec![grant("analytics", None, Some(&["orders"]), read)], true),
        (read, vec![grant("analytics", None, Some(&["stock"]), read)], false),
    ] {
        let found = judge(asked(wants), &grants, true, Some(DatabasePhase::Ready));
        assert_eq!(found == Standing::Served, is_allowed, "{wants:?} {grants:?}");
        if !is_allowed {
            // Nothing is told about a namespace that has granted nothing.
            assert_eq!(found, judge(asked(wants), &grants, false, None));
        }
    }
}

#[test]
fn what_a_role_waits_for_is_told() {
    let own = Asked { role: ("shop", "reports"), ..asked(RoleAccess::ReadWrite) };
    for (is_claimed, phase, expected) in [
        (false, None, Some(("ClaimNotFound", true))),
        (true, None, Some(("ClaimNotBound", true))),
        (true, Some(DatabasePhase::Pending), Some(("DatabaseNotReady", false))),
        (true, Some(DatabasePhase::Ready), None),
        (true, Some(DatabasePhase::Quarantined), Some(("DatabaseNotReady", true))),
    ] {
        let found = match judge(own, &[], is_claimed, phase) {
            Standing::Served => None,
            Standing::Waits { reason, ends, .. } => Some((reason, ends)),
        };
        assert_eq!(found, expected, "{is_claimed} {phase:?}");
    }
}

fn wanted(dialect: Dialect, access: RoleAccess, database: &str) -> WantedRole {
    WantedRole::new("role-uid", access, Names::new(database, None), dialect, 3_600_000)
}

/// A server and two Secrets in memory.
#[derive(Default)]
struct Lab {
    seen: SeenRole,
    ledger: Option<Ledger>,
}

impl Lab {
    fn member(&mut self, user: User) -> &mut SeenMember {
        match &mut self.seen.users[usize::from(user == User::B)] {
            Place::Ours(member) => member,
            other => panic!("{other:?} is touched"),
        }
    }

    fn carry_out(&mut self, wanted: &WantedRole, step: &RoleStep) {
        let mariadb = wanted.dialect == Dialect::Mariadb;
        match step {
            RoleStep::CreateGroup => {
                assert_eq!(std::mem::replace(&mut self.seen.group, Place::Ours(String::new())), Place::Free);
            }
            RoleStep::SetUpGroup => self.seen.group = Place::Ours(wanted.group_mark().note),
            RoleStep::CreateUser(user) => {
                let access = if mariadb { "-" } else { wanted.access.word() };
                let member = SeenMember::read(&format!("0 {access} {}", wanted.database.id), false, 0);
                let at = usize::from(*user == User::B);
                assert_eq!(std::mem::replace(&mut self.seen.users[at], Place::Ours(member)), Place::Free);
            }
            RoleStep::SetAccess { user, .. } => self.member(*user).access = wanted.access.word().to_owned(),
            RoleStep::DropUser { user, .. } => {
                assert!(!self.member(*user).user.can_log_in, "one that can log in is dropped");
                self.seen.users[usize::from(*user == User::B)] = Place::Free;
            }
            RoleStep::Login(step) => self.log_in(step),
        }
    }

    fn log_in(&mut self, step: &Step) {
        let mut ledger = self.ledger.clone().unwrap_or_default();
        match step {
            Step::StorePending { user, generation, .. } => {
                ledger.pending = Some(Pending { user: *user, generation: *generation });
            }
            Step::SetPassword { user, generation } => {
                let found = &mut self.member(*user).user;
                (found.generation, found.can_log_in) = (*generation, true);
            }
            Step::Publish { generation, .. } => {
                (ledger.published, ledger.delivered) = (*generation, *generation);
            }
            Step::Promote { user, generation } => {
                (ledger.active, ledger.generation) = (Some(*user), *generation);
                (ledger.pending, ledger.rotated_at) = (None, Some(Time(0)));
            }
            Step::Revoke(user) => self.member(*user).user = SeenUser::default(),
            Step::ForgetLogins => {
                self.ledger = None;
                return;
            }
            other => panic!("{other:?} is no step of a role"),
        }
        self.ledger = Some(ledger);
    }

    /// Step after step, until there is nothing to do; gives what was last.
    fn walk(&mut self, wanted: &WantedRole, serves: bool) -> Step {
        for _ in 0..40 {
            let step = match serves {
                true => serve_role(wanted, &self.seen, self.ledger.as_ref(), None, Time(0)),
                false => withdraw_role(&self.seen, self.ledger.is_some()),
            };
            match step {
                RoleStep::Login(last @ (Step::Wait { .. } | Step::Refuse(_) | Step::Forget)) => return last,
                step => self.carry_out(wanted, &step),
            }
        }
        panic!("it does not arrive: {:?}", self.seen);
    }
}

#[test]
fn a_role_is_made_changed_moved_and_withdrawn() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut lab = Lab::default();
        let read = wanted(dialect, RoleAccess::ReadOnly, "one");
        assert!(matches!(lab.walk(&read, true), Step::Wait { why: None, .. }));
        assert_eq!(lab.member(User::A).user, SeenUser { generation: 1, can_log_in: true, sessions: 0 });
        assert_eq!(lab.ledger.as_ref().map(|ledger| ledger.published), Some(1));
        // Other rights, the same login.
        lab.seen.group = Place::Free;
        lab.walk(&wanted(dialect, RoleAccess::ReadWrite, "one"), true);
        assert_eq!(
            (lab.member(User::A).access.clone(), lab.member(User::A).user.generation),
            ("ReadWrite".to_owned(), 1)
        );
        // Another database: another login.
        lab.seen.group = Place::Free;
        lab.walk(&wanted(dialect, RoleAccess::ReadWrite, "two"), true);
        assert_eq!(lab.member(User::A).database, "two");
        assert_eq!(lab.walk(&read, false), Step::Forget);
        assert_eq!(lab.seen.users, [Place::Free, Place::Free]);
        assert_eq!(lab.ledger, None);
    }
}

proptest! {
    /// The lab panics where a step touches what is not ours.
    #[test]
    fn what_is_foreign_is_refused_and_never_touched(at in 0..3_usize, serves: bool, dialect in 0..2_usize) {
        let dialect = [Dialect::Postgresql, Dialect::Mariadb][dialect];
        let mut lab = Lab::default();
        match at {
            0 => lab.seen.group = Place::Foreign(Stranger::Unmarked),
            other => lab.seen.users[other - 1] = Place::Foreign(Stranger::Unmarked),
        }
        let was = lab.seen.clone();
        let last = lab.walk(&wanted(dialect, RoleAccess::ReadOnly, "one"), serves);
        let is_refused = matches!(last, Step::Refuse(Refusal::Taken { .. }));
        prop_assert_eq!(is_refused, serves);
        prop_assert_eq!(lab.seen, was);
    }

    #[test]
    fn names_are_safe_whatever_the_uid(uid in ".*") {
        let wanted = WantedRole::new(&uid, RoleAccess::ReadOnly, Names::new(&uid, None), Dialect::Postgresql, 0);
        for name in [wanted.user(User::A), wanted.user(User::B), wanted.group()] {
            prop_assert!(Identifier::read(name.as_str()).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_note_on_a_mark_brings_the_reader_down(note in ".*") {
        let _ = SeenMember::read(&note, true, 1);
    }
}
