//! What an object of a common kind is before anything is set: the structs that are always there. It decides which
//! fields count as added when an object is created.

use crate::registry::{Common, Served};
use serde_json::{Value, json};

/// The empty object of a resource.
pub(super) fn zero(served: &Served) -> Value {
    match served.resource.common() {
        None => json!({}),
        Some(Common::Namespace) => json!({"metadata": {}, "spec": {}, "status": {}}),
        Some(Common::Secret | Common::ConfigMap | Common::ServiceAccount) => json!({"metadata": {}}),
        Some(Common::Service) => json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        Some(Common::EndpointSlice) => {
            json!({"metadata": {}, "addressType": "", "endpoints": null, "ports": null})
        }
        Some(Common::Event) => json!({
            "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": "",
        }),
        Some(Common::NewEvent) => json!({
            "metadata": {}, "regarding": {}, "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
            "deprecatedLastTimestamp": null, "eventTime": null,
        }),
        Some(Common::Lease) => json!({"metadata": {}, "spec": {}}),
        Some(Common::Pod) => json!({"metadata": {}, "spec": {"containers": null}, "status": {}}),
        Some(Common::Deployment) => json!({
            "metadata": {},
            "spec": {
                "selector": null,
                "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        }),
        Some(Common::Crd) => json!({
            "metadata": {},
            "spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
        }),
    }
}
