//! An object with expressions in its values: compiled into a tree, rendered to JSON when its inputs are known. Only values
//! are replaced: keys, apiVersion, kind and namespace are fixed.

use super::expression::{Expression, Failure};
use super::scope::Scope;
use super::variables::Variables;
use crate::model::template_text::{Piece, split};
use crate::model::{FieldError, ValueError};
use serde_json::{Map, Value};

/// Deepest nesting of an object.
const DEPTH_MAX: usize = 64;
/// Maximum size of a rendered object and of each variable: the bytes of its strings plus 8 for each value.
pub(super) const SIZE_MAX: usize = 256 * 1024;

/// A value of a template.
pub(super) enum Node {
    /// A value without expressions.
    Plain(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// A string that is one expression; the result keeps its type.
    Whole(Expression),
    /// A string with expressions and other text.
    Text(Vec<Part>),
}

/// A part of a string.
pub(super) enum Part {
    Literal(String),
    Value(Expression),
}

impl Node {
    /// Compiles a value with the path `at`.
    pub fn compile(value: &Value, at: &str, scope: &Scope) -> Result<Node, FieldError> {
        Node::compile_at(value, at, scope, 0)
    }

    fn compile_at(value: &Value, at: &str, scope: &Scope, depth: usize) -> Result<Node, FieldError> {
        if depth > DEPTH_MAX {
            return Err(ValueError::new("", "is nested too deep", "keep it under 64 levels").in_field(at));
        }
        Ok(match value {
            Value::String(text) => Node::compile_text(text, at, scope)?,
            Value::Array(items) => {
                let item = |(n, item)| Node::compile_at(item, &format!("{at}[{n}]"), scope, depth + 1);
                Node::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?).simplified()
            }
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| {
                    refuse_expression(key, at, "a key")?;
                    Ok((key.clone(), Node::compile_at(value, &join(at, key), scope, depth + 1)?))
                };
                Node::Map(fields.iter().map(field).collect::<Result<_, FieldError>>()?).simplified()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Node::Plain(value.clone()),
        })
    }

    fn compile_text(text: &str, at: &str, scope: &Scope) -> Result<Node, FieldError> {
        let mut pieces = split(text).map_err(|error| error.in_field(at))?;
        match (&mut pieces[..], text) {
            ([Piece::Literal(literal)], _) => Ok(Node::Plain(Value::from(std::mem::take(literal)))),
            ([Piece::Expression(inside)], _) => Ok(Node::Whole(Expression::compile(inside, at, scope)?)),
            _ => {
                let part = |piece| match piece {
                    Piece::Literal(literal) => Ok(Part::Literal(literal)),
                    Piece::Expression(inside) => Ok(Part::Value(Expression::compile(&inside, at, scope)?)),
                };
                Ok(Node::Text(pieces.into_iter().map(part).collect::<Result<_, FieldError>>()?))
            }
        }
    }

    /// Turns a list or map without expressions into a plain value.
    fn simplified(self) -> Node {
        let plain = |node: &Node| matches!(node, Node::Plain(_));
        let value = |node: Node| match node {
            Node::Plain(value) => value,
            Node::List(_) | Node::Map(_) | Node::Whole(_) | Node::Text(_) => Value::Null,
        };
        match self {
            Node::List(items) if items.iter().all(plain) => {
                Node::Plain(items.into_iter().map(value).collect())
            }
            Node::Map(fields) if fields.iter().all(|(_, node)| plain(node)) => {
                Node::Plain(Value::Object(fields.into_iter().map(|(key, node)| (key, value(node))).collect()))
            }
            other => other,
        }
    }

    /// All its expressions.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Node::Plain(_) => Vec::new(),
            Node::List(items) => items.iter().flat_map(Node::expressions).collect(),
            Node::Map(fields) => fields.iter().flat_map(|(_, node)| node.expressions()).collect(),
            Node::Whole(expression) => vec![expression],
            Node::Text(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Value(expression) => Some(expression),
                    Part::Literal(_) => None,
                })
                .collect(),
        }
    }

    /// The value with every expression replaced.
    pub fn render(&self, variables: &Variables<'_>, at: &str) -> Result<Value, Failure> {
        let value = self.fill(variables)?;
        if size_of(&value) > SIZE_MAX {
            let error = ValueError::new("", "is larger than 256 KiB when rendered", "make it smaller");
            return Err(Failure::Wrong(error.in_field(at)));
        }
        Ok(value)
    }

    fn fill(&self, variables: &Variables<'_>) -> Result<Value, Failure> {
        Ok(match self {
            Node::Plain(value) => value.clone(),
            Node::List(items) => {
                Value::Array(items.iter().map(|item| item.fill(variables)).collect::<Result<_, _>>()?)
            }
            Node::Map(fields) => {
                let field = |(key, node): &(String, Node)| Ok((key.clone(), node.fill(variables)?));
                Value::Object(fields.iter().map(field).collect::<Result<Map<_, _>, Failure>>()?)
            }
            Node::Whole(expression) => expression.json(variables)?,
            Node::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Literal(literal) => text.push_str(literal),
                        Part::Value(expression) => text.push_str(&expression.text(variables)?),
                    }
                }
                Value::from(text)
            }
        })
    }
}

/// Refuses an expression where none is allowed.
pub(super) fn refuse_expression(text: &str, at: &str, what: &str) -> Result<(), FieldError> {
    match text.contains("${") {
        true => {
            let problem = format!("has an expression in {what}");
            Err(ValueError::new(text, problem, "write a fixed value: only values can be expressions")
                .in_field(at))
        }
        false => Ok(()),
    }
}

pub(super) fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

/// The size of a value.
pub(super) fn size_of(value: &Value) -> usize {
    const EACH: usize = 8;
    EACH + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + size_of(value)).sum(),
    }
}
