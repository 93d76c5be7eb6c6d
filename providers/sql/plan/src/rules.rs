//! What a claim's database is to be like: the server's rules with the claim's own words over them. Words that cannot
//! be honoured are refused with their place; none ever reaches a server unread.

use super::names::{Identifier, Names, User};
use super::sql::Dialect;
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::server::{DatabaseRules, DeadlinePolicy};
use conductor::model::{FieldError, ValueError};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Counted up whenever the set-up of databases changes, so that those that exist are set up anew.
const SET_UP_FORM: u32 = 2;
/// Most names in a list that a claim gives.
const LIST_MAX: usize = 32;

/// A server's rules, with nothing left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Between changes of a login.
    pub rotation_ms: i64,
    /// When a change is overdue.
    pub deadline: Deadline,
    /// Characters of a password.
    pub password_length: usize,
    /// What becomes of a database, where the server says so.
    pub policy: Option<ReclaimPolicy>,
    /// For how long a database can be had back.
    pub quarantine_minutes: i32,
    connection_limit: Option<u32>,
    schemas: Vec<String>,
    extensions: Vec<String>,
    allowed_extensions: Vec<String>,
}

impl Rules {
    /// Reads what a server says.
    ///
    /// # Errors
    /// A number outside its range: objects may be older than the schema that refuses it.
    pub fn read(rules: Option<&DatabaseRules>) -> Result<Rules, FieldError> {
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
        } = rules.unwrap_or(&none);
        let minutes = ranged(*rotation_minutes, 60, (60, 1440), "spec.databases.rotationMinutes")?;
        let deadline = "spec.databases.rotationDeadlineMinutes";
        let deadline = ranged(*rotation_deadline_minutes, minutes, (1, 525_600), deadline)?;
        let length = ranged(*password_length, 32, (15, 99), "spec.databases.passwordLength")?;
        let quarantine = ranged(*quarantine_minutes, 1440, (0, 525_600), "spec.databases.quarantineMinutes")?;
        Ok(Rules {
            rotation_ms: i64::from(minutes) * 60_000,
            deadline: Deadline {
                after_ms: i64::from(deadline) * 60_000,
                ends_sessions: *rotation_deadline_policy == Some(DeadlinePolicy::EndSessions),
            },
            password_length: usize::try_from(length).unwrap_or(32),
            policy: *reclaim_policy,
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

/// When a change of a login that is due is overdue, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// After the change was due.
    pub after_ms: i64,
    /// Whether sessions that hold the change up are ended then.
    pub ends_sessions: bool,
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline { after_ms: 3_600_000, ends_sessions: false }
    }
}

/// What one claim's database is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is called.
    pub names: Names,
    /// What the server speaks.
    pub dialect: Dialect,
    /// Schemas beside the engine's own.
    pub schemas: Vec<Identifier>,
    /// Extensions.
    pub extensions: Vec<Identifier>,
    /// Most connections at a time.
    pub connection_limit: Option<u32>,
    /// Between changes of its login.
    pub rotation_ms: i64,
    /// When a change is overdue.
    pub deadline: Deadline,
    /// Whether it has been there before: one that is gone is not replaced by an empty one.
    pub was_made: bool,
    /// What cannot be honoured of what is said about one that has been there before: its inside stays as it is.
    pub unread: Option<String>,
}

