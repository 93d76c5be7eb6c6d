//! A class's templates, compiled: which objects, in which order, when ready, and what the connection is made of.
//! It says what should be; whether it is, and who makes it so, is decided elsewhere.

use super::body::{Node, refuse_expression};
use super::connection::{Connection, Prepared};
use super::dialect::Dialect;
use super::expression::{Expression, Failure};
use super::graph;
use super::scope::{Scope, Shape};
use super::variables::Variables;
use crate::model::{FieldError, Name, ValueError};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Most objects of one class.
const OBJECTS_MAX: usize = 32;
/// The id of the object of a single `template`.
const MAIN: &str = "main";

/// The fields of a class or a resource that templates are made of.
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

/// What expressions see.
#[derive(Clone, Debug, Default)]
pub struct Inputs<'a> {
    /// The claim: `metadata` and `spec`. Absent for a resource that an administrator made.
    pub claim: Option<&'a Value>,
    /// The class: its metadata and fields.
    pub class: Option<&'a Value>,
    /// The resource: `metadata` and `spec`.
    pub resource: Option<&'a Value>,
    /// The class's parameters with the claim's over them.
    pub parameters: Option<&'a Value>,
    /// The objects of the same resource that are there, by id.
    pub objects: BTreeMap<Name, &'a Value>,
}

/// What became of one object of a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub enum Rendered {
    /// This object is to be there.
    Made(Value),
    /// Its `when` says no.
    LeftOut,
    /// Until these outputs of other objects are known.
    Waits(String),
    /// It cannot be made; waiting does not help.
    Wrong(FieldError),
}

/// One object of a blueprint.
struct Plan {
    id: Name,
    at: String,
    when: Option<Expression>,
    ready: Option<Expression>,
    body: Node,
    /// The objects that it speaks of.
    needs: Vec<Name>,
}

/// A class's templates, compiled.
pub struct Blueprint {
    /// In the order in which they are made.
    plans: Vec<Plan>,
    connection: Option<Connection>,
}

impl Blueprint {
    /// Compiles templates.
    ///
    /// # Errors
    /// The first thing that can never work: an expression that cannot be read or names what is not there, one in
    /// a place where none may stand, objects without a kind, ids that are used twice, objects that need each other.
    pub fn compile(source: &Source<'_>) -> Result<Blueprint, FieldError> {
        let raw = objects(source)?;
        let ids: Vec<&str> = raw.iter().map(|object| object.id).collect();
        let scope = Dialect::shared().scope(&ids);
        let mut plans = raw.iter().map(|object| object.compile(&scope)).collect::<Result<Vec<_>, _>>()?;
        let needs: Vec<Vec<usize>> = plans.iter().map(|plan| plan.needs(&ids)).collect();
        for (plan, needs) in plans.iter_mut().zip(&needs) {
            plan.needs = needs.iter().map(|at| Name::from(ids[*at])).collect();
        }
        let order = graph::order(&needs).map_err(|way| {
            let way = way.iter().map(|at| ids[*at]).collect::<Vec<_>>().join(" -> ");
            ValueError::new(&way, "is a circle", "let one of them do without the other").in_field("templates")
        })?;
        let mut places: Vec<Option<Plan>> = plans.into_iter().map(Some).collect();
        let plans = order.into_iter().filter_map(|at| places[at].take()).collect();
        let connection = source.connection.map(|fields| Connection::compile(fields, &ids)).transpose()?;
        Ok(Blueprint { plans, connection })
    }

    /// Whether any object is made from what others say.
    pub fn speaks_of_objects(&self) -> bool {
        let expressions = |plan: &Plan| plan.expressions().any(|e| e.names("objects"));
        self.plans.iter().any(expressions)
    }

    /// How the resource is reached, where its author says so.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// The ids of its objects, in the order in which they are made.
    pub fn ids(&self) -> impl Iterator<Item = &Name> {
        self.plans.iter().map(|plan| &plan.id)
    }

    /// What each object should be, in the order in which they are made. One that speaks of another waits until that is
    /// there, also where it only asks whether it is: what is still to come looks the same as what is left out.
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

    /// How the resource is reached, as far as that is known without any secret; nothing where its author does not say.
    ///
    /// # Errors
    /// The first key that cannot be had for good.
    pub fn prepare(&self, inputs: &Inputs<'_>) -> Option<Result<Prepared, FieldError>> {
        let connection = self.connection.as_ref()?;
        Some(self.variables(inputs).and_then(|variables| {
            let mut prepared = connection.prepare_from(&variables, inputs, None)?;
            prepared.waits.extend(connection.speaks_of(&|id| self.is_to_come(id, &variables)));
            Ok(prepared)
        }))
    }

