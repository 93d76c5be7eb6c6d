//! A class, validated: what a resource provisioned from it would offer. The lifecycle provisions.

use super::capacity::Capacity;
use super::claim::{FieldWant, Wants, canonical_name};
use super::duration;
use super::error::FieldError;
use super::fields::Field;
use super::implementation::read_kind;
use super::inputs;
use super::key::Name;
use super::meta::{Labels, Meta};
use super::object::Object;
use super::part::{AllowedKinds, PartKind};
use super::quantity::Quantity;
use super::range::VersionRange;
use super::resource::ReclaimPolicy;
use super::types::{FieldRule, Rule, TypeId};
use super::used_fields::{Amounts, UsedFields};
use super::version::Version;
use crate::api::names::IS_DEFAULT_CLASS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A parsed class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// Whether it is a default class, for claims without a class.
    pub is_default: bool,
    /// What it can provision. An invalid class provisions nothing; an Event reports the error.
    pub recipe: Result<Arc<Recipe>, FieldError>,
}

/// What a class provisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The reclaim policy of its resources.
    pub reclaim: ReclaimPolicy,
    /// What it offers for each field of its type.
    pub fields: Box<[FieldOffer]>,
    /// The sizes that it offers, by capacity name.
    pub sizes: Box<[(Name, Size)]>,
    /// The fields of the claim that its templates use: offered even if not declared.
    pub used: UsedFields,
    /// Whether it declares neither fields nor sizes. Then its sizes are unknown: requests are not checked against them, and
    /// only sizes that its templates use are recorded.
    pub declares_nothing: bool,
    /// The implementation objects: `template` or `templates` as written. A class with neither groups existing resources
    /// and provisions none.
    pub template: Option<(&'static str, Value)>,
    /// The kinds of the objects in the templates.
    pub kinds: Box<[PartKind]>,
    /// The `sharing` of its resources, as written.
    pub sharing: Option<Value>,
    /// The class as the expressions of its templates see it; None without expressions.
    pub inputs: Option<Value>,
    /// Labels of its resources.
    pub labels: Labels,
    /// Whether changes of the class apply to its existing resources.
    pub follows: bool,
}

/// What a class offers for one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOffer {
    /// The value that the claim requests: the templates use it, or the class declares no name.
    AsRequested,
    /// Not declared: the resource has no value.
    Absent,
    /// Unknown until the implementation reports it: any requirement is accepted, no value is recorded.
    Unknown,
    /// One of these names; the first if the claim requests none.
    Names(Box<[Name]>),
    /// Versions in any of these ranges.
    Versions(Box<[VersionRange]>),
    /// True or false.
    Flag(bool),
    /// These capabilities.
    Set(Box<[Name]>),
}

/// The sizes a class offers of one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The minimum.
    pub min: Quantity,
    /// The maximum, if bounded.
    pub max: Option<Quantity>,
    /// Sizes are `min` plus a multiple of this; zero allows any.
    pub step: Quantity,
}

impl Class {
    /// Whether several claims can share a resource of the class.
    pub fn makes_shared(&self) -> bool {
        let slots = |recipe: &Arc<Recipe>| recipe.sharing.as_ref()?.get("maxClaims")?.as_i64();
        self.recipe.as_ref().ok().and_then(slots).is_some_and(|slots| slots > 1)
    }

    /// What quotas count for a claim that the class provisions for: its requests, and for capacities that it does not
    /// request, all of the resource if it has it alone.
    ///
    /// # Errors
    /// The first capacity that the class does not provision.
    pub fn counted_for(&self, recipe: &Recipe, wants: &Wants) -> Result<Capacity, SizeRefusal> {
        let made = recipe.size_for(self.ty.rules().primary_capacity, &wants.requests)?;
        if self.makes_shared() && !wants.exclusive {
            return Ok(wants.requests.clone());
        }
        let mut counted = wants.requests.or_else(&made);
        for name in recipe.sized_by_parameters() {
            counted.set(self.ty.rules().primary_capacity, name, Quantity::ZERO);
        }
        Ok(counted)
    }

    /// Parses a class of type `ty` in either form: its fields at the top level, or under `spec`.
    pub fn read(ty: TypeId, object: &Object) -> Class {
        let annotations = object.metadata.annotations.as_ref();
        let default = annotations.and_then(|a| a.get(IS_DEFAULT_CLASS));
        Class {
            ty,
            meta: Meta::read(&object.metadata),
            is_default: default.is_some_and(|v| v == "true"),
            recipe: Recipe::read(ty, &Form { top: Field::root(&object.body) })
                .map(|recipe| Arc::new(recipe.with_inputs(object))),
        }
    }
}

