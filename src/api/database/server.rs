//! `DatabaseServer`, a server that the administrator runs, and `LocalServer`, one that Conductor runs as a process on its
//! own machine. Both configure the databases of claims, and can offer the server to claims as a RelationalDatabase.

use crate::api::common::{Quantities, ReclaimPolicy, Sharing, leave_description_to_field};
use crate::api::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Address and administrator of the server, and configuration of the databases on it.
#[skip_serializing_none]
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
    doc = "An existing database server on which each claim gets its own database and logins. Lives in the system namespace.",
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
    /// Engine of the server: postgresql, mariadb or mysql. Default postgresql.
    pub engine: ServerEngine,
    /// Host name or IP address of the server, such as db.example.com.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9.])?$"))]
    pub host: String,
    /// TCP port of the server. Default 5432 for PostgreSQL, 3306 for MariaDB and MySQL.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// TLS mode of all connections, those of Conductor and of applications: disable, require or verify-full. Default disable.
    pub ssl_mode: Option<SslMode>,
    /// Reference to a Secret in this namespace with the administrator's credentials.
    pub admin: AdminRef,
    /// Configuration of the databases of claims: rotation, passwords, reclaim policy, limits, schemas and extensions.
    pub databases: Option<DatabaseRules>,
    /// Offer the server to claims as a RelationalDatabase of the same name. Absent: not offered.
    pub offer: Option<Offer>,
}

/// Engine and size of the server, and configuration of the databases on it.
#[skip_serializing_none]
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
    /// Engine to run: postgresql, mariadb or mysql. Default postgresql.
    pub engine: ServerEngine,
    /// Maximum number of concurrent connections. Default 100.
    #[schemars(range(min = 10, max = 10_000))]
    pub max_connections: Option<i32>,
    /// Memory for the page cache (shared_buffers, innodb_buffer_pool_size) in MiB. Default 32.
    #[schemars(range(min = 8, max = 65_536))]
    pub cache_mebibytes: Option<i32>,
    /// Configuration of the databases of claims: rotation, passwords, reclaim policy, limits, schemas and extensions.
    pub databases: Option<DatabaseRules>,
    /// Offer the server to claims as a RelationalDatabase of the same name. Absent: not offered.
    pub offer: Option<Offer>,
}

/// Engine of a server.
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
    /// MySQL 8.0 or newer, or MariaDB: the version that the server reports decides.
    Mysql,
}

/// TLS mode of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum SslMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS with any server certificate.
    Require,
    /// TLS with a certificate for the host name that this machine trusts.
    VerifyFull,
}

impl SslMode {
    /// The value of `sslmode` in connection strings.
    pub fn word(self) -> &'static str {
        match self {
            SslMode::Disable => "disable",
            SslMode::Require => "require",
            SslMode::VerifyFull => "verify-full",
        }
    }
}

/// Reference to the Secret with the administrator's credentials.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AdminRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Key of the password in the Secret. Default password.
    #[schemars(length(min = 1, max = 253))]
    pub password_key: Option<String>,
    /// Name of the administrator. Default: the value of the key `username` in the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub username: Option<String>,
    /// Database to connect to. Default postgres on PostgreSQL, mysql on MariaDB and MySQL.
    #[schemars(length(min = 1, max = 63))]
    pub database: Option<String>,
}

/// Configuration of the databases on a server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseRules {
    /// Minutes between rotations of the login. Default 60.
    #[schemars(range(min = 60, max = 1440))]
    pub rotation_minutes: Option<i32>,
    /// Minutes after a rotation is due until it counts as overdue. Default: the value of rotationMinutes.
    #[schemars(range(min = 1, max = 525_600))]
    pub rotation_deadline_minutes: Option<i32>,
    /// What to do about sessions with an old login that delay a rotation beyond its deadline: Report or EndSessions. Default Report.
    pub rotation_deadline_policy: Option<DeadlinePolicy>,
    /// Length of passwords in characters. Default 32.
    #[schemars(range(min = 15, max = 99))]
    pub password_length: Option<i32>,
    /// What happens to a database when its claim is deleted: Retain or Delete. Default: the policy of the RelationalDatabase.
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// Minutes in quarantine, where a deleted database can be restored, before it is dropped. Default 1440 (a day); 0 drops it at once.
    #[schemars(range(min = 0, max = 525_600))]
    pub quarantine_minutes: Option<i32>,
    /// Maximum number of concurrent connections to one database. A claim's request for `connections` takes precedence. Absent: no limit.
    #[schemars(range(min = 2, max = 10_000))]
    pub connection_limit: Option<i32>,
    /// Schemas of every database, such as [app], in addition to those in the parameters of the claim. PostgreSQL only.
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub schemas: Option<Vec<String>>,
    /// Extensions of every database, such as [pg_trgm]. PostgreSQL only.
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_-]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub extensions: Option<Vec<String>>,
    /// Extensions that claims can request in their parameters. Default none, because some extensions give access to the whole server.
    #[schemars(length(max = 64), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_-]*$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_extensions: Option<Vec<String>>,
}

/// What to do about sessions that delay a rotation beyond its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum DeadlinePolicy {
    /// Keep the sessions; condition `RotationInTime` and a metric report the delay.
    #[default]
    Report,
    /// End the sessions; the application logs in again with the current login.
    EndSessions,
}

/// How to offer a server to claims.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Offer {
    /// Class of the RelationalDatabase. Absent: only claims without a class bind to it.
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Labels of the RelationalDatabase, for selectors of claims, such as {tier: gold}.
    #[serde(default)]
    #[schemars(schema_with = "labels_schema")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Total capacity by name, such as {storage: 500Gi, connections: 400}.
    pub capacity: Option<Quantities>,
    /// How many claims can share the server, and from which namespaces. Default: 100 claims, from any namespace.
    pub sharing: Option<Sharing>,
}

fn labels_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 63},
        "maxProperties": 64,
    })
}

/// State of the server, written by Conductor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerStatus {
    /// Host name or address at which the server is reachable.
    #[schemars(length(max = 253))]
    pub host: Option<String>,
    /// TCP port of the server.
    pub port: Option<i32>,
    /// Identity of the server, recorded at the first connection and compared before every change.
    #[schemars(length(max = 256))]
    pub identity: Option<String>,
    /// Version that the server reports.
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// Number of databases that Conductor created on the server.
    pub databases: Option<i64>,
    /// Size of all databases on the server, in MiB.
    pub size_mebibytes: Option<i64>,
    /// Number of connections at the last health check, rounded up to tens.
    pub connections_used: Option<i64>,
    /// Maximum number of connections that the server accepts.
    pub connections_max: Option<i64>,
    /// Conditions `Ready` (databases can be created on the server) and `Isolated` (logins of one claim cannot reach data of another).
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
}
