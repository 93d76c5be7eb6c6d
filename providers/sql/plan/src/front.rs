//! `DatabaseClaim` read and turned into a claim of our own: which instance its label leads to, what is asked of it, and
//! the keys of the Secret that its applications know. Pure: instances and logins come in as values.

use super::names::Identifier;
use conductor::api::database::front::DatabaseClaimSpec;
use conductor::model::{FieldError, Quantity, ValueError};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every field, in the seed's spelling; compared without case. Two have a second name.
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

/// What a DatabaseClaim asks for, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The Secret.
    pub secret: String,
    /// The engine.
    pub engine: &'static str,
    /// The label.
    pub label: String,
    /// The user, where one is named.
    pub user: Option<Identifier>,
    /// The database.
    pub database: Option<Identifier>,
    /// The key of the connection string.
    pub dsn: String,
    host: Option<String>,
    port: Option<u16>,
    shape: Option<String>,
    storage_gb: Option<u64>,
    is_kept: bool,
}

impl Asked {
    /// Reads the spec of a claim of this name.
    ///
    /// # Errors
    /// The first field that cannot be honoured, with what to write instead.
    pub fn read(name: &str, spec: &DatabaseClaimSpec) -> Result<Asked, FieldError> {
        let fields = Fields::read(spec)?;
        let database = fields.first(&["DBNameOverride", "DatabaseName", "AppID"])?;
        let database = database.map(|(field, text)| {
            // An application's name was not chosen for a database, and may be written as names are elsewhere.
            let text = if field == "AppID" { text.replace(['-', '.'], "_") } else { text };
            Identifier::read_chosen(&text).map_err(|error| error.in_field(format!("spec.{field}")))
        });
        let user = fields
            .text("Username")?
            .map(|text| Identifier::read_user(&text).map_err(|error| error.in_field("spec.Username")));
        let missing = |field: &str, fix: &str| ValueError::new("", "is missing", fix).in_field(field);
        let policy = fields.choose("DeletePolicy", &["delete", "recycle"])?;
        Ok(Asked {
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
            is_kept: policy.as_deref() == Some("recycle"),
        })
    }

    /// The claim that it becomes.
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
        // A class may say it in other words, and is compared by those.
        let engine = instance.engine.as_deref().filter(|_| instance.is_on_demand).unwrap_or(self.engine);
        let mut spec = json!({
            "engine": engine,
            "selector": {"matchLabels": labels},
            // The Secret with the keys of this front is written beside it.
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

    /// What becomes of its database, as its claim says it.
    pub fn reclaim_policy(&self) -> Option<&'static str> {
        self.is_kept.then_some("Retain")
    }

    /// Where it asks to be, in the words of its fields: kept with its claim, to tell an edit from what was always there.
    pub fn placement(&self) -> Value {
        let Asked { label, host, port, shape, storage_gb, .. } = self;
        json!({"InstanceLabel": label, "Host": host, "Port": port, "Shape": shape, "MinStorageGB": storage_gb})
    }

    /// What was edited of where it asks to be and has no effect, now that it is bound.
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

    /// Whether an instance has what a field asks. One that does not say what it has does not.
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

    /// What is asked for and cannot be had any more, now that its claim, of which this is the spec, has its database.
    pub fn find_too_late(&self, claim_spec: &Value, bound: &Bound<'_>) -> Option<String> {
        let is = |pointer: &str| claim_spec.pointer(pointer).and_then(Value::as_str);
        let name = |name: &Option<Identifier>, pointer: &str| {
            let (asked, is) = (name.as_ref().map(Identifier::as_str), is(pointer));
            (asked != is).then(|| is.unwrap_or("a name that was made for it").to_owned())
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
                format!("spec.{field} has no effect any more, its claim is bound: it was {was}")
            })
            .collect();
        let changed =
            changed.iter().map(|(field, is)| format!("spec.{field} cannot be changed any more, it is {is}"));
        let told = changed.chain(ignored).collect::<Vec<_>>().join("; ");
        (!told.is_empty()).then(|| format!("{told}: write it back, or make a new DatabaseClaim"))
    }

    /// The keys of the Secret, from those of a login.
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

/// What is known of a DatabaseClaim whose claim is bound.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// Where it asked to be when it was placed, where that is known.
    pub placed_by: Option<Value>,
    /// The resource that its claim is bound to.
    pub resource: &'a str,
    /// The class that its claim names; empty where it names none.
    pub class: &'a str,
    /// Every instance.
    pub instances: &'a [Instance],
}

/// A server that says under which label it can be had, or a class that makes one of that label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Its name, and that of the resource that it offers; or the name of the class.
    pub name: String,
    /// Whether it is a class: its first claim has the server made, the others share that, and it goes with the last.
    pub is_on_demand: bool,
    /// Its label.
    pub label: String,
    /// Its engine, where it says.
    pub engine: Option<String>,
    /// Its shape, where it says.
    pub shape: Option<String>,
    /// Its storage, where it says.
    pub storage: Option<Quantity>,
    /// Where it is.
    pub host: String,
    /// On which port.
    pub port: u16,
    /// The version that claims on it ask for, where one is written down.
    pub version: Option<String>,
}

