//! Reads a configuration file of servers: instances by label, with defaults for what an instance leaves out. Two notations
//! are read, also mixed in one instance: `host: a.example` and `host=a.example`. A claim's label selects the instance with
//! the longest label that it begins with, whole dot segments only.

use conductor::api::common::ReclaimPolicy;
use conductor::api::database::{API_VERSION, ENGINE_VERSION, GROUP};
use conductor::model::{FieldError, ValueError};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Sections and settings that are not instances.
const PASSWORDS: &str = "passwordConfig";
const SETTINGS: [&str; 10] = [
    "authSource",
    "region",
    "defaultMasterPort",
    "defaultMasterUsername",
    "defaultSslMode",
    "defaultShape",
    "defaultMinStorageGB",
    "defaultEngineVersion",
    "defaultDeletionPolicy",
    "defaultReclaimPolicy",
];
/// The settings of an instance.
const FIELDS: [&str; 12] = [
    "username",
    "host",
    "port",
    "sslMode",
    "passwordSecretRef",
    "passwordSecretKey",
    "shape",
    "minStorageGB",
    "engineVersion",
    "deletePolicy",
    "reclaimPolicy",
    "type",
];

/// A configuration of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Characters of a password.
    pub password_length: i32,
    /// Whether passwords must contain every kind of character; ours always do.
    pub has_complex_passwords: bool,
    /// Minutes between rotations of a login.
    pub rotation_minutes: i32,
    /// Servers, by label.
    pub instances: BTreeMap<String, Instance>,
    /// Instances without a host, by label: they are created on demand.
    pub on_demand: BTreeMap<String, OnDemand>,
}

/// A server that is created for its first claim, shared by its label, and deleted with its last where its policy is Delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDemand {
    /// The shape of the class that creates it.
    pub shape: Option<String>,
    /// Storage, in gigabytes.
    pub storage_gb: Option<u64>,
    /// Its version.
    pub version: Option<String>,
    /// The server's engine.
    pub engine: String,
    /// Whether it is retained or deleted after its last claim.
    pub reclaim_policy: ReclaimPolicy,
    /// Whether its databases are retained when their claims are deleted, whatever the class of its shape says.
    pub keeps_databases: bool,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// The administrator's name.
    pub username: String,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The TLS mode of connections.
    pub ssl_mode: String,
    /// The Secret with the administrator's password.
    pub secret: String,
    /// Its key.
    pub secret_key: String,
    /// A label that claims match.
    pub shape: Option<String>,
    /// Storage, in gigabytes.
    pub storage_gb: Option<u64>,
    /// The version that runs there.
    pub version: Option<String>,
    /// The server's engine.
    pub engine: String,
    /// Whether a claim's database is retained or deleted.
    pub reclaim_policy: ReclaimPolicy,
}

