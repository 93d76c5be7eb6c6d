//! One pass over one role: whether it gets its login, then step after step. Nothing is taken away on the word of a
//! copy: that a grant or a claim is gone is asked live first.

use super::status::{self, Login, made_on};
use super::{Roles, claimed, grants, read_grant, roles};
use crate::book::{Book, Owners};
use crate::pass::Next;
use crate::pool::Session;
use crate::rotation::{Changing, Report, Rotation};
use crate::secret::verifier;
use crate::server::{self, Server};
use crate::trial::require_login;
use crate::trouble::Trouble;
use crate::{Access, clock, record, world};
use conductor::api::database::ROTATE;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabaseSpec, LogicalDatabaseStatus};
use conductor::api::database::role::{DatabaseGrantSpec, DatabaseRole, MadeOn};
use conductor_sql_plan::Step;
use conductor_sql_plan::ledger::{Ledger, Request};
use conductor_sql_plan::names::{Identifier, Names};
use conductor_sql_plan::role::{Asked, RoleStep, Standing, WantedRole, judge, serve_role, withdraw_role};
use conductor_sql_plan::sql::{Extras, role as sql};
use kube::ResourceExt;
use kube::api::DynamicObject;
use std::time::Duration;

/// Steps of one pass; more, and something undoes what we do.
const STEPS_MAX: usize = 40;

