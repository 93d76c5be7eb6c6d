//! One pass over one database: what is to become of it, then step after step until there is nothing to do. A pass may
//! end anywhere and begin anew; what was seen decides, never what was done.

use super::access::Access;
use super::book::{Book, Owners, Undelivered};
use super::clock;
use super::desk::{Desk, login_name, record_name};
use super::figures::Figures;
use super::hold;
use super::notice::NOT_AS_ASKED;
use super::pool::{Pool, Session};
use super::record::{self, Told};
use super::rotation::{Changing, Rotation};
use super::secret::verifier;
use super::server::{self, Server};
use super::trial::require_login;
use super::trouble::{INVALID, Trouble};
use super::work::Round;
use super::world::{self, Assignment, Wake, World, holders};
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::LogicalDatabase;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabaseStatus, ServerRef};
use conductor::api::database::{DELIVERED_IN, ROTATE, UNDELETE};
use conductor::api::reasons::ready::SECRET_CONFLICT;
use conductor::model::Time;
use conductor_sql_plan::front::is_secret_name;
use conductor_sql_plan::goal::End;
use conductor_sql_plan::ledger::Request;
use conductor_sql_plan::names::Names;
use conductor_sql_plan::plan::{UNDELIVERED, UNDELIVERED_HARD};
use conductor_sql_plan::rules::chosen;
use conductor_sql_plan::sql::{Extras, statements};
use conductor_sql_plan::{Goal, Holder, Refusal, Seen, Step, Wanted, find_goal, next_step};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The reason of a record whose database was there and is not: whoever asks for it back is told.
pub(super) const GONE: &str = "Gone";
const NOTHING_LEFT: &str = ": there is nothing to have back, unless it is restored there";

/// Steps of one pass; more, and something undoes what we do.
const STEPS_MAX: usize = 60;

/// When a database is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// When something changes.
    Rest,
    /// Then, or earlier.
    After(Duration),
}

/// Everything that a pass uses.
#[derive(Clone)]
pub(super) struct Provider {
    pub desk: Desk,
    pub world: World,
    pub pool: Pool,
    pub figures: Figures,
}

/// What is known at the beginning of a pass.
struct Case {
    record: LogicalDatabase,
    goal: Goal,
    server: Server,
    access: Access,
    wanted: Wanted,
    request: Option<Request>,
    /// Whether the claim chooses other names than those on record, under which nothing was ever made.
    is_renamed: bool,
}

impl Round for Provider {
    type Wake = Wake;
    const WHAT: &'static str = "database";

    fn concerned(&self, wake: &Wake) -> BTreeSet<String> {
        self.world.concerned(wake)
    }

    fn is_echo(wake: &Wake) -> bool {
        matches!(wake, Wake::Record(_))
    }

    async fn pass(&self, id: &str) -> Result<Next, Trouble> {
        self.pass_over(id).await
    }

    fn server_of(&self, id: &str) -> Option<ServerRef> {
        self.world.server_of_database(id)
    }

    fn provider(&self) -> &Provider {
        self
    }

    fn turned(&self) {
        self.figures.on_record(self.world.record_count());
    }
}

impl Provider {
    /// One pass over the database of this id.
    async fn pass_over(&self, id: &str) -> Result<Next, Trouble> {
        let begun = Instant::now();
        let found = self.desk.find(&self.desk.records(), &record_name(id)).await?;
        let record = match (found, self.world.assignment(id)) {
            (Some(record), _) => record,
            // Its database was made for a claim before it, and asked back.
            (None, Some(_)) if self.world.has_record_of(id) => return Ok(Next::Rest),
            (None, Some(assignment)) => match self.begin(&assignment).await? {
                Some(record) => record,
                None => return Ok(Next::Rest),
            },
            (None, None) => return Ok(Next::Rest),
        };
        let assignment = self.world.assignment(&record.spec.claim.uid);
        if record.metadata.deletion_timestamp.is_some()
            && assignment.is_none()
            && phase(&record) == Some(DatabasePhase::Retained)
        {
            // An administrator strikes a retained database off the books. It stays where it is.
            record::forget(&self.desk, &record).await?;
            return Ok(Next::Rest);
        }
        let owners = owners(&self.desk.namespace, &record, assignment.as_ref());
        let mut book = Book::open(&self.desk, owners).await?;
        let outcome = self.advance(&record, assignment.as_ref(), &mut book).await;
        if outcome.is_ok() {
            self.figures.loaded(begun.elapsed());
        }
        if let Err(trouble) = &outcome {
            self.tell(&record, &mut book, trouble, assignment.is_some()).await;
        }
        outcome
    }

