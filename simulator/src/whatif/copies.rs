//! So many more like one that is there: copies of a claim or of a resource that nobody holds and nothing was written of.
//! They come after everybody who waits, and take nobody's name.

use super::{EditError, Target};
use crate::plan::NOT_YET_MS;
use conductor::model::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// Most copies of one object: twice what a large cluster holds, and still a few hundred MiB.
pub const COPIES_MAX: usize = 200_000;

/// Adds the copies to `objects`.
pub(super) fn copy(objects: &mut Vec<Object>, like: &Target, count: usize) -> Result<(), EditError> {
    let (Kind::Claim(_) | Kind::Resource(_)) = like.kind else {
        return Err(EditError::NoCopies { target: like.to_string() });
    };
    let pattern = pattern(&objects[like.find(objects)?]);
    if count > COPIES_MAX {
        return Err(EditError::TooMany { count, target: like.to_string() });
    }
    for name in names(objects, like, count) {
        let mut copy = pattern.clone();
        copy.metadata.name = Some(name);
        objects.push(copy);
    }
    Ok(())
}

/// What the copies have in common: what was wished for, and nothing that a cluster wrote.
fn pattern(like: &Object) -> Object {
    let mut pattern = like.clone();
    let ObjectMeta { namespace, labels, annotations, .. } = pattern.metadata;
    // Claims without a time come as one after the others that have one, in the order of their names: a copy would
    // come in front of some.
    let created = matches!(like.kind, Kind::Claim(_)).then(|| Timestamp::from_millisecond(NOT_YET_MS));
    let creation_timestamp = created.and_then(Result::ok).map(Time);
    pattern.metadata =
        ObjectMeta { namespace, labels, annotations, creation_timestamp, ..Default::default() };
    if let Some(body) = pattern.body.as_object_mut() {
        body.remove("status");
        if let Some(Value::Object(spec)) = body.get_mut("spec") {
            spec.remove("claimRefs");
            spec.remove("resourceName");
        }
    }
    pattern
}

/// Names that nobody has. They sort in the order in which they come, as far as none is passed over: each has as many digits
/// as their number.
fn names(objects: &[Object], like: &Target, count: usize) -> Vec<String> {
    let stem = format!("{}-copy-", like.key.name);
    let is_beside = |o: &&Object| {
        let namespace = o.metadata.namespace.as_deref().unwrap_or_default();
        o.kind == like.kind && namespace == &*like.key.namespace
    };
    let beside = objects.iter().filter(is_beside).filter_map(|o| o.metadata.name.as_deref());
    let taken: BTreeSet<&str> = beside.filter(|name| name.starts_with(&stem)).collect();
    let digits = count.to_string().len();
    let names = (1_usize..).map(|at| format!("{stem}{at:0digits$}"));
    names.filter(|name| !taken.contains(name.as_str())).take(count).collect()
}
