//! A scheduling profile, validated: disabled predicates, scores, and the order of the ways to satisfy a claim.

use super::error::FieldError;
use super::fields::Field;
use super::key::Name;
use super::meta::Meta;
use super::object::Object;
pub use crate::api::profile::{BatchMode, Way};
use crate::predicates::Predicate; // tidy-allow: a profile switches predicates off by name
use std::sync::Arc;

/// A `SchedulingProfile` object.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileObject {
    /// Identity.
    pub meta: Meta,
    /// The profile. If it is invalid, an Event reports the error and its claims stay Pending.
    pub profile: Result<Arc<Profile>, FieldError>,
}

/// How claims are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Disabled predicates.
    pub disabled: Vec<Predicate>,
    /// Scores to sum; without any, best fit decides.
    pub scores: Vec<ScoreWeight>,
    /// Whether the newest version wins among equal fits instead of the lowest.
    pub prefer_newest: bool,
    /// The ways in the order to try them; empty means the default order.
    pub order: Vec<Way>,
    /// How claims that are pending together are decided.
    pub batch: BatchMode,
}

/// A score and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreWeight {
    /// The score.
    pub score: Score,
    /// Its weight; may be negative.
    pub weight: i32,
}

/// A score of candidates. Each is scaled to 0 to 100 over the candidates of one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Score {
    /// The less capacity left over, the better.
    BestFit,
    /// The newer, the better.
    NewestVersion,
    /// The older, the better.
    OldestVersion,
    /// The fewer claims on it, the better.
    Spread,
    /// The more claims on it, the better.
    Pack,
    /// The higher the weight of its labels, the better.
    LabelPreference(Vec<LabelWeight>),
}

/// A label with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelWeight {
    /// The label's key.
    pub key: Name,
    /// The label's value; absent means any.
    pub value: Option<Name>,
    /// Its weight.
    pub weight: i32,
}

impl ProfileObject {
    /// Parses a profile.
    pub fn read(object: &Object) -> ProfileObject {
        let spec = Field::root(&object.body).at("spec");
        ProfileObject { meta: Meta::read(&object.metadata), profile: Profile::read(&spec).map(Arc::new) }
    }
}

impl Profile {
    fn read(spec: &Field<'_>) -> Result<Profile, FieldError> {
        let disabled = spec.at("plugins").at("disabled").items()?;
        let order = spec.at("order").items()?.iter().map(read_way).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) = order.iter().enumerate().find(|(at, way)| order[..*at].contains(way)) {
            return Err(spec.at("order").error(&format!("lists {:?} twice", twice.1), "list each way once"));
        }
        let batch = spec.at("batch");
        Ok(Profile {
            disabled: disabled.iter().map(read_predicate).collect::<Result<_, _>>()?,
            scores: spec.at("scores").items()?.iter().map(ScoreWeight::read).collect::<Result<_, _>>()?,
            prefer_newest: spec.at("preferNewest").flag()?.unwrap_or(false),
            order,
            batch: match batch.text()?.map(str::to_lowercase).as_deref() {
                None | Some("greedy") => BatchMode::Greedy,
                Some("optimal") => BatchMode::Optimal,
                Some(_) => return Err(batch.error("is not a batch mode", "write greedy or optimal")),
            },
        })
    }

    /// Whether `predicate` is enabled.
    pub fn asks(&self, predicate: Predicate) -> bool {
        !self.disabled.contains(&predicate)
    }
}

fn read_predicate(field: &Field<'_>) -> Result<Predicate, FieldError> {
    let text = field.text()?.unwrap_or_default();
    Predicate::optional().find(|p| p.name() == text).ok_or_else(|| {
        let known: Vec<_> = Predicate::optional().map(Predicate::name).collect();
        field.error("cannot be disabled", &format!("choose among {}", known.join(", ")))
    })
}

fn read_way(field: &Field<'_>) -> Result<Way, FieldError> {
    match field.text()?.unwrap_or_default().to_lowercase().as_str() {
        "existing" => Ok(Way::Existing),
        "share" => Ok(Way::Share),
        "provision" => Ok(Way::Provision),
        _ => Err(field.error("is not a way to satisfy a claim", "choose among existing, share, provision")),
    }
}

impl ScoreWeight {
    fn read(field: &Field<'_>) -> Result<ScoreWeight, FieldError> {
        let name = field.at("name");
        let score = match name.text()?.unwrap_or_default() {
            "BestFit" => Score::BestFit,
            "NewestVersion" => Score::NewestVersion,
            "OldestVersion" => Score::OldestVersion,
            "Spread" => Score::Spread,
            "Pack" => Score::Pack,
            "LabelPreference" => Score::LabelPreference(
                field
                    .at("parameters")
                    .at("labels")
                    .items()?
                    .iter()
                    .map(LabelWeight::read)
                    .collect::<Result<_, _>>()?,
            ),
            _ => {
                let known = "BestFit, NewestVersion, OldestVersion, Spread, Pack, LabelPreference";
                return Err(name.error("is not a score", &format!("choose among {known}")));
            }
        };
        Ok(ScoreWeight { score, weight: read_weight(&field.at("weight"))? })
    }
}

impl LabelWeight {
    fn read(field: &Field<'_>) -> Result<LabelWeight, FieldError> {
        let key = field.at("key");
        Ok(LabelWeight {
            key: key.name()?.ok_or_else(|| key.error("is missing", "name the label"))?,
            value: field.at("value").name()?,
            weight: read_weight(&field.at("weight"))?,
        })
    }
}

fn read_weight(field: &Field<'_>) -> Result<i32, FieldError> {
    let weight = field.integer()?.unwrap_or(1);
    let within = i32::try_from(weight).ok().filter(|w| (-10_000..=10_000).contains(w));
    within.ok_or_else(|| field.error("is out of range", "keep it between -10000 and 10000"))
}
