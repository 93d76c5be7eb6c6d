//! The time of day, for records that people read and pauses that outlive the process.

use conductor::model::Time;
use k8s_openapi::jiff::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time now.
pub(super) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A time as records have it.
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
