//! Prints a result as JSON or as a table; with `--double-run`, after computing and comparing it twice.

use super::args::{Output, Page};
use super::files;
use crate::args::Format;
use crate::output;
use crate::sanitize::Sanitized;
use anyhow::Result;
use conductor_simulator::report::{Provenance, Source};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The exit code of a result that differs the second time.
const NONDETERMINISTIC: u8 = 4;

/// Prints a result and returns the exit code, which is `code` unless `--double-run` finds a difference. `again` computes
/// the result a second time, from the beginning.
pub fn print<D: Serialize>(
    how: &Output,
    code: u8,
    document: &D,
    again: impl FnOnce() -> Result<D>,
    table: impl FnOnce(&mut Sanitized<io::BufWriter<io::StdoutLock<'static>>>) -> io::Result<()>,
) -> Result<u8> {
    let is_same = !how.double_run || is_same(document, &again()?)?;
    let code = if is_same { code } else { NONDETERMINISTIC };
    let printed = match how.format {
        Format::Json => {
            let mut out = output::stdout();
            output::json(&mut out, document).and_then(|()| Ok(out.flush()?))
        }
        Format::Table => {
            let mut out = output::tables();
            table(&mut out).and_then(|()| out.flush()).map_err(anyhow::Error::from)
        }
    };
    match printed {
        // The exit code has the verdict, even if the reader has closed the output.
        Err(error) if output::is_broken_pipe(&error) => Ok(code),
        printed => printed.map(|()| code),
    }
}

/// Writes the result as an HTML page if `--html` is given; `read` are its sources.
pub fn page(
    how: &Page,
    read: &[&Path],
    page: impl FnOnce(&Provenance) -> Result<String, String>,
) -> Result<()> {
    match &how.html {
        Some(path) => files::write_whole(path, &page(&provenance(read)).map_err(anyhow::Error::msg)?),
        None => Ok(()),
    }
}

/// The sources with the time of their last change: never the current time, so that the same files give the same page.
pub fn provenance(read: &[&Path]) -> Provenance {
    let source = |path: &&Path| {
        let changed = || {
            let file = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
            let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            // Whole seconds: not every file system keeps more.
            i64::try_from(since.as_secs()).ok()?.checked_mul(1_000)
        };
        match path.as_os_str() == "-" {
            true => Source { name: "standard input".to_owned(), changed: None },
            false => Source { name: path.display().to_string(), changed: changed() },
        }
    };
    Provenance { sources: read.iter().map(source).collect(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// Paths as [`page`] takes them.
pub fn paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<&'a Path> {
    paths.into_iter().map(PathBuf::as_path).collect()
}

fn is_same(first: &impl Serialize, second: &impl Serialize) -> Result<bool> {
    let (first, second) = (serde_json::to_vec(first)?, serde_json::to_vec(second)?);
    if first == second {
        return Ok(true);
    }
    let at = first.iter().zip(&second).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let (from, to) = (at.saturating_sub(40), (at + 40).min(bytes.len()));
        String::from_utf8_lossy(&bytes[from..to]).into_owned()
    };
    output::diagnostic(&format!(
        "error: the same input gave two results, which differ from byte {at} on:\n  first  ...{}...\n  second ...{}...",
        around(&first),
        around(&second)
    ));
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_results_are_detected() {
        assert!(is_same(&[1, 2], &[1, 2]).unwrap());
        assert!(!is_same(&[1, 2], &[1, 3]).unwrap());
        assert!(!is_same(&[1], &[1, 3]).unwrap());
    }
}
