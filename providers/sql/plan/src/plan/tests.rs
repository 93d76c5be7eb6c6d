//! The plan against a server in memory that carries out each step: from any initial state, and wherever it is interrupted,
//! it reaches the desired state, touches no foreign object, and the published login works at every moment.

use super::*;
use crate::names::Names;
use crate::observed::{ForeignOwner, OpenGrant};
use crate::policy::Deadline;
use crate::sql::Dialect;
use conductor::api::database::role::RoleAccess;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;

fn desired(dialect: Dialect) -> DesiredDatabase {
    DesiredDatabase {
        names: Names::new("uid", None),
        dialect,
        schemas: Vec::new(),
        extensions: Vec::new(),
        connection_limit: None,
        rotation_ms: HOUR,
        deadline: Deadline { after_ms: HOUR, ends_sessions: false },
        was_made: false,
        unread: None,
    }
}

/// A server, the Secrets and the LogicalDatabase, as far as steps change them.
#[derive(Clone, Debug)]
struct Harness {
    desired: DesiredDatabase,
    observed: Observed,
    state: Option<RotationState>,
    request: Option<Request>,
    quarantined_at: Option<Time>,
    is_forgotten: bool,
    now: Time,
    steps: Vec<Step>,
}

impl Harness {
    fn new(dialect: Dialect) -> Harness {
        Harness {
            desired: desired(dialect),
            observed: Observed::default(),
            state: None,
            request: None,
            quarantined_at: None,
            is_forgotten: false,
            now: Time(HOUR),
            steps: Vec::new(),
        }
    }

    fn next(&self, desired_state: DesiredState) -> Step {
        next_step(
            desired_state,
            &self.desired,
            &self.observed,
            self.state.as_ref(),
            self.request.as_ref(),
            self.now,
        )
    }

    /// Repeats until there is nothing to do.
    fn settle(&mut self, desired_state: DesiredState) -> Step {
        for _ in 0..50 {
            let desired_state = match (desired_state, self.quarantined_at) {
                (DesiredState::Quarantine(None), Some(since)) => {
                    DesiredState::Quarantine(Some(since.plus_ms(HOUR)))
                }
                (desired_state, _) => desired_state,
            };
            self.deliver();
            let step = self.next(desired_state);
            if matches!(step, Step::Wait { .. } | Step::Refuse(_)) || self.is_forgotten {
                return step;
            }
            self.carry_out(&step);
            self.steps.push(step);
        }
        panic!("it never ends: {:?}", self.steps);
    }

    fn user(&mut self, user: User) -> &mut ObservedUser {
        match &mut self.observed.users[usize::from(user == User::B)] {
            NameState::Ours(found) => found,
            other => panic!("{user:?} is touched and is {other:?}"),
        }
    }

    fn database(&mut self) -> &mut ObservedDatabase {
        match &mut self.observed.database {
            NameState::Ours(found) => found,
            other => panic!("the database is touched and is {other:?}"),
        }
    }

    fn state(&mut self) -> &mut RotationState {
        self.state.get_or_insert_default()
    }

