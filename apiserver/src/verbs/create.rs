//! New objects: named or given a name, admitted to their namespace, checked, kept.

use super::{ATTEMPTS, broken, builtin_controllers};
use crate::admit::{check, prepare_created, read_object};
use crate::answer::{Answer, Content};
use crate::api::{Api, find_namespace};
use crate::call::{Call, WriteOptions};
use crate::encode::{self, to_kept};
use crate::fields::{Manager, track_update};
use crate::object::{self, meta_text, set_meta};
use crate::registry::{CRD_TABLE, Served};
use crate::scope::{Scope, Sub};
use crate::status::{Named, Status};
use crate::store::{Expect, Leave, Refusal, Stored, Write};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let options = WriteOptions::read(call, "CreateOptions")?;
    let (object, warnings) = read_object(call, &scope.served, &options)?;
    let manager = Manager::of(call, scope.sub, api.now());
    let stored = create(api, scope, object, &manager, options.dry_run).await?;
    let content = Content::Json(encode::object(&stored, &scope.served, wanted.shape));
    Ok(Answer::of(StatusCode::CREATED, content).warn(warnings))
}

/// Creates an object on the server's own behalf.
pub(crate) async fn plant(api: &Api, mut object: Value) -> Result<Arc<Stored>, Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let served =
        api.registry().find_kind(&text("apiVersion"), &text("kind")).ok_or_else(Status::no_such_path)?;
    let namespace = object::namespace(&object).to_owned();
    crate::admit::fit(&mut object, &served);
    let scope = Scope { served, namespace, name: String::new(), sub: Sub::Whole };
    let manager = Manager::named("kube-apiserver", api.now());
    create(api, &scope, object, &manager, false).await
}

/// Creates an object that has been read and fitted to its schema.
pub(super) async fn create(
    api: &Api,
    scope: &Scope,
    mut object: Value,
    manager: &Manager,
    dry_run: bool,
) -> Result<Arc<Stored>, Status> {
    let served = &scope.served;
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        set_meta(&mut object, field, Value::Null);
    }
    match_namespace(&mut object, scope)?;
    admit_to_namespace(api, scope, &object)?;
    admit_to_kind(api, scope, object::name(&object))?;
    if meta_text(&object, "resourceVersion").is_some() {
        return Err(Status::plain("resourceVersion should not be set on objects to be created"));
    }
    let prefix = meta_text(&object, "generateName").map(str::to_owned);
    let generated = object::name(&object).is_empty() && prefix.is_some();
    let mut tried = 0;
    loop {
        let mut draft = object.clone();
        if let Some(prefix) = prefix.as_deref().filter(|_| generated) {
            set_meta(&mut draft, "name", generate_name(prefix).into());
        }
        track_update(&mut draft, None, served, manager);
        let draft = prepare(api, served, draft)?;
        let name = object::name(&draft).to_owned();
        tried += 1;
        match keep(api, scope, draft, dry_run).await {
            Ok(stored) => return Ok(stored),
            // A name that was made up may be taken; another is made up.
            Err(Refusal::Exists) if generated && tried < 8 => {}
            Err(Refusal::Exists) => return Err(taken(served, &name, generated)),
            Err(refusal) if tried >= ATTEMPTS => return Err(broken(refusal)),
            Err(refusal) => return Err(broken(refusal)),
        }
    }
}

/// Everything that the server sets and checks.
pub(super) fn prepare(api: &Api, served: &Served, mut draft: Value) -> Result<Value, Status> {
    set_meta(&mut draft, "uid", uuid::Uuid::new_v4().to_string().into());
    set_meta(&mut draft, "creationTimestamp", api.now().into());
    prepare_created(&mut draft, served);
    check(&draft, None, served, Sub::Whole)?;
    Ok(draft)
}

async fn keep(api: &Api, scope: &Scope, draft: Value, dry_run: bool) -> Result<Arc<Stored>, Refusal> {
    let served = &scope.served;
    let key = object::key(&scope.namespace, object::name(&draft));
    let kept = to_kept(draft, served);
    let table = Arc::clone(&served.resource.table);
    if dry_run {
        return match api.store.find(&table, &key) {
            Some(_) => Err(Refusal::Exists),
            None => Ok(Arc::new(Stored::new(kept, 0))),
        };
    }
    let stored =
        api.store.commit(Write { table, key, expect: Expect::Absent, leave: Leave::Put(kept) }).await?;
    builtin_controllers::after_write(api, served, &stored).await;
    Ok(stored)
}

/// The namespace of the path is the object's; another one is refused.
pub(super) fn match_namespace(object: &mut Value, scope: &Scope) -> Result<(), Status> {
    let named = object::namespace(object);
    if !scope.served.resource.namespaced {
        if !named.is_empty() {
            set_meta(object, "namespace", Value::Null);
        }
        return Ok(());
    }
    if !named.is_empty() && named != scope.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    set_meta(object, "namespace", scope.namespace.as_str().into());
    Ok(())
}

/// Nothing is created in a namespace that is not there or on its way out.
pub(super) fn admit_to_namespace(api: &Api, scope: &Scope, object: &Value) -> Result<(), Status> {
    if !scope.served.resource.namespaced {
        return Ok(());
    }
    let name = &scope.namespace;
    let namespaces = Named { group: String::new(), name: "namespaces".to_owned() };
    let Some(namespace) = find_namespace(api, name) else {
        return Err(Status::not_found(&namespaces, name));
    };
    let terminating = namespace.pointer("/status/phase").and_then(Value::as_str) == Some("Terminating");
    if !terminating && !object::is_deleting(&namespace) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let mut status = Status::forbidden(&scope.served.resource.named(), object::name(object), &why);
    let cause = json!({
        "reason": "NamespaceTerminating",
        "message": format!("namespace {name} is being terminated"),
        "field": "metadata.namespace",
    });
    status.details.insert("causes".to_owned(), json!([cause]));
    Err(status)
}

/// Nothing is created of a kind whose definition is on its way out.
fn admit_to_kind(api: &Api, scope: &Scope, name: &str) -> Result<(), Status> {
    let resource = &scope.served.resource;
    let crd = api.store.find(CRD_TABLE, &resource.table).filter(|_| resource.is_custom());
    match crd.is_some_and(|crd| object::is_deleting(&crd.value)) {
        true => {
            let why = "create not allowed while custom resource definition is terminating";
            Err(Status::forbidden(&resource.named(), name, why))
        }
        false => Ok(()),
    }
}

fn taken(served: &Served, name: &str, generated: bool) -> Status {
    let mut status = Status::already_exists(&served.resource.named(), name);
    if generated {
        status.message.push_str(", the server was not able to generate a unique name for the object");
        status.details.insert("retryAfterSeconds".to_owned(), 1.into());
    }
    status
}

/// The requested prefix and five characters that spell no words.
fn generate_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut cut = prefix.len().min(58);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let bytes = uuid::Uuid::new_v4().into_bytes();
    let letters = bytes.iter().take(5).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    prefix[..cut].chars().chain(letters).collect()
}