/// Both forms of a class as one: a field at the top level, or else under `spec`.
struct Form<'a> {
    top: Field<'a>,
}

impl<'a> Form<'a> {
    fn at(&self, name: &'a str) -> Field<'a> {
        let field = self.top.at(name);
        if field.value().is_some() { field } else { self.top.at("spec").at(name) }
    }

    fn at_plural(&self, name: &'a str) -> Field<'a> {
        let field = self.top.at_plural(name);
        if field.value().is_some() { field } else { self.top.at("spec").at_plural(name) }
    }
}

impl Recipe {
    fn read(ty: TypeId, form: &Form<'_>) -> Result<Recipe, FieldError> {
        let rules = ty.rules();
        form.at("deadline").read(duration::from_json)?;
        let (template, kinds) = read_template(form)?;
        let used = template.as_ref().map(|(_, template)| UsedFields::read(template)).unwrap_or_default();
        let declared: Vec<Option<FieldOffer>> =
            rules.fields.iter().map(|rule| FieldOffer::read(rule, form)).collect::<Result<_, _>>()?;
        let sizes = read_sizes(&form.at("capacity"))?;
        let declares_nothing = sizes.is_empty() && declared.iter().all(Option::is_none);
        let offer = |(rule, declared): (&FieldRule, Option<FieldOffer>)| {
            declared.unwrap_or_else(|| FieldOffer::undeclared(rule, &used))
        };
        Ok(Recipe {
            reclaim: ReclaimPolicy::read(form.at("reclaimPolicy").text()?),
            fields: rules.fields.iter().zip(declared).map(offer).collect(),
            sizes,
            used,
            declares_nothing,
            template,
            kinds,
            sharing: form.at("sharing").value().cloned(),
            inputs: None,
            labels: read_labels(&form.at("labels"))?,
            follows: form.at("updatePolicy").text()? == Some("Follow"),
        })
    }

    fn with_inputs(self, object: &Object) -> Recipe {
        let class = inputs::of_class(object);
        let says = |field: &str| class.get(field).is_some_and(|value| !value.is_null());
        let computed = self.template.as_ref().is_some_and(|(_, template)| inputs::has_expressions(template));
        let said = ["ready", "connection", "parameterSchema", "deadline"].into_iter().any(says);
        let needed = self.template.is_some() && (computed || said);
        Recipe { inputs: needed.then_some(class), ..self }
    }

    /// The capacities with a range whose size parameters may determine: their size is unknown before provisioning, whatever
    /// the claim requests.
    pub fn sized_by_parameters(&self) -> impl Iterator<Item = &Name> {
        let is_range = |size: &Size| size.max != Some(size.min);
        let sizes = self
            .sizes
            .iter()
            .filter(move |(name, size)| is_range(size) && self.used.may_size_by_parameters(name));
        sizes.map(|(name, _)| name)
    }

    /// Whether requests are not checked at all: the class declares nothing, and its templates use no requested quantity.
    pub fn checks_no_sizes(&self) -> bool {
        let takes_none = matches!(self.used.amounts(), Amounts::Named(names) if names.is_empty());
        self.template.is_some() && self.declares_nothing && takes_none
    }

    /// The capacity of a resource for `requests`: the declared sizes, and requested quantities that the templates use.
    ///
    /// # Errors
    /// The first capacity that the class does not provision.
    pub fn size_for(&self, primary: &str, requests: &Capacity) -> Result<Capacity, SizeRefusal> {
        let mut made = Capacity::default();
        for (name, size) in &self.sizes {
            let asked = requests.get(name);
            let most = Some(size.max.unwrap_or(size.min));
            let refusal = || SizeRefusal { name: name.clone(), asked, most };
            made.set(primary, name, size.for_request(asked).ok_or_else(refusal)?);
        }
        let declared = |name: &str| self.sizes.iter().any(|(declared, _)| &**declared == name);
        for (dim, asked) in requests.iter().filter(|(dim, _)| !declared(dim.name())) {
            match self.used.has_amount(dim.name()) {
                true => made.set(primary, dim.name(), asked),
                false if self.declares_nothing || asked.is_zero() => {}
                false => return Err(SizeRefusal { name: Name::from(dim.name()), asked, most: None }),
            }
        }
        Ok(made)
    }
}

/// A capacity that a class does not provision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRefusal {
    /// The name of the capacity.
    pub name: Name,
    /// The requested quantity.
    pub asked: Quantity,
    /// The maximum of the class; None if it does not offer the capacity.
    pub most: Option<Quantity>,
}

impl Size {
    fn for_request(self, asked: Quantity) -> Option<Quantity> {
        let beyond = asked.saturating_sub(self.min);
        let given = if beyond.is_negative() || beyond.is_zero() {
            self.min
        } else if self.step.is_zero() {
            asked
        } else {
            self.min.saturating_add(beyond.round_up_to(self.step))
        };
        let fits = self.max.is_none_or(|max| given <= max);
        // The last step may exceed a maximum that is not a multiple of it.
        let request_fits = self.max.filter(|max| asked <= *max);
        if fits { Some(given) } else { request_fits }
    }
}

fn read_sizes(field: &Field<'_>) -> Result<Box<[(Name, Size)]>, FieldError> {
    let Some(map) = field.value() else { return Ok(Box::default()) };
    let map = map.as_object().ok_or_else(|| field.error("is not a map", "write `storage: 100Gi`"))?;
    map.keys().map(|name| Ok((Name::from(name.as_str()), read_size(&field.at(name))?))).collect()
}

fn read_size(field: &Field<'_>) -> Result<Size, FieldError> {
    let quantity = |f: &Field<'_>| {
        let quantity = f.read(Quantity::from_json)?;
        match quantity {
            Some(q) if q.is_negative() => Err(f.error("is negative", "write zero or more")),
            other => Ok(other),
        }
    };
    if !field.value().is_some_and(Value::is_object) {
        let fixed = quantity(field)?.unwrap_or_default();
        return Ok(Size { min: fixed, max: Some(fixed), step: Quantity::default() });
    }
    let (min, max) = (quantity(&field.at("min"))?.unwrap_or_default(), quantity(&field.at("max"))?);
    if max.is_some_and(|max| max < min) {
        return Err(field.error("has a min above its max", "make min the smaller one"));
    }
    Ok(Size { min, max, step: quantity(&field.at("step"))?.unwrap_or_default() })
}

