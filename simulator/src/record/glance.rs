//! A line read only as far as it must be: most changes are reports of what the engine itself wrote, and to tell one
//! takes the names of its fields. What cannot be told at a glance is read whole; nothing is refused here.

use super::line::{Change, Line};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A line, as far as it was read.
#[derive(Debug)]
pub enum Glance {
    /// A change of nothing but what the engine writes.
    Report(Report),
    /// Any other line, whole.
    Line(Line),
}

/// A patch of what the engine writes: whether it holds a wish all the same depends on the object.
#[derive(Clone, Debug)]
pub struct Report {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// The kind.
    pub kind: String,
    /// Where it is; empty where it lives in no namespace.
    pub ns: String,
    /// Its name.
    pub name: String,
    /// Which life of that name.
    pub uid: String,
    /// The revision that it leads to, where it says so.
    pub revision: Option<u64>,
    /// The merge patch, as it stands in the file.
    pub patch: Box<str>,
    /// Whether the status names a resource, which a name in the spec is held against.
    pub names_resource: bool,
    /// Whether the references of a resource are written, every one of them a holder's.
    pub names_holders: bool,
    /// What else is written where the references are; nothing where that is the status too.
    pub(super) beside: Option<Beside>,
}

/// What a patch of a resource's references writes beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    revision: bool,
    generation: bool,
}

impl Beside {
    /// Whether nothing is left of another such patch after this one.
    pub fn replaces(self, other: Beside) -> bool {
        self.revision && (self.generation || !other.generation)
    }
}

impl Glance {
    /// When it happened, where that is said.
    pub fn at(&self) -> Option<u64> {
        match self {
            Glance::Report(report) => Some(report.at),
            Glance::Line(line) => line.at(),
        }
    }
}

impl Report {
    /// The whole change.
    ///
    /// # Errors
    /// The patch cannot be read.
    pub fn into_change(self) -> Result<Change, String> {
        let Report { at, kind, ns, name, uid, patch, .. } = self;
        let patch = serde_json::from_str(&patch).map_err(|error| format!("unreadable: {error}"))?;
        Ok(Change { at, kind, ns, name, uid, new: None, patch: Some(patch), gone: false, rev: None })
    }
}

/// The report in a line; nothing where it is not certainly one, or cannot be read.
pub(super) fn report(line: &[u8]) -> Option<Report> {
    if !line.starts_with(br#"{"t":"ev","#) {
        return None;
    }
    let line = std::str::from_utf8(line).ok()?;
    if let Some((sketch, patch)) = usual(line)
        && let Ok(read) = serde_json::from_str(patch)
    {
        return Some(sketch.report(read, patch));
    }
    let sketch: Sketch<'_> = serde_json::from_str(line).ok()?;
    let (None, Some(patch), false) = (sketch.new, sketch.patch, sketch.gone) else { return None };
    Some(sketch.report(serde_json::from_str(patch.get()).ok()?, patch.get()))
}

