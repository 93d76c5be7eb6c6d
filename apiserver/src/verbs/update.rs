//! Objects replaced: by a body, or by whatever a change makes of what is kept. One loop for updates, patches and
//! scales: read, change, check, keep; again after a conflict.

use super::{ATTEMPTS, broken, builtin_controllers, create};
use crate::admit::{check, is_lenient, prepare_updated, read_object};
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::{Call, WriteOptions};
use crate::encode::{self, to_kept, to_served};
use crate::fields::{Manager, keep_times, track_update};
use crate::object::{self, finalizers, is_deleting, meta_text, set_meta};
use crate::registry::Common;
use crate::scope::{Scope, Sub};
use crate::status::{Cause, Status};
use crate::store::{Expect, Leave, Refusal, Stored, Write};
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What a change of a kept object came to.
pub(super) struct Changed {
    pub stored: Arc<Stored>,
    pub created: bool,
}

pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let options = WriteOptions::read(call, "UpdateOptions")?;
    let (mut object, warnings) = read_object(call, &scope.served, &options)?;
    match_name(&object, scope)?;
    create::match_namespace(&mut object, scope)?;
    let manager = Manager::of(call, scope.sub, api.now());
    let make = |old: Option<&Value>| {
        let mut draft = object.clone();
        track_update(&mut draft, old, &scope.served, &manager);
        Ok(draft)
    };
    let (create_too, blind) = is_lenient(scope.served.resource.common());
    let rules = Rules {
        create_too: create_too && scope.sub == Sub::Whole,
        blind,
        by_uid: true,
        dry_run: options.dry_run,
    };
    let changed = change(api, scope, rules, make).await?;
    let code = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
    let content = Content::Json(encode::object(&changed.stored, &scope.served, wanted.shape));
    Ok(Answer::of(code, content).warn(warnings))
}

fn match_name(object: &Value, scope: &Scope) -> Result<(), Status> {
    let name = object::name(object);
    if name.is_empty() {
        let message = format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            scope.name
        );
        return Err(Status::bad_request(message));
    }
    if name != scope.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", scope.name);
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// What a change may do.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// What is not there is created.
    pub create_too: bool,
    /// A change need not name the revision that it saw.
    pub blind: bool,
    /// An object of another id is another object; a patch of it is a change of its id.
    pub by_uid: bool,
    pub dry_run: bool,
}

/// Changes a stored object; `make` returns the new state for the old one, both in the version of the request.
pub(super) async fn change(
    api: &Api,
    scope: &Scope,
    rules: Rules,
    make: impl Fn(Option<&Value>) -> Result<Value, Status>,
) -> Result<Changed, Status> {
    let served = &scope.served;
    for _ in 0..ATTEMPTS {
        let Some(kept) = api.store.find(&served.resource.table, &scope.key()) else {
            if !rules.create_too {
                return Err(scope.not_found());
            }
            match create_by_change(api, scope, rules, make(None)?).await {
                Ok(stored) => return Ok(Changed { stored, created: true }),
                Err(CreateFailed::Taken) => continue,
                Err(CreateFailed::Refused(status)) => return Err(status),
            }
        };
        let old = to_served(&kept.value, served);
        let mut draft = make(Some(&old))?;
        match_revision(&draft, &kept, scope, rules)?;
        if rules.by_uid {
            match_uid(&draft, &old, scope)?;
        }
        prepare_updated(&mut draft, &old, served, scope.sub);
        set_meta(&mut draft, "resourceVersion", kept.revision.to_string().into());
        check(&draft, Some(&old), served, scope.sub)?;
        keep_times(&mut draft, &old);
        if draft == old {
            return Ok(Changed { stored: kept, created: false });
        }
        match keep(api, scope, &kept, draft, rules.dry_run).await {
            Ok(stored) => return Ok(Changed { stored, created: false }),
            Err(Refusal::Exists | Refusal::Changed) => {}
            Err(refusal) => return Err(broken(refusal)),
        }
    }
    Err(broken(Refusal::Changed))
}

enum CreateFailed {
    /// Another client was faster: there is something to change now.
    Taken,
    Refused(Status),
}