    /// Where a pass could not go on, the record says why, and so does the claim where there is one.
    async fn tell(&self, record: &LogicalDatabase, book: &mut Book, trouble: &Trouble, is_claimed: bool) {
        if matches!(trouble, Trouble::Conflict | Trouble::NotLeading | Trouble::Api(_)) {
            return;
        }
        let mut message = trouble.to_string();
        // What cannot be told now is told by the next pass.
        if is_claimed {
            drop(book.tell(&self.desk, &message).await);
        }
        // The pass may have written to it.
        let Ok(Some(record)) = self.desk.find(&self.desk.records(), &record.name_any()).await else { return };
        if !is_claimed && matches!(trouble, Trouble::Unreachable(_) | Trouble::Credentials(_)) {
            message.push_str(meanwhile(&record));
        }
        // A change that is due and fails is as late as one that waits.
        let server = server::find(&self.world, &record.spec.server).ok().filter(|_| is_claimed);
        let rotation = server.and_then(|Server { dialect, rules, reference, .. }| {
            let (rotation_ms, deadline) = (rules.rotation_ms, rules.deadline);
            let changing =
                Changing { dialect, id: &record.spec.id, rotation_ms, deadline, server: &reference };
            changing.judge_failed(book.state.as_ref(), &trouble.to_string(), &self.figures)
        });
        let told = Told { phase: None, reason: trouble.reason(), message, rotation };
        let _ = record::tell(&self.desk, &record, told, book.state.as_ref()).await;
    }

    /// Writes the record of a new database, before anything is made; or gives one that was asked back to its claim.
    async fn begin(&self, assignment: &Assignment) -> Result<Option<LogicalDatabase>, Trouble> {
        if let Some(kept) = self.world.undeleted(&assignment.claim, &assignment.server) {
            record::hand_over(&self.desk, &kept, assignment).await?;
            return Ok(None);
        }
        let server = server::find(&self.world, &assignment.server)?;
        let end = (policy(&server, &assignment.resource, &assignment.claim), server.rules.quarantine_minutes);
        hold::hold(self, assignment, end).await?;
        record::begin(&self.desk, assignment, &server).await.map(Some)
    }

    async fn advance(
        &self,
        record: &LogicalDatabase,
        assignment: Option<&Assignment>,
        book: &mut Book,
    ) -> Result<Next, Trouble> {
        let mut case = self.open(record, assignment).await?;
        book.compare_with(&case.server);
        let mut session = server::log_in(&self.pool, &case.server, &case.access).await?;
        case.wanted.dialect = session.dialect();
        let walked = self.walk(case, &mut session, book).await;
        if let Err(Trouble::Refused(_)) = &walked {
            session.discard();
        }
        walked
    }

    /// What is to become of the database, and how its server is reached.
    async fn open(&self, record: &LogicalDatabase, assignment: Option<&Assignment>) -> Result<Case, Trouble> {
        let mut record = record.clone();
        let server = server::find(&self.world, &record.spec.server)?;
        if let Some(assignment) = assignment {
            let end =
                (policy(&server, &assignment.resource, &assignment.claim), server.rules.quarantine_minutes);
            hold::hold(self, assignment, end).await?;
            record = record::follow(&self.desk, &record, assignment, &server).await?;
        }
        let end = end_of(&record);
        let goal = match assignment {
            Some(_) => Goal::Serve,
            None => self.end_goal(&record, &end).await?,
        };
        let access = server::access(&self.desk, &server).await?;
        let names = record::names_of(&record.spec);
        let empty = serde_json::Value::Null;
        let spec = assignment.and_then(|found| found.claim.data.get("spec")).unwrap_or(&empty);
        let was_made = record.status.as_ref().is_some_and(|status| status.created_at.is_some());
        let (dialect, rules) = (server.dialect, &server.rules);
        let is_renamed = assignment.is_some() && !was_made && chooses_others(&names, spec);
        let wanted = match Wanted::read(names.clone(), dialect, rules, spec, was_made) {
            Ok(wanted) => wanted,
            Err(unread) if is_renamed => {
                Wanted { was_made, ..Wanted::keep(names, dialect, rules, spec, &unread) }
            }
            // An application that has its database keeps its login, and its login changes, whatever is written since.
            Err(unread) if was_made => Wanted::keep(names, dialect, rules, spec, &unread),
            Err(unread) => return Err(Trouble::Invalid(unread.to_string())),
        };
        let request = record.annotations().get(ROTATE).and_then(|text| Request::read(text));
        Ok(Case { record, goal, server, access, wanted, request, is_renamed })
    }

