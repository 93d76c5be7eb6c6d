//! A claim's desired database: the server's policy, overridden by the claim's spec. Invalid values are refused with their
//! path; none reaches a server unvalidated.

use super::names::{Identifier, Names, User};
use super::sql::Dialect;
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::server::{DatabaseRules, DeadlinePolicy};
use conductor::model::{FieldError, ValueError};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Incremented whenever the set-up of databases changes, so that existing databases are set up again.
const SET_UP_FORM: u32 = 2;
/// Most names in a claim's list.
const LIST_MAX: usize = 32;

/// A server's policy for its databases, with every default applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time between rotations of a login.
    pub rotation_ms: i64,
    /// When a rotation is overdue.
    pub deadline: Deadline,
    /// Characters of a password.
    pub password_length: usize,
    /// The reclaim policy of databases, if the server sets one.
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// For how long a dropped claim's database can be restored.
    pub quarantine_minutes: i32,
    connection_limit: Option<u32>,
    schemas: Vec<String>,
    extensions: Vec<String>,
    allowed_extensions: Vec<String>,
}

impl Policy {
    /// Reads the policy in a server's spec.
    ///
    /// # Errors
    /// A number outside its range: objects may be older than the schema that refuses it.
    pub fn read(policy: Option<&DatabaseRules>) -> Result<Policy, FieldError> {
        let none = DatabaseRules::default();
        let DatabaseRules {
            rotation_minutes,
            rotation_deadline_minutes,
            rotation_deadline_policy,
            password_length,
            reclaim_policy,
            quarantine_minutes,
            connection_limit,
            schemas,
            extensions,
            allowed_extensions,
        } = policy.unwrap_or(&none);
        let minutes = ranged(*rotation_minutes, 60, (60, 1440), "spec.databases.rotationMinutes")?;
        let deadline = "spec.databases.rotationDeadlineMinutes";
        let deadline = ranged(*rotation_deadline_minutes, minutes, (1, 525_600), deadline)?;
        let length = ranged(*password_length, 32, (15, 99), "spec.databases.passwordLength")?;
        let quarantine = ranged(*quarantine_minutes, 1440, (0, 525_600), "spec.databases.quarantineMinutes")?;
        Ok(Policy {
            rotation_ms: i64::from(minutes) * 60_000,
            deadline: Deadline {
                after_ms: i64::from(deadline) * 60_000,
                ends_sessions: *rotation_deadline_policy == Some(DeadlinePolicy::EndSessions),
            },
            password_length: usize::try_from(length).unwrap_or(32),
            reclaim_policy: *reclaim_policy,
            quarantine_minutes: quarantine,
            connection_limit: connection_limit.and_then(|limit| u32::try_from(limit).ok()),
            schemas: schemas.clone().unwrap_or_default(),
            extensions: extensions.clone().unwrap_or_default(),
            allowed_extensions: allowed_extensions.clone().unwrap_or_default(),
        })
    }
}

fn ranged(value: Option<i32>, default: i32, range: (i32, i32), field: &str) -> Result<i32, FieldError> {
    let (least, most) = range;
    match value.unwrap_or(default) {
        value if (least..=most).contains(&value) => Ok(value),
        value => Err(ValueError::new(
            &value.to_string(),
            "is out of range",
            format!("write a number from {least} to {most}"),
        )
        .in_field(field)),
    }
}

/// When a due rotation is overdue, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Time after the rotation was due.
    pub after_ms: i64,
    /// Whether sessions that hold up the rotation are ended then.
    pub ends_sessions: bool,
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline { after_ms: 3_600_000, ends_sessions: false }
    }
}

/// The desired database of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredDatabase {
    /// Its names.
    pub names: Names,
    /// The server's dialect.
    pub dialect: Dialect,
    /// Schemas beside the engine's own.
    pub schemas: Vec<Identifier>,
    /// Extensions.
    pub extensions: Vec<Identifier>,
    /// Its connection limit.
    pub connection_limit: Option<u32>,
    /// The time between rotations of its login.
    pub rotation_ms: i64,
    /// When a rotation is overdue.
    pub deadline: Deadline,
    /// Whether it existed before: a lost database is never replaced by an empty one.
    pub was_made: bool,
    /// What is invalid in the spec of a database that existed before: its inside stays as it is.
    pub unread: Option<String>,
}