    /// Whether an object is not there, and not because it is left out.
    fn is_to_come(&self, id: &str, variables: &Variables<'_>) -> bool {
        let plan = self.plans.iter().find(|plan| &*plan.id == id);
        let is_left_out = |plan: &Plan| matches!(plan.is_wanted(variables), Ok(false));
        !variables.has_object(id) && plan.is_some_and(|plan| !is_left_out(plan))
    }

    fn variables<'a>(&self, inputs: &Inputs<'a>) -> Result<Variables<'a>, FieldError> {
        let mut variables = Variables::of(inputs, None)?;
        let for_good = self.plans.iter().filter(|plan| plan.is_left_out_for_good(&variables));
        variables.left_out = for_good.map(|plan| plan.id.clone()).collect();
        Ok(variables)
    }

    /// Whether an object says that it is ready, where the class says how to tell.
    ///
    /// # Errors
    /// What the expression lacks, where it cannot tell for good.
    pub fn is_ready(
        &self,
        inputs: &Inputs<'_>,
        id: &str,
        object: &Value,
    ) -> Option<Result<bool, FieldError>> {
        let ready = self.plans.iter().find(|plan| &*plan.id == id)?.ready.as_ref()?;
        Some(Variables::of(inputs, Some(object)).and_then(|variables| match ready.flag(&variables) {
            Ok(flag) => Ok(flag),
            // What is not there yet is not ready yet.
            Err(Failure::Waits(_) | Failure::Unset(_)) => Ok(false),
            Err(Failure::Wrong(error)) => Err(error),
        }))
    }
}

impl Plan {
    /// What it is made from, and when.
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

    /// Whether its `when` says yes, where it has one.
    fn is_wanted(&self, variables: &Variables<'_>) -> Result<bool, Failure> {
        self.when.as_ref().map_or(Ok(true), |when| when.flag(variables))
    }

    /// Whether its `when` says no and hangs on no object: those may come to say otherwise.
    fn is_left_out_for_good(&self, variables: &Variables<'_>) -> bool {
        let stays = self.when.as_ref().is_some_and(|when| !when.names("objects"));
        stays && matches!(self.is_wanted(variables), Ok(false))
    }

    /// Renders it, unless something that it speaks of is still to come.
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

/// An object as its author wrote it.
struct Raw<'a> {
    id: &'a str,
    at: String,
    when: Option<&'a str>,
    ready: Option<&'a str>,
    template: &'a Map<String, Value>,
}

impl Raw<'_> {
    fn compile(&self, scope: &Scope) -> Result<Plan, FieldError> {
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
                    return Err(ValueError::new(&shown, "is no text", "name it").in_field(place));
                }
            }
        }
        check_texts(&Value::Object((*template).clone()), at)?;
        // They stand beside the template, not in it.
        let beside = |field: &str| match at.strip_suffix(".template") {
            Some(entry) => format!("{entry}.{field}"),
            None => field.to_owned(),
        };
        let compile = |text: &Option<&str>, field: &str, scope: &Scope| {
            text.map(|text| Expression::compile(bare(text), &beside(field), scope)).transpose()
        };
        let with_object: Scope =
            scope.clone().into_iter().chain([("object".to_owned(), Shape::Open)]).collect();
        Ok(Plan {
            id: Name::from(*id),
            at: at.clone(),
            when: compile(when, "when", scope)?,
            ready: compile(ready, "ready", &with_object)?,
            body: Node::compile(&Value::Object((*template).clone()), at, scope)?,
            needs: Vec::new(),
        })
    }
}

/// Labels and annotations are text; the API takes nothing else. What is null is left out, and all of them may be one
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
            Some(_) => return wrong(field.to_owned(), "is no map", "write `name: value`"),
        };
        if let Some((key, _)) = pairs.iter().find(|(_, value)| !value.is_string() && !value.is_null()) {
            return wrong(format!("{field}.{key}"), "is no text", "make it text: ${string(...)}, or quotes");
        }
    }
    Ok(())
}

/// `ready` and `when` are expressions by themselves; brackets around them are allowed.
fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("${").and_then(|inside| inside.strip_suffix('}')).unwrap_or(text)
}

fn objects<'a>(source: &Source<'a>) -> Result<Vec<Raw<'a>>, FieldError> {
    let wrong = |at: &str, problem: &str, fix: &str| ValueError::new("", problem, fix).in_field(at);
    let map = |value: &'a Value, at: &str| {
        value.as_object().ok_or_else(|| wrong(at, "is no object", "write apiVersion, kind and the rest"))
    };
    match (source.template, source.templates) {
        (Some(_), Some(_)) => Err(wrong("template", "stands beside templates", "keep one of the two")),
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

impl fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}
