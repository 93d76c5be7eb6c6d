//! One step of a path into an object: a field, an item by its keys, an item by its value. Written as Kubernetes
//! writes managed fields: `f:name`, `k:{"name":"a"}`, `v:"x"`.

use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Field(String),
    Keys(Map<String, Value>),
    Value(Value),
    Index(u64),
}

impl Step {
    pub fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    pub fn read(text: &str) -> Option<Step> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Step::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest).ok().map(Step::Keys),
            "v" => serde_json::from_str(rest).ok().map(Step::Value),
            "i" => rest.parse().ok().map(Step::Index),
            _ => None,
        }
    }

    pub fn write(&self) -> String {
        match self {
            Step::Field(name) => format!("f:{name}"),
            Step::Keys(keys) => format!("k:{}", Value::Object(keys.clone())),
            Step::Value(value) => format!("v:{value}"),
            Step::Index(at) => format!("i:{at}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Step::Field(_) => 0,
            Step::Keys(_) => 1,
            Step::Value(_) => 2,
            Step::Index(_) => 3,
        }
    }
}

impl Ord for Step {
    fn cmp(&self, other: &Step) -> Ordering {
        match (self, other) {
            (Step::Field(one), Step::Field(two)) => one.cmp(two),
            (Step::Index(one), Step::Index(two)) => one.cmp(two),
            (one, two) if one.rank() == two.rank() => one.write().cmp(&two.write()),
            (one, two) => one.rank().cmp(&two.rank()),
        }
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Step) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As conflicts show it: `.spec.list[name="a"].field`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Keys(keys) => {
                let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Step::Value(value) => write!(f, "[={value}]"),
            Step::Index(at) => write!(f, "[{at}]"),
        }
    }
}
