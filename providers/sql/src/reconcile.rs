//! Reconciles one database: finds its desired state, then carries out steps until there is nothing to do. A reconcile may
//! end anywhere and start again: the observed state decides, never what was done before.

use super::access::Access;
use super::api_client::{ApiClient, login_name, record_name};
use super::clock;
use super::error::{Error, INVALID};
use super::hold;
use super::informers::{self, Assignment, Change, Informers, holders};
use super::logical_database::{self, StatusReport};
use super::login_secrets::{LoginSecrets, Owners, Undelivered};
use super::metrics::Metrics;
use super::notice::NOT_AS_ASKED;
use super::pool::{Pool, Session};
use super::rotation::{Changing, Rotation};
use super::secret::verifier;
use super::server::{self, Server};
use super::trial::require_login;
use super::workqueue::Reconciler;
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::LogicalDatabase;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabaseStatus, ServerRef};
use conductor::api::database::{DELIVERED_IN, ROTATE, UNDELETE};
pub(super) use conductor::api::reasons::logical_database::GONE;
use conductor::api::reasons::logical_database::{DROPPING, QUARANTINED, RETAINED};
use conductor::api::reasons::login::{READY, SECRET_CONFLICT};
use conductor::model::Time;
use conductor_sql_plan::database_claim::is_secret_name;
use conductor_sql_plan::desired_state::End;
use conductor_sql_plan::names::Names;
use conductor_sql_plan::plan::{UNDELIVERED, UNDELIVERED_HARD};
use conductor_sql_plan::policy::chosen;
use conductor_sql_plan::rotation_state::{Pending, Request};
use conductor_sql_plan::sql::{Extras, statements};
use conductor_sql_plan::{
    DesiredDatabase, DesiredState, Holder, Observed, Refusal, Step, find_desired_state, next_step,
};
use kube::{Resource, ResourceExt};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const NOTHING_LEFT: &str = ": there is nothing to restore, unless it is restored there";

/// Most steps of one reconcile; more, and another client undoes them.
const STEPS_MAX: usize = 60;

/// When to reconcile an object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// After a change.
    Rest,
    /// After this time, or after a change.
    After(Duration),
}

/// Everything that a reconcile uses.
#[derive(Clone)]
pub(super) struct Provider {
    pub cluster: ApiClient,
    pub informers: Informers,
    pub pool: Pool,
    pub metrics: Metrics,
}

/// The inputs of a reconcile.
struct Inputs {
    record: LogicalDatabase,
    desired_state: DesiredState,
    server: Server,
    access: Access,
    desired: DesiredDatabase,
    request: Option<Request>,
    /// Whether the claim chooses other names than the recorded ones, under which nothing was ever created.
    is_renamed: bool,
}

impl Reconciler for Provider {
    type Wake = Change;
    const WHAT: &'static str = "database";

    fn concerned(&self, wake: &Change) -> BTreeSet<String> {
        self.informers.concerned(wake)
    }

    fn is_echo(wake: &Change) -> bool {
        matches!(wake, Change::LogicalDatabase(_))
    }

    async fn pass(&self, id: &str) -> Result<Next, Error> {
        self.reconcile(id).await
    }

    fn server_of(&self, id: &str) -> Option<ServerRef> {
        self.informers.server_of_database(id)
    }

    fn provider(&self) -> &Provider {
        self
    }

    fn turned(&self) {
        self.metrics.on_record(self.informers.record_count());
    }
}

