//! Progress on standard error, for people who wait: nothing before the first second, nothing where nobody looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shorter than this is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that shows itself only once somebody has waited.
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
        if self.begun.elapsed() >= PATIENCE
            && std::io::stderr().is_terminal()
            && !self.shown.swap(true, Relaxed)
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// So far.
    pub fn set_position(&self, at: u64) {
        // Asking the clock for every line would cost more than the line.
        if at.is_multiple_of(4_096) {
            self.show();
            self.bar.set_position(at);
        }
    }

    /// One more.
    pub fn inc(&self, by: u64) {
        self.bar.inc(by);
        self.show();
    }

    /// Done.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Of so many.
pub fn of(total: u64, what: &'static str) -> Progress {
    let bar = ProgressBar::new(total);
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {per_sec} {eta}");
    Progress::new(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what))
}

/// Of nobody knows how many lines.
pub fn lines(what: &'static str) -> Progress {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{msg} {spinner} {pos} lines {per_sec}");
    Progress::new(
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(what),
    )
}
