//! Audits a recording before it is shared: reports unexpected fields and texts that look like secrets, by place and rule,
//! never the text itself.

use super::line::{Change, Line};
use super::reader::{MAGIC, ReadError, Reader, is_stdin};
use super::redact::{STAND_INS, is_stub_spec};
use crate::plan::API_VERSION;
use serde::Serialize;
use serde_json::Value;
use std::io::{Cursor, Read};
use std::path::Path;

/// The result of an audit.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The redaction in the recording's header.
    pub redaction: String,
    /// Whether the recording ends without its end line.
    pub interrupted: bool,
    /// Number of lines checked.
    pub lines: u64,
    /// Number of texts checked.
    pub texts: u64,
    /// What should not be in it.
    pub findings: Vec<Finding>,
}

/// Something that should not be in a recording.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub line: u64,
    /// The path within the line.
    pub field: String,
    /// Why it should not be there.
    pub rule: &'static str,
}

/// Maximum number of findings reported.
const FINDINGS_MAX: usize = 1_000;

/// Checks every text of a recording. `canaries`: texts that must not be in it.
///
/// # Errors
/// It cannot be read.
pub fn audit(path: &Path, canaries: &[String]) -> Result<Audit, ReadError> {
    let bytes = read_whole(path)?;
    require_plain_frames(path, &bytes)?;
    let mut reader = Reader::over(path, Cursor::new(bytes))?;
    let redaction = reader.header().redaction.clone();
    let stand_ins = redaction == STAND_INS;
    let home = reader.header().system_namespace.clone();
    let mut scan = Scan { canaries, line: 1, texts: 0, findings: Vec::new() };
    if !redaction.starts_with("allow-list") {
        scan.find("redaction", "the header names no redaction");
    }
    scan.whole(reader.text());
    while let Some(line) = reader.next_line()? {
        scan.line = reader.count();
        match &line {
            Line::Obj { o } | Line::Ev(Change { new: Some(o), .. }) => {
                scan.object(o);
                if stand_ins {
                    scan.name(o, &home);
                }
            }
            // A change is shared just like the initial objects.
            Line::Ev(Change { patch: Some(patch), .. }) => scan.object(patch),
            Line::Header(_) | Line::Ev(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) | Line::End(_) => {
            }
        }
        scan.whole(reader.text());
    }
    let Scan { texts, findings, .. } = scan;
    let (lines, interrupted) = (reader.count(), reader.was_interrupted());
    Ok(Audit { api_version: API_VERSION, kind: "Audit", redaction, interrupted, lines, texts, findings })
}

fn read_whole(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = match is_stdin(path) {
        true => std::io::stdin().read_to_end(&mut bytes).map(|_| bytes),
        false => std::fs::read(path),
    };
    read.map_err(|error| ReadError::Unreadable(path.display().to_string(), error))
}

/// Refuses frames that zstd skips: they could hold anything, and no reader would show it.
fn require_plain_frames(path: &Path, bytes: &[u8]) -> Result<(), ReadError> {
    let mut rest = bytes;
    if !rest.starts_with(&MAGIC) {
        return Ok(());
    }
    while let Ok(length) = zstd::zstd_safe::find_frame_compressed_size(rest) {
        if !rest.starts_with(&MAGIC) {
            let (file, why) = (path.display().to_string(), "a frame that readers skip".to_owned());
            return Err(ReadError::Damaged { file, line: 1, why });
        }
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    Ok(())
}

struct Scan<'a> {
    canaries: &'a [String],
    line: u64,
    texts: u64,
    findings: Vec<Finding>,
}