impl Provider {
    /// Reconciles the database of this id.
    async fn reconcile(&self, id: &str) -> Result<Next, Error> {
        let begun = Instant::now();
        let found = self.cluster.find(&self.cluster.records(), &record_name(id)).await?;
        let record = match (found, self.informers.assignment(id)) {
            (Some(record), _) => record,
            // Its database was created for an earlier claim, and restored.
            (None, Some(_)) if self.informers.has_record_of(id) => return Ok(Next::Rest),
            (None, Some(assignment)) => match self.begin(&assignment).await? {
                Some(record) => record,
                None => return Ok(Next::Rest),
            },
            (None, None) => return Ok(Next::Rest),
        };
        let assignment = self.informers.assignment(&record.spec.claim.uid);
        if record.metadata.deletion_timestamp.is_some()
            && assignment.is_none()
            && phase(&record) == Some(DatabasePhase::Retained)
        {
            // An administrator deletes the LogicalDatabase of a retained database, which stays on its server.
            logical_database::forget(&self.cluster, &record).await?;
            return Ok(Next::Rest);
        }
        let owners = owners(&self.cluster.namespace, &record, assignment.as_ref());
        let mut secrets = LoginSecrets::open(&self.cluster, owners).await?;
        let outcome = self.advance(&record, assignment.as_ref(), &mut secrets).await;
        if outcome.is_ok() {
            self.metrics.loaded(begun.elapsed());
        }
        if let Err(error) = &outcome {
            self.report(&record, &mut secrets, error, assignment.is_some()).await;
        }
        outcome
    }

    /// Reports an error in the LogicalDatabase, and in the claim if there is one.
    async fn report(
        &self,
        record: &LogicalDatabase,
        secrets: &mut LoginSecrets,
        error: &Error,
        is_claimed: bool,
    ) {
        if matches!(error, Error::Conflict | Error::NotLeading | Error::Api(_)) {
            return;
        }
        let mut message = error.to_string();
        // What cannot be reported now, the next reconcile reports.
        if is_claimed {
            drop(secrets.report_problem(&self.cluster, &message).await);
        }
        // The reconcile may have written to it.
        let Ok(Some(record)) = self.cluster.find(&self.cluster.records(), &record.name_any()).await else {
            return;
        };
        if !is_claimed && matches!(error, Error::Unreachable(_) | Error::Credentials(_)) {
            message.push_str(meanwhile(&record));
        }
        // A due rotation that fails is as late as one that waits.
        let server = server::find(&self.informers, &record.spec.server).ok().filter(|_| is_claimed);
        let rotation = server.and_then(|Server { dialect, policy, reference, .. }| {
            let (rotation_ms, deadline) = (policy.rotation_ms, policy.deadline);
            let changing =
                Changing { dialect, id: &record.spec.id, rotation_ms, deadline, server: &reference };
            changing.judge_failed(secrets.state.as_ref(), &error.to_string(), &self.metrics)
        });
        let report = StatusReport { phase: None, reason: error.reason(), message, rotation };
        let _ = logical_database::report(&self.cluster, &record, report, secrets.state.as_ref()).await;
    }

    /// Records a new database before anything is created on the server; or hands a restored one over to its claim.
    async fn begin(&self, assignment: &Assignment) -> Result<Option<LogicalDatabase>, Error> {
        if let Some(kept) = self.informers.undeleted(&assignment.claim, &assignment.server) {
            logical_database::hand_over(&self.cluster, &kept, assignment).await?;
            return Ok(None);
        }
        let server = server::find(&self.informers, &assignment.server)?;
        let end = (
            reclaim_policy(&server, &assignment.resource, &assignment.claim),
            server.policy.quarantine_minutes,
        );
        hold::hold(self, assignment, end).await?;
        logical_database::begin(&self.cluster, assignment, &server).await.map(Some)
    }

    async fn advance(
        &self,
        record: &LogicalDatabase,
        assignment: Option<&Assignment>,
        secrets: &mut LoginSecrets,
    ) -> Result<Next, Error> {
        let mut inputs = self.open(record, assignment).await?;
        secrets.compare_with(&inputs.server);
        let mut session = server::log_in(&self.pool, &inputs.server, &inputs.access).await?;
        inputs.desired.dialect = session.dialect();
        let walked = self.walk(inputs, &mut session, secrets).await;
        if let Err(Error::Refused(_)) = &walked {
            session.discard();
        }
        walked
    }

