//! Label selectors with the semantics of Kubernetes, in a canonical form: two spellings of one selector are equal.

use super::FieldError;
use super::fields::Field;
pub use crate::api::selector::Operator;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Requirements on labels, combined with AND; without any it matches every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Arc<str>,
    /// How to compare its value.
    pub operator: Operator,
    /// The values to compare with: sorted, without duplicates; empty for Exists and DoesNotExist.
    pub values: Vec<Arc<str>>,
}

impl Selector {
    /// Parses `{matchLabels: {}, matchExpressions: []}`; `null` is the empty selector.
    ///
    /// # Errors
    /// The first invalid field, with its path in the selector (`matchExpressions[0].operator`; empty if the value is not a
    /// map).
    pub fn from_json(value: &Value) -> Result<Selector, FieldError> {
        Selector::read(&Field::root(value))
    }

    /// Parses the selector in a field; an absent one is empty.
    pub(crate) fn read(field: &Field<'_>) -> Result<Selector, FieldError> {
        field.require_map()?;
        refuse_unknown(field, &["matchLabels", "matchExpressions"])?;
        let labels = field.at("matchLabels");
        labels.require_map()?;
        let mut requirements = Vec::new();
        for (key, label) in labels.entries() {
            let values = vec![require_text(&label)?.into()];
            requirements.push(Requirement::new(check_key(key, &label)?, Operator::In, values));
        }
        for expression in field.at("matchExpressions").items()? {
            requirements.push(read_expression(&expression)?);
        }
        requirements.sort();
        requirements.dedup();
        Ok(Selector { requirements })
    }

    /// Whether labels, looked up by key, satisfy all requirements.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(get(&requirement.key)))
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// A selector of the requirements that pass `keep`.
    pub fn kept(&self, keep: impl Fn(&Requirement) -> bool) -> Selector {
        Selector { requirements: self.requirements.iter().filter(|r| keep(r)).cloned().collect() }
    }

    /// Whether it has no requirements, and matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    /// Whether it lists the matching values, so that an index can look them up.
    pub fn lists_values(&self) -> bool {
        self.operator == Operator::In
    }

    /// Whether a label's value, None if the label is absent, satisfies the requirement.
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

    /// A requirement; sorts the values.
    pub fn new(key: &str, operator: Operator, mut values: Vec<Arc<str>>) -> Requirement {
        values.sort();
        values.dedup();
        Requirement { key: key.into(), operator, values }
    }
}

fn read_expression(field: &Field<'_>) -> Result<Requirement, FieldError> {
    field.require_map()?;
    refuse_unknown(field, &["key", "operator", "values"])?;
    let (key, operator, values) = (field.at("key"), field.at("operator"), field.at("values"));
    let key = check_key(require_text(&key)?, &key)?;
    let name = require_text(&operator)?;
    let operator = Operator::ALL
        .into_iter()
        .find(|operator| operator.name() == name)
        .ok_or_else(|| operator.error("is not an operator", "write In, NotIn, Exists or DoesNotExist"))?;
    let texts = values
        .items()?
        .iter()
        .map(|value| require_text(value).map(Arc::from))
        .collect::<Result<Vec<_>, _>>()?;
    match (operator.takes_values(), texts.is_empty()) {
        (true, true) => {
            let problem = format!("lists no value, and {name} needs one");
            Err(values.error(&problem, "list the values, or write Exists or DoesNotExist"))
        }
        (false, false) => {
            let problem = format!("are values, and {name} takes none");
            Err(values.error(&problem, "leave `values` out, or write In or NotIn"))
        }
        (true, false) | (false, true) => Ok(Requirement::new(key, operator, texts)),
    }
}

fn check_key<'a>(key: &'a str, field: &Field<'_>) -> Result<&'a str, FieldError> {
    match key {
        "" => Err(field.error("is not a label's key", "write a key like environment")),
        key => Ok(key),
    }
}

fn require_text<'a>(field: &Field<'a>) -> Result<&'a str, FieldError> {
    field.text()?.ok_or_else(|| field.error("is missing", "write it, like environment"))
}

fn refuse_unknown(field: &Field<'_>, known: &[&str]) -> Result<(), FieldError> {
    match field.entries().find(|(name, _)| !known.contains(name)) {
        Some((_, unknown)) => {
            Err(unknown.error("is not a field here", &format!("the fields are {}", known.join(", "))))
        }
        None => Ok(()),
    }
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
    fn all_requirements_must_hold() {
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
            (json!({"matchExpressions": [null]}), "matchExpressions[0].key", "is missing"),
            (json!({"matchExpressions": ["a"]}), "matchExpressions[0]", "is not a map"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "in"}]}),
                "matchExpressions[1].operator",
                "`in` is not an operator: write In, NotIn, Exists or DoesNotExist",
            ),
            (json!({"matchExpressions": [{"key": "a"}]}), "matchExpressions[0].operator", "is missing"),
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
        for (value, field, message) in cases {
            let error = Selector::from_json(&value).expect_err(&value.to_string());
            assert_eq!(error.field, field, "{value}");
            assert!(error.to_string().contains(message), "{error}");
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
