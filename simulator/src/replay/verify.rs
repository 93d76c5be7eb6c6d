//! Compares the live engine's decisions with the replay's, and explains the differences.

use super::causes::{Case, InFlight, RACE_MS, SLOW_MS, UserChange, contradiction};
use super::cluster::ReplayCluster;
use super::document::{Agreement, Divergence, Explanation};
use super::preference::PreferenceCheck;
use crate::record::{Decision, RecordedObjects, Verdict};
use conductor::model::{Claim, Lookup, Name, ObjectKey, Time, TypeId, Uid};
use conductor::scheduler::{lacks, prepare};
use std::collections::BTreeMap;

/// Writes of the live engine this close to the end may be missing from the recording.
const UNFINISHED_MS: u64 = 5_000;
/// Maximum number of divergences listed; the rest is counted.
const DIVERGENCES_MAX: usize = 10_000;

/// Compares and counts decisions.
#[derive(Default)]
pub(super) struct Verifier {
    pub agreement: Agreement,
    pub divergences: Vec<Divergence>,
    /// Number of the replay's decisions matched so far, by claim.
    matched: Lookup<Uid, usize>,
    flight: InFlight,
    /// Divergences that a later binding may still explain.
    open: Vec<Open>,
    /// Lost watches by kind, with their start.
    lost: BTreeMap<String, u64>,
    /// Start, end and kind of past gaps.
    gaps: Vec<(u64, u64, String)>,
    /// Whether another version recorded.
    other_version: bool,
    /// Start of the recording, in milliseconds since the Unix epoch.
    began: i64,
}

/// What decisions are compared with.
#[derive(Clone, Copy)]
pub(super) struct Played<'a> {
    pub cluster: &'a ReplayCluster,
    pub truth: &'a RecordedObjects,
    /// When each claim was created.
    pub created: &'a Lookup<Uid, u64>,
}

/// A divergence without explanation so far.
struct Open {
    /// Its index among the divergences, if it is listed.
    index: Option<usize>,
    at: u64,
    claim: Claim,
    /// The resource that the replay's engine bound.
    resource: String,
    /// Compares it with the live engine's choice.
    preference: Option<PreferenceCheck>,
}

impl Verifier {
    pub fn new(other_version: bool, began: i64) -> Verifier {
        Verifier { other_version, began, ..Verifier::default() }
    }

    /// Notes a change that the engine did not make.
    pub fn changed(&mut self, change: UserChange) {
        self.flight.changed(change);
    }

    /// Notes that a watch was lost (`open`) or resumed. The order of the missed events is unknown, as in a race; later
    /// decisions are based on recorded events again and not excused.
    pub fn gap(&mut self, at: u64, kind: &str, open: bool) {
        match open {
            true => drop(self.lost.entry(kind.to_owned()).or_insert(at)),
            false => {
                let since = self.lost.remove(kind).unwrap_or(at);
                self.gaps.push((since, at.saturating_add(RACE_MS), kind.to_owned()));
            }
        }
    }

