//! A compiled expression: parsed, limited, its references checked. Its evaluation reads only its variables. Errors never
//! contain a value, which may be a password.

use super::body::size_of;
use super::cost_check::{CostCheck, Reference, UNORDERED, is_too_deep};
use super::scope::Scope;
use super::value::{to_json, to_text};
use super::variables::Variables;
use crate::model::{FieldError, ValueError};
use kube_cel::cel::{ExecutionError, Program, Value as Cel};
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Maximum length of an expression.
const CHARS_MAX: usize = 4_096;
/// Maximum number of nodes of an expression.
const NODES_MAX: usize = 1_000;
/// Maximum nesting of `map`, `filter`, `all` and `exists`. CEL does not limit time, each level multiplies by the length of a
/// list, and a claim can contain a long one.
const LOOPS_MAX: usize = 1;
/// Maximum ratio of the size of a result to that of its inputs, because loops in sequence multiply too.
const GROWTH_MAX: u64 = 4_096;
/// Maximum size that a result can have, by the size of the values that the expression names.
const MADE_MAX: u64 = 16 * 1024 * 1024;
/// Maximum size of the values that an expression with a loop names: the evaluator copies the result for each item.
const WALKED_MAX: usize = 8 * 1024;

/// Variables with outputs of other objects, which may appear later.
const OUTPUTS: [&str; 3] = ["object", "objects", "secret"];

/// A compiled expression.
pub(super) struct Expression {
    text: Arc<str>,
    /// Its path, for errors.
    at: Arc<str>,
    program: Program,
    pub references: BTreeSet<Reference>,
    /// The references that it iterates over to create a list.
    walks: BTreeSet<Reference>,
    growth: u64,
    has_loop: bool,
}

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// Outputs of other objects do not exist yet.
    Waits(String),
    /// An input lacks the field. That is an error when rendering, and not ready yet for `ready`.
    Unset(FieldError),
    /// An error that waiting does not fix.
    Wrong(FieldError),
}

impl Expression {
    /// Compiles an expression with the path `at` over the names of `scope`.
    pub fn compile(text: &str, at: &str, scope: &Scope) -> Result<Expression, FieldError> {
        let wrong = |problem: &str, fix: &str| ValueError::new(text, problem, fix).in_field(at);
        if text.len() > CHARS_MAX {
            return Err(wrong("is too long", "keep it under 4096 characters"));
        }
        if is_too_deep(text) {
            return Err(wrong("is nested too deep", "keep it under 32 levels of brackets and choices"));
        }
        // If the parser, a dependency, panics on a text, only this expression fails.
        let parsed = catch_unwind(|| Program::compile(text));
        let parsed =
            parsed.map_err(|_| wrong("cannot be parsed", "write it as CEL, such as claim.spec.engine"))?;
        let program = parsed.map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone()).unwrap_or_default();
            wrong(&format!("cannot be parsed ({first})"), "write it as CEL, such as claim.spec.engine")
        })?;
        let check = CostCheck::of(program.expression());
        if let Some((problem, fix)) = check.refused {
            return Err(wrong(problem, fix));
        }
        if check.nodes > NODES_MAX {
            return Err(wrong("has too many steps", "split it over several values"));
        }
        if check.loops > LOOPS_MAX {
            return Err(wrong("has nested loops", "do not nest map, filter, all and exists"));
        }
        if check.growth > GROWTH_MAX {
            return Err(wrong("has too many loops in sequence", "split it over several values"));
        }
        let CostCheck { references, walks, growth, loops, .. } = check;
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

    /// The value as text, for strings with several expressions.
    pub fn text(&self, variables: &Variables<'_>) -> Result<String, Failure> {
        self.read(variables, to_text)
    }

    /// The value as a boolean.
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
        // If the evaluator, a dependency, panics, only this expression fails.
        let evaluated = catch_unwind(AssertUnwindSafe(|| self.program.execute(&variables.context)));
        let evaluated =
            evaluated.map_err(|_| self.failed("cannot be evaluated", "write it in another way"))?;
        let value = evaluated.map_err(|error| self.explain(&error, variables))?;
        form(&value)
            .map_err(|problem| Failure::Wrong(self.wrong(problem, "convert it with string() or int()")))
    }

    /// Checks that the inputs are small enough for the expression, and lists where it depends on order.
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
            (false, true) => Err(self.failed("iterates over more than 8 KiB", "reduce its inputs")),
            (false, false) => Err(self.failed("can produce a too large result", "reduce its inputs")),
        }
    }

    fn failed(&self, problem: &str, fix: &str) -> Failure {
        Failure::Wrong(self.wrong(problem, fix))
    }

    /// The references to objects whose id passes `is_meant`, as text.
    pub fn outputs(&self, is_meant: &impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        let of_objects = self.references.iter().filter(|r| r.root == "objects");
        let meant = of_objects.filter(|r| r.path.first().is_some_and(|id| is_meant(id)));
        meant.map(|r| format!("objects.{}", r.path.join(".")))
    }

    /// Whether the missing key is an object that will never exist, and not a field of the same name.
    fn lacks_for_good(&self, key: &str, variables: &Variables<'_>) -> bool {
        let is_left_out = variables.left_out.contains(key) && !variables.has_object(key);
        is_left_out && self.outputs(&|id: &str| id == key).next().is_some()
    }

    /// Explains an error without any value.
    fn explain(&self, error: &ExecutionError, variables: &Variables<'_>) -> Failure {
        let outputs = self.references.iter().filter(|r| OUTPUTS.contains(&r.root.as_str()));
        let outputs: Vec<String> = outputs.map(|r| format!("{}.{}", r.root, r.path.join("."))).collect();
        match error {
            ExecutionError::NoSuchKey(key) if self.lacks_for_good(key, variables) => {
                let problem = format!("uses objects.{key}, which its `when` leaves out");
                self.failed(&problem, &format!("guard it with has(objects.{key}) ? ... : ..."))
            }
            ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) if !outputs.is_empty() => {
                Failure::Waits(outputs.join(", "))
            }
            ExecutionError::NoSuchKey(key) => {
                let problem = format!("uses {key}, which is not set");
                Failure::Unset(self.wrong(&problem, "guard it with has(...) ? ... : ..."))
            }
            _ => Failure::Wrong(self.wrong(problem_of(error), "check the value and type of each operand")),
        }
    }
}

fn problem_of(error: &ExecutionError) -> &'static str {
    match error {
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "divides by zero",
        ExecutionError::Overflow(..) => "returns a number that is too large",
        ExecutionError::IndexOutOfBounds(_) => "uses an item that is not in the list",
        ExecutionError::UndeclaredReference(_) => "calls an unknown function",
        ExecutionError::InvalidArgumentCount { .. } => "calls a function with the wrong number of arguments",
        ExecutionError::FunctionError { .. } => "calls a function with an argument of the wrong type",
        _ => "combines values of different types",
    }
}
