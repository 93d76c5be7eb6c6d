//! The fields of the claim or the resource that a class's templates use, by the paths in their expressions. A class that
//! does not declare a field still offers it if its templates use it. Found by scanning the text, because `template`, which
//! compiles CEL, depends on this module.

use super::template_text::{Piece, split};
use super::types::FieldRule;
use serde_json::Value;
use std::collections::BTreeSet;

/// The variables whose fields count.
const ROOTS: [&str; 3] = ["claim", "resource", PARAMETERS];
const PARAMETERS: &str = "parameters";

/// The paths that expressions name under `claim`, `resource` and `parameters`. Labels and annotations do not count: they
/// do not change what is provisioned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedFields {
    paths: BTreeSet<Vec<String>>,
    /// The paths in expressions that also read parameters.
    beside_parameters: BTreeSet<Vec<String>>,
}

impl UsedFields {
    /// Reads `template` or `templates` as written.
    pub fn read(template: &Value) -> UsedFields {
        let mut used = UsedFields::default();
        used.walk(template);
        used
    }

    /// Whether a template uses a field of the type.
    pub fn has_field(&self, rule: &FieldRule) -> bool {
        self.names(&["claim", "spec", rule.claim]) || self.names(&["resource", "spec", rule.resource])
    }

    /// Whether a template uses a requested quantity by its name.
    pub fn has_amount(&self, name: &str) -> bool {
        self.names(&["claim", "spec", "resources", "requests", name])
            || self.names(&["resource", "spec", "capacity", name])
    }

    /// Whether parameters may determine a quantity: a template reads them, and uses the requested quantity not at all or in
    /// an expression that also reads parameters.
    pub fn may_size_by_parameters(&self, name: &str) -> bool {
        let reads_parameters = self.paths.iter().any(|path| reads_parameters(path));
        let is_beside = |path: &Vec<String>| names_amount(path, name);
        reads_parameters && (!self.has_amount(name) || self.beside_parameters.iter().any(is_beside))
    }

    /// The requested quantities that are used: by name, or all of them if a template uses the whole map.
    pub fn amounts(&self) -> Amounts {
        let mut named = BTreeSet::new();
        for map in [&["claim", "spec", "resources", "requests"][..], &["resource", "spec", "capacity"]] {
            for path in self.paths.iter().filter(|path| path.iter().zip(map).all(|(a, b)| a == b)) {
                match path.get(map.len()) {
                    Some(name) => drop(named.insert(name.clone())),
                    None => return Amounts::All,
                }
            }
        }
        Amounts::Named(named)
    }

    fn names(&self, asked: &[&str]) -> bool {
        self.paths.iter().any(|path| matches(path, asked))
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            // An unfinished expression is an error of the class.
            Value::String(text) => {
                for piece in split(text).unwrap_or_default() {
                    if let Piece::Expression(expression) = piece {
                        self.read_expression(&expression);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str().filter(|_| name == "when") {
                        // `when` is an expression without `${}`.
                        Some(condition) => self.read_expression(condition),
                        None if name == "metadata" => self.walk(&without_labels(value)),
                        None => self.walk(value),
                    }
                }
            }
        }
    }

    fn read_expression(&mut self, expression: &str) {
        let mut one = UsedFields::default();
        one.scan(expression);
        if one.paths.iter().any(|path| reads_parameters(path)) {
            self.beside_parameters.extend(one.paths.iter().cloned());
        }
        self.paths.append(&mut one.paths);
    }

    fn scan(&mut self, expression: &str) {
        let mut rest = expression;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let root = ROOTS.into_iter().find(|root| starts_with_word(rest, root));
            match root.filter(|_| !is_word(before) && before != '.') {
                Some(root) => {
                    let (steps, after) = read_path(&rest[root.len()..]);
                    self.paths.insert(std::iter::once(root.to_owned()).chain(steps).collect());
                    (rest, before) = (after, ' ');
                }
                None if c == '"' || c == '\'' => {
                    let after = after_quoted(rest, c);
                    let name = rest[1..rest.len() - after.len()].trim_end_matches(c);
                    (rest, before) = (self.scan_membership(name, after), ' ');
                }
                None => (rest, before) = (&rest[c.len_utf8()..], c),
            }
        }
    }
}

impl UsedFields {
    /// Reads `in claim.spec` after a quoted name, which names one field and not all of them. Returns the rest.
    fn scan_membership<'a>(&mut self, name: &str, after: &'a str) -> &'a str {
        let map = after.trim_start().strip_prefix("in ").map(str::trim_start);
        let root = |map: &&str| ROOTS.into_iter().find(|root| starts_with_word(map, root));
        let Some((map, root)) = map.and_then(|map| Some((map, root(&map)?))) else { return after };
        let (steps, after) = read_path(&map[root.len()..]);
        let path = std::iter::once(root.to_owned()).chain(steps).chain([name.to_owned()]);
        self.paths.insert(path.collect());
        after
    }
}

/// The requested quantities that templates use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amounts {
    /// Those of these names.
    Named(BTreeSet<String>),
    /// All that the claim requests.
    All,
}

/// Whether one path is a prefix of the other.
fn matches(path: &[String], asked: &[&str]) -> bool {
    path.iter().zip(asked).all(|(step, asked)| step == asked)
}

fn reads_parameters(path: &[String]) -> bool {
    let starts = |with: &[&str]| path.len() >= with.len() && matches(path, with);
    starts(&[PARAMETERS]) || starts(&["claim", "spec", PARAMETERS])
}

