//! Replay: a recorded history played again, in virtual time, through the production engine. Wishes are played; what
//! the live engine decided is only held against what this one decides.
//!
//! ```text
//! recording -> order (revisions) -> feed (a thread) -> input (wishes) -> stage (world, engine) -> verify -> document
//!                                    |                                                              ^
//!                                    +--> decisions of the live engine -----------------------------+
//! ```
//!
//! *Followed* (the rule): where the two decide differently, the difference is noted, and the replay goes on from what
//! really happened, so that one difference is counted once. *Closed*: it goes on from its own decision, and making a
//! resource takes as long as it usually took; that is the mode for "what would have happened".

mod causes;
mod document;
mod feed;
mod input;
mod order;
mod series;
mod stage;
#[cfg(test)]
mod tests;
mod trial;
mod verify;

pub use document::{Agreement, Divergence, Explanation, Percentiles, Replay, Sample, Waiting};

use crate::plan::API_VERSION;
use crate::record::{
    Change, Decision, Followed, Glance, Line, ReadError, Reader, Recorded, Report, Verdict, into_object,
};
use crate::world::Telling;
use causes::Wish;
use conductor::engine::Config;
use conductor::model::{Kind, Lookup, Name, Object, ObjectKey, Time, TypeId, Uid};
use feed::Feed;
use input::Ending;
use order::Group;
use serde_json::Value;
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use verify::{Played, Verifier, elapsed};

/// How often the state is looked at.
const SAMPLES: u64 = 60;
/// A replay that had to be set right so often is another history: it goes on by itself.
const CORRECTIONS_MAX: usize = 1_000;
/// How long making a resource takes where nothing was recorded.
const LATENCY_MS: i64 = 30_000;

/// How a recording is played.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// No further than this many milliseconds after the beginning.
    pub until: Option<u64>,
    /// Go on from the replay's own decisions.
    pub closed: bool,
    /// Objects that take the place of recorded ones from the beginning: other profiles, classes, quotas.
    pub overlay: Vec<Object>,
}

/// How much is done for every line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    /// No more than can change anything.
    Least,
    /// Every line is read whole, and the engine hears of each of its writes twice, as on a cluster: what the other is
    /// held against.
    Most,
}

/// One step of a replay, for whoever looks on.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// What was wished for, in words; empty where nothing was.
    pub what: &'a str,
    /// What the live engine decided.
    pub live: &'a [Decision],
    /// Whether the replay decided the same.
    pub agrees: bool,
    /// Lines read so far.
    pub lines: u64,
}

/// Plays a recording.
///
/// # Errors
/// It cannot be read.
pub fn replay(path: &Path, options: &Options) -> Result<Replay, ReadError> {
    replay_with(path, options, |_, _| {})
}

/// As [`replay`], and tells `look` of every step, with a way to sample the state then.
///
/// # Errors
/// As [`replay`].
pub fn replay_with(
    path: &Path,
    options: &Options,
    look: impl FnMut(&Progress<'_>, &dyn Fn() -> Sample),
) -> Result<Replay, ReadError> {
    play(path, options, Care::Least, look)
}

/// As [`replay`], with what the cluster holds in the end.
///
/// # Errors
/// As [`replay`].
pub fn replay_to_end(path: &Path, options: &Options) -> Result<(Replay, Vec<Object>), ReadError> {
    let mut end = Vec::new();
    let replay = played(path, options, Care::Least, |_, _| {})?.finish(Some(&mut end));
    Ok((replay, end))
}

fn play(
    path: &Path,
    options: &Options,
    care: Care,
    look: impl FnMut(&Progress<'_>, &dyn Fn() -> Sample),
) -> Result<Replay, ReadError> {
    Ok(played(path, options, care, look)?.finish(None))
}

fn played<'a>(
    path: &Path,
    options: &'a Options,
    care: Care,
    mut look: impl FnMut(&Progress<'_>, &dyn Fn() -> Sample),
) -> Result<Player<'a>, ReadError> {
    let mut player = Player::open(path, options, care)?;
    while let Some(group) = player.next()? {
        if options.until.is_some_and(|until| group.at > until) {
            break;
        }
        let (at, what, decisions, agrees) = player.play(group)?;
        let progress = Progress { at, what: &what, live: &decisions, agrees, lines: player.lines.count() };
        let stage = &player.stage;
        look(&progress, &|| series::sample(stage, at));
    }
    Ok(player)
}

struct Player<'a> {
    file: String,
    lines: Feed,
    /// The first that happened, where it has not been played yet.
    first: Option<Group>,
    truth: Recorded,
    stage: Stage,
    verifier: Verifier,
    options: &'a Options,
    /// What takes the place of recorded objects, by place.
    overlaid: BTreeMap<(Kind, ObjectKey), &'a Object>,
    began: i64,
    last: u64,
    interval: u64,
    series: Vec<Sample>,
    events: u64,
    inputs: u64,
    gaps: u64,
    corrections: usize,
    /// When each claim came, and when the live engine served it.
    came: Lookup<Uid, u64>,
    served_live: Vec<u64>,
}

