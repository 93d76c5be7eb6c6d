//! Field selectors: `metadata.name=a,status.phase!=b`. Which fields may be named is the resource's to say.

use serde_json::Value;

/// All requirements must hold: path, value, and whether they are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<(String, String, bool)>);

impl FieldSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<FieldSelector, String> {
        let mut all = Vec::new();
        for term in terms(text).into_iter().filter(|term| !term.is_empty()) {
            let (path, value, equal) = split(&term)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
            all.push((path.to_owned(), unescape(value)?, equal));
        }
        Ok(FieldSelector(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields that it names.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, ..)| path.as_str())
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(path, value, equal)| (look(object, path) == *value) == *equal)
    }
}

/// A field as text; what is absent is empty.
fn look(object: &Value, path: &str) -> String {
    // Events name their source by its component.
    let path = if path == "source" { "source.component" } else { path };
    let found = path.split('.').try_fold(object, |value, part| value.get(part));
    match found {
        None | Some(Value::Null) => default(path).to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn default(path: &str) -> &'static str {
    match path {
        "spec.hostNetwork" | "spec.unschedulable" => "false",
        _ => "",
    }
}

/// Terms between commas that are not escaped.
fn terms(text: &str) -> Vec<String> {
    let (mut terms, mut term, mut escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match (escaped, c) {
            (false, ',') => terms.push(std::mem::take(&mut term)),
            (escape, c) => {
                term.push(c);
                escaped = !escape && c == '\\';
            }
        }
    }
    terms.push(term);
    terms
}

fn split(term: &str) -> Option<(&str, &str, bool)> {
    for (at, _) in term.char_indices() {
        let rest = &term[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..at], value, equal));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut made = String::new();
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(c @ ('\\' | ',' | '=')) => made.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: unterminated escape sequence".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            c => made.push(c),
        }
    }
    Ok(made)
}

#[test]
fn fields_match_as_written() {
    use serde_json::json;
    let object = json!({"metadata": {"name": "a"}, "spec": {"n": 1}});
    for (text, expected) in [
        ("metadata.name=a", true),
        ("metadata.name==a", true),
        ("metadata.name!=a", false),
        ("spec.n=1,metadata.name=a", true),
        ("spec.none=", true),
        ("spec.none!=x", true),
        ("", true),
    ] {
        assert_eq!(FieldSelector::read(text).unwrap().matches(&object), expected, "{text}");
    }
    assert!(FieldSelector::read("nonsense").is_err());
    assert_eq!(FieldSelector::read("a=b\\,c").unwrap().0[0].1, "b,c");
}
