//! Everything that can happen to the engine, as one closed enum. Nothing here says what to do about it.

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
    /// An object is gone.
    Gone(Gone),
    /// All objects of a kind, as of a revision: what is not among them is gone.
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
        /// Which one.
        id: WriteId,
        /// How.
        answer: Answer,
    },
    /// A live read was answered: the object as it is now, if there is one.
    Read {
        /// What was read.
        kind: Kind,
        /// Where.
        key: ObjectKey,
        /// What was found.
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
    /// All labelled parts of a kind that is followed: what is not among them is gone, or has lost its label.
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
    /// A part is gone, or has lost its label.
    Gone {
        /// Where it was.
        key: PartKey,
        /// Which life of that name.
        uid: Uid,
    },
    /// A kind that is followed cannot be had. It may be listed later.
    KindMissing {
        /// The kind.
        kind: PartKind,
        /// Why not.
        why: WhyMissing,
    },
    /// A live read was answered: the part as it is now, if there is one. Said only on the API's word that
    /// there is none: a read that fails in any other way is tried again until it can be answered.
    Read {
        /// Where.
        key: PartKey,
        /// What was found.
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
    /// What is under the name of a Secret that may be published for a claim now; one of another claim, or of nobody, is
    /// none. Said only on the API's word.
    SecretRead {
        /// The claim.
        claim: Uid,
        /// Where.
        key: ObjectKey,
        /// What was found.
        found: Option<PublishedView>,
    },
    /// Such a Secret may not be read. It may be read later.
    SecretRefused {
        /// The claim.
        claim: Uid,
        /// Where.
        key: ObjectKey,
    },
    /// Nobody tells when somebody else changes a published Secret: a share of them, the claims `turn` of `of`, is to be
    /// read anew. Said in turn, so that each is read once in every round.
    Recheck {
        /// Which share.
        turn: u32,
        /// How many shares there are.
        of: u32,
    },
    /// Something published is new or has changed.
    Seen(PublishedView),
    /// Something published is gone, or has lost its label.
    Gone(PublishedView),
    /// Every Secret in the system namespace.
    SourcesListed(Vec<SourceView>),
    /// A Secret in the system namespace is new or has changed.
    SourceSeen(SourceView),
    /// A Secret in the system namespace is gone.
    SourceGone(SourceView),
}

/// Which object is gone.
#[derive(Clone, Debug)]
pub struct Gone {
    /// Its kind.
    pub kind: Kind,
    /// Where it was.
    pub key: ObjectKey,
    /// Which life of that name ended.
    pub uid: Uid,
    /// The revision with which it went, where the API says so. The engine does not need it; a recording does.
    pub revision: Revision,
}

/// How the API answered a write.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Done; this is the object now. Whoever keeps it may share it: nobody else changes it.
    Written(Arc<Object>),
    /// Done; this is the part now.
    PartWritten(Box<Part>),
    /// Done; this is published now.
    Published(Vec<PublishedView>),
    /// Not done: this is missing of the connection.
    Incomplete(String),
    /// Not done: an object of that name is there and is not ours.
    Taken(String),
    /// Done; the object is gone.
    Deleted,
    /// Refused: the object has changed since, or is another one of that name.
    Conflict,
    /// Refused: there is no such object.
    Missing,
    /// Refused: there is an object of that name already.
    Exists,
    /// Refused for good: the API does not accept the content.
    Invalid(String),
    /// Nobody knows whether it was done: a timeout, a lost connection, a server error.
    Unknown(String),
}
