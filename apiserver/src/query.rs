//! The query of a request, read by name. Values are checked where they are used, with the messages of Go's parsers,
//! because clients show them.

use super::status::Status;

/// Names and values, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub fn read(text: Option<&str>) -> Query {
        let pairs = form_urlencoded::parse(text.unwrap_or_default().as_bytes());
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The first value, where there is one that is not empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Anything but `false` and `0` is true, as for Kubernetes.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.raw(name).map(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    pub fn is(&self, name: &str) -> bool {
        self.flag(name).unwrap_or(false)
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let wrong = |why| Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"));
        match value.parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => match value.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit()) {
                true if value.len() > 1 => Err(wrong("value out of range")),
                _ => Err(wrong("invalid syntax")),
            },
        }
    }

    /// Whether nothing is to be kept; any other value than `All` is refused.
    pub fn dry_run(&self) -> Result<bool, Vec<String>> {
        let values: Vec<&str> = self.all("dryRun").collect();
        match values.as_slice() {
            [] => Ok(false),
            values if values.iter().all(|value| *value == "All") => Ok(true),
            values => Err(values.iter().map(|value| (*value).to_owned()).collect()),
        }
    }
}

#[test]
fn numbers_are_refused_with_the_message_of_go() {
    let query = Query::read(Some("limit=x&far=99999999999999999999&ok=-5&none="));
    let message = |name: &str| query.number(name).unwrap_err().message;
    assert_eq!(message("limit"), "strconv.ParseInt: parsing \"x\": invalid syntax");
    assert_eq!(message("far"), "strconv.ParseInt: parsing \"99999999999999999999\": value out of range");
    assert_eq!(query.number("ok").unwrap(), Some(-5));
    assert_eq!(query.number("none").unwrap(), None);
}