fn names_amount(path: &[String], name: &str) -> bool {
    matches(path, &["claim", "spec", "resources", "requests", name])
        || matches(path, &["resource", "spec", "capacity", name])
}

/// Metadata without labels and annotations.
fn without_labels(metadata: &Value) -> Value {
    let mut kept = metadata.clone();
    if let Some(kept) = kept.as_object_mut() {
        kept.remove("labels");
        kept.remove("annotations");
    }
    kept
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|after| !after.starts_with(is_word))
}

/// The rest after a quoted string; empty if the quote does not end.
fn after_quoted(text: &str, quote: char) -> &str {
    let inner = &text[quote.len_utf8()..];
    inner.find(quote).map_or("", |end| &inner[end + quote.len_utf8()..])
}

/// The field names after a variable, `.name` or `["name"]`, and the rest of the text. A computed step ends them.
fn read_path(text: &str) -> (Vec<String>, &str) {
    let (mut steps, mut rest) = (Vec::new(), text);
    loop {
        if let Some(named) = rest.strip_prefix('.') {
            let end = named.find(|c: char| !is_word(c)).unwrap_or(named.len());
            if end == 0 {
                return (steps, rest);
            }
            steps.push(named[..end].to_owned());
            rest = &named[end..];
            continue;
        }
        let quoted = ["[\"", "['"].iter().find_map(|open| rest.strip_prefix(open)).map(|inner| {
            let quote = rest.chars().nth(1).unwrap_or('"');
            (inner, quote)
        });
        match quoted.and_then(|(inner, quote)| inner.split_once(quote)) {
            Some((name, after)) if after.starts_with(']') => {
                steps.push(name.to_owned());
                rest = &after[1..];
            }
            _ => return (steps, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Amounts, UsedFields};
    use crate::model::TypeId;
    use serde_json::json;

    fn fields(used: &UsedFields) -> Vec<&'static str> {
        let rules = &TypeId::RELATIONAL_DATABASE.rules().fields;
        rules.iter().filter(|rule| used.has_field(rule)).map(|rule| rule.resource).collect()
    }

    #[test]
    fn a_field_is_taken_where_an_expression_names_it() {
        for (text, used) in [
            ("${claim.spec.version}", vec!["version"]),
            ("x-${resource.spec.version}-y", vec!["version"]),
            (
                "${\"highly-available\" in claim.spec && claim.spec[\"highly-available\"] ? 3 : 1}",
                vec!["highly-available"],
            ),
            ("${\"engine\" in claim.spec ? 1 : 2}", vec!["engine"]),
            ("${\"a\" in claim.spec.requests ? 1 : 2}", vec!["capabilities"]),
            (
                "${has(claim.spec.priority) && resource.spec['highly-available'] ? 3 : 1}",
                vec!["highly-available"],
            ),
            ("${claim.spec.requests.map(c, c)}", vec!["capabilities"]),
            ("${claim.spec[parameters.field]}", ALL.to_vec()),
            ("${claim}", ALL.to_vec()),
            ("$${claim.spec.version}", vec![]),
            ("claim.spec.version", vec![]),
            ("${\"claim.spec.version\"}", vec![]),
            ("${parameters.claim.spec.version + myclaim.spec.engine}", vec![]),
            ("${claim.metadata.name}", vec![]),
        ] {
            assert_eq!(fields(&UsedFields::read(&json!({"spec": [text]}))), used, "{text}");
        }
        let notes = json!({"metadata": {"labels": {"version": "${claim.spec.version}"},
            "annotations": {"size": "${resource.spec.capacity.storage}"}}, "spec": {}});
        assert_eq!(fields(&UsedFields::read(&notes)), Vec::<&str>::new());
        assert!(!UsedFields::read(&notes).has_amount("storage"));
        let when = json!([{"id": "a", "when": "claim.spec[\"highly-available\"]", "template": {}}]);
        assert_eq!(fields(&UsedFields::read(&when)), ["highly-available"]);
    }

    const ALL: [&str; 5] = ["engine", "version", "highly-available", "capabilities", "zone"];

    #[test]
    fn parameters_can_determine_a_size_unless_only_the_claim_does() {
        for (texts, expected) in [
            (vec!["${parameters.size}"], true),
            (vec!["${claim.spec.parameters.size}"], true),
            (vec!["${resource.spec.capacity.storage}", "${parameters.instances}"], false),
            (vec!["${has(parameters.size) ? parameters.size : resource.spec.capacity.storage}"], true),
            (vec!["${resource.spec.capacity.connections}", "${parameters.size}"], true),
            (vec!["10Gi"], false),
        ] {
            let used = UsedFields::read(&json!({"spec": texts}));
            assert_eq!(used.may_size_by_parameters("storage"), expected, "{texts:?}");
        }
    }

    #[test]
    fn an_amount_is_taken_by_name_or_with_all_others() {
        for (text, used) in [
            ("${resource.spec.capacity.storage}", Some(vec!["storage"])),
            (
                "${quantity(claim.spec.resources.requests[\"storage\"]).asInteger() + {\"a\": 1}[\"a\"]}",
                Some(vec!["storage"]),
            ),
            ("${resource.spec.capacity}", None),
            ("${resource.metadata.name}", Some(vec![])),
        ] {
            let amounts = match UsedFields::read(&json!(text)).amounts() {
                Amounts::Named(names) => Some(names.into_iter().collect::<Vec<_>>()),
                Amounts::All => None,
            };
            let used = used.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(amounts, used, "{text}");
        }
    }
}