impl ServerConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The first line or value that cannot be read, with its position.
    pub fn read(text: &str) -> Result<ServerConfig, FieldError> {
        let sections = sections(text)?;
        let top = sections.get("").cloned().unwrap_or_default();
        let passwords = sections.get(PASSWORDS).cloned().unwrap_or_default();
        let setting = |name: &str| passwords.get(name).map(String::as_str);
        let number = |name: &str, default, range| {
            ranged(setting(name), default, range, &format!("{PASSWORDS}.{name}"))
        };
        let complexity = match setting("passwordComplexity").unwrap_or("enabled") {
            "enabled" => true,
            "disabled" | "disable" => false,
            other => {
                return Err(ValueError::new(other, "is no answer", "write enabled or disabled")
                    .in_field(format!("{PASSWORDS}.passwordComplexity")));
            }
        };
        if let Some(source) = top.get("authSource").filter(|source| *source != "secret") {
            return Err(ValueError::new(
                source,
                "is not supported",
                "write secret, and give passwordSecretRef",
            )
            .in_field("authSource"));
        }
        let (mut instances, mut on_demand) = (BTreeMap::new(), BTreeMap::new());
        for (label, fields) in sections.iter().filter(|(label, _)| !label.is_empty() && *label != PASSWORDS) {
            let is_given = |name: &str| fields.get(name).is_some_and(|text| !text.is_empty());
            // A Secret without a host means a missing host.
            match is_given("host") || is_given("passwordSecretRef") {
                true => drop(instances.insert(label.clone(), Instance::read(label, fields, &top)?)),
                false => drop(on_demand.insert(label.clone(), OnDemand::read(label, fields, &top)?)),
            }
        }
        Ok(ServerConfig {
            password_length: number("minPasswordLength", 15, (15, 99))?,
            has_complex_passwords: complexity,
            rotation_minutes: number("passwordRotationPeriod", 60, (60, 1440))?,
            instances,
            on_demand,
        })
    }

    /// The instance for a claim's label: the longest label that it begins with, whole segments only.
    pub fn find(&self, label: &str) -> Option<(&str, &Instance)> {
        let mut rest = label;
        loop {
            if let Some((label, instance)) = self.instances.get_key_value(rest) {
                return Some((label, instance));
            }
            rest = rest.rsplit_once('.')?.0;
        }
    }

    /// The servers as objects: one DatabaseServer per instance, with its label for the selectors of claims.
    pub fn to_servers(&self, system_namespace: &str) -> Vec<Value> {
        self.instances
            .iter()
            .map(|(label, instance)| self.server(system_namespace, label, instance))
            .collect()
    }

    fn server(&self, namespace: &str, label: &str, instance: &Instance) -> Value {
        let Instance {
            username,
            host,
            port,
            ssl_mode,
            secret,
            secret_key,
            shape,
            storage_gb,
            version,
            engine,
            reclaim_policy,
        } = instance;
        let mut labels = json!({"instance": label});
        if let Some(shape) = shape {
            labels["shape"] = Value::from(shape.clone());
        }
        let mut offer = json!({"labels": labels});
        if let Some(storage) = storage_gb {
            offer["capacity"] = json!({"storage": format!("{storage}G")});
        }
        let mut metadata = json!({"name": label, "namespace": namespace});
        if let Some(version) = version {
            metadata["annotations"] = json!({ENGINE_VERSION: version});
        }
        json!({
            "apiVersion": API_VERSION, "kind": "DatabaseServer",
            "metadata": metadata,
            "spec": {
                "engine": engine, "host": host, "port": port, "sslMode": ssl_mode,
                "admin": {"secretName": secret, "passwordKey": secret_key, "username": username},
                "databases": {
                    "rotationMinutes": self.rotation_minutes, "passwordLength": self.password_length,
                    "reclaimPolicy": reclaim_policy,
                },
                "offer": offer,
            },
        })
    }
}

/// The configuration itself, or the one in a ConfigMap manifest.
///
/// # Errors
/// It is a ConfigMap without a configuration.
pub fn config_of(text: &str) -> Result<String, FieldError> {
    let object: Value = serde_saphyr::from_str(text).unwrap_or_default();
    if object["kind"] != "ConfigMap" {
        return Ok(text.to_owned());
    }
    let config = object.get("data").and_then(|data| data.get("config.yaml")).and_then(Value::as_str);
    let missing = || ValueError::new("", "is missing in the ConfigMap", "put the configuration there");
    config.map(str::to_owned).ok_or_else(|| missing().in_field("data.config.yaml"))
}

type Fields = BTreeMap<String, String>;

/// The settings of a section, with the file's defaults behind them.
struct Section<'a> {
    label: &'a str,
    fields: &'a Fields,
    top: &'a Fields,
}

impl<'a> Section<'a> {
    fn read(label: &'a str, fields: &'a Fields, top: &'a Fields) -> Result<Section<'a>, FieldError> {
        check_label(label)?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            let fix = format!("use one of {}", FIELDS.join(", "));
            return Err(ValueError::new(unknown, "is not known", fix).in_field(label));
        }
        Ok(Section { label, fields, top })
    }

    fn say(&self, name: &str, default: &str) -> Option<String> {
        self.fields.get(name).or_else(|| self.top.get(default)).filter(|text| !text.is_empty()).cloned()
    }

    fn require(&self, name: &str, default: &str) -> Result<String, FieldError> {
        let missing =
            || ValueError::new("", "is missing", "write it").in_field(format!("{}.{name}", self.label));
        self.say(name, default).ok_or_else(missing)
    }

    /// The path of a setting: in the section, else among the file's defaults.
    fn place(&self, name: &str, default: &str) -> String {
        match self.fields.contains_key(name) || !self.top.contains_key(default) {
            true => format!("{}.{name}", self.label),
            false => default.to_owned(),
        }
    }

