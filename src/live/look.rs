//! Everything that the engine reads, listed once, for commands that only look. Nothing is watched or written.

use super::error::Error;
use super::metrics::Metrics;
use super::options::Options;
use super::watch::{KindReader, Watch};
use super::wire;
use crate::model::{Kind, Object};
use kube::Client;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Every object of every kind that takes part in decisions.
///
/// # Errors
/// The first kind that cannot be listed, with what to do about it.
pub async fn list_all(client: &Client, system_namespace: &str) -> Result<Vec<Object>, Error> {
    let lists = wire::kinds().into_iter().map(|kind| list(client, kind, None, system_namespace));
    let lists = futures::future::try_join_all(lists).await?;
    Ok(lists.into_iter().flatten().collect())
}

/// The objects of one kind, in one namespace or wherever they take part in decisions.
///
/// # Errors
/// As [`list_all`].
pub async fn list(
    client: &Client,
    kind: Kind,
    namespace: Option<&str>,
    system_namespace: &str,
) -> Result<Vec<Object>, Error> {
    let (inbox, _) = mpsc::channel(1);
    let options = Options::default();
    let watch = Watch {
        client: client.clone(),
        reader: KindReader(kind),
        route: wire::route(kind),
        namespace: namespace.map(str::to_owned).or_else(|| home(kind, system_namespace)),
        label: None,
        inbox,
        metrics: Arc::new(Metrics::new()),
        timeout: options.watch_timeout,
        page_size: options.page_size,
    };
    let listed = watch.list().await;
    let (objects, _) = listed.map_err(|trouble| {
        let what = format!("{} ({})", watch.route.plural, kind.api_version());
        Error::List { what, why: watch.explain(&trouble) }
    })?;
    Ok(objects)
}

/// The only namespace in which objects of a kind take part, where there is one.
pub(super) fn home(kind: Kind, system_namespace: &str) -> Option<String> {
    match kind {
        Kind::Resource(_) | Kind::Class(_) => Some(system_namespace.to_owned()),
        Kind::Claim(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => None,
    }
}
