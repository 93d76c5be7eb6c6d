//! One expression: parsed, bounded, its references known and checked. Evaluating it cannot reach anything but the
//! variables it is given. Errors never repeat a value: it may be a password.

use super::body::size_of;
use super::scope::Scope;
use super::survey::{Reference, Survey, UNORDERED, is_too_deep};
use super::value::{to_json, to_text};
use super::variables::Variables;
use crate::model::{FieldError, ValueError};
use kube_cel::cel::{ExecutionError, Program, Value as Cel};
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Longest text of an expression.
const CHARS_MAX: usize = 4_096;
/// Most steps in an expression.
const NODES_MAX: usize = 1_000;
/// How deep `map`, `filter`, `all`, `exists` may stand in one another. CEL has no limit on time, each level
/// multiplies by the length of a list, and a claim's author may write a long one.
const LOOPS_MAX: usize = 1;
/// How many times larger than what it is given a result may be: loops after one another multiply, too.
const GROWTH_MAX: u64 = 4_096;
/// Most that an expression may come to make, by the size of what it names.
const MADE_MAX: u64 = 16 * 1024 * 1024;
/// Most that an expression with a loop may name. The evaluator copies what it has for every item that it adds.
const WALKED_MAX: usize = 8 * 1024;

/// What is told by others, and may yet be told where it is not.
const OUTPUTS: [&str; 3] = ["object", "objects", "secret"];

/// A compiled expression.
pub(super) struct Expression {
    text: Arc<str>,
    /// Where it stands, for errors.
    at: Arc<str>,
    program: Program,
    pub references: BTreeSet<Reference>,
    /// What is walked over to make a list.
    walks: BTreeSet<Reference>,
    growth: u64,
    has_loop: bool,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// Something that another object tells is not known yet.
    Waits(String),
    /// It asks for what the inputs do not have. What is made from them cannot be; what speaks of itself may yet.
    Unset(FieldError),
    /// It will not get better by waiting.
    Wrong(FieldError),
}