impl Scan<'_> {
    fn find(&mut self, field: &str, rule: &'static str) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                line: self.line,
                field: field.trim_start_matches('.').to_owned(),
                rule,
            });
        }
    }

    /// Finds fields that our recorder never writes, in an object or a patch.
    fn object(&mut self, object: &Value) {
        if object["kind"] == "Secret" || object["kind"] == "ConfigMap" {
            self.find("o.kind", "an object of a kind that is never recorded");
        }
        for (pointer, rule) in [
            ("/metadata/managedFields", "managed fields"),
            (
                "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
                "the last applied manifest",
            ),
            ("/data", "data"),
            ("/stringData", "data"),
            ("/spec/connection", "a connection"),
            ("/connection", "a connection"),
            ("/spec/parameters", "parameters"),
            ("/parameters", "parameters"),
            ("/spec/inputs", "inputs of a template"),
            ("/spec/template/spec", "a template's content"),
            ("/spec/templates", "a template's content"),
            ("/templates", "a template's content"),
        ] {
            // Null in a patch removes the field.
            if object.pointer(pointer).is_some_and(|value| !value.is_null()) {
                self.find(pointer, rule);
            }
        }
        let content = object.pointer("/template/spec").filter(|spec| !spec.is_null());
        if content.is_some_and(|spec| !is_stub_spec(spec)) {
            self.find("/template/spec", "a template's content");
        }
    }

    /// Finds names that are not stand-ins. The system namespace and the default profile keep theirs, which reveal nothing.
    fn name(&mut self, object: &Value, home: &str) {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let stands_in =
            name.rsplit_once('-').is_some_and(|(_, d)| d.len() == 8 && is_hex(d)) || is_uid_name(name);
        let stays = match object["kind"].as_str() {
            Some("Namespace") => name == home,
            Some("SchedulingProfile") => name == conductor::api::names::DEFAULT_PROFILE,
            _ => false,
        };
        if !stands_in && !stays {
            self.find("metadata.name", "a name that is not a stand-in");
        }
    }

    /// Scans a line as it is in the file, unknown fields included.
    fn whole(&mut self, text: &[u8]) {
        let before = self.findings.len();
        let value: Value = serde_json::from_slice(text).unwrap_or_default();
        self.value(&value, &mut String::new());
        let holds = |canary: &&String| {
            !canary.is_empty() && text.windows(canary.len()).any(|window| window == canary.as_bytes())
        };
        if self.findings.len() == before && self.canaries.iter().any(|canary| holds(&canary)) {
            self.find("line", "a canary text");
        }
    }

    fn value(&mut self, value: &Value, way: &mut String) {
        let length = way.len();
        match value {
            Value::String(text) => self.text(text, way),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    way.push_str(&format!("[{at}]"));
                    self.value(item, way);
                    way.truncate(length);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    way.push('.');
                    way.push_str(key);
                    self.text(key, &way.clone());
                    self.value(item, way);
                    way.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, way: &str) {
        self.texts += 1;
        if let Some(rule) = suspicion(text) {
            self.find(way, rule);
        }
        if self.canaries.iter().any(|canary| !canary.is_empty() && text.contains(canary.as_str())) {
            self.find(way, "a canary text");
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_uid_name(name: &str) -> bool {
    name.split_once('-').is_some_and(|(_, uid)| uid.len() == 36 && uid.matches('-').count() == 4)
}

/// Why a text looks like a secret; `None` if it does not.
fn suspicion(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if text.contains("-----BEGIN ") {
        return Some("a PEM block");
    }
    if text.starts_with("eyJ") && text.matches('.').count() == 2 {
        return Some("a token");
    }
    if let Some((_, rest)) = text.split_once("://")
        && rest.split('/').next().is_some_and(|host| host.contains(':') && host.contains('@'))
    {
        return Some("a URI with a password");
    }
    if ["password=", "passwd=", "pwd=", "secret=", "token="].iter().any(|key| lower.contains(key)) {
        return Some("a password");
    }
    let is_key = |prefix: &str, length: usize| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= length && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    if is_key("AKIA", 16) || is_key("ghp_", 30) || is_key("xoxb", 10) {
        return Some("an access key");
    }
    (entropy(text) > 4.2 && text.len() >= 24).then_some("a text as random as a key")
}

/// Bits per character. Plain text and UIDs stay below four; base64 keys are above.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = text.len() as f64;
    counts.iter().filter(|n| **n > 0).map(|n| f64::from(*n) / all).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_suspected_and_names_are_not() {
        for text in [
            "postgres://app:hunter2@db/x",
            "password=hunter2",
            "-----BEGIN PRIVATE KEY-----",
            "eyJhbGciOi.eyJzdWIi.sig",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ] {
            assert!(suspicion(text).is_some(), "{text}");
        }
        for text in [
            "team-a/orders",
            "4f0d6c1e-0000-4000-8000-000000000001",
            "rdb-7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "storage.conductor.io/v1alpha1",
            "conductor.io/resource-protection",
            "2026-11-17T00:52:00.000000Z",
            ">= 15, < 17 || 9.6",
        ] {
            assert_eq!(suspicion(text), None, "{text}");
        }
    }
}
