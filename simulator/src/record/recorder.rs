//! Turns watch events into lines: redacts objects, writes changes as patches, derives decisions, notes gaps. The caller
//! has the clock. Memory holds the current objects only, not their history.

use super::decisions::{decisions, outcome};
use super::line::{Change, FORMAT, Header, Line};
use super::redact::Redaction;
use super::writer::Writer;
use crate::merge_patch::diff;
use conductor::event::{Event, Gone};
use conductor::model::{Kind, Object, ObjectKey, Revision};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Records the events of a watch. Methods return the output's errors.
pub struct Recorder<W: Write> {
    writer: Writer<W>,
    header: Header,
    redaction: Redaction,
    objects: BTreeMap<(Kind, ObjectKey), Known>,
    listed: BTreeSet<Kind>,
    /// Watches that are lost now.
    lost: BTreeMap<Kind, Lost>,
    /// Whether the first lists have arrived and the header is written.
    begun: bool,
    last: u64,
    changes: u64,
}

/// A lost watch.
struct Lost {
    since: u64,
    why: String,
    /// Whether its gap is written. A watch that soon resumes where it stopped missed nothing.
    reported: bool,
}

/// A watch lost for longer is a gap.
const GRACE_MS: u64 = 2_000;

/// The last written state of an object.
struct Known {
    object: Value,
    /// When it was created, if during the recording.
    since: Option<u64>,
}

/// What a recording is of.
#[derive(Clone, Debug)]
pub struct RecordingInfo {
    /// Start of the recording, in milliseconds since the Unix epoch.
    pub began: i64,
    /// Namespace of resources and classes.
    pub system_namespace: String,
    /// Version of the recording program.
    pub recorder: String,
}

impl<W: Write> Recorder<W> {
    /// A recorder without events.
    pub fn new(out: W, subject: RecordingInfo, redaction: Redaction) -> Recorder<W> {
        let RecordingInfo { began, system_namespace, recorder } = subject;
        let header = Header {
            format: FORMAT,
            recorder,
            began,
            system_namespace,
            redaction: redaction.word().to_owned(),
            part: 1,
            ..Header::default()
        };
        let (objects, listed, lost) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let (writer, begun, last, changes) = (Writer::new(out), false, 0, 0);
        Recorder { writer, header, redaction, objects, listed, lost, begun, last, changes }
    }

    /// Notes a kind that cannot be listed.
    pub fn refuse(&mut self, kind: Kind, why: &str) {
        self.header.refused.insert(kind.name().to_owned(), why.to_owned());
    }

    /// Writes the header and all objects, once everything has been listed.
    pub fn begin(&mut self) -> io::Result<()> {
        self.begun = true;
        self.writer.line(&Line::Header(Box::new(self.header.clone())))?;
        for kept in self.objects.values() {
            self.writer.line(&Line::Obj { o: kept.object.clone() })?;
        }
        self.writer.flush()
    }

    /// Records an event, `at` milliseconds after the beginning.
    pub fn take(&mut self, event: Event, at: u64) -> io::Result<()> {
        // The clock may be set back; times in the file never decrease.
        let at = at.max(self.last);
        self.last = at;
        match event {
            Event::Seen(object) => self.seen(&object, at),
            Event::Gone(gone) => self.gone(&gone, at),
            Event::Listed { kind, objects, revision } => self.listed(kind, &objects, revision, at),
            // Not recorded: parts, Secrets, published connections.
            Event::Synced
            | Event::Answered { .. }
            | Event::Read { .. }
            | Event::Part(_)
            | Event::Publish(_)
            | Event::Tick => Ok(()),
        }
    }

    fn listed(&mut self, kind: Kind, objects: &[Object], revision: Revision, at: u64) -> io::Result<()> {
        self.header.kinds.insert(kind.name().to_owned(), revision.to_string());
        if self.begun && !self.listed.insert(kind) {
            self.gap(kind, "the watch was lost, and the kind was listed again", false, at)?;
        }
        self.listed.insert(kind);
        self.lost.remove(&kind);
        let keys: BTreeSet<ObjectKey> = objects.iter().map(|o| self.key(o)).collect();
        let missing: Vec<ObjectKey> = self
            .objects
            .keys()
            .filter(|(k, key)| *k == kind && !keys.contains(key))
            .map(|(_, key)| key.clone())
            .collect();
        for key in missing {
            self.forget(kind, &key, revision, at)?;
        }
        objects.iter().try_for_each(|object| self.seen(object, at))
    }

    fn gap(&mut self, kind: Kind, why: &str, open: bool, at: u64) -> io::Result<()> {
        let (kind, why) = (kind.name().to_owned(), why.to_owned());
        self.writer.line(&Line::Gap { at, kind, why, open })
    }

    /// Notes that a watch failed. It becomes a gap if it does not resume soon: see [`Recorder::note_lost`].
    pub fn lose(&mut self, kind: Kind, why: &str, at: u64) {
        let since = at.max(self.last);
        self.lost.entry(kind).or_insert(Lost { since, why: why.to_owned(), reported: false });
    }

