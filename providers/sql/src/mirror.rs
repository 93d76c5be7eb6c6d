//! A copy of the objects of one kind, found by name or by what they tell of others: a change costs what it concerns,
//! however many objects there are. What nobody here reads is not kept.

use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// Kept by kubectl for itself, as large as the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What an object is found by, besides its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Its own UID.
    Uid(String),
    /// The id of its database.
    Id(String),
    /// The UID of a claim that it is of, or is held by.
    Claim(String),
    /// A claim that it is on or is asked back for, as `namespace/name`.
    ClaimNamed(String),
    /// The resource that it is of, by name.
    Resource(String),
    /// The resource that it was made for, by UID.
    MadeFor(String),
    /// The server that it is on, as `Kind/name`.
    Server(String),
}

/// The keys of an object.
pub(super) type Keys = fn(&DynamicObject) -> Vec<Key>;

/// For kinds that are only found by name.
pub(super) fn no_keys(_: &DynamicObject) -> Vec<Key> {
    Vec::new()
}

/// A copy, to be read.
#[derive(Clone)]
pub(super) struct Mirror {
    kept: Arc<RwLock<Kept>>,
    is_listed: watch::Receiver<bool>,
}

#[derive(Default)]
struct Kept {
    /// By `namespace/name`.
    objects: BTreeMap<Arc<str>, Arc<DynamicObject>>,
    found_by: BTreeSet<(Key, Arc<str>)>,
}

/// Who writes the copy.
pub(super) struct Scribe {
    keys: Keys,
    kept: Arc<RwLock<Kept>>,
    /// What a list that is not at its end has told.
    listing: Option<Kept>,
    is_listed: watch::Sender<bool>,
}

/// What has changed for those who read.
pub(super) enum News {
    /// An object has changed, or gone.
    Changed(Arc<DynamicObject>),
    /// A list was read anew.
    Everything,
}

/// An empty copy, and who writes it.
pub(super) fn mirror(keys: Keys) -> (Mirror, Scribe) {
    let kept = Arc::new(RwLock::new(Kept::default()));
    let (written, is_listed) = watch::channel(false);
    let scribe = Scribe { keys, kept: Arc::clone(&kept), listing: None, is_listed: written };
    (Mirror { kept, is_listed }, scribe)
}

impl Mirror {
    /// The object of this name; of no namespace where that is empty.
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
        // Without a writer everything is at its end.
        let _ = self.is_listed.clone().wait_for(|is_listed| *is_listed).await;
    }

    fn read<T>(&self, look: impl FnOnce(&Kept) -> T) -> T {
        look(&self.kept.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Scribe {
    /// Writes down what a watch tells; says what that is to others, once it can be read.
    pub fn note(&mut self, event: Event<DynamicObject>) -> Option<News> {
        match event {
            Event::Init => {
                self.listing = Some(Kept::default());
                None
            }
            Event::InitApply(object) => {
                self.listing.get_or_insert_default().put(&Arc::new(trimmed(object)), self.keys);
                None
            }
            Event::InitDone => {
                self.write(|kept, listing, _| *kept = listing.take().unwrap_or_default());
                self.is_listed.send_replace(true);
                Some(News::Everything)
            }
            Event::Apply(object) => {
                let object = Arc::new(trimmed(object));
                self.write(|kept, _, keys| kept.put(&object, keys));
                Some(News::Changed(object))
            }
            Event::Delete(object) => {
                let object = Arc::new(trimmed(object));
                self.write(|kept, _, keys| kept.strike(&object, keys));
                Some(News::Changed(object))
            }
        }
    }

    pub fn has_any(&self) -> bool {
        !self.kept.read().unwrap_or_else(PoisonError::into_inner).objects.is_empty()
    }

    fn write(&mut self, change: impl FnOnce(&mut Kept, &mut Option<Kept>, Keys)) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut kept, &mut self.listing, self.keys);
    }
}

impl Kept {
    fn put(&mut self, object: &Arc<DynamicObject>, keys: Keys) {
        self.strike(object, keys);
        let place: Arc<str> = place_of(object).into();
        self.found_by.extend(keys(object).into_iter().map(|key| (key, Arc::clone(&place))));
        self.objects.insert(place, Arc::clone(object));
    }

    /// Strikes whatever is in the place of this object.
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

    fn names(mirror: &Mirror, claim: &str) -> Vec<String> {
        mirror.by(&Key::Claim(claim.to_owned())).iter().map(|object| object.name_any()).collect()
    }

    #[test]
    fn what_an_object_no_longer_tells_no_longer_finds_it() {
        let (mirror, mut scribe) = mirror(holders);
        scribe.note(Event::Apply(held("b", &["one", "two"])));
        scribe.note(Event::Apply(held("a", &["one"])));
        assert_eq!(names(&mirror, "one"), ["a", "b"]);
        scribe.note(Event::Apply(held("b", &["two"])));
        assert_eq!(
            (names(&mirror, "one"), names(&mirror, "two")),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        scribe.note(Event::Delete(held("b", &[])));
        assert!(names(&mirror, "two").is_empty());
        assert!(mirror.find("n", "b").is_none());
        assert_eq!(mirror.read(|kept| kept.found_by.len()), 1);
    }

    #[test]
    fn a_list_takes_the_place_of_what_was_known_when_it_is_whole() {
        let (mirror, mut scribe) = mirror(holders);
        scribe.note(Event::Apply(held("old", &["one"])));
        scribe.note(Event::Init);
        scribe.note(Event::InitApply(held("new", &["one"])));
        assert_eq!(names(&mirror, "one"), ["old"]);
        assert!(matches!(scribe.note(Event::InitDone), Some(News::Everything)));
        assert_eq!(names(&mirror, "one"), ["new"]);
        assert_eq!(mirror.len(), 1);
    }

    #[test]
    fn what_nobody_reads_is_not_kept() {
        let object = json!({"metadata": {
            "name": "a", "annotations": {LAST_APPLIED: "{}", "mine": "yes"},
            "managedFields": [{"manager": "kubectl"}],
        }});
        let (mirror, mut scribe) = mirror(no_keys);
        scribe.note(Event::Apply(serde_json::from_value(object).unwrap()));
        let kept = mirror.find("", "a").unwrap();
        assert!(kept.metadata.managed_fields.is_none());
        assert_eq!(kept.annotations().keys().collect::<Vec<_>>(), ["mine"]);
    }
}
