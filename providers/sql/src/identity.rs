//! The identity of a registered server: recorded at first contact, compared before anything is done there, and written
//! down anew where an administrator accepts another server. What is judged is decided in `database::identity`.
//! Deliberately absent: servers that this process runs itself.

use super::pass::Provider;
use super::pool::Session;
use super::record::names_of;
use super::secret::Password;
use super::server::Server;
use super::trouble::Trouble;
use super::world;
use conductor::api::database::ACCEPT_SERVER;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor_sql_plan::identity::{Found, Known, Verdict, judge};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Databases on record that are looked for on a server whose identity is not known yet.
const LOOKED_FOR_MAX: usize = 50;

/// Characters of an Event's note.
const EVENT_MAX: usize = 1_000;

/// What is still to be written down of a server's identity.
pub(super) enum Next {
    Nothing,
    Record(String),
    Mark,
}

/// Compares who answers with who is on record, without writing anything.
///
/// # Errors
/// Another server answers; or the identity is not on record yet.
pub(super) async fn require(server: &Server, session: &mut Session) -> Result<(), Trouble> {
    if server.reference.kind != ServerKind::DatabaseServer {
        return Ok(());
    }
    let found = session.identity().await?;
    let known = Known { recorded: server.identity.as_deref(), accepted: None, is_strange: false };
    match judge(&found, known) {
        Verdict::Same => Ok(()),
        Verdict::Record(_) | Verdict::Mark => Err(Trouble::WrongServer(format!(
            "DatabaseServer {}: its identity is not on record yet",
            server.reference.name
        ))),
        Verdict::Refuse { why, accept } => Err(refused(server, &why, &accept)),
    }
}

/// The same when a server is looked at, where its identity may be recorded for the first time.
///
/// # Errors
/// Another server answers.
pub(super) async fn compare(
    provider: &Provider,
    server: &Server,
    object: &DynamicObject,
    session: &mut Session,
) -> Result<Next, Trouble> {
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

/// Writes down what [`compare`] found to be missing.
pub(super) async fn record(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
    session: &mut Session,
    next: Next,
) -> Result<(), Trouble> {
    let desk = &provider.desk;
    let identity = match next {
        Next::Nothing => return Ok(()),
        Next::Record(identity) => identity,
        Next::Mark => {
            desk.may_write()?;
            // The one that is there counts: another process may have been first.
            session.mark_server(&new_marker()).await?;
            match session.identity().await? {
                Found::Identity(identity) => identity,
                Found::Unmarked | Found::Unreadable => return Err(Trouble::Conflict),
            }
        }
    };
    let api = desk.others(&world::servers(reference.kind), &desk.namespace);
    desk.merge_status::<DynamicObject>(&api, &reference.name, json!({"identity": identity})).await?;
    if object.annotations().contains_key(ACCEPT_SERVER) {
        // It was accepted once, and for this server.
        let change = json!({"metadata": {"uid": object.uid(), "annotations": {ACCEPT_SERVER: null}}});
        desk.merge::<DynamicObject>(&api, &reference.name, change).await?;
    }
    Ok(())
}

/// Writes an Event where another server begins to answer. Best effort: the condition says the same.
pub(super) async fn warn(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
    trouble: &Trouble,
) {
    let is_known = world::text(object, "/status/conditions/0/reason") == trouble.reason();
    let (Trouble::WrongServer(message), false) = (trouble, is_known) else { return };
    let desk = &provider.desk;
    let kind = world::servers(reference.kind);
    let event = Event {
        metadata: ObjectMeta {
            // A dot at its end would make it no valid prefix.
            generate_name: Some(format!("{}-", reference.name)),
            namespace: Some(desk.namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(Timestamp::now())),
        action: Some("Compare".to_owned()),
        reason: Some(trouble.reason().to_owned()),
        note: Some(message.chars().take(EVENT_MAX).collect()),
        type_: Some("Warning".to_owned()),
        reporting_controller: Some("conductor.io/conductor".to_owned()),
        reporting_instance: Some("databases".to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some(kind.api_version),
            kind: Some(kind.kind),
            name: Some(reference.name.clone()),
            namespace: Some(desk.namespace.clone()),
            uid: object.uid(),
            ..ObjectReference::default()
        }),
        ..Event::default()
    };
    let api: Api<Event> = Api::namespaced(desk.client.clone(), &desk.namespace);
    if let Err(trouble) = desk.create(&api, &event).await {
        tracing::debug!(server = reference.name, %trouble, "its Event cannot be written");
    }
}

/// Whether databases are on record here, and none of them is found.
async fn is_strange(
    provider: &Provider,
    reference: &ServerRef,
    session: &mut Session,
) -> Result<bool, Trouble> {
    let made = provider.world.made_on(reference);
    for spec in made.iter().take(LOOKED_FOR_MAX) {
        if session.shows(&names_of(spec)).await? {
            return Ok(false);
        }
    }
    Ok(!made.is_empty())
}

fn refused(server: &Server, why: &str, accept: &str) -> Trouble {
    let (name, host, port) = (&server.reference.name, &server.host, server.port);
    let fix = match accept {
        "" => String::new(),
        accept => format!(
            "; correct spec.host and spec.port, or where this is the right server, with the data, accept it: kubectl annotate \
             databaseserver {name} {ACCEPT_SERVER}={accept}"
        ),
    };
    Trouble::WrongServer(format!(
        "DatabaseServer {name} at {host}:{port}: {why}; nothing is changed there{fix}"
    ))
}

fn new_marker() -> String {
    let random = Sha256::digest(Password::make(64).expose().as_bytes());
    random.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
