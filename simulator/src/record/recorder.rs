//! Events into lines: objects made safe, changes as patches, decisions read off them, gaps named. The clock is the
//! caller's. Memory holds the objects as they are now, and nothing of the past.

use super::decisions::{decisions, outcome};
use super::line::{Change, FORMAT, Header, Line};
use super::patch::diff;
use super::redact::Redaction;
use super::writer::Writer;
use conductor::event::{Event, Gone};
use conductor::model::{Kind, Object, ObjectKey, Revision};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Records what a watch shows.
pub struct Recorder<W: Write> {
    writer: Writer<W>,
    header: Header,
    redaction: Redaction,
    objects: BTreeMap<(Kind, ObjectKey), Kept>,
    listed: BTreeSet<Kind>,
    /// Watches that are lost at the moment.
    lost: BTreeMap<Kind, Lost>,
    /// Whether the first lists are in, and with them the header.
    begun: bool,
    last: u64,
    changes: u64,
}

/// A watch that is lost.
struct Lost {
    since: u64,
    why: String,
    /// Whether its gap is written. One that is back soon, from where it was lost, has missed nothing.
    told: bool,
}

/// A watch that is lost for longer is a gap.
const GRACE_MS: u64 = 2_000;

/// An object as it was last written.
struct Kept {
    told: Value,
    /// When it was first seen after the beginning.
    since: Option<u64>,
}

/// What a recording is of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// When it begins, in milliseconds since the Unix epoch.
    pub began: i64,
    /// Where resources and classes live.
    pub system_namespace: String,
    /// Version of the program.
    pub recorder: String,
}

impl<W: Write> Recorder<W> {
    /// A recorder that has seen nothing.
    pub fn new(out: W, subject: Subject, redaction: Redaction) -> Recorder<W> {
        let Subject { began, system_namespace, recorder } = subject;
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

    /// Notes a kind that cannot be had.
    pub fn refuse(&mut self, kind: Kind, why: &str) {
        self.header.refused.insert(kind.name().to_owned(), why.to_owned());
    }

    /// Everything has been listed once: writes the header and all objects.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn begin(&mut self) -> io::Result<()> {
        self.begun = true;
        self.writer.line(&Line::Header(Box::new(self.header.clone())))?;
        for kept in self.objects.values() {
            self.writer.line(&Line::Obj { o: kept.told.clone() })?;
        }
        self.writer.flush()
    }

    /// Takes in what a watch shows, `at` milliseconds after the beginning.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn take(&mut self, event: Event, at: u64) -> io::Result<()> {
        // A clock that is set back must not make the file run backwards.
        let at = at.max(self.last);
        self.last = at;
        match event {
            Event::Seen(object) => self.seen(&object, at),
            Event::Gone(gone) => self.gone(&gone, at),
            Event::Listed { kind, objects, revision } => self.listed(kind, &objects, revision, at),
            // Nothing else is watched: parts, Secrets and what is published from them stay where they are.
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
            self.gap(kind, "the watch was lost, and its kind listed anew", false, at)?;
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

    /// A watch failed. Whether it is a gap is seen when it is not back soon: see [`Recorder::note_lost`].
    pub fn lose(&mut self, kind: Kind, why: &str, at: u64) {
        let since = at.max(self.last);
        self.lost.entry(kind).or_insert(Lost { since, why: why.to_owned(), told: false });
    }

    /// A watch is there again from where it was lost.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn regain(&mut self, kind: Kind, at: u64) -> io::Result<bool> {
        let at = at.max(self.last);
        match self.lost.remove(&kind) {
            Some(Lost { told: true, .. }) => {
                self.last = at;
                self.gap(kind, "the watch is back; what it missed comes now", false, at).map(|()| true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Writes a gap for every watch that has been lost for a while. Returns those that were not told yet, in words.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn note_lost(&mut self, at: u64) -> io::Result<Vec<String>> {
        self.note_lost_since(at, at.saturating_sub(GRACE_MS))
    }

    fn note_lost_since(&mut self, at: u64, before: u64) -> io::Result<Vec<String>> {
        let at = at.max(self.last);
        let is_due = |lost: &Lost| self.begun && !lost.told && lost.since <= before;
        let due: Vec<Kind> = self.lost.iter().filter(|(_, l)| is_due(l)).map(|(kind, _)| *kind).collect();
        let mut told = Vec::new();
        for kind in due {
            let Some(lost) = self.lost.get_mut(&kind) else { continue };
            lost.told = true;
            // What the network said names hosts: that is for whoever records, and not for the file.
            let why = format!("the watch is lost since {} ms", lost.since);
            told.push(format!("{}: {why}: {}", kind.name(), lost.why));
            self.last = at;
            self.gap(kind, &why, true, at)?;
        }
        Ok(told)
    }

    /// The kinds whose watch is lost now.
    pub fn lost(&self) -> impl Iterator<Item = Kind> {
        self.lost.keys().copied()
    }

    fn key(&mut self, object: &Object) -> ObjectKey {
        self.redaction.key(object.kind, &crate::world::key_of(object))
    }

    fn seen(&mut self, object: &Object, at: u64) -> io::Result<()> {
        let (kind, key) = (object.kind, self.key(object));
        let told = self.redaction.redact(object);
        let known = self.objects.get(&(kind, key.clone()));
        let uid = told["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // The same name in another life is another object.
        if known.is_some_and(|k| k.told["metadata"]["uid"] != told["metadata"]["uid"]) {
            let revision = Revision::read(object.metadata.resource_version.as_deref());
            self.forget(kind, &key, revision, at)?;
        }
        let known = self.objects.get(&(kind, key.clone()));
        let old = known.map(|k| &k.told);
        if old == Some(&told) {
            return Ok(());
        }
        let since = known.and_then(|k| k.since).or((self.begun && known.is_none()).then_some(at));
        if self.begun {
            let patch = old.and_then(|old| diff(old, &told));
            let new = old.is_none().then(|| told.clone());
            let decided = decisions(kind, old, &told, at);
            let ended = outcome(kind, old, &told, since, at);
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
        self.objects.insert((kind, key), Kept { told, since });
        Ok(())
    }

    fn gone(&mut self, gone: &Gone, at: u64) -> io::Result<()> {
        let Gone { kind, key, uid, revision } = gone;
        let key = self.redaction.key(*kind, key);
        let known = self.objects.get(&(*kind, key.clone()));
        match known.is_some_and(|k| k.told["metadata"]["uid"] == **uid) {
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
            uid: kept.told["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
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

    /// Makes everything so far safe from an interruption.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// How many bytes this part has.
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    /// How many objects there are now.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// How many changes have been written, over all parts. What was there at the beginning is none.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Ends this part and goes on in another, which begins with everything that is there.
    ///
    /// # Errors
    /// One of the outputs does not take it.
    pub fn rotate(&mut self, out: W, at: u64) -> io::Result<W> {
        self.note_lost_since(at, u64::MAX)?;
        let full = std::mem::replace(&mut self.writer, Writer::new(out));
        let done = full.finish(at)?;
        self.header.part += 1;
        self.header.from = at;
        self.begin()?;
        // A part by itself must say what it does not know.
        self.lost.values_mut().for_each(|lost| lost.told = false);
        self.note_lost_since(at, u64::MAX)?;
        Ok(done)
    }

    /// Ends the recording. A watch that is lost by then is a gap, however short.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        self.note_lost_since(at, u64::MAX)?;
        self.writer.finish(at.max(self.last))
    }
}
