//! Adapters: what is known of well-known kinds of implementation, as data: when an object is ready, when it has
//! failed for good, and how what it stands for is reached. A class that says so itself is believed instead.

use super::blueprint::{Inputs, context};
use super::connection::Connection;
use super::dialect::Dialect;
use super::expression::{Expression, Failure};
use super::scope::{Scope, Shape};
use crate::model::{FieldError, Name, PartKind, Readiness, ValueError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Fields of an adapter; any other is a slip of the pen.
const FIELDS: [&str; 8] =
    ["name", "group", "kind", "ready", "failed", "message", "connection", "description"];

/// What is known of one kind.
pub struct Adapter {
    /// What people call it.
    pub name: String,
    group: String,
    kind: String,
    ready: Option<Expression>,
    failed: Option<Expression>,
    message: Option<Expression>,
    connection: Option<(Connection, Value)>,
}

/// Every adapter, by group and kind.
#[derive(Default)]
pub struct Adapters(BTreeMap<(String, String), Adapter>);

impl Adapter {
    /// Compiles an adapter from its data.
    ///
    /// # Errors
    /// The field that is missing, unknown, or can never work.
    pub fn compile(data: &Value) -> Result<Adapter, FieldError> {
        let wrong = |at: &str, problem: &str, fix: &str| ValueError::new("", problem, fix).in_field(at);
        let fields =
            data.as_object().ok_or_else(|| wrong("adapter", "is no map", "write group, kind, ready"))?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(wrong(unknown, "is not known", &format!("use one of {}", FIELDS.join(", "))));
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let require = |name: &str| text(name).ok_or_else(|| wrong(name, "is missing", "name it"));
        let object = [("object".to_owned(), Shape::Open)];
        let scope: Scope = Dialect::shared().scope(&[]).into_iter().chain(object).collect();
        let compile = |name: &str| text(name).map(|text| Expression::compile(text, name, &scope)).transpose();
        let connection = match fields.get("connection") {
            Some(value) => Some((Connection::compile(value, &[])?, value.clone())),
            None => None,
        };
        Ok(Adapter {
            name: require("name")?.to_owned(),
            group: require("group")?.to_owned(),
            kind: require("kind")?.to_owned(),
            ready: compile("ready")?,
            failed: compile("failed")?,
            message: compile("message")?,
            connection,
        })
    }

    /// Whether an object of the kind can be used; nothing where the adapter does not say.
    pub fn readiness(&self, object: &Value) -> Option<Readiness> {
        let context = context(&Inputs::default(), Some(object)).ok()?;
        let says = |expression: &Expression| matches!(expression.flag(&context), Ok(true));
        let message = || {
            let text = self.message.as_ref().and_then(|message| message.text(&context).ok());
            let text = text.filter(|text| !text.trim().is_empty());
            Name::from(text.unwrap_or_else(|| format!("it is not ready, as {} tells it", self.name)))
        };
        if self.failed.as_ref().is_some_and(says) {
            return Some(Readiness::Failed(message()));
        }
        Some(match self.ready.as_ref()?.flag(&context) {
            Ok(true) => Readiness::Ready,
            // What is not there yet is not ready yet.
            Ok(false) | Err(Failure::Waits(_) | Failure::Unset(_)) => Readiness::NotReady(message()),
            Err(Failure::Wrong(error)) => Readiness::NotReady(Name::from(error.to_string())),
        })
    }

    /// How what an object of the kind stands for is reached, compiled and as written.
    pub fn connection(&self) -> Option<&(Connection, Value)> {
        self.connection.as_ref()
    }
}

impl Adapters {
    /// These adapters; of two for one kind, the later.
    pub fn new(adapters: impl IntoIterator<Item = Adapter>) -> Adapters {
        let keyed = |adapter: Adapter| ((adapter.group.clone(), adapter.kind.clone()), adapter);
        Adapters(adapters.into_iter().map(keyed).collect())
    }

    /// The adapter for a kind, whatever its version.
    pub fn find(&self, kind: &PartKind) -> Option<&Adapter> {
        self.0.get(&(kind.group().to_owned(), kind.kind.to_string()))
    }

    /// Every adapter.
    pub fn all(&self) -> impl Iterator<Item = &Adapter> {
        self.0.values()
    }
}

impl fmt::Debug for Adapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
