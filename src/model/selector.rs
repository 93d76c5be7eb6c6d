//! A label selector with Kubernetes' meaning, in a canonical form: two ways to write one choice are equal.
//! Where the labels come from is the caller's business.

use super::{FieldError, ValueError};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Requirements on labels, all of which must hold; without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Arc<str>,
    /// How its value is judged.
    pub operator: Operator,
    /// The values it is held against: sorted, each once; empty for the two that ask only for the key.
    pub values: Vec<Arc<str>>,
}

/// How a requirement judges a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The label is there, with one of the values.
    In,
    /// The label is absent, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl Selector {
    /// Reads `{matchLabels: {}, matchExpressions: []}`; `null` is the empty selector.
    ///
    /// # Errors
    /// The first thing that is not as Kubernetes has it, with its path inside the selector
    /// (`matchExpressions[0].operator`; empty when the value is no map at all).
    pub fn from_json(value: &Value) -> Result<Selector, FieldError> {
        let Some(map) = optional_map(value, "")? else { return Ok(Selector::default()) };
        refuse_unknown(map, &["matchLabels", "matchExpressions"], "", "matchLabels and matchExpressions")?;
        let mut requirements = read_labels(map.get("matchLabels").unwrap_or(&Value::Null))?;
        requirements.extend(read_expressions(map.get("matchExpressions").unwrap_or(&Value::Null))?);
        requirements.sort();
        requirements.dedup();
        Ok(Selector { requirements })
    }

    /// Whether labels, looked up by key, meet every requirement.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(get(&requirement.key)))
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The requirements that pass `keep`, as a selector of their own.
    pub fn kept(&self, keep: impl Fn(&Requirement) -> bool) -> Selector {
        Selector { requirements: self.requirements.iter().filter(|r| keep(r)).cloned().collect() }
    }

    /// Whether it matches everything because it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    /// Whether it lists the values that pass, so that they can be looked up.
    pub fn lists_values(&self) -> bool {
        self.operator == Operator::In
    }

    /// Whether a label's value, None where the label is absent, meets this requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (Operator::In, Some(value)) => self.lists(value),
            (Operator::In, None) => false,
            (Operator::NotIn, Some(value)) => !self.lists(value),
            (Operator::NotIn, None) => true,
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
        }
    }

    fn lists(&self, value: &str) -> bool {
        self.values.binary_search_by(|listed| (**listed).cmp(value)).is_ok()
    }

    fn new(key: &str, operator: Operator, mut values: Vec<Arc<str>>) -> Requirement {
        values.sort();
        values.dedup();
        Requirement { key: key.into(), operator, values }
    }
}

impl Operator {
    const ALL: [Operator; 4] = [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];

    /// The name as in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
        }
    }

    /// Whether the operator holds the label against values.
    pub fn takes_values(self) -> bool {
        match self {
            Operator::In | Operator::NotIn => true,
            Operator::Exists | Operator::DoesNotExist => false,
        }
    }
}

fn read_labels(value: &Value) -> Result<Vec<Requirement>, FieldError> {
    let Some(labels) = optional_map(value, "matchLabels")? else { return Ok(Vec::new()) };
    let read = labels.iter().map(|(key, value)| {
        let field = || format!("matchLabels.{key}");
        require_key(key, field)?;
        Ok(Requirement::new(key, Operator::In, vec![require_text(value, field)?.into()]))
    });
    read.collect()
}

fn read_expressions(value: &Value) -> Result<Vec<Requirement>, FieldError> {
    let expressions =
        optional_list(value, "matchExpressions", "[{key: tier, operator: In, values: [gold]}]")?;
    let read = expressions.iter().enumerate();
    read.map(|(at, value)| read_expression(value, &format!("matchExpressions[{at}]"))).collect()
}

fn read_expression(value: &Value, path: &str) -> Result<Requirement, FieldError> {
    let empty = Map::new();
    let map = optional_map(value, path)?.unwrap_or(&empty);
    refuse_unknown(map, &["key", "operator", "values"], path, "key, operator and values")?;
    let text = |name: &str| require_text(map.get(name).unwrap_or(&Value::Null), || format!("{path}.{name}"));

    let key = text("key")?;
    require_key(key, || format!("{path}.key"))?;
    let operator = require_operator(text("operator")?, || format!("{path}.operator"))?;
    let values = read_values(map.get("values").unwrap_or(&Value::Null), &format!("{path}.values"))?;
    require_arity(operator, &values).map_err(|error| error.in_field(format!("{path}.values")))?;
    Ok(Requirement::new(key, operator, values))
}

fn read_values(value: &Value, path: &str) -> Result<Vec<Arc<str>>, FieldError> {
    let read = optional_list(value, path, "[gold, silver]")?.iter().enumerate();
    read.map(|(at, value)| Ok(require_text(value, || format!("{path}[{at}]"))?.into())).collect()
}

