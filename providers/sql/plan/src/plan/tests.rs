//! The plan against a server in memory that does what each step says: whatever was there before and wherever it is
//! interrupted, it arrives, nobody's things are touched, and the published login works at every moment.

use super::*;
use crate::names::Names;
use crate::rules::Deadline;
use crate::seen::{OpenGrant, Stranger};
use crate::sql::Dialect;
use conductor::api::database::role::RoleAccess;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;

fn wanted(dialect: Dialect) -> Wanted {
    Wanted {
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

/// A server, the Secrets and the record, as far as steps change them.
#[derive(Clone, Debug)]
struct Lab {
    wanted: Wanted,
    seen: Seen,
    ledger: Option<Ledger>,
    request: Option<Request>,
    quarantined_at: Option<Time>,
    is_forgotten: bool,
    now: Time,
    steps: Vec<Step>,
}

impl Lab {
    fn new(dialect: Dialect) -> Lab {
        Lab {
            wanted: wanted(dialect),
            seen: Seen::default(),
            ledger: None,
            request: None,
            quarantined_at: None,
            is_forgotten: false,
            now: Time(HOUR),
            steps: Vec::new(),
        }
    }

    fn next(&self, goal: Goal) -> Step {
        next_step(goal, &self.wanted, &self.seen, self.ledger.as_ref(), self.request.as_ref(), self.now)
    }

    /// Goes on until there is nothing to do.
    fn settle(&mut self, goal: Goal) -> Step {
        for _ in 0..50 {
            let goal = match (goal, self.quarantined_at) {
                (Goal::Quarantine(None), Some(since)) => Goal::Quarantine(Some(since.plus_ms(HOUR))),
                (goal, _) => goal,
            };
            self.deliver();
            let step = self.next(goal);
            if matches!(step, Step::Wait { .. } | Step::Refuse(_)) || self.is_forgotten {
                return step;
            }
            self.carry_out(&step);
            self.steps.push(step);
        }
        panic!("it never ends: {:?}", self.steps);
    }

    fn user(&mut self, user: User) -> &mut SeenUser {
        match &mut self.seen.users[usize::from(user == User::B)] {
            Place::Ours(found) => found,
            other => panic!("{user:?} is touched and is {other:?}"),
        }
    }

    fn database(&mut self) -> &mut SeenDatabase {
        match &mut self.seen.database {
            Place::Ours(found) => found,
            other => panic!("the database is touched and is {other:?}"),
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        self.ledger.get_or_insert_default()
    }

    fn carry_out(&mut self, step: &Step) {
        let now = self.now;
        match step.clone() {
            Step::CreateOwner => {
                assert_eq!(std::mem::replace(&mut self.seen.owner, Place::Ours(())), Place::Free);
            }
            Step::CreateUser(user) => {
                let place = &mut self.seen.users[usize::from(user == User::B)];
                assert_eq!(std::mem::replace(place, Place::Ours(SeenUser::default())), Place::Free);
            }
            Step::CreateDatabase => {
                let new = SeenDatabase { is_open: true, ..SeenDatabase::default() };
                assert_eq!(std::mem::replace(&mut self.seen.database, Place::Ours(new)), Place::Free);
            }
            Step::SetUp { .. } => self.database().set_up = self.wanted.set_up(),
            Step::PutBackLimits => {
                let limits = SeenLimits {
                    connections: self.wanted.connection_limit,
                    is_template: false,
                    owner_connects: true,
                };
                self.database().limits = Some(limits);
            }
            Step::RecordMade => self.wanted.was_made = true,
            Step::Restore { is_renamed } => {
                if is_renamed {
                    assert_eq!(self.seen.database, Place::Free);
                    self.seen.database = std::mem::take(&mut self.seen.quarantined);
                }
                self.database().is_open = true;
            }
            Step::StorePending { user, generation, answers } => {
                let ledger = self.ledger();
                ledger.pending = Some(Pending { user, generation });
                ledger.answered = answers;
            }
            Step::SetPassword { user, generation } => {
                let found = self.user(user);
                (found.generation, found.can_log_in) = (generation, true);
            }
            Step::Publish { user, generation } => {
                assert!(self.user(user).can_log_in && self.user(user).generation == generation);
                self.ledger().published = generation;
            }
            Step::Promote { user, generation } => {
                let ledger = self.ledger();
                (ledger.active, ledger.generation) = (Some(user), generation);
                (ledger.rotated_at, ledger.pending) = (Some(now), None);
            }
            Step::Revoke(user) => {
                let found = self.user(user);
                (found.can_log_in, found.sessions) = (false, 0);
            }
            Step::EndRights { token } => {
                assert!(find_live(&self.seen).is_none(), "rights end after logins");
                let ledger = self.ledger();
                (ledger.revoked, ledger.pending) = (Some(token), None);
                (ledger.rotated_at, ledger.published, ledger.delivered) = (None, 0, 0);
            }
            Step::CloseRequest { token } => self.ledger().done = Some(token),
            Step::Seal => {
                let database = self.database();
                (database.is_open, database.sessions) = (false, 0);
            }
            Step::Rename => {
                assert_eq!(self.seen.quarantined, Place::Free);
                self.seen.quarantined = std::mem::take(&mut self.seen.database);
            }
            Step::StartQuarantine => self.quarantined_at = Some(now),
            Step::ForgetLogins => self.ledger = None,
            Step::DropDatabase { is_renamed } => {
                let place = if is_renamed { &mut self.seen.quarantined } else { &mut self.seen.database };
                assert!(std::mem::take(place).ours().is_some());
            }
            Step::DropUser(user) => {
                let place = &mut self.seen.users[usize::from(user == User::B)];
                assert!(std::mem::take(place).ours().is_some_and(|found| !found.can_log_in));
            }
            Step::DropGroup(access) => {
                let at = RoleAccess::BOTH.iter().position(|one| *one == access).expect("one of two");
                assert!(std::mem::take(&mut self.seen.groups[at]).ours().is_some());
            }
            Step::DropOwner => assert!(std::mem::take(&mut self.seen.owner).ours().is_some()),
            Step::Forget => self.is_forgotten = true,
            Step::Wait { .. } | Step::Refuse(_) => {}
        }
    }

    /// What is published reaches the application.
    fn deliver(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.delivered = ledger.published;
        }
    }

    /// The login that the application holds works.
    fn login_works(&self) -> bool {
        let Some(held) = self.ledger.as_ref().map(|ledger| ledger.delivered).filter(|held| *held > 0) else {
            return false;
        };
        User::BOTH.into_iter().any(|user| {
            self.seen.user(user).ours().is_some_and(|found| found.generation == held && found.can_log_in)
        })
    }

    fn serving(dialect: Dialect) -> Lab {
        let mut lab = Lab::new(dialect);
        lab.settle(Goal::Serve);
        lab.steps.clear();
        lab
    }
}

const DIALECTS: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];

#[test]
fn a_claim_gets_its_database_in_order() {
    let mut lab = Lab::new(Dialect::Postgresql);
    let rest = lab.settle(Goal::Serve);
    assert_eq!(
        lab.steps,
        [
            Step::CreateOwner,
            Step::CreateUser(User::A),
            Step::CreateUser(User::B),
            Step::CreateDatabase,
            Step::SetUp { is_first: true },
            Step::RecordMade,
            Step::StorePending { user: User::A, generation: 1, answers: None },
            Step::SetPassword { user: User::A, generation: 1 },
            Step::Publish { user: User::A, generation: 1 },
            Step::Promote { user: User::A, generation: 1 },
        ]
    );
    assert_eq!(rest, Step::Wait { until: Time(2 * HOUR), why: None });
    assert!(lab.login_works());
}

#[test]
fn a_change_takes_the_user_that_is_not_in_use_and_waits_for_its_sessions() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.now = Time(3 * HOUR);
    lab.user(User::B).sessions = 2;
    let waits = |lab: &mut Lab| match lab.settle(Goal::Serve) {
        Step::Wait { until, why: Some(why) } => (until, why),
        step => panic!("it does not wait: {step:?}"),
    };
    let (later, why) = waits(&mut lab);
    assert!(why.contains("2 sessions"), "{why}");
    lab.request = Request::read("soft-1");
    assert!(waits(&mut lab).0 < later, "who asked for the change waits for it");
    lab.request = None;
    lab.user(User::B).sessions = 0;
    lab.user(User::A).sessions = 9;
    lab.settle(Goal::Serve);
    let user = User::B;
    assert_eq!(
        lab.steps,
        [
            Step::StorePending { user, generation: 2, answers: None },
            Step::SetPassword { user, generation: 2 },
            Step::Publish { user, generation: 2 },
            Step::Promote { user, generation: 2 },
        ]
    );
    assert!(lab.user(User::A).can_log_in, "who has not heard yet still gets in");
}

