//! Turns a `DatabaseClaim` into a claim of our own: the instance that its label selects, its requests, and the keys of the
//! Secret that its applications know. Pure: instances and logins come in as values.

use super::names::Identifier;
use conductor::api::database::front::DatabaseClaimSpec;
use conductor::model::{FieldError, Quantity, ValueError};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every field in its original spelling, compared without case. Two have a second name.
const FIELDS: [&str; 13] = [
    "AppID",
    "SecretName",
    "Type",
    "InstanceLabel",
    "Username",
    "DatabaseName",
    "DBNameOverride",
    "DSNName",
    "Host",
    "Port",
    "Shape",
    "MinStorageGB",
    "DeletePolicy",
];
/// Keys that the connection string cannot be under.
const KEYS: [&str; 8] =
    ["username", "password", "host", "port", "databaseName", "userUpdatedAt", "sslmode", "type"];

/// The validated spec of a DatabaseClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The Secret's name.
    pub secret: String,
    /// The engine.
    pub engine: &'static str,
    /// The label of its instance.
    pub label: String,
    /// The user's name, if chosen.
    pub user: Option<Identifier>,
    /// The database's name, if chosen.
    pub database: Option<Identifier>,
    /// The key of the connection string.
    pub dsn: String,
    host: Option<String>,
    port: Option<u16>,
    shape: Option<String>,
    storage_gb: Option<u64>,
    is_kept: bool,
}

impl ClaimRequest {
    /// Reads the spec of a claim of this name.
    ///
    /// # Errors
    /// The first invalid field, with what to write instead.
    pub fn read(name: &str, spec: &DatabaseClaimSpec) -> Result<ClaimRequest, FieldError> {
        let fields = Fields::read(spec)?;
        let database = fields.first(&["DBNameOverride", "DatabaseName", "AppID"])?;
        let database = database.map(|(field, text)| {
            // An application's name was not chosen for a database, and may contain other separators.
            let text = if field == "AppID" { text.replace(['-', '.'], "_") } else { text };
            Identifier::read_chosen(&text).map_err(|error| error.in_field(format!("spec.{field}")))
        });
        let user = fields
            .text("Username")?
            .map(|text| Identifier::read_user(&text).map_err(|error| error.in_field("spec.Username")));
        let missing = |field: &str, fix: &str| ValueError::new("", "is missing", fix).in_field(field);
        let reclaim_policy = fields.choose("DeletePolicy", &["delete", "recycle"])?;
        Ok(ClaimRequest {
            secret: read_secret(fields.text("SecretName")?, name)?,
            engine: engine(&fields.text("Type")?.unwrap_or_else(|| "postgres".to_owned()))?,
            label: fields
                .text("InstanceLabel")?
                .ok_or_else(|| missing("spec.InstanceLabel", "write the label of an instance"))?,
            user: user.transpose()?,
            database: database.transpose()?,
            dsn: read_dsn(fields.text("DSNName")?)?,
            host: fields.text("Host")?,
            port: fields.number("Port", 65_535)?.and_then(|port| u16::try_from(port).ok()),
            shape: fields.text("Shape")?,
            storage_gb: fields.number("MinStorageGB", 1_000_000_000)?,
            is_kept: reclaim_policy.as_deref() == Some("recycle"),
        })
    }

    /// The spec of its claim.
    pub fn to_claim(&self, instance: &Instance) -> Value {
        let mut labels = json!({"instance": instance.label});
        if let (Some(shape), Some(_)) = (&self.shape, &instance.shape) {
            labels["shape"] = Value::from(shape.clone());
        }
        let mut parameters = json!({});
        if let Some(database) = &self.database {
            parameters["databaseName"] = Value::from(database.as_str());
        }
        if let Some(user) = &self.user {
            parameters["userName"] = Value::from(user.as_str());
        }
        if self.is_kept {
            parameters["reclaimPolicy"] = Value::from("Retain");
        }
        // A class may spell its engine differently: compare with its own spelling.
        let engine = instance.engine.as_deref().filter(|_| instance.is_on_demand).unwrap_or(self.engine);
        let mut spec = json!({
            "engine": engine,
            "selector": {"matchLabels": labels},
            // The Secret with the DatabaseClaim's keys is written beside it.
            "connection": {"secretName": format!("{}{BESIDE}", self.secret)},
            "parameters": parameters,
        });
        if instance.is_on_demand {
            spec["class"] = Value::from(instance.name.clone());
        } else if self.host.is_some() || self.port.is_some() {
            spec["resourceName"] = Value::from(instance.name.clone());
        }
        if let Some(version) = &instance.version {
            spec["version"] = Value::from(version.clone());
        }
        spec
    }