/// The instance for what is asked: of the longest label that the asked one begins with, whole segments only, the first
/// by name that fits; servers that are there before classes that make one.
///
/// # Errors
/// Why none fits, and what to do about it.
pub fn choose<'a>(asked: &Asked, instances: &'a [Instance]) -> Result<&'a Instance, String> {
    let matched: Vec<&Instance> =
        instances.iter().filter(|instance| begins(&asked.label, &instance.label)).collect();
    let Some(longest) = matched.iter().map(|instance| instance.label.len()).max() else {
        return Err(format!(
            "spec.InstanceLabel: no instance has the label {} or one that it begins with: {}",
            asked.label,
            known(instances)
        ));
    };
    let mut best: Vec<&Instance> =
        matched.into_iter().filter(|instance| instance.label.len() == longest).collect();
    best.sort_by_key(|instance| (instance.is_on_demand, &instance.name));
    let why: Vec<String> = best.iter().filter_map(|instance| find_misfit(asked, instance)).collect();
    let fits = best.into_iter().find(|instance| find_misfit(asked, instance).is_none());
    fits.ok_or_else(|| why.join("; "))
}

/// Whether what is asked for begins with a label, whole segments only.
fn begins(asked: &str, label: &str) -> bool {
    asked == label || asked.strip_prefix(label).is_some_and(|rest| rest.starts_with('.'))
}

fn known(instances: &[Instance]) -> String {
    let mut labels: Vec<&str> = instances.iter().map(|instance| instance.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let fix = "register a DatabaseServer that offers the label instance, or a class with it that makes one on demand";
    match labels.is_empty() {
        true => format!("there is none at all; {fix}"),
        false => format!("there are {}; {fix}", labels.join(", ")),
    }
}

/// What keeps an instance of the right label from being taken. What it does not say of itself is not held against it.
/// An administrator's password is sent to registered hosts only, so a host is compared and never taken from a claim.
fn find_misfit(asked: &Asked, instance: &Instance) -> Option<String> {
    let of = format!("instance {} ({})", instance.label, instance.name);
    let misfit = |field: &str, wanted: String, has: String| {
        Some(format!("spec.{field}: {of} has {has}, not {wanted}{}", fix(field)))
    };
    if let Some(has) = instance.engine.as_deref().and_then(|text| engine(text).ok())
        && has != asked.engine
    {
        return misfit("Type", asked.engine.to_owned(), has.to_owned());
    }
    if instance.is_on_demand && (asked.host.is_some() || asked.port.is_some()) {
        return Some(format!(
            "spec.Host, spec.Port: {of} is made on demand and has no address yet: leave them out"
        ));
    }
    if let Some(host) = asked.host.as_ref().filter(|host| **host != instance.host) {
        return misfit("Host", host.clone(), instance.host.clone());
    }
    if let Some(port) = asked.port.filter(|port| *port != instance.port) {
        return misfit("Port", port.to_string(), instance.port.to_string());
    }
    if let (Some(wanted), Some(has)) = (&asked.shape, &instance.shape)
        && wanted != has
    {
        return misfit("Shape", wanted.clone(), has.clone());
    }
    let (wanted, has, least) = (asked.storage_gb?, instance.storage?, asked.least_storage()?);
    match has < least {
        true => Some(format!("spec.MinStorageGB: {of} has less than {wanted} GB of storage")),
        false => None,
    }
}

/// What to do about a host or a port that no instance has: a claim cannot bring its own.
fn fix(field: &str) -> &'static str {
    match field {
        "Host" | "Port" => {
            "; only registered servers can be named, because the administrator's password is sent there: leave it out, or ask for a DatabaseServer with it"
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

/// A Secret of ours stands beside it, under the same name with this ending.
const BESIDE: &str = "-conductor";

/// Whether a Secret can be called this.
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

/// The fields of a claim by their names in the seed.
struct Fields(BTreeMap<&'static str, Value>);

impl Fields {
    fn read(spec: &DatabaseClaimSpec) -> Result<Fields, FieldError> {
        let mut found = BTreeMap::new();
        for (name, value) in spec.fields.iter().filter(|(_, value)| !value.is_null()) {
            // The controller before this one spelled it so.
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

    fn choose(&self, field: &str, words: &[&str]) -> Result<Option<String>, FieldError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        match words.iter().find(|word| word.eq_ignore_ascii_case(&text)) {
            Some(word) => Ok(Some((*word).to_owned())),
            None => Err(ValueError::new(&text, "is not known", format!("write {}", words.join(" or ")))
                .in_field(format!("spec.{field}"))),
        }
    }
}

#[cfg(test)]
mod tests;
