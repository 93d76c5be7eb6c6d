//! A scheduling profile, validated: which plugins run, what counts as best, and in what order means are tried.

use super::error::FieldError;
use super::fields::Field;
use super::key::Name;
use super::meta::Meta;
use super::object::Object;
use crate::predicates::Predicate; // tidy-allow: a profile switches predicates off by name
use std::sync::Arc;

/// A `SchedulingProfile` object.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileObject {
    /// Identity.
    pub meta: Meta,
    /// What it says; an unreadable profile is told so, and its claims wait.
    pub profile: Result<Arc<Profile>, FieldError>,
}

/// How claims are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Predicates that are not asked.
    pub disabled: Vec<Predicate>,
    /// Scores that are summed; without any, best fit decides alone.
    pub scores: Vec<ScoreWeight>,
    /// Among equally tight fits, the newest version rather than the oldest.
    pub prefer_newest: bool,
    /// The means in the order they are tried; empty is the default order.
    pub order: Vec<Means>,
    /// Whether claims that wait together are placed together.
    pub batch: Batch,
}

/// One way to serve a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// A resource that nobody holds.
    Existing,
    /// A resource that others hold too.
    Share,
    /// A new resource from a class.
    Provision,
}

/// How claims that wait together are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// One after the other.
    #[default]
    Greedy,
    /// Together, so that the most are served.
    Optimal,
}

/// A score and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreWeight {
    /// Which score.
    pub score: Score,
    /// How much it counts; may be negative.
    pub weight: i32,
}

/// What can be scored. Each gives 0 to 100 over the candidates of one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Score {
    /// The tighter, the better.
    BestFit,
    /// The newer, the better.
    NewestVersion,
    /// The older, the better.
    OldestVersion,
    /// The fewer claims on it, the better.
    Spread,
    /// The more claims on it, the better.
    Pack,
    /// The heavier its listed labels, the better.
    LabelPreference(Vec<LabelWeight>),
}

/// A label that is liked, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelWeight {
    /// The label's key.
    pub key: Name,
    /// The label's value; absent means any.
    pub value: Option<Name>,
    /// How much it counts.
    pub weight: i32,
}

impl ProfileObject {
    /// Reads a profile.
    pub fn read(object: &Object) -> ProfileObject {
        let spec = Field::root(&object.body).at("spec");
        ProfileObject { meta: Meta::read(&object.metadata), profile: Profile::read(&spec).map(Arc::new) }
    }
}

impl Profile {
    fn read(spec: &Field<'_>) -> Result<Profile, FieldError> {
        let disabled = spec.at("plugins").at("disabled").items()?;
        let order = spec.at("order").items()?.iter().map(Means::read).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) = order.iter().enumerate().find(|(at, means)| order[..*at].contains(means)) {
            return Err(spec
                .at("order")
                .error(&format!("lists {:?} twice", twice.1), "list each means once"));
        }
        let batch = spec.at("batch");
        Ok(Profile {
            disabled: disabled.iter().map(read_predicate).collect::<Result<_, _>>()?,
            scores: spec.at("scores").items()?.iter().map(ScoreWeight::read).collect::<Result<_, _>>()?,
            prefer_newest: spec.at("preferNewest").flag()?.unwrap_or(false),
            order,
            batch: match batch.text()?.map(str::to_lowercase).as_deref() {
                None | Some("greedy") => Batch::Greedy,
                Some("optimal") => Batch::Optimal,
                Some(_) => return Err(batch.error("is no batch mode", "write greedy or optimal")),
            },
        })
    }

    /// Whether `predicate` is asked.
    pub fn asks(&self, predicate: Predicate) -> bool {
        !self.disabled.contains(&predicate)
    }
}

fn read_predicate(field: &Field<'_>) -> Result<Predicate, FieldError> {
    let text = field.text()?.unwrap_or_default();
    Predicate::optional().find(|p| p.name() == text).ok_or_else(|| {
        let known: Vec<_> = Predicate::optional().map(Predicate::name).collect();
        field.error("cannot be switched off", &format!("choose among {}", known.join(", ")))
    })
}

impl Means {
    fn read(field: &Field<'_>) -> Result<Means, FieldError> {
        match field.text()?.unwrap_or_default().to_lowercase().as_str() {
            "existing" => Ok(Means::Existing),
            "share" => Ok(Means::Share),
            "provision" => Ok(Means::Provision),
            _ => Err(field.error("is no way to serve a claim", "choose among existing, share, provision")),
        }
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
                return Err(name.error("is no score", &format!("choose among {known}")));
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
