//! The wall clock as records have it, for pauses that outlive the process.

use conductor::model::Time;
use conductor_runtime::clock::now_ms;
use k8s_openapi::jiff::Timestamp;

/// The time now.
pub(super) fn now() -> Time {
    Time(now_ms())
}

/// A time as text, for records.
pub(super) fn write(time: Time) -> String {
    Timestamp::from_millisecond(time.0).unwrap_or_default().to_string()
}

/// Reads what [`write`] wrote.
pub(super) fn read(text: &str) -> Option<Time> {
    text.parse::<Timestamp>().ok().map(|stamp| Time(stamp.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back() {
        assert_eq!(read(&write(Time(1_700_000_000_123))), Some(Time(1_700_000_000_123)));
        assert_eq!(read("yesterday"), None);
    }
}
