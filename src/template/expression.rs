//! One expression: parsed, bounded, its references known and checked. Evaluating it cannot reach anything but the
//! variables it is given. Errors never repeat a value: it may be a password.

use super::scope::Scope;
use super::value::{to_json, to_text};
use crate::model::{FieldError, ValueError};
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest text of an expression.
const CHARS_MAX: usize = 4_096;
/// Most steps in an expression.
const NODES_MAX: usize = 1_000;
/// How deep `map`, `filter`, `all`, `exists` may stand in one another. CEL has no limit on time, each level
/// multiplies by the length of a list, and a claim's author may write a long one.
const LOOPS_MAX: usize = 1;

/// What is told by others, and may yet be told where it is not.
const OUTPUTS: [&str; 2] = ["objects", "secret"];

/// A way from a variable into its fields: `claim.spec.version`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub root: String,
    pub path: Vec<String>,
}

/// A compiled expression.
pub(super) struct Expression {
    text: Arc<str>,
    /// Where it stands, for errors.
    at: Arc<str>,
    program: Program,
    pub references: BTreeSet<Reference>,
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
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone()).unwrap_or_default();
            wrong(&format!("cannot be read ({first})"), "write it as CEL, such as claim.spec.engine")
        })?;
        let mut survey = Survey::default();
        survey.visit(program.expression(), 0);
        if survey.nodes > NODES_MAX {
            return Err(wrong("has too many steps", "split it over several values"));
        }
        if survey.loops > LOOPS_MAX {
            return Err(wrong("has a loop in a loop", "let no map, filter, all or exists stand in another"));
        }
        let expression =
            Expression { text: text.into(), at: at.into(), program, references: survey.references };
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
    pub fn json(&self, context: &Context<'_>) -> Result<Value, Failure> {
        self.read(context, to_json)
    }

    /// The value as text, to stand between other text.
    pub fn text(&self, context: &Context<'_>) -> Result<String, Failure> {
        self.read(context, to_text)
    }

    /// The value as yes or no.
    pub fn flag(&self, context: &Context<'_>) -> Result<bool, Failure> {
        match self.json(context)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err(Failure::Wrong(self.wrong("is neither true nor false", "compare something"))),
        }
    }

    fn read<T>(
        &self,
        context: &Context<'_>,
        form: fn(&Cel) -> Result<T, &'static str>,
    ) -> Result<T, Failure> {
        let value = self.program.execute(context).map_err(|error| self.explain(&error))?;
        form(&value).map_err(|problem| {
            Failure::Wrong(self.wrong(problem, "turn it into text or a number, with string() or int()"))
        })
    }

    /// Puts an error into words that hold no value.
    fn explain(&self, error: &ExecutionError) -> Failure {
        let outputs = self.references.iter().filter(|r| OUTPUTS.contains(&r.root.as_str()));
        let outputs: Vec<String> = outputs.map(|r| format!("{}.{}", r.root, r.path.join("."))).collect();
        match error {
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

/// A walk through an expression.
#[derive(Default)]
struct Survey {
    references: BTreeSet<Reference>,
    nodes: usize,
    loops: usize,
    /// Variables of the loops around.
    bound: Vec<String>,
}

impl Survey {
    fn visit(&mut self, node: &IdedExpr, loops: usize) {
        self.nodes += 1;
        self.loops = self.loops.max(loops);
        if let Some((root, path)) = reference(&node.expr) {
            if !self.bound.contains(&root) {
                self.references.insert(Reference { root, path });
            }
            return;
        }
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select(select) => self.visit(&select.operand, loops),
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.visit(target, loops));
                call.args.iter().for_each(|argument| self.visit(argument, loops));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element, loops)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.visit_entry(&entry.expr, loops)),
            Expr::Struct(made) => made.entries.iter().for_each(|entry| self.visit_entry(&entry.expr, loops)),
            Expr::Comprehension(each) => {
                self.visit(&each.iter_range, loops);
                self.visit(&each.accu_init, loops);
                let names = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
                let before = self.bound.len();
                self.bound.extend(names.into_iter().flatten().cloned());
                for inner in [&each.loop_cond, &each.loop_step, &each.result] {
                    self.visit(inner, loops + 1);
                }
                self.bound.truncate(before);
            }
        }
    }

    fn visit_entry(&mut self, entry: &EntryExpr, loops: usize) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value, loops),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, loops);
                self.visit(&entry.value, loops);
            }
        }
    }
}

/// A variable and the fields that are taken of it, where an expression is nothing else.
fn reference(expr: &Expr) -> Option<(String, Vec<String>)> {
    match expr {
        Expr::Ident(name) => Some((name.clone(), Vec::new())),
        Expr::Select(select) => {
            let (root, mut path) = reference(&select.operand.expr)?;
            // `has(a.b)` asks whether b is there; that a can have one at all is still checked.
            path.push(select.field.clone());
            Some((root, path))
        }
        Expr::Call(call) if call.func_name == "_[_]" => match &call.args[..] {
            [operand, index] => match &index.expr {
                Expr::Literal(LiteralValue::String(field)) => {
                    let (root, mut path) = reference(&operand.expr)?;
                    path.push(field.inner().to_owned());
                    Some((root, path))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