    /// Finds the desired state of the database, and how its server is reached.
    async fn open(&self, record: &LogicalDatabase, assignment: Option<&Assignment>) -> Result<Inputs, Error> {
        let mut record = record.clone();
        let server = server::find(&self.informers, &record.spec.server)?;
        if let Some(assignment) = assignment {
            let end = (
                reclaim_policy(&server, &assignment.resource, &assignment.claim),
                server.policy.quarantine_minutes,
            );
            hold::hold(self, assignment, end).await?;
            record = logical_database::follow(&self.cluster, &record, assignment, &server).await?;
        }
        let end = end_of(&record);
        let desired_state = match assignment {
            Some(_) => DesiredState::Serve,
            None => self.end_state(&record, &end).await?,
        };
        let access = server::access(&self.cluster, &server).await?;
        let names = logical_database::names_of(&record.spec);
        let empty = serde_json::Value::Null;
        let spec = assignment.and_then(|found| found.claim.data.get("spec")).unwrap_or(&empty);
        let was_made = record.status.as_ref().is_some_and(|status| status.created_at.is_some());
        let (dialect, policy) = (server.dialect, &server.policy);
        let is_renamed = assignment.is_some() && !was_made && chooses_others(&names, spec);
        let desired = match DesiredDatabase::read(names.clone(), dialect, policy, spec, was_made) {
            Ok(desired) => desired,
            Err(unread) if is_renamed => {
                DesiredDatabase { was_made, ..DesiredDatabase::keep(names, dialect, policy, spec, &unread) }
            }
            // An application with a database keeps its login and its rotation, whatever the spec says since.
            Err(unread) if was_made => DesiredDatabase::keep(names, dialect, policy, spec, &unread),
            Err(unread) => return Err(Error::Invalid(unread.to_string())),
        };
        let request = record.annotations().get(ROTATE).and_then(|text| Request::read(text));
        Ok(Inputs { record, desired_state, server, access, desired, request, is_renamed })
    }

    /// The desired state of a database whose claim is missing in the copies, verified against the API.
    async fn end_state(&self, record: &LogicalDatabase, end: &End) -> Result<DesiredState, Error> {
        let claim = &record.spec.claim;
        let found = self
            .cluster
            .find(&self.cluster.others(&informers::claims(), &claim.namespace), &claim.name)
            .await?;
        let lives = found.is_some_and(|found| found.uid().as_deref() == Some(&claim.uid));
        let resources = self.cluster.others(&informers::resources(), &self.cluster.namespace);
        let resource = self.cluster.find(&resources, &record.spec.resource.name).await?;
        let holds = resource.as_ref().is_some_and(|resource| holders(resource).contains(&claim.uid));
        match (lives, holds) {
            // Both sides say that it is in use: the copies are stale.
            (true, true) => Err(Error::Conflict),
            // The claim exists and has lost its resource, which is no reason to drop its data.
            (true, false) => Ok(DesiredState::Retain),
            (false, _) => Ok(find_desired_state(false, end, clock::now())),
        }
    }

