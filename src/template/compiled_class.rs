//! The compiled templates of a class: its objects in order, their readiness, and the connection. The lifecycle creates the
//! objects.

use super::body::{Node, refuse_expression};
use super::cel_env::CelEnv;
use super::connection::{Connection, Prepared};
use super::expression::{Expression, Failure};
use super::graph;
use super::scope::{Scope, Shape};
use super::variables::Variables;
use crate::model::{FieldError, Name, ValueError};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum number of objects of a class.
const OBJECTS_MAX: usize = 32;
/// The id of the object of a single `template`.
const MAIN: &str = "main";

/// The fields of a class or a resource with templates.
#[derive(Clone, Debug, Default)]
pub struct Source<'a> {
    /// `template`.
    pub template: Option<&'a Value>,
    /// `templates`.
    pub templates: Option<&'a Value>,
    /// `ready`, for a single template.
    pub ready: Option<&'a str>,
    /// `connection`.
    pub connection: Option<&'a Value>,
}

/// The inputs of expressions.
#[derive(Clone, Debug, Default)]
pub struct Inputs<'a> {
    /// The claim: `metadata` and `spec`. None for a resource that an administrator created.
    pub claim: Option<&'a Value>,
    /// The class: its metadata and fields.
    pub class: Option<&'a Value>,
    /// The resource: `metadata` and `spec`.
    pub resource: Option<&'a Value>,
    /// The parameters of the class, overridden by those of the claim.
    pub parameters: Option<&'a Value>,
    /// The existing objects of the same resource, by id.
    pub objects: BTreeMap<Name, &'a Value>,
}

/// The outcome of rendering one object of a class.
#[derive(Clone, Debug, PartialEq)]
pub enum Rendered {
    /// The desired object.
    Made(Value),
    /// Its `when` is false.
    LeftOut,
    /// These outputs of other objects do not exist yet.
    Waits(String),
    /// An error that waiting does not fix.
    Wrong(FieldError),
}

/// One object of a class, compiled.
struct ObjectPlan {
    id: Name,
    at: String,
    when: Option<Expression>,
    ready: Option<Expression>,
    body: Node,
    /// The objects that it references.
    needs: Vec<Name>,
}

/// A class's templates, compiled.
pub struct CompiledClass {
    /// In the order of creation.
    plans: Vec<ObjectPlan>,
    connection: Option<Connection>,
}

impl CompiledClass {
    /// Compiles templates.
    ///
    /// # Errors
    /// The first error: an expression that is invalid, names what cannot exist, or is not allowed in its place, an object
    /// without a kind, a duplicate id, or a cycle of references.
    pub fn compile(source: &Source<'_>) -> Result<CompiledClass, FieldError> {
        let raw = objects(source)?;
        let ids: Vec<&str> = raw.iter().map(|object| object.id).collect();
        let scope = CelEnv::shared().scope(&ids);
        let mut plans = raw.iter().map(|object| object.compile(&scope)).collect::<Result<Vec<_>, _>>()?;
        let needs: Vec<Vec<usize>> = plans.iter().map(|plan| plan.needs(&ids)).collect();
        for (plan, needs) in plans.iter_mut().zip(&needs) {
            plan.needs = needs.iter().map(|at| Name::from(ids[*at])).collect();
        }
        let order = graph::order(&needs).map_err(|way| {
            let way = way.iter().map(|at| ids[*at]).collect::<Vec<_>>().join(" -> ");
            ValueError::new(&way, "is a cycle", "remove one of these references").in_field("templates")
        })?;
        let mut places: Vec<Option<ObjectPlan>> = plans.into_iter().map(Some).collect();
        let plans = order.into_iter().filter_map(|at| places[at].take()).collect();
        let connection = source.connection.map(|fields| Connection::compile(fields, &ids)).transpose()?;
        Ok(CompiledClass { plans, connection })
    }

    /// Whether any object references another.
    pub fn references_objects(&self) -> bool {
        let expressions = |plan: &ObjectPlan| plan.expressions().any(|e| e.names("objects"));
        self.plans.iter().any(expressions)
    }

    /// The connection, if the class defines one.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// The ids of its objects, in the order of creation.
    pub fn ids(&self) -> impl Iterator<Item = &Name> {
        self.plans.iter().map(|plan| &plan.id)
    }

    /// Renders the objects in the order of creation. One that references another waits until that exists, even if it only
    /// tests for it, because an object that is still to be created looks like one that is left out.
    pub fn render(&self, inputs: &Inputs<'_>) -> Vec<(Name, Rendered)> {
        let variables = match self.variables(inputs) {
            Ok(variables) => variables,
            Err(error) => {
                return self.ids().map(|id| (id.clone(), Rendered::Wrong(error.clone()))).collect();
            }
        };
        let (mut all, mut left_out) = (Vec::new(), BTreeSet::new());
        for plan in &self.plans {
            let rendered = plan.render_after(&variables, &left_out);
            if rendered == Rendered::LeftOut {
                left_out.insert(&plan.id);
            }
            all.push((plan.id.clone(), rendered));
        }
        all
    }