    fn wrong(&self, (name, default): (&str, &str), text: &str, problem: &str) -> FieldError {
        ValueError::new(text, problem, "write a number").in_field(self.place(name, default))
    }

    fn shape(&self) -> Result<Option<String>, FieldError> {
        let place = self.place("shape", "defaultShape");
        self.say("shape", "defaultShape").map(|shape| check_shape(&place, shape)).transpose()
    }

    fn storage_gb(&self) -> Result<Option<u64>, FieldError> {
        const AT: (&str, &str) = ("minStorageGB", "defaultMinStorageGB");
        let storage = self.say(AT.0, AT.1);
        let number = |text: String| text.parse().map_err(|_| self.wrong(AT, &text, "is no number"));
        storage.map(number).transpose()
    }

    /// Whether a database is retained or deleted after its claim.
    fn reclaim_policy(&self) -> Result<ReclaimPolicy, FieldError> {
        const AT: (&str, &str) = ("reclaimPolicy", "defaultReclaimPolicy");
        let text = self.say(AT.0, AT.1).unwrap_or_else(|| "retain".to_owned()).to_lowercase();
        let choice = choose(&text, &["delete", "retain"], &self.place(AT.0, AT.1))?;
        Ok(if choice == "delete" { ReclaimPolicy::Delete } else { ReclaimPolicy::Retain })
    }

    /// Whether an instance that was created on demand is deleted once nothing is on it.
    fn deletes(&self) -> Result<bool, FieldError> {
        let reclaim_policy =
            self.say("deletePolicy", "defaultDeletionPolicy").unwrap_or_else(|| "delete".to_owned());
        let field = self.place("deletePolicy", "defaultDeletionPolicy");
        Ok(choose(&reclaim_policy.to_lowercase(), &["delete", "orphan"], &field)? == "delete")
    }
}

impl Instance {
    fn read(label: &str, fields: &Fields, top: &Fields) -> Result<Instance, FieldError> {
        let section = Section::read(label, fields, top)?;
        // It exists already, so this has no effect on it; it is validated all the same.
        section.deletes()?;
        let engine = engine(label, section.say("type", ""))?;
        let usual = if engine == "postgresql" { "5432" } else { "3306" };
        let port = section.say("port", "defaultMasterPort").unwrap_or_else(|| usual.to_owned());
        Ok(Instance {
            username: section.require("username", "defaultMasterUsername")?,
            host: section.require("host", "")?,
            port: port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| section.wrong(("port", "defaultMasterPort"), &port, "is no port"))?,
            ssl_mode: choose(
                &section.say("sslMode", "defaultSslMode").unwrap_or_else(|| "disable".to_owned()),
                &["disable", "require", "verify-full"],
                &section.place("sslMode", "defaultSslMode"),
            )?,
            secret: section.require("passwordSecretRef", "")?,
            secret_key: section.say("passwordSecretKey", "").unwrap_or_else(|| "password".to_owned()),
            shape: section.shape()?,
            storage_gb: section.storage_gb()?,
            version: section.say("engineVersion", "defaultEngineVersion"),
            engine,
            reclaim_policy: section.reclaim_policy()?,
        })
    }
}

impl OnDemand {
    fn read(label: &str, fields: &Fields, top: &Fields) -> Result<OnDemand, FieldError> {
        let section = Section::read(label, fields, top)?;
        let reclaim_policy = section.reclaim_policy()?;
        Ok(OnDemand {
            shape: section.shape()?,
            storage_gb: section.storage_gb()?,
            version: section.say("engineVersion", "defaultEngineVersion"),
            engine: engine(label, section.say("type", ""))?,
            reclaim_policy: if section.deletes()? { reclaim_policy } else { ReclaimPolicy::Retain },
            keeps_databases: reclaim_policy == ReclaimPolicy::Retain,
        })
    }

