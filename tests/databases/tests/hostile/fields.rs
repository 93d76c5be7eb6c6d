//! Every field that carries a user's text, in one table, and the path of each: read as the controller reads it,
//! up to what is wanted on a server or the refusal. No schema of an API stands before it here, and no server behind.

use conductor::api::database::front::DatabaseClaimSpec;
use conductor::api::database::logical::DatabasePhase;
use conductor::api::database::role::{DatabaseGrantSpec, DatabaseRoleSpec};
use conductor::api::database::server::{DatabaseServerSpec, Offer};
use conductor::model::Quantity;
use conductor_sql_plan::database_claim::{self, Instance, choose};
use conductor_sql_plan::names::{Names, User};
use conductor_sql_plan::policy::chosen;
use conductor_sql_plan::role::{DesiredRole, RoleRequest, RoleStep, Standing, judge};
use conductor_sql_plan::rotation_state::{Pending, Request};
use conductor_sql_plan::server_config::{ServerConfig, config_of};
use conductor_sql_plan::sql::{self, Batch, Dialect, Extras};
use conductor_sql_plan::{DesiredDatabase, Policy, Step};
use serde_json::{Value, json};

/// Everything that people write, with one harmless value in each field.
#[derive(Clone)]
pub struct Input {
    pub server: Value,
    pub claim: Value,
    pub record: Value,
    pub role: Value,
    pub grant: Value,
    pub front: Value,
    pub config: String,
    /// What the configuration says, where nothing was put into it.
    instances: Option<Vec<Instance>>,
    pub rotate: String,
}

/// What a field is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A claim and its server.
    Claim,
    /// What is on record of a database.
    Record,
    /// An extra login.
    Role,
    /// A DatabaseClaim and the configuration of servers.
    Front,
}

/// A field, and how a text is put into it.
pub struct Field {
    pub name: &'static str,
    pub way: Way,
    pub put: fn(&mut Input, &str),
}

const fn field(name: &'static str, way: Way, put: fn(&mut Input, &str)) -> Field {
    Field { name, way, put }
}

/// A line of the configuration file, under an instance or at its top.
macro_rules! config {
    ($name:literal) => {
        field(concat!("configuration ", $name), Way::Front, |input, text| {
            input.instances = None;
            input.config = input.config.replace(concat!($name, ": "), &format!("{}: {text}\n  # ", $name));
        })
    };
}

macro_rules! at {
    ($object:ident, $name:literal, $way:expr, $pointer:literal) => {
        field($name, $way, |input, text| set(&mut input.$object, $pointer, text))
    };
}