    /// The connection as far as it is known without any Secret; None if the class defines none.
    ///
    /// # Errors
    /// The first key with an error that waiting does not fix.
    pub fn prepare(&self, inputs: &Inputs<'_>) -> Option<Result<Prepared, FieldError>> {
        let connection = self.connection.as_ref()?;
        Some(self.variables(inputs).and_then(|variables| {
            let mut prepared = connection.prepare_from(&variables, inputs, None)?;
            prepared.waits.extend(connection.awaits(&|id| self.is_to_come(id, &variables)));
            Ok(prepared)
        }))
    }

    /// Whether an object does not exist yet and is not left out.
    fn is_to_come(&self, id: &str, variables: &Variables<'_>) -> bool {
        let plan = self.plans.iter().find(|plan| &*plan.id == id);
        let is_left_out = |plan: &ObjectPlan| matches!(plan.is_wanted(variables), Ok(false));
        !variables.has_object(id) && plan.is_some_and(|plan| !is_left_out(plan))
    }

    fn variables<'a>(&self, inputs: &Inputs<'a>) -> Result<Variables<'a>, FieldError> {
        let mut variables = Variables::of(inputs, None)?;
        let for_good = self.plans.iter().filter(|plan| plan.is_left_out_for_good(&variables));
        variables.left_out = for_good.map(|plan| plan.id.clone()).collect();
        Ok(variables)
    }

    /// Whether an object is ready; None if the class has no `ready` for it.
    ///
    /// # Errors
    /// An error of the expression that waiting does not fix.
    pub fn is_ready(
        &self,
        inputs: &Inputs<'_>,
        id: &str,
        object: &Value,
    ) -> Option<Result<bool, FieldError>> {
        let ready = self.plans.iter().find(|plan| &*plan.id == id)?.ready.as_ref()?;
        Some(Variables::of(inputs, Some(object)).and_then(|variables| match ready.flag(&variables) {
            Ok(flag) => Ok(flag),
            // An output that does not exist yet means not ready yet.
            Err(Failure::Waits(_) | Failure::Unset(_)) => Ok(false),
            Err(Failure::Wrong(error)) => Err(error),
        }))
    }
}

impl ObjectPlan {
    /// The expressions of its body and its `when`.
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.body.expressions().into_iter().chain(&self.when)
    }

    fn needs(&self, ids: &[&str]) -> Vec<usize> {
        let named = self.expressions().flat_map(|e| &e.references).filter(|r| r.root == "objects");
        let mut needs: Vec<usize> =
            named.filter_map(|r| ids.iter().position(|id| r.path.first().is_some_and(|p| p == id))).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Whether its `when` is true or absent.
    fn is_wanted(&self, variables: &Variables<'_>) -> Result<bool, Failure> {
        self.when.as_ref().map_or(Ok(true), |when| when.flag(variables))
    }

    /// Whether its `when` is false and references no object, which could change the result.
    fn is_left_out_for_good(&self, variables: &Variables<'_>) -> bool {
        let stays = self.when.as_ref().is_some_and(|when| !when.names("objects"));
        stays && matches!(self.is_wanted(variables), Ok(false))
    }

    /// Renders it, unless an object that it references does not exist yet.
    fn render_after(&self, variables: &Variables<'_>, left_out: &BTreeSet<&Name>) -> Rendered {
        let is_to_come = |id: &str| {
            self.needs.iter().any(|needed| &**needed == id && !left_out.contains(needed))
                && !variables.has_object(id)
        };
        let waits: Vec<String> = self.expressions().flat_map(|e| e.outputs(&is_to_come)).collect();
        match waits.is_empty() || self.is_left_out_for_good(variables) {
            true => self.render(variables),
            false => Rendered::Waits(waits.join(", ")),
        }
    }

    fn render(&self, variables: &Variables<'_>) -> Rendered {
        let rendered = match self.is_wanted(variables) {
            Ok(false) => return Rendered::LeftOut,
            Ok(true) => self.body.render(variables, &self.at),
            Err(failure) => Err(failure),
        };
        let rendered = rendered.and_then(|object| {
            check_texts(&object, &self.at).map_err(Failure::Wrong)?;
            Ok(object)
        });
        match rendered {
            Ok(object) => Rendered::Made(object),
            Err(Failure::Waits(outputs)) => Rendered::Waits(outputs),
            Err(Failure::Unset(error) | Failure::Wrong(error)) => Rendered::Wrong(error),
        }
    }
}

