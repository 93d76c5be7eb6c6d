//! Who may have a login, as a table; and the plan against a server in memory that carries out each step.

use super::*;
use crate::observed::ForeignOwner;
use crate::rotation_state::Pending;
use conductor::api::database::role::GrantFrom;
use proptest::prelude::*;

fn role_request(access: RoleAccess) -> RoleRequest<'static> {
    RoleRequest { role: ("analytics", "reports"), claim: ("shop", "orders"), access }
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
        let found = judge(role_request(wants), &grants, true, Some(DatabasePhase::Ready));
        assert_eq!(found == Standing::Served, is_allowed, "{wants:?} {grants:?}");
        if !is_allowed {
            // Nothing is revealed about a namespace that has granted nothing.
            assert_eq!(found, judge(role_request(wants), &grants, false, None));
        }
    }
}

#[test]
fn the_condition_names_what_a_role_waits_for() {
    let own = RoleRequest { role: ("shop", "reports"), ..role_request(RoleAccess::ReadWrite) };
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

fn desired(dialect: Dialect, access: RoleAccess, database: &str) -> DesiredRole {
    DesiredRole::new("role-uid", access, Names::new(database, None), dialect, 3_600_000)
}

/// A server and two Secrets in memory.
#[derive(Default)]
struct Harness {
    observed: ObservedRole,
    state: Option<RotationState>,
}

impl Harness {
    fn member(&mut self, user: User) -> &mut ObservedMember {
        match &mut self.observed.users[usize::from(user == User::B)] {
            NameState::Ours(member) => member,
            other => panic!("{other:?} is touched"),
        }
    }

    fn carry_out(&mut self, desired: &DesiredRole, step: &RoleStep) {
        let mariadb = desired.dialect == Dialect::Mariadb;
        match step {
            RoleStep::CreateGroup => {
                assert_eq!(
                    std::mem::replace(&mut self.observed.group, NameState::Ours(String::new())),
                    NameState::Free
                );
            }
            RoleStep::SetUpGroup => self.observed.group = NameState::Ours(desired.group_mark().note),
            RoleStep::CreateUser(user) => {
                let access = if mariadb { "-" } else { desired.access.word() };
                let member = ObservedMember::read(&format!("0 {access} {}", desired.database.id), false, 0);
                let at = usize::from(*user == User::B);
                assert_eq!(
                    std::mem::replace(&mut self.observed.users[at], NameState::Ours(member)),
                    NameState::Free
                );
            }
            RoleStep::SetAccess { user, .. } => self.member(*user).access = desired.access.word().to_owned(),
            RoleStep::DropUser { user, .. } => {
                assert!(!self.member(*user).user.can_log_in, "one that can log in is dropped");
                self.observed.users[usize::from(*user == User::B)] = NameState::Free;
            }
            RoleStep::Login(step) => self.log_in(step),
        }
    }

    fn log_in(&mut self, step: &Step) {
        let mut state = self.state.clone().unwrap_or_default();
        match step {
            Step::StorePending { user, generation, .. } => {
                state.pending = Some(Pending { user: *user, generation: *generation });
            }
            Step::SetPassword(Pending { user, generation }) => {
                let found = &mut self.member(*user).user;
                (found.generation, found.can_log_in) = (*generation, true);
            }
            Step::Publish(Pending { generation, .. }) => {
                (state.published, state.delivered) = (*generation, *generation);
            }
            Step::Promote(Pending { user, generation }) => {
                (state.active, state.generation) = (Some(*user), *generation);
                (state.pending, state.rotated_at) = (None, Some(Time(0)));
            }
            Step::Revoke(user) => self.member(*user).user = ObservedUser::default(),
            Step::ForgetLogins => {
                self.state = None;
                return;
            }
            other => panic!("{other:?} is no step of a role"),
        }
        self.state = Some(state);
    }

    /// Repeats steps until there is nothing to do; returns the last.
    fn walk(&mut self, desired: &DesiredRole, serves: bool) -> Step {
        for _ in 0..40 {
            let step = match serves {
                true => serve_role(desired, &self.observed, self.state.as_ref(), None, Time(0)),
                false => withdraw_role(&self.observed, self.state.is_some()),
            };
            match step {
                RoleStep::Login(last @ (Step::Wait { .. } | Step::Refuse(_) | Step::Forget)) => return last,
                step => self.carry_out(desired, &step),
            }
        }
        panic!("it does not arrive: {:?}", self.observed);
    }
}

#[test]
fn a_role_is_created_changed_moved_and_withdrawn() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut harness = Harness::default();
        let read = desired(dialect, RoleAccess::ReadOnly, "one");
        assert!(matches!(harness.walk(&read, true), Step::Wait { why: None, .. }));
        assert_eq!(
            harness.member(User::A).user,
            ObservedUser { generation: 1, can_log_in: true, sessions: 0 }
        );
        assert_eq!(harness.state.as_ref().map(|state| state.published), Some(1));
        // Other rights, the same login.
        harness.observed.group = NameState::Free;
        harness.walk(&desired(dialect, RoleAccess::ReadWrite, "one"), true);
        assert_eq!(
            (harness.member(User::A).access.clone(), harness.member(User::A).user.generation),
            ("ReadWrite".to_owned(), 1)
        );
        // Another database: another login.
        harness.observed.group = NameState::Free;
        harness.walk(&desired(dialect, RoleAccess::ReadWrite, "two"), true);
        assert_eq!(harness.member(User::A).database, "two");
        assert_eq!(harness.walk(&read, false), Step::Forget);
        assert_eq!(harness.observed.users, [NameState::Free, NameState::Free]);
        assert_eq!(harness.state, None);
    }
}

proptest! {
    /// The harness panics where a step touches a foreign object.
    #[test]
    fn what_is_foreign_is_refused_and_never_touched(at in 0..3_usize, serves: bool, dialect in 0..2_usize) {
        let dialect = [Dialect::Postgresql, Dialect::Mariadb][dialect];
        let mut harness = Harness::default();
        match at {
            0 => harness.observed.group = NameState::Foreign(ForeignOwner::Unmarked),
            other => harness.observed.users[other - 1] = NameState::Foreign(ForeignOwner::Unmarked),
        }
        let was = harness.observed.clone();
        let last = harness.walk(&desired(dialect, RoleAccess::ReadOnly, "one"), serves);
        let is_refused = matches!(last, Step::Refuse(Refusal::Taken { .. }));
        prop_assert_eq!(is_refused, serves);
        prop_assert_eq!(harness.observed, was);
    }

    #[test]
    fn names_are_safe_whatever_the_uid(uid in ".*") {
        let desired = DesiredRole::new(&uid, RoleAccess::ReadOnly, Names::new(&uid, None), Dialect::Postgresql, 0);
        for name in [desired.user(User::A), desired.user(User::B), desired.group()] {
            prop_assert!(Identifier::read(name.as_str()).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_note_on_a_mark_brings_the_reader_down(note in ".*") {
        let _ = ObservedMember::read(&note, true, 1);
    }
}