/// All of them.
pub const FIELDS: &[Field] = &[
    at!(claim, "claim metadata.namespace", Way::Claim, "/metadata/namespace"),
    at!(claim, "claim metadata.name", Way::Claim, "/metadata/name"),
    at!(claim, "claim metadata.uid", Way::Claim, "/metadata/uid"),
    at!(claim, "claim parameters.databaseName", Way::Claim, "/spec/parameters/databaseName"),
    at!(claim, "claim parameters.userName", Way::Claim, "/spec/parameters/userName"),
    at!(claim, "claim parameters.reclaimPolicy", Way::Claim, "/spec/parameters/reclaimPolicy"),
    at!(claim, "claim parameters.schemas", Way::Claim, "/spec/parameters/schemas/0"),
    field("claim parameters.extensions, not allowed", Way::Claim, |input, text| {
        set(&mut input.claim, "/spec/parameters/extensions/0", text);
    }),
    field("claim parameters.extensions, allowed", Way::Claim, |input, text| {
        set(&mut input.claim, "/spec/parameters/extensions/0", text);
        set(&mut input.server, "/spec/databases/allowedExtensions/0", text);
    }),
    field("claim parameters, an unknown one", Way::Claim, |input, text| {
        input.claim["spec"]["parameters"][text] = Value::from(text);
    }),
    at!(claim, "claim requests.connections", Way::Claim, "/spec/resources/requests/connections"),
    at!(server, "server schemas", Way::Claim, "/spec/databases/schemas/0"),
    at!(server, "server extensions", Way::Claim, "/spec/databases/extensions/0"),
    at!(server, "server connectionLimit", Way::Claim, "/spec/databases/connectionLimit"),
    at!(server, "server host", Way::Claim, "/spec/host"),
    at!(server, "server admin.username", Way::Claim, "/spec/admin/username"),
    at!(server, "server admin.database", Way::Claim, "/spec/admin/database"),
    field("annotation rotate", Way::Claim, |input, text| text.clone_into(&mut input.rotate)),
    at!(record, "record id", Way::Record, "/id"),
    at!(record, "record databaseName", Way::Record, "/databaseName"),
    at!(record, "record userName", Way::Record, "/userName"),
    at!(role, "role metadata.namespace", Way::Role, "/metadata/namespace"),
    at!(role, "role metadata.name", Way::Role, "/metadata/name"),
    at!(role, "role metadata.uid", Way::Role, "/metadata/uid"),
    at!(role, "role claimRef.namespace", Way::Role, "/spec/claimRef/namespace"),
    at!(role, "role claimRef.name", Way::Role, "/spec/claimRef/name"),
    at!(role, "role access", Way::Role, "/spec/access"),
    at!(role, "role secretName", Way::Role, "/spec/secretName"),
    at!(role, "role rotationMinutes", Way::Role, "/spec/rotationMinutes"),
    at!(claim, "claim metadata.uid, for a role", Way::Role, "/metadata/uid"),
    at!(record, "record databaseName, for a role", Way::Role, "/databaseName"),
    at!(grant, "grant from.namespace", Way::Role, "/from/0/namespace"),
    at!(grant, "grant from.name", Way::Role, "/from/0/name"),
    at!(grant, "grant claims", Way::Role, "/claims/0"),
    at!(grant, "grant access", Way::Role, "/access"),
    at!(front, "DatabaseClaim AppID", Way::Front, "/AppID"),
    field("DatabaseClaim AppID, as the name", Way::Front, |input, text| {
        input.front = json!({"AppID": text, "InstanceLabel": "atlas"});
    }),
    at!(front, "DatabaseClaim SecretName", Way::Front, "/SecretName"),
    at!(front, "DatabaseClaim Type", Way::Front, "/Type"),
    at!(front, "DatabaseClaim InstanceLabel", Way::Front, "/InstanceLabel"),
    at!(front, "DatabaseClaim Username", Way::Front, "/Username"),
    at!(front, "DatabaseClaim DatabaseName", Way::Front, "/DatabaseName"),
    at!(front, "DatabaseClaim DBNameOverride", Way::Front, "/DBNameOverride"),
    at!(front, "DatabaseClaim DSNName", Way::Front, "/DSNName"),
    at!(front, "DatabaseClaim Host", Way::Front, "/Host"),
    at!(front, "DatabaseClaim Port", Way::Front, "/Port"),
    at!(front, "DatabaseClaim Shape", Way::Front, "/Shape"),
    at!(front, "DatabaseClaim MinStorageGB", Way::Front, "/MinStorageGB"),
    at!(front, "DatabaseClaim DeletePolicy", Way::Front, "/DeletePolicy"),
    field("DatabaseClaim, the name of a field", Way::Front, |input, text| {
        input.front[text] = Value::from("x");
    }),
    field("configuration, a label", Way::Front, |input, text| {
        input.instances = None;
        input.config = input.config.replace("atlas:", &format!("{text}:"));
    }),
    field("configuration, a whole line", Way::Front, |input, text| {
        input.instances = None;
        input.config = format!("{}\n{text}\n", input.config);
    }),
    config!("username"),
    config!("host"),
    config!("port"),
    config!("sslMode"),
    config!("passwordSecretRef"),
    config!("passwordSecretKey"),
    config!("shape"),
    config!("minStorageGB"),
    config!("engineVersion"),
    config!("deletePolicy"),
    config!("reclaimPolicy"),
    config!("type"),
    config!("passwordComplexity"),
    config!("minPasswordLength"),
    config!("passwordRotationPeriod"),
    config!("authSource"),
    config!("region"),
    config!("defaultMasterPort"),
    config!("defaultMasterUsername"),
    config!("defaultSslMode"),
    config!("defaultShape"),
    config!("defaultMinStorageGB"),
    config!("defaultEngineVersion"),
    config!("defaultDeletionPolicy"),
    config!("defaultReclaimPolicy"),
];

/// Puts a text into a field, or makes it the one item of a list.
fn set(object: &mut Value, pointer: &str, text: &str) {
    let (pointer, value) = match pointer.strip_suffix("/0") {
        Some(list) => (list, json!([text])),
        None => (pointer, json!(text)),
    };
    *object.pointer_mut(pointer).expect("the plain input has every field") = value;
}

const CONFIG: &str = "authSource: secret\nregion: eu\ndefaultMasterPort: 5432\ndefaultMasterUsername: root\n\
    defaultSslMode: disable\ndefaultShape: small\ndefaultMinStorageGB: 20\ndefaultEngineVersion: 15\n\
    defaultDeletionPolicy: delete\ndefaultReclaimPolicy: retain\n\
    passwordConfig:\n  passwordComplexity: enabled\n  minPasswordLength: 15\n  passwordRotationPeriod: 60\n\
    atlas:\n  username: root\n  host: some.service\n  port: 5432\n  sslMode: disable\n  passwordSecretRef: p\n  \
    passwordSecretKey: k\n  shape: small\n  minStorageGB: 20\n  engineVersion: 15\n  deletePolicy: delete\n  \
    reclaimPolicy: retain\n  type: postgres\n";

