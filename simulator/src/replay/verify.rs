//! The live engine's decisions held against the replay's: which agree, and what explains those that do not.

use super::causes::{Case, InFlight, RACE_MS, SLOW_MS, Wish, contradiction};
use super::document::{Agreement, Divergence, Explanation};
use super::stage::Stage;
use super::trial::Trial;
use crate::record::{Decision, Recorded, Verdict};
use conductor::model::{Claim, Lookup, Name, ObjectKey, Time, TypeId, Uid};
use conductor::scheduler::{lacks, prepare};
use std::collections::BTreeMap;

/// The live engine's writes of so late in a recording may not be in it.
const UNFINISHED_MS: u64 = 5_000;
/// Divergences beyond this are counted and not kept.
const TOLD_MAX: usize = 10_000;

/// Keeps count.
#[derive(Default)]
pub(super) struct Verifier {
    pub agreement: Agreement,
    pub divergences: Vec<Divergence>,
    /// How many of the replay's decisions about each claim have been matched.
    matched: Lookup<Uid, usize>,
    flight: InFlight,
    /// Divergences that are explained where another claim turns out to have taken the resource.
    open: Vec<Open>,
    /// Watches that are lost: since when, by kind.
    lost: BTreeMap<String, u64>,
    /// Stretches that a lost watch of a kind leaves in the dark.
    gaps: Vec<(u64, u64, String)>,
    /// Whether another version recorded.
    other_version: bool,
    /// When the recording began, in milliseconds since the Unix epoch.
    began: i64,
}

/// What a decision is held against.
#[derive(Clone, Copy)]
pub(super) struct Played<'a> {
    pub stage: &'a Stage,
    pub truth: &'a Recorded,
    /// When each claim came.
    pub came: &'a Lookup<Uid, u64>,
}

/// A divergence that nothing explains yet.
struct Open {
    /// Where it is among the divergences; absent where it was only counted.
    index: Option<usize>,
    at: u64,
    claim: Claim,
    /// What the replay's engine gave the claim.
    resource: String,
    /// Asks the rules again, where the live engine gave the claim another.
    trial: Option<Trial>,
}

impl Verifier {
    pub fn new(other_version: bool, began: i64) -> Verifier {
        Verifier { other_version, began, ..Verifier::default() }
    }

    /// Something changed that the engine does not decide.
    pub fn wished(&mut self, wish: Wish) {
        self.flight.wished(wish);
    }

    /// A watch was lost, or, where it is not `open`, is there again. What a list after it brings came in an order that
    /// nobody knows, as in a race; everything later is decided from what the recording has too, and no longer excused.
    pub fn gap(&mut self, at: u64, kind: &str, open: bool) {
        match open {
            true => drop(self.lost.entry(kind.to_owned()).or_insert(at)),
            false => {
                let since = self.lost.remove(kind).unwrap_or(at);
                self.gaps.push((since, at.saturating_add(RACE_MS), kind.to_owned()));
            }
        }
    }

    /// Since when a watch was lost at that time, if one was whose objects a decision about this claim could depend on.
    fn lost_at(&self, at: u64, about: &About<'_>, stage: &Stage) -> Option<u64> {
        let has_quota = !stage.engine.state().ledger.keys_for(&about.key.namespace).is_empty();
        let matters = |kind: &String| {
            let of_other = |ty: TypeId| {
                let rules = ty.rules();
                let is_claim = rules.claim == kind && !has_quota;
                ty != about.ty && (is_claim || rules.resource == kind || rules.class == kind)
            };
            !TypeId::all().any(of_other)
        };
        let open = self.lost.iter().filter(|(kind, since)| **since <= at && matters(kind));
        let open = open.map(|(_, since)| *since).min();
        let mut over = self.gaps.iter().rev();
        let over = over.find(|(since, until, kind)| (*since..=*until).contains(&at) && matters(kind));
        open.or(over.map(|(since, ..)| *since))
    }

