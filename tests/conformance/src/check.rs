//! A check, as its file has it: a sentence, and a short script of raw requests. What is expected of the answers is
//! that both APIs give the same ones; `is` only guards against a script that misses what it is about.

use crate::here;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One behaviour of the API.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The sentence that it proves.
    pub check: String,
    /// Requests, one after the other.
    pub steps: Vec<Step>,
    /// The file that it stands in, without its ending.
    #[serde(skip)]
    pub group: String,
}

/// One request. Exactly one of the methods is given, with the path and the query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    #[serde(rename = "GET")]
    get: Option<String>,
    #[serde(rename = "POST")]
    post: Option<String>,
    #[serde(rename = "PUT")]
    put: Option<String>,
    #[serde(rename = "PATCH")]
    patch: Option<String>,
    #[serde(rename = "DELETE")]
    delete: Option<String>,
    #[serde(rename = "HEAD")]
    head: Option<String>,
    #[serde(rename = "OPTIONS")]
    options: Option<String>,
    /// A body, sent as JSON.
    pub body: Option<Value>,
    /// A body, sent as it stands.
    pub text: Option<String>,
    /// The kind of patch: json, merge, strategic, apply, or a media type.
    #[serde(rename = "as")]
    pub patch_kind: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The status code that the real API must answer with; any 2xx where it is not given.
    pub is: Option<u16>,
    /// Values of the answer that later steps use as `$name`, by their JSON pointers.
    pub save: BTreeMap<String, String>,
    /// Repeats the request until this holds.
    pub until: Option<Until>,
    /// Compare these parts of the answer only.
    pub pick: Vec<String>,
    /// Compare everything but these parts.
    pub ignore: Vec<String>,
    /// Only a part of the stage: compare the status code, not the answer.
    pub quiet: bool,
}

/// What a step waits for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Until {
    /// The status code.
    pub status: Option<u16>,
    /// A place in the answer.
    pub at: Option<String>,
    /// What must stand there; without it, anything but null.
    pub is: Option<Value>,
}

impl Step {
    /// The method and the path.
    pub fn request(&self) -> Option<(http::Method, &str)> {
        use http::Method;
        let Step { get, post, put, patch, delete, head, options, .. } = self;
        let given = [
            (Method::GET, get),
            (Method::POST, post),
            (Method::PUT, put),
            (Method::PATCH, patch),
            (Method::DELETE, delete),
            (Method::HEAD, head),
            (Method::OPTIONS, options),
        ];
        let mut given = given.into_iter().filter_map(|(method, path)| Some((method, path.as_deref()?)));
        given.next().filter(|_| given.next().is_none())
    }

    /// The media type of the body.
    pub fn media_type(&self) -> &str {
        match self.patch_kind.as_deref() {
            Some("json") => "application/json-patch+json",
            Some("merge") => "application/merge-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) => other,
            None => "application/json",
        }
    }
}

/// Checks whose responses differ on purpose, or need not be identical.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differing {
    /// What differs.
    pub what: String,
    /// Why that is so.
    pub why: String,
    /// The checks, by file and sentence.
    pub checks: Vec<String>,
}

/// What `differs.yaml` lists.
///
/// # Errors
/// Why it cannot be read.
pub fn read_differing() -> Result<Vec<Differing>, String> {
    let text = fs::read_to_string(here("differs.yaml")).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| format!("differs.yaml: {error}"))
}

/// Every check of a folder, by file and place.
///
/// # Errors
/// Which file cannot be read, and where.
pub fn read_all(folder: &Path) -> Result<Vec<Check>, String> {
    let listed = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut checks = Vec::new();
    for file in files {
        let at = |error: String| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| at(error.to_string()))?;
        let read: Vec<Check> = serde_saphyr::from_str(&text).map_err(|error| at(error.to_string()))?;
        let group = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for check in read {
            if let Some(step) = check.steps.iter().find(|step| step.request().is_none()) {
                return Err(at(format!("{}: a step needs one method: {step:?}", check.check)));
            }
            checks.push(Check { group: group.clone(), ..check });
        }
    }
    Ok(checks)
}