async fn create_by_change(
    api: &Api,
    scope: &Scope,
    rules: Rules,
    mut draft: Value,
) -> Result<Arc<Stored>, CreateFailed> {
    let refused = CreateFailed::Refused;
    if meta_text(&draft, "uid").is_some() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            meta_text(&draft, "uid").unwrap_or_default()
        );
        return Err(refused(Status::conflict(&scope.served.resource.named(), &scope.name, &why)));
    }
    if meta_text(&draft, "resourceVersion").is_some() {
        return Err(refused(scope.not_found()));
    }
    set_meta(&mut draft, "name", scope.name.as_str().into());
    create::match_namespace(&mut draft, scope).map_err(refused)?;
    create::admit_to_namespace(api, scope, &draft).map_err(refused)?;
    let draft = create::prepare(api, &scope.served, draft).map_err(refused)?;
    let table = Arc::clone(&scope.served.resource.table);
    let kept = to_kept(draft, &scope.served);
    if rules.dry_run {
        return Ok(Arc::new(Stored::new(kept, 0)));
    }
    let write = Write { table, key: scope.key(), expect: Expect::Absent, leave: Leave::Put(kept) };
    match api.store.commit(write).await {
        Ok(stored) => {
            builtin_controllers::after_write(api, &scope.served, &stored).await;
            Ok(stored)
        }
        Err(Refusal::Exists | Refusal::Changed) => Err(CreateFailed::Taken),
        Err(refusal) => Err(refused(broken(refusal))),
    }
}

fn match_revision(draft: &Value, kept: &Stored, scope: &Scope, rules: Rules) -> Result<(), Status> {
    match meta_text(draft, "resourceVersion") {
        None | Some("0") if rules.blind => Ok(()),
        None | Some("0") => {
            let cause =
                Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
            Err(Status::invalid(&scope.served.resource.named(), &scope.name, &[cause]))
        }
        Some(revision) => match revision.parse::<u64>() {
            Ok(revision) if revision == kept.revision => Ok(()),
            Ok(_) => Err(Status::conflict(&scope.served.resource.named(), &scope.name, MODIFIED)),
            Err(_) => Err(Status::plain(format!("strconv.ParseUint: parsing {revision:?}: invalid syntax"))),
        },
    }
}

fn match_uid(draft: &Value, old: &Value, scope: &Scope) -> Result<(), Status> {
    let (asked, found) = (object::uid(draft), object::uid(old));
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {asked}, UID in object meta: {found}",
        storage_key(scope)
    );
    Err(Status::conflict(&scope.served.resource.named(), &scope.name, &why))
}

/// Where a real server would keep an object; its messages show it.
fn storage_key(scope: &Scope) -> String {
    let resource = &scope.served.resource;
    let group = if resource.is_custom() { format!("{}/", resource.group) } else { String::new() };
    format!("/registry/{group}{}/{}", resource.plural, scope.key())
}

/// Keeps the new state, or ends an object whose last finalizer went.
async fn keep(
    api: &Api,
    scope: &Scope,
    kept: &Stored,
    draft: Value,
    dry_run: bool,
) -> Result<Arc<Stored>, Refusal> {
    let ends = ends(&draft, scope);
    let value = to_kept(draft, &scope.served);
    if dry_run {
        return Ok(Arc::new(Stored::new(value, kept.revision)));
    }
    // Watchers get the last stored state; the client that removed the last finalizer gets what it sent.
    let (leave, answer) = match ends {
        true => (Leave::Nothing(kept.value.clone()), Some(Arc::new(Stored::new(value, kept.revision)))),
        false => (Leave::Put(value), None),
    };
    let table = Arc::clone(&scope.served.resource.table);
    let write = Write { table, key: scope.key(), expect: Expect::Revision(kept.revision), leave };
    let stored = api.store.commit(write).await?;
    match ends {
        true => builtin_controllers::after_end(api, &scope.served, &stored).await,
        false => builtin_controllers::after_write(api, &scope.served, &stored).await,
    }
    Ok(answer.unwrap_or(stored))
}

fn ends(draft: &Value, scope: &Scope) -> bool {
    let grace =
        object::meta(draft).and_then(|meta| meta.get("deletionGracePeriodSeconds")).and_then(Value::as_i64);
    let own_finalizers = scope.served.resource.common() == Some(Common::Namespace)
        && draft.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    is_deleting(draft) && finalizers(draft).is_empty() && grace.unwrap_or(0) == 0 && !own_finalizers
}
