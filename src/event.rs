//! Everything that can happen to the engine, as one closed enum. How the engine reacts is not known here.

pub use crate::model::part::WhyMissing;
use crate::model::{
    Kind, Object, ObjectKey, Part, PartKey, PartKind, PublishedView, Revision, Slot, SourceView, Uid, WriteId,
};
use std::sync::Arc;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// An object was seen, new or changed.
    Seen(Object),
    /// An object was deleted.
    Gone(Gone),
    /// All objects of a kind, as of a revision: what is not among them was deleted.
    Listed {
        /// The kind.
        kind: Kind,
        /// Every object of it.
        objects: Vec<Object>,
        /// The list's own revision.
        revision: Revision,
    },
    /// Every kind has been listed once: decisions may begin.
    Synced,
    /// A write, create or delete was answered.
    Answered {
        /// The id that the action carried.
        id: WriteId,
        /// The answer.
        answer: Answer,
    },
    /// A live read was answered: the object as it is now, if there is one.
    Read {
        /// The kind that was read.
        kind: Kind,
        /// The name that was read.
        key: ObjectKey,
        /// The object, if there is one.
        found: Option<Object>,
    },
    /// Something happened to the objects that implement resources.
    Part(PartEvent),
    /// Something happened to what is published for claims, or to what it is published from.
    Publish(PublishEvent),
    /// Time has passed.
    Tick,
}

/// One thing that happened to parts, the objects that implement resources.
#[derive(Clone, Debug)]
pub enum PartEvent {
    /// All labelled parts of a kind that is watched: what is not among them was deleted, or has lost its label.
    Listed {
        /// The kind.
        kind: PartKind,
        /// Every part of it.
        parts: Vec<Part>,
        /// The list's own revision; zero where it is not known.
        revision: Revision,
    },
    /// A part was seen, new or changed.
    Seen(Box<Part>),
    /// A part was deleted, or has lost its label.
    Gone {
        /// Where it was.
        key: PartKey,
        /// Its UID.
        uid: Uid,
    },
    /// A kind that is watched is not available. It may be listed later.
    KindMissing {
        /// The kind.
        kind: PartKind,
        /// Why not.
        why: WhyMissing,
    },
    /// A live read was answered: the part as it is now, if there is one. Absent only where the API said NotFound: a read
    /// that fails in any other way is retried until it can be answered.
    Read {
        /// Where it was read.
        key: PartKey,
        /// The part, if there is one.
        found: Option<Box<Part>>,
    },
}

/// One thing that happened to what is published for claims, or to what it is published from.
#[derive(Clone, Debug)]
pub enum PublishEvent {
    /// Everything of a kind that is published for claims, but Secrets, which are never listed.
    Listed {
        /// The kind.
        slot: Slot,
        /// All of them.
        published: Vec<PublishedView>,
        /// The list's own revision.
        revision: Revision,
    },
    /// A kind that is published may not be listed. It may be listed later.
    Refused(Slot),
    /// The Secret that is published for a claim under this name, if there is one; one of another claim, or of none, does
    /// not count. Absent only where the API said so.
    SecretRead {
        /// The claim.
        claim: Uid,
        /// Where it was read.
        key: ObjectKey,
        /// The Secret, if there is one.
        found: Option<PublishedView>,
    },
    /// Such a Secret may not be read. It may be read later.
    SecretRefused {
        /// The claim.
        claim: Uid,
        /// Where it is.
        key: ObjectKey,
    },
    /// No watch reports when another client changes a published Secret: a share of them, the claims `turn` of `of`, must be
    /// read again. The shares come in turn, so that each is read once in every round.
    Recheck {
        /// Which share.
        turn: u32,
        /// How many shares there are.
        of: u32,
    },
    /// Something published is new or has changed.
    Seen(PublishedView),
    /// Something published was deleted, or has lost its label.
    Gone(PublishedView),
    /// Every Secret in the system namespace.
    SourcesListed(Vec<SourceView>),
    /// A Secret in the system namespace is new or has changed.
    SourceSeen(SourceView),
    /// A Secret in the system namespace was deleted.
    SourceGone(SourceView),
}

/// A deleted object.
#[derive(Clone, Debug)]
pub struct Gone {
    /// Its kind.
    pub kind: Kind,
    /// Where it was.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// The revision of the deletion, where the API has one. The engine does not need it; a recording does.
    pub revision: Revision,
}

/// How the API answered a write.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Done; this is the object now. It may be shared: it is not changed any more.
    Written(Arc<Object>),
    /// Done; this is the part now.
    PartWritten(Box<Part>),
    /// Done; this is published now.
    Published(Vec<PublishedView>),
    /// Not done: the connection lacks this.
    Incomplete(String),
    /// Not done: an object of that name exists and is not ours.
    Taken(String),
    /// Done; the object was deleted.
    Deleted,
    /// Refused: the object has changed since, or is another one of that name.
    Conflict,
    /// Refused: there is no such object.
    Missing,
    /// Refused: there is an object of that name already.
    Exists,
    /// Refused for good: the API does not accept the content.
    Invalid(String),
    /// It is not known whether it was done: a timeout, a lost connection, a server error.
    Unknown(String),
}
