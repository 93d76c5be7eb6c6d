//! What can be done with objects. Each verb has its room; this one only decides which verb a request is.

pub(super) mod builtin_controllers;
mod collection;
pub(super) mod create;
mod delete;
mod list;
mod patch;
mod read;
pub(super) mod restore;
pub(super) mod scale;
mod update;
mod watch;

use super::answer::Answer;
use super::api::Api;
use super::call::Call;
use super::scope::{Scope, Sub};
use super::status::Status;
use super::store::Refusal;
use http::Method;

/// How often a write is retried after a conflict.
const ATTEMPTS: usize = 64;

/// Carries a request out.
pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope, old_watch: bool) -> Result<Answer, Status> {
    let is_read = call.method == Method::GET;
    let watches = old_watch || call.query.is("watch");
    if scope.name.is_empty() {
        return match call.method {
            _ if is_read && watches => watch::answer(api, call, scope),
            _ if is_read => list::answer(api, call, scope),
            Method::POST if !scope.is_across() => create::answer(api, call, scope).await,
            Method::DELETE if !scope.is_across() && deletes_collections(scope) => {
                collection::answer(api, call, scope).await
            }
            Method::POST if scope.served.resource.is_custom() => Err(Status::no_such_path()),
            _ => Err(Status::method_not_allowed()),
        };
    }
    match (&call.method, scope.sub) {
        (_, Sub::Whole) if is_read && watches => watch::answer(api, call, scope),
        (_, Sub::Whole | Sub::Status) if is_read => read::answer(api, call, scope),
        (_, Sub::Scale) if is_read => scale::read(api, call, scope),
        (&Method::PUT, Sub::Scale) => scale::update(api, call, scope).await,
        (&Method::PATCH, Sub::Scale) => scale::patch(api, call, scope).await,
        (&Method::PUT, _) => update::answer(api, call, scope).await,
        (&Method::PATCH, Sub::Whole | Sub::Status) => patch::answer(api, call, scope).await,
        (&Method::DELETE, Sub::Whole) => delete::answer(api, call, scope).await,
        (&Method::DELETE, _) if scope.served.resource.is_custom() => {
            Err(Status::not_supported(&scope.served.resource.named(), "delete"))
        }
        (&Method::POST, Sub::Status | Sub::Scale) if scope.served.resource.is_custom() => {
            Err(Status::not_supported(&scope.served.resource.named(), "create"))
        }
        _ => Err(Status::method_not_allowed()),
    }
}

/// Namespaces go one at a time.
fn deletes_collections(scope: &Scope) -> bool {
    let resource = &scope.served.resource;
    !(resource.group.is_empty() && resource.plural == "namespaces")
}

/// A refusal of the store that is not about what was expected.
fn broken(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Disk(why) => Status::internal(&format!("the write could not be kept: {why}")),
        Refusal::Exists | Refusal::Changed => Status::internal("the object changed too often to be written"),
    }
}
