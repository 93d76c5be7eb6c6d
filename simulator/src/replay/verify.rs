//! The live engine's decisions held against the replay's: which agree, and what explains those that do not.

use super::document::{Agreement, Divergence, Explanation};
use super::stage::Stage;
use crate::record::{Decision, Verdict};
use conductor::model::{Claim, Lookup, Name, Time, Uid};
use conductor::scheduler::{lacks, prepare};
use std::collections::{BTreeMap, VecDeque};

/// Changes as near as this may have reached the live engine in another order.
const RACE_MS: u64 = 2_000;
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
    /// What was wished for lately: when, whose wish, and whether the object came with it.
    recent: VecDeque<(u64, String, bool)>,
    /// Watches that are lost: since when, by kind.
    lost: BTreeMap<String, u64>,
    /// Stretches that a lost watch leaves in the dark.
    gaps: Vec<(u64, u64)>,
    /// Whether another version recorded.
    other_version: bool,
}

impl Verifier {
    pub fn new(other_version: bool) -> Verifier {
        Verifier { other_version, ..Verifier::default() }
    }

    /// Somebody wished for something; `comes` where the object is new with it.
    pub fn wished(&mut self, at: u64, object: String, comes: bool) {
        self.recent.push_back((at, object, comes));
        while self.recent.front().is_some_and(|(then, ..)| then + RACE_MS < at) {
            self.recent.pop_front();
        }
    }

    /// A watch was lost, or, where it is not `open`, is there again. What a list after it brings came in an order that
    /// nobody knows, as in a race; everything later is decided from what the recording has too, and no longer excused.
    pub fn gap(&mut self, at: u64, kind: &str, open: bool) {
        match open {
            true => drop(self.lost.entry(kind.to_owned()).or_insert(at)),
            false => {
                let since = self.lost.remove(kind).unwrap_or(at);
                self.gaps.push((since, at.saturating_add(RACE_MS)));
            }
        }
    }

    /// Since when a watch was lost at that time, if one was.
    fn lost_at(&self, at: u64) -> Option<u64> {
        let open = self.lost.values().copied().filter(|since| *since <= at).min();
        let over = self.gaps.iter().rev().find(|(since, until)| (*since..=*until).contains(&at));
        open.or(over.map(|(since, _)| *since))
    }

    /// Holds a decision of the live engine against the replay. Says whether they agree.
    pub fn check(&mut self, live: &Decision, stage: &Stage) -> bool {
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
            let about = About {
                at: live.at,
                kind: &live.kind,
                claim: format!("{}/{}", live.ns, live.name),
                uid: &uid,
            };
            self.diverge(about, Some(&live.verdict), stage.verdict(&uid), stage);
        }
        agrees
    }

    /// A resource that was made for the claim and holds it by now was a provision too.
    fn was_made(&self, stage: &Stage, uid: &Uid, live: &Verdict) -> bool {
        let Verdict::Provision { .. } = live else { return false };
        let all = stage.decided.get(uid).map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|(verdict, _)| verdict == live)
    }

    /// A claim that the replay serves and the live engine left waiting to the end.
    pub fn check_end(&mut self, claim: &Claim, live: Option<&Verdict>, stage: &Stage, end: u64, began: i64) {
        let uid = &claim.meta.uid;
        let simulated = stage.verdict(uid);
        let served = matches!(simulated, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        let waits = !matches!(live, Some(Verdict::Bind { .. } | Verdict::Provision { .. }));
        if !served || !waits {
            return;
        }
        let since = stage.decided.get(uid).and_then(|d| d.last()).map_or(0, |(_, at)| elapsed(*at, began));
        if since + UNFINISHED_MS < end {
            self.agreement.decisions += 1;
            // What the replay decided while a watch was lost the live engine may have had reasons against.
            let at = if self.lost_at(since).is_some() { since } else { end };
            let kind = claim.ty.rules().claim;
            let about = About { at, kind, claim: claim.meta.key.to_string(), uid };
            self.diverge(about, live, simulated, stage);
        }
    }

    fn diverge(
        &mut self,
        about: About<'_>,
        live: Option<&Verdict>,
        simulated: Option<Verdict>,
        stage: &Stage,
    ) {
        let (explanation, message) = self.explain(&about, live, stage);
        let About { at, claim, .. } = about;
        *self.agreement.explained.entry(explanation.name().to_owned()).or_default() += 1;
        if self.divergences.len() < TOLD_MAX {
            let live = live.cloned();
            self.divergences.push(Divergence { at, claim, live, simulated, explanation, message });
        }
    }

    fn explain(&self, about: &About<'_>, live: Option<&Verdict>, stage: &Stage) -> (Explanation, String) {
        let (at, uid) = (about.at, about.uid);
        if let Some(since) = self.lost_at(at) {
            return (Explanation::Gap, format!("a watch was lost at {since} ms"));
        }
        if stage.engine.state().claim(uid).is_none() {
            return (Explanation::Gap, "the claim itself is not in the recording by then".to_owned());
        }
        let refused = live.and_then(|live| match live {
            Verdict::Bind { resource } => rule_against(stage, uid, resource),
            Verdict::Provision { .. } | Verdict::Refuse { .. } | Verdict::Lost { .. } => None,
        });
        // What another claim has taken, or is taking, is a matter of who came first.
        let contended =
            |rule: &str| matches!(rule, "Reserved" | "Sharing" | "Capacity" | "Quota" | "Gone" | "Phase");
        // Of the claim's own coming the live engine knew: it decided about it.
        let own = format!("{} {}", about.kind, about.claim);
        let is_else = |what: &str, comes: bool| !(comes && what == own);
        let is_near = |then: u64| then <= at && then + RACE_MS >= at;
        let nearby =
            self.recent.iter().rev().find(|(then, what, comes)| is_near(*then) && is_else(what, *comes));
        match (&refused, nearby) {
            (Some((rule, why)), None) => (Explanation::Rule, format!("{rule}: {why}")),
            (Some((rule, why)), Some(_)) if !contended(rule) => (Explanation::Rule, format!("{rule}: {why}")),
            (_, Some((then, what, _))) => {
                (Explanation::Race, format!("{what} changed {} ms before", at.saturating_sub(*then)))
            }
            (None, None) if self.other_version => (
                Explanation::Version,
                "another version recorded, and may have preferred otherwise".to_owned(),
            ),
            (None, None) => (Explanation::Rule, "the rules prefer otherwise".to_owned()),
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
    kind: &'a str,
    claim: String,
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
fn rule_against(stage: &Stage, uid: &Uid, resource: &str) -> Option<(String, String)> {
    let state = stage.engine.state();
    let request = prepare(state, state.claim(uid)?).ok()?;
    match lacks(state, &request, &Name::from(resource)) {
        None => Some(("Gone".to_owned(), format!("{resource} is not there"))),
        Some(lacks) => lacks.into_iter().next().map(|(predicate, why)| (predicate.name().to_owned(), why)),
    }
}
