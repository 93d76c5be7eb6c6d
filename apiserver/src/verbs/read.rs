//! Reading one object as it is now. Lists and watches have rooms of their own.

use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::Call;
use crate::encode;
use crate::scope::Scope;
use crate::status::Status;
use crate::store::State;
use http::StatusCode;

pub(super) fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let state = api.store.read();
    if let Some(text) = call.query.find("resourceVersion") {
        not_newer(&state, read_revision(text)?)?;
    }
    let stored = state.find(&scope.served.resource.table, &scope.key()).cloned();
    drop(state);
    let stored = stored.ok_or_else(|| scope.not_found())?;
    let content = Content::Json(encode::object(&stored, &scope.served, wanted.shape));
    Ok(Answer::of(StatusCode::OK, content))
}

/// A revision in a query.
pub(super) fn read_revision(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|_| Status::bad_request(format!("invalid resource version: {}", no_number(text))))
}

/// What is wrong with a revision that is no number.
pub(super) fn no_number(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Refuses a revision that has not been yet.
pub(super) fn not_newer(state: &State, revision: u64) -> Result<(), Status> {
    match revision > state.revision() {
        true => Err(Status::too_large_revision(revision, state.revision())),
        false => Ok(()),
    }
}