#[test]
fn a_leak_ends_every_login_first_then_another_is_published() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.request = Request::read("hard-1");
    (lab.user(User::B).can_log_in, lab.user(User::B).sessions) = (true, 3);
    lab.settle(Goal::Serve);
    let user = User::B;
    assert_eq!(
        lab.steps,
        [
            Step::Revoke(User::A),
            Step::Revoke(User::B),
            Step::EndRights { token: "hard-1".to_owned() },
            Step::StorePending { user, generation: 2, answers: Some("hard-1".to_owned()) },
            Step::SetPassword { user, generation: 2 },
            Step::Publish { user, generation: 2 },
            Step::Promote { user, generation: 2 },
            Step::CloseRequest { token: "hard-1".to_owned() },
        ]
    );
    assert!(lab.login_works() && !lab.user(User::A).can_log_in);
    lab.steps.clear();
    lab.settle(Goal::Serve);
    assert_eq!(lab.steps, [], "once is enough");
}

#[test]
fn what_somebody_took_away_is_given_back_and_nothing_ends_before_its_successor_is_delivered() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.user(User::A).can_log_in = false;
    lab.settle(Goal::Serve);
    assert_eq!(lab.steps, [Step::SetPassword { user: User::A, generation: 1 }]);
    lab.request = Request::read("soft-1");
    lab.ledger().delivered = 0;
    let Step::Wait { why: Some(why), .. } = lab.next(Goal::Serve) else { panic!("it does not wait") };
    assert!(why.contains("the Secret of its application"), "{why}");
}

