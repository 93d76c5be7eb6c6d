//! Reconciles one role: decides whether it gets a login, then carries out steps until there is nothing to do. Nothing is
//! revoked on the strength of a copy: a missing grant or claim is verified against the API first.

use super::status::{self, Login, made_on};
use super::{Roles, claimed, grants, read_grant, roles};
use crate::error::Error;
use crate::login_secrets::{LoginSecrets, Owners};
use crate::pool::Session;
use crate::reconcile::Next;
use crate::rotation::{Changing, Report, Rotation};
use crate::secret::verifier;
use crate::server::{self, Server};
use crate::trial::require_login;
use crate::{Access, clock, informers};
use conductor::api::database::ROTATE;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabaseSpec};
use conductor::api::database::role::{DatabaseGrantSpec, DatabaseRole, MadeOn};
use conductor::api::reasons::{login::READY, role::DELETED};
use conductor_sql_plan::Step;
use conductor_sql_plan::names::{Identifier, Names};
use conductor_sql_plan::role::{
    DesiredRole, RoleRequest, RoleStep, Standing, judge, serve_role, withdraw_role,
};
use conductor_sql_plan::rotation_state::{Pending, Request, RotationState};
use conductor_sql_plan::sql::{Extras, role as sql};
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use std::time::Duration;

/// Most steps of one reconcile; more, and another client undoes them.
const STEPS_MAX: usize = 40;