    /// The class that creates it: a copy of the class of its shape, under its own label.
    ///
    /// # Errors
    /// No class has its shape and engine.
    pub fn to_class(&self, namespace: &str, label: &str, patterns: &[Pattern]) -> Result<Value, FieldError> {
        let OnDemand { shape, storage_gb, version, engine, reclaim_policy, keeps_databases } = self;
        let fits =
            |pattern: &&Pattern| pattern.shape == *shape && is_engine(pattern.engine.as_deref(), engine);
        let pattern = patterns.iter().find(fits).ok_or_else(|| {
            let (has, labels) = match shape {
                Some(shape) => (shape.as_str(), format!("labels {{shape: {shape}}}")),
                None => ("", "no label shape".to_owned()),
            };
            let fix = format!(
                "create a RelationalDatabaseClass with engine {engine} and {labels}, or write a host"
            );
            ValueError::new(has, "has no class to create an instance from", fix)
                .in_field(format!("{label}.shape"))
        })?;
        let mut class = pattern.fields.clone();
        class["apiVersion"] = Value::from("storage.conductor.io/v1alpha1");
        class["kind"] = Value::from("RelationalDatabaseClass");
        class["metadata"] = json!({"name": label, "namespace": namespace});
        class["labels"] = json!({"instance": label});
        if let Some(shape) = shape {
            class["labels"]["shape"] = Value::from(shape.clone());
        }
        class["reclaimPolicy"] = json!(reclaim_policy);
        if *keeps_databases {
            keep_databases(label, &mut class)?;
        }
        if let Some(version) = version {
            class["version"] = Value::from(version.clone());
        }
        if let Some(storage) = storage_gb {
            class["capacity"]["storage"] = Value::from(format!("{storage}G"));
        }
        if class.get("sharing").is_none() {
            class["sharing"] = json!({"maxClaims": CLAIMS_DEFAULT});
        }
        Ok(class)
    }
}

/// Makes a class retain the databases on its servers: the class that it was copied from may drop them at once.
fn keep_databases(label: &str, class: &mut Value) -> Result<(), FieldError> {
    let unreadable = || {
        let fix = "write spec.databases there as plain values, without an expression";
        ValueError::new("retain", "cannot be set in spec.databases of the template of its class", fix)
            .in_field(format!("{label}.reclaimPolicy"))
    };
    let mut all: Vec<&mut Value> = Vec::new();
    let fields = class.as_object_mut().into_iter().flatten();
    for (field, value) in fields {
        match field.as_str() {
            "template" => all.push(value),
            "templates" => {
                let entries = value.as_array_mut().into_iter().flatten();
                all.extend(entries.filter_map(|entry| entry.get_mut("template")));
            }
            _ => {}
        }
    }
    for template in all.into_iter().filter(|template| makes_server(template)) {
        let template = template.as_object_mut().ok_or_else(unreadable)?;
        let spec = template.entry("spec").or_insert_with(|| json!({})).as_object_mut();
        let policy = spec.ok_or_else(unreadable)?.entry("databases").or_insert_with(|| json!({}));
        let policy = policy.as_object_mut().ok_or_else(unreadable)?;
        policy.insert("reclaimPolicy".to_owned(), json!(ReclaimPolicy::Retain));
    }
    Ok(())
}

/// Whether a template creates a server on which claims get databases.
fn makes_server(template: &Value) -> bool {
    let group = template["apiVersion"].as_str().and_then(|version| version.split('/').next());
    group == Some(GROUP) && matches!(template["kind"].as_str(), Some("DatabaseServer" | "LocalServer"))
}

/// How many claims share an instance created on demand, unless its class says otherwise.
const CLAIMS_DEFAULT: i32 = 100;

/// A class that can be copied for instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The shape of its servers.
    pub shape: Option<String>,
    /// The engine of its servers, if it names one.
    pub engine: Option<String>,
    /// All its fields.
    pub fields: Value,
}

fn is_engine(of_class: Option<&str>, desired: &str) -> bool {
    let plain = |text: &str| match text.to_lowercase().as_str() {
        "mysql" | "mariadb" => "mariadb".to_owned(),
        "postgres" | "postgresql" => "postgresql".to_owned(),
        other => other.to_owned(),
    };
    of_class.is_none_or(|engine| plain(engine) == plain(desired))
}

fn engine(label: &str, text: Option<String>) -> Result<String, FieldError> {
    let text = text.unwrap_or_else(|| "postgres".to_owned()).to_lowercase();
    let values = ["postgres", "postgresql", "mysql", "mariadb"];
    Ok(match choose(&text, &values, &format!("{label}.type"))?.as_str() {
        "mysql" | "mariadb" => "mariadb".to_owned(),
        _ => "postgresql".to_owned(),
    })
}

