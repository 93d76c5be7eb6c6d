//! The objects of one kind as the API serves them: a list page by page, and the stream of a watch. Both are raw JSON.

use super::call::{Reply, call, message};
use super::client_error::one_line;
use super::rest::{self, Route};
use futures::AsyncBufRead;
use http::StatusCode;
use kube::Client;
use serde_json::Value;
use std::time::Duration;

/// How long one page of a list may take.
const LIST_WITHIN: Duration = Duration::from_secs(60);

/// What to list and watch.
#[derive(Clone)]
pub struct Collection {
    /// The client of the cluster.
    pub client: Client,
    /// Where the kind is served.
    pub route: Route,
    /// The only namespace; `None` for all.
    pub namespace: Option<String>,
    /// The label that objects must have.
    pub label: Option<&'static str>,
}

/// Why a list or watch failed.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The API's status, if it answered.
    pub status: Option<StatusCode>,
    /// The message of the API or of the client.
    pub why: String,
}

impl Trouble {
    pub(super) fn unanswered(why: impl Into<String>) -> Trouble {
        Trouble { status: None, why: why.into() }
    }
}

impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Trouble {
        match error {
            kube::Error::Api(status) => {
                Trouble { status: StatusCode::from_u16(status.code).ok(), why: status.message }
            }
            other => Trouble::unanswered(one_line(&other)),
        }
    }
}

impl Collection {
    /// Passes every object to `each`; returns the revision of the list.
    ///
    /// # Errors
    /// A page cannot be read. `each` may have got the objects of earlier pages.
    pub async fn list(&self, page_size: u32, mut each: impl FnMut(Value)) -> Result<String, Trouble> {
        let mut page = String::new();
        loop {
            let (metadata, items) = self.list_page(page_size, &page).await?;
            items.into_iter().for_each(&mut each);
            let text = |field| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            page = text("continue");
            if page.is_empty() {
                return Ok(text("resourceVersion"));
            }
        }
    }

    /// The metadata of one page, and its objects.
    async fn list_page(&self, page_size: u32, page: &str) -> Result<(Value, Vec<Value>), Trouble> {
        let mut query = format!("limit={page_size}");
        if !page.is_empty() {
            query.push_str(&format!("&continue={}", rest::escape(page)));
        }
        match call(&self.client, self.request(&query)?, LIST_WITHIN).await {
            Reply::Lost(why) => Err(Trouble::unanswered(why)),
            Reply::Answered { status, mut body, .. } if status.is_success() => {
                let metadata = body.get_mut("metadata").map(Value::take).unwrap_or_default();
                match body.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => Ok((metadata, items)),
                    // Go writes an empty list as null.
                    Some(Value::Null) => Ok((metadata, Vec::new())),
                    Some(_) | None => Err(Trouble::unanswered("the API's answer is not a list")),
                }
            }
            Reply::Answered { status, body, .. } => {
                Err(Trouble { status: Some(status), why: message(status, &body) })
            }
        }
    }

    /// Starts a watch from a revision: one line of JSON for each event.
    ///
    /// # Errors
    /// The watch cannot be started.
    pub async fn watch(
        &self,
        revision: &str,
        timeout: Duration,
    ) -> Result<impl AsyncBufRead + use<>, Trouble> {
        let query = format!(
            "watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
            rest::escape(revision),
            timeout.as_secs().max(1),
        );
        Ok(self.client.request_stream(self.request(&query)?).await?)
    }

    fn request(&self, query: &str) -> Result<rest::RestRequest, Trouble> {
        let mut uri = format!("{}?{query}", self.route.collection(self.namespace.as_deref()));
        if let Some(label) = self.label {
            uri.push_str(&format!("&labelSelector={}", rest::escape(label)));
        }
        rest::get(&uri).ok_or_else(|| Trouble::unanswered(format!("{uri} is not a path")))
    }
}