/// A line as our own writer puts it, with its patch: no field missing, none more, in this order, and nothing in its names
/// that JSON writes otherwise. Whether the patch is one is still to be told.
fn usual(line: &str) -> Option<(Sketch<'_>, &str)> {
    let line = line.strip_prefix(r#"{"t":"ev","at":"#)?;
    let (at, line) = line.split_once(r#","kind":""#)?;
    let (kind, line) = name(line)?;
    let (ns, line) = name(line.strip_prefix(r#","ns":""#)?)?;
    let (named, line) = name(line.strip_prefix(r#","name":""#)?)?;
    let (uid, line) = name(line.strip_prefix(r#","uid":""#)?)?;
    let patch = line.strip_prefix(r#","patch":"#)?.strip_suffix("}\n")?;
    let is_number = at.bytes().all(|b| b.is_ascii_digit()) && (at == "0" || !at.starts_with('0'));
    let at = at.parse().ok().filter(|_| is_number)?;
    let [kind, ns, name, uid] = [kind, ns, named, uid].map(Cow::Borrowed);
    let sketch = Sketch { _t: IgnoredAny, at, kind, ns, name, uid, new: None, patch: None, gone: false };
    Some((sketch, patch))
}

/// The text up to a quote, and what follows it.
fn name(line: &str) -> Option<(&str, &str)> {
    let (name, line) = line.split_once('"')?;
    let is_plain = name.bytes().all(|byte| byte >= b' ' && byte != b'\\');
    is_plain.then_some((name, line))
}

impl Sketch<'_> {
    fn report(self, Patch { metadata, status, spec }: Patch<'_>, patch: &str) -> Report {
        let Sketch { at, kind, ns, name, uid, .. } = self;
        let revision = metadata.as_ref().and_then(|metadata| metadata.resource_version);
        let beside = (spec.is_some() && status.is_none()).then(|| Beside {
            revision: revision.is_some(),
            generation: metadata.as_ref().is_some_and(|metadata| metadata.generation.is_some()),
        });
        Report {
            at,
            kind: kind.into_owned(),
            ns: ns.into_owned(),
            name: name.into_owned(),
            uid: uid.into_owned(),
            revision: revision.and_then(|revision| revision.parse().ok()),
            patch: patch.into(),
            names_resource: status.is_some_and(|Status { names_resource }| names_resource),
            names_holders: spec.is_some(),
            beside,
        }
    }
}

/// A change without a look into its objects. The same fields are required as of the whole line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sketch<'a> {
    #[serde(rename = "t")]
    _t: IgnoredAny,
    at: u64,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    ns: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(default)]
    new: Option<IgnoredAny>,
    #[serde(borrow, default)]
    patch: Option<&'a RawValue>,
    #[serde(default)]
    gone: bool,
}

/// A patch of these fields and no other is the engine's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<Metadata<'a>>,
    #[serde(default, deserialize_with = "present")]
    status: Option<Status>,
    #[serde(default, deserialize_with = "present")]
    spec: Option<Holders>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata<'a> {
    #[serde(borrow, default, rename = "resourceVersion")]
    resource_version: Option<&'a str>,
    #[serde(default, deserialize_with = "present")]
    generation: Option<IgnoredAny>,
}

/// A field that is null is not one that is absent: it takes something away.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

struct Status {
    names_resource: bool,
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Status, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Status;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Status, A::Error> {
                let mut status = Status { names_resource: false };
                while let Some((field, IgnoredAny)) = map.next_entry::<StatusField, IgnoredAny>()? {
                    status.names_resource |= matches!(field, StatusField::ResourceRef);
                }
                Ok(status)
            }
        }
        from.deserialize_map(Fields)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum StatusField {
    #[serde(rename = "resourceRef")]
    ResourceRef,
    #[serde(other)]
    Other,
}

/// A spec of which nothing is written but references to claims that hold the resource.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Holders {
    #[serde(rename = "claimRefs")]
    _claim_refs: HeldRefs,
}

struct HeldRefs;

impl<'de> Deserialize<'de> for HeldRefs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HeldRefs, D::Error> {
        struct Refs;
        impl<'de> Visitor<'de> for Refs {
            type Value = HeldRefs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("references of holders")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut refs: A) -> Result<HeldRefs, A::Error> {
                while let Some(HeldRef { uid, .. }) = refs.next_element::<HeldRef<'de>>()? {
                    if uid.is_empty() {
                        return Err(serde::de::Error::custom("a reservation"));
                    }
                }
                Ok(HeldRefs)
            }
        }
        from.deserialize_seq(Refs)
    }
}

/// `reserved` is not among the fields: such a reference keeps an administrator's wish.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldRef<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(rename = "namespace", default)]
    _namespace: IgnoredAny,
    #[serde(rename = "name", default)]
    _name: IgnoredAny,
    #[serde(rename = "requests", default)]
    _requests: IgnoredAny,
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = r#"{"t":"ev","at":7,"kind":"K","ns":"a","name":"b","uid":"u","patch":{"metadata":{"resourceVersion":"9"},"status":{"phase":"Bound"}}}"#;

    fn told(line: &str) -> Option<String> {
        report(format!("{line}\n").as_bytes()).map(|report| format!("{report:?}"))
    }

    #[test]
    fn a_line_is_read_alike_however_it_is_written() {
        let usual = told(USUAL).expect("a report");
        assert!(usual.contains("revision: Some(9)"), "{usual}");
        let spaced = USUAL.replace(r#""at":7"#, r#""at": 7"#);
        let turned = USUAL.replace(r#""ns":"a","name":"b""#, r#""name":"b","ns":"a""#);
        let escaped = USUAL.replace(r#""name":"b""#, r#""name":"\u0062""#);
        for other in [spaced, turned, escaped] {
            assert_eq!(told(&other), Some(usual.clone()), "{other}");
        }
    }

    #[test]
    fn what_is_not_certainly_a_report_is_none() {
        let with = |old: &str, new: &str| USUAL.replace(old, new);
        let others = [
            with(r#"}}}"#, r#"}},"gone":true}"#),
            with(r#"}}}"#, r#"}},"more":1}"#),
            with(r#"}}}"#, r#"}}"#),
            with(r#""at":7"#, r#""at":07"#),
            with(r#""at":7"#, r#""at":+7"#),
            with(r#""status""#, r#""spec""#),
            with(r#""name":"b""#, "\"name\":\"b\u{1}\""),
        ];
        for line in others {
            assert_eq!(told(&line), None, "{line}");
        }
    }
}
