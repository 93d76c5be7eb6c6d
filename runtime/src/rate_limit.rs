//! The rate of calls: a token bucket, and the pauses that the API demands.

use super::call::Reply;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::StatusCode;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest pause that the API is granted.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Limits the rate of calls.
pub struct RateLimit {
    limiter: DefaultDirectRateLimiter,
    /// Set when the API demands a pause: nothing is sent until then.
    quiet_until: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// Allows `per_second` calls in the long run, and `burst` at once after a pause. 0 counts as 1.
    pub fn new(per_second: u32, burst: u32) -> RateLimit {
        let positive = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(positive(per_second)).allow_burst(positive(burst));
        RateLimit { limiter: RateLimiter::direct(quota), quiet_until: Mutex::new(None) }
    }

    /// Waits until a call may be sent.
    pub async fn wait_turn(&self) {
        self.limiter.until_ready().await;
        let quiet = *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = quiet {
            tokio::time::sleep_until(until.into()).await;
        }
    }

    /// Starts the pause that a reply demands.
    pub fn heed(&self, reply: &Reply) {
        if let Reply::Answered { status: StatusCode::TOO_MANY_REQUESTS, retry_after, .. } = reply {
            let pause = retry_after.unwrap_or(Duration::from_secs(1)).min(PAUSE_MAX);
            let until = Instant::now() + pause;
            *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
    }
}