/// The inputs of a reconcile.
struct Inputs {
    role: DatabaseRole,
    serves: bool,
    desired: DesiredRole,
    server: Server,
    access: Access,
    request: Option<Request>,
    /// The reason and message where the login is removed.
    why: Option<(&'static str, String)>,
}

impl Roles {
    pub(super) async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let cluster = &self.provider.cluster;
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Next::Rest) };
        let Some(found) = cluster.find(&cluster.others(&roles(), namespace), name).await? else {
            return Ok(Next::Rest);
        };
        let Some(claim) = claimed(&found) else { return Ok(Next::Rest) };
        let role: DatabaseRole =
            found.try_parse().map_err(|_| Error::Invalid("the role cannot be read".to_owned()))?;
        let outcome = self.advance(&role, &claim).await;
        if let Err(error) = &outcome
            && !matches!(error, Error::Conflict | Error::NotLeading | Error::Api(_))
        {
            let (reason, message) = (error.reason(), error.to_string());
            let rotation = self.judge_failed(&role, &message);
            let report = Report { is_ready: false, reason, message, rotation };
            // What cannot be reported now, the next pass reports.
            let _ = status::report(cluster, &role, report, Login::AsBefore).await;
        }
        outcome
    }

    /// A due rotation that fails is as late as one that waits.
    fn judge_failed(&self, role: &DatabaseRole, why: &str) -> Option<Rotation> {
        let server = server::find(&self.provider.informers, &made_on(role)?.server).ok()?;
        let rotated_at = role.status.as_ref()?.rotated_at.as_deref().and_then(clock::read);
        let (rotation_ms, deadline) = (rotation_ms(role, &server), server.policy.deadline);
        let (dialect, id) = (server.dialect, role.uid().unwrap_or_default());
        let changing = Changing { dialect, id: &id, rotation_ms, deadline, server: &server.reference };
        changing.judge_failed(
            Some(&RotationState { rotated_at, ..RotationState::default() }),
            why,
            &self.provider.metrics,
        )
    }

    async fn advance(&self, role: &DatabaseRole, claim: &(String, String)) -> Result<Next, Error> {
        let record = self.record_of(claim);
        let is_going = role.metadata.deletion_timestamp.is_some();
        let standing = match is_going {
            true => {
                Standing::Waits { reason: DELETED, message: "it is being deleted".to_owned(), ends: true }
            }
            false => self.standing(role, claim, &self.grants_in(&claim.0), record.as_ref()),
        };
        let cluster = &self.provider.cluster;
        match (standing, record, made_on(role)) {
            (Standing::Served, Some((spec, _)), _) => {
                let made_on = made_on_of(&spec);
                status::begin(cluster, role, &made_on).await?;
                self.walk(self.open(role, &made_on, true, None).await?).await
            }
            (Standing::Waits { reason, message, ends: true }, _, Some(made_on)) => {
                if !is_going {
                    self.confirm(role, claim).await?;
                }
                self.walk(self.open(role, &made_on.clone(), false, Some((reason, message))).await?).await
            }
            (Standing::Waits { reason, message, .. }, _, _) => {
                if is_going {
                    status::forget(cluster, role).await?;
                    return Ok(Next::Rest);
                }
                let report = Report { is_ready: false, reason, message, rotation: Some(Rotation::None) };
                status::report(cluster, role, report, Login::None).await.map(|()| Next::Rest)
            }
            // Served and without a LogicalDatabase: the copies are stale.
            (Standing::Served, None, _) => Err(Error::Conflict),
        }
    }

    /// The copy of a claim's LogicalDatabase, if the claim exists.
    fn record_of(
        &self,
        (namespace, name): &(String, String),
    ) -> Option<(LogicalDatabaseSpec, DatabasePhase)> {
        let informers = &self.provider.informers;
        let claim = informers.claim(namespace, name)?;
        read_record(&*informers.record_of(&claim.uid()?)?)
    }

    fn standing(
        &self,
        role: &DatabaseRole,
        claim: &(String, String),
        grants: &[DatabaseGrantSpec],
        record: Option<&(LogicalDatabaseSpec, DatabasePhase)>,
    ) -> Standing {
        let is_claimed = self
            .provider
            .informers
            .claim(&claim.0, &claim.1)
            .is_some_and(|claim| claim.metadata.deletion_timestamp.is_none());
        judge(role_request(role, claim), grants, is_claimed, record.map(|(_, phase)| *phase))
    }

    /// Verifies against the API that the login must be removed.
    async fn confirm(&self, role: &DatabaseRole, claim: &(String, String)) -> Result<(), Error> {
        let cluster = &self.provider.cluster;
        let listed = cluster.list(&cluster.others(&grants(), &claim.0)).await?;
        let granted: Vec<DatabaseGrantSpec> = listed.iter().filter_map(read_grant).collect();
        let found = cluster.find(&cluster.others(&informers::claims(), &claim.0), &claim.1).await?;
        let found = found.filter(|claim| claim.metadata.deletion_timestamp.is_none());
        let record = found.as_ref().and_then(|claim| self.provider.informers.record_of(&claim.uid()?));
        let record = match record {
            Some(record) => cluster.find(&cluster.records(), &record.name_any()).await?,
            None => None,
        };
        let phase = record.and_then(|record| record.status?.phase);
        match judge(role_request(role, claim), &granted, found.is_some(), phase) {
            Standing::Waits { ends: true, .. } => Ok(()),
            Standing::Waits { ends: false, .. } | Standing::Served => Err(Error::Conflict),
        }
    }

    /// Finds the desired login, and how the server is reached.
    async fn open(
        &self,
        role: &DatabaseRole,
        made_on: &MadeOn,
        serves: bool,
        why: Option<(&'static str, String)>,
    ) -> Result<Inputs, Error> {
        let server = server::find(&self.provider.informers, &made_on.server)?;
        let access = server::access(&self.provider.cluster, &server).await?;
        let database = Identifier::read(&made_on.database_name)
            .map_err(|error| Error::Invalid(format!("status.madeOn.databaseName: {error}")))?;
        let names = Names::new(&made_on.database_id, Some(database));
        let rotation_ms = rotation_ms(role, &server);
        let id = role.uid().unwrap_or_default();
        let mut desired = DesiredRole::new(&id, role.spec.access, names, server.dialect, rotation_ms);
        desired.deadline = server.policy.deadline;
        let request = role.annotations().get(ROTATE).and_then(|text| Request::read(text));
        Ok(Inputs { role: role.clone(), serves, desired, server, access, request, why })
    }

    /// Carries out steps until there is nothing to do.
    async fn walk(&self, mut inputs: Inputs) -> Result<Next, Error> {
        let mut secrets = LoginSecrets::open(&self.provider.cluster, self.owners(&inputs)?).await?;
        secrets.compare_with(&inputs.server);
        let mut session = server::log_in(&self.provider.pool, &inputs.server, &inputs.access).await?;
        inputs.desired.dialect = session.dialect();
        let mut observed = session.survey_role(&inputs.desired).await?;
        for _ in 0..STEPS_MAX {
            let step = match inputs.serves {
                true => {
                    let (state, request) = (secrets.state.as_ref(), inputs.request.as_ref());
                    serve_role(&inputs.desired, &observed, state, request, clock::now())
                }
                false => withdraw_role(&observed, secrets.has_secrets()),
            };
            secrets.allow(matches!(&step, RoleStep::Login(step) if step.revokes()))?;
            let is_sql = self.carry_out(&step, &mut inputs, &mut session, &mut secrets).await?;
            tracing::debug!(role = inputs.desired.id, ?step, "done");
            match step {
                RoleStep::Login(Step::Wait { until, why }) => {
                    return self.rest(&inputs, &secrets, until, why).await;
                }
                RoleStep::Login(Step::Refuse(refusal)) => return Err(Error::Refused(refusal.to_string())),
                RoleStep::Login(Step::Forget) => return self.end(&inputs).await,
                _ if is_sql => observed = session.survey_role(&inputs.desired).await?,
                _ => {}
            }
        }
        Err(Error::Refused("another client undoes the changes on the server".to_owned()))
    }

    /// Carries out one step; returns whether statements were sent.
    async fn carry_out(
        &self,
        step: &RoleStep,
        inputs: &mut Inputs,
        session: &mut Session,
        secrets: &mut LoginSecrets,
    ) -> Result<bool, Error> {
        let cluster = &self.provider.cluster;
        match step {
            RoleStep::Login(Step::StorePending { user, generation, answers }) => {
                let change = (*user, *generation, answers.as_deref());
                secrets.store_pending(cluster, change, inputs.server.policy.password_length).await?;
            }
            RoleStep::Login(Step::Publish(Pending { user, generation })) => {
                let (database, user) = (&inputs.desired.database.database, inputs.desired.user(*user));
                let password = secrets.password(*generation)?;
                let access = inputs.access.log_in_as(user.as_str(), password, database.as_str());
                require_login(session, &access, (database, user)).await?;
                secrets.publish(cluster, &inputs.server.as_applications_see_it(access), *generation).await?;
            }
            RoleStep::Login(Step::Promote(Pending { user, generation })) => {
                secrets.promote(cluster, *user, *generation).await?;
            }
            RoleStep::Login(Step::EndRights { token }) => {
                self.send(step, inputs, session, secrets).await?;
                secrets.note_revoked(cluster, token).await?;
                if let Some(state) = &secrets.state {
                    inputs.role = status::revoked(cluster, &inputs.role, &inputs.desired, state).await?;
                }
                return Ok(true);
            }
            RoleStep::Login(Step::CloseRequest { token }) => secrets.close_request(cluster, token).await?,
            RoleStep::Login(Step::ForgetLogins) => {
                cluster.may_destroy().await?;
                secrets.forget(cluster).await?;
            }
            RoleStep::Login(Step::Wait { .. } | Step::Refuse(_) | Step::Forget) => {}
            _ => return self.send(step, inputs, session, secrets).await,
        }
        Ok(false)
    }

    async fn send(
        &self,
        step: &RoleStep,
        inputs: &Inputs,
        session: &mut Session,
        secrets: &LoginSecrets,
    ) -> Result<bool, Error> {
        let takes_away = match step {
            RoleStep::Login(step) => step.revokes(),
            RoleStep::DropUser { .. } => true,
            _ => false,
        };
        match takes_away {
            true => self.provider.cluster.may_destroy().await?,
            false => self.provider.cluster.may_write()?,
        }
        let secret = match step {
            RoleStep::Login(Step::SetPassword(Pending { generation, .. })) => {
                verifier(inputs.desired.dialect, &secrets.password(*generation)?)
            }
            _ => String::new(),
        };
        let batches =
            sql::statements(step, &inputs.desired, Extras { verifier: &secret, is_superuser: false });
        self.provider.metrics.sent(inputs.desired.dialect, batches.len());
        session.carry_out(&batches, &inputs.desired.database).await?;
        Ok(true)
    }

    /// Writes the status once there is nothing to do.
    async fn rest(
        &self,
        inputs: &Inputs,
        secrets: &LoginSecrets,
        until: conductor::model::Time,
        why: Option<String>,
    ) -> Result<Next, Error> {
        let (rotation_ms, deadline) = (inputs.desired.rotation_ms, inputs.desired.deadline);
        let (dialect, server) = (inputs.desired.dialect, &inputs.server.reference);
        let changing = Changing { dialect, id: &inputs.desired.id, rotation_ms, deadline, server };
        let rotation = changing.judge(secrets.state.as_ref(), why.as_deref(), &self.provider.metrics);
        let message = why.unwrap_or_else(|| "its application can log in".to_owned());
        let report = Report { is_ready: true, reason: READY, message, rotation: Some(rotation) };
        let login = secrets.state.as_ref().map_or(Login::None, |state| Login::Now(&inputs.desired, state));
        status::report(&self.provider.cluster, &inputs.role, report, login).await?;
        let ms = until.0.saturating_sub(clock::now().0);
        Ok(Next::After(Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
    }

    /// Writes the status once nothing is left on the server.
    async fn end(&self, inputs: &Inputs) -> Result<Next, Error> {
        let cluster = &self.provider.cluster;
        self.provider.metrics.rotation_blocked(inputs.desired.dialect, &inputs.desired.id, None);
        if inputs.role.metadata.deletion_timestamp.is_none()
            && let Some((reason, message)) = inputs.why.clone()
        {
            let report = Report { is_ready: false, reason, message, rotation: Some(Rotation::None) };
            status::report(cluster, &inputs.role, report, Login::None).await?;
        }
        status::forget(cluster, &inputs.role).await?;
        Ok(Next::Rest)
    }

    /// The owners of the Secrets: the LogicalDatabase owns the rotation state, the role the connection.
    fn owners(&self, inputs: &Inputs) -> Result<Owners, Error> {
        let namespace = inputs.role.namespace().unwrap_or_default();
        let id = &inputs.desired.database.id;
        let record = self.provider.informers.record(id);
        // The rotation state of a login that is being removed is no longer written.
        let role = inputs.role.owner_ref(&()).unwrap_or_default();
        let record = match (&record, inputs.serves) {
            (Some(record), _) => record.owner_ref(&informers::records()).unwrap_or_default(),
            (None, false) => role.clone(),
            (None, true) => return Err(Error::Conflict),
        };
        Ok(Owners {
            id: inputs.desired.id.clone(),
            record,
            login: (namespace, status::secret_name(&inputs.role)),
            login_owner: role,
            is_connection: true,
            is_ending: !inputs.serves,
            application: None,
        })
    }
}

fn role_request<'a>(role: &'a DatabaseRole, claim: &'a (String, String)) -> RoleRequest<'a> {
    let namespace = role.metadata.namespace.as_deref().unwrap_or_default();
    let name = role.metadata.name.as_deref().unwrap_or_default();
    RoleRequest { role: (namespace, name), claim: (&claim.0, &claim.1), access: role.spec.access }
}

fn rotation_ms(role: &DatabaseRole, server: &Server) -> i64 {
    match role.spec.rotation_minutes {
        Some(minutes) => i64::from(minutes.clamp(60, 1440)) * 60_000,
        None => server.policy.rotation_ms,
    }
}

fn made_on_of(spec: &LogicalDatabaseSpec) -> MadeOn {
    MadeOn {
        database_id: spec.id.clone(),
        database_name: spec.database_name.clone(),
        server: spec.server.clone(),
    }
}

fn read_record(record: &DynamicObject) -> Option<(LogicalDatabaseSpec, DatabasePhase)> {
    let phase = informers::read(record, "/status/phase").unwrap_or(DatabasePhase::Pending);
    Some((informers::read(record, "/spec")?, phase))
}
