//! A progress bar on standard error: hidden in the first second, and without a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// No bar before this time.
const DELAY: Duration = Duration::from_secs(1);

/// A bar that appears after a delay.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: std::sync::atomic::AtomicBool,
}

impl Progress {
    fn new(bar: ProgressBar) -> Progress {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Progress { bar, begun: Instant::now(), shown: std::sync::atomic::AtomicBool::new(false) }
    }

    fn show(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        if self.begun.elapsed() >= DELAY && std::io::stderr().is_terminal() && !self.shown.swap(true, Relaxed)
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Sets the position.
    pub fn set_position(&self, at: u64) {
        // Reading the clock for every line would cost more than the line.
        if at.is_multiple_of(4_096) {
            self.show();
            self.bar.set_position(at);
        }
    }

    /// Advances the position.
    pub fn inc(&self, by: u64) {
        self.bar.inc(by);
        self.show();
    }

    /// Removes the bar.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar with a known total.
pub fn of(total: u64, what: &'static str) -> Progress {
    let bar = ProgressBar::new(total);
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {per_sec} {eta}");
    Progress::new(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what))
}

/// A spinner that counts lines.
pub fn lines(what: &'static str) -> Progress {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{msg} {spinner} {pos} lines {per_sec}");
    Progress::new(
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(what),
    )
}