impl Input {
    /// The harmless one. Schemas and extensions are PostgreSQL's own.
    pub fn plain(dialect: Dialect) -> Input {
        let (engine, is_postgresql) = match dialect {
            Dialect::Postgresql => ("postgresql", true),
            Dialect::Mariadb => ("mariadb", false),
            Dialect::Mysql => ("mysql", false),
        };
        let list = |name: &str| if is_postgresql { json!([name]) } else { json!([]) };
        Input {
            server: json!({"spec": {
                "engine": engine, "host": "h", "admin": {"secretName": "s", "username": "root", "database": "d"},
                "databases": {"schemas": list("ours"), "extensions": list("hstore"),
                    "allowedExtensions": list("citext"), "connectionLimit": 20},
            }}),
            claim: json!({
                "metadata": {"namespace": "shop", "name": "orders", "uid": "u-1"},
                "spec": {"parameters": {"databaseName": "orders", "userName": "app", "reclaimPolicy": "Retain",
                    "schemas": list("audit"), "extensions": list("citext")},
                    "resources": {"requests": {"connections": "5"}}},
            }),
            record: json!({"id": "u-1", "databaseName": "orders", "userName": "app"}),
            role: json!({
                "metadata": {"namespace": "analytics", "name": "reports", "uid": "r-1"},
                "spec": {"claimRef": {"namespace": "shop", "name": "orders"}, "access": "ReadWrite",
                    "secretName": "reports", "rotationMinutes": 60},
            }),
            grant: json!({"from": [{"namespace": "analytics", "name": "reports"}], "claims": ["orders"],
                "access": "ReadWrite"}),
            front: json!({"AppID": "a", "SecretName": "s", "Type": "Postgres", "InstanceLabel": "atlas",
                "Username": "hostapp", "DatabaseName": "hosts", "DBNameOverride": "override", "DSNName": "dsn",
                "Host": "some.service", "Port": 5432, "Shape": "small", "MinStorageGB": 20,
                "DeletePolicy": "delete"}),
            config: CONFIG.to_owned(),
            instances: instances(CONFIG).ok(),
            rotate: "soft-1".to_owned(),
        }
    }
}

/// What comes of an input: what is wanted of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The database of a claim, and the request for another login.
    Database(Box<DesiredDatabase>, Option<Request>),
    /// An extra login.
    Role(Box<DesiredRole>),
}