impl Wanted {
    /// The server's rules with the claim's spec over them.
    ///
    /// # Errors
    /// The first word of the claim, or of the server, that cannot be honoured.
    pub fn read(
        names: Names,
        dialect: Dialect,
        rules: &Rules,
        claim_spec: &Value,
        was_made: bool,
    ) -> Result<Wanted, FieldError> {
        let asked = |name: &str| list(claim_spec.pointer("/parameters").and_then(|p| p.get(name)), name);
        let (schemas, extensions) = (asked("schemas")?, asked("extensions")?);
        for extension in &extensions {
            if !rules.allowed_extensions.contains(extension) && !rules.extensions.contains(extension) {
                return Err(ValueError::new(
                    extension,
                    "is not allowed on this server",
                    "ask for it to be added to spec.databases.allowedExtensions of the server",
                )
                .in_field("spec.parameters.extensions"));
            }
        }
        check_chosen(&names, claim_spec)?;
        let schemas = both(&rules.schemas, schemas, "schemas", Identifier::read_schema)?;
        let extensions = both(&rules.extensions, extensions, "extensions", Identifier::read_extension)?;
        if dialect != Dialect::Postgresql && !(schemas.is_empty() && extensions.is_empty()) {
            return Err(ValueError::new("", "is for PostgreSQL only", "leave it out")
                .in_field("spec.parameters.schemas, extensions"));
        }
        Ok(Wanted {
            names,
            dialect,
            schemas,
            extensions,
            connection_limit: connections(claim_spec).or(rules.connection_limit),
            rotation_ms: rules.rotation_ms,
            deadline: rules.deadline,
            was_made,
            unread: None,
        })
    }

    /// One that has been there before, with words about it that cannot be honoured: logins change all the same, and its
    /// limit stays what it is.
    pub fn keep(
        names: Names,
        dialect: Dialect,
        rules: &Rules,
        claim_spec: &Value,
        unread: &FieldError,
    ) -> Wanted {
        Wanted {
            names,
            dialect,
            schemas: Vec::new(),
            extensions: Vec::new(),
            connection_limit: connections(claim_spec).or(rules.connection_limit),
            rotation_ms: rules.rotation_ms,
            deadline: rules.deadline,
            was_made: true,
            unread: Some(unread.to_string()),
        }
    }

    /// A digest of how the inside of the database is set up.
    pub fn set_up(&self) -> String {
        let Wanted {
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

/// The names that a claim chooses for its database and its users, where it chooses any.
///
/// # Errors
/// One that cannot be a name.
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

/// What was chosen is what there is: a database does not change its name, nor its users theirs.
fn check_chosen(names: &Names, claim_spec: &Value) -> Result<(), FieldError> {
    let (database, user) = chosen(claim_spec)?;
    let changed = |name: &str, text: &Identifier, is: &Identifier| {
        let problem = format!("cannot be had any more: it is {is}");
        Err(ValueError::new(text.as_str(), problem, "make a new claim")
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
    let asked = claim_spec.pointer("/resources/requests/connections")?;
    let text = asked.as_str().map_or_else(|| asked.to_string(), str::to_owned);
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
    asked: Vec<String>,
    name: &str,
    read: fn(&str) -> Result<Identifier, ValueError>,
) -> Result<Vec<Identifier>, FieldError> {
    let mut names = Vec::new();
    for text in ours.iter().chain(&asked) {
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

    fn wanted(rules: Value, spec: Value) -> Result<Wanted, String> {
        let rules: DatabaseRules = serde_json::from_value(rules).expect("rules");
        let rules = Rules::read(Some(&rules)).map_err(|error| error.to_string())?;
        Wanted::read(Names::new("u", None), Dialect::Postgresql, &rules, &spec, false)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_claims_words_stand_over_the_servers() {
        let rules = json!({"schemas": ["app"], "extensions": ["hstore"], "allowedExtensions": ["uuid-ossp"],
            "connectionLimit": 20});
        let asks = json!({"parameters": {"schemas": ["audit", "app"], "extensions": ["uuid-ossp"]},
            "resources": {"requests": {"connections": "7"}}});
        let found = wanted(rules.clone(), asks).expect("it is fine");
        let texts = |names: &[Identifier]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&found.schemas), ["app", "audit"]);
        assert_eq!(texts(&found.extensions), ["hstore", "uuid-ossp"]);
        assert_eq!(found.connection_limit, Some(7));
        assert_eq!(wanted(rules, json!({})).expect("fine").connection_limit, Some(20));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_its_place() {
        for (rules, spec, told) in [
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
            let error = wanted(rules, spec).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }
}
