//! The kinds that every cluster has and that Conductor and its users touch. They are plain objects here: nothing
//! runs Pods, rolls Deployments out or gives Services addresses that can be reached.

use super::resource::{Flavour, Resource, Scale, Version};
use crate::schema::Library;
use serde_json::Value;
use std::sync::Arc;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Common {
    Namespace,
    Secret,
    ConfigMap,
    Service,
    EndpointSlice,
    /// Of the group without a name; what is kept.
    Event,
    /// The same Events as `events.k8s.io` serves them.
    NewEvent,
    Lease,
    Pod,
    Deployment,
    ServiceAccount,
    Crd,
}

struct Row {
    common: Common,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    status: bool,
    definition: &'static str,
    /// Fields that selectors may name.
    selectable: &'static [&'static str],
}

const ALL: &[&str] = &["all"];
const APIEXTENSIONS: &str = "apiextensions.k8s.io";
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const NEW_EVENT_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { common: Common::ConfigMap, group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", short: &["cm"], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.core.v1.ConfigMap", selectable: &[] },
    Row { common: Common::Event, group: "", version: "v1", plural: "events", kind: "Event", short: &["ev"], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.core.v1.Event", selectable: EVENT_FIELDS },
    Row { common: Common::Namespace, group: "", version: "v1", plural: "namespaces", kind: "Namespace", short: &["ns"], categories: &[], namespaced: false, status: true, definition: "io.k8s.api.core.v1.Namespace", selectable: &["status.phase"] },
    Row { common: Common::Pod, group: "", version: "v1", plural: "pods", kind: "Pod", short: &["po"], categories: ALL, namespaced: true, status: true, definition: "io.k8s.api.core.v1.Pod", selectable: POD_FIELDS },
    Row { common: Common::Secret, group: "", version: "v1", plural: "secrets", kind: "Secret", short: &[], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.core.v1.Secret", selectable: &["type"] },
    Row { common: Common::ServiceAccount, group: "", version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", short: &["sa"], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.core.v1.ServiceAccount", selectable: &[] },
    Row { common: Common::Service, group: "", version: "v1", plural: "services", kind: "Service", short: &["svc"], categories: ALL, namespaced: true, status: true, definition: "io.k8s.api.core.v1.Service", selectable: &["spec.clusterIP", "spec.type"] },
    Row { common: Common::Deployment, group: "apps", version: "v1", plural: "deployments", kind: "Deployment", short: &["deploy"], categories: ALL, namespaced: true, status: true, definition: "io.k8s.api.apps.v1.Deployment", selectable: &[] },
    Row { common: Common::NewEvent, group: "events.k8s.io", version: "v1", plural: "events", kind: "Event", short: &["ev"], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.events.v1.Event", selectable: NEW_EVENT_FIELDS },
    Row { common: Common::Lease, group: "coordination.k8s.io", version: "v1", plural: "leases", kind: "Lease", short: &[], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.coordination.v1.Lease", selectable: &[] },
    Row { common: Common::EndpointSlice, group: "discovery.k8s.io", version: "v1", plural: "endpointslices", kind: "EndpointSlice", short: &[], categories: &[], namespaced: true, status: false, definition: "io.k8s.api.discovery.v1.EndpointSlice", selectable: &[] },
    Row { common: Common::Crd, group: APIEXTENSIONS, version: "v1", plural: "customresourcedefinitions", kind: "CustomResourceDefinition", short: &["crd", "crds"], categories: &["api-extensions"], namespaced: false, status: true, definition: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", selectable: &[] },
];

/// Where CRDs are kept.
pub(crate) const CRD_TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Where Namespaces are kept.
pub(crate) const NAMESPACE_TABLE: &str = "namespaces";

/// All of them.
pub(super) fn all() -> Vec<Resource> {
    ROWS.iter().map(resource).collect()
}

/// Whether a kind is one of them.
pub(super) fn knows(api_version: &str, kind: &str) -> bool {
    ROWS.iter().any(|row| super::api_version(row.group, row.version) == api_version && row.kind == kind)
}

fn resource(row: &Row) -> Resource {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let table = match (row.common, row.group) {
        // Both kinds of Events are one.
        (Common::NewEvent, _) => "events".to_owned(),
        (_, "") => row.plural.to_owned(),
        (_, group) => format!("{}.{group}", row.plural),
    };
    let scale = (row.common == Common::Deployment).then(|| Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: None,
    });
    let schema = Library::get().node(row.definition);
    let version = Version {
        name: row.version.to_owned(),
        served: true,
        storage: true,
        deprecated: None,
        status: row.status,
        scale,
        columns: Vec::new(),
        fields: Arc::clone(&schema),
        schema,
        rules: None,
        published: Arc::new(Value::String(row.definition.to_owned())),
        selectable: texts(row.selectable),
    };
    Resource {
        table: Arc::from(table),
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: texts(row.short),
        categories: texts(row.categories),
        namespaced: row.namespaced,
        versions: vec![version],
        flavour: Flavour::Common(row.common),
    }
}