impl<'a> Player<'a> {
    /// Reads the beginning: everything up to the revision of the last list is how the cluster was found.
    fn open(path: &Path, options: &'a Options, care: Care) -> Result<Player<'a>, ReadError> {
        let file = path.display().to_string();
        let reader = Reader::open(path)?;
        let header = reader.header().clone();
        let base = header.kinds.values().filter_map(|r| r.parse().ok()).max().unwrap_or(0);
        let mut lines = Feed::new(reader, care == Care::Most);
        let mut truth = Recorded::default();
        let (mut first, mut gaps) = (None, Vec::new());
        while let Some(group) = lines.next()? {
            let is_object = |line: &Glance| matches!(line, Glance::Line(Line::Obj { .. }));
            let is_base = group.lines.iter().all(is_object) || group.revision <= base;
            if !is_base {
                first = Some(group);
                break;
            }
            for line in group.lines {
                if let Glance::Line(Line::Gap { at, kind, open, .. }) = &line {
                    gaps.push((*at, kind.clone(), *open));
                }
                truth.take(line).map_err(|why| damaged(&file, &lines, why))?;
            }
        }
        let mut objects = truth.to_objects().map_err(|why| damaged(&file, &lines, why))?;
        for object in &options.overlay {
            let edit = crate::whatif::Edit::Apply(Box::new(object.clone()));
            // One that cannot be read was refused where it was loaded.
            let _ = edit.make(&mut objects);
        }
        let config = Config {
            system_namespace: Name::from(header.system_namespace.as_str()),
            makes_parts: false,
            ..Config::default()
        };
        let telling = if care == Care::Most { Telling::Twice } else { Telling::Once };
        let mut stage = Stage::start(objects, config, Time(header.began), telling);
        stage.latency_ms = options.closed.then_some(LATENCY_MS);
        let other_version = header.recorder != env!("CARGO_PKG_VERSION");
        let mut player = Player {
            file,
            lines,
            first,
            truth,
            stage,
            verifier: Verifier::new(other_version, header.began),
            options,
            overlaid: options.overlay.iter().map(|o| ((o.kind, crate::world::key_of(o)), o)).collect(),
            began: header.began,
            last: header.from,
            interval: 0,
            series: Vec::new(),
            events: 0,
            inputs: 0,
            gaps: 0,
            corrections: 0,
            came: Lookup::default(),
            served_live: Vec::new(),
        };
        for (at, kind, open) in gaps {
            player.lose(at, &kind, open);
        }
        player.series.push(series::sample(&player.stage, header.from));
        Ok(player)
    }

    /// What happened next.
    fn next(&mut self) -> Result<Option<Group>, ReadError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.lines.next(),
        }
    }

    fn play(&mut self, group: Group) -> Result<(u64, String, Vec<Decision>, bool), ReadError> {
        let at = group.at.max(self.last);
        self.stage.advance(Time(self.began.saturating_add_unsigned(at)));
        self.sample(at);
        let (mut what, mut decisions, mut agrees) = (String::new(), Vec::new(), true);
        for glance in group.lines {
            let line = match glance {
                Glance::Line(line) => line,
                Glance::Report(report) => {
                    what = self.report(report, at)?;
                    continue;
                }
            };
            match line {
                Line::Ev(change) => what = self.change(change, at)?,
                Line::Gap { kind, open, .. } => self.lose(at, &kind, open),
                Line::Ext(outcome) => {
                    if let Some(kind) = find_resource_kind(&outcome.kind) {
                        let (key, uid) = (self.stage.resource_key(&outcome.resource), outcome.uid.clone());
                        let (comes, ends, leaves) = (false, false, None);
                        self.verifier.wished(Wish { at, kind, key, uid, comes, ends, leaves });
                        self.stage.making.retain(|(_, name), _| **name != *outcome.resource);
                        self.stage.made(kind, &outcome.resource, &outcome.phase);
                    }
                    let took = outcome.took_ms.and_then(|ms| i64::try_from(ms).ok());
                    // The latest is the best guess at the next.
                    self.stage.latency_ms = self.stage.latency_ms.map(|known| took.unwrap_or(known));
                }
                Line::Dec(decision) => {
                    self.note_served(&decision);
                    agrees &= self.decided(&decision);
                    decisions.push(decision);
                }
                Line::Header(_) | Line::Obj { .. } | Line::End(_) => {}
            }
        }
        Ok((at, what, decisions, agrees))
    }

    fn lose(&mut self, at: u64, kind: &str, open: bool) {
        self.gaps += 1;
        self.verifier.gap(at, kind, open);
    }

    /// Looks at the state about sixty times: the stretch between two looks doubles whenever there are twice as many.
    fn sample(&mut self, at: u64) {
        let due = self.series.last().is_none_or(|last| at >= last.at + self.interval.max(1));
        if at > self.last && due {
            self.series.push(series::sample(&self.stage, at));
            if self.series.len() as u64 > 2 * SAMPLES {
                let mut keep = false;
                self.series.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.interval = (at / SAMPLES).max(1);
            }
        }
        self.last = at;
    }

    /// A change of what the engine writes; mostly it is only kept.
    fn report(&mut self, report: Report, at: u64) -> Result<String, ReadError> {
        let noted = self.truth.note(&report);
        if noted.map_err(|why| damaged(&self.file, &self.lines, why))? {
            self.events += 1;
            return Ok(String::new());
        }
        let change = report.into_change().map_err(|why| damaged(&self.file, &self.lines, why))?;
        self.change(change, at)
    }

    fn change(&mut self, change: Change, at: u64) -> Result<String, ReadError> {
        self.events += 1;
        let is_report = input::is_report(&change);
        let followed = self.truth.follow(change).map_err(|why| damaged(&self.file, &self.lines, why))?;
        let Followed { kind, key, old, new } = followed;
        let uid = new.as_ref().or(old.as_ref()).and_then(|o| o.pointer("/metadata/uid")?.as_str());
        let uid = uid.unwrap_or_default().to_owned();
        let leaves = match (kind, self.stage.verdict(&Uid::from(uid.as_str()))) {
            (Kind::Claim(_), Some(Verdict::Bind { resource })) => Some(resource),
            _ => None,
        };
        let is_overlaid = !self.overlaid.is_empty() && self.overlaid.contains_key(&(kind, key.clone()));
        let wish = match (old, new) {
            // What takes the place of a recorded object is not undone by what is recorded of it.
            _ if is_report || is_overlaid => None,
            (None, None) => None,
            (Some(old), None) => self.gone(kind, &key, &old),
            (None, Some(new)) => arrive(&mut self.stage, &mut self.came, kind, new, at),
            (Some(old), Some(new)) => {
                let is_doomed = input::is_deleting(&new) && !input::is_deleting(&old);
                // Its own engine reclaims, or does not, where the replay goes on from its own decisions.
                let is_asked = is_doomed && !self.is_left_to_engine(kind, &old);
                edited(&mut self.stage, kind, &key, old, new, is_asked)
            }
        };
        let Some(what) = wish else { return Ok(String::new()) };
        let name = format!("{} {}/{}", kind.name(), key.namespace, key.name);
        self.inputs += 1;
        let ends = matches!(what, "is gone" | "is to be deleted");
        let leaves = leaves.filter(|_| ends);
        self.verifier.wished(Wish { at, kind, key, uid, comes: what == "comes", ends, leaves });
        Ok(format!("{name} {what}"))
    }

    fn gone(&mut self, kind: Kind, key: &ObjectKey, old: &Value) -> Option<&'static str> {
        self.stage.world.get(kind, key)?;
        match self.ending(kind, old) {
            Ending::Forced => self.stage.remove(kind, key),
            Ending::Reclaimed if self.options.closed => return None,
            Ending::Requested | Ending::Reclaimed => self.stage.release(kind, key),
        }
        Some("is gone")
    }

    /// Why a recorded object goes.
    fn ending(&self, kind: Kind, old: &Value) -> Ending {
        let Kind::Resource(ty) = kind else { return Ending::Requested };
        input::ending(kind, old, |key, uid| {
            let claim = self.truth.get(Kind::Claim(ty), key);
            claim.is_some_and(|c| {
                c.pointer("/metadata/uid").is_some_and(|known| known == uid) && !input::is_deleting(&c)
            })
        })
    }

    /// Whether a recorded deletion was the live engine's own, and this one decides for itself.
    fn is_left_to_engine(&self, kind: Kind, old: &Value) -> bool {
        self.options.closed && self.ending(kind, old) == Ending::Reclaimed
    }

    fn note_served(&mut self, decision: &Decision) {
        if let (Verdict::Bind { .. }, Some(came)) = (&decision.verdict, self.came.get(decision.uid.as_str()))
        {
            self.served_live.push(decision.at.saturating_sub(*came));
        }
    }

    fn decided(&mut self, live: &Decision) -> bool {
        let played = Played { stage: &self.stage, truth: &self.truth, came: &self.came };
        let agrees = self.verifier.check(live, played);
        let is_bind =
            matches!(live.verdict, Verdict::Bind { .. } | Verdict::Provision { .. } | Verdict::Lost { .. });
        if !agrees && is_bind && !self.options.closed && self.corrections < CORRECTIONS_MAX {
            self.correct(live);
        }
        agrees
    }

    /// Sets the cluster right about one claim, and lets a new engine go on from there. Whoever held, in the replay or
    /// really, a resource that is set right is set right too: nobody must find its resource taken from under it.
    fn correct(&mut self, live: &Decision) {
        self.corrections += 1;
        let Some(ty) = TypeId::all().find(|ty| ty.rules().claim == live.kind) else { return };
        let mut open = vec![live.uid.clone()];
        let (mut claims, mut resources) = (BTreeSet::new(), BTreeSet::new());
        while let Some(uid) = open.pop() {
            if !claims.insert(uid.clone()) {
                continue;
            }
            for key in self.held_by(ty, &uid) {
                if resources.insert(key.clone()) {
                    open.extend(self.holders_of(ty, &key));
                    self.set_right(Kind::Resource(ty), &key);
                }
            }
        }
        let of_claims =
            |object: &&Object| object.metadata.uid.as_ref().is_some_and(|uid| claims.contains(uid));
        let claimed = self.stage.world.objects().filter(|o| o.kind == Kind::Claim(ty));
        let keys: Vec<ObjectKey> = claimed.filter(of_claims).map(crate::world::key_of).collect();
        keys.iter().for_each(|key| self.set_right(Kind::Claim(ty), key));
        self.stage.restart();
    }

    /// The resources that name a claim, in the replay or in the recording.
    fn held_by(&self, ty: TypeId, uid: &str) -> Vec<ObjectKey> {
        let simulated = self.stage.world.objects().filter(|o| o.kind == Kind::Resource(ty));
        let simulated = simulated.filter(|o| stage::holders(o).contains(uid)).map(crate::world::key_of);
        let recorded = self.truth.mentioning(Kind::Resource(ty), uid).filter(|(_, value)| names(value, uid));
        simulated.chain(recorded.map(|(key, _)| key)).collect()
    }

    /// Whom a resource names, in the replay or in the recording.
    fn holders_of(&self, ty: TypeId, key: &ObjectKey) -> Vec<String> {
        let simulated = self.stage.world.get(Kind::Resource(ty), key).map(stage::holders).unwrap_or_default();
        let recorded = self.truth.get(Kind::Resource(ty), key);
        let recorded = recorded.iter().flat_map(uids).map(str::to_owned);
        simulated.into_iter().chain(recorded).collect()
    }

    /// As it was recorded, or gone; without a word to the engine, which is started anew after.
    fn set_right(&mut self, kind: Kind, key: &ObjectKey) {
        self.stage.forget_waiting(kind, key);
        match self.truth.get(kind, key).and_then(|value| into_object(kind, value).ok()) {
            Some(object) => {
                let overlay = self.overlaid.get(&(kind, key.clone())).copied();
                drop(self.stage.world.put(overlay.map_or(object.clone(), |new| overlaid(object, new))));
            }
            // Nobody recorded it: it is the caller's.
            None if self.overlaid.contains_key(&(kind, key.clone())) => {}
            None => {
                let _ = self.stage.world.edit(kind, key, |o| o.metadata.finalizers = None);
                let _ = self.stage.world.delete(kind, key);
            }
        }
    }

    /// Holds the end against the recorded one, and keeps what the cluster then holds where somebody wants it.
    fn finish(mut self, end: Option<&mut Vec<Object>>) -> Replay {
        self.series.push(series::sample(&self.stage, self.last));
        let live: BTreeMap<Uid, Verdict> = self.truth_at_end();
        for claim in self.stage.engine.state().claims() {
            let live = live.get(&claim.meta.uid);
            let played = Played { stage: &self.stage, truth: &self.truth, came: &self.came };
            self.verifier.check_end(claim, live, played, self.last);
        }
        // What is not asked again makes room for the plan.
        self.truth = Recorded::default();
        let waiting = Waiting {
            simulated: Percentiles::of(self.served()),
            live: Percentiles::of(std::mem::take(&mut self.served_live)),
        };
        let (agreement, divergences) = self.verifier.finish();
        let writes = self.stage.writes;
        let feed = &self.lines;
        let plan = self.stage.plan(end);
        Replay {
            api_version: API_VERSION,
            kind: "Replay",
            recorder: feed.header().recorder.clone(),
            duration_ms: self.last,
            interrupted: feed.was_interrupted(),
            events: self.events,
            inputs: self.inputs,
            writes,
            gaps: self.gaps,
            agreement,
            divergences,
            waiting,
            series: self.series,
            end: plan.summary,
            digest: plan.digest,
        }
    }

    /// How long each claim that came during the replay waited for its resource.
    fn served(&self) -> Vec<u64> {
        let bound = self.stage.decided.sorted().into_iter().filter_map(|(uid, decided)| {
            let came = self.came.get(uid)?;
            let (_, at) = decided.iter().find(|(verdict, _)| matches!(verdict, Verdict::Bind { .. }))?;
            Some(elapsed(*at, self.began).saturating_sub(*came))
        });
        bound.collect()
    }

    /// How each claim stands in the recording at its end, as far as it is served.
    fn truth_at_end(&self) -> BTreeMap<Uid, Verdict> {
        let mut found = BTreeMap::new();
        let kinds = TypeId::all().map(Kind::Resource);
        for (_, resource) in kinds.flat_map(|kind| self.truth.mentioning(kind, "claimRefs")) {
            for uid in uids(&resource) {
                let name = resource.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                found.insert(Uid::from(uid), Verdict::Bind { resource: name.to_owned() });
            }
        }
        found
    }
}