    /// When a watch was lost that was still lost at `at` and could matter to a decision about this claim.
    fn lost_at(&self, at: u64, about: &About<'_>, cluster: &ReplayCluster) -> Option<u64> {
        let has_quota = !cluster.engine.state().quota_usage.keys_for(&about.key.namespace).is_empty();
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

    /// Compares a decision of the live engine with the replay. Returns whether they agree.
    pub fn check(&mut self, live: &Decision, played: Played<'_>) -> bool {
        let cluster = played.cluster;
        let uid = Uid::from(live.uid.as_str());
        self.agreement.verdicts.entry(live.verdict.name().to_owned()).or_default().0 += 1;
        self.agreement.decisions += 1;
        let from = self.matched.get(&uid).copied().unwrap_or(0);
        let decided =
            cluster.decided.get(&uid).map(|d| d.get(from..).unwrap_or_default()).unwrap_or_default();
        let found = decided.iter().position(|(verdict, _)| *verdict == live.verdict);
        // A verdict from before the recording, or one that needed no write, counts as well.
        let holds = cluster.verdict(&uid).as_ref() == Some(&live.verdict)
            || self.was_made(cluster, &uid, &live.verdict);
        if let Some(at) = found {
            self.matched.insert(uid.clone(), from + at + 1);
        }
        let agrees = found.is_some() || holds;
        if agrees {
            self.agreement.verdicts.entry(live.verdict.name().to_owned()).or_default().1 += 1;
            self.agreement.agreed += 1;
        } else {
            let key = ObjectKey::new(live.ns.as_str(), live.name.as_str());
            let ty = TypeId::all().find(|ty| ty.rules().claim == live.kind);
            let about = About { at: live.at, ty: ty.unwrap_or(TypeId::RELATIONAL_DATABASE), key, uid: &uid };
            let wrong = match ty {
                Some(ty) => {
                    contradiction(played.truth, ty, &about.key, &uid, cluster.system(), &live.verdict)
                }
                None => Some(format!("{} is not a kind of claim", live.kind)),
            };
            self.diverge(about, Some(&live.verdict), cluster.verdict(&uid), played, wrong);
        }
        self.flight.decided(live.at, &live.uid, &live.verdict);
        self.close(live, played);
        agrees
    }

    /// Explains open divergences by a later binding of the live engine: both claims competed for the resource.
    fn close(&mut self, live: &Decision, played: Played<'_>) {
        let Verdict::Bind { resource } = &live.verdict else { return };
        let created = played.created.get(live.uid.as_str()).copied().unwrap_or(0);
        let (flight, began) = (&self.flight, self.began);
        let mut closed = Vec::new();
        self.open.retain(|open| {
            if open.at + SLOW_MS < live.at {
                return false;
            }
            if *open.claim.meta.uid == *live.uid || created > open.at {
                return true;
            }
            let Played { cluster, truth, created } = played;
            let case = Case { flight, cluster, truth, created, claim: &open.claim, at: open.at, began };
            let is_rival = open.resource == *resource;
            let taken = is_rival.then(|| case.taken_by(resource, &live.uid)).flatten();
            let preference = open.preference.as_ref().filter(|preference| preference.concerns(resource));
            match taken.or_else(|| preference?.explain(case.evidence())) {
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

    /// Whether the claim's resource was provisioned for it, even if it is bound by now.
    fn was_made(&self, cluster: &ReplayCluster, uid: &Uid, live: &Verdict) -> bool {
        let Verdict::Provision { .. } = live else { return false };
        let all = cluster.decided.get(uid).map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|(verdict, _)| verdict == live)
    }

    /// Counts a claim that the replay serves and the live engine left pending to the end.
    pub fn check_end(&mut self, claim: &Claim, live: Option<&Verdict>, played: Played<'_>, end: u64) {
        let (uid, cluster) = (&claim.meta.uid, played.cluster);
        let simulated = cluster.verdict(uid);
        let served = matches!(simulated, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        let waits = !matches!(live, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        if !served || !waits {
            return;
        }
        let since =
            cluster.decided.get(uid).and_then(|d| d.last()).map_or(0, |(_, at)| elapsed(*at, self.began));
        if since + UNFINISHED_MS < end {
            self.agreement.decisions += 1;
            let mut about = About { at: end, ty: claim.ty, key: claim.meta.key.clone(), uid };
            // The live engine may have had reasons that the lost watch missed.
            if self.lost_at(since, &about, cluster).is_some() {
                about.at = since;
            }
            self.diverge(about, live, simulated, played, None);
        }
    }

    /// Notes a divergence. `wrong`: how the recording contradicts its own decision.
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
        let index = (self.divergences.len() < DIVERGENCES_MAX).then_some(self.divergences.len());
        let claim = played.cluster.engine.state().claim(about.uid);
        if let (Explanation::Rule, false, Some(Verdict::Bind { resource }), Some(claim)) =
            (explanation, is_wrong, &simulated, claim)
            && !matches!(live, Some(Verdict::Lost { .. }))
        {
            let preference = match live {
                Some(Verdict::Bind { resource: chosen })
                    if rule_against(played.cluster, about.uid, chosen).is_none() =>
                {
                    let Played { cluster, truth, created } = played;
                    let (flight, began) = (&self.flight, self.began);
                    Case { flight, cluster, truth, created, claim, at: about.at, began }
                        .preference(chosen, resource)
                }
                _ => None,
            };
            let (claim, resource) = ((**claim).clone(), resource.clone());
            self.open.push(Open { index, at: about.at, claim, resource, preference });
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
        Played { cluster, truth, created }: Played<'_>,
    ) -> (Explanation, String) {
        let (at, uid) = (about.at, about.uid);
        if let Some(since) = self.lost_at(at, about, cluster) {
            return (Explanation::Gap, format!("a watch was lost at {since} ms"));
        }
        let Some(claim) = cluster.engine.state().claim(uid) else {
            return (Explanation::Gap, "the claim itself is not in the recording at that time".to_owned());
        };
        let case = Case { flight: &self.flight, cluster, truth, created, claim, at, began: self.began };
        if let Some(why) = case.race(live, simulated) {
            return (Explanation::Race, why);
        }
        let refused = live.and_then(|live| match live {
            Verdict::Bind { resource } => rule_against(cluster, uid, resource),
            Verdict::Provision { .. } | Verdict::Refuse { .. } | Verdict::Lost { .. } => None,
        });
        match refused {
            Some((rule, why)) => (Explanation::Rule, format!("{rule}: {why}")),
            None if self.other_version => (
                Explanation::Version,
                "another version recorded it, which may have other preferences".to_owned(),
            ),
            None => (Explanation::Rule, "the rules prefer another".to_owned()),
        }
    }

    /// Returns the figures.
    pub fn finish(mut self) -> (Agreement, Vec<Divergence>) {
        let Agreement { decisions, agreed, .. } = self.agreement;
        let percent = |of: u64| (agreed as f64 * 10_000.0 / of as f64).round() / 100.0;
        self.agreement.percent = (decisions > 0).then(|| percent(decisions));
        (self.agreement, self.divergences)
    }
}

/// The claim and time of a divergence.
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

/// The rule by which the replay's engine refuses a resource that the live engine chose.
pub(super) fn rule_against(cluster: &ReplayCluster, uid: &Uid, resource: &str) -> Option<(String, String)> {
    let state = cluster.engine.state();
    let request = prepare(state, state.claim(uid)?).ok()?;
    match lacks(state, &request, &Name::from(resource)) {
        None => Some(("Gone".to_owned(), format!("{resource} does not exist"))),
        Some(lacks) => lacks.into_iter().next().map(|(predicate, why)| (predicate.name().to_owned(), why)),
    }
}
