//! `DatabaseServer`, a server that somebody runs, and `LocalServer`, one that Conductor runs as a process beside itself.
//! Both say what each claim's database is like, and may offer themselves to claims.

use crate::api::common::{Quantities, ReclaimPolicy, Sharing, leave_description_to_field};
use crate::api::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the server is, who may administer it, and what the databases on it are like.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "database.conductor.io",
    version = "v1alpha1",
    kind = "DatabaseServer",
    plural = "databaseservers",
    singular = "databaseserver",
    shortname = "dbserver",
    category = "conductor",
    namespaced,
    status = "ServerStatus",
    derive = "PartialEq",
    doc = "A database server that exists, on which each claim gets a database and logins of its own. Lives in the system namespace.",
    printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine"),
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Databases", type_ = "integer", json_path = ".status.databases"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseServerSpec {
    /// What runs there.
    pub engine: ServerEngine,
    /// Name or address of the server.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9.])?$"))]
    pub host: String,
    /// Port; 5432 for PostgreSQL and 3306 for MariaDB where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// How connections are protected, ours and those of applications; absent is disable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<SslMode>,
    /// The administrator's credentials: a Secret in this namespace.
    pub admin: AdminRef,
    /// What each claim's database is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<DatabaseRules>,
    /// Makes a RelationalDatabase of the same name that claims can be bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

/// What to run, and what the databases on it are like.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "database.conductor.io",
    version = "v1alpha1",
    kind = "LocalServer",
    plural = "localservers",
    singular = "localserver",
    shortname = "dblocal",
    category = "conductor",
    namespaced,
    status = "ServerStatus",
    derive = "PartialEq",
    doc = "A database server that Conductor runs as a process on its own machine, from the installed binaries. Lives in the system namespace.",
    printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".status.port"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Databases", type_ = "integer", json_path = ".status.databases"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct LocalServerSpec {
    /// What to run.
    pub engine: ServerEngine,
    /// Most connections at a time; absent is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 10_000))]
    pub max_connections: Option<i32>,
    /// Memory for cached pages, in MiB; absent is 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 65_536))]
    pub cache_mebibytes: Option<i32>,
    /// What each claim's database is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<DatabaseRules>,
    /// Makes a RelationalDatabase of the same name that claims can be bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

/// What runs on a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ServerEngine {
    /// PostgreSQL.
    #[default]
    #[serde(alias = "postgres")]
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL from 8.0 on, or MariaDB: the server says which.
    Mysql,
}

/// How connections are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum SslMode {
    /// Not at all.
    #[default]
    Disable,
    /// By TLS, whatever certificate the server shows.
    Require,
    /// By TLS, with a certificate for the server's name that this machine trusts.
    VerifyFull,
}

impl SslMode {
    /// The word that drivers read.
    pub fn word(self) -> &'static str {
        match self {
            SslMode::Disable => "disable",
            SslMode::Require => "require",
            SslMode::VerifyFull => "verify-full",
        }
    }
}

/// The Secret with the administrator's credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AdminRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Key of the password; absent is password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: Option<String>,
    /// The administrator's name; absent, the Secret's key `username` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub username: Option<String>,
    /// Database to connect to; absent is postgres, or mysql.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub database: Option<String>,
}

/// What each claim's database is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseRules {
    /// Minutes between changes of the login; absent is 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 1440))]
    pub rotation_minutes: Option<i32>,
    /// Minutes after a change of the login was due until it is overdue; absent, as many as between changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub rotation_deadline_minutes: Option<i32>,
    /// What happens once a change is overdue because sessions still use the login before the last; absent is Report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_deadline_policy: Option<DeadlinePolicy>,
    /// Characters of a password; absent is 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 15, max = 99))]
    pub password_length: Option<i32>,
    /// What becomes of a database when its claim is gone; absent, the RelationalDatabase's policy counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// Minutes for which a database that is to be deleted can be had back; absent is 1440, 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 525_600))]
    pub quarantine_minutes: Option<i32>,
    /// Most connections to one database at a time; a claim's request for `connections` counts instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 10_000))]
    pub connection_limit: Option<i32>,
    /// Schemas that every database has, beside those that the claim's parameters name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub schemas: Option<Vec<String>>,
    /// Extensions that every database has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_-]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub extensions: Option<Vec<String>>,
    /// Extensions that a claim's parameters may name. Some give away the whole server: none is allowed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_-]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_extensions: Option<Vec<String>>,
}

/// What happens to sessions that hold up a change of the login beyond its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum DeadlinePolicy {
    /// They go on; a condition, a metric and the message report it.
    #[default]
    Report,
    /// They are ended; the application logs in again with the present login.
    EndSessions,
}

/// How a server is offered to claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Offer {
    /// The class that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Labels, for the selectors of claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels_schema")]
    pub labels: Option<BTreeMap<String, String>>,
    /// What it offers, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Quantities>,
    /// How many claims may hold it, and from where; absent means 100 claims from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

fn labels_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 63},
        "maxProperties": 64,
    })
}

/// What the server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerStatus {
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub host: Option<String>,
    /// On which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Which server it is: recorded at first contact, and compared before anything is done there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub identity: Option<String>,
    /// The version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// Databases on it that Conductor made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<i64>,
    /// Mebibytes that all databases on it take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mebibytes: Option<i64>,
    /// Connections at the time of the last look, rounded up to tens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_used: Option<i64>,
    /// Most connections that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<i64>,
    /// `Ready`: whether databases can be made on it, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