/// What is known at the beginning of a walk.
struct Case {
    role: DatabaseRole,
    serves: bool,
    wanted: WantedRole,
    server: Server,
    access: Access,
    request: Option<Request>,
    /// Told where the walk takes the login away.
    why: Option<(&'static str, String)>,
}

impl Roles {
    pub(super) async fn pass_over(&self, key: &str) -> Result<Next, Trouble> {
        let desk = &self.provider.desk;
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Next::Rest) };
        let Some(found) = desk.find(&desk.others(&roles(), namespace), name).await? else {
            return Ok(Next::Rest);
        };
        let Some(claim) = claimed(&found) else { return Ok(Next::Rest) };
        let role: DatabaseRole =
            found.try_parse().map_err(|_| Trouble::Invalid("the role cannot be read".to_owned()))?;
        let outcome = self.advance(&role, &claim).await;
        if let Err(trouble) = &outcome
            && !matches!(trouble, Trouble::Conflict | Trouble::NotLeading | Trouble::Api(_))
        {
            let (reason, message) = (trouble.reason(), trouble.to_string());
            let rotation = self.judge_failed(&role, &message);
            let report = Report { is_ready: false, reason, message, rotation };
            // What cannot be reported now, the next pass reports.
            let _ = status::tell(desk, &role, report, Login::AsBefore).await;
        }
        outcome
    }

    /// A change that is due and fails is as late as one that waits.
    fn judge_failed(&self, role: &DatabaseRole, why: &str) -> Option<Rotation> {
        let server = server::find(&self.provider.world, &made_on(role)?.server).ok()?;
        let rotated_at = role.status.as_ref()?.rotated_at.as_deref().and_then(clock::read);
        let (rotation_ms, deadline) = (rotation_ms(role, &server), server.rules.deadline);
        let (dialect, id) = (server.dialect, role.uid().unwrap_or_default());
        let changing = Changing { dialect, id: &id, rotation_ms, deadline, server: &server.reference };
        changing.judge_failed(Some(&Ledger { rotated_at, ..Ledger::default() }), why, &self.provider.figures)
    }

    async fn advance(&self, role: &DatabaseRole, claim: &(String, String)) -> Result<Next, Trouble> {
        let record = self.record_of(claim);
        let is_going = role.metadata.deletion_timestamp.is_some();
        let standing = match is_going {
            true => {
                Standing::Waits { reason: "Deleted", message: "it is being deleted".to_owned(), ends: true }
            }
            false => self.standing(role, claim, &self.grants_in(&claim.0), record.as_ref()),
        };
        let desk = &self.provider.desk;
        match (standing, record, made_on(role)) {
            (Standing::Served, Some((spec, _)), _) => {
                let made_on = made_on_of(&spec);
                status::begin(desk, role, &made_on).await?;
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
                    status::forget(desk, role).await?;
                    return Ok(Next::Rest);
                }
                let report = Report { is_ready: false, reason, message, rotation: Some(Rotation::None) };
                status::tell(desk, role, report, Login::None).await.map(|()| Next::Rest)
            }
            // Served and without a record: the copies are behind.
            (Standing::Served, None, _) => Err(Trouble::Conflict),
        }
    }

    /// The record of a claim's database, as last seen, where the claim is there.
    fn record_of(
        &self,
        (namespace, name): &(String, String),
    ) -> Option<(LogicalDatabaseSpec, DatabasePhase)> {
        let world = &self.provider.world;
        let claim = world.claim(namespace, name)?;
        read_record(&*world.record_of(&claim.uid()?)?)
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
            .world
            .claim(&claim.0, &claim.1)
            .is_some_and(|claim| claim.metadata.deletion_timestamp.is_none());
        judge(asked(role, claim), grants, is_claimed, record.map(|(_, phase)| *phase))
    }

    /// Asks the API itself whether the login really ends.
    async fn confirm(&self, role: &DatabaseRole, claim: &(String, String)) -> Result<(), Trouble> {
        let desk = &self.provider.desk;
        let listed = desk.list(&desk.others(&grants(), &claim.0)).await?;
        let granted: Vec<DatabaseGrantSpec> = listed.iter().filter_map(read_grant).collect();
        let found = desk.find(&desk.others(&world::claims(), &claim.0), &claim.1).await?;
        let found = found.filter(|claim| claim.metadata.deletion_timestamp.is_none());
        let record = found.as_ref().and_then(|claim| self.provider.world.record_of(&claim.uid()?));
        let record = match record {
            Some(record) => desk.find(&desk.records(), &record.name_any()).await?,
            None => None,
        };
        let phase = record.and_then(|record| record.status?.phase);
        match judge(asked(role, claim), &granted, found.is_some(), phase) {
            Standing::Waits { ends: true, .. } => Ok(()),
            Standing::Waits { ends: false, .. } | Standing::Served => Err(Trouble::Conflict),
        }
    }

    /// What is wanted, and how the server is reached.
    async fn open(
        &self,
        role: &DatabaseRole,
        made_on: &MadeOn,
        serves: bool,
        why: Option<(&'static str, String)>,
    ) -> Result<Case, Trouble> {
        let server = server::find(&self.provider.world, &made_on.server)?;
        let access = server::access(&self.provider.desk, &server).await?;
        let database = Identifier::read(&made_on.database_name)
            .map_err(|error| Trouble::Invalid(format!("status.madeOn.databaseName: {error}")))?;
        let names = Names::new(&made_on.database_id, Some(database));
        let rotation_ms = rotation_ms(role, &server);
        let id = role.uid().unwrap_or_default();
        let mut wanted = WantedRole::new(&id, role.spec.access, names, server.dialect, rotation_ms);
        wanted.deadline = server.rules.deadline;
        let request = role.annotations().get(ROTATE).and_then(|text| Request::read(text));
        Ok(Case { role: role.clone(), serves, wanted, server, access, request, why })
    }

    /// Step after step.
    async fn walk(&self, mut case: Case) -> Result<Next, Trouble> {
        let mut book = Book::open(&self.provider.desk, self.owners(&case)?).await?;
        book.compare_with(&case.server);
        let mut session = server::log_in(&self.provider.pool, &case.server, &case.access).await?;
        case.wanted.dialect = session.dialect();
        let mut seen = session.survey_role(&case.wanted).await?;
        for _ in 0..STEPS_MAX {
            let step = match case.serves {
                true => {
                    let (ledger, request) = (book.state.as_ref(), case.request.as_ref());
                    serve_role(&case.wanted, &seen, ledger, request, clock::now())
                }
                false => withdraw_role(&seen, book.has_secrets()),
            };
            book.allow(matches!(&step, RoleStep::Login(step) if step.revokes()))?;
            let is_sql = self.carry_out(&step, &mut case, &mut session, &mut book).await?;
            tracing::debug!(role = case.wanted.id, ?step, "done");
            match step {
                RoleStep::Login(Step::Wait { until, why }) => {
                    return self.rest(&case, &book, until, why).await;
                }
                RoleStep::Login(Step::Refuse(refusal)) => return Err(Trouble::Refused(refusal.to_string())),
                RoleStep::Login(Step::Forget) => return self.end(&case).await,
                _ if is_sql => seen = session.survey_role(&case.wanted).await?,
                _ => {}
            }
        }
        Err(Trouble::Refused("the server does not keep what it is told: somebody undoes it".to_owned()))
    }

    /// Carries out one step; says whether the server was told something.
    async fn carry_out(
        &self,
        step: &RoleStep,
        case: &mut Case,
        session: &mut Session,
        book: &mut Book,
    ) -> Result<bool, Trouble> {
        let desk = &self.provider.desk;
        match step {
            RoleStep::Login(Step::StorePending { user, generation, answers }) => {
                let change = (*user, *generation, answers.as_deref());
                book.store_pending(desk, change, case.server.rules.password_length).await?;
            }
            RoleStep::Login(Step::Publish { user, generation }) => {
                let (database, user) = (&case.wanted.database.database, case.wanted.user(*user));
                let password = book.password(*generation)?;
                let access = case.access.log_in_as(user.as_str(), password, database.as_str());
                require_login(session, &access, (database, user)).await?;
                book.publish(desk, &case.server.as_applications_see_it(access), *generation).await?;
            }
            RoleStep::Login(Step::Promote { user, generation }) => {
                book.promote(desk, *user, *generation).await?;
            }
            RoleStep::Login(Step::EndRights { token }) => {
                self.tell_server(step, case, session, book).await?;
                book.note_revoked(desk, token).await?;
                if let Some(ledger) = &book.state {
                    case.role = status::revoked(desk, &case.role, &case.wanted, ledger).await?;
                }
                return Ok(true);
            }
            RoleStep::Login(Step::CloseRequest { token }) => book.close_request(desk, token).await?,
            RoleStep::Login(Step::ForgetLogins) => {
                desk.may_destroy().await?;
                book.forget(desk).await?;
            }
            RoleStep::Login(Step::Wait { .. } | Step::Refuse(_) | Step::Forget) => {}
            _ => return self.tell_server(step, case, session, book).await,
        }
        Ok(false)
    }

    async fn tell_server(
        &self,
        step: &RoleStep,
        case: &Case,
        session: &mut Session,
        book: &Book,
    ) -> Result<bool, Trouble> {
        let takes_away = match step {
            RoleStep::Login(step) => step.revokes(),
            RoleStep::DropUser { .. } => true,
            _ => false,
        };
        match takes_away {
            true => self.provider.desk.may_destroy().await?,
            false => self.provider.desk.may_write()?,
        }
        let secret = match step {
            RoleStep::Login(Step::SetPassword { generation, .. }) => {
                verifier(case.wanted.dialect, &book.password(*generation)?)
            }
            _ => String::new(),
        };
        let batches = sql::statements(step, &case.wanted, Extras { verifier: &secret, is_superuser: false });
        self.provider.figures.sent(case.wanted.dialect, batches.len());
        session.carry_out(&batches, &case.wanted.database).await?;
        Ok(true)
    }

    /// Nothing to do: the role says how it stands.
    async fn rest(
        &self,
        case: &Case,
        book: &Book,
        until: conductor::model::Time,
        why: Option<String>,
    ) -> Result<Next, Trouble> {
        let (rotation_ms, deadline) = (case.wanted.rotation_ms, case.wanted.deadline);
        let (dialect, server) = (case.wanted.dialect, &case.server.reference);
        let changing = Changing { dialect, id: &case.wanted.id, rotation_ms, deadline, server };
        let rotation = changing.judge(book.state.as_ref(), why.as_deref(), &self.provider.figures);
        let message = why.unwrap_or_else(|| "its application can log in".to_owned());
        let report = Report { is_ready: true, reason: "Ready", message, rotation: Some(rotation) };
        let login = book.state.as_ref().map_or(Login::None, |ledger| Login::Now(&case.wanted, ledger));
        status::tell(&self.provider.desk, &case.role, report, login).await?;
        let ms = until.0.saturating_sub(clock::now().0);
        Ok(Next::After(Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
    }

    /// Nothing of it is left on the server.
    async fn end(&self, case: &Case) -> Result<Next, Trouble> {
        let desk = &self.provider.desk;
        self.provider.figures.rotation_blocked(case.wanted.dialect, &case.wanted.id, None);
        if case.role.metadata.deletion_timestamp.is_none()
            && let Some((reason, message)) = case.why.clone()
        {
            let report = Report { is_ready: false, reason, message, rotation: Some(Rotation::None) };
            status::tell(desk, &case.role, report, Login::None).await?;
        }
        status::forget(desk, &case.role).await?;
        Ok(Next::Rest)
    }

    /// Whose the Secrets are: the ledger goes with the record of the database, the connection with the role.
    fn owners(&self, case: &Case) -> Result<Owners, Trouble> {
        let namespace = case.role.namespace().unwrap_or_default();
        let id = &case.wanted.database.id;
        let record = self.provider.world.record(id);
        // The ledger of one that only ends is not written any more.
        let record = match (&record, case.serves) {
            (Some(record), _) => record::reference_to(record),
            (None, false) => status::reference(&case.role),
            (None, true) => return Err(Trouble::Conflict),
        };
        Ok(Owners {
            id: case.wanted.id.clone(),
            record,
            login: (namespace, status::secret_name(&case.role)),
            login_owner: status::reference(&case.role),
            is_connection: true,
            is_ending: !case.serves,
            application: None,
        })
    }
}

fn asked<'a>(role: &'a DatabaseRole, claim: &'a (String, String)) -> Asked<'a> {
    let namespace = role.metadata.namespace.as_deref().unwrap_or_default();
    let name = role.metadata.name.as_deref().unwrap_or_default();
    Asked { role: (namespace, name), claim: (&claim.0, &claim.1), access: role.spec.access }
}

fn rotation_ms(role: &DatabaseRole, server: &Server) -> i64 {
    match role.spec.rotation_minutes {
        Some(minutes) => i64::from(minutes.clamp(60, 1440)) * 60_000,
        None => server.rules.rotation_ms,
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
    let spec = serde_json::from_value(record.data.get("spec")?.clone()).ok()?;
    let status: LogicalDatabaseStatus =
        record.data.get("status").and_then(|s| serde_json::from_value(s.clone()).ok()).unwrap_or_default();
    Some((spec, status.phase.unwrap_or(DatabasePhase::Pending)))
}
