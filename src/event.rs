//! Everything that can happen to the engine, as one closed enum. Nothing here says what to do about it.

use crate::model::{Kind, Object, ObjectKey, Revision, Uid, WriteId};

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
    /// Time has passed.
    Tick,
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
}

/// How the API answered a write.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Done; this is the object now.
    Written(Box<Object>),
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