    /// What becomes of a database whose claim is gone from the copies: asked live before it is believed.
    async fn end_goal(&self, record: &LogicalDatabase, end: &End) -> Result<Goal, Trouble> {
        let claim = &record.spec.claim;
        let found =
            self.desk.find(&self.desk.others(&world::claims(), &claim.namespace), &claim.name).await?;
        let lives = found.is_some_and(|found| found.uid().as_deref() == Some(&claim.uid));
        let resources = self.desk.others(&world::resources(), &self.desk.namespace);
        let resource = self.desk.find(&resources, &record.spec.resource.name).await?;
        let holds = resource.as_ref().is_some_and(|resource| holders(resource).contains(&claim.uid));
        match (lives, holds) {
            // Both sides say that it is in use, or the resource has not let go yet: the copies are behind.
            (true, true) => Err(Trouble::Conflict),
            // The claim is there and has lost its resource. It is not its data's end.
            (true, false) => Ok(Goal::Retain),
            (false, _) => Ok(find_goal(false, end, clock::now())),
        }
    }

    /// Step after step.
    async fn walk(&self, mut case: Case, session: &mut Session, book: &mut Book) -> Result<Next, Trouble> {
        let mut seen = session.survey(&case.wanted.names).await?;
        self.figures.sent(case.wanted.dialect, 1);
        if case.is_renamed && !seen.has_database() {
            // What was begun under the names on record goes, and the record with it; then it begins anew.
            case.goal = Goal::Drop;
        }
        let mut rotating = None;
        for _ in 0..STEPS_MAX {
            let (wanted, ledger) = (&case.wanted, book.state.as_ref());
            let step = next_step(case.goal, wanted, &seen, ledger, case.request.as_ref(), clock::now());
            let step = self.unless_reserved(step, &case);
            book.allow(step.revokes())?;
            let begun = Instant::now();
            let done = self.carry_out(&step, &mut case, session, book).await;
            let is_sql = done.inspect_err(|_| self.figures.step_failed(case.wanted.dialect, &step))?;
            tracing::debug!(database = case.record.spec.id, ?step, "done");
            self.count(&step, &case, begun.elapsed(), &mut rotating);
            match step {
                Step::Wait { until, why } => return self.rest(&case, &seen, book, until, why).await,
                Step::Refuse(refusal) => return self.refuse(&case, &seen, book, &refusal).await,
                Step::Forget => {
                    self.figures.rotation_blocked(case.wanted.dialect, &case.record.spec.id, None);
                    return Ok(if case.is_renamed { Next::After(Duration::ZERO) } else { Next::Rest });
                }
                // The time decides what is next.
                Step::StartQuarantine => return Ok(Next::After(Duration::ZERO)),
                _ if is_sql => {
                    seen = session.survey(&case.wanted.names).await?;
                    self.figures.sent(case.wanted.dialect, 1);
                }
                _ => {}
            }
        }
        Err(Trouble::Refused("the server does not keep what it is told: somebody undoes it".to_owned()))
    }

    /// Nothing is created under a name that is reserved for a database that another claim left.
    fn unless_reserved(&self, step: Step, case: &Case) -> Step {
        let creates = matches!(step, Step::CreateOwner | Step::CreateUser(_) | Step::CreateDatabase);
        if !creates || case.wanted.was_made {
            return step;
        }
        let (spec, name) = (&case.record.spec, &case.wanted.names.database);
        let claim = (spec.claim.namespace.as_str(), spec.claim.name.as_str());
        if let Some(server) = self.world.undeleted_elsewhere(claim, &spec.server) {
            return Step::Refuse(Refusal::Elsewhere { server });
        }
        match self.world.reserved_by(&spec.server, name.as_str(), &spec.id) {
            Some(id) => Step::Refuse(Refusal::reserved(name.clone(), id)),
            None => step,
        }
    }

