//! What every object has: identity, age, finalizers, labels. Read leniently: metadata comes from the API server.

use super::key::{Name, ObjectKey, Revision, Time, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self, ObjectMeta};
use std::collections::BTreeMap;

/// Identity and bookkeeping of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Where it is.
    pub key: ObjectKey,
    /// Which life of that name it is.
    pub uid: Uid,
    /// How far it has come.
    pub revision: Revision,
    /// The generation of its spec.
    pub generation: i64,
    /// When it was created, where known.
    pub created: Option<Time>,
    /// Whether its deletion has been asked for.
    pub deleting: bool,
    /// Who must agree before it goes.
    pub finalizers: Box<[Name]>,
}

impl Meta {
    /// Reads the metadata. An object that was never sent to an API server has no UID:
    /// its key stands in, so that a plan over hand-written manifests can still tell objects apart.
    pub fn read(metadata: &ObjectMeta) -> Meta {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, name);
        let uid = metadata.uid.as_deref().map_or_else(|| stand_in_uid(&key), Uid::from);
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

fn stand_in_uid(key: &ObjectKey) -> Uid {
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

    /// The labels as metadata has them; nothing where there are none.
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

/// A condition as read from a status, kept so that unchanged ones are not written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionView {
    /// `Bound`, `Ready`, or another controller's.
    pub kind: Name,
    /// True, False or Unknown.
    pub status: Name,
    /// One word for machines.
    pub reason: Name,
    /// A sentence for people.
    pub message: Name,
    /// When `status` last changed, as written.
    pub since: Name,
}
