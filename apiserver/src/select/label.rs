//! Label selectors of queries: `a=b,c!=d,e in (f,g),h notin (i),j,!k`, and `x>1`.

use crate::object::names::{bad_key, bad_label_value};
use conductor::model::selector::{Operator, Requirement};
use serde_json::Value;

/// One requirement on one label. Only queries have `>` and `<`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Clause {
    Requirement(Requirement),
    Greater(String, i64),
    Less(String, i64),
}

/// Clauses, combined with AND.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Clause>);

impl LabelSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// The message of the API server.
    pub fn read(text: &str) -> Result<LabelSelector, String> {
        let mut reader = Reader { rest: text };
        let mut all = Vec::new();
        reader.skip();
        while !reader.rest.is_empty() {
            all.push(reader.clause()?);
            reader.skip();
            match reader.take(",") {
                true => {
                    reader.skip();
                    if reader.rest.is_empty() {
                        return Err(reader.unexpected("identifier after ','"));
                    }
                }
                false if reader.rest.is_empty() => {}
                false => return Err(reader.unexpected("',' or 'end of string'")),
            }
        }
        Ok(LabelSelector(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        let number = |key: &str| label(key).and_then(|label| label.parse::<i64>().ok());
        self.0.iter().all(|clause| match clause {
            Clause::Requirement(requirement) => requirement.matches(label(&requirement.key)),
            Clause::Greater(key, bound) => number(key).is_some_and(|number| number > *bound),
            Clause::Less(key, bound) => number(key).is_some_and(|number| number < *bound),
        })
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn unexpected(&self, expected: &str) -> String {
        let found: String = self.rest.chars().take_while(|c| !c.is_whitespace()).collect();
        format!("unable to parse requirement: found '{found}', expected: {expected}")
    }

    fn word(&mut self) -> &'a str {
        let special = |c: char| c.is_whitespace() || "!=<>,()".contains(c);
        let end = self.rest.find(special).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn clause(&mut self) -> Result<Clause, String> {
        let absent = self.take("!");
        self.skip();
        let key = self.word().to_owned();
        if key.is_empty() {
            let found: String = self.rest.chars().take(1).collect();
            return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
        }
        if let Some(why) = bad_key(&key).first() {
            return Err(format!("unable to parse requirement: <nil>: Invalid value: {key:?}: {why}"));
        }
        if absent {
            return Ok(requirement(&key, Operator::DoesNotExist, Vec::new()));
        }
        self.skip();
        if self.rest.is_empty() || self.rest.starts_with(',') {
            return Ok(requirement(&key, Operator::Exists, Vec::new()));
        }
        if self.take("!=") {
            return Ok(requirement(&key, Operator::NotIn, vec![self.value(&key)?]));
        }
        if self.take("==") || self.take("=") {
            return Ok(requirement(&key, Operator::In, vec![self.value(&key)?]));
        }
        if self.take(">") {
            return Ok(Clause::Greater(key, self.bound()?));
        }
        if self.take("<") {
            return Ok(Clause::Less(key, self.bound()?));
        }
        let before = self.rest;
        match self.word() {
            "in" => Ok(requirement(&key, Operator::In, self.values(&key)?)),
            "notin" => Ok(requirement(&key, Operator::NotIn, self.values(&key)?)),
            _ => {
                self.rest = before;
                Err(self.unexpected("in, notin, =, ==, !=, gt, lt"))
            }
        }
    }

    fn value(&mut self, key: &str) -> Result<String, String> {
        self.skip();
        let value = self.word().to_owned();
        match bad_label_value(&value).first() {
            None => Ok(value),
            Some(why) => {
                Err(format!("unable to parse requirement: values[0][{key}]: Invalid value: {value:?}: {why}"))
            }
        }
    }

    fn bound(&mut self) -> Result<i64, String> {
        self.skip();
        let word = self.word();
        let wrong = "for 'Gt', 'Lt' operators, the value must be an integer";
        word.parse()
            .map_err(|_| format!("unable to parse requirement: values[0]: Invalid value: {word:?}: {wrong}"))
    }

    fn values(&mut self, key: &str) -> Result<Vec<String>, String> {
        self.skip();
        if !self.take("(") {
            let found: String = self.rest.chars().take_while(|c| !c.is_whitespace()).collect();
            return Err(format!("unable to parse requirement: found '{found}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value(key)?);
            self.skip();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self.unexpected("',', or ')'"));
            }
        }
    }
}

fn requirement(key: &str, operator: Operator, values: Vec<String>) -> Clause {
    Clause::Requirement(Requirement::new(key, operator, values.into_iter().map(Into::into).collect()))
}

#[test]
fn selectors_match_as_written() {
    use serde_json::json;
    let object = json!({"metadata": {"labels": {"a": "1", "b": "x"}}});
    for (text, expected) in [
        ("", true),
        ("a", true),
        ("!a", false),
        ("c", false),
        ("!c", true),
        ("a=1", true),
        ("a==1,b=x", true),
        ("a!=1", false),
        ("c!=1", true),
        ("b in (x,y)", true),
        ("b in (y)", false),
        ("b notin (y), a", true),
        ("c notin (y)", true),
        ("a>0", true),
        ("a>1", false),
        ("a<2", true),
        ("b>0", false),
        ("a=", false),
    ] {
        assert_eq!(LabelSelector::read(text).unwrap().matches(&object), expected, "{text}");
    }
    for text in ["a=b=c", "a in", "a in (b", "a,", "a b", "=x", "a=!", "a>x"] {
        assert!(LabelSelector::read(text).is_err(), "{text}");
    }
}
