//! Metadata of an object: identity, age, finalizers, labels. Parsed leniently, because it comes from the API server.

use super::key::{Name, ObjectKey, Revision, Time, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self, ObjectMeta};
use std::collections::BTreeMap;

/// Identity and lifecycle of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The UID, which differs for an object that is recreated with the same name.
    pub uid: Uid,
    /// The resourceVersion.
    pub revision: Revision,
    /// The generation of its spec.
    pub generation: i64,
    /// The time of creation, if known.
    pub created: Option<Time>,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// Its finalizers.
    pub finalizers: Box<[Name]>,
}

impl Meta {
    /// Parses the metadata. An object that was never sent to an API server has no UID: its key replaces it, so that a plan
    /// over hand-written manifests can distinguish objects.
    pub fn read(metadata: &ObjectMeta) -> Meta {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, name);
        let uid = metadata.uid.as_deref().map_or_else(|| uid_from_key(&key), Uid::from);
        Meta {
            key,
            uid,
            revision: Revision::read(metadata.resource_version.as_deref()),
            generation: metadata.generation.unwrap_or(0),
            created: metadata.creation_timestamp.as_ref().map(time),
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.iter().flatten().map(|f| Name::from(f.as_str())).collect(),
        }
    }

    /// Whether `finalizer` is among its finalizers.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| &**f == finalizer)
    }
}

fn uid_from_key(key: &ObjectKey) -> Uid {
    Uid::from(format!("unassigned:{key}"))
}

fn time(time: &v1::Time) -> Time {
    Time(time.0.as_millisecond())
}

/// An object's labels, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Box<[(Name, Name)]>);

impl Labels {
    /// Reads the labels of a metadata map.
    pub fn read(labels: Option<&BTreeMap<String, String>>) -> Labels {
        let pair = |(k, v): (&String, &String)| (Name::from(k.as_str()), Name::from(v.as_str()));
        Labels(labels.into_iter().flatten().map(pair).collect())
    }

    /// The labels as in metadata; None if there are none.
    pub fn to_map(&self) -> Option<BTreeMap<String, String>> {
        let pairs = self.0.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        (!self.0.is_empty()).then(|| pairs.collect())
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Every pair, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = &(Name, Name)> {
        self.0.iter()
    }

    /// The labels whose key passes `keep`.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Labels {
        Labels(self.0.iter().filter(|(k, _)| keep(k)).cloned().collect())
    }
}

/// A condition of a status, to write only what changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionView {
    /// The condition type: `Bound`, `Ready`, or one of another controller.
    pub kind: Name,
    /// True, False or Unknown.
    pub status: Name,
    /// The machine-readable reason.
    pub reason: Name,
    /// The message for people.
    pub message: Name,
    /// When `status` last changed, as written.
    pub since: Name,
}