#[test]
fn a_hard_request_waits_for_nothing_that_a_tenant_controls() {
    type Obstacle = (&'static str, fn(&mut Lab));
    let obstacles: [Obstacle; 6] = [
        ("nothing", |_| {}),
        ("another set-up, which the server may refuse", |lab| lab.wanted.connection_limit = Some(7)),
        ("the database is gone", |lab| lab.seen.database = Place::Free),
        ("the database is sealed", |lab| lab.database().is_open = false),
        ("a change is on its way", |lab| {
            let pending = Pending { user: User::B, generation: 2 };
            lab.ledger().pending = Some(pending);
            (lab.user(User::B).can_log_in, lab.user(User::B).generation) = (true, 2);
        }),
        ("sessions on the other login", |lab| lab.user(User::B).sessions = 4),
    ];
    for dialect in DIALECTS {
        for (what, obstacle) in obstacles {
            let mut lab = Lab::serving(dialect);
            obstacle(&mut lab);
            lab.request = Request::read("hard-1");
            lab.ledger().delivered = 0;
            while lab.ledger().revoked.is_none() {
                let step = lab.next(Goal::Serve);
                assert!(step.revokes(), "{what}: {step:?} comes before the end of the leaked login");
                lab.carry_out(&step);
            }
            // A later request must not restore it either.
            lab.request = Request::read(if dialect == Dialect::Mariadb { "soft-2" } else { "hard-1" });
            // What is published is never delivered, and every step that can fail has failed once.
            for _ in 0..12 {
                let step = lab.next(Goal::Serve);
                lab.carry_out(&step);
                let leaked = lab.seen.users.iter().filter_map(Place::ours);
                let leaked: Vec<_> = leaked.filter(|user| user.can_log_in && user.generation <= 1).collect();
                assert!(leaked.is_empty(), "{what}: {leaked:?} after {step:?}");
            }
            assert!(lab.ledger().done.is_none(), "{what}: it is not carried out before the delivery");
            if what == "the database is gone" || dialect == Dialect::Mariadb {
                continue;
            }
            let Step::Wait { why: Some(why), .. } = lab.next(Goal::Serve) else { panic!("{what}: it waits") };
            assert_eq!(why, UNDELIVERED_HARD, "{what}");
            lab.settle(Goal::Serve);
            assert!(lab.ledger().done.is_some() && lab.login_works(), "{what}: it ends with the delivery");
        }
    }
}

#[test]
fn a_set_up_that_fails_holds_up_no_change_of_login() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.wanted.connection_limit = Some(7);
    lab.now = Time(3 * HOUR);
    let user = User::B;
    assert_eq!(lab.next(Goal::Serve), Step::StorePending { user, generation: 2, answers: None });
    lab.settle(Goal::Serve);
    assert_eq!(lab.steps.last(), Some(&Step::SetUp { is_first: false }), "{:?}", lab.steps);
}