    /// Carries out steps until there is nothing to do.
    async fn walk(
        &self,
        mut inputs: Inputs,
        session: &mut Session,
        secrets: &mut LoginSecrets,
    ) -> Result<Next, Error> {
        let mut observed = session.survey(&inputs.desired.names).await?;
        self.metrics.sent(inputs.desired.dialect, 1);
        if inputs.is_renamed && !observed.has_database() {
            // Drop what was begun under the recorded names, with the LogicalDatabase; then start again.
            inputs.desired_state = DesiredState::Drop;
        }
        let mut rotating = None;
        for _ in 0..STEPS_MAX {
            let (desired, state) = (&inputs.desired, secrets.state.as_ref());
            let step = next_step(
                inputs.desired_state,
                desired,
                &observed,
                state,
                inputs.request.as_ref(),
                clock::now(),
            );
            let step = self.unless_reserved(step, &inputs);
            secrets.allow(step.revokes())?;
            let begun = Instant::now();
            let done = self.carry_out(&step, &mut inputs, session, secrets).await;
            let is_sql = done.inspect_err(|_| self.metrics.step_failed(inputs.desired.dialect, &step))?;
            tracing::debug!(database = inputs.record.spec.id, ?step, "done");
            self.count(&step, &inputs, begun.elapsed(), &mut rotating);
            match step {
                Step::Wait { until, why } => return self.rest(&inputs, &observed, secrets, until, why).await,
                Step::Refuse(refusal) => return self.refuse(&inputs, &observed, secrets, &refusal).await,
                Step::Forget => {
                    self.metrics.rotation_blocked(inputs.desired.dialect, &inputs.record.spec.id, None);
                    return Ok(if inputs.is_renamed { Next::After(Duration::ZERO) } else { Next::Rest });
                }
                // The time decides the next step.
                Step::StartQuarantine => return Ok(Next::After(Duration::ZERO)),
                _ if is_sql => {
                    observed = session.survey(&inputs.desired.names).await?;
                    self.metrics.sent(inputs.desired.dialect, 1);
                }
                _ => {}
            }
        }
        Err(Error::Refused("another client undoes the changes on the server".to_owned()))
    }

    /// Refuses to create anything under a name that is reserved for another database.
    fn unless_reserved(&self, step: Step, inputs: &Inputs) -> Step {
        let creates = matches!(step, Step::CreateOwner | Step::CreateUser(_) | Step::CreateDatabase);
        if !creates || inputs.desired.was_made {
            return step;
        }
        let (spec, name) = (&inputs.record.spec, &inputs.desired.names.database);
        let claim = (spec.claim.namespace.as_str(), spec.claim.name.as_str());
        if let Some(server) = self.informers.undeleted_elsewhere(claim, &spec.server) {
            return Step::Refuse(Refusal::Elsewhere { server });
        }
        match self.informers.reserved_by(&spec.server, name.as_str(), &spec.id) {
            Some(id) => Step::Refuse(Refusal::reserved(name.clone(), id)),
            None => step,
        }
    }

    /// Reports what is in the way. Where that is the claim's own earlier database, which was restored meanwhile, removes the
    /// new LogicalDatabase to make room for it: nothing was created for it yet.
    async fn refuse(
        &self,
        inputs: &Inputs,
        observed: &Observed,
        secrets: &mut LoginSecrets,
        refusal: &Refusal,
    ) -> Result<Next, Error> {
        let spec = &inputs.record.spec;
        let holder = refusal.marked_by().and_then(|id| self.informers.record(id));
        let assignment = self.informers.assignment(&spec.claim.uid);
        let restored = assignment.and_then(|found| self.informers.undeleted(&found.claim, &found.server));
        if holder.is_some()
            && restored.is_some()
            && observed.has_nothing_of_ours()
            && !inputs.desired.was_made
        {
            self.cluster.may_destroy().await?;
            secrets.forget(&self.cluster).await?;
            logical_database::forget(&self.cluster, &inputs.record).await?;
            return Ok(Next::After(Duration::ZERO));
        }
        let claim = (spec.claim.namespace.as_str(), spec.claim.name.as_str());
        let holder = holder.as_deref().map(|record| Holder {
            claim: (
                informers::text(record, "/spec/claim/namespace"),
                informers::text(record, "/spec/claim/name"),
            ),
            is_left: !matches!(informers::text(record, "/status/phase"), "Ready" | "Pending" | ""),
        });
        Err(Error::Refused(refusal.message_for(claim, holder)))
    }

