//! An edited class against every claim: what changes now, and what would change for the claims that the class
//! has served already if each had to be served anew. Resources that exist keep what they were made from.

use super::{Edit, EditError, PlanFigures, Questions};
use crate::diff::Difference;
use crate::plan::{API_VERSION, Options, Plan};
use conductor::model::{Kind, Object, TypeId};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What an edited class would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassImpact {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `ClassImpact`.
    pub kind: &'static str,
    /// The class.
    pub class: String,
    /// How many claims count under it in the state as it is.
    pub claims: usize,
    /// What changes as soon as the class is applied.
    pub now: Difference,
    /// What would change for its claims if all of them had to be served anew.
    pub anew: Difference,
    /// The plan before the class is applied.
    pub before: PlanFigures,
    /// The plan after it.
    pub after: PlanFigures,
}

impl ClassImpact {
    /// Whether nothing changes, neither now nor later.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.anew.is_empty()
    }
}

/// Applies an edited class, and asks twice.
///
/// # Errors
/// `class` is no class.
pub fn class_impact(
    objects: Vec<Object>,
    class: &Object,
    options: &Options,
) -> Result<ClassImpact, EditError> {
    let Kind::Class(ty) = class.kind else {
        return Err(EditError::NoTarget { text: class.kind.name().to_owned() });
    };
    let name = class.metadata.name.clone().unwrap_or_default();
    let edit = [Edit::Apply(Box::new(class.clone()))];
    let as_is = Questions::new(objects.clone(), options);
    let mine = claims_of(as_is.plan(), &name);
    let applied = as_is.edited(&edit)?;
    let (before, after) = (PlanFigures::from(as_is.plan()), PlanFigures::from(&applied.plan));
    let now = as_is.differs(&applied);
    // One state makes room for the other.
    drop((as_is, applied));
    let unserved = Questions::new(served_anew(&objects, ty, &name, &mine), options);
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

/// The claims that count under a class, by namespace and name.
fn claims_of(plan: &Plan, class: &str) -> BTreeSet<(String, String)> {
    let mine = plan.claims.iter().filter(|c| c.class.as_deref() == Some(class) && !c.leaving);
    mine.map(|c| (c.namespace.to_string(), c.name.to_string())).collect()
}

/// The state in which the claims of a class have nothing yet, and nothing of the class is left to be had.
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