    /// The reclaim policy of its claim.
    pub fn reclaim_policy(&self) -> Option<&'static str> {
        self.is_kept.then_some("Retain")
    }

    /// The fields that place it, kept with its claim to distinguish an edit from the original.
    pub fn placement(&self) -> Value {
        let ClaimRequest { label, host, port, shape, storage_gb, .. } = self;
        json!({"InstanceLabel": label, "Host": host, "Port": port, "Shape": shape, "MinStorageGB": storage_gb})
    }

    /// The placement fields that were edited without effect, because the claim is bound.
    fn find_ignored(&self, bound: &Bound<'_>, label: &str) -> Vec<(&'static str, String)> {
        let Some(before) = &bound.placed_by else { return Vec::new() };
        let now = self.placement();
        let was = |field: &str| match &before[field] {
            Value::Null => "absent".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_bound_to = |instance: &&Instance| {
            instance.name == if instance.is_on_demand { bound.class } else { bound.resource }
        };
        let instance = bound.instances.iter().find(is_bound_to);
        let has = |field: &str| instance.is_some_and(|instance| self.is_met(field, instance));
        let leads_to =
            bound.instances.iter().map(|it| it.label.as_str()).filter(|label| begins(&self.label, label));
        let leads_elsewhere = leads_to.max_by_key(|label| label.len()).is_some_and(|best| best != label);
        let fields = ["InstanceLabel", "Host", "Port", "Shape", "MinStorageGB"].into_iter();
        let is_ignored = |field: &&str| {
            let is_edited = before[*field] != now[*field];
            is_edited && if *field == "InstanceLabel" { leads_elsewhere } else { !has(field) }
        };
        fields.filter(is_ignored).map(|field| (field, was(field))).collect()
    }

    /// Whether an instance has what a field requests. An instance that does not say so does not.
    fn is_met(&self, field: &str, instance: &Instance) -> bool {
        match field {
            "Host" => self.host.as_ref().is_none_or(|host| *host == instance.host),
            "Port" => self.port.is_none_or(|port| port == instance.port),
            "Shape" => self.shape.is_none() || self.shape == instance.shape,
            "MinStorageGB" => {
                self.least_storage().is_none_or(|least| instance.storage.is_some_and(|has| has >= least))
            }
            _ => true,
        }
    }

    fn least_storage(&self) -> Option<Quantity> {
        Quantity::parse(&format!("{}G", self.storage_gb?)).ok()
    }

    /// The fields that can no longer change, because its claim (with this spec) has its database.
    pub fn find_too_late(&self, claim_spec: &Value, bound: &Bound<'_>) -> Option<String> {
        let is = |pointer: &str| claim_spec.pointer(pointer).and_then(Value::as_str);
        let name = |name: &Option<Identifier>, pointer: &str| {
            let (request, is) = (name.as_ref().map(Identifier::as_str), is(pointer));
            (request != is).then(|| is.unwrap_or("a generated name").to_owned())
        };
        let of_engine = is("/engine").filter(|is| engine(is).is_ok_and(|is| is != self.engine));
        let of_label = is("/selector/matchLabels/instance").filter(|label| !begins(&self.label, label));
        let changed = [
            ("DatabaseName", name(&self.database, "/parameters/databaseName")),
            ("Username", name(&self.user, "/parameters/userName")),
            ("Type", of_engine.map(str::to_owned)),
            ("InstanceLabel", of_label.map(str::to_owned)),
        ];
        let label = is("/selector/matchLabels/instance").unwrap_or_default();
        let changed: Vec<(&str, String)> =
            changed.into_iter().filter_map(|(field, is)| Some((field, is?))).collect();
        let ignored = self.find_ignored(bound, label).into_iter();
        let ignored: Vec<String> = ignored
            .filter(|(field, _)| changed.iter().all(|(one, _)| one != field))
            .map(|(field, was)| {
                format!("spec.{field} no longer has an effect, its claim is bound: it was {was}")
            })
            .collect();
        let changed =
            changed.iter().map(|(field, is)| format!("spec.{field} can no longer be changed, it is {is}"));
        let message = changed.chain(ignored).collect::<Vec<_>>().join("; ");
        (!message.is_empty()).then(|| format!("{message}: write it back, or create a new DatabaseClaim"))
    }

    /// The keys of its Secret, from those of the login.
    pub fn to_secret(&self, login: &BTreeMap<String, String>, updated_at: &str) -> BTreeMap<String, String> {
        let of = |key: &str| login.get(key).cloned().unwrap_or_default();
        let (user, password, host, port) = (of("username"), of("password"), of("host"), of("port"));
        let (database, ssl) = (of("database"), of("sslMode"));
        let dsn = match self.engine {
            "mysql" => format!("{user}:{password}@tcp({host}:{port})/{database}"),
            _ => format!(
                "host={host} port={port} user={user} password={password} dbname={database} sslmode={ssl}"
            ),
        };
        let mut keys = BTreeMap::from([(self.dsn.clone(), dsn), (format!("uri_{}", self.dsn), of("uri"))]);
        let known = [
            ("username", user),
            ("password", password),
            ("host", host),
            ("port", port),
            ("databaseName", database),
            ("userUpdatedAt", updated_at.to_owned()),
            ("sslmode", ssl),
        ];
        keys.extend(known.into_iter().map(|(key, value)| (key.to_owned(), value)));
        keys
    }
}