    fn count(&self, step: &Step, inputs: &Inputs, took: Duration, rotating: &mut Option<Instant>) {
        let dialect = inputs.desired.dialect;
        match step {
            Step::CreateUser(_) => self.metrics.user_created(dialect, took),
            Step::CreateDatabase => self.metrics.database_created(dialect),
            Step::DropDatabase { .. } => self.metrics.database_dropped(dialect),
            Step::StorePending { .. } => *rotating = Some(Instant::now()),
            // The first login is no rotation.
            Step::Promote(_) if is_first_login(&inputs.record) => {}
            Step::Promote(_) => {
                self.metrics.rotated(dialect, rotating.map(|begun| begun.elapsed()).unwrap_or(took));
            }
            _ => {}
        }
    }

    /// Carries out one step; returns whether statements were sent.
    async fn carry_out(
        &self,
        step: &Step,
        inputs: &mut Inputs,
        session: &mut Session,
        secrets: &mut LoginSecrets,
    ) -> Result<bool, Error> {
        let cluster = &self.cluster;
        match step {
            Step::StorePending { user, generation, answers } => {
                let change = (*user, *generation, answers.as_deref());
                secrets.store_pending(cluster, change, inputs.server.policy.password_length).await?;
            }
            Step::Publish(Pending { user, generation }) => {
                let (database, user) = (&inputs.desired.names.database, inputs.desired.names.user(*user));
                let password = secrets.password(*generation)?;
                let access = inputs.access.log_in_as(user.as_str(), password, database.as_str());
                require_login(session, &access, (database, user)).await?;
                secrets.publish(cluster, &inputs.server.as_applications_see_it(access), *generation).await?;
            }
            Step::Promote(Pending { user, generation }) => {
                secrets.promote(cluster, *user, *generation).await?
            }
            Step::EndRights { token } => {
                self.send(step, inputs, session, secrets).await?;
                secrets.note_revoked(cluster, token).await?;
                inputs.record =
                    logical_database::revoked(cluster, &inputs.record, secrets.state.as_ref()).await?;
                return Ok(true);
            }
            Step::CloseRequest { token } => secrets.close_request(cluster, token).await?,
            Step::RecordMade => {
                inputs.record = logical_database::made(cluster, &inputs.record).await?;
                inputs.desired.was_made = true;
            }
            Step::StartQuarantine => {
                cluster.may_destroy().await?;
                inputs.record = logical_database::start_quarantine(cluster, &inputs.record).await?;
            }
            Step::ForgetLogins => {
                cluster.may_destroy().await?;
                secrets.forget(cluster).await?;
            }
            Step::Forget => {
                // A refused claim has a login Secret with the reason only.
                cluster.may_destroy().await?;
                secrets.forget(cluster).await?;
                logical_database::forget(cluster, &inputs.record).await?;
            }
            Step::Wait { .. } | Step::Refuse(_) => {}
            _ => {
                if inputs.desired_state == DesiredState::Drop
                    && drops(step)
                    && phase(&inputs.record) != Some(DatabasePhase::Dropping)
                {
                    cluster.may_destroy().await?;
                    inputs.record = logical_database::start_drop(cluster, &inputs.record).await?;
                }
                return self.send(step, inputs, session, secrets).await;
            }
        }
        Ok(false)
    }

    async fn send(
        &self,
        step: &Step,
        inputs: &Inputs,
        session: &mut Session,
        secrets: &LoginSecrets,
    ) -> Result<bool, Error> {
        let takes_away = !matches!(inputs.desired_state, DesiredState::Serve) || step.revokes();
        match takes_away {
            true => self.cluster.may_destroy().await?,
            false => self.cluster.may_write()?,
        }
        let secret = match step {
            Step::SetPassword(Pending { generation, .. }) => {
                verifier(inputs.desired.dialect, &secrets.password(*generation)?)
            }
            _ => String::new(),
        };
        // A superuser that is a member of its users does no harm.
        let extras = Extras { verifier: &secret, is_superuser: false };
        let batches = statements(step, &inputs.desired, extras);
        self.metrics.sent(inputs.desired.dialect, batches.len());
        session.carry_out(&batches, &inputs.desired.names).await?;
        Ok(true)
    }

