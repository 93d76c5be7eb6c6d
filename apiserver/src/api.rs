//! The API itself: what is kept, what is served, and the way of a request through both. How requests arrive, in
//! process or over a socket, is not known here.

use super::advice;
use super::answer::{Answer, Body, Content};
use super::call::Call;
use super::clock::{Clock, stamp};
use super::registry::{CRD_TABLE, NAMESPACE_TABLE, Registry};
use super::route::{Route, Target};
use super::scope::Scope;
use super::status::Status;
use super::store::Store;
use super::unsupported;
use super::{Options, discovery, openapi, review, verbs};
use http::{Method, Response, StatusCode};
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Everything behind one address.
#[derive(Debug)]
pub(super) struct Api {
    pub store: Store,
    pub clock: Clock,
    /// The namespace that cannot be deleted, where there is one.
    pub system_namespace: Option<String>,
    registry: RwLock<Arc<Registry>>,
    /// Ends every watch.
    pub closing: CancellationToken,
}

impl Api {
    pub fn new(store: Store, options: &Options) -> Api {
        let (clock, system_namespace) = (options.clock.clone(), options.system_namespace.clone());
        let registry = RwLock::new(Arc::new(Registry::new()));
        let api = Api { store, clock, system_namespace, registry, closing: CancellationToken::new() };
        api.refresh();
        api
    }

    /// What is served now.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read())
    }

    /// Reads the CRDs again after one of them changed.
    pub fn refresh(&self) {
        let mut registry = self.registry.write();
        let state = self.store.read();
        let crds = state.table(CRD_TABLE).into_iter().flat_map(|table| table.range("", None));
        let crds = crds.map(|(name, stored)| (&**name, stored.revision, &stored.value));
        let fresh = registry.with_crds(crds);
        drop(state);
        for resource in fresh.all() {
            self.store.ensure(&resource.table);
        }
        *registry = Arc::new(fresh);
    }

    /// The time as objects carry it.
    pub fn now(&self) -> String {
        stamp(self.clock.now())
    }

    /// Makes the namespaces that are always there, where they are not.
    pub async fn seed(&self) -> Result<(), String> {
        for name in NAMESPACES {
            if self.store.find(NAMESPACE_TABLE, name).is_none() {
                let namespace = json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                });
                verbs::create::plant(self, namespace).await.map_err(|status| status.message)?;
            }
        }
        Ok(())
    }

    /// Why nothing can be written at present, if so.
    pub fn trouble(&self) -> Option<String> {
        self.store.trouble()?.borrow().clone()
    }

    /// Answers a request.
    pub async fn handle(&self, call: Call) -> Response<Body> {
        let encoding = call.wanted_plain().encoding;
        let answer = self.answer(&call).await.unwrap_or_else(Answer::from);
        answer.encode(encoding)
    }

    async fn answer(&self, call: &Call) -> Result<Answer, Status> {
        let route = Route::read(&call.path);
        if let Route::Objects(target) = &route {
            return self.answer_objects(call, target).await;
        }
        if !matches!(call.method, Method::GET | Method::HEAD) {
            return Err(Status::method_not_allowed());
        }
        let registry = self.registry();
        match route {
            Route::Health { writes } => Ok(match self.trouble().filter(|_| writes) {
                Some(why) => Answer::of(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    Content::Text(format!("[-]store failed: {why}\n")),
                ),
                None => Answer::text("ok"),
            }),
            Route::Version => Ok(Answer::value(discovery::version())),
            Route::Index => Ok(Answer::value(discovery::index(&registry))),
            Route::Legacy => discovery::legacy(call, &registry),
            Route::Groups => discovery::groups(call, &registry),
            Route::Group(group) => discovery::group(&registry, &group),
            Route::GroupVersion(group, version) => discovery::resources(&registry, &group, &version),
            Route::OpenApi3(None) => Ok(openapi::index(&registry)),
            Route::OpenApi3(Some(path)) => openapi::document(&registry, &path),
            Route::OpenApi2 => openapi::old(call, &registry),
            Route::Objects(_) | Route::Nothing => Err(Status::no_such_path()),
        }
    }

    async fn answer_objects(&self, call: &Call, target: &Target) -> Result<Answer, Status> {
        if let Some(review) = review::find(target) {
            return review::answer(self, call, review);
        }
        let registry = self.registry();
        let scope = Scope::find(&registry, target).map_err(|status| {
            let unknown = registry.find(&target.group, &target.version, &target.plural).is_none();
            match unsupported::resource(&target.group, &target.plural).filter(|_| unknown) {
                Some(what) => Status::not_implemented(what),
                None => status,
            }
        })?;
        let mut warnings = scope.warnings();
        warnings.extend(advice::of(call, &scope, self.system_namespace.as_deref()));
        Ok(verbs::answer(self, call, &scope, target.watch).await?.warn(warnings))
    }
}

/// Whether a Namespace is there, and whether it is going.
pub(super) fn find_namespace(api: &Api, name: &str) -> Option<Value> {
    api.store.find(NAMESPACE_TABLE, name).map(|stored| stored.value.clone())
}
