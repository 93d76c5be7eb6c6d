//! What a cluster's controllers do after a write, done here before the write is answered: CRDs take effect, garbage
//! is collected, namespaces on their way out are emptied. In one place, so that a world is the same each time.

use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, delete};
use crate::api::Api;
use crate::kinds;
use crate::object::{self, finalizers, is_deleting, set_meta};
use crate::registry::{CRD_TABLE, Common, NAMESPACE_TABLE, Served};
use crate::scope::{Scope, Sub};
use crate::store::{Expect, Leave, Refusal, Stored, Write};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Something to look at.
#[derive(Debug)]
enum Task {
    /// An object that is deleted or waits for its dependents.
    Object {
        table: Arc<str>,
        key: Arc<str>,
    },
    /// Those who named this object as an owner.
    Orphans {
        uid: String,
    },
    Namespace(String),
    Crd(String),
}

/// After an object was created or changed.
pub(crate) async fn after_write(api: &Api, served: &Served, stored: &Stored) {
    let value = &stored.value;
    let mut tasks = VecDeque::new();
    match served.resource.common() {
        Some(Common::Crd) => {
            settle_crd(api, served, object::name(value)).await;
            api.refresh();
            if is_deleting(value) {
                tasks.push_back(Task::Crd(object::name(value).to_owned()));
            }
        }
        Some(Common::Namespace) if is_deleting(value) => {
            tasks.push_back(Task::Namespace(object::name(value).to_owned()));
        }
        _ => {}
    }
    let collects = finalizers(value).iter().any(|one| matches!(*one, ORPHAN | FOREGROUND));
    if (is_deleting(value) && collects) || !object::owners(value).is_empty() {
        tasks.push_back(task_for(served, value));
    }
    run(api, tasks).await;
}

/// The conditions of a CRD, given the others: a write of its own, as by the controllers of a cluster.
async fn settle_crd(api: &Api, served: &Served, name: &str) {
    for _ in 0..8 {
        let Some(stored) = api.store.find(CRD_TABLE, name) else { return };
        let mut value = stored.value.clone();
        {
            let now = api.now();
            let state = api.store.read();
            let others = state.table(CRD_TABLE).into_iter().flat_map(|table| table.range("", None));
            kinds::crd_conditions(&mut value, others.map(|(_, stored)| &stored.value), &now);
        }
        if value == stored.value || is_deleting(&value) {
            return;
        }
        let table = Arc::clone(&served.resource.table);
        let expect = Expect::Revision(stored.revision);
        let write = Write { table, key: name.to_owned(), expect, leave: Leave::Put(value) };
        // Another write came first: check the object again.
        if api.store.commit(write).await.is_ok() {
            return;
        }
    }
}

/// After an object has ended.
pub(crate) async fn after_end(api: &Api, served: &Served, stored: &Stored) {
    let mut tasks = VecDeque::new();
    ended(api, served, &stored.value, &mut tasks);
    run(api, tasks).await;
}

/// Checks every object once, after a start.
pub(crate) async fn everything(api: &Api) {
    let mut tasks = VecDeque::new();
    {
        let state = api.store.read();
        for (table, objects) in state.tables() {
            for (key, stored) in objects.range("", None) {
                let (deleting, owned) =
                    (is_deleting(&stored.value), !object::owners(&stored.value).is_empty());
                if deleting && &**table == NAMESPACE_TABLE {
                    tasks.push_back(Task::Namespace(key.to_string()));
                } else if deleting && &**table == CRD_TABLE {
                    tasks.push_back(Task::Crd(key.to_string()));
                } else if deleting || owned {
                    tasks.push_back(Task::Object { table: Arc::clone(table), key: Arc::clone(key) });
                }
            }
        }
    }
    run(api, tasks).await;
}

fn task_for(served: &Served, value: &Value) -> Task {
    let key = object::key(object::namespace(value), object::name(value));
    Task::Object { table: Arc::clone(&served.resource.table), key: Arc::from(key) }
}

fn ended(api: &Api, served: &Served, value: &Value, tasks: &mut VecDeque<Task>) {
    if served.resource.common() == Some(Common::Crd) {
        api.refresh();
    }
    tasks.push_back(Task::Orphans { uid: object::uid(value).to_owned() });
    // Owners that wait for this one may now go.
    for owner in object::owners(value) {
        if let Some(task) = owner_task(api, owner, value) {
            tasks.push_back(task);
        }
    }
    let namespace = object::namespace(value);
    if !namespace.is_empty() {
        tasks.push_back(Task::Namespace(namespace.to_owned()));
    }
    if served.resource.is_custom() {
        tasks.push_back(Task::Crd(format!("{}.{}", served.resource.plural, served.resource.group)));
    }
}