    /// Warns on the claim: its user cannot read the LogicalDatabase.
    async fn warn_claim(&self, record: &LogicalDatabase, message: &str) {
        let claim = &record.spec.claim;
        if let Some(claim) = self.informers.claim(&claim.namespace, &claim.name) {
            self.cluster.warn(claim.object_ref(&informers::claims()), NOT_AS_ASKED, message).await;
        }
    }

    /// Whether an idle login rotates in time; counted if it is held up.
    fn judge_rotation(&self, inputs: &Inputs, secrets: &LoginSecrets, why: Option<&str>) -> Rotation {
        let (spec, dialect) = (&inputs.record.spec, inputs.desired.dialect);
        if inputs.desired_state != DesiredState::Serve {
            self.metrics.rotation_blocked(dialect, &spec.id, None);
            return Rotation::None;
        }
        let (rotation_ms, deadline) = (inputs.desired.rotation_ms, inputs.desired.deadline);
        let changing = Changing { dialect, id: &spec.id, rotation_ms, deadline, server: &spec.server };
        changing.judge(secrets.state.as_ref(), why, &self.metrics)
    }

    /// Writes the status once there is nothing to do.
    async fn rest(
        &self,
        inputs: &Inputs,
        observed: &Observed,
        secrets: &mut LoginSecrets,
        until: Time,
        why: Option<String>,
    ) -> Result<Next, Error> {
        let (why, is_taken) = name_application(why, secrets);
        let rotation = self.judge_rotation(inputs, secrets, why.as_deref());
        let is_gone = inputs.desired.was_made && !observed.has_database();
        let gone = || format!("the database no longer exists on the server{NOTHING_LEFT}");
        let (phase, reason, message) = match inputs.desired_state {
            DesiredState::Serve => (DatabasePhase::Ready, READY, "its claim can use it".to_owned()),
            DesiredState::Retain if is_gone => (DatabasePhase::Retained, GONE, gone()),
            DesiredState::Quarantine(_) if is_gone => (DatabasePhase::Quarantined, GONE, gone()),
            DesiredState::Retain => {
                (DatabasePhase::Retained, RETAINED, "it is retained, and no user can log in".to_owned())
            }
            DesiredState::Quarantine(_) => {
                let message = format!("it is dropped at {}, unless it is restored", clock::write(until));
                (DatabasePhase::Quarantined, QUARANTINED, message)
            }
            DesiredState::Drop => (DatabasePhase::Dropping, DROPPING, "it is being dropped".to_owned()),
        };
        // After a leak, report first what keeps the application without a login.
        let is_without = why.as_deref().is_some_and(|why| why.starts_with(UNDELIVERED_HARD));
        let rotation = Some(rotation);
        let report = match &inputs.desired.unread {
            Some(unread) if inputs.desired_state == DesiredState::Serve && !is_without => {
                let message =
                    format!("{unread}; the database stays as it was, and its login rotates all the same");
                StatusReport { phase: None, reason: INVALID, message, rotation }
            }
            Some(_) | None => {
                let (phase, reason) = match is_taken {
                    true => (None, SECRET_CONFLICT),
                    false => (Some(phase), reason),
                };
                StatusReport { phase, reason, message: why.unwrap_or(message), rotation }
            }
        };
        let warning = report.phase.is_none().then(|| report.message.clone());
        let is_news =
            logical_database::report(&self.cluster, &inputs.record, report, secrets.state.as_ref()).await?;
        if let Some(message) = warning.filter(|_| is_news) {
            self.warn_claim(&inputs.record, &message).await;
        }
        let ms = until.0.saturating_sub(clock::now().0);
        Ok(match until.0 {
            i64::MAX => Next::Rest,
            _ => Next::After(Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        })
    }
}

/// Names the Secret that a rotation waits for. Returns whether it is a foreign Secret after a leak, which only a user can
/// fix.
fn name_application(why: Option<String>, secrets: &LoginSecrets) -> (Option<String>, bool) {
    let is_hard = why.as_deref() == Some(UNDELIVERED_HARD);
    let waits = is_hard || why.as_deref() == Some(UNDELIVERED);
    match (why, secrets.why_undelivered().filter(|_| waits)) {
        (Some(why), Some(Undelivered { secret, is_taken: true })) => {
            let fix = "does not belong to Conductor: remove it, or choose another spec.connection.secretName";
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
    // After a leak there is none for a moment, although there was one.
    let is_first =
        |status: &LogicalDatabaseStatus| status.rotated_at.is_none() && status.rotation_revoked.is_none();
    record.status.as_ref().is_none_or(is_first)
}

/// Whether a step is irreversible.
fn drops(step: &Step) -> bool {
    matches!(step, Step::DropDatabase { .. } | Step::DropUser(_) | Step::DropGroup(_) | Step::DropOwner)
}

fn phase(record: &LogicalDatabase) -> Option<DatabasePhase> {
    record.status.as_ref().and_then(|status| status.phase)
}

/// What happens to a database without a claim while its server is unreachable.
fn meanwhile(record: &LogicalDatabase) -> &'static str {
    let end = end_of(record);
    if phase(record) == Some(DatabasePhase::Dropping) {
        return "; the rest of it is dropped once the server is reachable";
    }
    match (end.reclaim_policy, end.is_undeleted) {
        (_, true) => {
            "; a user requested to restore it: nothing of it is dropped, and it is retained once the server is reachable"
        }
        (ReclaimPolicy::Retain, false) => "; it is retained",
        (ReclaimPolicy::Delete, false) => {
            "; nothing of it is dropped before the server is reachable, and conductor undelete restores it"
        }
    }
}

fn end_of(record: &LogicalDatabase) -> End {
    let status = record.status.as_ref();
    End {
        reclaim_policy: record.spec.reclaim_policy,
        quarantine_ms: i64::from(record.spec.quarantine_minutes) * 60_000,
        quarantined_at: status.and_then(|s| s.quarantined_at.as_deref()).and_then(clock::read),
        is_undeleted: record.annotations().get(UNDELETE).is_some_and(|value| value == "true"),
    }
}

fn owners(home: &str, record: &LogicalDatabase, assignment: Option<&Assignment>) -> Owners {
    let spec = &record.spec;
    let application = assignment.map(|assignment| {
        let claim = &assignment.claim;
        let named = informers::text(claim, "/spec/connection/secretName");
        let own = if named.is_empty() { spec.claim.name.as_str() } else { named };
        // A user can write an invalid name there.
        let elsewhere = claim.annotations().get(DELIVERED_IN).filter(|name| is_secret_name(name));
        let name = elsewhere.map_or(own, String::as_str);
        (spec.claim.namespace.clone(), name.to_owned())
    });
    Owners {
        id: spec.id.clone(),
        record: record.owner_ref(&()).unwrap_or_default(),
        login: (home.to_owned(), login_name(&spec.claim.uid)),
        login_owner: logical_database::resource_reference(&spec.resource),
        is_connection: false,
        is_ending: false,
        application,
    }
}

/// The reclaim policy of a database, from its claim, its server or its resource. A claim may retain what would be dropped,
/// and never the reverse.
pub(super) fn reclaim_policy(
    server: &Server,
    resource: &kube::api::DynamicObject,
    claim: &kube::api::DynamicObject,
) -> ReclaimPolicy {
    if informers::text(claim, "/spec/parameters/reclaimPolicy") == "Retain" {
        return ReclaimPolicy::Retain;
    }
    server.policy.reclaim_policy.unwrap_or_else(|| hold::reclaim_policy_of(resource))
}