/// Somebody made an object; nothing where it was the live engine.
fn arrive(
    stage: &mut Stage,
    came: &mut Lookup<Uid, u64>,
    kind: Kind,
    new: Value,
    at: u64,
) -> Option<&'static str> {
    if input::is_made(kind, &new) {
        return None;
    }
    let object = into_object(kind, input::wishes(kind, new)).ok()?;
    if let (Kind::Claim(_), Some(uid)) = (kind, &object.metadata.uid) {
        came.insert(Uid::from(uid.as_str()), at);
    }
    stage.put(object);
    Some("comes")
}

/// Somebody changed an object; `is_doomed` where its deletion was asked for with it.
fn edited(
    stage: &mut Stage,
    kind: Kind,
    key: &ObjectKey,
    old: Value,
    new: Value,
    is_doomed: bool,
) -> Option<&'static str> {
    let mut wished = None;
    let (mut was, mut is) = (input::wishes(kind, old), input::wishes(kind, new));
    for wishes in [&mut was, &mut is] {
        if let Some(metadata) = wishes.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("deletionTimestamp");
        }
    }
    if was != is {
        let object = into_object(kind, is).ok()?;
        stage.edit(kind, key, |known| input::wish(known, &object));
        wished = Some("is edited");
    }
    if is_doomed {
        stage.delete(kind, key);
        wished = Some("is to be deleted");
    }
    wished
}

/// A recorded object with another in its place: what the cluster wrote of it stays.
fn overlaid(recorded: Object, new: &Object) -> Object {
    let mut one = vec![recorded];
    let _ = crate::whatif::Edit::Apply(Box::new(new.clone())).make(&mut one);
    one.swap_remove(0)
}

/// The UIDs that a recorded resource names.
fn uids(resource: &Value) -> impl Iterator<Item = &str> {
    let refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|r| r.get("uid")?.as_str())
}

fn names(resource: &Value, uid: &str) -> bool {
    uids(resource).any(|known| known == uid)
}

fn damaged(file: &str, lines: &Feed, why: String) -> ReadError {
    ReadError::Damaged { file: file.to_owned(), line: lines.count(), why }
}

fn find_resource_kind(name: &str) -> Option<Kind> {
    TypeId::all().find(|ty| ty.rules().resource == name).map(Kind::Resource)
}