    fn carry_out(&mut self, step: &Step) {
        let now = self.now;
        match step.clone() {
            Step::CreateOwner => {
                assert_eq!(std::mem::replace(&mut self.observed.owner, NameState::Ours(())), NameState::Free);
            }
            Step::CreateUser(user) => {
                let place = &mut self.observed.users[usize::from(user == User::B)];
                assert_eq!(
                    std::mem::replace(place, NameState::Ours(ObservedUser::default())),
                    NameState::Free
                );
            }
            Step::CreateDatabase => {
                let new = ObservedDatabase { is_open: true, ..ObservedDatabase::default() };
                assert_eq!(
                    std::mem::replace(&mut self.observed.database, NameState::Ours(new)),
                    NameState::Free
                );
            }
            Step::SetUp { .. } => self.database().set_up = self.desired.set_up(),
            Step::PutBackLimits => {
                let limits = ObservedLimits {
                    connections: self.desired.connection_limit,
                    is_template: false,
                    owner_connects: true,
                };
                self.database().limits = Some(limits);
            }
            Step::RecordMade => self.desired.was_made = true,
            Step::Restore { is_renamed } => {
                if is_renamed {
                    assert_eq!(self.observed.database, NameState::Free);
                    self.observed.database = std::mem::take(&mut self.observed.quarantined);
                }
                self.database().is_open = true;
            }
            Step::StorePending { user, generation, answers } => {
                let state = self.state();
                state.pending = Some(Pending { user, generation });
                state.answered = answers;
            }
            Step::SetPassword(Pending { user, generation }) => {
                let found = self.user(user);
                (found.generation, found.can_log_in) = (generation, true);
            }
            Step::Publish(Pending { user, generation }) => {
                assert!(self.user(user).can_log_in && self.user(user).generation == generation);
                self.state().published = generation;
            }
            Step::Promote(Pending { user, generation }) => {
                let state = self.state();
                (state.active, state.generation) = (Some(user), generation);
                (state.rotated_at, state.pending) = (Some(now), None);
            }
            Step::Revoke(user) => {
                let found = self.user(user);
                (found.can_log_in, found.sessions) = (false, 0);
            }
            Step::EndRights { token } => {
                assert!(find_live(&self.observed).is_none(), "rights end after logins");
                let state = self.state();
                (state.revoked, state.pending) = (Some(token), None);
                (state.rotated_at, state.published, state.delivered) = (None, 0, 0);
            }
            Step::CloseRequest { token } => self.state().done = Some(token),
            Step::Seal => {
                let database = self.database();
                (database.is_open, database.sessions) = (false, 0);
            }
            Step::Rename => {
                assert_eq!(self.observed.quarantined, NameState::Free);
                self.observed.quarantined = std::mem::take(&mut self.observed.database);
            }
            Step::StartQuarantine => self.quarantined_at = Some(now),
            Step::ForgetLogins => self.state = None,
            Step::DropDatabase { is_renamed } => {
                let place =
                    if is_renamed { &mut self.observed.quarantined } else { &mut self.observed.database };
                assert!(std::mem::take(place).ours().is_some());
            }
            Step::DropUser(user) => {
                let place = &mut self.observed.users[usize::from(user == User::B)];
                assert!(std::mem::take(place).ours().is_some_and(|found| !found.can_log_in));
            }
            Step::DropGroup(access) => {
                let at = RoleAccess::BOTH.iter().position(|one| *one == access).expect("one of two");
                assert!(std::mem::take(&mut self.observed.groups[at]).ours().is_some());
            }
            Step::DropOwner => assert!(std::mem::take(&mut self.observed.owner).ours().is_some()),
            Step::Forget => self.is_forgotten = true,
            Step::Wait { .. } | Step::Refuse(_) => {}
        }
    }

    /// Delivers the published login to the application.
    fn deliver(&mut self) {
        if let Some(state) = &mut self.state {
            state.delivered = state.published;
        }
    }

    /// Whether the login that the application holds works.
    fn login_works(&self) -> bool {
        let Some(held) = self.state.as_ref().map(|state| state.delivered).filter(|held| *held > 0) else {
            return false;
        };
        User::BOTH.into_iter().any(|user| {
            self.observed.user(user).ours().is_some_and(|found| found.generation == held && found.can_log_in)
        })
    }

    fn serving(dialect: Dialect) -> Harness {
        let mut harness = Harness::new(dialect);
        harness.settle(DesiredState::Serve);
        harness.steps.clear();
        harness
    }
}

const DIALECTS: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];

#[test]
fn a_claim_gets_its_database_in_order() {
    let mut harness = Harness::new(Dialect::Postgresql);
    let rest = harness.settle(DesiredState::Serve);
    assert_eq!(
        harness.steps,
        [
            Step::CreateOwner,
            Step::CreateUser(User::A),
            Step::CreateUser(User::B),
            Step::CreateDatabase,
            Step::SetUp { is_first: true },
            Step::RecordMade,
            Step::StorePending { user: User::A, generation: 1, answers: None },
            Step::SetPassword(Pending { user: User::A, generation: 1 }),
            Step::Publish(Pending { user: User::A, generation: 1 }),
            Step::Promote(Pending { user: User::A, generation: 1 }),
        ]
    );
    assert_eq!(rest, Step::Wait { until: Time(2 * HOUR), why: None });
    assert!(harness.login_works());
}

