//! A new resource from a class: what it is called, what it carries, and whose it is from its first moment.
//! Its implementation objects are made later, from the template that it carries.

use crate::action::claim_ref_json;
use crate::api::names::{PROVISIONED_BY, PROVISIONED_FOR, RESOURCE_PROTECTION};
use crate::model::inputs;
use crate::model::{Claim, ClaimRef, Class, Kind, Name, Object, Wants};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

/// The name of the resource that is made for a claim. It derives from the claim's UID, so that a create
/// that is tried again meets itself.
pub fn provisioned_name(claim: &Claim) -> Name {
    let short = claim.ty.rules().short;
    let tail: String =
        claim.meta.uid.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Name::from(format!("{short}-{}", tail.to_ascii_lowercase()))
}

/// The resource that `class` makes for a claim that wants `wants`; nothing where the class makes none.
/// `written` is the claim as templates see it: what it and the class say now goes along with the resource, so
/// that what is made from it does not change with them.
pub fn make_resource(
    class: &Class,
    claim: &Claim,
    wants: &Wants,
    written: Option<&Value>,
    system_namespace: &str,
) -> Option<Object> {
    let recipe = class.recipe.as_ref().ok()?;
    let rules = claim.ty.rules();
    let mut spec = Map::new();
    for ((rule, offer), want) in rules.fields.iter().zip(&recipe.fields).zip(&wants.fields) {
        if let Some(value) = offer.value_for(want) {
            spec.insert(rule.resource.to_owned(), value);
        }
    }
    let capacity = recipe.size_for(rules.primary_capacity, &wants.requests).ok()?;
    if !capacity.is_empty() {
        spec.insert("capacity".to_owned(), capacity.to_json());
    }
    spec.insert("class".to_owned(), Value::from(&*class.meta.key.name));
    spec.insert("reclaimPolicy".to_owned(), Value::from(recipe.reclaim.name()));
    if let Some((field, template)) = &recipe.template {
        spec.insert((*field).to_owned(), template.clone());
    }
    if let (Some(class), Some(claim)) = (&recipe.inputs, written) {
        let parameters = inputs::parameters(class, claim);
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
    Some(Object {
        kind: Kind::Resource(claim.ty),
        metadata: ObjectMeta {
            name: Some(provisioned_name(claim).to_string()),
            namespace: Some(system_namespace.to_owned()),
            annotations: Some(annotations.map(|(k, v)| (k.to_owned(), v.to_string())).into()),
            finalizers: Some(vec![RESOURCE_PROTECTION.to_owned()]),
            ..ObjectMeta::default()
        },
        body: Value::Object(Map::from_iter([("spec".to_owned(), Value::Object(spec))])),
    })
}
