//! Where plugins plug in: the extension points of one decision, what a plugin sees, and what it answers.
//! No predicate and no score lives here; they are rooms of `plugins`.
//!
//! | point      | here                          | kube-scheduler's                          |
//! |------------|-------------------------------|-------------------------------------------|
//! | PreFilter  | [`Filter::relax`], [`Gate`]   | what is asked at all; limits and quotas   |
//! | Filter     | [`Filter::lack`]              | one resource against one claim            |
//! | PostFilter | the scheduler's next means    | another class, sharing, provisioning      |
//! | Score      | [`Scorer::score`]             | which of the fitting ones                 |
//! | Reserve    | the cache's assume and charge | in memory, with the decision              |
//!
//! Permit, PreBind, Bind and PostBind have no counterpart: binding is the lifecycle's, as actions.

mod verdict;

pub use verdict::{Considered, Reason, Refusal};

use crate::cache::{Ask, Candidate, Charge, ClassAsk, Ledger, Standing};
use crate::model::quota::Bounds;
use crate::model::{Capacity, ClassWant, Name, Offer, Predicate, Wants};

/// A resource as a plugin sees it.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Its name.
    pub name: &'a Name,
    /// What it offers.
    pub offer: &'a Offer,
    /// How it stands to claims at large.
    pub standing: Standing,
    /// Its phase, in the word of its status.
    pub phase: &'static str,
    /// What it has left.
    pub free: Capacity,
    /// Who holds it or has it reserved, as `namespace/name`.
    pub holders: Vec<String>,
}

/// A predicate over one claim and one resource.
///
/// # Guarantees
/// Pure: the same ask and the same resource give the same answer. The index answers the same
/// questions for whole shapes; a property test holds the two against each other.
pub trait Filter: Sync {
    /// The name under which refusals are counted.
    fn predicate(&self) -> Predicate;

    /// What the resource lacks, in words, or nothing where it passes.
    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String>;

    /// The change that would make this resource pass.
    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String;

    /// Follows the remedy in what the claim wants. Says whether it is the claim that the remedy changes.
    fn mend(&self, _wants: &mut Wants, _seen: &Seen<'_>) -> bool {
        false
    }

    /// Takes this filter's question out of what is asked. Filters that keep data safe leave it in.
    fn relax(&self, _asked: &mut Asked) {}

    /// One sentence over `count` refused resources.
    fn summary(&self, ask: &Ask<'_>, count: usize) -> String;
}

/// A question asked of the claim before any resource is looked at: limits, quotas.
pub trait Gate: Sync {
    /// The name under which refusals are counted.
    fn predicate(&self) -> Predicate;

    /// Why the claim may not go on, where it may not.
    fn refuse(&self, admission: &Admission<'_>) -> Option<Refusal>;
}

/// What a gate sees.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// What the claim would be charged.
    pub charge: &'a Charge,
    /// What it requests.
    pub requests: &'a Capacity,
    /// What it would get; absent before that is known, when the charge is what it requests.
    pub holding: Option<Holding<'a>>,
    /// The bounds of its namespace.
    pub bounds: &'a [Bounds],
    /// What is used of every quota.
    pub ledger: &'a Ledger,
}

/// What a claim would get.
#[derive(Clone, Copy, Debug)]
pub enum Holding<'a> {
    /// A resource of its own.
    Resource(&'a Name),
    /// Part of a shared resource.
    PartOf(&'a Name),
    /// What a class makes.
    Made(&'a Name),
    /// What a class makes, of an amount that parameters may decide.
    MadeByParameters(&'a Name, &'a [Name]),
    /// Part of the shared resource that a class makes.
    PartOfMade(&'a Name),
}

/// A preference among resources that fit.
pub trait Scorer: Sync {
    /// Adds nothing itself: writes 0 to 100 for each candidate, higher is better.
    fn score(&self, ask: &Ask<'_>, candidates: &[Candidate<'_>], scores: &mut [i64]);
}

/// An ask that owns its parts, so that a filter can take its question out.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The claim's namespace.
    pub namespace: Name,
    /// The classes that are searched; absent where the class is not asked.
    pub classes: Option<Vec<Option<Name>>>,
    /// Everything else.
    pub wants: Wants,
}

impl Asked {
    /// The ask, borrowed.
    pub fn ask(&self) -> Ask<'_> {
        let class = self.classes.as_deref().map_or(ClassAsk::Any, ClassAsk::OneOf);
        Ask { namespace: &self.namespace, class, wants: &self.wants, headroom: None }
    }

    /// No longer asks for a class.
    pub fn forget_class(&mut self) {
        self.classes = None;
        self.wants.class = ClassWant::Any;
    }
}

/// Spreads raw values over 0 to 100: the highest gets 100, the lowest 0, all alike get 100.
pub fn normalise(raw: &[i128], scores: &mut [i64]) {
    let (Some(low), Some(high)) = (raw.iter().min(), raw.iter().max()) else { return };
    let span = high.saturating_sub(*low);
    for (score, value) in scores.iter_mut().zip(raw) {
        let above = value.saturating_sub(*low);
        // Scaled down before it is scaled up where the numbers are very large.
        let share = above.checked_mul(100).map_or_else(|| above / (span / 100).max(1), |a| a / span.max(1));
        *score = if span == 0 { 100 } else { i64::try_from(share).unwrap_or(100) };
    }
}