impl DesiredDatabase {
    /// The server's policy, overridden by the claim's spec.
    ///
    /// # Errors
    /// The first invalid value of the claim or the server.
    pub fn read(
        names: Names,
        dialect: Dialect,
        policy: &Policy,
        claim_spec: &Value,
        was_made: bool,
    ) -> Result<DesiredDatabase, FieldError> {
        let requested = |name: &str| list(claim_spec.pointer("/parameters").and_then(|p| p.get(name)), name);
        let (schemas, extensions) = (requested("schemas")?, requested("extensions")?);
        for extension in &extensions {
            if !policy.allowed_extensions.contains(extension) && !policy.extensions.contains(extension) {
                return Err(ValueError::new(
                    extension,
                    "is not allowed on this server",
                    "have it added to spec.databases.allowedExtensions of the server",
                )
                .in_field("spec.parameters.extensions"));
            }
        }
        check_chosen(&names, claim_spec)?;
        let schemas = both(&policy.schemas, schemas, "schemas", Identifier::read_schema)?;
        let extensions = both(&policy.extensions, extensions, "extensions", Identifier::read_extension)?;
        if dialect != Dialect::Postgresql && !(schemas.is_empty() && extensions.is_empty()) {
            return Err(ValueError::new("", "is for PostgreSQL only", "leave it out")
                .in_field("spec.parameters.schemas, extensions"));
        }
        let base = DesiredDatabase::bare(names, dialect, policy, claim_spec);
        Ok(DesiredDatabase { schemas, extensions, was_made, ..base })
    }

    /// A database that existed before, with an invalid spec: its logins rotate all the same, and its connection limit applies.
    pub fn keep(
        names: Names,
        dialect: Dialect,
        policy: &Policy,
        claim_spec: &Value,
        unread: &FieldError,
    ) -> DesiredDatabase {
        let base = DesiredDatabase::bare(names, dialect, policy, claim_spec);
        DesiredDatabase { unread: Some(unread.to_string()), was_made: true, ..base }
    }

    fn bare(names: Names, dialect: Dialect, policy: &Policy, claim_spec: &Value) -> DesiredDatabase {
        DesiredDatabase {
            names,
            dialect,
            schemas: Vec::new(),
            extensions: Vec::new(),
            connection_limit: connections(claim_spec).or(policy.connection_limit),
            rotation_ms: policy.rotation_ms,
            deadline: policy.deadline,
            was_made: false,
            unread: None,
        }
    }