/// What a bound claim of a DatabaseClaim is bound to.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// Its placement fields at the time of its placement, if recorded.
    pub placed_by: Option<Value>,
    /// The name of its claim's resource.
    pub resource: &'a str,
    /// The name of its claim's class; empty for none.
    pub class: &'a str,
    /// Every instance.
    pub instances: &'a [Instance],
}

/// A server that offers itself under a label, or a class that creates one with that label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// The name of the server and of its resource, or the name of the class.
    pub name: String,
    /// Whether it is a class: the server is created for its first claim, shared by the others, and deleted with the last.
    pub is_on_demand: bool,
    /// Its label.
    pub label: String,
    /// Its engine, if known.
    pub engine: Option<String>,
    /// Its shape, if known.
    pub shape: Option<String>,
    /// Its storage, if known.
    pub storage: Option<Quantity>,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The version that claims on it request, if recorded.
    pub version: Option<String>,
}

/// Chooses the instance for a request: of those with the longest label that the requested one begins with, whole segments
/// only, the first by name that fits; existing servers before classes.
///
/// # Errors
/// Why none fits, and what to do.
pub fn choose<'a>(request: &ClaimRequest, instances: &'a [Instance]) -> Result<&'a Instance, String> {
    let matched: Vec<&Instance> =
        instances.iter().filter(|instance| begins(&request.label, &instance.label)).collect();
    let Some(longest) = matched.iter().map(|instance| instance.label.len()).max() else {
        return Err(format!(
            "spec.InstanceLabel: no instance has the label {} or one that it begins with: {}",
            request.label,
            known(instances)
        ));
    };
    let mut best: Vec<&Instance> =
        matched.into_iter().filter(|instance| instance.label.len() == longest).collect();
    best.sort_by_key(|instance| (instance.is_on_demand, &instance.name));
    let why: Vec<String> = best.iter().filter_map(|instance| find_misfit(request, instance)).collect();
    let fits = best.into_iter().find(|instance| find_misfit(request, instance).is_none());
    fits.ok_or_else(|| why.join("; "))
}

/// Whether a requested label begins with another, whole segments only.
fn begins(request: &str, label: &str) -> bool {
    request == label || request.strip_prefix(label).is_some_and(|rest| rest.starts_with('.'))
}

fn known(instances: &[Instance]) -> String {
    let mut labels: Vec<&str> = instances.iter().map(|instance| instance.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let fix = "register a DatabaseServer that offers the label instance, or a class with it that creates one on demand";
    match labels.is_empty() {
        true => format!("there are none; {fix}"),
        false => format!("there are {}; {fix}", labels.join(", ")),
    }
}

/// Why an instance with the right label does not fit. What it does not say about itself is not held against it.
/// An administrator's password is sent to registered hosts only, so a claim's host is compared and never used.
fn find_misfit(request: &ClaimRequest, instance: &Instance) -> Option<String> {
    let of = format!("instance {} ({})", instance.label, instance.name);
    let misfit = |field: &str, desired: String, has: String| {
        Some(format!("spec.{field}: {of} has {has}, not {desired}{}", fix(field)))
    };
    if let Some(has) = instance.engine.as_deref().and_then(|text| engine(text).ok())
        && has != request.engine
    {
        return misfit("Type", request.engine.to_owned(), has.to_owned());
    }
    if instance.is_on_demand && (request.host.is_some() || request.port.is_some()) {
        return Some(format!(
            "spec.Host, spec.Port: {of} is created on demand and has no address yet: leave them out"
        ));
    }
    if let Some(host) = request.host.as_ref().filter(|host| **host != instance.host) {
        return misfit("Host", host.clone(), instance.host.clone());
    }
    if let Some(port) = request.port.filter(|port| *port != instance.port) {
        return misfit("Port", port.to_string(), instance.port.to_string());
    }
    if let (Some(desired), Some(has)) = (&request.shape, &instance.shape)
        && desired != has
    {
        return misfit("Shape", desired.clone(), has.clone());
    }
    let (desired, has, least) = (request.storage_gb?, instance.storage?, request.least_storage()?);
    match has < least {
        true => Some(format!("spec.MinStorageGB: {of} has less than {desired} GB of storage")),
        false => None,
    }
}

/// The fix for a host or port that no instance has: a claim cannot bring its own.
fn fix(field: &str) -> &'static str {
    match field {
        "Host" | "Port" => {
            "; only registered servers can be named, because the administrator's password is sent there: leave it out, or have an administrator register a DatabaseServer with it"
        }
        _ => "",
    }
}

