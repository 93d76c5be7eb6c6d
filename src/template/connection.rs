//! The connection of a resource, key by key: compiled once, prepared from the known state of its objects, completed with the
//! data of one Secret. The first step never reads a Secret, the second gets only the inputs that it needs.
//!
//! ```text
//! connection:
//!   host: ${objects.main.status.endpoint}       known to the engine
//!   secretRef: {name: "${objects.main.metadata.name}-app"}
//!   password: ${secret.password}                known only to the publisher
//! ```

use super::body::{Node, refuse_expression};
use super::cel_env::CelEnv;
use super::compiled_class::Inputs;
use super::cost_check::Reference;
use super::expression::Failure;
use super::scope::{Scope, Shape};
use super::variables::Variables;
use crate::model::{FieldError, ValueError};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The key that names a Secret instead of a value.
const SECRET_REF: &str = "secretRef";
/// The variable with the data of the Secret.
const SECRET: &str = "secret";
/// Maximum number of keys of a connection.
const KEYS_MAX: usize = 64;

/// The compiled connection of a resource.
pub struct Connection {
    keys: Vec<(String, Node, Value)>,
    secret: Option<Node>,
    labels: Vec<(String, Node)>,
}

/// A connection as far as it is known without any Secret.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Known keys with their values.
    pub values: BTreeMap<String, Value>,
    /// Keys without a value yet, and what they wait for.
    pub waits: BTreeMap<String, String>,
    /// The Secret with the other keys, if any.
    pub secret: Option<SecretRef>,
    /// The keys to compute from the data of the Secret, as written.
    pub later: Map<String, Value>,
    /// The further inputs of that computation.
    pub inputs: Value,
}

/// A Secret in the system namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretRef {
    /// Its name.
    pub name: String,
    /// Labels that it must have to belong to the implementation.
    pub labels: BTreeMap<String, String>,
}

impl Connection {
    /// Compiles a connection over objects of these ids.
    ///
    /// # Errors
    /// The first invalid key.
    pub fn compile(fields: &Value, ids: &[&str]) -> Result<Connection, FieldError> {
        let scope: Scope = CelEnv::shared().scope(ids).into_iter().chain(open("object")).collect();
        let with_secret: Scope = scope.clone().into_iter().chain(open(SECRET)).collect();
        let Some(fields) = fields.as_object() else {
            return Err(ValueError::new("", "is not a map", "write `host: ...`").in_field("connection"));
        };
        if fields.len() > KEYS_MAX {
            return Err(ValueError::new("", "has more than 64 keys", "keep fewer").in_field("connection"));
        }
        let mut connection = Connection { keys: Vec::new(), secret: None, labels: Vec::new() };
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let at = format!("connection.{key}");
            if key == SECRET_REF {
                connection.refer(value, &scope)?;
                continue;
            }
            check_key(key)?;
            connection.keys.push((key.clone(), Node::compile(value, &at, &with_secret)?, value.clone()));
        }
        let of_secret = connection.keys.iter().find(|(_, node, _)| needs_secret(node));
        let clear = connection.keys.iter().find(|(key, node, _)| key == "password" && !needs_secret(node));
        if clear.is_some() {
            return Err(ValueError::new(
                "",
                "is in clear text",
                "keep it in a Secret: secretRef and ${secret.password}",
            )
            .in_field("connection.password"));
        }
        match (of_secret, &connection.secret) {
            (Some((key, ..)), None) => {
                Err(ValueError::new(key, "uses secret, and no Secret is named", "add secretRef")
                    .in_field(format!("connection.{key}")))
            }
            _ => Ok(connection),
        }
    }

    /// Parses `secretRef`: a name, or a map with the name.
    fn refer(&mut self, value: &Value, scope: &Scope) -> Result<(), FieldError> {
        let at = "connection.secretRef";
        let fields = value.as_object().into_iter().flatten();
        if let Some((other, _)) =
            fields.into_iter().find(|(field, _)| !["name", "labels"].contains(&field.as_str()))
        {
            let fix = "write name: the Secret must be in the system namespace";
            return Err(ValueError::new(other, "is not a field of secretRef", fix).in_field(at));
        }
        let name = if value.is_object() { value.get("name").unwrap_or(&Value::Null) } else { value };
        if !name.is_string() {
            return Err(ValueError::new("", "names no Secret", "write its name").in_field(at));
        }
        self.secret = Some(Node::compile(name, at, scope)?);
        let labels = value.get("labels").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in labels {
            self.labels.push((key.clone(), Node::compile(value, &format!("{at}.labels.{key}"), scope)?));
        }
        Ok(())
    }

    /// Prepares the connection without any Secret. `object` is the object of an adapter.
    ///
    /// # Errors
    /// The first key with an error that waiting does not fix.
    pub fn prepare(&self, inputs: &Inputs<'_>, object: Option<&Value>) -> Result<Prepared, FieldError> {
        self.prepare_from(&Variables::of(inputs, object)?, inputs, object)
    }

    /// The keys that reference objects that do not exist yet, with these references.
    pub(super) fn awaits(&self, is_to_come: &impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let keys = self.keys.iter().map(|(key, node, _)| (key.as_str(), node));
        let secret = self.secret.iter().map(|node| (SECRET_REF, node));
        let named = keys.chain(secret).map(|(key, node)| {
            let outputs = node.expressions().into_iter().flat_map(|e| e.outputs(is_to_come));
            (key.to_owned(), outputs.collect::<Vec<_>>().join(", "))
        });
        named.filter(|(_, outputs)| !outputs.is_empty()).collect()
    }

    pub(super) fn prepare_from(
        &self,
        variables: &Variables<'_>,
        inputs: &Inputs<'_>,
        object: Option<&Value>,
    ) -> Result<Prepared, FieldError> {
        let mut prepared = Prepared { inputs: json!({}), ..Prepared::default() };
        for (key, node, written) in &self.keys {
            if needs_secret(node) {
                prepared.later.insert(key.clone(), written.clone());
                let references = node.expressions().into_iter().flat_map(|e| &e.references);
                references.for_each(|r| copy(&mut prepared.inputs, r, inputs, object));
                continue;
            }
            match node.render(variables, &format!("connection.{key}")) {
                Ok(value) => drop(prepared.values.insert(key.clone(), value)),
                Err(Failure::Waits(outputs)) => drop(prepared.waits.insert(key.clone(), outputs)),
                Err(Failure::Unset(_)) if object.is_some() => {
                    prepared.waits.insert(
                        key.clone(),
                        "a value that the implementation does not report yet".to_owned(),
                    );
                }
                Err(Failure::Unset(error) | Failure::Wrong(error)) => return Err(error),
            }
        }
        if let Some(node) = &self.secret {
            let text =
                |node: &Node| match node.render(variables, "connection.secretRef") {
                    Ok(Value::String(text)) => Ok(Some(text)),
                    Ok(_) => Err(ValueError::new("", "is not a string", "write a name")
                        .in_field("connection.secretRef")),
                    Err(Failure::Waits(_) | Failure::Unset(_)) => Ok(None),
                    Err(Failure::Wrong(error)) => Err(error),
                };
            let mut labels = BTreeMap::new();
            for (key, node) in &self.labels {
                labels.extend(text(node)?.map(|value| (key.clone(), value)));
            }
            match text(node)? {
                Some(name) if labels.len() == self.labels.len() => {
                    prepared.secret = Some(SecretRef { name, labels })
                }
                Some(_) | None => {
                    prepared
                        .waits
                        .insert(SECRET_REF.to_owned(), "the name of the implementation's Secret".to_owned());
                }
            }
        }
        Ok(prepared)
    }
}