    /// The digest of its set-up.
    pub fn set_up(&self) -> String {
        let DesiredDatabase {
            names: _,
            dialect: _,
            schemas,
            extensions,
            connection_limit,
            rotation_ms: _,
            deadline: _,
            was_made: _,
            unread: _,
        } = self;
        let text = format!("{SET_UP_FORM} {schemas:?} {extensions:?} {connection_limit:?}");
        Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The names that a claim chooses for its database and its users, if any.
///
/// # Errors
/// An invalid name.
pub fn chosen(claim_spec: &Value) -> Result<(Option<Identifier>, Option<Identifier>), FieldError> {
    let read = |name: &str, read: fn(&str) -> Result<Identifier, ValueError>| {
        let field = format!("spec.parameters.{name}");
        match claim_spec.pointer("/parameters").and_then(|parameters| parameters.get(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => read(text).map(Some).map_err(|error| error.in_field(field)),
            Some(other) => {
                Err(ValueError::new(&other.to_string(), "is no text", "write a name").in_field(field))
            }
        }
    };
    Ok((read("databaseName", Identifier::read_chosen)?, read("userName", Identifier::read_user)?))
}

/// Refuses chosen names that differ from the existing ones: neither a database nor its users can be renamed.
fn check_chosen(names: &Names, claim_spec: &Value) -> Result<(), FieldError> {
    let (database, user) = chosen(claim_spec)?;
    let changed = |name: &str, text: &Identifier, is: &Identifier| {
        let problem = format!("can no longer be changed: it is {is}");
        Err(ValueError::new(text.as_str(), problem, "create a new claim")
            .in_field(format!("spec.parameters.{name}")))
    };
    match (database, user) {
        (Some(text), _) if text != names.database => changed("databaseName", &text, &names.database),
        (_, Some(text)) if names.clone().with_user(Some(&text)) != *names => {
            changed("userName", &text, names.user(User::A))
        }
        _ => Ok(()),
    }
}

fn connections(claim_spec: &Value) -> Option<u32> {
    let requested = claim_spec.pointer("/resources/requests/connections")?;
    let text = requested.as_str().map_or_else(|| requested.to_string(), str::to_owned);
    text.parse().ok().filter(|limit| (2..=10_000).contains(limit))
}

fn list(value: Option<&Value>, name: &str) -> Result<Vec<String>, FieldError> {
    let field = format!("spec.parameters.{name}");
    let wrong =
        |value: &str| ValueError::new(value, "is no list of names", "write [one, two]").in_field(&field);
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or_else(|| wrong(&value.to_string()))?;
    if items.len() > LIST_MAX {
        return Err(ValueError::new("", "has more than 32 names", "keep fewer").in_field(&field));
    }
    items
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(&item.to_string())))
        .collect()
}

fn both(
    ours: &[String],
    requested: Vec<String>,
    name: &str,
    read: fn(&str) -> Result<Identifier, ValueError>,
) -> Result<Vec<Identifier>, FieldError> {
    let mut names = Vec::new();
    for text in ours.iter().chain(&requested) {
        names.push(read(text).map_err(|error| error.in_field(format!("spec.parameters.{name}")))?);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn desired(policy: Value, spec: Value) -> Result<DesiredDatabase, String> {
        let policy: DatabaseRules = serde_json::from_value(policy).expect("rules");
        let policy = Policy::read(Some(&policy)).map_err(|error| error.to_string())?;
        DesiredDatabase::read(Names::new("u", None), Dialect::Postgresql, &policy, &spec, false)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_claims_spec_overrides_the_servers_policy() {
        let policy = json!({"schemas": ["app"], "extensions": ["hstore"], "allowedExtensions": ["uuid-ossp"],
            "connectionLimit": 20});
        let requests = json!({"parameters": {"schemas": ["audit", "app"], "extensions": ["uuid-ossp"]},
            "resources": {"requests": {"connections": "7"}}});
        let found = desired(policy.clone(), requests).expect("it is fine");
        let texts = |names: &[Identifier]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&found.schemas), ["app", "audit"]);
        assert_eq!(texts(&found.extensions), ["hstore", "uuid-ossp"]);
        assert_eq!(found.connection_limit, Some(7));
        assert_eq!(desired(policy, json!({})).expect("fine").connection_limit, Some(20));
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_path() {
        for (policy, spec, message) in [
            (json!({}), json!({"parameters": {"schemas": "app"}}), "spec.parameters.schemas"),
            (json!({}), json!({"parameters": {"schemas": ["a\"b"]}}), "cannot be a name"),
            (json!({}), json!({"parameters": {"schemas": ["pg_x"]}}), "is reserved by PostgreSQL"),
            (json!({}), json!({"parameters": {"schemas": [1]}}), "is no list of names"),
            (json!({}), json!({"parameters": {"extensions": ["plpython3u"]}}), "not allowed on this server"),
            (
                json!({"rotationMinutes": 59}),
                json!({}),
                "spec.databases.rotationMinutes: `59` is out of range",
            ),
            (json!({"rotationMinutes": 1441}), json!({}), "from 60 to 1440"),
            (json!({"rotationDeadlineMinutes": 0}), json!({}), "spec.databases.rotationDeadlineMinutes"),
            (json!({"passwordLength": 14}), json!({}), "spec.databases.passwordLength"),
            (json!({"passwordLength": 100}), json!({}), "from 15 to 99"),
        ] {
            let error = desired(policy, spec).expect_err(message);
            assert!(error.contains(message), "{error}");
        }
    }
}