#[test]
fn a_rotation_takes_the_spare_user_and_waits_for_its_sessions() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.now = Time(3 * HOUR);
    harness.user(User::B).sessions = 2;
    let waits = |harness: &mut Harness| match harness.settle(DesiredState::Serve) {
        Step::Wait { until, why: Some(why) } => (until, why),
        step => panic!("it does not wait: {step:?}"),
    };
    let (later, why) = waits(&mut harness);
    assert!(why.contains("2 sessions"), "{why}");
    harness.request = Request::read("soft-1");
    assert!(waits(&mut harness).0 < later, "the user who requested the rotation waits for it");
    harness.request = None;
    harness.user(User::B).sessions = 0;
    harness.user(User::A).sessions = 9;
    harness.settle(DesiredState::Serve);
    let user = User::B;
    assert_eq!(
        harness.steps,
        [
            Step::StorePending { user, generation: 2, answers: None },
            Step::SetPassword(Pending { user, generation: 2 }),
            Step::Publish(Pending { user, generation: 2 }),
            Step::Promote(Pending { user, generation: 2 }),
        ]
    );
    assert!(harness.user(User::A).can_log_in, "who has not heard yet still gets in");
}

#[test]
fn a_leak_ends_every_login_first_then_another_is_published() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.request = Request::read("hard-1");
    (harness.user(User::B).can_log_in, harness.user(User::B).sessions) = (true, 3);
    harness.settle(DesiredState::Serve);
    let user = User::B;
    assert_eq!(
        harness.steps,
        [
            Step::Revoke(User::A),
            Step::Revoke(User::B),
            Step::EndRights { token: "hard-1".to_owned() },
            Step::StorePending { user, generation: 2, answers: Some("hard-1".to_owned()) },
            Step::SetPassword(Pending { user, generation: 2 }),
            Step::Publish(Pending { user, generation: 2 }),
            Step::Promote(Pending { user, generation: 2 }),
            Step::CloseRequest { token: "hard-1".to_owned() },
        ]
    );
    assert!(harness.login_works() && !harness.user(User::A).can_log_in);
    harness.steps.clear();
    harness.settle(DesiredState::Serve);
    assert_eq!(harness.steps, [], "once is enough");
}

#[test]
fn a_lost_login_is_restored_and_none_ends_before_its_successor_arrives() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.user(User::A).can_log_in = false;
    harness.settle(DesiredState::Serve);
    assert_eq!(harness.steps, [Step::SetPassword(Pending { user: User::A, generation: 1 })]);
    harness.request = Request::read("soft-1");
    harness.state().delivered = 0;
    let Step::Wait { why: Some(why), .. } = harness.next(DesiredState::Serve) else {
        panic!("it does not wait")
    };
    assert!(why.contains("the Secret of its application"), "{why}");
}

#[test]
fn a_hard_request_waits_for_nothing_that_a_tenant_controls() {
    type Obstacle = (&'static str, fn(&mut Harness));
    let obstacles: [Obstacle; 6] = [
        ("nothing", |_| {}),
        ("another set-up, which the server may refuse", |harness| harness.desired.connection_limit = Some(7)),
        ("the database is gone", |harness| harness.observed.database = NameState::Free),
        ("the database is sealed", |harness| harness.database().is_open = false),
        ("a change is on its way", |harness| {
            let pending = Pending { user: User::B, generation: 2 };
            harness.state().pending = Some(pending);
            (harness.user(User::B).can_log_in, harness.user(User::B).generation) = (true, 2);
        }),
        ("sessions on the other login", |harness| harness.user(User::B).sessions = 4),
    ];
    for dialect in DIALECTS {
        for (what, obstacle) in obstacles {
            let mut harness = Harness::serving(dialect);
            obstacle(&mut harness);
            harness.request = Request::read("hard-1");
            harness.state().delivered = 0;
            while harness.state().revoked.is_none() {
                let step = harness.next(DesiredState::Serve);
                assert!(step.revokes(), "{what}: {step:?} comes before the end of the leaked login");
                harness.carry_out(&step);
            }
            // A later request must not restore it either.
            harness.request = Request::read(if dialect == Dialect::Mariadb { "soft-2" } else { "hard-1" });
            // The published login is never delivered, and every step that can fail fails once.
            for _ in 0..12 {
                let step = harness.next(DesiredState::Serve);
                harness.carry_out(&step);
                let leaked = harness.observed.users.iter().filter_map(NameState::ours);
                let leaked: Vec<_> = leaked.filter(|user| user.can_log_in && user.generation <= 1).collect();
                assert!(leaked.is_empty(), "{what}: {leaked:?} after {step:?}");
            }
            assert!(harness.state().done.is_none(), "{what}: it is not carried out before the delivery");
            if what == "the database is gone" || dialect == Dialect::Mariadb {
                continue;
            }
            let Step::Wait { why: Some(why), .. } = harness.next(DesiredState::Serve) else {
                panic!("{what}: it waits")
            };
            assert_eq!(why, UNDELIVERED_HARD, "{what}");
            harness.settle(DesiredState::Serve);
            assert!(
                harness.state().done.is_some() && harness.login_works(),
                "{what}: it ends with the delivery"
            );
        }
    }
}

#[test]
fn a_failing_set_up_holds_up_no_rotation() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.desired.connection_limit = Some(7);
    harness.now = Time(3 * HOUR);
    let user = User::B;
    assert_eq!(harness.next(DesiredState::Serve), Step::StorePending { user, generation: 2, answers: None });
    harness.settle(DesiredState::Serve);
    assert_eq!(harness.steps.last(), Some(&Step::SetUp { is_first: false }), "{:?}", harness.steps);
}

