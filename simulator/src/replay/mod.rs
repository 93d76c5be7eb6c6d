//! Replay: runs a recorded history through the production engine again, in virtual time. Users' changes are replayed; the
//! live engine's decisions are only compared with this one's.
//!
//! ```text
//! recording -> order (revisions) -> feed (thread) -> user_changes -> cluster (world, engine) -> verify -> document
//!                                    |                                                              ^
//!                                    +--> decisions of the live engine -----------------------------+
//! ```
//!
//! *Following* (default): after a divergence the replay continues from what really happened, so that one difference counts
//! once. *Closed*: it continues from its own decisions, and provisioning takes as long as it usually took, to find out
//! what would have happened.

mod causes;
mod cluster;
mod document;
mod feed;
mod order;
mod preference;
mod series;
#[cfg(test)]
mod tests;
mod user_changes;
mod verify;

pub use document::{Agreement, Divergence, Explanation, Percentiles, Replay, Sample, Waiting};

use crate::plan::API_VERSION;
use crate::record::{
    AppliedChange, Change, Decision, EnginePatch, Line, ReadError, Reader, RecordedObjects, ScannedLine,
    Verdict, into_object,
};
use crate::world::WatchEcho;
use causes::UserChange;
use cluster::ReplayCluster;
use conductor::engine::Config;
use conductor::model::{Kind, Lookup, Name, Object, ObjectKey, Time, TypeId, Uid};
use feed::Feed;
use order::Group;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use user_changes::Ending;
use verify::{Played, Verifier, elapsed};

/// Number of samples of the state.
const SAMPLES: u64 = 60;
/// After this many corrections, the replay is another history and continues by itself.
const CORRECTIONS_MAX: usize = 1_000;
/// Duration of a provisioning if none was recorded yet.
const LATENCY_MS: i64 = 30_000;

/// Settings of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stop this many milliseconds after the beginning.
    pub until: Option<u64>,
    /// Continue from the replay's own decisions.
    pub closed: bool,
    /// Objects that replace recorded ones from the beginning: other profiles, classes, quotas.
    pub overlay: Vec<Object>,
}

/// Whether to take shortcuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Skips everything that cannot change the result.
    Fast,
    /// Parses every line, and shows the engine its own writes on the watch, as a cluster does. Tests compare the two.
    Thorough,
}

/// One step of a replay, for an observer.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// What a user changed, as a sentence; empty if nothing.
    pub what: &'a str,
    /// Decisions of the live engine.
    pub live: &'a [Decision],
    /// Whether the replay decides the same.
    pub agrees: bool,
    /// Number of lines read.
    pub lines: u64,
}

/// Replays a recording.
///
/// # Errors
/// It cannot be read.
pub fn replay(path: &Path, options: &Options) -> Result<Replay, ReadError> {
    replay_with(path, options, |_, _| {})
}

/// As [`replay`], and calls `look` after each step, with a way to sample the state.
///
/// # Errors
/// As [`replay`].
pub fn replay_with(
    path: &Path,
    options: &Options,
    look: impl FnMut(&Progress<'_>, &dyn Fn() -> Sample),
) -> Result<Replay, ReadError> {
    Ok(played(path, options, Mode::Fast, look)?.finish(None))
}

/// As [`replay`], and also returns the cluster's objects at the end.
///
/// # Errors
/// As [`replay`].
pub fn replay_to_end(path: &Path, options: &Options) -> Result<(Replay, Vec<Object>), ReadError> {
    let mut end = Vec::new();
    let replay = played(path, options, Mode::Fast, |_, _| {})?.finish(Some(&mut end));
    Ok((replay, end))
}

fn played<'a>(
    path: &Path,
    options: &'a Options,
    mode: Mode,
    mut look: impl FnMut(&Progress<'_>, &dyn Fn() -> Sample),
) -> Result<Player<'a>, ReadError> {
    let mut player = Player::open(path, options, mode)?;
    while let Some(group) = player.next()? {
        if options.until.is_some_and(|until| group.at > until) {
            break;
        }
        let (at, what, decisions, agrees) = player.play(group)?;
        let progress = Progress { at, what: &what, live: &decisions, agrees, lines: player.lines.count() };
        let cluster = &player.cluster;
        look(&progress, &|| series::sample(cluster, at));
    }
    Ok(player)
}