#[test]
fn words_that_cannot_be_honoured_stop_no_login_and_change_nothing_inside() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.wanted.connection_limit = Some(7);
    lab.wanted.unread = Some("spec.parameters.extensions: ...".to_owned());
    lab.request = Request::read("soft-1");
    lab.settle(Goal::Serve);
    assert!(!lab.steps.iter().any(|step| matches!(step, Step::SetUp { .. })), "{:?}", lab.steps);
    assert!(lab.steps.contains(&Step::CloseRequest { token: "soft-1".to_owned() }), "{:?}", lab.steps);
    lab.wanted.unread = None;
    assert_eq!(lab.next(Goal::Serve), Step::SetUp { is_first: false }, "once they can be");
}

#[test]
fn the_end_of_a_database_by_policy() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.settle(Goal::Retain);
    assert_eq!(lab.steps, [Step::Revoke(User::A), Step::ForgetLogins]);
    let mut lab = Lab::serving(Dialect::Postgresql);
    let waits = lab.settle(Goal::Quarantine(None));
    let quarantine =
        [Step::Revoke(User::A), Step::Seal, Step::Rename, Step::ForgetLogins, Step::StartQuarantine];
    assert_eq!(lab.steps, quarantine);
    assert_eq!(waits, Step::Wait { until: Time(2 * HOUR), why: None });
    lab.steps.clear();
    let mut kept = lab.clone();
    lab.settle(Goal::Drop);
    assert_eq!(
        lab.steps,
        [
            Step::DropDatabase { is_renamed: true },
            Step::DropUser(User::A),
            Step::DropUser(User::B),
            Step::DropOwner,
            Step::Forget,
        ]
    );
    // Somebody asked for it back, and a claim uses it again.
    kept.settle(Goal::Retain);
    assert_eq!(kept.steps, [Step::Restore { is_renamed: true }]);
    kept.settle(Goal::Serve);
    assert!(kept.login_works());
}

#[test]
fn sessions_past_the_deadline_are_reported_or_ended() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    let active = lab.ledger().active.expect("it has a login");
    lab.user(active.other()).sessions = 2;
    let due = lab.ledger().rotated_at.expect("it has a login").plus_ms(HOUR);
    for (now, is_due, is_overdue) in
        [(due.0 - 1, false, false), (due.0, true, false), (due.0 + HOUR, true, true)]
    {
        lab.now = Time(now);
        assert_eq!(super::is_due(HOUR, lab.ledger.as_ref(), lab.now), is_due);
        assert_eq!(super::is_overdue((HOUR, lab.wanted.deadline), lab.ledger.as_ref(), lab.now), is_overdue);
        assert!(matches!(lab.settle(Goal::Serve), Step::Wait { .. }));
        assert_eq!(lab.steps, [], "they go on where nothing else was said");
    }
    lab.wanted.deadline.ends_sessions = true;
    lab.now = Time(due.0 + HOUR - 1);
    lab.settle(Goal::Serve);
    assert_eq!(lab.steps, [], "not before the deadline");
    lab.now = Time(due.0 + HOUR);
    lab.settle(Goal::Serve);
    assert_eq!(lab.steps.first(), Some(&Step::Revoke(active.other())));
    assert_eq!(lab.ledger().active, Some(active.other()), "then the login changes");
    assert!(lab.login_works());
}

