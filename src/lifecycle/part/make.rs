//! A new part from a resource's template: what it is called and whose it says it is.
//! When it is made is judged elsewhere.

use crate::api::names::{PART, RESOURCE, RESOURCE_UID};
use crate::model::implementation::digest;
use crate::model::part::MAIN;
use crate::model::{
    Class, Computed, FieldError, Name, Part, PartTemplate, Readiness, Resource, Template, ValueError,
};
use crate::template::{Blueprint, Inputs, Rendered, Source};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::BTreeMap;

/// The part that a resource's template makes. It has no owner reference: were it collected as garbage with
/// its resource, a retained database would go too.
///
/// # Errors
/// What is wrong with an expression of the template, or with what it was given.
pub fn make_part(resource: &Resource) -> Result<Option<Part>, FieldError> {
    let Template::One(template) = &resource.template else { return Ok(None) };
    let filled = template.computed.as_ref().map(|computed| fill(template, computed)).transpose()?;
    let PartTemplate { key, labels, annotations, body, computed: _ } = filled.as_ref().unwrap_or(template);
    let mut labels = labels.clone();
    labels.insert(RESOURCE.to_owned(), label_of(&resource.meta.key.name));
    labels.insert(PART.to_owned(), MAIN.to_owned());
    let mut annotations = annotations.clone();
    annotations.insert(RESOURCE_UID.to_owned(), resource.meta.uid.to_string());
    Ok(Some(Part {
        kind: key.kind.clone(),
        metadata: ObjectMeta {
            name: Some(key.name.to_string()),
            namespace: Some(key.namespace.to_string()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        body: body.clone(),
    }))
}

/// A template with its expressions replaced.
fn fill(template: &PartTemplate, computed: &Computed) -> Result<PartTemplate, FieldError> {
    let Computed { template: written, inputs } = computed;
    let blueprint = Blueprint::compile(&Source { template: Some(written), ..Source::default() })?;
    match blueprint.render(&inputs_of(inputs)).into_iter().next().map(|(_, rendered)| rendered) {
        Some(Rendered::Made(object)) => Ok(PartTemplate::new(template.key.clone(), &object, None)),
        Some(Rendered::Wrong(error)) => Err(error),
        // A single object waits for nobody and is never left out.
        Some(Rendered::LeftOut | Rendered::Waits(_)) | None => {
            Err(ValueError::new("", "speaks of itself", "use what is known before it is made")
                .in_field("template"))
        }
    }
}

fn inputs_of(inputs: &Value) -> Inputs<'_> {
    Inputs {
        claim: inputs.get("claim"),
        class: inputs.get("class"),
        resource: inputs.get("resource"),
        parameters: inputs.get("parameters"),
        objects: BTreeMap::new(),
    }
}

/// Whether a part is ready by the word of its class, where the class says how to tell.
pub fn readiness(resource: &Resource, part: &Part) -> Option<Readiness> {
    let Template::One(template) = &resource.template else { return None };
    let Computed { template, inputs } = template.computed.as_ref()?;
    let ready = inputs.pointer("/class/ready").and_then(Value::as_str)?;
    let source = Source { template: Some(template), ready: Some(ready), ..Source::default() };
    let told = match Blueprint::compile(&source) {
        Ok(blueprint) => blueprint.is_ready(&inputs_of(inputs), MAIN, &part.to_json())?,
        Err(error) => Err(error),
    };
    Some(match told {
        Ok(true) => Readiness::Ready,
        Ok(false) => Readiness::NotReady(Name::from("it is not ready by the class's word")),
        Err(error) => Readiness::NotReady(Name::from(error.to_string())),
    })
}

/// A class whose templates can never work makes nothing, and is told so.
pub fn with_checked_templates(class: Class) -> Class {
    let checked = class.recipe.as_ref().ok().and_then(|recipe| {
        let (field, template) = recipe.template.as_ref()?;
        let of = |name: &str| recipe.inputs.as_ref().and_then(|inputs| inputs.get(name));
        let source = Source {
            template: (*field == "template").then_some(template),
            templates: (*field == "templates").then_some(template),
            ready: of("ready").and_then(Value::as_str),
            connection: of("connection"),
        };
        Blueprint::compile(&source).err()
    });
    match checked {
        Some(error) => Class { recipe: Err(error), ..class },
        None => class,
    }
}

/// A label's value may be shorter than a name.
const LABEL_CHARS_MAX: usize = 63;

fn label_of(name: &str) -> String {
    if name.len() <= LABEL_CHARS_MAX { name.to_owned() } else { digest(name) }
}