async fn run(api: &Api, mut tasks: VecDeque<Task>) {
    while let Some(task) = tasks.pop_front() {
        match task {
            Task::Object { table, key } => collect(api, &table, &key, &mut tasks).await,
            Task::Orphans { uid } => {
                let owned = api.store.read().owned_by(&uid);
                tasks.extend(owned.into_iter().map(|(table, key)| Task::Object { table, key }));
            }
            Task::Namespace(name) => empty_namespace(api, &name, &mut tasks).await,
            Task::Crd(name) => empty_crd(api, &name, &mut tasks).await,
        }
    }
}

/// One object that may be garbage, or whose end waits for its dependents.
async fn collect(api: &Api, table: &Arc<str>, key: &str, tasks: &mut VecDeque<Task>) {
    let Some(stored) = api.store.find(table, key) else { return };
    let Some(served) = api.registry().find_table(table) else { return };
    let value = &stored.value;
    if is_deleting(value) {
        let all = finalizers(value);
        if all.contains(&ORPHAN) {
            orphan_dependents(api, value).await;
            drop_finalizer(api, &served, &stored, key, ORPHAN, tasks).await;
        } else if all.contains(&FOREGROUND) {
            delete_dependents(api, &served, &stored, key, tasks).await;
        }
        return;
    }
    judge(api, &served, &stored).await;
}

/// Deletes an object none of whose owners is there; drops the references to those who are not.
async fn judge(api: &Api, served: &Served, stored: &Stored) {
    let value = &stored.value;
    let owners = object::owners(value);
    let (mut solid, mut dangling, mut waiting) = (0, Vec::new(), 0);
    for owner in owners {
        match owner_state(api, owner, value) {
            OwnerState::There => solid += 1,
            OwnerState::Gone => dangling.push(owner.clone()),
            OwnerState::Waiting => waiting += 1,
        }
    }
    if solid > 0 {
        if !dangling.is_empty() {
            drop_owners(api, served, stored, &dangling).await;
        }
        return;
    }
    if dangling.is_empty() && waiting == 0 {
        return;
    }
    let propagation = match (waiting > 0, finalizers(value)) {
        (true, _) => Some(Propagation::Foreground),
        (false, all) if all.contains(&ORPHAN) => Some(Propagation::Orphan),
        (false, all) if all.contains(&FOREGROUND) => Some(Propagation::Foreground),
        (false, _) => Some(Propagation::Background),
    };
    let has_dependents = !api.store.read().owned_by(object::uid(value)).is_empty();
    let propagation =
        if waiting > 0 && !has_dependents { Some(Propagation::Background) } else { propagation };
    let options =
        DeleteOptions { propagation, uid: Some(object::uid(value).to_owned()), ..DeleteOptions::default() };
    remove(api, served, value, &options).await;
}

enum OwnerState {
    There,
    Gone,
    /// It is deleted in the foreground and waits for its dependents that block it.
    Waiting,
}

fn owner_state(api: &Api, owner: &Value, dependent: &Value) -> OwnerState {
    let Some((table, key)) = owner_place(api, owner, dependent) else {
        // An unknown kind may be installed again: conclude nothing.
        return OwnerState::There;
    };
    let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
    match api.store.find(&table, &key) {
        Some(found) if object::uid(&found.value) == uid => {
            let waits = is_deleting(&found.value) && finalizers(&found.value).contains(&FOREGROUND);
            if waits { OwnerState::Waiting } else { OwnerState::There }
        }
        Some(_) | None => OwnerState::Gone,
    }
}

/// Where an owner is or was. The owner of a cluster-wide object cannot be in a namespace.
fn owner_place(api: &Api, owner: &Value, dependent: &Value) -> Option<(Arc<str>, String)> {
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    let served = api.registry().find_kind(text("apiVersion"), text("kind"))?;
    let namespace = if served.resource.namespaced { object::namespace(dependent) } else { "" };
    if served.resource.namespaced && namespace.is_empty() {
        return None;
    }
    Some((Arc::clone(&served.resource.table), object::key(namespace, text("name"))))
}

fn owner_task(api: &Api, owner: &Value, dependent: &Value) -> Option<Task> {
    let (table, key) = owner_place(api, owner, dependent)?;
    Some(Task::Object { table, key: Arc::from(key) })
}

