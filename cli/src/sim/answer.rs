//! How an answer leaves: as JSON or as a table, and, where it is asked for, only after it was given twice alike.

use super::args::{Output, Page};
use super::files;
use crate::args::Format;
use crate::output;
use crate::plain::Plain;
use anyhow::Result;
use conductor_simulator::report::{Provenance, Source};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The exit code of an answer that was different the second time.
const UNSTEADY: u8 = 4;

/// Whether the answer was the same twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steadiness {
    /// It was, or nobody asked.
    Steady,
    /// It was not.
    Unsteady,
}

impl Steadiness {
    /// The exit code, where the answer itself gives `code`.
    pub fn exit(self, code: u8) -> Result<u8> {
        Ok(match self {
            Steadiness::Steady => code,
            Steadiness::Unsteady => UNSTEADY,
        })
    }
}

/// Prints an answer. `again` gives it a second time, from the beginning, where the caller asked for that.
pub fn print<D: Serialize>(
    how: &Output,
    document: &D,
    again: impl FnOnce() -> Result<D>,
    table: impl FnOnce(&mut Plain<io::BufWriter<io::StdoutLock<'static>>>) -> io::Result<()>,
) -> Result<Steadiness> {
    let steadiness = if how.double_run { compare(document, &again()?)? } else { Steadiness::Steady };
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
        // A reader that goes away has seen enough; the verdict is in the exit code all the same.
        Err(error) if output::is_broken_pipe(&error) => Ok(steadiness),
        printed => printed.map(|()| steadiness),
    }
}

/// Writes the answer as a page, where one was asked for, made from what was `read`.
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

/// What was read, with the time at which each file was last changed: never the clock, so that the same files give the
/// same page.
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

fn compare(first: &impl Serialize, second: &impl Serialize) -> Result<Steadiness> {
    let (first, second) = (serde_json::to_vec(first)?, serde_json::to_vec(second)?);
    if first == second {
        return Ok(Steadiness::Steady);
    }
    let at = first.iter().zip(&second).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let (from, to) = (at.saturating_sub(40), (at + 40).min(bytes.len()));
        String::from_utf8_lossy(&bytes[from..to]).into_owned()
    };
    output::complain(&format!(
        "error: the same input gave two answers, which differ from byte {at} on:\n  first  ...{}...\n  second ...{}...",
        around(&first),
        around(&second)
    ));
    Ok(Steadiness::Unsteady)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_are_noticed() {
        assert_eq!(compare(&[1, 2], &[1, 2]).unwrap(), Steadiness::Steady);
        assert_eq!(compare(&[1, 2], &[1, 3]).unwrap(), Steadiness::Unsteady);
        assert_eq!(compare(&[1, 2], &[1, 2]).unwrap().exit(1).unwrap(), 1);
        assert_eq!(compare(&[1], &[1, 3]).unwrap().exit(1).unwrap(), 4);
    }
}
