//! Copies of a claim or a resource, without holders and without anything that a cluster wrote. They are scheduled after
//! all waiting claims, and get unused names.

use super::{EditError, Target};
use crate::plan::NOT_YET_MS;
use conductor::model::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum number of copies: twice what a large cluster holds, in a few hundred MiB.
pub const COPIES_MAX: usize = 200_000;

/// Adds the copies to `objects`.
pub(super) fn copy(objects: &mut Vec<Object>, like: &Target, count: usize) -> Result<(), EditError> {
    let (Kind::Claim(_) | Kind::Resource(_)) = like.kind else {
        return Err(EditError::NoCopies(like.clone()));
    };
    let pattern = pattern(&objects[like.find(objects)?]);
    if count > COPIES_MAX {
        return Err(EditError::TooMany(count, like.clone()));
    }
    for name in names(objects, like, count) {
        let mut copy = pattern.clone();
        copy.metadata.name = Some(name);
        objects.push(copy);
    }
    Ok(())
}

/// What the copies have in common: the fields that a user wrote.
fn pattern(like: &Object) -> Object {
    let mut pattern = like.clone();
    let ObjectMeta { namespace, labels, annotations, .. } = pattern.metadata;
    // Undated claims come after dated ones, sorted by name; copies must come after those too.
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

/// Unused names that sort in the copies' order, all with the same number of digits.
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
