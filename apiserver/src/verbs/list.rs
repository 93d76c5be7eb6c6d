//! Collections: filtered, page by page, at the newest revision or at an earlier one as long as it is remembered.

use super::read::{not_newer, read_revision};
use crate::accept::Shape;
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::Call;
use crate::encode;
use crate::scope::Scope;
use crate::select::{FieldSelector, LabelSelector, Selection};
use crate::status::{Cause, Named, Status};
use crate::store::Stored;
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One page, and what is known of the others.
pub(super) struct Page {
    pub objects: Vec<Arc<Stored>>,
    pub revision: u64,
    pub next: Option<String>,
    pub remaining: Option<usize>,
}

pub(super) fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let page = page(api, call, scope)?;
    let content = match wanted.shape {
        Shape::Whole | Shape::Discovery => Content::Json(whole(&page, scope)),
        Shape::Metadata => Content::Value(metadata(&page)),
        Shape::Table => {
            let served = &scope.served;
            let objects =
                page.objects.iter().map(|stored| encode::to_served(&stored.value, served)).collect();
            let include = table::included(call.query.find("includeObject"))?;
            Content::Value(table::of_list(objects, served, list_meta(&page, false), include))
        }
    };
    Ok(Answer::of(StatusCode::OK, content))
}

/// The selectors of a request.
pub(super) fn selection(call: &Call, scope: &Scope) -> Result<Selection, Status> {
    let labels = call.query.find("labelSelector").unwrap_or_default();
    let labels = LabelSelector::read(labels).map_err(Status::bad_request)?;
    let fields = call.query.find("fieldSelector").unwrap_or_default();
    let fields = FieldSelector::read(fields).map_err(Status::bad_request)?;
    let known = &scope.served.version().selectable;
    let namespaced = scope.served.resource.namespaced;
    for field in fields.fields() {
        let is_known = field == "metadata.name"
            || (field == "metadata.namespace" && (namespaced || scope.served.resource.is_custom()))
            || known.iter().any(|one| one == field);
        if !is_known {
            let why = match scope.served.resource.is_custom() || !known.is_empty() {
                true => format!("field label not supported: {field}"),
                false => format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
            };
            return Err(Status::bad_request(why));
        }
    }
    Ok(Selection { labels, fields })
}

/// The objects that a request selects.
pub(super) fn page(api: &Api, call: &Call, scope: &Scope) -> Result<Page, Status> {
    let selection = selection(call, scope)?;
    let limit = call.query.number("limit")?.filter(|limit| *limit > 0);
    let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let at = when(call)?;
    let table_name = &scope.served.resource.table;
    let state = api.store.read();
    let current = state.revision();
    let prefix = scope.prefix();
    let Some(table) = state.table(table_name) else {
        return Ok(Page { objects: Vec::new(), revision: current, next: None, remaining: None });
    };
    let (revision, after, exact) = match at {
        When::Now => (current, None, false),
        When::NotBefore(revision) => {
            not_newer(&state, revision)?;
            (current, None, false)
        }
        When::Exactly(revision) => {
            not_newer(&state, revision)?;
            (revision, None, revision != current)
        }
        When::After { revision, key } => {
            not_newer(&state, revision)?;
            (revision, Some(key), revision != current)
        }
        When::Inconsistent { key } => (current, Some(key), false),
    };
    let objects: Vec<(Arc<str>, Arc<Stored>)> = match exact {
        false => {
            let found = table.range(&prefix, after.as_deref());
            found.map(|(key, stored)| (Arc::clone(key), Arc::clone(stored))).collect()
        }
        true => {
            let found = table.range_at(&prefix, after.as_deref(), revision);
            found.map_err(|_| expired(after.as_deref()))?.into_iter().collect()
        }
    };
    drop(state);
    Ok(cut(objects, &selection, limit, revision, scope))
}

fn cut(
    objects: Vec<(Arc<str>, Arc<Stored>)>,
    selection: &Selection,
    limit: Option<usize>,
    revision: u64,
    scope: &Scope,
) -> Page {
    let served = &scope.served;
    let matches = |stored: &Stored| {
        if selection.is_everything() {
            return true;
        }
        match selection.fields.is_empty() {
            true => selection.matches(&stored.value),
            // Field selectors use the field names of the requested version.
            false => selection.matches(&encode::to_served(&stored.value, served)),
        }
    };
    let mut found = Vec::new();
    let mut last: Option<Arc<str>> = None;
    let total = objects.len();
    for (seen, (key, stored)) in objects.into_iter().enumerate() {
        if let Some(limit) = limit
            && found.len() == limit
        {
            let next = last.map(|last| token(revision, &last));
            // What does not match is not counted, so with selectors the rest is unknown.
            let remaining = selection.is_everything().then_some(total - seen);
            return Page { objects: found, revision, next, remaining };
        }
        last = Some(key);
        if matches(&stored) {
            found.push(stored);
        }
    }
    Page { objects: found, revision, next: None, remaining: None }
}

