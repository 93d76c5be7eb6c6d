//! What an edited class changes: at once, and if all claims that it has served were served again. Existing resources keep
//! the definition that they were provisioned with.

use super::{Edit, EditError, PlanFigures, WhatIfSession};
use crate::diff::Difference;
use crate::plan::{API_VERSION, Options, Plan};
use conductor::model::{Kind, Object, TypeId};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The effect of an edited class.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassImpact {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub class: String,
    /// Number of claims that count under it now.
    pub claims: usize,
    /// Changes at once.
    pub now: Difference,
    /// Changes if all its claims were served again.
    pub anew: Difference,
    pub before: PlanFigures,
    pub after: PlanFigures,
}

impl ClassImpact {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.anew.is_empty()
    }
}

/// Plans the effect of an edited class.
///
/// # Errors
/// `class` is not a class.
pub fn class_impact(
    objects: Vec<Object>,
    class: &Object,
    options: &Options,
) -> Result<ClassImpact, EditError> {
    let Kind::Class(ty) = class.kind else {
        return Err(EditError::NoTarget(class.kind.name().to_owned()));
    };
    let name = class.metadata.name.clone().unwrap_or_default();
    let edit = [Edit::Apply(Box::new(class.clone()))];
    let as_is = WhatIfSession::new(objects.clone(), options);
    let mine = claims_of(as_is.plan(), &name);
    let applied = as_is.edited(&edit)?;
    let (before, after) = (PlanFigures::from(as_is.plan()), PlanFigures::from(&applied.plan));
    let now = as_is.differs(&applied);
    // Free memory for the next state.
    drop((as_is, applied));
    let unserved = WhatIfSession::new(served_anew(&objects, ty, &name, &mine), options);
    let anew = unserved.differs(&unserved.edited(&edit)?);
    Ok(ClassImpact {
        api_version: API_VERSION,
        kind: "ClassImpact",
        class: name,
        claims: mine.len(),
        now,
        anew,
        before,
        after,
    })
}

/// Namespace and name of the claims that count under a class.
fn claims_of(plan: &Plan, class: &str) -> BTreeSet<(String, String)> {
    let mine = plan.claims.iter().filter(|c| c.class.as_deref() == Some(class) && !c.leaving);
    mine.map(|c| (c.namespace.to_string(), c.name.to_string())).collect()
}

/// The state without the class's resources, its claims unbound.
fn served_anew(
    objects: &[Object],
    ty: TypeId,
    class: &str,
    claims: &BTreeSet<(String, String)>,
) -> Vec<Object> {
    let of_class = |o: &Object| {
        o.kind == Kind::Resource(ty) && o.body.pointer("/spec/class").and_then(Value::as_str) == Some(class)
    };
    let mut left: Vec<Object> = objects.iter().filter(|o| !of_class(o)).cloned().collect();
    for claim in left.iter_mut().filter(|o| o.kind == Kind::Claim(ty)) {
        let place = (
            claim.metadata.namespace.clone().unwrap_or_default(),
            claim.metadata.name.clone().unwrap_or_default(),
        );
        if claims.contains(&place) {
            claim.metadata.uid = None;
            if let Some(body) = claim.body.as_object_mut() {
                body.remove("status");
                body.get_mut("spec").and_then(Value::as_object_mut).map(|spec| spec.remove("resourceName"));
            }
        }
    }
    left
}
