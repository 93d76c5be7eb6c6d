//! Static analysis of an expression before any evaluation: the fields that it names, the maximum size of its result, and
//! constructs that the evaluator does not support. CEL itself limits neither time nor memory, and claims supply some of the
//! values that expressions process.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use std::collections::BTreeSet;

/// Maximum nesting of brackets and conditionals, because the parser recurses for each.
const DEPTH_MAX: usize = 32;
/// Functions whose result does not depend on the order of a list, which may come from the keys of a map.
const ORDERLESS: [&str; 5] = ["sort", "min", "max", "sum", "size"];

/// A variable with a path into its fields: `claim.spec.version`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub root: String,
    pub path: Vec<String>,
}

/// The analysis of an expression.
#[derive(Default)]
pub(super) struct CostCheck {
    pub references: BTreeSet<Reference>,
    /// The number of its nodes.
    pub nodes: usize,
    /// The nesting of `map`, `filter`, `all` and `exists`.
    pub loops: usize,
    /// The maximum ratio of the size of its result to that of its inputs: nodes add up, loops multiply.
    pub growth: u64,
    /// The references that it iterates over to create a list.
    pub walks: BTreeSet<Reference>,
    /// An unsupported construct, and how to avoid it.
    pub refused: Option<(&'static str, &'static str)>,
    /// The variables of enclosing loops.
    bound: Vec<String>,
}

/// Whether brackets or conditionals are nested too deep to be parsed.
pub(super) fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut deepest, mut choices, mut quote, mut escaped) = (0_usize, 0, 0, None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '?') => choices += 1,
            (None, _) => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > DEPTH_MAX || choices > DEPTH_MAX
}

impl CostCheck {
    /// Analyses an expression.
    pub fn of(expression: &IdedExpr) -> CostCheck {
        let mut check = CostCheck::default();
        check.growth = check.visit(expression, 0, false);
        check
    }

    fn visit(&mut self, node: &IdedExpr, loops: usize, orderless: bool) -> u64 {
        self.nodes += 1;
        self.loops = self.loops.max(loops);
        if let Some(reference) = reference(&node.expr) {
            if !self.bound.contains(&reference.root) {
                self.references.insert(reference);
            }
            return 1;
        }
        match &node.expr {
            Expr::Literal(_) | Expr::Ident(_) => 1,
            Expr::Select(select) => self.visit(&select.operand, loops, false),
            Expr::Call(call) => self.visit_call(call, loops),
            Expr::List(list) => self.visit_all(&list.elements, loops),
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| self.visit_entry(&entry.expr, loops));
                entries.fold(1, u64::saturating_add)
            }
            Expr::Comprehension(each) => self.visit_loop(each, loops, orderless),
            Expr::Struct(_) | Expr::Unspecified => {
                self.refused =
                    Some(("constructs an object of a type, which is not supported", "write a map: {'a': 1}"));
                1
            }
        }
    }

    fn visit_all(&mut self, nodes: &[IdedExpr], loops: usize) -> u64 {
        nodes.iter().map(|node| self.visit(node, loops, false)).fold(1, u64::saturating_add)
    }

    fn visit_call(&mut self, call: &CallExpr, loops: usize) -> u64 {
        let orderless = ORDERLESS.contains(&call.func_name.as_str());
        if call.func_name == "format" {
            self.check_format(call);
        }
        let on = call.target.iter().map(|target| &**target).chain(&call.args);
        on.map(|node| self.visit(node, loops, orderless)).fold(1, u64::saturating_add)
    }

    /// The growth of a loop is that of its step, multiplied by that of its range.
    fn visit_loop(&mut self, each: &ComprehensionExpr, loops: usize, orderless: bool) -> u64 {
        let makes_list = matches!(&each.accu_init.expr, Expr::List(list) if list.elements.is_empty());
        if makes_list && !orderless {
            match (reference(&each.iter_range.expr), &each.iter_range.expr) {
                (Some(walked), _) if !self.bound.contains(&walked.root) => drop(self.walks.insert(walked)),
                (_, Expr::Map(_)) => self.refused = Some(UNORDERED),
                _ => {}
            }
        }
        let start = self.visit(&each.accu_init, loops, false);
        let walked = self.visit(&each.iter_range, loops, orderless).saturating_add(start);
        let names = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
        let before = self.bound.len();
        self.bound.extend(names.into_iter().flatten().cloned());
        let inner = [&each.loop_cond, &each.loop_step, &each.result];
        let inner = inner.into_iter().map(|inner| self.visit(inner, loops + 1, false));
        let step = inner.fold(0, u64::saturating_add);
        self.bound.truncate(before);
        walked.saturating_mul(step)
    }

    fn visit_entry(&mut self, entry: &EntryExpr, loops: usize) -> u64 {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value, loops, false),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, loops, false).saturating_add(self.visit(&entry.value, loops, false))
            }
        }
    }

    /// Refuses formats with many digits, which the evaluator would produce.
    fn check_format(&mut self, call: &CallExpr) {
        let text = match call.target.as_ref().map(|target| &target.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) => text.inner(),
            _ => {
                self.refused = Some(("uses a computed format string", "write the format as a literal"));
                return;
            }
        };
        let digits = |piece: &str| piece.chars().take_while(char::is_ascii_digit).count();
        if text.split("%.").skip(1).any(|piece| digits(piece) > 2) {
            self.refused = Some(("formats a number with more than 99 digits", "use fewer"));
        }
    }
}

/// The keys of a map have no order: an object rendered from a list of them would change with every evaluation.
pub(super) const UNORDERED: (&str, &str) =
    ("creates a list from a map, whose keys have no order", "append .sort()");

/// The reference of an expression that is a variable with a path.
fn reference(expr: &Expr) -> Option<Reference> {
    match expr {
        Expr::Ident(name) => Some(Reference { root: name.clone(), path: Vec::new() }),
        Expr::Select(select) => {
            let mut reference = reference(&select.operand.expr)?;
            // `has(a.b)` tests whether b exists; that a can have a field b is still checked.
            reference.path.push(select.field.clone());
            Some(reference)
        }
        Expr::Call(call) if call.func_name == "_[_]" => match &call.args[..] {
            [operand, index] => match &index.expr {
                Expr::Literal(LiteralValue::String(field)) => {
                    let mut reference = reference(&operand.expr)?;
                    reference.path.push(field.inner().to_owned());
                    Some(reference)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