/// At which revision a client requests a list.
enum When {
    Now,
    NotBefore(u64),
    Exactly(u64),
    After { revision: u64, key: String },
    Inconsistent { key: String },
}

fn when(call: &Call) -> Result<When, Status> {
    let revision = call.query.find("resourceVersion");
    let matching = call.query.find("resourceVersionMatch");
    let token = call.query.find("continue");
    let causes = bad_options(call, revision, matching, token.is_some());
    if !causes.is_empty() {
        let named = Named { group: "meta.k8s.io".to_owned(), name: "ListOptions".to_owned() };
        return Err(Status::invalid(&named, "", &causes));
    }
    if let Some(token) = token {
        if revision.is_some_and(|revision| revision != "0") {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(why));
        }
        return read_token(token);
    }
    match (revision, matching) {
        (None | Some("0"), _) => Ok(When::Now),
        (Some(text), Some("Exact")) => Ok(When::Exactly(read_revision(text)?)),
        (Some(text), None) if call.query.number("limit")?.is_some_and(|limit| limit > 0) => {
            Ok(When::Exactly(read_revision(text)?))
        }
        (Some(text), _) => Ok(When::NotBefore(read_revision(text)?)),
    }
}

/// What does not go together.
fn bad_options(call: &Call, revision: Option<&str>, matching: Option<&str>, continues: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut forbid = |field: &str, why: &str| causes.push(Cause::forbidden(field, why));
    if let Some(matching) = matching {
        if revision.is_none() {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if continues {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let known = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::unsupported("resourceVersionMatch", &matching.into(), &known));
        } else if matching == "Exact" && revision == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden("resourceVersionMatch", why));
        }
    }
    if call.query.flag("sendInitialEvents").is_some() {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    causes
}

fn token(revision: u64, key: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{key}\0")});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Result<When, Status> {
    let wrong =
        |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| wrong(&error.to_string()))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))?;
    let start = value.get("start").and_then(Value::as_str).ok_or_else(|| wrong("it has no start"))?;
    let key = start.trim_end_matches('\0').to_owned();
    match value.get("rv").and_then(Value::as_i64).ok_or_else(|| wrong("it has no revision"))? {
        ..0 => Ok(When::Inconsistent { key }),
        0 => Err(wrong("its revision is not set")),
        revision => Ok(When::After { revision: revision.unsigned_abs(), key }),
    }
}

/// A page whose revision is forgotten; the token in the answer goes on at the newest one.
fn expired(after: Option<&str>) -> Status {
    let Some(after) = after else {
        return Status::expired("The resourceVersion for the provided list is too old.");
    };
    let text = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                list without the continue parameter, or use the continue token in this response to retrieve the \
                remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
                that were created, modified, or deleted between the time the first chunk was returned and now may \
                show up in the list.";
    let mut status = Status::expired(text);
    let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": format!("{after}\0")});
    status.metadata.insert("continue".to_owned(), URL_SAFE_NO_PAD.encode(token.to_string()).into());
    status
}

fn list_meta(page: &Page, is_custom: bool) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("resourceVersion".to_owned(), page.revision.to_string().into());
    // Lists of custom objects always say where they go on.
    let next = page.next.clone().or_else(|| is_custom.then(String::new));
    if let Some(next) = next {
        meta.insert("continue".to_owned(), next.into());
    }
    if let Some(remaining) = page.remaining {
        meta.insert("remainingItemCount".to_owned(), remaining.into());
    }
    meta
}

/// The list as JSON, joined from objects that are written already.
pub(super) fn whole(page: &Page, scope: &Scope) -> Bytes {
    let served = &scope.served;
    let items: Vec<Bytes> = page.objects.iter().map(|stored| encode::item(stored, served)).collect();
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
        Value::from(served.resource.list_kind.as_str()),
        Value::from(served.api_version()),
        Value::Object(list_meta(page, served.resource.is_custom())),
    );
    let mut text =
        Vec::with_capacity(head.len() + 2 + items.iter().map(|item| item.len() + 1).sum::<usize>());
    text.extend_from_slice(head.as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]}");
    Bytes::from(text)
}

fn metadata(page: &Page) -> Value {
    let items: Vec<Value> = page.objects.iter().map(|stored| encode::metadata(&stored.value)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta(page, false),
        "items": items,
    })
}
