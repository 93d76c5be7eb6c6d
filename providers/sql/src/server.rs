//! A server as its object describes it: its dialect, its address, and the policy for its databases.

use super::access::Access;
use super::admin_secret;
use super::api_client::ApiClient;
use super::error::Error;
use super::identity;
use super::informers::{self, Informers};
use super::pool::{Pool, Session};
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{
    AdminRef, DatabaseRules, DatabaseServerSpec, LocalServerSpec, Offer, ServerEngine, ServerStatus, SslMode,
};
use conductor_sql_plan::Policy;
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
    pub policy: Policy,
    pub offer: Option<Offer>,
    /// The recorded identity.
    pub identity: Option<String>,
}

impl Server {
    /// A login with the address that applications use.
    pub fn as_applications_see_it(&self, access: Access) -> Access {
        Access { host: self.host.clone(), port: self.port, ..access }
    }
}

/// Finds the server of a reference.
///
/// # Errors
/// There is none, or it cannot be read.
pub(super) fn find(informers: &Informers, reference: &ServerRef) -> Result<Server, Error> {
    let (kind, name) = (reference.kind.word(), &reference.name);
    let object = informers.server(reference);
    let object =
        object.ok_or_else(|| Error::Unreachable(format!("{kind} {name} does not exist: create it again")))?;
    read(reference, &object)
}

/// Reads a server's object.
///
/// # Errors
/// The invalid field.
pub(super) fn read(reference: &ServerRef, object: &DynamicObject) -> Result<Server, Error> {
    let (kind, name) = (reference.kind.word(), object.name_any());
    let wrong = |why: &str| Error::Invalid(format!("{kind} {name}: {why}"));
    match reference.kind {
        ServerKind::DatabaseServer => {
            let DatabaseServerSpec { engine, host, port, ssl_mode, admin, databases, offer } =
                spec(object, &wrong)?;
            let dialect = dialect(engine);
            let port = port.map_or(Some(default_port(dialect)), |port| u16::try_from(port).ok());
            Ok(Server {
                reference: reference.clone(),
                dialect,
                host,
                port: port.ok_or_else(|| wrong("spec.port is no port"))?,
                ssl_mode: ssl_mode.unwrap_or_default(),
                admin,
                policy: policy(databases.as_ref(), &wrong)?,
                offer,
                identity: informers::read::<ServerStatus>(object, "/status")
                    .and_then(|status| status.identity),
            })
        }
        ServerKind::LocalServer => {
            let LocalServerSpec { engine, databases, offer, max_connections: _, cache_mebibytes: _ } =
                spec(object, &wrong)?;
            let status: ServerStatus = informers::read(object, "/status").unwrap_or_default();
            let starting = || Error::Unreachable(format!("{kind} {name} is not running yet"));
            Ok(Server {
                reference: reference.clone(),
                dialect: dialect(engine),
                host: status.host.ok_or_else(starting)?,
                port: status.port.and_then(|port| u16::try_from(port).ok()).ok_or_else(starting)?,
                ssl_mode: SslMode::Disable,
                admin: AdminRef { secret_name: local_secret(&name), ..AdminRef::default() },
                policy: policy(databases.as_ref(), &wrong)?,
                offer,
                identity: None,
            })
        }
    }
}

/// The name of the Secret with the administrator's credentials of a local server.
pub(super) fn local_secret(name: &str) -> String {
    format!("{name}-local-admin")
}

fn spec<T: DeserializeOwned>(object: &DynamicObject, wrong: &dyn Fn(&str) -> Error) -> Result<T, Error> {
    informers::read(object, "/spec").ok_or_else(|| wrong("spec cannot be read"))
}

fn policy(policy: Option<&DatabaseRules>, wrong: &dyn Fn(&str) -> Error) -> Result<Policy, Error> {
    Policy::read(policy).map_err(|error| wrong(&error.to_string()))
}

pub(super) fn dialect(engine: ServerEngine) -> Dialect {
    match engine {
        ServerEngine::Postgresql => Dialect::Postgresql,
        // The server's greeting shows which of the two it is.
        ServerEngine::Mariadb | ServerEngine::Mysql => Dialect::Mariadb,
    }
}

pub(super) fn default_port(dialect: Dialect) -> u16 {
    match dialect {
        Dialect::Postgresql => 5432,
        Dialect::Mariadb | Dialect::Mysql => 3306,
    }
}

/// A session of the administrator on the recorded server.
///
/// # Errors
/// As [`connect`], or another server answers.
pub(super) async fn log_in(pool: &Pool, server: &Server, access: &Access) -> Result<Session, Error> {
    let mut session = connect(pool, server, access).await?;
    if let Err(error) = identity::require(server, &mut session).await {
        session.discard();
        return Err(error);
    }
    Ok(session)
}

/// A session of the administrator on the server that answers, to check it.
///
/// # Errors
/// The server cannot be reached; or it refuses the administrator, and then the Secret is named.
pub(super) async fn connect(pool: &Pool, server: &Server, access: &Access) -> Result<Session, Error> {
    let secret = &server.admin.secret_name;
    pool.session(access).await.map_err(|error| match error {
        Error::Credentials(why) => {
            Error::Credentials(format!("{why}; put the right password into Secret {secret}"))
        }
        other => other,
    })
}

/// The administrator's login.
///
/// # Errors
/// The Secret does not exist, lacks a key, or may not be used for this server.
pub(super) async fn access(cluster: &ApiClient, server: &Server) -> Result<Access, Error> {
    let Server { dialect, host, port, ssl_mode, admin, reference, .. } = server;
    let name = &admin.secret_name;
    let kind = reference.kind.word();
    let wrong = |what: &str| Error::Credentials(format!("{kind} {}: Secret {name} {what}", reference.name));
    let secret =
        cluster.find(&cluster.secrets(), name).await?.ok_or_else(|| wrong("does not exist: create it"))?;
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
