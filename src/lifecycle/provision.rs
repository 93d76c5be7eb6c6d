//! A new resource from a class: its name, its content, and the claim that it references from the start.
//! Its implementation objects are created later, from the template that it carries.

use crate::action::claim_ref_json;
use crate::api::names::{PROVISIONED_BY, PROVISIONED_FOR, RESOURCE_PROTECTION};
use crate::model::implementation::digest;
use crate::model::{Claim, ClaimRef, Class, ClassWant, FieldError, Kind, Name, Object, Wants};
use crate::template::parameters;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

/// The name of the resource that `class` provisions for a claim. It derives from the claim's UID, so that a create that is
/// retried meets itself; where the claim has a choice of classes, from the class too, so that the failure of one does not
/// block the next.
pub fn provisioned_name(claim: &Claim, class: &str) -> Name {
    let short = claim.ty.rules().short;
    let tail: String =
        claim.meta.uid.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = format!("{short}-{}", tail.to_ascii_lowercase());
    match claim.wants.as_ref().map(|wants| &wants.class) {
        Ok(ClassWant::Named(classes)) if classes.len() > 1 => {
            Name::from(format!("{name}-{}", &digest(class)[..6]))
        }
        Ok(ClassWant::Named(_) | ClassWant::Absent | ClassWant::Classless | ClassWant::Any) | Err(_) => {
            Name::from(name)
        }
    }
}

/// The names of every resource that may be provisioned for a claim.
pub fn provisioned_names(claim: &Claim) -> Vec<Name> {
    match claim.wants.as_ref().map(|wants| &wants.class) {
        Ok(ClassWant::Named(classes)) => classes.iter().map(|class| provisioned_name(claim, class)).collect(),
        Ok(ClassWant::Absent | ClassWant::Classless | ClassWant::Any) | Err(_) => {
            vec![provisioned_name(claim, "")]
        }
    }
}

/// The resource that `class` provisions for a claim that wants `wants`; `None` where the class provisions none.
/// `written` is the claim as templates see it: the resource carries what it and the class say now, so that what is
/// rendered from it does not change with them.
///
/// # Errors
/// A parameter that the class does not allow.
pub fn make_resource(
    class: &Class,
    claim: &Claim,
    wants: &Wants,
    written: Option<&Value>,
    system_namespace: &str,
) -> Result<Option<Object>, FieldError> {
    let Ok(recipe) = &class.recipe else { return Ok(None) };
    let rules = claim.ty.rules();
    let mut spec = Map::new();
    for ((rule, offer), want) in rules.fields.iter().zip(&recipe.fields).zip(&wants.fields) {
        if let Some(value) = offer.value_for(want) {
            spec.insert(rule.resource.to_owned(), value);
        }
    }
    let Ok(capacity) = recipe.size_for(rules.primary_capacity, &wants.requests) else { return Ok(None) };
    if !capacity.is_empty() {
        spec.insert("capacity".to_owned(), capacity.to_json());
    }
    spec.insert("class".to_owned(), Value::from(&*class.meta.key.name));
    spec.insert("reclaimPolicy".to_owned(), Value::from(recipe.reclaim.name()));
    if let Some((field, template)) = &recipe.template {
        spec.insert((*field).to_owned(), template.clone());
    }
    if let (Some(class), Some(claim)) = (&recipe.inputs, written) {
        let parameters = parameters(class, claim)?;
        spec.insert("inputs".to_owned(), json!({"claim": claim, "class": class, "parameters": parameters}));
    }
    if let Some(sharing) = &recipe.sharing {
        spec.insert("sharing".to_owned(), sharing.clone());
    }
    let holder = ClaimRef {
        claim: claim.meta.key.clone(),
        uid: Some(claim.meta.uid.clone()),
        requests: wants.requests.clone(),
        reserved: false,
    };
    spec.insert("claimRefs".to_owned(), Value::Array(vec![claim_ref_json(&holder)]));
    let annotations = [(PROVISIONED_BY, &class.meta.key.name), (PROVISIONED_FOR, &claim.meta.uid)];
    Ok(Some(Object {
        kind: Kind::Resource(claim.ty),
        metadata: ObjectMeta {
            name: Some(provisioned_name(claim, &class.meta.key.name).to_string()),
            labels: recipe.labels.to_map(),
            namespace: Some(system_namespace.to_owned()),
            annotations: Some(annotations.map(|(k, v)| (k.to_owned(), v.to_string())).into()),
            finalizers: Some(vec![RESOURCE_PROTECTION.to_owned()]),
            ..ObjectMeta::default()
        },
        body: Value::Object(Map::from_iter([("spec".to_owned(), Value::Object(spec))])),
    }))
}
