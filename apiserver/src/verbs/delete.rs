//! Ends of objects: at once, or marked until finalizers are gone and grace is over.

use super::{ATTEMPTS, broken, builtin_controllers, restore};
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::Call;
use crate::clock::stamp;
use crate::decode::decode;
use crate::encode;
use crate::kinds;
use crate::object::{self, finalizers, is_deleting, set_meta};
use crate::registry::Common;
use crate::scope::Scope;
use crate::status::{Cause, Named, Status};
use crate::store::{Expect, Leave, Refusal, Stored, Write};
use http::StatusCode;
use jiff::ToSpan;
use serde_json::{Value, json};
use std::sync::Arc;

/// Finalizers with which the collector of garbage works.
pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// How dependents are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    pub dry_run: bool,
    pub grace: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub revision: Option<String>,
}

/// What a delete came to.
pub(super) enum Deleted {
    /// It is gone.
    Now(Arc<Stored>),
    /// It waits for finalizers or grace.
    Later(Arc<Stored>),
}

pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let options = DeleteOptions::read(call)?;
    let deleted = delete(api, scope, &options).await?;
    let (stored, code) = match &deleted {
        Deleted::Now(stored) => (stored, StatusCode::OK),
        // A plain finalizer leaves the object; the collector's own make the request only accepted.
        Deleted::Later(stored) => (stored, StatusCode::OK),
    };
    let returns_object = matches!(
        scope.served.resource.common(),
        Some(Common::Pod | Common::Namespace | Common::Service | Common::ServiceAccount)
    );
    if matches!(deleted, Deleted::Later(_)) || returns_object {
        let content = Content::Json(encode::object(stored, &scope.served, wanted.shape));
        return Ok(Answer::of(code, content));
    }
    Ok(Answer::value(gone(scope, &stored.value)))
}

fn gone(scope: &Scope, object: &Value) -> Value {
    let resource = &scope.served.resource;
    let mut details = json!({
        "name": object::name(object), "kind": resource.plural, "uid": object::uid(object),
    });
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl DeleteOptions {
    /// Reads the options from the body, or from the query where there is none.
    pub fn read(call: &Call) -> Result<DeleteOptions, Status> {
        let mut options = DeleteOptions::default();
        let mut causes = Vec::new();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let (policy, orphan, dry) = if call.body.is_empty() {
            options.grace = call.query.number("gracePeriodSeconds")?;
            let dry: Vec<String> = call.query.all("dryRun").map(str::to_owned).collect();
            (
                call.query.find("propagationPolicy").map(str::to_owned),
                call.query.flag("orphanDependents"),
                dry,
            )
        } else {
            let body = decode(call)?.value;
            check_body(&body)?;
            options.grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
            options.uid = text(body.pointer("/preconditions/uid"));
            options.revision = text(body.pointer("/preconditions/resourceVersion"));
            let dry = body.get("dryRun").and_then(Value::as_array).into_iter().flatten();
            let dry = dry.filter_map(Value::as_str).map(str::to_owned).collect();
            (text(body.get("propagationPolicy")), body.get("orphanDependents").and_then(Value::as_bool), dry)
        };
        options.dry_run = !dry.is_empty();
        if dry.iter().any(|value| value != "All") {
            causes.push(Cause::unsupported("dryRun", &dry.into(), &["All"]));
        }
        if policy.is_some() && orphan.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", &policy.clone().into(), why));
        }
        options.propagation = match (policy.as_deref(), orphan) {
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::unsupported("propagationPolicy", &other.into(), &known));
                None
            }
        };
        if causes.is_empty() {
            return Ok(options);
        }
        let named = Named { group: "meta.k8s.io".to_owned(), name: "DeleteOptions".to_owned() };
        Err(Status::invalid(&named, "", &causes))
    }
}

fn check_body(body: &Value) -> Result<(), Status> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
    match (body.is_object(), kind) {
        (true, "DeleteOptions") => Ok(()),
        (true, other) => Err(Status::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is of kind {other:?}"
        ))),
        (false, _) => Err(Status::bad_request("the body of a delete must be DeleteOptions")),
    }
}

/// Deletes an object, or marks it.
pub(super) async fn delete(api: &Api, scope: &Scope, options: &DeleteOptions) -> Result<Deleted, Status> {
    let served = &scope.served;
    for _ in 0..ATTEMPTS {
        let Some(kept) = api.store.find(&served.resource.table, &scope.key()) else {
            return Err(scope.not_found());
        };
        match_preconditions(&kept, scope, options)?;
        refuse_immortal(api, scope)?;
        let plan = plan(api, &kept.value, scope, options);
        let (leave, is_end) = match plan {
            Plan::Nothing => return Ok(Deleted::Later(kept)),
            Plan::Mark(value) => (Leave::Put(value), false),
            Plan::End => (Leave::Nothing(kept.value.clone()), true),
        };
        if options.dry_run {
            let shown = match leave {
                Leave::Put(value) | Leave::Nothing(value) => Arc::new(Stored::new(value, kept.revision)),
            };
            return Ok(if is_end { Deleted::Now(shown) } else { Deleted::Later(shown) });
        }
        let table = Arc::clone(&served.resource.table);
        let write = Write { table, key: scope.key(), expect: Expect::Revision(kept.revision), leave };
        match api.store.commit(write).await {
            Ok(stored) if is_end => {
                builtin_controllers::after_end(api, served, &stored).await;
                return Ok(Deleted::Now(stored));
            }
            Ok(stored) => {
                builtin_controllers::after_write(api, served, &stored).await;
                return Ok(Deleted::Later(stored));
            }
            Err(Refusal::Exists | Refusal::Changed) => {}
            Err(refusal) => return Err(broken(refusal)),
        }
    }
    Err(broken(Refusal::Changed))
}

