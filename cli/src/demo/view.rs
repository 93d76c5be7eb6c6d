//! The demo's output: chapters, progress line by line, and on a terminal one line at the bottom that counts settled
//! claims. Without a terminal, or with `CI=true`, it prints plain lines only.

use anyhow::Result;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Writes the demo's lines.
#[derive(Debug)]
pub struct View {
    is_live: bool,
    bottom: Mutex<String>,
}

impl View {
    /// A live view on a terminal, a plain one elsewhere.
    pub fn new() -> View {
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        View { is_live: io::stdout().is_terminal() && !is_ci, bottom: Mutex::default() }
    }

    /// Prints the title of a chapter.
    pub fn chapter(&self, title: &str) -> Result<()> {
        match self.is_live {
            true => self.line(&format!("\n\x1b[1m{title}\x1b[0m")),
            false => self.line(&format!("\n{title}")),
        }
    }

    /// Prints a progress line.
    pub fn event(&self, text: &str) -> Result<()> {
        match self.is_live {
            true => self.line(&format!("  \x1b[2m{text}\x1b[0m")),
            false => self.line(&format!("  {text}")),
        }
    }

    /// Prints a line above the one at the bottom.
    pub fn line(&self, text: &str) -> Result<()> {
        let bottom = self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        match self.is_live && !bottom.is_empty() {
            true => write!(out, "\r\x1b[2K{text}\n{bottom}")?,
            false => writeln!(out, "{text}")?,
        }
        Ok(out.flush()?)
    }

    /// Replaces the line at the bottom; only a terminal shows it.
    pub fn progress(&self, text: &str) -> Result<()> {
        let mut bottom = self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_live || *bottom == text {
            return Ok(());
        }
        text.clone_into(&mut bottom);
        let mut out = io::stdout().lock();
        write!(out, "\r\x1b[2K{text}")?;
        Ok(out.flush()?)
    }
}
