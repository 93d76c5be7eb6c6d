//! Adapters: how to read objects of well-known operators, as data: when an object is ready, when it has failed for good,
//! its version, and its connection. `ready` and `connection` of a class take precedence.

use super::cel_env::CelEnv;
use super::compiled_class::Inputs;
use super::connection::Connection;
use super::expression::{Expression, Failure};
use super::scope::{Scope, Shape};
use super::variables::Variables;
use crate::model::{FieldError, Name, PartKind, Readiness, ValueError, Version};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Fields of an adapter. Any other is refused as a typing error.
const FIELDS: [&str; 9] =
    ["name", "group", "kind", "ready", "failed", "message", "version", "connection", "description"];

/// Characters of an operator's message that a status repeats.
const MESSAGE_CHARS_MAX: usize = 256;

/// The adapter for a kind.
pub struct Adapter {
    /// The display name of the operator's kind.
    pub name: String,
    groups: Vec<String>,
    kind: String,
    ready: Option<Expression>,
    failed: Option<Expression>,
    message: Option<Expression>,
    version: Option<Expression>,
    connection: Option<(Connection, Value)>,
}

/// Adapters by group and kind.
#[derive(Clone, Default)]
pub struct Adapters(BTreeMap<(String, String), Arc<Adapter>>);

/// An invalid adapter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {why}")]
pub struct AdapterError {
    /// Its file.
    pub file: String,
    /// The field, what is wrong with it, and what to write instead.
    pub why: String,
}

impl Adapter {
    /// Compiles an adapter from its data.
    ///
    /// # Errors
    /// A field that is missing, unknown or invalid.
    pub fn compile(data: &Value) -> Result<Adapter, FieldError> {
        let wrong = |at: &str, problem: &str, fix: &str| ValueError::new("", problem, fix).in_field(at);
        let fields =
            data.as_object().ok_or_else(|| wrong("adapter", "is not a map", "write group, kind, ready"))?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(wrong(unknown, "is not known", &format!("use one of {}", FIELDS.join(", "))));
        }
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(name, "is not a string", "write it in quotes")),
        };
        let require = |name: &str| text(name)?.ok_or_else(|| wrong(name, "is missing", "name it"));
        let object = [("object".to_owned(), Shape::Open)];
        let scope: Scope = CelEnv::shared().scope(&[]).into_iter().chain(object).collect();
        let compile =
            |name: &str| text(name)?.map(|text| Expression::compile(text, name, &scope)).transpose();
        let connection = match fields.get("connection") {
            Some(value) => Some((Connection::compile(value, &[])?, value.clone())),
            None => None,
        };
        Ok(Adapter {
            name: require("name")?.to_owned(),
            groups: read_groups(fields.get("group"))?,
            kind: require("kind")?.to_owned(),
            ready: compile("ready")?,
            failed: compile("failed")?,
            message: compile("message")?,
            version: compile("version")?,
            connection,
        })
    }

    /// The readiness of an object of the kind; None if the adapter does not define it.
    pub fn readiness(&self, object: &Value) -> Option<Readiness> {
        let inputs = Inputs::default();
        let variables = Variables::of(&inputs, Some(object)).ok()?;
        let says = |expression: &Expression| matches!(expression.flag(&variables), Ok(true));
        let message = || {
            let text = self.message.as_ref().and_then(|message| message.text(&variables).ok());
            let text = text.filter(|text| !text.trim().is_empty());
            let text = text.map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect());
            Name::from(text.unwrap_or_else(|| format!("{} does not report it as ready", self.name)))
        };
        if self.failed.as_ref().is_some_and(says) {
            return Some(Readiness::Failed(message()));
        }
        Some(match self.ready.as_ref()?.flag(&variables) {
            Ok(true) => Readiness::Ready,
            // An output that does not exist yet means not ready yet.
            Ok(false) | Err(Failure::Waits(_) | Failure::Unset(_)) => Readiness::NotReady(message()),
            Err(Failure::Wrong(error)) => Readiness::NotReady(Name::from(error.to_string())),
        })
    }

    /// The version that an object of the kind reports, if it is valid.
    pub fn version(&self, object: impl FnOnce() -> Value) -> Option<Name> {
        let expression = self.version.as_ref()?;
        let (inputs, object) = (Inputs::default(), object());
        let text = expression.text(&Variables::of(&inputs, Some(&object)).ok()?).ok()?;
        // Packagers append to it: `15.18 (Debian 15.18-0+deb12u1)`.
        let version = text.split_whitespace().next()?;
        Version::parse(version).ok()?;
        Some(Name::from(version))
    }

    /// The connection of an object of the kind, compiled and as written.
    pub fn connection(&self) -> Option<&(Connection, Value)> {
        self.connection.as_ref()
    }
}

/// Parses one group, or several that serve the same kind.
fn read_groups(field: Option<&Value>) -> Result<Vec<String>, FieldError> {
    let wrong = |problem| ValueError::new("", problem, "name the kind's API group").in_field("group");
    let items = match field {
        None | Some(Value::Null) => return Err(wrong("is missing")),
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let groups: Option<Vec<String>> = items.iter().map(text).collect();
    groups
        .filter(|groups| !groups.is_empty())
        .ok_or_else(|| wrong("is neither a string nor a list of strings"))
}

impl Adapters {
    /// These adapters; of two for one kind, the later wins.
    pub fn new(adapters: impl IntoIterator<Item = Adapter>) -> Adapters {
        let keyed = |adapter: Adapter| {
            let adapter = Arc::new(adapter);
            let keys = adapter.groups.clone().into_iter().map(|group| (group, adapter.kind.clone()));
            keys.map(|key| (key, Arc::clone(&adapter))).collect::<Vec<_>>()
        };
        Adapters(adapters.into_iter().flat_map(keyed).collect())
    }

    /// Parses YAML files with one adapter each, given as (name, text).
    ///
    /// # Errors
    /// The first invalid file with the field, or two files for one kind.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Adapters, AdapterError> {
        let mut all = Adapters::default();
        for (file, text) in files {
            let error = |why: String| AdapterError { file: file.to_owned(), why };
            let data: Value = serde_saphyr::from_str(text).map_err(|why| error(why.to_string()))?;
            let adapter = Adapter::compile(&data).map_err(|why| error(why.to_string()))?;
            for (key, adapter) in Adapters::new([adapter]).0 {
                let (group, kind) = key.clone();
                if all.0.insert(key, adapter).is_some() {
                    let what = ValueError::new(&format!("{kind}.{group}"), "has two adapters", "keep one");
                    return Err(error(what.in_field("kind").to_string()));
                }
            }
        }
        Ok(all)
    }

    /// These adapters and `others`, which win for the same kind.
    pub fn with(mut self, others: Adapters) -> Adapters {
        self.0.extend(others.0);
        self
    }

    /// The adapter for a kind of any version.
    pub fn find(&self, kind: &PartKind) -> Option<&Adapter> {
        self.0.get(&(kind.group().to_owned(), kind.kind.to_string())).map(Arc::as_ref)
    }

    /// Every adapter, with its group and kind.
    pub fn all(&self) -> impl Iterator<Item = ((&str, &str), &Adapter)> {
        self.0.iter().map(|((group, kind), adapter)| ((group.as_str(), kind.as_str()), &**adapter))
    }
}

impl fmt::Debug for Adapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
