//! A server as its object says it: what it speaks, how it is reached, and the rules for databases on it.

use super::access::Access;
use super::admin_secret;
use super::desk::Desk;
use super::identity;
use super::pool::{Pool, Session};
use super::trouble::Trouble;
use super::world::World;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{
    AdminRef, DatabaseRules, DatabaseServerSpec, LocalServerSpec, Offer, ServerEngine, ServerStatus, SslMode,
};
use conductor_sql_plan::Rules;
use conductor_sql_plan::sql::Dialect;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

/// A server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub reference: ServerRef,
    pub dialect: Dialect,
    pub host: String,
    pub port: u16,
    pub ssl_mode: SslMode,
    pub admin: AdminRef,
    pub rules: Rules,
    pub offer: Option<Offer>,
    /// The identity on record.
    pub identity: Option<String>,
}

impl Server {
    /// A login as applications are told it.
    pub fn as_applications_see_it(&self, access: Access) -> Access {
        Access { host: self.host.clone(), port: self.port, ..access }
    }
}

/// The server that a reference leads to.
///
/// # Errors
/// There is none, or it cannot be read.
pub(super) fn find(world: &World, reference: &ServerRef) -> Result<Server, Trouble> {
    let (kind, name) = (reference.kind.word(), &reference.name);
    let object = world.server(reference);
    let object =
        object.ok_or_else(|| Trouble::Unreachable(format!("there is no {kind} {name}: make it again")))?;
    read(reference, &object)
}

/// Reads a server's object.
///
/// # Errors
/// The field that cannot be honoured.
pub(super) fn read(reference: &ServerRef, object: &DynamicObject) -> Result<Server, Trouble> {
    let (kind, name) = (reference.kind.word(), object.name_any());
    let wrong = |why: &str| Trouble::Invalid(format!("{kind} {name}: {why}"));
    match reference.kind {
        ServerKind::DatabaseServer => {
            let spec: DatabaseServerSpec =
                part(object, "spec").ok_or_else(|| wrong("spec cannot be read"))?;
            let DatabaseServerSpec { engine, host, port, ssl_mode, admin, databases, offer } = spec;
            let dialect = dialect(engine);
            let port = port.map_or(Some(default_port(dialect)), |port| u16::try_from(port).ok());
            Ok(Server {
                reference: reference.clone(),
                dialect,
                host,
                port: port.ok_or_else(|| wrong("spec.port is no port"))?,
                ssl_mode: ssl_mode.unwrap_or_default(),
                admin,
                rules: rules(databases.as_ref(), &wrong)?,
                offer,
                identity: part::<ServerStatus>(object, "status").and_then(|status| status.identity),
            })
        }
        ServerKind::LocalServer => {
            let spec: LocalServerSpec = part(object, "spec").ok_or_else(|| wrong("spec cannot be read"))?;
            let LocalServerSpec { engine, databases, offer, max_connections: _, cache_mebibytes: _ } = spec;
            let status: ServerStatus = part(object, "status").unwrap_or_default();
            let starting = || Trouble::Unreachable(format!("{kind} {name} is not running yet"));
            Ok(Server {
                reference: reference.clone(),
                dialect: dialect(engine),
                host: status.host.ok_or_else(starting)?,
                port: status.port.and_then(|port| u16::try_from(port).ok()).ok_or_else(starting)?,
                ssl_mode: SslMode::Disable,
                admin: AdminRef { secret_name: local_secret(&name), ..AdminRef::default() },
                rules: rules(databases.as_ref(), &wrong)?,
                offer,
                identity: None,
            })
        }
    }
}

/// The Secret with the administrator's credentials of a server that we run.
pub(super) fn local_secret(name: &str) -> String {
    format!("{name}-local-admin")
}

fn rules(rules: Option<&DatabaseRules>, wrong: &dyn Fn(&str) -> Trouble) -> Result<Rules, Trouble> {
    Rules::read(rules).map_err(|error| wrong(&error.to_string()))
}

fn part<T: DeserializeOwned>(object: &DynamicObject, name: &str) -> Option<T> {
    serde_json::from_value(object.data.get(name)?.clone()).ok()
}

pub(super) fn dialect(engine: ServerEngine) -> Dialect {
    match engine {
        ServerEngine::Postgresql => Dialect::Postgresql,
        // Which of the two a server is, it says itself.
        ServerEngine::Mariadb | ServerEngine::Mysql => Dialect::Mariadb,
    }
}

pub(super) fn default_port(dialect: Dialect) -> u16 {
    match dialect {
        Dialect::Postgresql => 5432,
        Dialect::Mariadb | Dialect::Mysql => 3306,
    }
}

/// A session of the administrator, on the server that is on record and no other.
///
/// # Errors
/// As [`connect`], or another server answers.
pub(super) async fn log_in(pool: &Pool, server: &Server, access: &Access) -> Result<Session, Trouble> {
    let mut session = connect(pool, server, access).await?;
    if let Err(trouble) = identity::require(server, &mut session).await {
        session.discard();
        return Err(trouble);
    }
    Ok(session)
}

/// A session of the administrator on whatever server answers, to look at it.
///
/// # Errors
/// The server cannot be reached; or it does not know the administrator, and then the Secret is named.
pub(super) async fn connect(pool: &Pool, server: &Server, access: &Access) -> Result<Session, Trouble> {
    let secret = &server.admin.secret_name;
    pool.session(access).await.map_err(|trouble| match trouble {
        Trouble::Credentials(why) => {
            Trouble::Credentials(format!("{why}; put the right password into Secret {secret}"))
        }
        other => other,
    })
}

/// How the administrator logs in.
///
/// # Errors
/// The Secret is not there, lacks a key, or may not be used for this server.
pub(super) async fn access(desk: &Desk, server: &Server) -> Result<Access, Trouble> {
    let Server { dialect, host, port, ssl_mode, admin, reference, .. } = server;
    let name = &admin.secret_name;
    let kind = reference.kind.word();
    let wrong = |what: &str| Trouble::Credentials(format!("{kind} {}: Secret {name} {what}", reference.name));
    let secret = desk.find(&desk.secrets(), name).await?.ok_or_else(|| wrong("is not there: make it"))?;
    let (username, password) = admin_secret::read(&secret, server).map_err(|why| wrong(&why))?;
    let home = match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "mysql",
    };
    Ok(Access {
        dialect: *dialect,
        host: host.clone(),
        port: *port,
        ssl_mode: *ssl_mode,
        username,
        password,
        database: admin.database.clone().unwrap_or_else(|| home.to_owned()),
    })
}
