//! Many clusters in one: a scope narrows what a controller lists and watches to the namespaces of one trial, so that
//! trials run side by side on one API server. Does not change names in calls on single objects.

use http::{Request, Uri};
use kube::client::Body;

/// One trial's part of the cluster.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The namespace of its claims.
    pub namespace: String,
}

/// Kinds that live in namespaces and are listed over all of them.
const NAMESPACED: [&str; 9] = [
    "relationaldatabaseclaims",
    "databaseroles",
    "databasegrants",
    "databaseclaims",
    "claimquotas",
    "claimlimits",
    "configmaps",
    "services",
    "endpointslices",
];
/// Kinds without a namespace; a trial's own carry its name in the label `trial`.
const LABELLED: [&str; 2] = ["clusterclaimquotas", "schedulingprofiles"];

impl Scope {
    /// The request, narrowed to this trial's part.
    pub fn narrow(&self, mut request: Request<Body>) -> Request<Body> {
        if let Some(uri) = self.narrow_uri(request.uri()) {
            *request.uri_mut() = uri;
        }
        request
    }

    fn narrow_uri(&self, uri: &Uri) -> Option<Uri> {
        let (base, plural) = uri.path().rsplit_once('/')?;
        let query = uri.query().unwrap_or_default();
        let namespace = &self.namespace;
        let narrowed = match plural {
            "namespaces" => format!("{base}/{plural}?{query}&fieldSelector=metadata.name%3D{namespace}"),
            _ if base.contains("/namespaces/") => return None,
            plural if NAMESPACED.contains(&plural) => {
                format!("{base}/namespaces/{namespace}/{plural}?{query}")
            }
            plural if LABELLED.contains(&plural) => {
                format!("{base}/{plural}?{query}&labelSelector=trial%3D{namespace}")
            }
            _ => return None,
        };
        narrowed.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_narrowed_and_single_objects_are_not() {
        let scope = Scope { namespace: "t1".to_owned() };
        for (uri, narrowed) in [
            (
                "/apis/g/v1/relationaldatabaseclaims?watch=true",
                Some("/apis/g/v1/namespaces/t1/relationaldatabaseclaims?watch=true"),
            ),
            ("/apis/g/v1/namespaces/t1/relationaldatabaseclaims/x", None),
            ("/api/v1/configmaps?labelSelector=x", Some("/api/v1/namespaces/t1/configmaps?labelSelector=x")),
            ("/apis/g/v1/namespaces/t1/relationaldatabaseclaims", None),
            ("/apis/g/v1/namespaces/t1-system/relationaldatabases?limit=5", None),
            (
                "/api/v1/namespaces?limit=5",
                Some("/api/v1/namespaces?limit=5&fieldSelector=metadata.name%3Dt1"),
            ),
            (
                "/apis/g/v1/schedulingprofiles",
                Some("/apis/g/v1/schedulingprofiles?&labelSelector=trial%3Dt1"),
            ),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(scope.narrow_uri(&uri).map(|u| u.to_string()).as_deref(), narrowed, "{uri}");
        }
    }
}
