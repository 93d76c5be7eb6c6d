//! The lines of a recording, as they stand in the file. `zstd -dc x.rec | jq` reads them as well as we do.
//! What they mean together is the reader's and the recorder's.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum Line {
    /// Always the first.
    Header(Box<Header>),
    /// An object as it was when the recording, or this part of it, began.
    Obj {
        /// The object.
        o: Value,
    },
    /// Something changed.
    Ev(Change),
    /// A watch was lost: what happened meanwhile is known only by its result, in the lines that follow.
    Gap {
        /// Milliseconds since the recording began.
        at: u64,
        /// The kind that was watched.
        kind: String,
        /// Why, where it is known.
        why: String,
        /// Whether it is lost still: what happens is missing until the next gap of the kind, or to the end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// The live engine decided.
    Dec(Decision),
    /// A resource was made, or could not be.
    Ext(Outcome),
    /// Always the last; a file without it was interrupted.
    End(End),
}

/// What the file is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program that recorded.
    pub recorder: String,
    /// When the recording began, in milliseconds since the Unix epoch.
    pub began: i64,
    /// Where resources and classes live.
    pub system_namespace: String,
    /// The kinds that were got, with the revision of their list.
    pub kinds: BTreeMap<String, String>,
    /// The kinds that could not be had, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// How objects were made safe to give away.
    pub redaction: String,
    /// 1 for the first file; each further one begins anew with all objects.
    pub part: u32,
    /// When this part began, in milliseconds since the recording did.
    #[serde(default)]
    pub from: u64,
}

/// A change of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// The kind.
    pub kind: String,
    /// Where it is; empty where it lives in no namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ns: String,
    /// Its name.
    pub name: String,
    /// Which life of that name.
    pub uid: String,
    /// A new object, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// What changed, as a merge patch (RFC 7396).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// It is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The revision with which it went; absent where it is not known, and where the object has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<u64>,
}

/// What the live engine decided, read off what it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// The claim's kind.
    pub kind: String,
    /// The claim's namespace.
    pub ns: String,
    /// The claim's name.
    pub name: String,
    /// The claim's UID.
    pub uid: String,
    /// What was decided.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What was decided about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict")]
pub enum Verdict {
    /// It was given this resource: its `claimRefs` name the claim.
    Bind {
        /// The resource's name.
        resource: String,
    },
    /// A resource was made for it.
    Provision {
        /// From this class.
        class: String,
    },
    /// It was told to wait.
    Refuse {
        /// The word of its condition.
        reason: String,
    },
    /// It was told that its resource is gone for good.
    Lost {
        /// The word of its condition.
        reason: String,
    },
}

/// How the making of a resource ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// The resource's kind.
    pub kind: String,
    /// The resource's name.
    pub resource: String,
    /// The resource's UID.
    pub uid: String,
    /// The phase that it reached: Available or Failed.
    pub phase: String,
    /// How long it took since the resource was there, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// The end of a recording that was not interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// How many lines of each kind came before.
    pub counts: BTreeMap<String, u64>,
    /// SHA-256 over every line before this one, newlines included.
    pub sha256: String,
}

impl Line {
    /// The word that stands in `t`.
    pub fn word(&self) -> &'static str {
        match self {
            Line::Header(_) => "header",
            Line::Obj { .. } => "obj",
            Line::Ev(_) => "ev",
            Line::Gap { .. } => "gap",
            Line::Dec(_) => "dec",
            Line::Ext(_) => "ext",
            Line::End(_) => "end",
        }
    }

    /// When it happened, where that is said.
    pub fn at(&self) -> Option<u64> {
        match self {
            Line::Header(header) => Some(header.from),
            Line::Obj { .. } => None,
            Line::Ev(change) => Some(change.at),
            Line::Gap { at, .. } => Some(*at),
            Line::Dec(decision) => Some(decision.at),
            Line::Ext(outcome) => Some(outcome.at),
            Line::End(end) => Some(end.at),
        }
    }
}
