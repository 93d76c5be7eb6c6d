//! The identity of a registered server: recorded at first contact, compared before any change there, and recorded again
//! where an administrator accepts another server. `conductor_sql_plan::identity` decides. Deliberately absent: servers that
//! this process runs itself.

use super::error::Error;
use super::informers;
use super::logical_database::names_of;
use super::pool::Session;
use super::reconcile::Provider;
use super::secret::Password;
use super::server::Server;
use conductor::api::database::ACCEPT_SERVER;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor_sql_plan::identity::{Found, Known, Verdict, judge};
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Most recorded databases that are searched on a server without a recorded identity.
const LOOKED_FOR_MAX: usize = 50;

/// What remains to be recorded of a server's identity.
pub(super) enum Next {
    Nothing,
    Record(String),
    Mark,
}

/// Compares the server that answers with the recorded one, without writing anything.
///
/// # Errors
/// Another server answers; or no identity is recorded yet.
pub(super) async fn require(server: &Server, session: &mut Session) -> Result<(), Error> {
    if server.reference.kind != ServerKind::DatabaseServer {
        return Ok(());
    }
    let found = session.identity().await?;
    let known = Known { recorded: server.identity.as_deref(), accepted: None, is_strange: false };
    match judge(&found, known) {
        Verdict::Same => Ok(()),
        Verdict::Record(_) | Verdict::Mark => Err(Error::WrongServer(format!(
            "DatabaseServer {}: its identity is not recorded yet",
            server.reference.name
        ))),
        Verdict::Refuse { why, accept } => Err(refused(server, &why, &accept)),
    }
}

/// The same during a check, where the identity may be recorded for the first time.
///
/// # Errors
/// Another server answers.
pub(super) async fn compare(
    provider: &Provider,
    server: &Server,
    object: &DynamicObject,
    session: &mut Session,
) -> Result<Next, Error> {
    if server.reference.kind != ServerKind::DatabaseServer {
        return Ok(Next::Nothing);
    }
    let found = session.identity().await?;
    let recorded = server.identity.as_deref();
    let is_strange = match recorded {
        Some(_) => false,
        None => found != Found::Unreadable && is_strange(provider, &server.reference, session).await?,
    };
    let accepted = object.annotations().get(ACCEPT_SERVER).map(String::as_str);
    match judge(&found, Known { recorded, accepted, is_strange }) {
        Verdict::Same => Ok(Next::Nothing),
        Verdict::Record(identity) => Ok(Next::Record(identity)),
        Verdict::Mark => Ok(Next::Mark),
        Verdict::Refuse { why, accept } => Err(refused(server, &why, &accept)),
    }
}

/// Records what [`compare`] found missing.
pub(super) async fn record(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
    session: &mut Session,
    next: Next,
) -> Result<(), Error> {
    let cluster = &provider.cluster;
    let identity = match next {
        Next::Nothing => return Ok(()),
        Next::Record(identity) => identity,
        Next::Mark => {
            cluster.may_write()?;
            // The existing one counts: another process may have been first.
            session.mark_server(&new_marker()).await?;
            match session.identity().await? {
                Found::Identity(identity) => identity,
                Found::Unmarked | Found::Unreadable => return Err(Error::Conflict),
            }
        }
    };
    let api = cluster.others(&informers::servers(reference.kind), &cluster.namespace);
    cluster.merge_status::<DynamicObject>(&api, &reference.name, json!({"identity": identity})).await?;
    if object.annotations().contains_key(ACCEPT_SERVER) {
        // The acceptance is for this server, and once.
        let change = json!({"metadata": {"uid": object.uid(), "annotations": {ACCEPT_SERVER: null}}});
        cluster.merge::<DynamicObject>(&api, &reference.name, change).await?;
    }
    Ok(())
}

/// Writes an Event when another server begins to answer. Best effort: the condition says the same.
pub(super) async fn warn(provider: &Provider, reference: &ServerRef, object: &DynamicObject, error: &Error) {
    let is_known = informers::text(object, "/status/conditions/0/reason") == error.reason();
    let (Error::WrongServer(message), false) = (error, is_known) else { return };
    let regarding = object.object_ref(&informers::servers(reference.kind));
    provider.cluster.warn(regarding, error.reason(), message).await;
}

/// Whether databases are recorded here, and none of them is found.
async fn is_strange(
    provider: &Provider,
    reference: &ServerRef,
    session: &mut Session,
) -> Result<bool, Error> {
    let made = provider.informers.made_on(reference);
    for spec in made.iter().take(LOOKED_FOR_MAX) {
        if session.shows(&names_of(spec)).await? {
            return Ok(false);
        }
    }
    Ok(!made.is_empty())
}

fn refused(server: &Server, why: &str, accept: &str) -> Error {
    let (name, host, port) = (&server.reference.name, &server.host, server.port);
    let fix = match accept {
        "" => String::new(),
        accept => format!(
            "; correct spec.host and spec.port, or where this is the right server, with the data, accept it: kubectl annotate \
             databaseserver {name} {ACCEPT_SERVER}={accept}"
        ),
    };
    Error::WrongServer(format!(
        "DatabaseServer {name} at {host}:{port}: {why}; nothing is changed there{fix}"
    ))
}

fn new_marker() -> String {
    let random = Sha256::digest(Password::make(64).expose().as_bytes());
    random.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