    /// Tells the claim what is in the way. Where that is its own database from before, and it was asked back meanwhile,
    /// the record of the new one makes room for it: nothing was made for it yet.
    async fn refuse(
        &self,
        case: &Case,
        seen: &Seen,
        book: &mut Book,
        refusal: &Refusal,
    ) -> Result<Next, Trouble> {
        let spec = &case.record.spec;
        let holder = refusal.marked_by().and_then(|id| self.world.record(id));
        let assignment = self.world.assignment(&spec.claim.uid);
        let asked_back = assignment.and_then(|found| self.world.undeleted(&found.claim, &found.server));
        if holder.is_some() && asked_back.is_some() && seen.has_nothing_of_ours() && !case.wanted.was_made {
            self.desk.may_destroy().await?;
            book.forget(&self.desk).await?;
            record::forget(&self.desk, &case.record).await?;
            return Ok(Next::After(Duration::ZERO));
        }
        let claim = (spec.claim.namespace.as_str(), spec.claim.name.as_str());
        let holder = holder.as_deref().map(|record| Holder {
            claim: (world::text(record, "/spec/claim/namespace"), world::text(record, "/spec/claim/name")),
            is_left: !matches!(world::text(record, "/status/phase"), "Ready" | "Pending" | ""),
        });
        Err(Trouble::Refused(refusal.told_to(claim, holder)))
    }

    fn count(&self, step: &Step, case: &Case, took: Duration, rotating: &mut Option<Instant>) {
        let dialect = case.wanted.dialect;
        match step {
            Step::CreateUser(_) => self.figures.user_created(dialect, took),
            Step::CreateDatabase => self.figures.database_created(dialect),
            Step::DropDatabase { .. } => self.figures.database_dropped(dialect),
            Step::StorePending { .. } => *rotating = Some(Instant::now()),
            // The first login changes nothing.
            Step::Promote { .. } if is_first_login(&case.record) => {}
            Step::Promote { .. } => {
                self.figures.rotated(dialect, rotating.map(|begun| begun.elapsed()).unwrap_or(took));
            }
            _ => {}
        }
    }

    /// Carries out one step; says whether the server was told something.
    async fn carry_out(
        &self,
        step: &Step,
        case: &mut Case,
        session: &mut Session,
        book: &mut Book,
    ) -> Result<bool, Trouble> {
        let desk = &self.desk;
        match step {
            Step::StorePending { user, generation, answers } => {
                let change = (*user, *generation, answers.as_deref());
                book.store_pending(desk, change, case.server.rules.password_length).await?;
            }
            Step::Publish { user, generation } => {
                let (database, user) = (&case.wanted.names.database, case.wanted.names.user(*user));
                let password = book.password(*generation)?;
                let access = case.access.log_in_as(user.as_str(), password, database.as_str());
                require_login(session, &access, (database, user)).await?;
                book.publish(desk, &case.server.as_applications_see_it(access), *generation).await?;
            }
            Step::Promote { user, generation } => book.promote(desk, *user, *generation).await?,
            Step::EndRights { token } => {
                self.tell_server(step, case, session, book).await?;
                book.note_revoked(desk, token).await?;
                case.record = record::revoked(desk, &case.record, book.state.as_ref()).await?;
                return Ok(true);
            }
            Step::CloseRequest { token } => book.close_request(desk, token).await?,
            Step::RecordMade => {
                case.record = record::made(desk, &case.record).await?;
                case.wanted.was_made = true;
            }
            Step::StartQuarantine => {
                desk.may_destroy().await?;
                case.record = record::start_quarantine(desk, &case.record).await?;
            }
            Step::ForgetLogins => {
                desk.may_destroy().await?;
                book.forget(desk).await?;
            }
            Step::Forget => {
                // A claim that was refused has a login with nothing but the reason in it.
                desk.may_destroy().await?;
                book.forget(desk).await?;
                record::forget(desk, &case.record).await?;
            }
            Step::Wait { .. } | Step::Refuse(_) => {}
            _ => {
                if case.goal == Goal::Drop
                    && drops(step)
                    && phase(&case.record) != Some(DatabasePhase::Dropping)
                {
                    desk.may_destroy().await?;
                    case.record = record::start_drop(desk, &case.record).await?;
                }
                return self.tell_server(step, case, session, book).await;
            }
        }
        Ok(false)
    }