fn read_labels(field: &Field<'_>) -> Result<Labels, FieldError> {
    let Some(value) = field.value() else { return Ok(Labels::default()) };
    let labels: Result<BTreeMap<String, String>, _> = serde_json::from_value(value.clone());
    labels
        .map(|labels| Labels::read(Some(&labels)))
        .map_err(|_| field.error("is not a map of strings", "write `tier: gold`"))
}

/// Checks the kinds of the templates against `allowedKinds`, which restricts those of the installation.
fn check_kinds(form: &Form<'_>, kinds: &[PartKind]) -> Result<(), FieldError> {
    let field = form.at("allowedKinds");
    if field.value().is_none() {
        return Ok(());
    }
    let allowed = AllowedKinds::new(field.names()?.iter().map(ToString::to_string));
    match kinds.iter().find(|kind| !allowed.allows(kind)) {
        Some(kind) => Err(field.error(
            &format!("does not have {kind}, which a template creates"),
            "add it, or change the template",
        )),
        None => Ok(()),
    }
}

/// The templates of a class: the field as written, and the kinds in it.
type Made = (Option<(&'static str, Value)>, Box<[PartKind]>);

fn read_template(form: &Form<'_>) -> Result<Made, FieldError> {
    let (one, many) = (form.at("template"), form.at("templates"));
    let (field, value, kinds) = match (one.value(), many.value()) {
        (Some(_), Some(_)) => {
            return Err(many.error("is set together with `template`", "keep one of the two"));
        }
        (Some(template), None) => ("template", template, vec![read_kind(&one)?]),
        (None, Some(templates)) => {
            let kinds =
                many.items()?.iter().map(|entry| read_kind(&entry.at("template"))).collect::<Result<_, _>>();
            ("templates", templates, kinds?)
        }
        (None, None) => return Ok((None, Box::default())),
    };
    check_kinds(form, &kinds)?;
    Ok((Some((field, value.clone())), kinds.into()))
}

impl FieldOffer {
    /// What a class offers for a field that it does not declare: for a name, and for a field that its templates use, the
    /// value that the claim requests; for a version, whatever the implementation will report; otherwise nothing.
    fn undeclared(rule: &FieldRule, used: &UsedFields) -> FieldOffer {
        match rule.rule {
            Rule::Name { .. } => FieldOffer::AsRequested,
            _ if used.has_field(rule) => FieldOffer::AsRequested,
            Rule::VersionRange => FieldOffer::Unknown,
            Rule::Flag | Rule::Contains => FieldOffer::Absent,
        }
    }

    /// What a class declares for a field; None if nothing.
    fn read(rule: &FieldRule, form: &Form<'_>) -> Result<Option<FieldOffer>, FieldError> {
        let field = form.at(rule.resource);
        Ok(match rule.rule {
            Rule::Name { aliases } => {
                let mut texts: Vec<&str> = field.text()?.into_iter().collect();
                for item in form.at_plural(rule.resource).items()? {
                    texts.extend(item.text()?);
                }
                // As written: the first is the default of claims that request none.
                let mut names: Vec<Name> = Vec::new();
                for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
                    let name = canonical_name(text, aliases);
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                (!names.is_empty()).then(|| FieldOffer::Names(names.into()))
            }
            Rule::VersionRange => {
                let mut ranges: Vec<VersionRange> =
                    field.read(VersionRange::from_json)?.into_iter().collect();
                for item in form.at_plural(rule.resource).items()? {
                    ranges.extend(item.read(VersionRange::from_json)?);
                }
                (!ranges.is_empty()).then(|| FieldOffer::Versions(ranges.into()))
            }
            Rule::Flag => field.flag()?.map(FieldOffer::Flag),
            Rule::Contains => match field.value() {
                Some(_) => Some(FieldOffer::Set(field.names()?.into())),
                None => None,
            },
        })
    }

    /// Whether a resource of the class can satisfy `want` in this field.
    pub fn satisfies(&self, want: &FieldWant) -> bool {
        match (self, want) {
            (FieldOffer::AsRequested | FieldOffer::Unknown, _) | (_, FieldWant::Any) => true,
            // A claim without capabilities requires none.
            (FieldOffer::Absent, FieldWant::Contains(want)) => want.is_empty(),
            (FieldOffer::Absent, _) => false,
            (FieldOffer::Names(have), FieldWant::Name(want)) => have.contains(want),
            (FieldOffer::Versions(have), FieldWant::Range(want)) => have.iter().any(|h| h.overlaps(want)),
            (FieldOffer::Flag(have), FieldWant::Flag) => *have,
            (FieldOffer::Set(have), FieldWant::Contains(want)) => want.iter().all(|w| have.contains(w)),
            (FieldOffer::Names(_), _)
            | (FieldOffer::Versions(_), _)
            | (FieldOffer::Flag(_), _)
            | (FieldOffer::Set(_), _) => false,
        }
    }

    /// What is offered and what is requested, where both are names.
    pub fn names_beside(&self, want: &FieldWant) -> Option<(String, Name)> {
        let (FieldOffer::Names(have), FieldWant::Name(want)) = (self, want) else { return None };
        Some((have.iter().map(|name| &**name).collect::<Vec<_>>().join(" or "), want.clone()))
    }

    /// The value of this field in a resource provisioned for `want`, as JSON.
    pub fn value_for(&self, want: &FieldWant) -> Option<Value> {
        match (self, want) {
            (FieldOffer::Absent | FieldOffer::Unknown, _) => None,
            (FieldOffer::Versions(offered), FieldWant::Range(want)) => {
                version_for(offered, want).map(Value::from)
            }
            (FieldOffer::Versions(offered), _) => {
                offered.iter().find_map(VersionRange::lowest_text).map(Value::from)
            }
            (_, FieldWant::Range(want)) => want.lowest_text().map(Value::from),
            // A name that the claim requests is among those offered: matching checked that.
            (_, FieldWant::Name(name)) => Some(Value::from(&**name)),
            (FieldOffer::Names(names), _) => names.first().map(|name| Value::from(&**name)),
            (FieldOffer::Flag(flag), _) => Some(Value::from(*flag)),
            (_, FieldWant::Flag) => Some(Value::from(true)),
            (FieldOffer::Set(names), _) | (_, FieldWant::Contains(names)) => {
                Some(names.iter().map(|n| Value::from(&**n)).collect())
            }
            (FieldOffer::AsRequested, FieldWant::Any) => None,
        }
    }
}

/// The version that a class provisions for a claim: the first offered one that the claim accepts as written, else the
/// lowest that the claim names and the class offers, else the lowest in both ranges.
fn version_for(offered: &[VersionRange], want: &VersionRange) -> Option<String> {
    let accepted = |text: &String| Version::parse(text).is_ok_and(|v| want.matches(&v));
    let is_offered =
        |text: &String| Version::parse(text).is_ok_and(|v| offered.iter().any(|o| o.matches(&v)));
    let named = offered.iter().filter_map(VersionRange::lowest_text).find(accepted);
    let asked = || want.lowest_text().filter(is_offered);
    named.or_else(asked).or_else(|| offered.iter().find_map(|offered| offered.lowest_common(want)))
}