impl Expression {
    /// Reads an expression that stands at `at`, over the names of `scope`.
    pub fn compile(text: &str, at: &str, scope: &Scope) -> Result<Expression, FieldError> {
        let wrong = |problem: &str, fix: &str| ValueError::new(text, problem, fix).in_field(at);
        if text.len() > CHARS_MAX {
            return Err(wrong("is too long", "keep it under 4096 characters"));
        }
        if is_too_deep(text) {
            return Err(wrong("is nested too deep", "keep it under 32 levels of brackets and choices"));
        }
        // The parser is not ours; were it to panic on a text, that text is at fault and not we.
        let parsed = catch_unwind(|| Program::compile(text));
        let parsed =
            parsed.map_err(|_| wrong("cannot be read", "write it as CEL, such as claim.spec.engine"))?;
        let program = parsed.map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone()).unwrap_or_default();
            wrong(&format!("cannot be read ({first})"), "write it as CEL, such as claim.spec.engine")
        })?;
        let survey = Survey::of(program.expression());
        if let Some((problem, fix)) = survey.refused {
            return Err(wrong(problem, fix));
        }
        if survey.nodes > NODES_MAX {
            return Err(wrong("has too many steps", "split it over several values"));
        }
        if survey.loops > LOOPS_MAX {
            return Err(wrong("has a loop in a loop", "let no map, filter, all or exists stand in another"));
        }
        if survey.growth > GROWTH_MAX {
            return Err(wrong("has too many loops after one another", "split it over several values"));
        }
        let Survey { references, walks, growth, loops, .. } = survey;
        let (text, at) = (text.into(), at.into());
        let expression = Expression { text, at, program, references, walks, growth, has_loop: loops > 0 };
        expression.check(scope)?;
        Ok(expression)
    }

    fn check(&self, scope: &Scope) -> Result<(), FieldError> {
        for Reference { root, path } in &self.references {
            let Some(shape) = scope.get(root) else {
                let known = scope.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(
                    self.wrong(&format!("names {root}, which is not known here"), &format!("use {known}"))
                );
            };
            if let Some((step, could)) = shape.find_missing(path) {
                let problem = format!("names {root}.{}, and there is no {step}", path.join("."));
                return Err(self.wrong(&problem, &format!("use one of {could}")));
            }
        }
        Ok(())
    }

    fn wrong(&self, problem: &str, fix: &str) -> FieldError {
        ValueError::new(&self.text, problem, fix).in_field(&*self.at)
    }

    /// Whether it uses a variable.
    pub fn names(&self, root: &str) -> bool {
        self.references.iter().any(|reference| reference.root == root)
    }

    /// The value as JSON, of whatever type it has.
    pub fn json(&self, variables: &Variables<'_>) -> Result<Value, Failure> {
        self.read(variables, to_json)
    }

    /// The value as text, to stand between other text.
    pub fn text(&self, variables: &Variables<'_>) -> Result<String, Failure> {
        self.read(variables, to_text)
    }

    /// The value as yes or no.
    pub fn flag(&self, variables: &Variables<'_>) -> Result<bool, Failure> {
        match self.json(variables)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err(Failure::Wrong(self.wrong("is neither true nor false", "compare something"))),
        }
    }

    fn read<T>(
        &self,
        variables: &Variables<'_>,
        form: fn(&Cel) -> Result<T, &'static str>,
    ) -> Result<T, Failure> {
        self.check_inputs(variables)?;
        // Nor is the evaluator ours: a slip of it must not take everybody's databases down.
        let evaluated = catch_unwind(AssertUnwindSafe(|| self.program.execute(&variables.context)));
        let evaluated =
            evaluated.map_err(|_| self.failed("cannot be evaluated", "write it in another way"))?;
        let value = evaluated.map_err(|error| self.explain(&error, variables))?;
        form(&value).map_err(|problem| {
            Failure::Wrong(self.wrong(problem, "turn it into text or a number, with string() or int()"))
        })
    }

    /// Whether what it is given is small enough for what it does with it, and has an order where it needs one.
    fn check_inputs(&self, variables: &Variables<'_>) -> Result<(), Failure> {
        if self.walks.iter().filter_map(|r| variables.find(r)).any(Value::is_object) {
            let (problem, fix) = UNORDERED;
            return Err(self.failed(problem, fix));
        }
        let fits = |size: usize| {
            let made = self.growth.saturating_mul((size + self.text.len()) as u64);
            made <= MADE_MAX && (!self.has_loop || size <= WALKED_MAX)
        };
        if fits(variables.size) {
            return Ok(());
        }
        let named = self.references.iter().filter_map(|r| variables.find(r)).map(size_of).sum();
        match (fits(named), self.has_loop) {
            (true, _) => Ok(()),
            (false, true) => Err(self.failed("walks over more than 8 KiB", "let it see less")),
            (false, false) => Err(self.failed("makes too much of what it is given", "let it see less")),
        }
    }

    fn failed(&self, problem: &str, fix: &str) -> Failure {
        Failure::Wrong(self.wrong(problem, fix))
    }

    /// What it names of those objects of which `is_meant` says yes, for people.
    pub fn outputs(&self, is_meant: &impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        let of_objects = self.references.iter().filter(|r| r.root == "objects");
        let meant = of_objects.filter(|r| r.path.first().is_some_and(|id| is_meant(id)));
        meant.map(|r| format!("objects.{}", r.path.join(".")))
    }

    /// Whether what it lacks is an object that will never be there. One of its fields may have the same name.
    fn lacks_for_good(&self, key: &str, variables: &Variables<'_>) -> bool {
        let is_left_out = variables.left_out.contains(key) && !variables.has_object(key);
        is_left_out && self.outputs(&|id: &str| id == key).next().is_some()
    }

    /// Puts an error into words that hold no value.
    fn explain(&self, error: &ExecutionError, variables: &Variables<'_>) -> Failure {
        let outputs = self.references.iter().filter(|r| OUTPUTS.contains(&r.root.as_str()));
        let outputs: Vec<String> = outputs.map(|r| format!("{}.{}", r.root, r.path.join("."))).collect();
        match error {
            ExecutionError::NoSuchKey(key) if self.lacks_for_good(key, variables) => {
                let problem = format!("asks for objects.{key}, which is left out by its `when`");
                self.failed(&problem, &format!("guard it with has(objects.{key}) ? ... : ..."))
            }
            ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) if !outputs.is_empty() => {
                Failure::Waits(outputs.join(", "))
            }
            ExecutionError::NoSuchKey(key) => {
                let problem = format!("asks for {key}, which is not set");
                Failure::Unset(self.wrong(&problem, "guard it with has(...) ? ... : ..."))
            }
            _ => Failure::Wrong(self.wrong(problem_of(error), "see what each part of it gives")),
        }
    }
}

fn problem_of(error: &ExecutionError) -> &'static str {
    match error {
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "divides by zero",
        ExecutionError::Overflow(..) => "gives a number that is too large",
        ExecutionError::IndexOutOfBounds(_) => "asks for an item that is not in the list",
        ExecutionError::UndeclaredReference(_) => "calls a function that is not known",
        ExecutionError::InvalidArgumentCount { .. } => "gives a function too many arguments or too few",
        ExecutionError::FunctionError { .. } => "gives a function an argument that it does not take",
        _ => "puts values of different types together",
    }
}