fn require_operator(text: &str, field: impl Fn() -> String) -> Result<Operator, FieldError> {
    let found = Operator::ALL.into_iter().find(|operator| operator.name() == text);
    found.ok_or_else(|| {
        let fix = "write In, NotIn, Exists or DoesNotExist";
        ValueError::new(text, "is not an operator", fix).in_field(field())
    })
}

fn require_arity(operator: Operator, values: &[Arc<str>]) -> Result<(), ValueError> {
    let name = operator.name();
    match (operator.takes_values(), values.is_empty()) {
        (true, true) => {
            let problem = format!("lists no value, and {name} needs one");
            Err(ValueError::new("[]", problem, "list the values, or write Exists or DoesNotExist"))
        }
        (false, false) => {
            let problem = format!("are values, and {name} takes none");
            Err(ValueError::new(&values.join(", "), problem, "leave `values` out, or write In or NotIn"))
        }
        (true, false) | (false, true) => Ok(()),
    }
}

fn require_key(key: &str, field: impl Fn() -> String) -> Result<(), FieldError> {
    match key {
        "" => {
            Err(ValueError::new(key, "is not a label's key", "write a key like environment")
                .in_field(field()))
        }
        _ => Ok(()),
    }
}

fn require_text(value: &Value, field: impl Fn() -> String) -> Result<&str, FieldError> {
    let fix = match value {
        Value::Null => "write it, like environment",
        _ => "put it in quotes: labels are text",
    };
    let refuse = || ValueError::new(&value.to_string(), "is not text", fix).in_field(field());
    value.as_str().ok_or_else(refuse)
}

fn optional_map<'v>(value: &'v Value, field: &str) -> Result<Option<&'v Map<String, Value>>, FieldError> {
    match value {
        Value::Null => Ok(None),
        Value::Object(map) => Ok(Some(map)),
        other => {
            let fix = "write it like matchLabels: {environment: dev}";
            Err(ValueError::new(&other.to_string(), "is not a map", fix).in_field(field))
        }
    }
}

fn optional_list<'v>(value: &'v Value, field: &str, example: &str) -> Result<&'v [Value], FieldError> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        other => {
            let fix = format!("write it like {example}");
            Err(ValueError::new(&other.to_string(), "is not a list", fix).in_field(field))
        }
    }
}