/// An object as written.
struct Raw<'a> {
    id: &'a str,
    at: String,
    when: Option<&'a str>,
    ready: Option<&'a str>,
    template: &'a Map<String, Value>,
}

impl Raw<'_> {
    fn compile(&self, scope: &Scope) -> Result<ObjectPlan, FieldError> {
        let Raw { id, at, when, ready, template } = self;
        for (path, required) in [("apiVersion", true), ("kind", true), ("metadata.namespace", false)] {
            let pointer = format!("/{}", path.replace('.', "/"));
            let whole = Value::Object((*template).clone());
            let place = format!("{at}.{path}");
            match whole.pointer(&pointer) {
                Some(Value::String(text)) if !text.trim().is_empty() => {
                    refuse_expression(text, &place, path)?
                }
                None if !required => {}
                Some(_) | None => {
                    let shown = whole.pointer(&pointer).map(Value::to_string).unwrap_or_default();
                    return Err(ValueError::new(&shown, "is not a string", "write a name").in_field(place));
                }
            }
        }
        check_texts(&Value::Object((*template).clone()), at)?;
        // These fields are siblings of the template.
        let beside = |field: &str| match at.strip_suffix(".template") {
            Some(entry) => format!("{entry}.{field}"),
            None => field.to_owned(),
        };
        let compile = |text: &Option<&str>, field: &str, scope: &Scope| {
            text.map(|text| Expression::compile(bare(text), &beside(field), scope)).transpose()
        };
        let with_object: Scope =
            scope.clone().into_iter().chain([("object".to_owned(), Shape::Open)]).collect();
        Ok(ObjectPlan {
            id: Name::from(*id),
            at: at.clone(),
            when: compile(when, "when", scope)?,
            ready: compile(ready, "ready", &with_object)?,
            body: Node::compile(&Value::Object((*template).clone()), at, scope)?,
            needs: Vec::new(),
        })
    }
}

/// Checks that labels and annotations are strings, as the API requires. A null is left out, and the whole map can be one
/// expression.
fn check_texts(object: &Value, at: &str) -> Result<(), FieldError> {
    let wrong = |place: String, problem: &str, fix: &str| {
        Err(ValueError::new("", problem, fix).in_field(format!("{at}.metadata.{place}")))
    };
    for field in ["labels", "annotations"] {
        let pairs = match object.get("metadata").and_then(|metadata| metadata.get(field)) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(pairs)) => pairs,
            Some(Value::String(text)) if text.contains("${") => continue,
            Some(_) => return wrong(field.to_owned(), "is not a map", "write `name: value`"),
        };
        if let Some((key, _)) = pairs.iter().find(|(_, value)| !value.is_string() && !value.is_null()) {
            return wrong(
                format!("{field}.{key}"),
                "is not a string",
                "quote it, or convert it: ${string(...)}",
            );
        }
    }
    Ok(())
}

/// `ready` and `when` are expressions with or without `${}`.
fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("${").and_then(|inside| inside.strip_suffix('}')).unwrap_or(text)
}

fn objects<'a>(source: &Source<'a>) -> Result<Vec<Raw<'a>>, FieldError> {
    let wrong = |at: &str, problem: &str, fix: &str| ValueError::new("", problem, fix).in_field(at);
    let map = |value: &'a Value, at: &str| {
        value.as_object().ok_or_else(|| wrong(at, "is not an object", "write apiVersion, kind and the rest"))
    };
    match (source.template, source.templates) {
        (Some(_), Some(_)) => Err(wrong("template", "is set together with templates", "keep one of the two")),
        (None, None) => Ok(Vec::new()),
        (Some(template), None) => {
            let (at, template) = ("template".to_owned(), map(template, "template")?);
            Ok(vec![Raw { id: MAIN, at, when: None, ready: source.ready, template }])
        }
        (None, Some(templates)) => {
            let entries = templates.as_array().map(Vec::as_slice).unwrap_or_default();
            if entries.len() > OBJECTS_MAX {
                return Err(wrong("templates", "has more than 32 objects", "split the class"));
            }
            let mut raw: Vec<Raw<'a>> = Vec::new();
            for (at, entry) in entries.iter().enumerate() {
                let at = format!("templates[{at}]");
                let text = |field: &str| entry.get(field).and_then(Value::as_str);
                let id = text("id").ok_or_else(|| wrong(&at, "has no id", "name it"))?;
                if raw.iter().any(|other| other.id == id) {
                    return Err(ValueError::new(id, "is used twice", "give each object its own id")
                        .in_field(format!("{at}.id")));
                }
                let inner = format!("{at}.template");
                let template = map(entry.get("template").unwrap_or(&Value::Null), &inner)?;
                raw.push(Raw { id, at: inner, when: text("when"), ready: text("ready"), template });
            }
            Ok(raw)
        }
    }
}

impl fmt::Debug for CompiledClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}