fn engine(text: &str) -> Result<&'static str, FieldError> {
    match text.to_lowercase().as_str() {
        "postgres" | "postgresql" => Ok("postgresql"),
        "mysql" | "mariadb" => Ok("mysql"),
        _ => Err(ValueError::new(text, "is not known", "write Postgres or MySQL").in_field("spec.Type")),
    }
}

/// The suffix of the Secret that the engine publishes beside it.
const BESIDE: &str = "-conductor";

/// Whether this is a valid name for a Secret.
pub fn is_secret_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_plain = |part: &str| {
        part.starts_with(is_end) && part.ends_with(is_end) && part.chars().all(|c| is_end(c) || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_plain)
}

fn read_secret(text: Option<String>, name: &str) -> Result<String, FieldError> {
    let most = 253 - BESIDE.len();
    let (text, field) = text.map_or((name.to_owned(), "metadata.name"), |text| (text, "spec.SecretName"));
    match text.len() <= most && is_secret_name(&text) {
        true => Ok(text),
        false => {
            let fix = format!(
                "use up to {most} lower-case letters, digits, - and ., with a letter or digit at both ends of each part"
            );
            Err(ValueError::new(&text, "cannot be the name of a Secret", fix).in_field(field))
        }
    }
}

fn read_dsn(text: Option<String>) -> Result<String, FieldError> {
    let text = text.unwrap_or_else(|| "dsn".to_owned());
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let wrong = |problem: &str, fix: &str| Err(ValueError::new(&text, problem, fix).in_field("spec.DSNName"));
    match () {
        () if !is_plain || text.len() > 200 || text.starts_with('.') => {
            wrong("cannot be a key of a Secret", "use letters, digits, - _ and .")
        }
        () if KEYS.contains(&text.as_str()) => wrong("is a key that has another meaning", "choose another"),
        () => Ok(text),
    }
}

/// The fields of a claim by their original names.
struct Fields(BTreeMap<&'static str, Value>);

impl Fields {
    fn read(spec: &DatabaseClaimSpec) -> Result<Fields, FieldError> {
        let mut found = BTreeMap::new();
        for (name, value) in spec.fields.iter().filter(|(_, value)| !value.is_null()) {
            // An earlier controller spelled it this way.
            let plain = if name.eq_ignore_ascii_case("deletionPolicy") { "DeletePolicy" } else { name };
            let known = FIELDS.iter().find(|field| field.eq_ignore_ascii_case(plain));
            let known = known.ok_or_else(|| {
                let fix = format!("use one of {}", FIELDS.join(", "));
                ValueError::new(name, "is not known", fix).in_field("spec")
            })?;
            if found.insert(*known, value.clone()).is_some() {
                return Err(ValueError::new(name, "stands there twice", "keep one").in_field("spec"));
            }
        }
        Ok(Fields(found))
    }

    fn text(&self, field: &str) -> Result<Option<String>, FieldError> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(other) => Err(ValueError::new(&other.to_string(), "is no text", "write it in quotes")
                .in_field(format!("spec.{field}"))),
        }
    }

    fn first(&self, names: &[&'static str]) -> Result<Option<(&'static str, String)>, FieldError> {
        for name in names {
            if let Some(text) = self.text(name)? {
                return Ok(Some((name, text)));
            }
        }
        Ok(None)
    }

    fn number(&self, field: &str, most: u64) -> Result<Option<u64>, FieldError> {
        let Some(value) = self.0.get(field) else { return Ok(None) };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match text.parse::<u64>() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ if text.is_empty() => Ok(None),
            _ => Err(ValueError::new(&text, "is out of range", format!("write a number from 1 to {most}"))
                .in_field(format!("spec.{field}"))),
        }
    }

    fn choose(&self, field: &str, values: &[&str]) -> Result<Option<String>, FieldError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        match values.iter().find(|value| value.eq_ignore_ascii_case(&text)) {
            Some(value) => Ok(Some((*value).to_owned())),
            None => Err(ValueError::new(&text, "is not known", format!("write {}", values.join(" or ")))
                .in_field(format!("spec.{field}"))),
        }
    }
}

#[cfg(test)]
mod tests;