    /// Notes that a watch resumed where it stopped. Returns whether that closes a gap.
    pub fn regain(&mut self, kind: Kind, at: u64) -> io::Result<bool> {
        let at = at.max(self.last);
        match self.lost.remove(&kind) {
            Some(Lost { reported: true, .. }) => {
                self.last = at;
                self.gap(kind, "the watch resumed; missed events follow", false, at).map(|()| true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Writes a gap for each watch that has been lost for a while. Returns descriptions of the new gaps.
    pub fn note_lost(&mut self, at: u64) -> io::Result<Vec<String>> {
        self.note_lost_since(at, at.saturating_sub(GRACE_MS))
    }

    fn note_lost_since(&mut self, at: u64, before: u64) -> io::Result<Vec<String>> {
        let at = at.max(self.last);
        let is_due = |lost: &Lost| self.begun && !lost.reported && lost.since <= before;
        let due: Vec<Kind> = self.lost.iter().filter(|(_, l)| is_due(l)).map(|(kind, _)| *kind).collect();
        let mut reported = Vec::new();
        for kind in due {
            let Some(lost) = self.lost.get_mut(&kind) else { continue };
            lost.reported = true;
            // Network errors contain host names: report them to the user, but keep them out of the file.
            let why = format!("the watch was lost at {} ms", lost.since);
            reported.push(format!("{}: {why}: {}", kind.name(), lost.why));
            self.last = at;
            self.gap(kind, &why, true, at)?;
        }
        Ok(reported)
    }

    /// Kinds whose watch is lost now.
    pub fn lost(&self) -> impl Iterator<Item = Kind> {
        self.lost.keys().copied()
    }

    fn key(&mut self, object: &Object) -> ObjectKey {
        self.redaction.key(object.kind, &crate::world::key_of(object))
    }

    fn seen(&mut self, object: &Object, at: u64) -> io::Result<()> {
        let (kind, key) = (object.kind, self.key(object));
        let redacted = self.redaction.redact(object);
        let known = self.objects.get(&(kind, key.clone()));
        let uid = redacted["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // Another UID is another object.
        if known.is_some_and(|k| k.object["metadata"]["uid"] != redacted["metadata"]["uid"]) {
            let revision = Revision::read(object.metadata.resource_version.as_deref());
            self.forget(kind, &key, revision, at)?;
        }
        let known = self.objects.get(&(kind, key.clone()));
        let old = known.map(|k| &k.object);
        if old == Some(&redacted) {
            return Ok(());
        }
        let since = known.and_then(|k| k.since).or((self.begun && known.is_none()).then_some(at));
        if self.begun {
            let patch = old.and_then(|old| diff(old, &redacted));
            let new = old.is_none().then(|| redacted.clone());
            let decided = decisions(kind, old, &redacted, at);
            let ended = outcome(kind, old, &redacted, since, at);
            let (ns, name) = (key.namespace.to_string(), key.name.to_string());
            let change = Change {
                at,
                kind: kind.name().to_owned(),
                ns,
                name,
                uid,
                new,
                patch,
                gone: false,
                rev: None,
            };
            self.change(change)?;
            for decision in decided {
                self.writer.line(&Line::Dec(decision))?;
            }
            if let Some(ended) = ended {
                self.writer.line(&Line::Ext(ended))?;
            }
        }
        self.objects.insert((kind, key), Known { object: redacted, since });
        Ok(())
    }

    fn gone(&mut self, gone: &Gone, at: u64) -> io::Result<()> {
        let Gone { kind, key, uid, revision } = gone;
        let key = self.redaction.key(*kind, key);
        let known = self.objects.get(&(*kind, key.clone()));
        match known.is_some_and(|k| k.object["metadata"]["uid"] == **uid) {
            true => self.forget(*kind, &key, *revision, at),
            false => Ok(()),
        }
    }

    fn forget(&mut self, kind: Kind, key: &ObjectKey, revision: Revision, at: u64) -> io::Result<()> {
        let Some(kept) = self.objects.remove(&(kind, key.clone())) else { return Ok(()) };
        if !self.begun {
            return Ok(());
        }
        self.change(Change {
            at,
            kind: kind.name().to_owned(),
            ns: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: kept.object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            new: None,
            patch: None,
            gone: true,
            rev: Some(revision.0).filter(|revision| *revision != 0),
        })
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.changes += 1;
        self.writer.line(&Line::Ev(change))
    }

    /// Flushes everything so far, so that an interruption does not lose it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Size of this file in bytes.
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Number of objects now.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Number of changes recorded, over all files.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Ends this file and continues in another, which starts with all current objects.
    pub fn rotate(&mut self, out: W, at: u64) -> io::Result<W> {
        self.note_lost_since(at, u64::MAX)?;
        let full = std::mem::replace(&mut self.writer, Writer::new(out));
        let done = full.finish(at)?;
        self.header.part += 1;
        self.header.from = at;
        self.begin()?;
        // Each file states its own gaps.
        self.lost.values_mut().for_each(|lost| lost.reported = false);
        self.note_lost_since(at, u64::MAX)?;
        Ok(done)
    }

    /// Ends the recording. A watch that is lost now is a gap, however short.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        self.note_lost_since(at, u64::MAX)?;
        self.writer.finish(at.max(self.last))
    }
}
