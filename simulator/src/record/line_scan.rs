//! Reads a line only as far as needed: most changes are patches of fields that only the engine writes, and the names of
//! the fields suffice to recognise one. All other lines are parsed whole.

use super::line::{Change, Line};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line as far as it was parsed.
#[derive(Debug)]
pub(crate) enum ScannedLine {
    /// A patch of fields that only the engine writes.
    EnginePatch(EnginePatch),
    /// Any other line, parsed.
    Line(Line),
}

/// A patch of fields that the engine writes. Whether it also changes a user's field depends on the object.
#[derive(Clone, Debug)]
pub(crate) struct EnginePatch {
    pub at: u64,
    pub kind: String,
    pub ns: String,
    pub name: String,
    pub uid: String,
    /// The resource version that it leads to, if stated.
    pub revision: Option<u64>,
    /// The merge patch as text.
    pub patch: Box<str>,
    /// Whether it writes the resource in a claim's status, against which the name in the spec is compared.
    pub names_resource: bool,
    /// Whether it writes a resource's references, all of them with a UID.
    pub names_holders: bool,
    /// What else it writes beside references; `None` if that includes the status.
    pub(super) beside: Option<Beside>,
}

/// What a patch of references writes beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    revision: bool,
    generation: bool,
}

impl Beside {
    /// Whether this patch overwrites all of another such patch.
    pub fn replaces(self, other: Beside) -> bool {
        self.revision && (self.generation || !other.generation)
    }
}

impl ScannedLine {
    /// Its time, if it has one.
    pub fn at(&self) -> Option<u64> {
        match self {
            ScannedLine::EnginePatch(report) => Some(report.at),
            ScannedLine::Line(line) => line.at(),
        }
    }
}

impl EnginePatch {
    /// Parses the whole change.
    pub fn into_change(self) -> Result<Change, String> {
        let EnginePatch { at, kind, ns, name, uid, patch, .. } = self;
        let patch = serde_json::from_str(&patch).map_err(|error| format!("unreadable: {error}"))?;
        Ok(Change { at, kind, ns, name, uid, new: None, patch: Some(patch), gone: false, rev: None })
    }
}

/// Recognises an engine patch; `None` if in doubt.
pub(super) fn report(line: &[u8]) -> Option<EnginePatch> {
    if !line.starts_with(br#"{"t":"ev","#) {
        return None;
    }
    let line = std::str::from_utf8(line).ok()?;
    if let Some((sketch, patch)) = usual(line)
        && let Ok(read) = serde_json::from_str(patch)
    {
        return sketch.report(read, patch);
    }
    let sketch: Sketch<'_> = serde_json::from_str(line).ok()?;
    let (None, Some(patch), false) = (sketch.new, sketch.patch, sketch.gone) else { return None };
    sketch.report(serde_json::from_str(patch.get()).ok()?, patch.get())
}

/// Splits a line in exactly the form that our writer uses, with plain names, into its fields and the patch. The caller
/// checks the patch.
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

/// The text up to a quote, and the rest.
fn name(line: &str) -> Option<(&str, &str)> {
    let (name, line) = line.split_once('"')?;
    let is_plain = name.bytes().all(|byte| byte >= b' ' && byte != b'\\');
    is_plain.then_some((name, line))
}

impl Sketch<'_> {
    /// Returns `None` if a reference is a reservation, which has no UID.
    fn report(self, Patch { metadata, status, spec }: Patch<'_>, patch: &str) -> Option<EnginePatch> {
        if spec.as_ref().is_some_and(|spec| spec.claim_refs.iter().any(|held| held.uid.is_empty())) {
            return None;
        }
        let Sketch { at, kind, ns, name, uid, .. } = self;
        let revision = metadata.as_ref().and_then(|metadata| metadata.resource_version);
        let beside = (spec.is_some() && status.is_none()).then(|| Beside {
            revision: revision.is_some(),
            generation: metadata.as_ref().is_some_and(|metadata| metadata.generation.is_some()),
        });
        Some(EnginePatch {
            at,
            kind: kind.into_owned(),
            ns: ns.into_owned(),
            name: name.into_owned(),
            uid: uid.into_owned(),
            revision: revision.and_then(|revision| revision.parse().ok()),
            patch: patch.into(),
            names_resource: status.is_some_and(|status| status.resource_ref.is_some()),
            names_holders: spec.is_some(),
            beside,
        })
    }
}

/// A change with its objects unparsed. Requires the same fields as the full line.
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

/// A patch with these fields and no other is the engine's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<Metadata<'a>>,
    #[serde(default, deserialize_with = "present")]
    status: Option<Status>,
    #[serde(borrow, default, deserialize_with = "present")]
    spec: Option<Holders<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata<'a> {
    #[serde(borrow, default, rename = "resourceVersion")]
    resource_version: Option<&'a str>,
    #[serde(default, deserialize_with = "present")]
    generation: Option<IgnoredAny>,
}

/// Distinguishes null, which removes a field, from a missing field.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct Status {
    /// Present even if null.
    #[serde(default, rename = "resourceRef", deserialize_with = "present")]
    resource_ref: Option<IgnoredAny>,
}

/// A spec that holds only references.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Holders<'a> {
    #[serde(borrow, rename = "claimRefs")]
    claim_refs: Vec<HeldRef<'a>>,
}

/// Has no field `reserved`: a reference with one preserves an administrator's reservation.
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

    fn scanned(line: &str) -> Option<String> {
        report(format!("{line}\n").as_bytes()).map(|report| format!("{report:?}"))
    }

    #[test]
    fn a_line_is_read_alike_however_it_is_written() {
        let usual = scanned(USUAL).expect("an engine patch");
        assert!(usual.contains("revision: Some(9)"), "{usual}");
        let spaced = USUAL.replace(r#""at":7"#, r#""at": 7"#);
        let turned = USUAL.replace(r#""ns":"a","name":"b""#, r#""name":"b","ns":"a""#);
        let escaped = USUAL.replace(r#""name":"b""#, r#""name":"\u0062""#);
        for other in [spaced, turned, escaped] {
            assert_eq!(scanned(&other), Some(usual.clone()), "{other}");
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
            assert_eq!(scanned(&line), None, "{line}");
        }
    }
}