/// Reads an input the way that a field is part of.
///
/// # Errors
/// What is refused before there is a statement.
pub fn plan(dialect: Dialect, way: Way, input: &Input) -> Result<Plan, String> {
    match way {
        Way::Claim => database(dialect, input, &input.claim["spec"], None),
        Way::Record => database(dialect, input, &Value::Null, Some(&input.record)),
        Way::Role => role(dialect, input).map(|role| Plan::Role(Box::new(role))),
        Way::Front => {
            let instances = match &input.instances {
                Some(instances) => instances.clone(),
                None => instances(&input.config)?,
            };
            let spec: DatabaseClaimSpec = read(&input.front)?;
            let requested =
                database_claim::ClaimRequest::read("hostapp", &spec).map_err(|error| error.to_string())?;
            let spec = requested.to_claim(choose(&requested, &instances)?);
            database(dialect, input, &spec, None)
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn instances(config: &str) -> Result<Vec<Instance>, String> {
    let server_config =
        config_of(config).and_then(|text| ServerConfig::read(&text)).map_err(|error| error.to_string())?;
    Ok(server_config.to_servers("s").iter().filter_map(instance).collect())
}

fn instance(server: &Value) -> Option<Instance> {
    let spec: DatabaseServerSpec = read(&server["spec"]).ok()?;
    let Offer { labels, capacity, .. } = spec.offer?;
    let (labels, capacity) = (labels?, json!(capacity));
    Some(Instance {
        name: text(server, "/metadata/name").to_owned(),
        label: labels.get("instance")?.clone(),
        shape: labels.get("shape").cloned(),
        storage: capacity.get("storage").and_then(|storage| Quantity::from_json(storage).ok()),
        host: spec.host,
        port: u16::try_from(spec.port?).ok()?,
        ..Instance::default()
    })
}

fn names(input: &Input, spec: &Value, record: Option<&Value>) -> Names {
    match record {
        Some(record) => {
            let user = record["userName"].as_str();
            Names::read(text(record, "/id"), text(record, "/databaseName"), user)
        }
        None => {
            let (database, user) = chosen(spec).unwrap_or_default();
            Names::new(text(&input.claim, "/metadata/uid"), database).with_user(user.as_ref())
        }
    }
}

fn database(dialect: Dialect, input: &Input, spec: &Value, record: Option<&Value>) -> Result<Plan, String> {
    let server: DatabaseServerSpec = read(&input.server["spec"])?;
    let rules = Policy::read(server.databases.as_ref()).map_err(|error| error.to_string())?;
    let names = names(input, spec, record);
    let desired =
        DesiredDatabase::read(names, dialect, &rules, spec, true).map_err(|error| error.to_string())?;
    Ok(Plan::Database(Box::new(desired), Request::read(&input.rotate)))
}

fn role(dialect: Dialect, input: &Input) -> Result<DesiredRole, String> {
    let spec: DatabaseRoleSpec = read(&input.role["spec"])?;
    let grant: DatabaseGrantSpec = read(&input.grant)?;
    let (namespace, name) = (text(&input.role, "/metadata/namespace"), text(&input.role, "/metadata/name"));
    let claim = (spec.claim_ref.namespace.as_deref().unwrap_or(namespace), spec.claim_ref.name.as_str());
    let requested = RoleRequest { role: (namespace, name), claim, access: spec.access };
    let is_claimed =
        claim == (text(&input.claim, "/metadata/namespace"), text(&input.claim, "/metadata/name"));
    match judge(requested, &[grant], is_claimed, Some(DatabasePhase::Ready)) {
        Standing::Served => {}
        Standing::Waits { message, .. } => return Err(message),
    }
    let database =
        Names::read(text(&input.claim, "/metadata/uid"), text(&input.record, "/databaseName"), None);
    Ok(DesiredRole::new(text(&input.role, "/metadata/uid"), spec.access, database, dialect, 0))
}

impl Plan {
    /// Every statement of a whole life, the queries of the server included, in the order of that life.
    pub fn statements(&self, verifier: &str) -> Vec<Batch> {
        let extras = Extras { verifier, is_superuser: false };
        match self {
            Plan::Database(desired, request) => {
                let look = Batch { at: sql::At::Server, text: sql::survey(desired.dialect, &desired.names) };
                let steps = steps(request.as_ref());
                let said = steps.iter().flat_map(|step| sql::statements(step, desired, extras));
                [look].into_iter().chain(said).collect()
            }
            Plan::Role(desired) => {
                let look = Batch { at: sql::At::Server, text: sql::role::survey(desired) };
                let said = role_steps().into_iter().flat_map(|s| sql::role::statements(&s, desired, extras));
                [look].into_iter().chain(said).collect()
            }
        }
    }

    /// The database that it is about.
    pub fn names(&self) -> &Names {
        match self {
            Plan::Database(desired, _) => &desired.names,
            Plan::Role(desired) => &desired.database,
        }
    }
}

/// Every step of a database that sends statements, and those with a user's text that must not.
fn steps(request: Option<&Request>) -> Vec<Step> {
    let token = request.map(|request| request.token.clone());
    vec![
        Step::CreateOwner,
        Step::CreateUser(User::A),
        Step::CreateUser(User::B),
        Step::CreateDatabase,
        Step::SetUp { is_first: true },
        Step::StorePending { user: User::A, generation: 1, answers: token.clone() },
        Step::SetPassword(Pending { user: User::A, generation: 1 }),
        Step::CloseRequest { token: token.unwrap_or_default() },
        Step::Revoke(User::A),
        Step::EndRights { token: String::new() },
        Step::Seal,
        Step::Rename,
        Step::Restore { is_renamed: true },
        Step::PutBackLimits,
        Step::DropDatabase { is_renamed: false },
        Step::DropUser(User::A),
        Step::DropUser(User::B),
        Step::DropOwner,
    ]
}

/// Every step of an extra login that speaks to a server.
fn role_steps() -> Vec<RoleStep> {
    vec![
        RoleStep::CreateGroup,
        RoleStep::SetUpGroup,
        RoleStep::CreateUser(User::A),
        RoleStep::CreateUser(User::B),
        RoleStep::SetAccess { user: User::A, generation: 1 },
        RoleStep::Login(Step::SetPassword(Pending { user: User::A, generation: 1 })),
        RoleStep::Login(Step::Revoke(User::A)),
        RoleStep::Login(Step::EndRights { token: String::new() }),
        RoleStep::DropUser { user: User::A, is_open: true },
        RoleStep::DropUser { user: User::B, is_open: true },
    ]
}