/// Validates a shape: the value of a label that claims select.
fn check_shape(place: &str, shape: String) -> Result<String, FieldError> {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_plain = shape.len() <= 63
        && shape.chars().all(|c| is_end(c) || "-_.".contains(c))
        && shape.starts_with(is_end)
        && shape.ends_with(is_end);
    match is_plain {
        true => Ok(shape),
        false => Err(ValueError::new(&shape, "cannot be a shape", "use up to 63 letters, digits, - _ and .")
            .in_field(place)),
    }
}

fn choose(text: &str, values: &[&str], field: &str) -> Result<String, FieldError> {
    match values.iter().find(|value| **value == text) {
        Some(value) => Ok((*value).to_owned()),
        None => {
            Err(ValueError::new(text, "is not known", format!("write {}", values.join(" or ")))
                .in_field(field))
        }
    }
}

/// Validates a label: a part of object names, compared by segments.
fn check_label(label: &str) -> Result<(), FieldError> {
    let plain = |segment: &str| {
        !segment.is_empty()
            && segment.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !segment.starts_with('-')
            && !segment.ends_with('-')
    };
    match label.len() <= 63 && label.split('.').all(plain) {
        true => Ok(()),
        false => Err(ValueError::new(
            label,
            "is no label",
            "use lower-case letters, digits and -, with dots between",
        )
        .in_field(label)),
    }
}

fn ranged(
    text: Option<&str>,
    default: i32,
    (least, most): (i32, i32),
    field: &str,
) -> Result<i32, FieldError> {
    let Some(text) = text else { return Ok(default) };
    let fix = format!("write a number from {least} to {most}");
    match text.parse::<i32>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(ValueError::new(text, "is out of range", fix).in_field(field)),
        Err(_) => Err(ValueError::new(text, "is no number", fix).in_field(field)),
    }
}