    async fn tell_server(
        &self,
        step: &Step,
        case: &Case,
        session: &mut Session,
        book: &Book,
    ) -> Result<bool, Trouble> {
        let takes_away = !matches!(case.goal, Goal::Serve) || step.revokes();
        match takes_away {
            true => self.desk.may_destroy().await?,
            false => self.desk.may_write()?,
        }
        let secret = match step {
            Step::SetPassword { generation, .. } => {
                verifier(case.wanted.dialect, &book.password(*generation)?)
            }
            _ => String::new(),
        };
        // A superuser that is a member of its users is none the worse for it.
        let extras = Extras { verifier: &secret, is_superuser: false };
        let batches = statements(step, &case.wanted, extras);
        self.figures.sent(case.wanted.dialect, batches.len());
        session.carry_out(&batches, &case.wanted.names).await?;
        Ok(true)
    }

    /// An application owner reads the claim, and not the record of its database.
    async fn warn_claim(&self, record: &LogicalDatabase, message: &str) {
        let claim = &record.spec.claim;
        let kind = world::claims();
        let regarding = ObjectReference {
            api_version: Some(kind.api_version),
            kind: Some(kind.kind),
            namespace: Some(claim.namespace.clone()),
            name: Some(claim.name.clone()),
            uid: Some(claim.uid.clone()),
            ..ObjectReference::default()
        };
        self.desk.warn(regarding, NOT_AS_ASKED, message).await;
    }

    /// Whether a login that is at rest changes in time; counted where something holds it up.
    fn judge_rotation(&self, case: &Case, book: &Book, why: Option<&str>) -> Rotation {
        let (spec, dialect) = (&case.record.spec, case.wanted.dialect);
        if case.goal != Goal::Serve {
            self.figures.rotation_blocked(dialect, &spec.id, None);
            return Rotation::None;
        }
        let (rotation_ms, deadline) = (case.wanted.rotation_ms, case.wanted.deadline);
        let changing = Changing { dialect, id: &spec.id, rotation_ms, deadline, server: &spec.server };
        changing.judge(book.state.as_ref(), why, &self.figures)
    }