/// Computes the remaining keys from the data of the Secret. Keys that it lacks are left out.
///
/// # Errors
/// The first key with an error that waiting does not fix. Never contains data of the Secret.
pub fn complete(
    prepared: &Prepared,
    secret: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, FieldError> {
    let scope: Scope = ["claim", "class", "resource", "parameters", "objects", "object", SECRET]
        .into_iter()
        .flat_map(open)
        .collect();
    let (secret, empty) = (json!(secret), json!({}));
    let of = |name| prepared.inputs.get(name).unwrap_or(&empty);
    let named =
        ["claim", "class", "resource", "parameters", "objects", "object"].map(|name| (name, of(name)));
    let named = named.into_iter().chain([(SECRET, &secret)]);
    let variables = Variables::new(named.map(|(name, value)| (name, Cow::Borrowed(value))).collect())?;
    let mut values = prepared.values.clone();
    for (key, written) in &prepared.later {
        let at = format!("connection.{key}");
        match Node::compile(written, &at, &scope)?.render(&variables, &at) {
            Ok(value) => drop(values.insert(key.clone(), value)),
            Err(Failure::Waits(_) | Failure::Unset(_)) => {}
            Err(Failure::Wrong(error)) => return Err(error),
        }
    }
    Ok(values)
}

fn open(name: &str) -> Option<(String, Shape)> {
    Some((name.to_owned(), Shape::Open))
}

fn needs_secret(node: &Node) -> bool {
    node.expressions().iter().any(|expression| expression.names(SECRET))
}

/// Checks a key of a Secret, which is also a file name where applications mount it.
fn check_key(key: &str) -> Result<(), FieldError> {
    refuse_expression(key, "connection", "a key")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !key.is_empty()
        && key.len() <= 253
        && key.chars().all(plain)
        && !key.starts_with("..")
        && key != "."
    {
        true => Ok(()),
        false => Err(ValueError::new(key, "cannot be a key of a Secret", "use letters, digits, - _ and .")
            .in_field("connection")),
    }
}

/// Copies only the value of a reference, so that the inputs contain nothing else.
fn copy(target: &mut Value, reference: &Reference, inputs: &Inputs<'_>, object: Option<&Value>) {
    let Reference { root, path } = reference;
    let (found, path) = match (root.as_str(), path.as_slice()) {
        ("claim", path) => (inputs.claim, path),
        ("class", path) => (inputs.class, path),
        ("resource", path) => (inputs.resource, path),
        ("parameters", path) => (inputs.parameters, path),
        ("object", path) => (object, path),
        ("objects", [id, path @ ..]) => (inputs.objects.get(id.as_str()).copied(), path),
        _ => (None, path.as_slice()),
    };
    let Some(value) = path.iter().try_fold(found, |value, step| value.map(|v| v.get(step))).flatten() else {
        return;
    };
    let whole = reference.path.iter().map(String::as_str);
    let mut place = target;
    for step in std::iter::once(root.as_str()).chain(whole) {
        if !place.is_object() {
            *place = json!({});
        }
        let Value::Object(fields) = place else { return };
        place = fields.entry(step.to_owned()).or_insert_with(|| json!({}));
    }
    *place = value.clone();
}