/// The lines of a file by section; settings outside sections are under the empty name.
fn sections(text: &str) -> Result<BTreeMap<String, Fields>, FieldError> {
    let mut found: BTreeMap<String, Fields> = BTreeMap::new();
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        // Never quote the line: an unreadable one may be a password.
        let wrong = |name: &str, problem: &str| {
            let fix = "write `name: value` or `name=value`";
            ValueError::new(name, problem, fix).in_field(format!("line {}", at + 1))
        };
        let content = line.split(" #").next().unwrap_or_default().trim_end();
        if content.trim().is_empty() || content.trim_start().starts_with('#') {
            continue;
        }
        let is_inner = content.starts_with(char::is_whitespace);
        let content = content.trim();
        match (is_inner, content.strip_suffix(':')) {
            (false, Some(name)) if !name.contains(['=', ' ']) => {
                if found.insert(name.to_owned(), Fields::new()).is_some() {
                    return Err(wrong(name, "stands there twice"));
                }
                name.clone_into(&mut section);
            }
            _ => {
                let (name, value) = content
                    .split_once('=')
                    .filter(|(name, _)| !name.contains(':'))
                    .or_else(|| content.split_once(':'))
                    .ok_or_else(|| wrong("", "is no setting"))?;
                if value.trim().starts_with(['[', '{', '|', '>']) || content.starts_with("- ") {
                    return Err(wrong(name.trim(), "is no text"));
                }
                let value = value.trim().trim_matches(['"', '\'']).to_owned();
                let of = if is_inner { section.clone() } else { String::new() };
                if !is_inner && !SETTINGS.contains(&name.trim()) {
                    return Err(wrong(name.trim(), "is not known"));
                }
                if found.entry(of).or_default().insert(name.trim().to_owned(), value).is_some() {
                    return Err(wrong(name, "stands there twice"));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_problem_is_reported_with_its_line() {
        let instance = "a:\n  username: u\n  host: h\n  passwordSecretRef: s\n";
        for (text, message) in [
            (format!("defaultMasterPort: abc\n{instance}"), "defaultMasterPort"),
            (format!("{instance}  port: abc\n"), "a.port"),
            (format!("defaultMasterPort: 1\n{instance}  port: abc\n"), "a.port"),
            (format!("defaultSslMode: maybe\n{instance}"), "defaultSslMode"),
            (format!("defaultReclaimPolicy: burn\n{instance}"), "defaultReclaimPolicy"),
            (format!("defaultShape: '-'\n{instance}"), "defaultShape"),
            (format!("{instance}  type: [postgres, mysql]\n"), "line 5"),
            (format!("defaultSslMode: {{a: b}}\n{instance}"), "line 1"),
        ] {
            let error = ServerConfig::read(&text).expect_err(&text).to_string();
            assert!(error.starts_with(message), "{error} does not name {message}");
        }
    }

    /// The seed's example, the lines with `=` included.
    const SEED: &str = r#"passwordConfig:
  passwordComplexity: enabled
  minPasswordLength: "15"
  passwordRotationPeriod: "60"
atlas:
  username: root
  host: some.service
  port: 5432
  sslMode: disable
  passwordSecretRef: atlas-master-password
  passwordSecretKey: password
atlas.recyclebin:
  username: root
  host: some.other.service
  port: 5412
  sslMode: disable
  passwordSecretRef: atlas-recyclebin-password
athena:
  username=root
  host=some.service
  port=5432
  sslMode: disable
  passwordSecretRef=athena-master-password
athena.hostapp:
  username=root
  host=some.service
  port=5432
  sslMode: require
  passwordSecretRef=athena-hostapp-password
"#;

    #[test]
    fn the_configuration_is_read_as_it_stands() {
        let server_config = ServerConfig::read(SEED).expect("it can be read");
        assert_eq!((server_config.password_length, server_config.rotation_minutes), (15, 60));
        assert_eq!(server_config.instances.len(), 4);
        let hostapp = &server_config.instances["athena.hostapp"];
        assert_eq!((hostapp.port, hostapp.ssl_mode.as_str()), (5432, "require"));
        assert_eq!(hostapp.secret, "athena-hostapp-password");
        assert_eq!(server_config.instances["atlas.recyclebin"].port, 5412);
        let servers = server_config.to_servers("conductor-system");
        assert_eq!(servers[1]["metadata"]["name"], "athena.hostapp");
        assert_eq!(servers[1]["spec"]["offer"]["labels"]["instance"], "athena.hostapp");
        assert_eq!(servers[1]["spec"]["admin"]["username"], "root");
    }

    #[test]
    fn a_missing_port_is_the_engines_default() {
        let text = "a:\n  host: x\n  username: u\n  passwordSecretRef: s\n  type: MySQL\n\
            b:\n  host: y\n  username: u\n  passwordSecretRef: s\n";
        let server_config = ServerConfig::read(text).expect("it can be read");
        assert_eq!((server_config.instances["a"].port, server_config.instances["b"].port), (3306, 5432));
    }

    #[test]
    fn a_config_map_without_a_configuration_is_refused() {
        let read = |data: &str| config_of(&format!("kind: ConfigMap\ndata:\n  {data}\n"));
        assert_eq!(read("config.yaml: 'a: b'").as_deref(), Ok("a: b"));
        let message = read("conf.yaml: 'a: b'").expect_err("it has none").to_string();
        assert!(message.contains("data.config.yaml"), "{message}");
        assert_eq!(config_of("a: b").as_deref(), Ok("a: b"));
    }

    #[test]
    fn defaults_stand_in_for_what_an_instance_does_not_say() {
        let text = "defaultMasterPort: 5433\ndefaultMasterUsername: admin\ndefaultSslMode: require\n\
            defaultShape: small\ndefaultMinStorageGB: 20\ndefaultEngineVersion: 15\ndefaultReclaimPolicy: delete\n\
            defaultDeletionPolicy: orphan\nauthSource: secret\nregion: eu\n\
            a:\n  host: x\n  passwordSecretRef: s\n\
            b:\n  host: y\n  passwordSecretRef: s\n  port: 1\n  username: u\n  sslMode: disable\n  shape: large\n  \
            minStorageGB: 9\n  engineVersion: 16\n  reclaimPolicy: retain\n  type: MySQL\n";
        let server_config = ServerConfig::read(text).expect("it can be read");
        let message = |label: &str| {
            let i = &server_config.instances[label];
            format!(
                "{} {} {} {:?} {:?} {:?} {:?} {}",
                i.port, i.username, i.ssl_mode, i.shape, i.storage_gb, i.version, i.reclaim_policy, i.engine
            )
        };
        assert_eq!(message("a"), r#"5433 admin require Some("small") Some(20) Some("15") Delete postgresql"#);
        assert_eq!(message("b"), r#"1 u disable Some("large") Some(9) Some("16") Retain mariadb"#);
        let server = &server_config.to_servers("s")[0];
        assert_eq!(server["metadata"]["annotations"][ENGINE_VERSION], "15");
        assert_eq!(server["spec"]["offer"]["labels"]["shape"], "small");
        assert_eq!(server["spec"]["offer"]["capacity"]["storage"], "20G");
        assert_eq!(server["spec"]["databases"]["reclaimPolicy"], "Delete");
    }

    #[test]
    fn a_label_without_a_host_becomes_a_class_after_one_of_its_shape() {
        let text = "defaultShape: small\ndefaultMinStorageGB: 20\n\
            a:\n  reclaimPolicy: delete\n  engineVersion: 15\n\
            b:\n  reclaimPolicy: delete\n  deletePolicy: orphan\n  shape: large\n  type: MySQL\n\
            c:\n  passwordSecretRef: s\n  username: root\n";
        let error = ServerConfig::read(text).expect_err("a host was forgotten").to_string();
        assert!(error.contains("c.host"), "{error}");
        let server_config =
            ServerConfig::read(text.split("c:").next().expect("the rest")).expect("it can be read");
        assert!(server_config.instances.is_empty() && server_config.to_servers("s").is_empty());
        let pattern = |shape: &str, engine: Option<&str>| Pattern {
            shape: Some(shape.to_owned()),
            engine: engine.map(str::to_owned),
            fields: json!({"template": {"kind": shape}, "labels": {"shape": shape}, "reclaimPolicy": "Retain"}),
        };
        let patterns =
            [pattern("small", Some("mysql")), pattern("small", None), pattern("large", Some("postgres"))];
        let class = server_config.on_demand["a"].to_class("s", "a", &patterns).expect("there is one");
        expect_test::expect![[r#"{"apiVersion":"storage.conductor.io/v1alpha1","capacity":{"storage":"20G"},"kind":"RelationalDatabaseClass","labels":{"instance":"a","shape":"small"},"metadata":{"name":"a","namespace":"s"},"reclaimPolicy":"Delete","sharing":{"maxClaims":100},"template":{"kind":"small"},"version":"15"}"#]]
            .assert_eq(&class.to_string());
        assert_eq!(server_config.on_demand["b"].reclaim_policy, ReclaimPolicy::Retain, "an orphan is kept");
        let message = server_config.on_demand["b"]
            .to_class("s", "b", &patterns)
            .expect_err("none is large")
            .to_string();
        assert!(
            message.contains("b.shape: `large` has no class") && message.contains("engine mariadb"),
            "{message}"
        );
    }

    #[test]
    fn a_label_that_retains_keeps_server_and_databases() {
        let server_config = ServerConfig::read(
            "a:\n  reclaimPolicy: retain\nb:\n  reclaimPolicy: delete\nc:\n  deletePolicy: orphan\n",
        );
        let server_config = server_config.expect("it can be read");
        let server =
            |policy: Value| json!({"apiVersion": API_VERSION, "kind": "LocalServer", "spec": policy});
        let drops = json!({"databases": {"reclaimPolicy": "Delete", "quarantineMinutes": 0}});
        let class = |label: &str, fields: Value| {
            let pattern = Pattern { shape: None, engine: None, fields };
            server_config.on_demand[label].to_class("s", label, &[pattern])
        };
        let reclaim_policy = |label: &str, policy: &Value| {
            let class = class(label, json!({"template": server(policy.clone())})).expect("it has a class");
            let of = |pointer: &str| class.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            (of("/reclaimPolicy"), of("/template/spec/databases/reclaimPolicy"))
        };
        let text = |text: &str| Some(text.to_owned());
        for policy in [&drops, &json!({}), &json!({"databases": {}})] {
            assert_eq!(reclaim_policy("a", policy), (text("Retain"), text("Retain")), "{policy}");
            assert_eq!(reclaim_policy("c", policy), (text("Retain"), text("Retain")), "{policy}");
        }
        assert_eq!(reclaim_policy("b", &drops), (text("Delete"), text("Delete")));
        let several = json!({"templates": [{"id": "x", "template": {"kind": "ConfigMap", "spec": "text"}},
            {"id": "y", "template": server(drops.clone())}]});
        let several = class("a", several).expect("it has a class");
        assert_eq!(several["templates"][1]["template"]["spec"]["databases"]["reclaimPolicy"], "Retain");
        assert_eq!(several["templates"][0]["template"], json!({"kind": "ConfigMap", "spec": "text"}));
        let computed = class("a", json!({"template": server(json!({"databases": "${parameters.rules}"}))}));
        let message = computed.expect_err("an expression cannot be changed").to_string();
        assert!(message.contains("a.reclaimPolicy") && message.contains("spec.databases"), "{message}");
    }

    #[test]
    fn the_longest_label_wins_and_segments_are_whole() {
        let server_config = ServerConfig::read(SEED).expect("it can be read");
        let found = |label: &str| server_config.find(label).map(|(label, _)| label.to_owned());
        for (label, instance) in [
            ("athena.hostapp", Some("athena.hostapp")),
            ("athena.hostapp.eu", Some("athena.hostapp")),
            ("athena.other", Some("athena")),
            ("athena", Some("athena")),
            ("athena2", None),
            ("passwordConfig", None),
            ("athen", None),
            ("", None),
        ] {
            assert_eq!(found(label).as_deref(), instance, "{label}");
        }
    }

    #[test]
    fn an_unreadable_value_is_reported_with_its_path() {
        let with = |more: &str| format!("{SEED}{more}");
        for (text, message) in [
            (SEED.replace("\"15\"", "\"14\""), "passwordConfig.minPasswordLength: `14` is out of range"),
            (SEED.replace("\"15\"", "\"100\""), "from 15 to 99"),
            (SEED.replace("\"60\"", "\"59\""), "passwordConfig.passwordRotationPeriod"),
            (SEED.replace("\"60\"", "\"1441\""), "from 60 to 1440"),
            (
                SEED.replace("complexity: enabled", "complexity: x")
                    .replace("passwordComplexity: enabled", "passwordComplexity: x"),
                "enabled or disabled",
            ),
            (SEED.replace("port: 5412", "port: 99999"), "atlas.recyclebin.port: `99999` is no port"),
            (SEED.replace("sslMode: require", "sslMode: prefer"), "athena.hostapp.sslMode"),
            (format!("authSource: aws\n{SEED}"), "authSource: `aws` is not supported"),
            (
                with("north:\n  host: x\n  username: r\n  passwordSecretRef: s\n  deletePolicy: burn\n"),
                "north.deletePolicy",
            ),
            (with("north:\n  host: x\n  username: r\n  passwordSecretRef: s\n  shape: a b\n"), "north.shape"),
            (
                with("north:\n  host: x\n  username: r\n  passwordSecretRef: s\n  type: oracle\n"),
                "north.type",
            ),
            (with("north:\n  host: x\n"), "north.username"),
            (with("north star:\n"), "line 30"),
            (with("athena:\n"), "`athena` stands there twice"),
            (with("north:\n  hunter2\n"), "line 31: `` is no setting"),
            (with("athena.hostapp.x:\n  colour: red\n"), "`colour` is not known"),
        ] {
            let error = ServerConfig::read(&text).expect_err(message).to_string();
            assert!(error.contains(message), "expected {message:?}, found {error:?}");
        }
    }

    proptest! {
        /// Compared with a plain search: of all labels that are equal or end before a dot, the longest.
        #[test]
        fn the_match_is_the_longest_prefix_of_whole_segments(
            labels in proptest::collection::btree_set("[ab]{1,2}(\\.[ab]{1,2}){0,2}", 0..6),
            requested in "[ab]{1,2}(\\.[ab]{1,2}){0,3}",
        ) {
            let mut server_config = ServerConfig::read("").expect("empty");
            server_config.instances = labels.iter().map(|label| (label.clone(), Instance::default())).collect();
            let begins = |label: &&String| requested == **label || requested.starts_with(&format!("{label}."));
            let expected = labels.iter().filter(begins).max_by_key(|label| label.len());
            prop_assert_eq!(server_config.find(&requested).map(|(label, _)| label), expected.map(String::as_str));
        }

        #[test]
        fn no_file_brings_the_reader_down(text in "([a-z:=. \n\"#]|.)*") {
            let _ = ServerConfig::read(&text);
        }
    }
}
