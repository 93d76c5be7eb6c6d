//! What a resource's parts should be, rendered from its templates, and whether an existing one can be used.
//! When a part is created is decided elsewhere.

use super::View;
use crate::api::names::{PART, RENDERED, RESOURCE, RESOURCE_UID};
use crate::cache::Sight;
use crate::model::implementation::digest;
use crate::model::object::CONDUCTOR_GROUP;
use crate::model::{
    AllowedKinds, Class, FieldError, Name, Part, PartKey, PartView, Readiness, Resource, Script, ValueError,
};
use crate::template::{CompiledClass, Inputs, Rendered, Source, check_schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What the parts of a resource should be.
#[derive(Default)]
pub(super) struct DesiredParts {
    /// Their ids, in the order in which they are created.
    pub order: Vec<Name>,
    pub parts: BTreeMap<Name, DesiredPart>,
}

/// What one part should be.
pub(super) enum DesiredPart {
    /// This.
    Part(Box<Part>),
    /// Nothing: its `when` says no.
    LeftOut,
    /// Not known until these outputs of others are.
    Waits(String),
    /// It cannot be rendered; waiting does not help.
    Wrong(FieldError),
}

/// Computes what each part of a resource should be, from what is seen of the others.
pub(super) fn render(resource: &Resource, view: &View<'_>) -> DesiredParts {
    let (Some(script), Some(compiled)) = (&resource.script, view.compiled) else {
        return DesiredParts::default();
    };
    let objects = resource.template.objects();
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            let wrong = |id: &Name| (id.clone(), DesiredPart::Wrong(error.clone()));
            let order: Vec<Name> = objects.iter().map(|part| part.id.clone()).collect();
            return DesiredParts { parts: order.iter().map(wrong).collect(), order };
        }
    };
    let present = if compiled.references_objects() { present(view) } else { BTreeMap::new() };
    let inputs = inputs_of(script, &present);
    let mut makings = DesiredParts::default();
    for (id, rendered) in compiled.render(&inputs) {
        let Some(template) = objects.iter().find(|part| part.id == id) else { continue };
        makings.order.push(id.clone());
        makings.parts.insert(id, making(resource, &template.id, &template.key, rendered));
    }
    makings
}

/// The parts that are there, as expressions see them.
pub(in crate::lifecycle) fn present(view: &View<'_>) -> BTreeMap<Name, Value> {
    let there = |(id, part): (&&Name, &super::PartSight<'_>)| match &part.sight {
        Sight::Present(part) => Some(((*id).clone(), part.object())),
        Sight::Unknown | Sight::InFlight | Sight::KindMissing(_) | Sight::Absent { .. } | Sight::Taken => {
            None
        }
    };
    view.parts.iter().filter_map(there).collect()
}

pub(in crate::lifecycle) fn inputs_of<'a>(
    script: &'a Script,
    objects: &'a BTreeMap<Name, Value>,
) -> Inputs<'a> {
    let of = |name: &str| script.inputs.get(name);
    Inputs {
        claim: of("claim"),
        class: of("class"),
        resource: of("resource"),
        parameters: of("parameters"),
        objects: objects.iter().map(|(id, object)| (id.clone(), object)).collect(),
    }
}

fn making(resource: &Resource, id: &Name, key: &PartKey, rendered: Rendered) -> DesiredPart {
    match rendered {
        Rendered::Made(object) => DesiredPart::Part(Box::new(make(resource, id, key, &object))),
        Rendered::LeftOut => DesiredPart::LeftOut,
        // A single object that speaks of itself would wait for ever.
        Rendered::Waits(_) if resource.template.objects().len() == 1 => DesiredPart::Wrong(
            ValueError::new("", "speaks of itself", "use what is known before it is made")
                .in_field("template"),
        ),
        Rendered::Waits(outputs) => DesiredPart::Waits(outputs),
        Rendered::Wrong(error) => DesiredPart::Wrong(error),
    }
}