    /// Nothing to do: the record says how it stands.
    async fn rest(
        &self,
        case: &Case,
        seen: &Seen,
        book: &mut Book,
        until: Time,
        why: Option<String>,
    ) -> Result<Next, Trouble> {
        let (why, is_taken) = name_application(why, book);
        let rotation = self.judge_rotation(case, book, why.as_deref());
        let is_gone = case.wanted.was_made && !seen.has_database();
        let gone = || format!("the database is gone from the server{NOTHING_LEFT}");
        let (phase, reason, message) = match case.goal {
            Goal::Serve => (DatabasePhase::Ready, "Ready", "its claim can use it".to_owned()),
            Goal::Retain if is_gone => (DatabasePhase::Retained, GONE, gone()),
            Goal::Quarantine(_) if is_gone => (DatabasePhase::Quarantined, GONE, gone()),
            Goal::Retain => {
                (DatabasePhase::Retained, "Retained", "it is kept, and nobody can log in".to_owned())
            }
            Goal::Quarantine(_) => {
                let message = format!("it is dropped at {}, unless it is asked back", clock::write(until));
                (DatabasePhase::Quarantined, "Quarantined", message)
            }
            Goal::Drop => (DatabasePhase::Dropping, "Dropping", "it is being dropped".to_owned()),
        };
        // After a leak, what keeps its application without a login comes before everything else.
        let is_without = why.as_deref().is_some_and(|why| why.starts_with(UNDELIVERED_HARD));
        let rotation = Some(rotation);
        let told = match &case.wanted.unread {
            Some(unread) if case.goal == Goal::Serve && !is_without => {
                let message =
                    format!("{unread}; what is inside stays as it was, and logins change all the same");
                Told { phase: None, reason: INVALID, message, rotation }
            }
            Some(_) | None => {
                let (phase, reason) = match is_taken {
                    true => (None, SECRET_CONFLICT),
                    false => (Some(phase), reason),
                };
                Told { phase, reason, message: why.unwrap_or(message), rotation }
            }
        };
        let warning = told.phase.is_none().then(|| told.message.clone());
        let is_news = record::tell(&self.desk, &case.record, told, book.state.as_ref()).await?;
        if let Some(message) = warning.filter(|_| is_news) {
            self.warn_claim(&case.record, &message).await;
        }
        let ms = until.0.saturating_sub(clock::now().0);
        Ok(match until.0 {
            i64::MAX => Next::Rest,
            _ => Next::After(Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        })
    }
}

/// Names the Secret that a change waits for. Says whether it is somebody else's after a leak: that does not pass by itself.
fn name_application(why: Option<String>, book: &Book) -> (Option<String>, bool) {
    let is_hard = why.as_deref() == Some(UNDELIVERED_HARD);
    let waits = is_hard || why.as_deref() == Some(UNDELIVERED);
    match (why, book.why_undelivered().filter(|_| waits)) {
        (Some(why), Some(Undelivered { secret, is_taken: true })) => {
            let fix = "is not Conductor's: remove it, or choose another spec.connection.secretName";
            (Some(format!("{why}: Secret {secret} {fix}")), is_hard)
        }
        (Some(why), Some(Undelivered { secret, is_taken: false })) => {
            (Some(format!("{why}: it is Secret {secret}")), false)
        }
        (why, _) => (why, false),
    }
}

/// Whether a claim chooses other names than these.
fn chooses_others(names: &Names, claim_spec: &serde_json::Value) -> bool {
    let chosen = chosen(claim_spec);
    chosen.is_ok_and(|(database, user)| Names::new(&names.id, database).with_user(user.as_ref()) != *names)
}

/// Whether no login was published for this database before.
fn is_first_login(record: &LogicalDatabase) -> bool {
    // After a leak there is none for a moment, and there was one.
    let is_first =
        |status: &LogicalDatabaseStatus| status.rotated_at.is_none() && status.rotation_revoked.is_none();
    record.status.as_ref().is_none_or(is_first)
}

/// Whether a step takes away what cannot be had back.
fn drops(step: &Step) -> bool {
    matches!(step, Step::DropDatabase { .. } | Step::DropUser(_) | Step::DropGroup(_) | Step::DropOwner)
}

fn phase(record: &LogicalDatabase) -> Option<DatabasePhase> {
    record.status.as_ref().and_then(|status| status.phase)
}

/// What becomes of a database without a claim while its server is away.
fn meanwhile(record: &LogicalDatabase) -> &'static str {
    let end = end_of(record);
    if phase(record) == Some(DatabasePhase::Dropping) {
        return "; what is left of it is dropped once the server is back";
    }
    match (end.policy, end.is_undeleted) {
        (_, true) => "; it is asked back: nothing of it is dropped, and it is kept once the server is back",
        (ReclaimPolicy::Retain, false) => "; it is kept",
        (ReclaimPolicy::Delete, false) => {
            "; nothing of it is dropped before the server is back, and conductor undelete has it back"
        }
    }
}

fn end_of(record: &LogicalDatabase) -> End {
    let status = record.status.as_ref();
    End {
        policy: record.spec.reclaim_policy,
        quarantine_ms: i64::from(record.spec.quarantine_minutes) * 60_000,
        quarantined_at: status.and_then(|s| s.quarantined_at.as_deref()).and_then(clock::read),
        is_undeleted: record.annotations().get(UNDELETE).is_some_and(|value| value == "true"),
    }
}

fn owners(home: &str, record: &LogicalDatabase, assignment: Option<&Assignment>) -> Owners {
    let spec = &record.spec;
    let application = assignment.map(|assignment| {
        let claim = &assignment.claim;
        let named = world::text(claim, "/spec/connection/secretName");
        let own = if named.is_empty() { spec.claim.name.as_str() } else { named };
        // Whoever edits the claim can write there what no Secret can be called.
        let elsewhere = claim.annotations().get(DELIVERED_IN).filter(|name| is_secret_name(name));
        let name = elsewhere.map_or(own, String::as_str);
        (spec.claim.namespace.clone(), name.to_owned())
    });
    Owners {
        id: spec.id.clone(),
        record: record::reference(record),
        login: (home.to_owned(), login_name(&spec.claim.uid)),
        login_owner: record::resource_reference(&spec.resource),
        is_connection: false,
        is_ending: false,
        application,
    }
}

/// What a database's end is decided by, where its resource or its server still say so.
/// A claim may keep what would be dropped, and never the other way round.
pub(super) fn policy(
    server: &Server,
    resource: &kube::api::DynamicObject,
    claim: &kube::api::DynamicObject,
) -> ReclaimPolicy {
    if world::text(claim, "/spec/parameters/reclaimPolicy") == "Retain" {
        return ReclaimPolicy::Retain;
    }
    server.rules.policy.unwrap_or_else(|| hold::policy_of(resource))
}
