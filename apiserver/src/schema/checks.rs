//! The limits of a node that do not shape it: bounds, patterns, enums, junctions. Only kept here; see `validate.rs`.

use regex::Regex;
use serde_json::Value;

/// The limits of one place.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub required: Vec<String>,
    pub choices: Option<Vec<Value>>,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<Pattern>,
    pub format: Option<String>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub all_of: Vec<super::Node>,
    pub any_of: Vec<super::Node>,
    pub one_of: Vec<super::Node>,
    pub not: Option<Box<super::Node>>,
}

/// A pattern with the text that it was read from.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub text: String,
    /// Absent where our dialect cannot read it: then it refuses nothing, as it did when the CRD was taken.
    pub regex: Option<Regex>,
}
