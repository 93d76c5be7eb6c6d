//! The API of one test. The tests of one binary share the real control plane, one test at a time: a controller sees every
//! claim of its cluster, so two of them would write each other's. Each test has its own embedded one.

use crate::site::{Side, Site};
use conductor::api;
use conductor::model::{Kind, TypeId};
use conductor_controlplane::ControlPlane;
use http::Request;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use tower::{BoxError, Layer, Service};

/// The namespace of resources and classes.
pub const SYSTEM: &str = "conductor-system";

static SHARED: tokio::sync::Mutex<Weak<Cluster>> = tokio::sync::Mutex::const_new(Weak::new());

#[derive(Debug)]
struct Cluster {
    site: Site,
    free: Arc<tokio::sync::Mutex<()>>,
}

/// One test's turn on the control plane: clean when it begins.
pub struct Turn {
    // Dropped before the cluster.
    _busy: tokio::sync::OwnedMutexGuard<()>,
    cluster: Arc<Cluster>,
    config: Config,
    client: Client,
}

/// A path of the repository.
pub fn root(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// Waits for this test's turn on the real control plane, which is started for the first and ends with the last.
///
/// # Panics
/// When the control plane does not start.
pub async fn turn() -> Turn {
    turn_on(Side::Real).await
}

/// As [`turn`], on either API.
///
/// # Panics
/// When the API does not start.
pub async fn turn_on(side: Side) -> Turn {
    let cluster = match side {
        Side::Real => shared().await,
        Side::Embedded => Arc::new(Cluster::start(side).await),
    };
    let busy = Arc::clone(&cluster.free).lock_owned().await;
    let config = conductor_controller::find_cluster(Some(cluster.site.kubeconfig()), None)
        .await
        .expect("the kubeconfig is ours");
    // The test's own calls are not under test: retry while the server starts.
    let mut patient = config.clone();
    patient.default_retry = true;
    let client = Client::try_from(patient).expect("its certificates are ours");
    let turn = Turn { _busy: busy, cluster, config, client };
    turn.clear().await;
    turn.namespace(SYSTEM).await;
    turn
}

async fn shared() -> Arc<Cluster> {
    let mut shared = SHARED.lock().await;
    if let Some(cluster) = shared.upgrade() {
        return cluster;
    }
    let cluster = Arc::new(Cluster::start(Side::Real).await);
    *shared = Arc::downgrade(&cluster);
    cluster
}

impl Cluster {
    async fn start(side: Side) -> Cluster {
        let cluster = Cluster { site: Site::start(side).await, free: Arc::default() };
        let crds = root("crds").display().to_string();
        cluster.kubectl(&["apply", "--server-side", "-f", &crds]);
        cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
        cluster
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.site.kubectl_with_input(arguments, "");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {err}{out}", arguments.join(" "));
        out.into_owned()
    }
}

impl Turn {
    /// The real control plane itself.
    ///
    /// # Panics
    /// On the embedded API, which has no processes.
    pub fn plane(&self) -> &ControlPlane {
        match &self.cluster.site {
            Site::Real(plane) => plane,
            Site::Embedded(_) => panic!("the embedded API has no processes"),
        }
    }

    /// Runs kubectl as the administrator and returns its output.
    ///
    /// # Panics
    /// It fails; the message has its output.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(arguments)
    }

    /// Applies an object with kubectl, as the administrator.
    ///
    /// # Panics
    /// The API refuses it; the message has kubectl's output.
    #[track_caller]
    pub fn apply(&self, object: &Value) {
        let output = self.cluster.site.kubectl_with_input(&["apply", "-f", "-"], &object.to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The output of kubectl, whether it succeeds or not.
    pub fn try_kubectl(&self, arguments: &[&str]) -> String {
        let output = self.cluster.site.kubectl_with_input(arguments, "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The administrator's client for the test's own calls; retries while the server is not ready.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for a controller, without retries.
    pub fn controller_client(&self) -> Client {
        conductor_controller::connect(self.config.clone()).expect("its certificates are ours")
    }

    /// A client for a controller with the rights of a service account in the system namespace only.
    pub fn account_client(&self, account: &str) -> Client {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(format!("system:serviceaccount:{SYSTEM}:{account}"));
        config.auth_info.impersonate_groups =
            Some(vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{SYSTEM}")]);
        conductor_controller::connect(config).expect("its certificates are ours")
    }

    /// A client through the test's layer, with its own connections.
    pub fn client_through<L>(&self, layer: &L) -> Client
    where
        L: Layer<BoxService>,
        L::Service: Service<Request<Body>, Response = http::Response<Body>> + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError>,
    {
        let builder = ClientBuilder::try_from(self.config.clone()).expect("its certificates are ours");
        let client = builder.build();
        let send = move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        };
        let service = BoxService::new(tower::service_fn(send));
        Client::new(layer.layer(service), "default")
    }

    /// Creates a namespace if it does not exist.
    pub async fn namespace(&self, name: &str) {
        self.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }

    /// The objects of a kind, in a namespace.
    pub fn objects(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = resource(&kind.api_version(), kind.name());
        match kind.is_cluster_scoped() {
            true => Api::all_with(self.client(), &resource),
            false => Api::namespaced_with(self.client(), namespace, &resource),
        }
    }

    /// Applies an object, as `kubectl apply` does; returns the result.
    ///
    /// # Panics
    /// When the API refuses it.
    pub async fn put(&self, object: Value) -> DynamicObject {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let resource = resource(&text("/apiVersion"), &text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let api: Api<DynamicObject> = match namespace.is_empty() {
            true => Api::all_with(self.client(), &resource),
            false => Api::namespaced_with(self.client(), &namespace, &resource),
        };
        let parameters = PatchParams::apply("test").force();
        api.patch(&name, &parameters, &Patch::Apply(&object)).await.expect("the API takes it")
    }

    /// Creates a new object.
    ///
    /// # Panics
    /// When the API refuses it.
    pub async fn create(&self, kind: Kind, namespace: &str, object: Value) -> DynamicObject {
        let object = serde_json::from_value(object).expect("it has metadata");
        self.objects(kind, namespace).create(&PostParams::default(), &object).await.expect("the API takes it")
    }

    /// Reads a claim.
    pub async fn claim(&self, namespace: &str, name: &str) -> Option<DynamicObject> {
        let api = self.objects(Kind::Claim(TypeId::RELATIONAL_DATABASE), namespace);
        api.get_opt(name).await.expect("the API answers")
    }

    /// Reads a resource.
    pub async fn resource(&self, name: &str) -> Option<DynamicObject> {
        let api = self.objects(Kind::Resource(TypeId::RELATIONAL_DATABASE), SYSTEM);
        api.get_opt(name).await.expect("the API answers")
    }

    /// Removes every object of ours, finalizers or not. Namespaces stay: no controller here finishes their deletion.
    pub async fn clear(&self) {
        let ty = TypeId::RELATIONAL_DATABASE;
        let kinds = [Kind::Claim(ty), Kind::Resource(ty), Kind::Class(ty)];
        let others = [Kind::Quota, Kind::ClusterQuota, Kind::Limits, Kind::Profile];
        for kind in kinds.into_iter().chain(others) {
            let all: Api<DynamicObject> =
                Api::all_with(self.client(), &resource(&kind.api_version(), kind.name()));
            let listed = all.list(&ListParams::default()).await.expect("the API lists");
            for object in listed {
                let name = object.metadata.name.unwrap_or_default();
                let api = self.objects(kind, &object.metadata.namespace.unwrap_or_default());
                let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                // Deleted already.
                let _ = api.patch(&name, &PatchParams::default(), &bare).await;
                let _ = api.delete(&name, &DeleteParams::default()).await;
            }
        }
        let lease = "/apis/coordination.k8s.io/v1/namespaces/conductor-system/leases/conductor";
        let request = Request::delete(lease).body(Vec::new()).expect("it is a path");
        let _ = self.client().request::<Value>(request).await;
    }
}

/// The innermost service of a client that goes through a test's layer.
pub type BoxService = tower::util::BoxService<Request<Body>, http::Response<Body>, BoxError>;

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let crds = api::crds();
    let known = crds.iter().find(|crd| crd.spec.names.kind == kind && crd.spec.group == group);
    let plural = known.map_or_else(|| format!("{}s", kind.to_lowercase()), |c| c.spec.names.plural.clone());
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural,
    }
}