fn match_preconditions(kept: &Stored, scope: &Scope, options: &DeleteOptions) -> Result<(), Status> {
    let resource = &scope.served.resource;
    let named = Named { group: resource.group.clone(), name: resource.kind.clone() };
    let found = object::uid(&kept.value);
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != found) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({found}). The object might have \
             been deleted and then recreated"
        );
        return Err(Status::conflict(&named, &scope.name, &why));
    }
    let found = kept.revision.to_string();
    if let Some(asked) = options.revision.as_deref().filter(|asked| *asked != found) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({found}). \
             The object might have been modified"
        );
        return Err(Status::conflict(&named, &scope.name, &why));
    }
    Ok(())
}

/// Namespaces that a cluster cannot do without.
fn refuse_immortal(api: &Api, scope: &Scope) -> Result<(), Status> {
    let is_namespace = scope.served.resource.common() == Some(Common::Namespace);
    if is_namespace && api.system_namespace.as_ref() == Some(&scope.name) {
        let why = restore::why_kept(api, &scope.name);
        return Err(Status::forbidden(&scope.served.resource.named(), &scope.name, &why));
    }
    match is_namespace && matches!(scope.name.as_str(), "default" | "kube-public" | "kube-system") {
        true => Err(Status::forbidden(
            &scope.served.resource.named(),
            &scope.name,
            "this namespace may not be deleted",
        )),
        false => Ok(()),
    }
}

enum Plan {
    /// It is on its way already.
    Nothing,
    Mark(Value),
    End,
}

fn plan(api: &Api, kept: &Value, scope: &Scope, options: &DeleteOptions) -> Plan {
    let common = scope.served.resource.common();
    if common == Some(Common::Namespace) {
        return plan_namespace(api, kept);
    }
    let mut value = kept.clone();
    let grace = grace(kept, common, options);
    if is_deleting(kept) && grace > 0 {
        return Plan::Nothing;
    }
    let mut wanted = wanted_finalizers(kept, options);
    if common == Some(Common::Crd) && !is_deleting(kept) {
        wanted.push(builtin_controllers::CRD_CLEANUP.to_owned());
    }
    let waits = !wanted.is_empty() || grace > 0;
    if !waits {
        return Plan::End;
    }
    let changed = finalizers(kept) != wanted.iter().map(String::as_str).collect::<Vec<_>>();
    if changed {
        set_meta(&mut value, "finalizers", if wanted.is_empty() { Value::Null } else { wanted.into() });
    }
    if !is_deleting(kept) {
        let generation = object::generation(kept);
        if generation > 0 {
            set_meta(&mut value, "generation", (generation + 1).into());
        }
        let at = api.clock.now().checked_add(grace.seconds()).unwrap_or_else(|_| api.clock.now());
        set_meta(&mut value, "deletionTimestamp", stamp(at).into());
    }
    if common == Some(Common::Crd) && !is_deleting(kept) {
        kinds::crd_terminating(&mut value, &api.now());
    } else {
        set_meta(&mut value, "deletionGracePeriodSeconds", grace.into());
    }
    match value == *kept {
        true => Plan::Nothing,
        false => Plan::Mark(value),
    }
}

/// How long a Pod that runs may take; everything else ends at once.
fn grace(kept: &Value, common: Option<Common>, options: &DeleteOptions) -> i64 {
    if common != Some(Common::Pod) {
        return 0;
    }
    let at = |path: &str| kept.pointer(path);
    let runs = at("/spec/nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let over = matches!(at("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    if !runs || over {
        return 0;
    }
    let own = at("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    match options.grace {
        Some(grace) if grace < 0 => 1,
        Some(grace) => grace,
        None => own,
    }
}

/// The finalizers that the collector needs beside the object's own.
fn wanted_finalizers(kept: &Value, options: &DeleteOptions) -> Vec<String> {
    let all = finalizers(kept);
    let policy = options.propagation.or_else(|| {
        all.iter().find_map(|one| match *one {
            ORPHAN => Some(Propagation::Orphan),
            FOREGROUND => Some(Propagation::Foreground),
            _ => None,
        })
    });
    let own = all.iter().filter(|one| !matches!(**one, ORPHAN | FOREGROUND));
    let mut wanted: Vec<String> = own.map(|one| (*one).to_owned()).collect();
    match policy {
        Some(Propagation::Orphan) => wanted.push(ORPHAN.to_owned()),
        Some(Propagation::Foreground) => wanted.push(FOREGROUND.to_owned()),
        Some(Propagation::Background) | None => {}
    }
    wanted
}

/// A Namespace is first emptied.
fn plan_namespace(api: &Api, kept: &Value) -> Plan {
    let own = kept.pointer("/spec/finalizers").and_then(Value::as_array).map_or(0, Vec::len);
    if own == 0 && finalizers(kept).is_empty() {
        return Plan::End;
    }
    if is_deleting(kept) {
        return Plan::Nothing;
    }
    let mut value = kept.clone();
    set_meta(&mut value, "deletionTimestamp", api.now().into());
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("phase".to_owned(), "Terminating".into());
    }
    Plan::Mark(value)
}
