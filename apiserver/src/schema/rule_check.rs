//! Checks a rule before it is accepted: whether it can be read, whether it names fields that its schema has, whether
//! it says yes or no, and whether it could run for ever. No type checker: what it cannot decide it accepts.

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// Loops within loops: each multiplies the cost by the length of what it walks.
const LOOPS_MAX: usize = 3;
/// What gives anything but yes or no.
const NUMBERS: [&str; 6] = ["_+_", "_-_", "_*_", "_/_", "_%_", "-_"];

/// What is wrong with a rule at a place of a schema.
pub(crate) fn find_fault(rule: &str, schema: &Value) -> Option<String> {
    let program = match Program::compile(rule) {
        Ok(program) => program,
        Err(errors) => return Some(format!("compilation failed: {errors}")),
    };
    let tree = program.expression();
    if loops(tree) > LOOPS_MAX {
        return Some(format!(
            "estimated rule cost exceeds budget: more than {LOOPS_MAX} loops within each other"
        ));
    }
    if let Some(field) = unknown_field(tree, schema) {
        return Some(format!("compilation failed: undefined field '{field}'"));
    }
    let kind = value_of(tree, schema).and_then(|found| found.get("type")).and_then(Value::as_str);
    let odd = match &tree.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => false,
        Expr::Literal(_) | Expr::List(_) | Expr::Map(_) => true,
        Expr::Call(call) => NUMBERS.contains(&call.func_name.as_str()) || call.func_name == "size",
        _ => kind.is_some_and(|kind| kind != "boolean"),
    };
    odd.then(|| "compilation failed: must evaluate to a bool".to_owned())
}

/// The schema of what `self.a.b` leads to, where that is known.
fn value_of<'a>(tree: &IdedExpr, schema: &'a Value) -> Option<&'a Value> {
    match &tree.expr {
        Expr::Ident(name) if name == "self" || name == "oldSelf" => Some(schema),
        Expr::Select(select) if !select.test => {
            let holder = value_of(&select.operand, schema)?;
            holder.get("properties")?.get(&select.field)
        }
        _ => None,
    }
}

/// The first field that a closed object does not have.
fn unknown_field(tree: &IdedExpr, schema: &Value) -> Option<String> {
    if let Expr::Select(select) = &tree.expr
        && let Some(holder) = value_of(&select.operand, schema)
        && is_closed(holder)
        && !select.field.contains("__")
        && holder.get("properties").and_then(|all| all.get(&select.field)).is_none()
    {
        return Some(select.field.clone());
    }
    children(tree).into_iter().find_map(|child| unknown_field(child, schema))
}

fn is_closed(schema: &Value) -> bool {
    let open = schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool).unwrap_or(false)
        || schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool).unwrap_or(false);
    schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("properties").is_some()
        && schema.get("additionalProperties").is_none()
        && !open
        // The root has more than its schema says.
        && schema.pointer("/properties/spec").is_none()
        && schema.pointer("/properties/metadata").is_none()
}

fn loops(tree: &IdedExpr) -> usize {
    let own = usize::from(matches!(tree.expr, Expr::Comprehension(_)));
    own + children(tree).into_iter().map(loops).max().unwrap_or(0)
}

fn children(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(walk) => {
            vec![&walk.iter_range, &walk.accu_init, &walk.loop_cond, &walk.loop_step, &walk.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        _ => Vec::new(),
    }
}

#[test]
fn faults_are_found_and_sound_rules_pass() {
    let schema = serde_json::json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    for (rule, sound) in [
        ("self.size > 1", true),
        ("self.on", true),
        ("!has(self.size) || self.size >= oldSelf.size", true),
        ("self.list.all(x, x.name != '')", true),
        ("has(self.free.anything)", true),
        ("self.size >", false),
        ("self.nowhere > 1", false),
        ("has(self.nowhere)", false),
        ("self.size + 1", false),
        ("self.size", false),
        ("'yes'", false),
        ("self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, true))))", false),
    ] {
        let found = find_fault(rule, &schema);
        assert_eq!(found.is_none(), sound, "{rule}: {found:?}");
    }
}