fn refuse_unknown(
    map: &Map<String, Value>,
    known: &[&str],
    path: &str,
    fields: &str,
) -> Result<(), FieldError> {
    let Some(name) = map.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
    Err(ValueError::new(name, "is not a field here", format!("the fields are {fields}")).in_field(field))
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { key, operator, values } = self;
        match (operator, values.as_slice()) {
            (Operator::In, values) => write!(f, "{key} in ({})", values.join(",")),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::NotIn, values) => write!(f, "{key} notin ({})", values.join(",")),
            (Operator::Exists, _) => write!(f, "{key}"),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn selector(value: Value) -> Selector {
        Selector::from_json(&value).unwrap_or_else(|error| panic!("{error}"))
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn each_operator_judges_present_and_absent_labels() {
        let cases = [
            // operator, values, tier=gold, tier=iron, no tier
            ("In", vec!["silver", "gold"], true, false, false),
            ("NotIn", vec!["silver", "gold"], false, true, true),
            ("Exists", vec![], true, true, false),
            ("DoesNotExist", vec![], false, false, true),
        ];
        for (operator, values, gold, iron, absent) in cases {
            let selector = selector(expression("tier", operator, &values));
            let judge = |tier: Option<&'static str>| selector.matches(|key| tier.filter(|_| key == "tier"));
            assert_eq!(
                (judge(Some("gold")), judge(Some("iron")), judge(None)),
                (gold, iron, absent),
                "{operator}"
            );
        }
    }

    #[test]
    fn asks_for_every_requirement() {
        let selector = selector(json!({
            "matchLabels": {"environment": "dev"},
            "matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}],
        }));
        let judge = |labels: &[(&str, &'static str)]| {
            let labels: BTreeMap<&str, &'static str> = labels.iter().copied().collect();
            selector.matches(|key| labels.get(key).copied())
        };
        assert!(judge(&[("environment", "dev")]));
        assert!(!judge(&[("environment", "dev"), ("gone", "")]));
        assert!(!judge(&[("environment", "prod")]));
        assert!(!judge(&[]));
    }

    #[test]
    fn empty_selector_matches_everything() {
        for value in [json!({}), json!(null), json!({"matchLabels": {}}), json!({"matchExpressions": null})] {
            let selector = selector(value);
            assert!(selector.is_empty() && selector.matches(|_| None));
        }
    }

    #[test]
    fn an_empty_label_value_is_still_a_value() {
        let selector = selector(json!({"matchLabels": {"a": ""}}));
        assert!(selector.matches(|_| Some("")));
        assert!(!selector.matches(|_| None));
    }

    #[test]
    fn two_ways_to_write_one_choice_are_equal() {
        let labels = selector(json!({"matchLabels": {"b": "2", "a": "1"}}));
        let expressions = selector(json!({"matchExpressions": [
            {"key": "b", "operator": "In", "values": ["2", "2"]},
            {"key": "a", "operator": "In", "values": ["1"]},
            {"key": "a", "operator": "In", "values": ["1"]},
        ]}));
        assert_eq!(labels, expressions);
        assert_ne!(labels, selector(json!({"matchLabels": {"a": "1"}})));
        let sorted = selector(expression("a", "In", &["2", "1"]));
        assert_eq!(sorted, selector(expression("a", "In", &["1", "2"])));
    }

    #[test]
    fn reads_like_kubectl() {
        let all = selector(json!({
            "matchLabels": {"environment": "dev"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["x"]},
                {"key": "zone", "operator": "NotIn", "values": ["b", "a"]},
                {"key": "gone", "operator": "DoesNotExist"},
                {"key": "here", "operator": "Exists", "values": []},
            ],
        }));
        assert_eq!(all.to_string(), "environment in (dev), !gone, here, tier!=x, zone notin (a,b)");
        assert_eq!(Selector::default().to_string(), "");
    }

    #[test]
    fn says_where_a_selector_is_wrong() {
        let cases = [
            (json!("a=b"), "", "is not a map"),
            (json!({"matchlabels": {}}), "matchlabels", "is not a field here"),
            (json!({"matchLabels": []}), "matchLabels", "is not a map"),
            (json!({"matchLabels": {"a": 1}}), "matchLabels.a", "`1` is not text"),
            (json!({"matchLabels": {"": "x"}}), "matchLabels.", "is not a label's key"),
            (json!({"matchExpressions": {}}), "matchExpressions", "is not a list"),
            (json!({"matchExpressions": [null]}), "matchExpressions[0].key", "`null` is not text"),
            (json!({"matchExpressions": ["a"]}), "matchExpressions[0]", "is not a map"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "in"}]}),
                "matchExpressions[1].operator",
                "`in` is not an operator: write In, NotIn, Exists or DoesNotExist",
            ),
            (json!({"matchExpressions": [{"key": "a"}]}), "matchExpressions[0].operator", "is not text"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "value": 1}]}),
                "matchExpressions[0].value",
                "is not a field here",
            ),
            (expression("a", "In", &[]), "matchExpressions[0].values", "In needs one"),
            (expression("a", "NotIn", &[]), "matchExpressions[0].values", "NotIn needs one"),
            (expression("a", "Exists", &["x"]), "matchExpressions[0].values", "Exists takes none"),
            (
                expression("a", "DoesNotExist", &["x"]),
                "matchExpressions[0].values",
                "DoesNotExist takes none",
            ),
            (expression("", "Exists", &[]), "matchExpressions[0].key", "is not a label's key"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", 5]}]}),
                "matchExpressions[0].values[1]",
                "`5` is not text",
            ),
        ];
        for (value, field, told) in cases {
            let error = Selector::from_json(&value).expect_err(&value.to_string());
            assert_eq!(error.field, field, "{value}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    fn expressions() -> impl Strategy<Value = Vec<(String, usize, Vec<String>)>> {
        prop::collection::vec(("[ab]", 0usize..4, prop::collection::vec("[xyz]", 1..4)), 0..4)
    }

    fn to_json(expressions: &[(String, usize, Vec<String>)]) -> Value {
        let items = expressions.iter().map(|(key, at, values)| {
            let operator = Operator::ALL[*at];
            let values = if operator.takes_values() { values.as_slice() } else { &[] };
            json!({"key": key, "operator": operator.name(), "values": values})
        });
        json!({"matchExpressions": items.collect::<Vec<_>>()})
    }

    proptest! {
        #[test]
        fn order_of_writing_does_not_matter(written in expressions()) {
            let mut reversed = written.clone();
            reversed.reverse();
            reversed.iter_mut().for_each(|(_, _, values)| values.reverse());
            prop_assert_eq!(selector(to_json(&written)), selector(to_json(&reversed)));
        }

        #[test]
        fn matches_as_kubernetes_defines_it(
            written in expressions(),
            a in prop::option::of("[xyzw]"),
            b in prop::option::of("[xyzw]"),
        ) {
            let get = |key: &str| if key == "a" { a.as_deref() } else { b.as_deref() };
            let want = written.iter().all(|(key, at, values)| {
                let listed = get(key).map(|value| values.iter().any(|listed| listed == value));
                match at {
                    0 => listed == Some(true),
                    1 => listed != Some(true),
                    2 => listed.is_some(),
                    _ => listed.is_none(),
                }
            });
            prop_assert_eq!(selector(to_json(&written)).matches(get), want);
        }

        #[test]
        fn never_panics_on_any_json(text in "[\\[\\]{}:,\"a0]{0,12}", key in "\\PC{0,4}", operator in "\\PC{0,4}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = Selector::from_json(&value);
                let _ = Selector::from_json(&json!({"matchLabels": value, "matchExpressions": [value]}));
                let _ = Selector::from_json(&json!({"matchExpressions": value}));
            }
            let _ = Selector::from_json(&expression(&key, &operator, &[&key]));
        }
    }
}
