//! Collections deleted: what a list finds is deleted one by one, as by hand.

use super::delete::{DeleteOptions, delete};
use super::list;
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::Call;
use crate::object;
use crate::scope::Scope;
use crate::status::Status;
use http::StatusCode;

pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    call.wanted()?;
    let options = DeleteOptions::read(call)?;
    let page = list::page(api, call, scope)?;
    for stored in &page.objects {
        let name = object::name(&stored.value).to_owned();
        let one = Scope { name, ..scope.clone() };
        match delete(api, &one, &options).await {
            Ok(_) => {}
            // Another client was faster.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(Answer::of(StatusCode::OK, Content::Json(list::whole(&page, scope))))
}
