//! A copy of the objects of one kind, found by name or by keys: a change costs what it concerns, however many objects
//! there are. Fields that only the API server and kubectl read are not kept.

use kube::ResourceExt;
use kube::api::DynamicObject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use tokio::sync::watch;

/// Kept by kubectl for itself, as large as the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What finds an object, besides its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Its own UID.
    Uid(String),
    /// The id of its database.
    Id(String),
    /// The UID of the claim that it belongs to or that holds it.
    Claim(String),
    /// The claim that it is on or is to be restored for, as `namespace/name`.
    ClaimNamed(String),
    /// The resource that it belongs to, by name.
    Resource(String),
    /// The resource that it was created for, by UID.
    MadeFor(String),
    /// The server that it is on, as `Kind/name`.
    Server(String),
}

/// The keys of an object.
pub(super) type Keys = fn(&DynamicObject) -> Vec<Key>;

/// For kinds that are found by name only.
pub(super) fn no_keys(_: &DynamicObject) -> Vec<Key> {
    Vec::new()
}

/// The reading side of a copy.
#[derive(Clone)]
pub(super) struct Store {
    kept: Arc<RwLock<Kept>>,
    is_listed: watch::Receiver<bool>,
}

#[derive(Default)]
struct Kept {
    /// By `namespace/name`.
    objects: BTreeMap<Arc<str>, Arc<DynamicObject>>,
    found_by: BTreeSet<(Key, Arc<str>)>,
}

/// The writing side of a copy.
pub(super) struct StoreWriter {
    keys: Keys,
    kept: Arc<RwLock<Kept>>,
    is_listed: watch::Sender<bool>,
}

/// An empty copy.
pub(super) fn store(keys: Keys) -> (Store, StoreWriter) {
    let kept = Arc::new(RwLock::new(Kept::default()));
    let (written, is_listed) = watch::channel(false);
    let writer = StoreWriter { keys, kept: Arc::clone(&kept), is_listed: written };
    (Store { kept, is_listed }, writer)
}

impl Store {
    /// The object of this name; `namespace` is empty for cluster-scoped kinds.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.read(|kept| kept.objects.get(place(namespace, name).as_str()).cloned())
    }

    /// The objects with this key, by name.
    pub fn by(&self, key: &Key) -> Vec<Arc<DynamicObject>> {
        self.read(|kept| {
            let from = (key.clone(), Arc::from(""));
            let found = kept.found_by.range(from..).take_while(|(own, _)| own == key);
            found.filter_map(|(_, place)| kept.objects.get(place).cloned()).collect()
        })
    }

    /// The first object with this key.
    pub fn first(&self, key: &Key) -> Option<Arc<DynamicObject>> {
        self.by(key).into_iter().next()
    }

    /// Every object, by name.
    pub fn all(&self) -> Vec<Arc<DynamicObject>> {
        self.read(|kept| kept.objects.values().cloned().collect())
    }

    pub fn len(&self) -> usize {
        self.read(|kept| kept.objects.len())
    }

    /// Waits until everything has been listed once.
    pub async fn wait_until_listed(&self) {
        // Without a writer the provider is ending.
        let _ = self.is_listed.clone().wait_for(|is_listed| *is_listed).await;
    }

    fn read<T>(&self, query: impl FnOnce(&Kept) -> T) -> T {
        query(&self.kept.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl StoreWriter {
    /// Replaces everything by a new list.
    pub fn replace(&self, objects: Vec<DynamicObject>) {
        let mut listed = Kept::default();
        objects.into_iter().for_each(|object| listed.put(&Arc::new(trimmed(object)), self.keys));
        *self.write() = listed;
        self.is_listed.send_replace(true);
    }

    pub fn put(&self, object: DynamicObject) -> Arc<DynamicObject> {
        let object = Arc::new(trimmed(object));
        self.write().put(&object, self.keys);
        object
    }

    pub fn strike(&self, object: DynamicObject) -> Arc<DynamicObject> {
        let object = Arc::new(trimmed(object));
        self.write().strike(&object, self.keys);
        object
    }

    pub fn has_any(&self) -> bool {
        !self.kept.read().unwrap_or_else(PoisonError::into_inner).objects.is_empty()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn put(&mut self, object: &Arc<DynamicObject>, keys: Keys) {
        self.strike(object, keys);
        let place: Arc<str> = place_of(object).into();
        self.found_by.extend(keys(object).into_iter().map(|key| (key, Arc::clone(&place))));
        self.objects.insert(place, Arc::clone(object));
    }

    /// Removes the object of the same name.
    fn strike(&mut self, object: &DynamicObject, keys: Keys) {
        if let Some((place, before)) = self.objects.remove_entry(place_of(object).as_str()) {
            for key in keys(&before) {
                self.found_by.remove(&(key, Arc::clone(&place)));
            }
        }
    }
}

fn place_of(object: &DynamicObject) -> String {
    place(object.metadata.namespace.as_deref().unwrap_or_default(), &object.name_any())
}

fn place(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Without what only the API and kubectl read.
fn trimmed(mut object: DynamicObject) -> DynamicObject {
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn held(name: &str, by: &[&str]) -> DynamicObject {
        let object = json!({"metadata": {"name": name, "namespace": "n"}, "holders": by});
        serde_json::from_value(object).unwrap()
    }

    fn holders(object: &DynamicObject) -> Vec<Key> {
        let all = object.data["holders"].as_array().into_iter().flatten();
        all.filter_map(|uid| Some(Key::Claim(uid.as_str()?.to_owned()))).collect()
    }

    fn names(store: &Store, claim: &str) -> Vec<String> {
        store.by(&Key::Claim(claim.to_owned())).iter().map(|object| object.name_any()).collect()
    }

    #[test]
    fn a_key_that_an_object_lost_no_longer_finds_it() {
        let (store, writer) = store(holders);
        writer.put(held("b", &["one", "two"]));
        writer.put(held("a", &["one"]));
        assert_eq!(names(&store, "one"), ["a", "b"]);
        writer.put(held("b", &["two"]));
        assert_eq!(
            (names(&store, "one"), names(&store, "two")),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        writer.strike(held("b", &[]));
        assert!(names(&store, "two").is_empty());
        assert!(store.find("n", "b").is_none());
        assert_eq!(store.read(|kept| kept.found_by.len()), 1);
    }

    #[test]
    fn a_list_replaces_what_was_known() {
        let (store, writer) = store(holders);
        writer.put(held("old", &["one"]));
        writer.replace(vec![held("new", &["one"])]);
        assert_eq!(names(&store, "one"), ["new"]);
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn fields_of_kubectl_and_the_api_are_not_kept() {
        let object = json!({"metadata": {
            "name": "a", "annotations": {LAST_APPLIED: "{}", "mine": "yes"},
            "managedFields": [{"manager": "kubectl"}],
        }});
        let (store, writer) = store(no_keys);
        writer.put(serde_json::from_value(object).unwrap());
        let kept = store.find("", "a").unwrap();
        assert!(kept.metadata.managed_fields.is_none());
        assert_eq!(kept.annotations().keys().collect::<Vec<_>>(), ["mine"]);
    }
}