#[test]
fn what_its_owner_changed_of_a_database_is_put_back_before_a_login_changes() {
    let limits = |connections, is_template, owner_connects| {
        Some(SeenLimits { connections, is_template, owner_connects })
    };
    for changed in [
        limits(Some(0), false, true),
        limits(None, false, true),
        limits(Some(7), true, true),
        limits(Some(7), false, false),
    ] {
        let mut lab = Lab::serving(Dialect::Postgresql);
        lab.wanted.connection_limit = Some(7);
        lab.database().set_up = lab.wanted.set_up();
        lab.database().limits = changed.clone();
        lab.now = Time(3 * HOUR);
        lab.settle(Goal::Serve);
        assert_eq!(lab.steps.first(), Some(&Step::PutBackLimits), "{changed:?}");
        assert_eq!(lab.steps.iter().filter(|step| **step == Step::PutBackLimits).count(), 1, "{changed:?}");
        assert!(lab.login_works());
        // A leak ends the login before that.
        lab.database().limits = changed;
        lab.request = Request::read("hard-1");
        assert!(lab.next(Goal::Serve).revokes());
    }
}

#[test]
fn a_database_that_is_gone_is_not_replaced_by_an_empty_one() {
    let mut lab = Lab::serving(Dialect::Postgresql);
    lab.seen.database = Place::Free;
    assert_eq!(lab.settle(Goal::Serve), Step::Refuse(Refusal::Gone));
    assert_eq!(lab.steps, []);
}

#[test]
fn nothing_is_made_on_a_server_that_shows_nothing_of_a_made_one() {
    for dialect in DIALECTS {
        let mut lab = Lab::serving(dialect);
        lab.seen = Seen::default();
        assert_eq!(lab.settle(Goal::Serve), Step::Refuse(Refusal::Gone), "{dialect:?}");
        assert_eq!(lab.steps, [], "{dialect:?}");
    }
}

#[test]
fn what_was_never_made_is_neither_kept_nor_quarantined() {
    for (dialect, goal) in
        DIALECTS.into_iter().flat_map(|d| [Goal::Retain, Goal::Quarantine(None)].map(|goal| (d, goal)))
    {
        let mut lab = Lab::new(dialect);
        lab.seen.database = Place::Foreign(Stranger::Another("other".to_owned()));
        lab.settle(goal);
        assert!(lab.is_forgotten, "{goal:?}");
        assert!(lab.seen.database.stranger().is_some(), "and nothing happens to what is another's");
        // What is there is kept, whatever the record says.
        let mut lab = Lab::serving(dialect);
        lab.wanted.was_made = false;
        lab.settle(goal);
        assert!(!lab.is_forgotten && (lab.seen.database.ours().or(lab.seen.quarantined.ours())).is_some());
    }
}

#[test]
fn an_engine_without_owners_names_none_as_taken() {
    let mut lab = Lab::new(Dialect::Mariadb);
    lab.seen.owner = Place::Foreign(Stranger::Another("other".to_owned()));
    let Step::Refuse(refusal) = lab.settle(Goal::Serve) else { panic!("it is taken") };
    assert!(refusal.to_string().starts_with("database "), "{refusal}");
}

