//! The paths of printer columns: fields, indices, `[*]`, quoted names and filters on equality. Paths beyond that find
//! nothing.

use serde_json::Value;

/// Everything that a path leads to.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        let Some((step, after)) = step(rest) else { return Vec::new() };
        found = found.into_iter().flat_map(|value| step.take(value)).collect();
        rest = after;
    }
    found
}

enum Step<'a> {
    Field(String),
    Index(i64),
    All,
    Equal { field: &'a str, value: &'a str },
}

impl Step<'_> {
    fn take<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Step::Field(name) => value.get(name).into_iter().collect(),
            Step::Index(at) => {
                let Some(items) = value.as_array() else { return Vec::new() };
                let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = if *at < 0 { count + at } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            Step::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Step::Equal { field, value: wanted } => {
                let items = value.as_array().into_iter().flatten();
                let matches = |item: &&Value| {
                    let found = field.split('.').try_fold(*item, |value, part| value.get(part));
                    found.is_some_and(|found| match found.as_str() {
                        Some(text) => text == *wanted,
                        None => found.to_string().as_str() == *wanted,
                    })
                };
                items.filter(matches).collect()
            }
        }
    }
}

fn step(text: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let end = rest.find(']')?;
        let (inner, after) = (&rest[..end], &rest[end + 1..]);
        return Some((bracket(inner)?, after));
    }
    let rest = text.strip_prefix('.')?;
    let mut name = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            // A dot in a name is escaped.
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => return Some((named(name), &rest[at..])),
            c => name.push(c),
        }
    }
    Some((named(name), ""))
}

fn named(name: String) -> Step<'static> {
    if name == "*" { Step::All } else { Step::Field(name) }
}

fn bracket(inner: &str) -> Option<Step<'_>> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    let quoted = |text: &'_ str| -> Option<String> {
        let text = text.trim();
        let inside = text
            .strip_prefix('\'')?
            .strip_suffix('\'')
            .or_else(|| text.strip_prefix('"')?.strip_suffix('"'))?;
        Some(inside.to_owned())
    };
    if let Some(filter) = inner.strip_prefix("?(@.").and_then(|rest| rest.strip_suffix(')')) {
        let (field, value) = filter.split_once("==")?;
        let value = value.trim().trim_matches(['"', '\'']);
        return Some(Step::Equal { field: field.trim(), value });
    }
    if let Some(name) = quoted(inner) {
        return Some(Step::Field(name));
    }
    inner.parse().ok().map(Step::Index)
}

#[test]
fn paths_lead_where_they_say() {
    use serde_json::json;
    let object = json!({
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Bound", "status": "False"}]},
        "metadata": {"labels": {"a.b/c": "x"}},
        "list": [1, 2, 3],
    });
    for (path, expected) in [
        (".status.conditions[?(@.type==\"Ready\")].status", "\"True\""),
        (".status.conditions[?(@.type=='Bound')].status", "\"False\""),
        (".metadata.labels.a\\.b/c", "\"x\""),
        (".metadata.labels['a.b/c']", "\"x\""),
        (".list[1]", "2"),
        (".list[-1]", "3"),
        (".list[*]", "1 2 3"),
        (".none.at.all", ""),
        ("nonsense", ""),
        (".list[", ""),
    ] {
        let found: Vec<_> = find(&object, path).into_iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}