#[test]
fn an_invalid_spec_stops_no_login_and_changes_nothing_inside() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.desired.connection_limit = Some(7);
    harness.desired.unread = Some("spec.parameters.extensions: ...".to_owned());
    harness.request = Request::read("soft-1");
    harness.settle(DesiredState::Serve);
    assert!(!harness.steps.iter().any(|step| matches!(step, Step::SetUp { .. })), "{:?}", harness.steps);
    assert!(
        harness.steps.contains(&Step::CloseRequest { token: "soft-1".to_owned() }),
        "{:?}",
        harness.steps
    );
    harness.desired.unread = None;
    assert_eq!(harness.next(DesiredState::Serve), Step::SetUp { is_first: false }, "once they can be");
}

#[test]
fn the_end_of_a_database_by_policy() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.settle(DesiredState::Retain);
    assert_eq!(harness.steps, [Step::Revoke(User::A), Step::ForgetLogins]);
    let mut harness = Harness::serving(Dialect::Postgresql);
    let waits = harness.settle(DesiredState::Quarantine(None));
    let quarantine =
        [Step::Revoke(User::A), Step::Seal, Step::Rename, Step::ForgetLogins, Step::StartQuarantine];
    assert_eq!(harness.steps, quarantine);
    assert_eq!(waits, Step::Wait { until: Time(2 * HOUR), why: None });
    harness.steps.clear();
    let mut kept = harness.clone();
    harness.settle(DesiredState::Drop);
    assert_eq!(
        harness.steps,
        [
            Step::DropDatabase { is_renamed: true },
            Step::DropUser(User::A),
            Step::DropUser(User::B),
            Step::DropOwner,
            Step::Forget,
        ]
    );
    // A user requested to restore it, and a claim uses it again.
    kept.settle(DesiredState::Retain);
    assert_eq!(kept.steps, [Step::Restore { is_renamed: true }]);
    kept.settle(DesiredState::Serve);
    assert!(kept.login_works());
}

#[test]
fn sessions_past_the_deadline_are_reported_or_ended() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    let active = harness.state().active.expect("it has a login");
    harness.user(active.other()).sessions = 2;
    let due = harness.state().rotated_at.expect("it has a login").plus_ms(HOUR);
    for (now, is_due, is_overdue) in
        [(due.0 - 1, false, false), (due.0, true, false), (due.0 + HOUR, true, true)]
    {
        harness.now = Time(now);
        assert_eq!(super::is_due(HOUR, harness.state.as_ref(), harness.now), is_due);
        assert_eq!(
            super::is_overdue((HOUR, harness.desired.deadline), harness.state.as_ref(), harness.now),
            is_overdue
        );
        assert!(matches!(harness.settle(DesiredState::Serve), Step::Wait { .. }));
        assert_eq!(harness.steps, [], "they go on where nothing else was said");
    }
    harness.desired.deadline.ends_sessions = true;
    harness.now = Time(due.0 + HOUR - 1);
    harness.settle(DesiredState::Serve);
    assert_eq!(harness.steps, [], "not before the deadline");
    harness.now = Time(due.0 + HOUR);
    harness.settle(DesiredState::Serve);
    assert_eq!(harness.steps.first(), Some(&Step::Revoke(active.other())));
    assert_eq!(harness.state().active, Some(active.other()), "then the login changes");
    assert!(harness.login_works());
}