fn place<T: Clone + std::fmt::Debug + 'static>(
    ours: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Place<T>> {
    let strangers = [Stranger::Unmarked, Stranger::Another("other".to_owned())].map(Place::Foreign);
    prop_oneof![Just(Place::Free), proptest::sample::select(strangers.to_vec()), ours.prop_map(Place::Ours)]
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let user = || {
        let parts = (0..4_u64, any::<bool>(), 0..3_u64);
        place(parts.prop_map(|(generation, can_log_in, sessions)| SeenUser {
            generation,
            can_log_in,
            sessions,
        }))
    };
    let database = || {
        let parts = (any::<bool>(), 0..3_u64);
        place(parts.prop_map(|(is_open, sessions)| SeenDatabase {
            is_open,
            sessions,
            ..SeenDatabase::default()
        }))
    };
    let group = || place(Just(()));
    (place(Just(())), group(), group(), user(), user(), database(), database()).prop_map(
        |(owner, r, w, a, b, database, quarantined)| Seen {
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
    let mut lab = Lab::new(Dialect::Mariadb);
    lab.seen.open = Some(grant.clone());
    let name = lab.wanted.names.database.clone();
    assert_eq!(lab.settle(Goal::Serve), Step::Refuse(Refusal::Open { name, grant: grant.clone() }));
    assert!(lab.seen.has_nothing_of_ours(), "nothing is made");
    // A database that is there keeps its logins.
    let mut lab = Lab::new(Dialect::Mariadb);
    lab.settle(Goal::Serve);
    lab.seen.open = Some(grant);
    lab.settle(Goal::Serve);
    assert!(lab.login_works());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The lab panics where a step touches what is not ours.
    #[test]
    fn nothing_without_our_mark_is_touched_and_every_goal_is_reached(
        seen in any_seen(), was_made: bool, goal in 0..4_usize, dialect in 0..2_usize,
    ) {
        let goal = [Goal::Serve, Goal::Retain, Goal::Quarantine(None), Goal::Drop][goal];
        let mut lab = Lab::new(DIALECTS[dialect]);
        let foreign = |seen: &Seen| {
            let users = seen.users.iter().filter(|user| user.stranger().is_some()).count();
            let databases = [&seen.database, &seen.quarantined];
            users + databases.iter().filter(|d| d.stranger().is_some()).count()
                + usize::from(seen.owner.stranger().is_some())
        };
        let before = foreign(&seen);
        lab.wanted.was_made = was_made;
        lab.seen = seen;
        let end = lab.settle(goal);
        prop_assert_eq!(foreign(&lab.seen), before);
        match goal {
            Goal::Serve if !matches!(end, Step::Refuse(_)) => prop_assert!(lab.login_works()),
            Goal::Serve => {}
            Goal::Retain | Goal::Quarantine(_) => prop_assert!(find_live(&lab.seen).is_none()),
            Goal::Drop => {
                prop_assert!(lab.is_forgotten && lab.seen.database.ours().is_none());
                prop_assert!(lab.seen.users.iter().all(|user| user.ours().is_none()));
            }
        }
    }

    /// I8: whatever is asked, however many sessions there are and however late it is delivered, the login that the
    /// application holds works after every step; only a leak ends it, and then every login of before it is dead until
    /// the next is delivered.
    #[test]
    fn the_login_that_the_application_holds_works_at_every_moment(
        acts in proptest::collection::vec((0..5_u8, 0..3_u64), 1..12), dialect in 0..2_usize,
    ) {
        let mut lab = Lab::serving(DIALECTS[dialect]);
        let mut leaked = 0;
        for (count, (act, sessions)) in acts.into_iter().enumerate() {
            match act {
                0 => lab.now = lab.now.plus_ms(HOUR),
                1 => lab.request = Request::read(&format!("soft-{count}")),
                2 => {
                    lab.request = Request::read(&format!("hard-{count}"));
                    leaked = lab.seen.users.iter().filter_map(Place::ours).map(|user| user.generation).max().unwrap_or(0);
                }
                3 => lab.deliver(),
                _ => lab.user(User::B).sessions = sessions,
            }
            for _ in 0..20 {
                let step = lab.next(Goal::Serve);
                if matches!(step, Step::Wait { .. }) {
                    break;
                }
                lab.carry_out(&step);
                let held = lab.ledger().delivered;
                prop_assert!(lab.login_works() || held <= leaked, "after {:?}", step);
                let revoked = lab.ledger().revoked.clone();
                if lab.request.as_ref().is_some_and(|request| revoked.as_ref() == Some(&request.token)) {
                    let mut users = lab.seen.users.iter().filter_map(Place::ours);
                    prop_assert!(users.all(|user| !user.can_log_in || user.generation > leaked), "after {:?}", step);
                }
            }
        }
    }
}
