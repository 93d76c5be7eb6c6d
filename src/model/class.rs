//! A class, validated: what a resource made from it would offer. Making one is the lifecycle's business.

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
use super::taken::{Amounts, Taken};
use super::types::{FieldRule, Rule, TypeId};
use super::version::Version;
use crate::api::names::IS_DEFAULT_CLASS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A class as the engine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// Whether claims that name no class are of this one.
    pub is_default: bool,
    /// What it can make; an unreadable class makes nothing, and is told so.
    pub recipe: Result<Arc<Recipe>, FieldError>,
}

/// What a class makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// What becomes of the resources it made.
    pub reclaim: ReclaimPolicy,
    /// What it offers in each field of its type.
    pub fields: Box<[FieldOffer]>,
    /// Sizes that it offers, by capacity.
    pub sizes: Box<[(Name, Size)]>,
    /// What its templates take from a claim: offered though it is not declared.
    pub taken: Taken,
    /// Whether it declares nothing at all of what it makes. Then nobody knows how large that is: sizes are not held
    /// against it, and none is recorded that its templates do not take.
    pub is_silent: bool,
    /// The implementation objects: `template` or `templates` as written. A class with
    /// neither groups resources that exist and makes none.
    pub template: Option<(&'static str, Value)>,
    /// The kinds that the template makes.
    pub kinds: Box<[PartKind]>,
    /// The `sharing` of its resources, as written.
    pub sharing: Option<Value>,
    /// The class as its templates' expressions see it; absent where there are none to see it.
    pub inputs: Option<Value>,
    /// Labels of its resources.
    pub labels: Labels,
    /// Whether resources that were made from it follow it when it changes.
    pub follows: bool,
}

/// What a class offers in one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOffer {
    /// Whatever the claim asks: its templates take it from there, or, of a name, it says none.
    Unspoken,
    /// Not declared: none.
    Undeclared,
    /// Not known: accepted, and not recorded.
    Unknown,
    /// One of these names, the first where the claim asks for none.
    Names(Box<[Name]>),
    /// Versions in any of these ranges.
    Versions(Box<[VersionRange]>),
    /// True or false.
    Flag(bool),
    /// These.
    Set(Box<[Name]>),
}

/// The sizes a class offers of one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The smallest it makes.
    pub min: Quantity,
    /// The largest it makes, where bounded.
    pub max: Option<Quantity>,
    /// Sizes come in multiples of this above the smallest; zero means any.
    pub step: Quantity,
}

impl Class {
    /// Whether what it makes can be had by several claims.
    pub fn makes_shared(&self) -> bool {
        let slots = |recipe: &Arc<Recipe>| recipe.sharing.as_ref()?.get("maxClaims")?.as_i64();
        self.recipe.as_ref().ok().and_then(slots).is_some_and(|slots| slots > 1)
    }

    /// What quotas count of a resource made for a claim: what it requests, and of everything else, where it has the
    /// resource alone, all there is.
    ///
    /// # Errors
    /// The first capacity that the class does not make.
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

    /// Reads a class of type `ty`, in either form: its fields at the top level, or under `spec`.
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

/// The two forms of a class as one: a field is looked for at the top, then under `spec`.
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
        let taken = template.as_ref().map(|(_, template)| Taken::read(template)).unwrap_or_default();
        let declared: Vec<Option<FieldOffer>> =
            rules.fields.iter().map(|rule| FieldOffer::read(rule, form)).collect::<Result<_, _>>()?;
        let sizes = read_sizes(&form.at("capacity"))?;
        let is_silent = sizes.is_empty() && declared.iter().all(Option::is_none);
        let offer = |(rule, declared): (&FieldRule, Option<FieldOffer>)| {
            declared.unwrap_or_else(|| FieldOffer::undeclared(rule, &taken))
        };
        Ok(Recipe {
            reclaim: ReclaimPolicy::read(form.at("reclaimPolicy").text()?),
            fields: rules.fields.iter().zip(declared).map(offer).collect(),
            sizes,
            taken,
            is_silent,
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

    /// The amounts that are declared as a range and that parameters may decide: how much of them is made is not known before,
    /// whatever the claim requests.
    pub fn sized_by_parameters(&self) -> impl Iterator<Item = &Name> {
        let is_range = |size: &Size| size.max != Some(size.min);
        let sizes = self
            .sizes
            .iter()
            .filter(move |(name, size)| is_range(size) && self.taken.may_size_by_parameters(name));
        sizes.map(|(name, _)| name)
    }

    /// Whether nothing is known of what it makes: it declares nothing, and its templates take no amount from the claim.
    pub fn checks_no_sizes(&self) -> bool {
        let takes_none = matches!(self.taken.amounts(), Amounts::Named(names) if names.is_empty());
        self.template.is_some() && self.is_silent && takes_none
    }

    /// The capacity of a resource made for `requests`: what is declared, and what its templates take from the claim.
    ///
    /// # Errors
    /// The first capacity that cannot be had.
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
            match self.taken.has_amount(dim.name()) {
                true => made.set(primary, dim.name(), asked),
                false if self.is_silent || asked.is_zero() => {}
                false => return Err(SizeRefusal { name: Name::from(dim.name()), asked, most: None }),
            }
        }
        Ok(made)
    }
}