#[test]
fn what_its_owner_changed_is_restored_before_a_rotation() {
    let limits = |connections, is_template, owner_connects| {
        Some(ObservedLimits { connections, is_template, owner_connects })
    };
    for changed in [
        limits(Some(0), false, true),
        limits(None, false, true),
        limits(Some(7), true, true),
        limits(Some(7), false, false),
    ] {
        let mut harness = Harness::serving(Dialect::Postgresql);
        harness.desired.connection_limit = Some(7);
        harness.database().set_up = harness.desired.set_up();
        harness.database().limits = changed.clone();
        harness.now = Time(3 * HOUR);
        harness.settle(DesiredState::Serve);
        assert_eq!(harness.steps.first(), Some(&Step::PutBackLimits), "{changed:?}");
        assert_eq!(
            harness.steps.iter().filter(|step| **step == Step::PutBackLimits).count(),
            1,
            "{changed:?}"
        );
        assert!(harness.login_works());
        // A leak ends the login before that.
        harness.database().limits = changed;
        harness.request = Request::read("hard-1");
        assert!(harness.next(DesiredState::Serve).revokes());
    }
}

#[test]
fn a_lost_database_is_not_replaced_by_an_empty_one() {
    let mut harness = Harness::serving(Dialect::Postgresql);
    harness.observed.database = NameState::Free;
    assert_eq!(harness.settle(DesiredState::Serve), Step::Refuse(Refusal::Gone));
    assert_eq!(harness.steps, []);
}

#[test]
fn nothing_is_created_where_an_existing_database_is_missing() {
    for dialect in DIALECTS {
        let mut harness = Harness::serving(dialect);
        harness.observed = Observed::default();
        assert_eq!(harness.settle(DesiredState::Serve), Step::Refuse(Refusal::Gone), "{dialect:?}");
        assert_eq!(harness.steps, [], "{dialect:?}");
    }
}

#[test]
fn what_was_never_created_is_neither_kept_nor_quarantined() {
    for (dialect, desired_state) in DIALECTS.into_iter().flat_map(|d| {
        [DesiredState::Retain, DesiredState::Quarantine(None)].map(|desired_state| (d, desired_state))
    }) {
        let mut harness = Harness::new(dialect);
        harness.observed.database = NameState::Foreign(ForeignOwner::Another("other".to_owned()));
        harness.settle(desired_state);
        assert!(harness.is_forgotten, "{desired_state:?}");
        assert!(
            harness.observed.database.foreign_owner().is_some(),
            "and nothing happens to what is another's"
        );
        // An existing database is kept, whatever the LogicalDatabase says.
        let mut harness = Harness::serving(dialect);
        harness.desired.was_made = false;
        harness.settle(desired_state);
        assert!(
            !harness.is_forgotten
                && (harness.observed.database.ours().or(harness.observed.quarantined.ours())).is_some()
        );
    }
}

#[test]
fn an_engine_without_owners_names_none_as_taken() {
    let mut harness = Harness::new(Dialect::Mariadb);
    harness.observed.owner = NameState::Foreign(ForeignOwner::Another("other".to_owned()));
    let Step::Refuse(refusal) = harness.settle(DesiredState::Serve) else { panic!("it is taken") };
    assert!(refusal.to_string().starts_with("database "), "{refusal}");
}

fn place<T: Clone + std::fmt::Debug + 'static>(
    ours: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = NameState<T>> {
    let strangers =
        [ForeignOwner::Unmarked, ForeignOwner::Another("other".to_owned())].map(NameState::Foreign);
    prop_oneof![
        Just(NameState::Free),
        proptest::sample::select(strangers.to_vec()),
        ours.prop_map(NameState::Ours)
    ]
}

fn any_seen() -> impl Strategy<Value = Observed> {
    let user = || {
        let parts = (0..4_u64, any::<bool>(), 0..3_u64);
        place(parts.prop_map(|(generation, can_log_in, sessions)| ObservedUser {
            generation,
            can_log_in,
            sessions,
        }))
    };
    let database = || {
        let parts = (any::<bool>(), 0..3_u64);
        place(parts.prop_map(|(is_open, sessions)| ObservedDatabase {
            is_open,
            sessions,
            ..ObservedDatabase::default()
        }))
    };
    let group = || place(Just(()));
    (place(Just(())), group(), group(), user(), user(), database(), database()).prop_map(
        |(owner, r, w, a, b, database, quarantined)| Observed {
            owner,
            groups: [r, w],
            users: [a, b],
            database,
            quarantined,
            open: None,
        },
    )
}