/// A part: the template's labels, annotations and fields under a name of ours, and whose it is. It has no owner
/// reference: were it collected as garbage with its resource, a retained database would go too.
fn make(resource: &Resource, id: &Name, key: &PartKey, object: &Value) -> Part {
    let texts = |field: &str| {
        let map = object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_object);
        let pairs = map.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
        pairs.collect::<BTreeMap<String, String>>()
    };
    let (mut labels, mut annotations) = (texts("labels"), texts("annotations"));
    // Ours say whose a thing is and whether it may be published: a claim's text must not come to stand there.
    labels.retain(|key, _| !is_ours(key));
    annotations.retain(|key, _| !is_ours(key));
    labels.insert(RESOURCE.to_owned(), label_of(&resource.meta.key.name));
    labels.insert(PART.to_owned(), id.to_string());
    annotations.insert(RESOURCE_UID.to_owned(), resource.meta.uid.to_string());
    let fields = object.as_object().into_iter().flatten();
    let own =
        fields.filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
    let body: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    let body = Value::Object(body);
    let rendered = digest(&json!([labels, annotations, body]).to_string());
    annotations.insert(RENDERED.to_owned(), rendered);
    Part {
        kind: key.kind.clone(),
        metadata: ObjectMeta {
            name: Some(key.name.to_string()),
            namespace: Some(key.namespace.to_string()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        body,
    }
}

/// Whether a label or an annotation is one that only we write.
fn is_ours(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == CONDUCTOR_GROUP || domain.ends_with(&format!(".{CONDUCTOR_GROUP}"))
}

/// The digest of what a part is rendered from.
pub(super) fn digest_of(part: &Part) -> Option<Name> {
    part.metadata.annotations.as_ref()?.get(RENDERED).map(|digest| Name::from(digest.as_str()))
}

/// Whether a part can be used: by its class, else by the adapter for its kind, else by its own status.
///
/// # Errors
/// What is wrong with the class's expression.
pub(super) fn readiness(
    resource: &Resource,
    view: &View<'_>,
    id: &Name,
    part: &PartView,
) -> Result<Readiness, FieldError> {
    let object = part.object();
    if let (Some(script), Some(Ok(compiled))) = (&resource.script, view.compiled)
        && let Some(judged) = compiled.is_ready(&inputs_of(script, &present(view)), id, &object)
    {
        return judged.map(|is_ready| match is_ready {
            true => Readiness::Ready,
            false => Readiness::NotReady(Name::from("it is not ready by its class")),
        });
    }
    let judged = view.adapters.find(&part.key.kind).and_then(|adapter| adapter.readiness(&object));
    Ok(judged.unwrap_or_else(|| Readiness::read(&part.key.kind, &object)))
}

/// A class provisions nothing, and has an error, where its templates can never work, create kinds that this installation
/// does not allow, or name another namespace than the system namespace.
pub fn with_checked_templates(class: Class, allowed: &AllowedKinds) -> Class {
    let checked = class.recipe.as_ref().ok().and_then(|recipe| {
        if let Some(kind) = recipe.kinds.iter().find(|kind| !allowed.allows(kind)) {
            let fix = "add it to --allow-kinds, or use another kind";
            let error =
                ValueError::new(&kind.to_string(), "is not on this installation's list of kinds", fix);
            return Some(error.in_field(recipe.template.as_ref().map_or("template", |(field, _)| field)));
        }
        let (field, template) = recipe.template.as_ref()?;
        let of = |name: &str| recipe.inputs.as_ref().and_then(|inputs| inputs.get(name));
        let source = Source {
            template: (*field == "template").then_some(template),
            templates: (*field == "templates").then_some(template),
            ready: of("ready").and_then(Value::as_str),
            connection: of("connection"),
        };
        let checked = CompiledClass::compile(&source)
            .and_then(|_| check_namespaces(field, template, &class.meta.key.namespace))
            .and_then(|()| check_schema(of("parameterSchema"), of("parameters")));
        checked.err()
    });
    match checked {
        Some(error) => Class { recipe: Err(error), ..class },
        None => class,
    }
}

/// Parts live in the system namespace and nowhere else: a template that says otherwise is not passed over.
fn check_namespaces(field: &str, template: &Value, system: &str) -> Result<(), FieldError> {
    let several = template.as_array().into_iter().flatten().enumerate();
    let several =
        several.filter_map(|(n, entry)| Some((format!("{field}[{n}].template"), entry.get("template")?)));
    let one = template.as_object().map(|_| (field.to_owned(), template));
    for (at, template) in several.chain(one) {
        let namespace = template.pointer("/metadata/namespace").and_then(Value::as_str);
        if let Some(other) = namespace.filter(|namespace| *namespace != system && !system.is_empty()) {
            let fix = format!("leave it out: everything is created in {system}");
            let error = ValueError::new(other, "is not the system namespace", fix);
            return Err(error.in_field(format!("{at}.metadata.namespace")));
        }
    }
    Ok(())
}

/// A label's value may be shorter than a name.
const LABEL_CHARS_MAX: usize = 63;

fn label_of(name: &str) -> String {
    if name.len() <= LABEL_CHARS_MAX { name.to_owned() } else { digest(name) }
}