    /// Holds a decision of the live engine against the replay. Says whether they agree.
    pub fn check(&mut self, live: &Decision, played: Played<'_>) -> bool {
        let stage = played.stage;
        let uid = Uid::from(live.uid.as_str());
        self.agreement.verdicts.entry(word(&live.verdict).to_owned()).or_default().0 += 1;
        self.agreement.decisions += 1;
        let from = self.matched.get(&uid).copied().unwrap_or(0);
        let decided = stage.decided.get(&uid).map(|d| d.get(from..).unwrap_or_default()).unwrap_or_default();
        let found = decided.iter().position(|(verdict, _)| *verdict == live.verdict);
        // What held before the recording began, or holds without having been written, counts as well.
        let holds =
            stage.verdict(&uid).as_ref() == Some(&live.verdict) || self.was_made(stage, &uid, &live.verdict);
        if let Some(at) = found {
            self.matched.insert(uid.clone(), from + at + 1);
        }
        let agrees = found.is_some() || holds;
        if agrees {
            self.agreement.verdicts.entry(word(&live.verdict).to_owned()).or_default().1 += 1;
            self.agreement.agreed += 1;
        } else {
            let key = ObjectKey::new(live.ns.as_str(), live.name.as_str());
            let ty = TypeId::all().find(|ty| ty.rules().claim == live.kind);
            let about = About { at: live.at, ty: ty.unwrap_or(TypeId::RELATIONAL_DATABASE), key, uid: &uid };
            let wrong = match ty {
                Some(ty) => contradiction(played.truth, ty, &about.key, &uid, stage.system(), &live.verdict),
                None => Some(format!("{} is no claim", live.kind)),
            };
            self.diverge(about, Some(&live.verdict), stage.verdict(&uid), played, wrong);
        }
        self.flight.decided(live.at, &live.uid, &live.verdict);
        self.close(live, played);
        agrees
    }

    /// Explains what was open until another claim got the resource in question: the two competed for it.
    fn close(&mut self, live: &Decision, played: Played<'_>) {
        let Verdict::Bind { resource } = &live.verdict else { return };
        let came = played.came.get(live.uid.as_str()).copied().unwrap_or(0);
        let (flight, began) = (&self.flight, self.began);
        let mut closed = Vec::new();
        self.open.retain(|open| {
            if open.at + SLOW_MS < live.at {
                return false;
            }
            if *open.claim.meta.uid == *live.uid || came > open.at {
                return true;
            }
            let Played { stage, truth, came } = played;
            let case = Case { flight, stage, truth, came, claim: &open.claim, at: open.at, began };
            let is_rival = open.resource == *resource;
            let taken = is_rival.then(|| case.taken_by(resource, &live.uid)).flatten();
            let trial = open.trial.as_ref().filter(|trial| trial.concerns(resource));
            match taken.or_else(|| trial?.explain(case.seen())) {
                Some(why) => {
                    closed.push((open.index, why));
                    false
                }
                None => true,
            }
        });
        for (index, why) in closed {
            self.count(Explanation::Rule, false);
            self.count(Explanation::Race, true);
            if let Some(divergence) = index.and_then(|at| self.divergences.get_mut(at)) {
                (divergence.explanation, divergence.message) = (Explanation::Race, why);
            }
        }
    }

