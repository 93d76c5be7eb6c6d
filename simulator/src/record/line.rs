//! The lines of a recording, a stable format that `zstd -dc x.rec | jq` reads too.

#![allow(missing_docs, reason = "the fields are named as in the printed document")]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The format that is written, and the newest that can be read.
pub const FORMAT: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// An object as it was when this file began.
    Obj { o: Value },
    /// A change of an object.
    Ev(Change),
    /// A watch was lost: events are missing, and the following lines show only their result.
    Gap {
        at: u64,
        /// The kind that was watched.
        kind: String,
        /// Why, if known.
        why: String,
        /// Whether it is still lost: events are missing until the next gap of the kind, or to the end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// A decision of the live engine.
    Dec(Decision),
    /// The end of a resource's provisioning.
    Ext(Outcome),
    /// The last line; a file without it was interrupted.
    End(End),
}

/// What the file contains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The format, see [`FORMAT`].
    pub format: u32,
    /// Version of the recording program.
    pub recorder: String,
    /// Start of the recording, in milliseconds since the Unix epoch.
    pub began: i64,
    /// Namespace of resources and classes.
    pub system_namespace: String,
    /// Recorded kinds with the resource version of their list.
    pub kinds: BTreeMap<String, String>,
    /// Kinds that could not be recorded, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// How objects were redacted.
    pub redaction: String,
    /// 1 for the first file; each further one starts again with all objects.
    pub part: u32,
    /// Start of this file, in milliseconds since the recording began.
    #[serde(default)]
    pub from: u64,
}

impl Header {
    /// Whether another version of Conductor wrote the recording, whose decisions may differ. Build metadata does not count.
    pub fn is_of_another_version(&self) -> bool {
        let own = semver::Version::parse(env!("CARGO_PKG_VERSION"));
        let recorder = semver::Version::parse(&self.recorder);
        !matches!((own, recorder), (Ok(own), Ok(recorder)) if own.cmp_precedence(&recorder).is_eq())
    }
}

/// A change of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub at: u64,
    pub kind: String,
    /// The object's namespace; empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ns: String,
    pub name: String,
    pub uid: String,
    /// The whole object, if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// What changed, as a merge patch (RFC 7396).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// Whether the object was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The resource version of the deletion, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<u64>,
}

/// A decision of the live engine, derived from its writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub at: u64,
    pub kind: String,
    pub ns: String,
    pub name: String,
    pub uid: String,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A decision about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict")]
pub enum Verdict {
    /// A resource's `claimRefs` name the claim.
    Bind { resource: String },
    /// A resource was provisioned for the claim.
    Provision {
        /// The class that provisioned it.
        class: String,
    },
    /// The claim stays pending.
    Refuse {
        /// The reason of its condition.
        reason: String,
    },
    /// The claim's resource was deleted.
    Lost {
        /// The reason of its condition.
        reason: String,
    },
}

/// How a resource's provisioning ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub at: u64,
    pub kind: String,
    pub resource: String,
    pub uid: String,
    /// Available or Failed.
    pub phase: String,
    /// Milliseconds since the resource was created, if that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// The end of a complete recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: u64,
    /// Number of lines by type.
    pub counts: BTreeMap<String, u64>,
    /// SHA-256 over all lines before this one, newlines included.
    pub sha256: String,
}

impl Verdict {
    /// The name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Bind { .. } => "Bind",
            Verdict::Provision { .. } => "Provision",
            Verdict::Refuse { .. } => "Refuse",
            Verdict::Lost { .. } => "Lost",
        }
    }
}

impl Line {
    /// The value of `t`.
    pub fn tag(&self) -> &'static str {
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

    /// Its time, if it has one.
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

#[cfg(test)]
mod tests {
    use super::Header;

    #[test]
    fn a_recording_is_of_another_version_unless_the_release_is_the_same() {
        let own = env!("CARGO_PKG_VERSION");
        let cases = [(own.to_owned(), false), (format!("{own}+ci.7"), false), (format!("{own}-rc.1"), true)];
        for (recorder, differs) in
            cases.into_iter().chain([("99.0.0".to_owned(), true), (String::new(), true)])
        {
            let header = Header { recorder: recorder.clone(), ..Header::default() };
            assert_eq!(header.is_of_another_version(), differs, "{recorder:?}");
        }
    }
}
