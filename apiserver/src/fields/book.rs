//! The managed fields of an object as a book with one page per manager; read from metadata and written back.

use super::path::Step;
use super::set::FieldSet;
use crate::object;
use serde_json::{Map, Value, json};

/// Managers that only ever update and are older than the newest so many share one page.
const UPDATERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Who, how, in which version, through which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub manager: String,
    pub applies: bool,
    pub version: String,
    pub sub: String,
}

impl Who {
    /// An applier is the same in every version.
    pub fn is(&self, other: &Who) -> bool {
        self.manager == other.manager
            && self.applies == other.applies
            && self.sub == other.sub
            && (self.applies || self.version == other.version)
    }
}

/// What one manager manages, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub who: Who,
    pub time: String,
    pub set: FieldSet,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Book(pub Vec<Page>);

impl Book {
    pub fn read(object: &Value) -> Book {
        let entries =
            object::meta(object).and_then(|meta| meta.get("managedFields")).and_then(Value::as_array);
        Book(entries.into_iter().flatten().filter_map(page).collect())
    }

    pub fn find(&self, who: &Who) -> Option<&Page> {
        self.0.iter().find(|page| page.who.is(who))
    }

    /// Sets a manager's page; an empty one is torn out.
    pub fn set(&mut self, who: Who, set: FieldSet, time: &str) {
        let at = self.0.iter().position(|page| page.who.is(&who));
        match (at, set.is_empty()) {
            (Some(at), true) => drop(self.0.remove(at)),
            (None, true) => {}
            (Some(at), false) => {
                let page = &mut self.0[at];
                // A page that says the same keeps its date.
                if page.set != set || page.who != who {
                    *page = Page { who, time: time.to_owned(), set };
                }
            }
            (None, false) => self.0.push(Page { who, time: time.to_owned(), set }),
        }
    }

    /// Takes fields from everybody but one.
    pub fn take_from_others(&mut self, but: &Who, taken: &FieldSet) {
        for page in self.0.iter_mut().filter(|page| !page.who.is(but)) {
            page.set = page.set.difference(taken);
        }
        self.0.retain(|page| page.who.is(but) || !page.set.is_empty());
    }

    /// Writes itself into an object.
    pub fn write(mut self, object: &mut Value) {
        self.cap();
        let order = |page: &Page| {
            let Who { manager, applies, version, sub } = &page.who;
            (!*applies, page.time.clone(), manager.clone(), version.clone(), sub.clone())
        };
        self.0.sort_by_key(order);
        let entries: Vec<Value> = self.0.iter().map(entry).collect();
        let value = if entries.is_empty() { Value::Null } else { Value::Array(entries) };
        object::set_meta(object, "managedFields", value);
    }

    /// The oldest of too many updaters become one.
    fn cap(&mut self) {
        let mut updaters: Vec<usize> = (0..self.0.len()).filter(|at| !self.0[*at].who.applies).collect();
        if updaters.len() <= UPDATERS_MAX {
            return;
        }
        updaters.sort_by(|one, two| self.0[*one].time.cmp(&self.0[*two].time));
        let excess = updaters.len() - UPDATERS_MAX + 1;
        let mut old: Vec<usize> = updaters.into_iter().take(excess).collect();
        old.sort_unstable();
        let mut merged: Option<Page> = None;
        for at in old.into_iter().rev() {
            let page = self.0.remove(at);
            merged = Some(match merged {
                None => page,
                Some(other) => Page {
                    time: page.time.clone().max(other.time.clone()),
                    set: page.set.union(&other.set),
                    who: page.who,
                },
            });
        }
        if let Some(mut page) = merged {
            page.who = Who { manager: ANCIENT.to_owned(), sub: String::new(), ..page.who };
            self.0.push(page);
        }
    }
}

fn page(entry: &Value) -> Option<Page> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let who = Who {
        manager: text("manager"),
        applies: text("operation") == "Apply",
        version: text("apiVersion"),
        sub: text("subresource"),
    };
    Some(Page { who, time: text("time"), set: FieldSet::read(entry.get("fieldsV1")?) })
}

fn entry(page: &Page) -> Value {
    let Who { manager, applies, version, sub } = &page.who;
    let mut entry = Map::new();
    entry.insert("manager".to_owned(), manager.as_str().into());
    entry.insert("operation".to_owned(), if *applies { "Apply" } else { "Update" }.into());
    entry.insert("apiVersion".to_owned(), version.as_str().into());
    if !page.time.is_empty() {
        entry.insert("time".to_owned(), page.time.as_str().into());
    }
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), page.set.write());
    if !sub.is_empty() {
        entry.insert("subresource".to_owned(), sub.as_str().into());
    }
    Value::Object(entry)
}

/// Whether somebody asks to begin anew: one entry that says nothing.
pub(super) fn asks_for_reset(object: &Value) -> bool {
    let entries = object::meta(object).and_then(|meta| meta.get("managedFields"));
    match entries.and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => *one == json!({}),
        _ => false,
    }
}

/// What nobody manages: the server's own.
pub(super) fn unmanaged() -> FieldSet {
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[Step::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[Step::field("metadata"), Step::field(name)]);
    }
    set
}
