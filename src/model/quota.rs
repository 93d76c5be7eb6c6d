//! Quotas and limits, validated: how much a namespace, or a set of them, may claim. Counting is the cache's work.

use super::claim::canonical_name;
use super::error::FieldError;
use super::fields::Field;
use super::key::Name;
use super::meta::Meta;
use super::object::{Kind, Object};
use super::quantity::Quantity;
use super::selector::Selector;
use super::types::{Rule, TYPES};
use serde_json::Value;

/// A `ClaimQuota` or a `ClusterClaimQuota`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Identity.
    pub meta: Meta,
    /// The namespaces counted together; absent for a quota of its own namespace.
    pub namespaces: Option<Selector>,
    /// What it limits; unreadable limits limit nothing, and are told on the quota.
    pub limits: Result<Vec<QuotaLimit>, FieldError>,
    /// `status.used` as written.
    pub used: Option<Value>,
    /// `status.summary` as written.
    pub summary: Option<Name>,
}

/// One limit of a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLimit {
    /// Counts only claims of this class.
    pub class: Option<Name>,
    /// Counts only claims of this engine, and claims that name none.
    pub engine: Option<Name>,
    /// At most so many claims.
    pub claims: Option<u64>,
    /// At most so much in sum, by capacity.
    pub requests: Named,
}

/// Quantities by name, sorted. Unlike a capacity it keeps zeros: a limit of zero is a limit.
pub type Named = Vec<(Name, Quantity)>;

/// A `ClaimLimits`: bounds and defaults for single claims of its namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Identity.
    pub meta: Meta,
    /// The bounds; unreadable ones bind nobody, and are told on the object.
    pub bounds: Result<Bounds, FieldError>,
}

/// What a `ClaimLimits` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The least that a claim may ask.
    pub min: Named,
    /// The most that a claim may ask.
    pub max: Named,
    /// What a claim asks where it says nothing.
    pub default: Named,
}

impl Quota {
    /// Reads a quota of either scope.
    pub fn read(object: &Object) -> Quota {
        let root = Field::root(&object.body);
        let (namespaces, limits) = match read_quota(object.kind, &root.at("spec")) {
            Ok((namespaces, limits)) => (namespaces, Ok(limits)),
            Err(error) => (None, Err(error)),
        };
        Quota {
            meta: Meta::read(&object.metadata),
            namespaces,
            limits,
            used: root.at("status").at("used").value().cloned(),
            summary: root.at("status").at("summary").value().and_then(Value::as_str).map(Name::from),
        }
    }
}

fn read_quota(kind: Kind, spec: &Field<'_>) -> Result<(Option<Selector>, Vec<QuotaLimit>), FieldError> {
    spec.require_map()?;
    let selector = spec.at("namespaceSelector");
    let namespaces = match (kind, selector.value()) {
        (Kind::ClusterQuota, Some(value)) => Some(Selector::from_json(value).map_err(|e| selector.place(e))?),
        (Kind::ClusterQuota, None) => Some(Selector::default()),
        _ => None,
    };
    let limits = spec.at("limits");
    if limits.value().is_none() {
        return Err(limits.error("is missing", "list what is limited, or delete the quota"));
    }
    let limits = limits.items()?.iter().map(QuotaLimit::read).collect::<Result<_, _>>()?;
    Ok((namespaces, limits))
}

impl QuotaLimit {
    fn read(field: &Field<'_>) -> Result<QuotaLimit, FieldError> {
        field.require_map()?;
        let claims = field.at("claims");
        let count = claims
            .integer()?
            .map(|n| u64::try_from(n).map_err(|_| claims.error("is negative", "write zero or more")));
        Ok(QuotaLimit {
            class: field.at("class").name()?,
            engine: field.at("engine").text()?.map(canonical_engine),
            claims: count.transpose()?,
            requests: read_named(&field.at("requests"))?,
        })
    }
}

/// Engines of every type share one spelling table, so a quota need not say which type it means.
fn canonical_engine(text: &str) -> Name {
    let aliases = TYPES.iter().flat_map(|ty| &ty.fields).find_map(|field| match field.rule {
        Rule::Name { aliases } => Some(aliases),
        Rule::VersionRange | Rule::Flag | Rule::Contains => None,
    });
    canonical_name(text, aliases.unwrap_or_default())
}

impl Limits {
    /// Reads the limits of a namespace.
    pub fn read(object: &Object) -> Limits {
        let spec = Field::root(&object.body).at("spec");
        let bounds = || {
            spec.require_map()?;
            let (min, max) = (read_named(&spec.at("min"))?, read_named(&spec.at("max"))?);
            Ok(Bounds { min, max, default: read_named(&spec.at("default"))? })
        };
        Limits { meta: Meta::read(&object.metadata), bounds: bounds() }
    }
}

fn read_named(field: &Field<'_>) -> Result<Named, FieldError> {
    let Some(value) = field.value() else { return Ok(Named::new()) };
    let map = value.as_object().ok_or_else(|| field.error("is not a map", "write `storage: 100Gi`"))?;
    let mut named = Named::new();
    for name in map.keys() {
        let entry = field.at(name);
        match entry.read(Quantity::from_json)? {
            Some(quantity) if quantity.is_negative() => {
                return Err(entry.error("is negative", "write zero or more"));
            }
            Some(quantity) => named.push((Name::from(name.as_str()), quantity)),
            None => {}
        }
    }
    named.sort();
    Ok(named)
}
