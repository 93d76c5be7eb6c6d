//! What Kubernetes does and the embedded API deliberately does not, in one list. A request for any of it gets a
//! Status with code 501 that names it, never a wrong answer.
//!
//! Absent without a path of their own: admission webhooks and policies, RBAC (every known token may do everything),
//! quotas, conversion webhooks, aggregated APIs, protocol buffers in answers, CBOR, impersonation, and everything that runs
//! in a cluster: nothing schedules Pods, rolls Deployments out or makes Services reachable.

/// Group, plural, what is absent.
const RESOURCES: &[(&str, &str, &str)] = &[
    ("", "nodes", "Nodes: nothing runs here"),
    ("", "persistentvolumes", "PersistentVolumes: nothing runs here"),
    ("", "persistentvolumeclaims", "PersistentVolumeClaims: nothing runs here"),
    ("", "replicationcontrollers", "ReplicationControllers"),
    ("", "resourcequotas", "ResourceQuotas of Kubernetes"),
    ("", "limitranges", "LimitRanges of Kubernetes"),
    ("", "endpoints", "Endpoints: EndpointSlices are served"),
    ("", "podtemplates", "PodTemplates"),
    ("", "componentstatuses", "ComponentStatuses"),
    ("", "bindings", "the binding of Pods to Nodes"),
    ("apps", "replicasets", "ReplicaSets: Deployments are not rolled out"),
    ("apps", "statefulsets", "StatefulSets"),
    ("apps", "daemonsets", "DaemonSets"),
    ("apps", "controllerrevisions", "ControllerRevisions"),
    ("authorization.k8s.io", "subjectaccessreviews", "reviews of others: only one's own access is reviewed"),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "reviews of others: only one's own access is reviewed",
    ),
    ("authentication.k8s.io", "tokenreviews", "reviews of tokens"),
];

/// Whole groups.
const GROUPS: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "admission webhooks and policies"),
    ("apiregistration.k8s.io", "aggregated APIs"),
    ("autoscaling", "autoscaling: scales of objects are served, autoscalers are not"),
    ("batch", "Jobs and CronJobs"),
    ("certificates.k8s.io", "certificate signing"),
    ("flowcontrol.apiserver.k8s.io", "priority and fairness"),
    ("networking.k8s.io", "Ingresses and network policies"),
    ("node.k8s.io", "RuntimeClasses"),
    ("policy", "PodDisruptionBudgets"),
    ("rbac.authorization.k8s.io", "RBAC: every known token may do everything"),
    ("resource.k8s.io", "dynamic resource allocation"),
    ("scheduling.k8s.io", "PriorityClasses"),
    ("storage.k8s.io", "storage of Pods"),
    ("storagemigration.k8s.io", "storage migration"),
    ("internal.apiserver.k8s.io", "the API server's own versions"),
];

/// Plural, subresource, what is absent.
const SUBRESOURCES: &[(&str, &str, &str)] = &[
    ("pods", "log", "logs of Pods: nothing runs here"),
    ("pods", "exec", "commands in Pods: nothing runs here"),
    ("pods", "attach", "attaching to Pods: nothing runs here"),
    ("pods", "portforward", "forwarding to Pods: nothing runs here"),
    ("pods", "proxy", "proxies to Pods: nothing runs here"),
    ("pods", "binding", "the binding of Pods to Nodes"),
    ("pods", "eviction", "eviction of Pods: delete them"),
    ("pods", "ephemeralcontainers", "containers added to Pods: nothing runs here"),
    ("pods", "resize", "resizing of Pods: nothing runs here"),
    ("services", "proxy", "proxies to Services: nothing runs here"),
    ("serviceaccounts", "token", "tokens of ServiceAccounts"),
];

/// What is absent under a group and plural that are not served.
pub(super) fn resource(group: &str, plural: &str) -> Option<&'static str> {
    let whole = GROUPS.iter().find(|(found, _)| *found == group).map(|(_, what)| *what);
    let single = RESOURCES.iter().find(|(found, name, _)| (*found, *name) == (group, plural));
    whole.or(single.map(|(.., what)| *what))
}

/// What is absent under a subresource that is not served.
pub(super) fn subresource(plural: &str, sub: &str) -> Option<&'static str> {
    SUBRESOURCES.iter().find(|(found, name, _)| (*found, *name) == (plural, sub)).map(|(.., what)| *what)
}