async fn orphan_dependents(api: &Api, owner: &Value) {
    let uid = object::uid(owner).to_owned();
    let owned = api.store.read().owned_by(&uid);
    for (table, key) in owned {
        let Some(stored) = api.store.find(&table, &key) else { continue };
        let Some(served) = api.registry().find_table(&table) else { continue };
        let theirs = object::owners(&stored.value).iter().filter(|one| one.get("uid") == Some(&json!(uid)));
        let theirs: Vec<Value> = theirs.cloned().collect();
        drop_owners(api, &served, &stored, &theirs).await;
    }
}

/// Deletes the dependents of an owner that waits for them; lets the owner go when none is left that blocks it.
async fn delete_dependents(
    api: &Api,
    served: &Served,
    stored: &Stored,
    key: &str,
    tasks: &mut VecDeque<Task>,
) {
    let uid = object::uid(&stored.value).to_owned();
    let owned = api.store.read().owned_by(&uid);
    let blocks = |value: &Value| {
        object::owners(value).iter().any(|owner| {
            owner.get("uid").and_then(Value::as_str) == Some(uid.as_str())
                && owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
        })
    };
    for (table, place) in &owned {
        let Some(dependent) = api.store.find(table, place) else { continue };
        let Some(served) = api.registry().find_table(table) else { continue };
        if !is_deleting(&dependent.value) {
            judge(api, &served, &dependent).await;
        }
    }
    let left = owned.iter().filter_map(|(table, place)| api.store.find(table, place));
    if !left.into_iter().any(|dependent| blocks(&dependent.value)) {
        drop_finalizer(api, served, stored, key, FOREGROUND, tasks).await;
    }
}

async fn drop_owners(api: &Api, served: &Served, stored: &Stored, owners: &[Value]) {
    let mut value = stored.value.clone();
    let left: Vec<Value> =
        object::owners(&value).iter().filter(|one| !owners.contains(one)).cloned().collect();
    set_meta(&mut value, "ownerReferences", if left.is_empty() { Value::Null } else { left.into() });
    let key = object::key(object::namespace(&value), object::name(&value));
    let table = Arc::clone(&served.resource.table);
    let write = Write { table, key, expect: Expect::Revision(stored.revision), leave: Leave::Put(value) };
    // The write that came first checks the object itself.
    let _ = api.store.commit(write).await;
}

async fn drop_finalizer(
    api: &Api,
    served: &Served,
    stored: &Stored,
    key: &str,
    finalizer: &str,
    tasks: &mut VecDeque<Task>,
) {
    let mut value = stored.value.clone();
    let left: Vec<Value> =
        finalizers(&value).into_iter().filter(|one| *one != finalizer).map(Value::from).collect();
    let ends = left.is_empty();
    set_meta(&mut value, "finalizers", if ends { Value::Null } else { left.into() });
    let leave = if ends { Leave::Nothing(value) } else { Leave::Put(value) };
    let table = Arc::clone(&served.resource.table);
    let write = Write { table, key: key.to_owned(), expect: Expect::Revision(stored.revision), leave };
    let again = match served.resource.common() {
        Some(Common::Crd) => Task::Crd(key.to_owned()),
        _ => Task::Object { table: Arc::clone(&served.resource.table), key: Arc::from(key) },
    };
    if let Some(stored) = commit_or_look_again(api, write, again, tasks).await
        && ends
    {
        ended(api, served, &stored.value, tasks);
    }
}

/// Commits a write of these controllers. Another run may have been faster, and its write triggers no run: then the object
/// is checked again here, or a Namespace would be left over for ever.
async fn commit_or_look_again(
    api: &Api,
    write: Write,
    again: Task,
    tasks: &mut VecDeque<Task>,
) -> Option<Arc<Stored>> {
    match api.store.commit(write).await {
        Ok(stored) => Some(stored),
        Err(Refusal::Changed) => {
            tasks.push_back(again);
            None
        }
        Err(Refusal::Exists | Refusal::Disk(_)) => None,
    }
}

/// Deletes as a client would; the delete looks after its own consequences.
fn remove<'a>(api: &'a Api, served: &Served, value: &Value, options: &'a DeleteOptions) -> BoxFuture<'a, ()> {
    let scope = Scope {
        served: served.clone(),
        namespace: object::namespace(value).to_owned(),
        name: object::name(value).to_owned(),
        sub: Sub::Whole,
    };
    // What is refused or gone already needs no more of us.
    Box::pin(async move { drop(delete(api, &scope, options).await) })
}