    fn count(&mut self, explanation: Explanation, more: bool) {
        let name = explanation.name();
        let count = self.agreement.explained.entry(name.to_owned()).or_default();
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.agreement.explained.remove(name);
        }
    }

    /// A resource that was made for the claim and holds it by now was a provision too.
    fn was_made(&self, stage: &Stage, uid: &Uid, live: &Verdict) -> bool {
        let Verdict::Provision { .. } = live else { return false };
        let all = stage.decided.get(uid).map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|(verdict, _)| verdict == live)
    }

    /// A claim that the replay serves and the live engine left waiting to the end.
    pub fn check_end(&mut self, claim: &Claim, live: Option<&Verdict>, played: Played<'_>, end: u64) {
        let (uid, stage) = (&claim.meta.uid, played.stage);
        let simulated = stage.verdict(uid);
        let served = matches!(simulated, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        let waits = !matches!(live, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        if !served || !waits {
            return;
        }
        let since =
            stage.decided.get(uid).and_then(|d| d.last()).map_or(0, |(_, at)| elapsed(*at, self.began));
        if since + UNFINISHED_MS < end {
            self.agreement.decisions += 1;
            let mut about = About { at: end, ty: claim.ty, key: claim.meta.key.clone(), uid };
            // What the replay decided while a watch was lost the live engine may have had reasons against.
            if self.lost_at(since, &about, stage).is_some() {
                about.at = since;
            }
            self.diverge(about, live, simulated, played, None);
        }
    }

    /// Notes a divergence. `wrong` is what the recording itself says against the live engine's decision.
    fn diverge(
        &mut self,
        about: About<'_>,
        live: Option<&Verdict>,
        simulated: Option<Verdict>,
        played: Played<'_>,
        wrong: Option<String>,
    ) {
        let is_wrong = wrong.is_some();
        let (explanation, message) = match wrong {
            Some(wrong) => (Explanation::Rule, format!("the recording contradicts itself: {wrong}")),
            None => self.explain(&about, live, simulated.as_ref(), played),
        };
        self.count(explanation, true);
        let index = (self.divergences.len() < TOLD_MAX).then_some(self.divergences.len());
        let claim = played.stage.engine.state().claim(about.uid);
        if let (Explanation::Rule, false, Some(Verdict::Bind { resource }), Some(claim)) =
            (explanation, is_wrong, &simulated, claim)
            && !matches!(live, Some(Verdict::Lost { .. }))
        {
            let trial = match live {
                Some(Verdict::Bind { resource: chosen })
                    if rule_against(played.stage, about.uid, chosen).is_none() =>
                {
                    let Played { stage, truth, came } = played;
                    let (flight, began) = (&self.flight, self.began);
                    Case { flight, stage, truth, came, claim, at: about.at, began }.trial(chosen, resource)
                }
                _ => None,
            };
            let (claim, resource) = ((**claim).clone(), resource.clone());
            self.open.push(Open { index, at: about.at, claim, resource, trial });
        }
        if index.is_some() {
            let About { at, key, .. } = about;
            let (claim, live) = (key.to_string(), live.cloned());
            self.divergences.push(Divergence { at, claim, live, simulated, explanation, message });
        }
    }

    fn explain(
        &self,
        about: &About<'_>,
        live: Option<&Verdict>,
        simulated: Option<&Verdict>,
        Played { stage, truth, came }: Played<'_>,
    ) -> (Explanation, String) {
        let (at, uid) = (about.at, about.uid);
        if let Some(since) = self.lost_at(at, about, stage) {
            return (Explanation::Gap, format!("a watch was lost at {since} ms"));
        }
        let Some(claim) = stage.engine.state().claim(uid) else {
            return (Explanation::Gap, "the claim itself is not in the recording by then".to_owned());
        };
        let case = Case { flight: &self.flight, stage, truth, came, claim, at, began: self.began };
        if let Some(why) = case.race(live, simulated) {
            return (Explanation::Race, why);
        }
        let refused = live.and_then(|live| match live {
            Verdict::Bind { resource } => rule_against(stage, uid, resource),
            Verdict::Provision { .. } | Verdict::Refuse { .. } | Verdict::Lost { .. } => None,
        });
        match refused {
            Some((rule, why)) => (Explanation::Rule, format!("{rule}: {why}")),
            None if self.other_version => (
                Explanation::Version,
                "another version recorded, and may have preferred otherwise".to_owned(),
            ),
            None => (Explanation::Rule, "the rules prefer otherwise".to_owned()),
        }
    }

    /// The figures, once everything is counted.
    pub fn finish(mut self) -> (Agreement, Vec<Divergence>) {
        let Agreement { decisions, agreed, .. } = self.agreement;
        let percent = |of: u64| (agreed as f64 * 10_000.0 / of as f64).round() / 100.0;
        self.agreement.percent = (decisions > 0).then(|| percent(decisions));
        (self.agreement, self.divergences)
    }
}

/// What a divergence is about.
struct About<'a> {
    at: u64,
    ty: TypeId,
    key: ObjectKey,
    uid: &'a Uid,
}

/// Milliseconds since the recording began.
pub(super) fn elapsed(at: Time, began: i64) -> u64 {
    u64::try_from(at.0.saturating_sub(began)).unwrap_or(0)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Bind { .. } => "Bind",
        Verdict::Provision { .. } => "Provision",
        Verdict::Refuse { .. } => "Refuse",
        Verdict::Lost { .. } => "Lost",
    }
}

/// What the rules say against a resource that the live engine chose.
pub(super) fn rule_against(stage: &Stage, uid: &Uid, resource: &str) -> Option<(String, String)> {
    let state = stage.engine.state();
    let request = prepare(state, state.claim(uid)?).ok()?;
    match lacks(state, &request, &Name::from(resource)) {
        None => Some(("Gone".to_owned(), format!("{resource} is not there"))),
        Some(lacks) => lacks.into_iter().next().map(|(predicate, why)| (predicate.name().to_owned(), why)),
    }
}