struct Player<'a> {
    file: String,
    lines: Feed,
    /// The first event, until it is played.
    first: Option<Group>,
    truth: RecordedObjects,
    cluster: ReplayCluster,
    verifier: Verifier,
    options: &'a Options,
    /// Overlay objects by key.
    overlaid: BTreeMap<(Kind, ObjectKey), &'a Object>,
    began: i64,
    last: u64,
    interval: u64,
    series: Vec<Sample>,
    events: u64,
    inputs: u64,
    gaps: u64,
    corrections: usize,
    /// When each claim was created, and how long the live engine took to serve each.
    created: Lookup<Uid, u64>,
    served_live: Vec<u64>,
}

impl<'a> Player<'a> {
    /// Reads the initial state: everything up to the resource version of the last list.
    fn open(path: &Path, options: &'a Options, mode: Mode) -> Result<Player<'a>, ReadError> {
        let file = path.display().to_string();
        let reader = Reader::open(path)?;
        let header = reader.header().clone();
        let base = header.kinds.values().filter_map(|r| r.parse().ok()).max().unwrap_or(0);
        let mut lines = Feed::new(reader, mode == Mode::Thorough);
        let mut truth = RecordedObjects::default();
        let (mut first, mut gaps) = (None, Vec::new());
        while let Some(group) = lines.next()? {
            let is_object = |line: &ScannedLine| matches!(line, ScannedLine::Line(Line::Obj { .. }));
            let is_base = group.lines.iter().all(is_object) || group.revision <= base;
            if !is_base {
                first = Some(group);
                break;
            }
            for line in group.lines {
                if let ScannedLine::Line(Line::Gap { at, kind, open, .. }) = &line {
                    gaps.push((*at, kind.clone(), *open));
                }
                truth.take(line).map_err(|why| damaged(&file, &lines, why))?;
            }
        }
        let mut objects = truth.to_objects().map_err(|why| damaged(&file, &lines, why))?;
        for object in &options.overlay {
            let edit = crate::whatif::Edit::Apply(Box::new(object.clone()));
            // The loader refused unreadable ones.
            let _ = edit.make(&mut objects);
        }
        let config = Config {
            system_namespace: Name::from(header.system_namespace.as_str()),
            makes_parts: false,
            ..Config::default()
        };
        let echo = if mode == Mode::Thorough { WatchEcho::On } else { WatchEcho::Off };
        let mut cluster = ReplayCluster::start(objects, config, Time(header.began), echo);
        cluster.latency_ms = options.closed.then_some(LATENCY_MS);
        let other_version = header.is_of_another_version();
        let mut player = Player {
            file,
            lines,
            first,
            truth,
            cluster,
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
            created: Lookup::default(),
            served_live: Vec::new(),
        };
        for (at, kind, open) in gaps {
            player.lose(at, &kind, open);
        }
        player.series.push(series::sample(&player.cluster, header.from));
        Ok(player)
    }

    /// The next event.
    fn next(&mut self) -> Result<Option<Group>, ReadError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.lines.next(),
        }
    }

    fn play(&mut self, group: Group) -> Result<(u64, String, Vec<Decision>, bool), ReadError> {
        let at = group.at.max(self.last);
        self.cluster.advance(Time(self.began.saturating_add_unsigned(at)));
        self.sample(at);
        let (mut what, mut decisions, mut agrees) = (String::new(), Vec::new(), true);
        for scanned in group.lines {
            let line = match scanned {
                ScannedLine::Line(line) => line,
                ScannedLine::EnginePatch(report) => {
                    what = self.report(report, at)?;
                    continue;
                }
            };
            match line {
                Line::Ev(change) => what = self.change(change, at)?,
                Line::Gap { kind, open, .. } => self.lose(at, &kind, open),
                Line::Ext(outcome) => {
                    if let Some(kind) = find_resource_kind(&outcome.kind) {
                        let (key, uid) = (self.cluster.resource_key(&outcome.resource), outcome.uid.clone());
                        let (is_new, is_deletion, leaves) = (false, false, None);
                        self.verifier.changed(UserChange { at, kind, key, uid, is_new, is_deletion, leaves });
                        self.cluster.making.retain(|(_, name), _| **name != *outcome.resource);
                        self.cluster.made(kind, &outcome.resource, &outcome.phase);
                    }
                    let took = outcome.took_ms.and_then(|ms| i64::try_from(ms).ok());
                    // The last duration predicts the next one.
                    self.cluster.latency_ms = self.cluster.latency_ms.map(|known| took.unwrap_or(known));
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

    /// Takes about sixty samples: when there are twice as many, it drops every other one and doubles the interval.
    fn sample(&mut self, at: u64) {
        let due = self.series.last().is_none_or(|last| at >= last.at + self.interval.max(1));
        if at > self.last && due {
            self.series.push(series::sample(&self.cluster, at));
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

    /// Applies an engine patch, in most cases without looking at the object.
    fn report(&mut self, report: EnginePatch, at: u64) -> Result<String, ReadError> {
        let noted = self.truth.apply_engine_patch(&report);
        if noted.map_err(|why| damaged(&self.file, &self.lines, why))? {
            self.events += 1;
            return Ok(String::new());
        }
        let change = report.into_change().map_err(|why| damaged(&self.file, &self.lines, why))?;
        self.change(change, at)
    }

    fn change(&mut self, change: Change, at: u64) -> Result<String, ReadError> {
        self.events += 1;
        let is_engine_patch = user_changes::is_engine_patch(&change);
        let followed = self.truth.apply(change).map_err(|why| damaged(&self.file, &self.lines, why))?;
        let AppliedChange { kind, key, old, new } = followed;
        let uid = new.as_ref().or(old.as_ref()).and_then(|o| o.pointer("/metadata/uid")?.as_str());
        let uid = uid.unwrap_or_default().to_owned();
        let leaves = match (kind, self.cluster.verdict(&Uid::from(uid.as_str()))) {
            (Kind::Claim(_), Some(Verdict::Bind { resource })) => Some(resource),
            _ => None,
        };
        let is_overlaid = !self.overlaid.is_empty() && self.overlaid.contains_key(&(kind, key.clone()));
        let change = match (old, new) {
            // Recorded changes do not undo the overlay.
            _ if is_engine_patch || is_overlaid => None,
            (None, None) => None,
            (Some(old), None) => self.gone(kind, &key, &old),
            (None, Some(new)) => arrive(&mut self.cluster, &mut self.created, kind, new, at),
            (Some(old), Some(new)) => {
                let is_doomed = user_changes::is_deleting(&new) && !user_changes::is_deleting(&old);
                // In closed mode, the replay's engine decides about reclaiming.
                let is_requested = is_doomed && !self.is_left_to_engine(kind, &old);
                edited(&mut self.cluster, kind, &key, old, new, is_requested)
            }
        };
        let Some(what) = change else { return Ok(String::new()) };
        let name = format!("{} {}/{}", kind.name(), key.namespace, key.name);
        self.inputs += 1;
        let is_deletion = matches!(what, "is deleted" | "is being deleted");
        let leaves = leaves.filter(|_| is_deletion);
        self.verifier.changed(UserChange {
            at,
            kind,
            key,
            uid,
            is_new: what == "is created",
            is_deletion,
            leaves,
        });
        Ok(format!("{name} {what}"))
    }

    fn gone(&mut self, kind: Kind, key: &ObjectKey, old: &Value) -> Option<&'static str> {
        self.cluster.world.get(kind, key)?;
        match self.ending(kind, old) {
            Ending::Forced => self.cluster.remove(kind, key),
            Ending::Reclaimed if self.options.closed => return None,
            Ending::Requested | Ending::Reclaimed => self.cluster.release(kind, key),
        }
        Some("is deleted")
    }

    /// Why a recorded object was deleted.
    fn ending(&self, kind: Kind, old: &Value) -> Ending {
        let Kind::Resource(ty) = kind else { return Ending::Requested };
        user_changes::ending(kind, old, |key, uid| {
            let claim = self.truth.get(Kind::Claim(ty), key);
            claim.is_some_and(|c| {
                c.pointer("/metadata/uid").is_some_and(|known| known == uid) && !user_changes::is_deleting(&c)
            })
        })
    }

    /// Whether the live engine requested a deletion that the replay's engine decides itself.
    fn is_left_to_engine(&self, kind: Kind, old: &Value) -> bool {
        self.options.closed && self.ending(kind, old) == Ending::Reclaimed
    }

    fn note_served(&mut self, decision: &Decision) {
        if let (Verdict::Bind { .. }, Some(created)) =
            (&decision.verdict, self.created.get(decision.uid.as_str()))
        {
            self.served_live.push(decision.at.saturating_sub(*created));
        }
    }

    fn decided(&mut self, live: &Decision) -> bool {
        let played = Played { cluster: &self.cluster, truth: &self.truth, created: &self.created };
        let agrees = self.verifier.check(live, played);
        let is_bind =
            matches!(live.verdict, Verdict::Bind { .. } | Verdict::Provision { .. } | Verdict::Lost { .. });
        if !agrees && is_bind && !self.options.closed && self.corrections < CORRECTIONS_MAX {
            self.correct(live);
        }
        agrees
    }

    /// Makes the cluster agree with the recording about one claim, and starts a new engine on it. Includes all claims that
    /// hold an affected resource in the replay or the recording, so that none loses its resource to the correction.
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
                    self.restore_recorded(Kind::Resource(ty), &key);
                }
            }
        }
        let of_claims =
            |object: &&Object| object.metadata.uid.as_ref().is_some_and(|uid| claims.contains(uid));
        let claimed = self.cluster.world.objects().filter(|o| o.kind == Kind::Claim(ty));
        let keys: Vec<ObjectKey> = claimed.filter(of_claims).map(crate::world::key_of).collect();
        keys.iter().for_each(|key| self.restore_recorded(Kind::Claim(ty), key));
        self.cluster.restart();
    }

    /// Resources that reference a claim, in the replay or the recording.
    fn held_by(&self, ty: TypeId, uid: &str) -> Vec<ObjectKey> {
        let simulated = self.cluster.world.objects().filter(|o| o.kind == Kind::Resource(ty));
        let simulated = simulated.filter(|o| cluster::holders(o).contains(uid)).map(crate::world::key_of);
        let recorded = self.truth.mentioning(Kind::Resource(ty), uid).filter(|(_, value)| names(value, uid));
        simulated.chain(recorded.map(|(key, _)| key)).collect()
    }

    /// UIDs of the claims that a resource references, in the replay or the recording.
    fn holders_of(&self, ty: TypeId, key: &ObjectKey) -> Vec<String> {
        let simulated =
            self.cluster.world.get(Kind::Resource(ty), key).map(cluster::holders).unwrap_or_default();
        let recorded = self.truth.get(Kind::Resource(ty), key);
        let recorded = recorded.iter().flat_map(uids).map(str::to_owned);
        simulated.into_iter().chain(recorded).collect()
    }

    /// Restores an object as recorded, or removes it, without an event: a new engine starts afterwards.
    fn restore_recorded(&mut self, kind: Kind, key: &ObjectKey) {
        self.cluster.forget_waiting(kind, key);
        match self.truth.get(kind, key).and_then(|value| into_object(kind, value).ok()) {
            Some(object) => {
                let overlay = self.overlaid.get(&(kind, key.clone())).copied();
                drop(self.cluster.world.put(overlay.map_or(object.clone(), |new| overlaid(object, new))));
            }
            // Only in the overlay.
            None if self.overlaid.contains_key(&(kind, key.clone())) => {}
            None => {
                let _ = self.cluster.world.edit(kind, key, |o| o.metadata.finalizers = None);
                let _ = self.cluster.world.delete(kind, key);
            }
        }
    }

    /// Compares the end with the recording's, and returns the cluster's objects if the caller wants them.
    fn finish(mut self, end: Option<&mut Vec<Object>>) -> Replay {
        self.series.push(series::sample(&self.cluster, self.last));
        let live: BTreeMap<Uid, Verdict> = self.truth_at_end();
        for claim in self.cluster.engine.state().claims() {
            let live = live.get(&claim.meta.uid);
            let played = Played { cluster: &self.cluster, truth: &self.truth, created: &self.created };
            self.verifier.check_end(claim, live, played, self.last);
        }
        // Free memory for the plan.
        self.truth = RecordedObjects::default();
        let waiting = Waiting {
            simulated: Percentiles::of(self.served()),
            live: Percentiles::of(std::mem::take(&mut self.served_live)),
        };
        let (agreement, divergences) = self.verifier.finish();
        let writes = self.cluster.writes;
        let feed = &self.lines;
        let plan = self.cluster.plan(end);
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

    /// How long each claim that was created during the replay waited for its resource.
    fn served(&self) -> Vec<u64> {
        let bound = self.cluster.decided.sorted().into_iter().filter_map(|(uid, decided)| {
            let created = self.created.get(uid)?;
            let (_, at) = decided.iter().find(|(verdict, _)| matches!(verdict, Verdict::Bind { .. }))?;
            Some(elapsed(*at, self.began).saturating_sub(*created))
        });
        bound.collect()
    }

    /// The resource of each claim at the end of the recording.
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

/// Creates an object, unless the live engine provisioned it.
fn arrive(
    cluster: &mut ReplayCluster,
    created: &mut Lookup<Uid, u64>,
    kind: Kind,
    new: Value,
    at: u64,
) -> Option<&'static str> {
    if user_changes::is_made(kind, &new) {
        return None;
    }
    let object = into_object(kind, user_changes::user_part(kind, new)).ok()?;
    if let (Kind::Claim(_), Some(uid)) = (kind, &object.metadata.uid) {
        created.insert(Uid::from(uid.as_str()), at);
    }
    cluster.put(object);
    Some("is created")
}

/// Applies users' edits of an object; `is_doomed` if its deletion was requested.
fn edited(
    cluster: &mut ReplayCluster,
    kind: Kind,
    key: &ObjectKey,
    old: Value,
    new: Value,
    is_doomed: bool,
) -> Option<&'static str> {
    let mut changed = None;
    let (mut was, mut is) = (user_changes::user_part(kind, old), user_changes::user_part(kind, new));
    for part in [&mut was, &mut is] {
        if let Some(metadata) = part.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("deletionTimestamp");
        }
    }
    if was != is {
        let object = into_object(kind, is).ok()?;
        cluster.edit(kind, key, |known| user_changes::apply(known, &object));
        changed = Some("is edited");
    }
    if is_doomed {
        cluster.delete(kind, key);
        changed = Some("is being deleted");
    }
    changed
}

/// Applies an overlay object to a recorded one, keeping what the cluster wrote.
fn overlaid(recorded: Object, new: &Object) -> Object {
    let mut one = vec![recorded];
    let _ = crate::whatif::Edit::Apply(Box::new(new.clone())).make(&mut one);
    one.swap_remove(0)
}

/// UIDs in a recorded resource's references.
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