#[test]
fn a_name_that_the_servers_grants_open_is_not_taken() {
    let grant = OpenGrant { pattern: "test\\_%".to_owned(), user: "PUBLIC".to_owned(), host: String::new() };
    let mut harness = Harness::new(Dialect::Mariadb);
    harness.observed.open = Some(grant.clone());
    let name = harness.desired.names.database.clone();
    assert_eq!(
        harness.settle(DesiredState::Serve),
        Step::Refuse(Refusal::Open { name, grant: grant.clone() })
    );
    assert!(harness.observed.has_nothing_of_ours(), "nothing is made");
    // An existing database keeps its logins.
    let mut harness = Harness::new(Dialect::Mariadb);
    harness.settle(DesiredState::Serve);
    harness.observed.open = Some(grant);
    harness.settle(DesiredState::Serve);
    assert!(harness.login_works());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The harness panics where a step touches a foreign object.
    #[test]
    fn nothing_foreign_is_touched_and_every_desired_state_is_reached(
        observed in any_seen(), was_made: bool, desired_state in 0..4_usize, dialect in 0..2_usize,
    ) {
        let desired_state = [DesiredState::Serve, DesiredState::Retain, DesiredState::Quarantine(None), DesiredState::Drop][desired_state];
        let mut harness = Harness::new(DIALECTS[dialect]);
        let foreign = |observed: &Observed| {
            let users = observed.users.iter().filter(|user| user.foreign_owner().is_some()).count();
            let databases = [&observed.database, &observed.quarantined];
            users + databases.iter().filter(|d| d.foreign_owner().is_some()).count()
                + usize::from(observed.owner.foreign_owner().is_some())
        };
        let before = foreign(&observed);
        harness.desired.was_made = was_made;
        harness.observed = observed;
        let end = harness.settle(desired_state);
        prop_assert_eq!(foreign(&harness.observed), before);
        match desired_state {
            DesiredState::Serve if !matches!(end, Step::Refuse(_)) => prop_assert!(harness.login_works()),
            DesiredState::Serve => {}
            DesiredState::Retain | DesiredState::Quarantine(_) => prop_assert!(find_live(&harness.observed).is_none()),
            DesiredState::Drop => {
                prop_assert!(harness.is_forgotten && harness.observed.database.ours().is_none());
                prop_assert!(harness.observed.users.iter().all(|user| user.ours().is_none()));
            }
        }
    }

    /// I8: whatever is requested, however many sessions are open and however late it is delivered, the login that the
    /// application holds works after every step; only a leak ends it, and then every earlier login is dead until the next
    /// is delivered.
    #[test]
    fn the_login_that_the_application_holds_works_at_every_moment(
        acts in proptest::collection::vec((0..5_u8, 0..3_u64), 1..12), dialect in 0..2_usize,
    ) {
        let mut harness = Harness::serving(DIALECTS[dialect]);
        let mut leaked = 0;
        for (count, (act, sessions)) in acts.into_iter().enumerate() {
            match act {
                0 => harness.now = harness.now.plus_ms(HOUR),
                1 => harness.request = Request::read(&format!("soft-{count}")),
                2 => {
                    harness.request = Request::read(&format!("hard-{count}"));
                    leaked = harness.observed.users.iter().filter_map(NameState::ours).map(|user| user.generation).max().unwrap_or(0);
                }
                3 => harness.deliver(),
                _ => harness.user(User::B).sessions = sessions,
            }
            for _ in 0..20 {
                let step = harness.next(DesiredState::Serve);
                if matches!(step, Step::Wait { .. }) {
                    break;
                }
                harness.carry_out(&step);
                let held = harness.state().delivered;
                prop_assert!(harness.login_works() || held <= leaked, "after {:?}", step);
                let revoked = harness.state().revoked.clone();
                if harness.request.as_ref().is_some_and(|request| revoked.as_ref() == Some(&request.token)) {
                    let mut users = harness.observed.users.iter().filter_map(NameState::ours);
                    prop_assert!(users.all(|user| !user.can_log_in || user.generation > leaked), "after {:?}", step);
                }
            }
        }
    }
}
