//! Quotas and limits, validated. The cache counts the usage.

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
    /// The namespaces counted together; None for a quota of its own namespace.
    pub namespaces: Option<Selector>,
    /// Its limits. Invalid ones are not in force; an Event reports the error.
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
    /// The maximum number of claims.
    pub claims: Option<u64>,
    /// The maximum sum of requests, by capacity name.
    pub requests: Named,
}

/// Quantities by name, sorted. Unlike a Capacity it keeps zeros: zero is a limit.
pub type Named = Vec<(Name, Quantity)>;

/// A `ClaimLimits`: bounds and defaults for single claims of its namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Identity.
    pub meta: Meta,
    /// The bounds. Invalid ones are not in force; an Event reports the error.
    pub bounds: Result<Bounds, FieldError>,
}

/// The bounds of a `ClaimLimits`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The minimum requests of a claim.
    pub min: Named,
    /// The maximum requests of a claim.
    pub max: Named,
    /// The requests of a claim that sets none.
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
    let namespaces = match kind {
        Kind::ClusterQuota => Some(Selector::read(&selector)?),
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

/// Engines of all types share one table of aliases, so that a quota applies to all types.
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
    let mut named: Named =
        field.quantities()?.into_iter().map(|(name, amount)| (Name::from(name), amount)).collect();
    named.sort();
    Ok(named)
}