/// A capacity that a class does not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRefusal {
    /// Which.
    pub name: Name,
    /// What is asked.
    pub asked: Quantity,
    /// The most that it makes; nothing where it declares none.
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
        // The last step may overshoot a maximum that is not on the grid.
        let asked_fits = self.max.filter(|max| asked <= *max);
        if fits { Some(given) } else { asked_fits }
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
        .map_err(|_| field.error("is no map of texts", "write `tier: gold`"))
}

/// A class may make fewer kinds than the installation allows.
fn check_kinds(form: &Form<'_>, kinds: &[PartKind]) -> Result<(), FieldError> {
    let field = form.at("allowedKinds");
    if field.value().is_none() {
        return Ok(());
    }
    let allowed = AllowedKinds::new(field.names()?.iter().map(ToString::to_string));
    match kinds.iter().find(|kind| !allowed.allows(kind)) {
        Some(kind) => Err(field.error(
            &format!("does not have {kind}, which a template makes"),
            "add it, or change the template",
        )),
        None => Ok(()),
    }
}

/// What a class makes: the field as written, and the kinds in it.
type Made = (Option<(&'static str, Value)>, Box<[PartKind]>);

fn read_template(form: &Form<'_>) -> Result<Made, FieldError> {
    let (one, many) = (form.at("template"), form.at("templates"));
    let (field, value, kinds) = match (one.value(), many.value()) {
        (Some(_), Some(_)) => return Err(many.error("stands beside `template`", "keep one of the two")),
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
    /// What a class offers of a field that it does not declare. A name that is not declared is the claim's own, as it
    /// always was; what its templates take is what the claim asks; which version comes of it, the implementation will
    /// report; anything else would be a promise that nobody made.
    fn undeclared(rule: &FieldRule, taken: &Taken) -> FieldOffer {
        match rule.rule {
            Rule::Name { .. } => FieldOffer::Unspoken,
            _ if taken.has_field(rule) => FieldOffer::Unspoken,
            Rule::VersionRange => FieldOffer::Unknown,
            Rule::Flag | Rule::Contains => FieldOffer::Undeclared,
        }
    }

    /// What is declared of a field; nothing where it is not.
    fn read(rule: &FieldRule, form: &Form<'_>) -> Result<Option<FieldOffer>, FieldError> {
        let field = form.at(rule.resource);
        Ok(match rule.rule {
            Rule::Name { aliases } => {
                let mut texts: Vec<&str> = field.text()?.into_iter().collect();
                for item in form.at_plural(rule.resource).items()? {
                    texts.extend(item.text()?);
                }
                // In the order in which they are written: the first is made where none is asked for.
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

    /// Whether a resource made from the class can satisfy `want` in this field.
    pub fn satisfies(&self, want: &FieldWant) -> bool {
        match (self, want) {
            (FieldOffer::Unspoken | FieldOffer::Unknown, _) | (_, FieldWant::Any) => true,
            // A claim that lists no capability asks for none.
            (FieldOffer::Undeclared, FieldWant::Contains(want)) => want.is_empty(),
            (FieldOffer::Undeclared, _) => false,
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

    /// The value that a resource made for `want` carries in this field, as JSON.
    pub fn value_for(&self, want: &FieldWant) -> Option<Value> {
        match (self, want) {
            (FieldOffer::Undeclared | FieldOffer::Unknown, _) => None,
            (FieldOffer::Versions(offered), FieldWant::Range(want)) => {
                version_for(offered, want).map(Value::from)
            }
            (FieldOffer::Versions(offered), _) => {
                offered.iter().find_map(VersionRange::lowest_text).map(Value::from)
            }
            (_, FieldWant::Range(want)) => want.lowest_text().map(Value::from),
            // Where the claim asks for a name, it is one of those offered: that was asked first.
            (_, FieldWant::Name(name)) => Some(Value::from(&**name)),
            (FieldOffer::Names(names), _) => names.first().map(|name| Value::from(&**name)),
            (FieldOffer::Flag(flag), _) => Some(Value::from(*flag)),
            (_, FieldWant::Flag) => Some(Value::from(true)),
            (FieldOffer::Set(names), _) | (_, FieldWant::Contains(names)) => {
                Some(names.iter().map(|n| Value::from(&**n)).collect())
            }
            (FieldOffer::Unspoken, FieldWant::Any) => None,
        }
    }
}

/// The version a class gives to a claim: the first offered one that the claim accepts as it is written, else the lowest
/// that the claim names and the class offers, else the lowest that lies in both.
fn version_for(offered: &[VersionRange], want: &VersionRange) -> Option<String> {
    let accepted = |text: &String| Version::parse(text).is_ok_and(|v| want.matches(&v));
    let is_offered =
        |text: &String| Version::parse(text).is_ok_and(|v| offered.iter().any(|o| o.matches(&v)));
    let named = offered.iter().filter_map(VersionRange::lowest_text).find(accepted);
    let asked = || want.lowest_text().filter(is_offered);
    named.or_else(asked).or_else(|| offered.iter().find_map(|offered| offered.lowest_common(want)))
}