/// Deletes what a Namespace on its way out holds; ends it when it is empty.
async fn empty_namespace(api: &Api, name: &str, tasks: &mut VecDeque<Task>) {
    let Some(namespace) = api.store.find(NAMESPACE_TABLE, name) else { return };
    if !is_deleting(&namespace.value) {
        return;
    }
    let contents = contents(api, &format!("{name}/"));
    for (table, stored) in &contents {
        if is_deleting(&stored.value) {
            continue;
        }
        if let Some(served) = api.registry().find_table(table) {
            let options =
                DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
            remove(api, &served, &stored.value, &options).await;
        }
    }
    match self::contents(api, &format!("{name}/")).is_empty() {
        true => end_namespace(api, name, tasks).await,
        false => report_remaining(api, name, tasks).await,
    }
}

/// Says in a Namespace what its end waits for.
async fn report_remaining(api: &Api, name: &str, tasks: &mut VecDeque<Task>) {
    let Some(namespace) = api.store.find(NAMESPACE_TABLE, name) else { return };
    let mut value = namespace.value.clone();
    let left = contents(api, &format!("{name}/"));
    let left: Vec<(&str, &Value)> = left.iter().map(|(table, stored)| (&**table, &stored.value)).collect();
    kinds::namespace_remaining(&mut value, &left, &api.now());
    if value != namespace.value {
        let expect = Expect::Revision(namespace.revision);
        let write = Write {
            table: Arc::from(NAMESPACE_TABLE),
            key: name.to_owned(),
            expect,
            leave: Leave::Put(value),
        };
        commit_or_look_again(api, write, Task::Namespace(name.to_owned()), tasks).await;
    }
}

async fn end_namespace(api: &Api, name: &str, tasks: &mut VecDeque<Task>) {
    let Some(namespace) = api.store.find(NAMESPACE_TABLE, name) else { return };
    let Some(served) = api.registry().find_table(NAMESPACE_TABLE) else { return };
    let mut value = namespace.value.clone();
    let own = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut);
    if let Some(own) = own {
        own.retain(|one| one != "kubernetes");
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("finalizers").and_then(Value::as_array).is_some_and(Vec::is_empty)
    {
        spec.remove("finalizers");
    }
    let others = value.pointer("/spec/finalizers").and_then(Value::as_array).map_or(0, Vec::len);
    let ends = others == 0 && finalizers(&value).is_empty();
    if value == namespace.value && !ends {
        return;
    }
    let leave = if ends { Leave::Nothing(value) } else { Leave::Put(value) };
    let table = Arc::clone(&served.resource.table);
    let write = Write { table, key: name.to_owned(), expect: Expect::Revision(namespace.revision), leave };
    if let Some(stored) = commit_or_look_again(api, write, Task::Namespace(name.to_owned()), tasks).await
        && ends
    {
        ended(api, &served, &stored.value, tasks);
    }
}

/// Deletes the objects of a CRD on its way out; ends it when there are none.
async fn empty_crd(api: &Api, name: &str, tasks: &mut VecDeque<Task>) {
    let Some(crd) = api.store.find(CRD_TABLE, name) else { return };
    if !is_deleting(&crd.value) || !finalizers(&crd.value).contains(&CRD_CLEANUP) {
        return;
    }
    let mut value = crd.value.clone();
    kinds::crd_emptying(&mut value, &api.now());
    if value != crd.value {
        let expect = Expect::Revision(crd.revision);
        let write =
            Write { table: Arc::from(CRD_TABLE), key: name.to_owned(), expect, leave: Leave::Put(value) };
        // It is checked again below, whichever write came last.
        let _ = api.store.commit(write).await;
    }
    let objects: Vec<Arc<Stored>> = {
        let state = api.store.read();
        let table = state.table(name);
        table
            .into_iter()
            .flat_map(|table| table.range("", None))
            .map(|(_, stored)| Arc::clone(stored))
            .collect()
    };
    if let Some(served) = api.registry().find_table(name) {
        for stored in objects.iter().filter(|stored| !is_deleting(&stored.value)) {
            let options =
                DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
            remove(api, &served, &stored.value, &options).await;
        }
    }
    let left = api.store.read().table(name).map_or(0, crate::store::Table::len);
    if left > 0 {
        return;
    }
    let Some(crd) = api.store.find(CRD_TABLE, name) else { return };
    if let Some(served) = api.registry().find_table(CRD_TABLE) {
        drop_finalizer(api, &served, &crd, name, CRD_CLEANUP, tasks).await;
    }
}

/// Keeps a CRD until its objects are gone.
pub(super) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Everything whose key begins so.
fn contents(api: &Api, prefix: &str) -> Vec<(Arc<str>, Arc<Stored>)> {
    let state = api.store.read();
    let mut found = Vec::new();
    for (table, objects) in state.tables() {
        found.extend(objects.range(prefix, None).map(|(_, stored)| (Arc::clone(table), Arc::clone(stored))));
    }
    found
}
