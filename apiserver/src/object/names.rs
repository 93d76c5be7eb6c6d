//! What names, labels and annotations may look like, with the messages of Kubernetes.

const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// How a kind's names are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Subdomain,
    Label,
    Segment,
}

/// What is wrong with a name; a prefix may end with a dash.
pub(crate) fn bad_name(form: Form, name: &str, is_prefix: bool) -> Vec<String> {
    let masked = match is_prefix && name.ends_with('-') && name.len() > 1 {
        true => format!("{}a", &name[..name.len() - 1]),
        false => name.to_owned(),
    };
    match form {
        Form::Subdomain => bad_subdomain(&masked),
        Form::Label => bad_label(&masked),
        Form::Segment => bad_segment(name, is_prefix),
    }
}

pub(crate) fn bad_subdomain(name: &str) -> Vec<String> {
    let mut found = too_long(name, 253);
    if !name.split('.').all(is_label) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                    and must start and end with an alphanumeric character";
        found.push(rule_of(what, SUBDOMAIN, &["example.com"]));
    }
    found
}

pub(crate) fn bad_label(name: &str) -> Vec<String> {
    if name.contains('.') {
        return vec!["must not contain dots".to_owned()];
    }
    let mut found = too_long(name, 63);
    if !is_label(name) {
        let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                    start and end with an alphanumeric character";
        found.push(rule_of(what, LABEL, &["my-name", "123-abc"]));
    }
    found
}

pub(crate) fn bad_label_1035(name: &str) -> Vec<String> {
    let mut found = too_long(name, 63);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        found.push(rule_of(what, LABEL_1035, &["my-name", "abc-123"]));
    }
    found
}

/// What cannot stand in a path.
pub(crate) fn bad_segment(name: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let bad = ["/", "%"].into_iter().filter(|part| name.contains(part));
    bad.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with the key of a label, an annotation or a finalizer.
pub(crate) fn bad_key(key: &str) -> Vec<String> {
    let what = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let parts: Vec<&str> = key.split('/').collect();
    let mut found = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            found.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            found.extend(bad_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            name
        }
        _ => {
            let rule = rule_of(what, KEY, &examples);
            let more = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {more}")];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else {
        found.extend(too_many_bytes(name, 63).into_iter().map(|why| format!("name part {why}")));
    }
    if !is_key(name) {
        found.push(format!("name part {}", rule_of(what, KEY, &examples)));
    }
    found
}

/// What is wrong with the value of a label.
pub(crate) fn bad_label_value(value: &str) -> Vec<String> {
    let mut found = too_many_bytes(value, 63);
    if !value.is_empty() && !is_key(value) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character";
        found.push(rule_of(what, &format!("({KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    found
}

/// What is wrong with a key of a ConfigMap or a Secret.
pub(crate) fn bad_data_key(key: &str) -> Vec<String> {
    let mut found = too_long(key, 253);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(allowed) {
        let what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        found.push(rule_of(what, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match key {
        "." => found.push("must not be '.'".to_owned()),
        ".." => found.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_key(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    let found = (text.len() > max).then(|| format!("must be no more than {max} characters"));
    found.into_iter().collect()
}

/// Messages count the length of label keys and values differently from that of names.
fn too_many_bytes(text: &str, max: usize) -> Vec<String> {
    let found = (text.len() > max).then(|| format!("must be no more than {max} bytes"));
    found.into_iter().collect()
}

fn rule_of(what: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[test]
fn bad_names_are_rule_of() {
    assert!(bad_name(Form::Subdomain, "a.b-c", false).is_empty());
    assert!(bad_name(Form::Subdomain, "prefix-", true).is_empty());
    assert!(!bad_name(Form::Subdomain, "prefix-", false).is_empty());
    assert_eq!(
        bad_label("A"),
        [
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
          end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
          '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ]
    );
    assert_eq!(bad_segment("a%b", false), ["may not contain '%'"]);
    assert!(bad_key("example.com/Name").is_empty());
    assert!(!bad_key("/Name").is_empty());
}
