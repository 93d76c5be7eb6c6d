//! One request, read: who asks, for what, with which body. Nothing is looked up here.

use super::accept::{Shape, Wanted};
use super::query::Query;
use super::status::{Cause, Named, Status};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};

/// A body may be no larger.
pub(super) const BODY_MAX: usize = 3 * 1024 * 1024;
const SHAPES: [Shape; 2] = [Shape::Table, Shape::Metadata];

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name that reviews and messages show.
    pub name: String,
    /// The groups that it is in.
    pub groups: Vec<String>,
}

impl User {
    /// The one whom everything is allowed.
    pub fn admin() -> User {
        User { name: "kubernetes-admin".to_owned(), groups: vec!["system:masters".to_owned()] }
    }

    pub(super) fn anonymous() -> User {
        User { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Yaml,
    JsonPatch,
    MergePatch,
    StrategicPatch,
    ApplyPatch,
    Other,
}

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    pub method: Method,
    pub path: String,
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub user: User,
}

impl Call {
    pub fn new(parts: Parts, body: Bytes, user: User) -> Call {
        let Parts { method, uri, headers, .. } = parts;
        let query = Query::read(uri.query());
        Call { method, path: uri.path().to_owned(), query, headers, body, user }
    }

    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How an answer about objects is to be written.
    pub fn wanted(&self) -> Result<Wanted, Status> {
        Wanted::read(self.header(header::ACCEPT), &SHAPES)
    }

    /// As [`Call::wanted`] for answers that have only one shape.
    pub fn wanted_plain(&self) -> Wanted {
        Wanted::read(self.header(header::ACCEPT), &[]).unwrap_or(Wanted::JSON)
    }

    pub fn media(&self) -> Media {
        let text = self.header(header::CONTENT_TYPE).unwrap_or("application/json");
        match text.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" => Media::Json,
            "application/yaml" => Media::Yaml,
            "application/json-patch+json" => Media::JsonPatch,
            "application/merge-patch+json" => Media::MergePatch,
            "application/strategic-merge-patch+json" => Media::StrategicPatch,
            "application/apply-patch+yaml" => Media::ApplyPatch,
            _ => Media::Other,
        }
    }

    /// Whom changes are attributed to: the named manager, or the program that asks.
    pub fn manager(&self) -> String {
        if let Some(manager) = self.query.find("fieldManager") {
            return manager.to_owned();
        }
        let agent = self.header(header::USER_AGENT).unwrap_or_default();
        let program = agent.split('/').next().unwrap_or_default();
        let program: String = program.chars().filter(|c| !c.is_control()).collect();
        let cut = program.char_indices().map(|(at, _)| at).take_while(|at| *at <= 128).last().unwrap_or(0);
        match program.len() > 128 {
            true => program[..cut].to_owned(),
            false if program.is_empty() => "unknown".to_owned(),
            false => program,
        }
    }
}

/// What a write does with unknown and duplicate fields: its `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    Ignore,
    Warn,
    Strict,
}

/// The options that writes share.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    pub dry_run: bool,
    pub strictness: Strictness,
    pub force: bool,
}

impl WriteOptions {
    /// Reads the options of a request; `kind` names them in refusals.
    pub fn read(call: &Call, kind: &str) -> Result<WriteOptions, Status> {
        let mut causes = Vec::new();
        let is_apply = call.media() == Media::ApplyPatch;
        if kind == "PatchOptions" {
            match (is_apply, call.query.find("fieldManager"), call.query.flag("force")) {
                (true, None, _) => {
                    causes.push(Cause::required("fieldManager", "is required for apply patch"))
                }
                (false, _, Some(_)) => {
                    causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
                }
                _ => {}
            }
        }
        check_manager(call.query.find("fieldManager").unwrap_or_default(), &mut causes);
        let dry_run = call.query.dry_run().unwrap_or_else(|values| {
            causes.push(Cause::unsupported("dryRun", &values.into(), &["All"]));
            true
        });
        let strictness = match call.query.find("fieldValidation") {
            None | Some("Warn") => Strictness::Warn,
            Some("Ignore") => Strictness::Ignore,
            Some("Strict") => Strictness::Strict,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::unsupported("fieldValidation", &other.into(), &known));
                Strictness::Warn
            }
        };
        if !causes.is_empty() {
            let named = Named { group: "meta.k8s.io".to_owned(), name: kind.to_owned() };
            return Err(Status::invalid(&named, "", &causes));
        }
        Ok(WriteOptions { dry_run, strictness, force: call.query.is("force") })
    }
}

fn check_manager(manager: &str, causes: &mut Vec<Cause>) {
    if manager.len() > 128 {
        causes.push(Cause::too_long("fieldManager", 128));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        causes.push(Cause::invalid_text("fieldManager", manager, &why));
    }
}
