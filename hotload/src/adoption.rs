//! Decides which login is adopted. Pure: observations and times are arguments; `source` reads, probes and reports.
//!
//! ```text
//! observed: same as adopted    -> wait
//! observed: incomplete         -> wait, log why once
//! observed: another login      -> try it; refused: retry with backoff
//! ```

use crate::{Error, Login};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The first pause after a refusal; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// The adopted login, and a candidate for it.
#[derive(Default)]
pub(crate) struct Adoption {
    adopted: Option<Arc<Login>>,
    candidate: Option<Candidate>,
    trouble: Option<String>,
}

struct Candidate {
    login: Arc<Login>,
    pauses: ExponentialBackoff,
    not_before: Instant,
}

/// The next step.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Wait until the folder changes.
    Rest,
    /// Wait for this time, or until the folder changes.
    Pause(Duration),
    /// Try this login.
    Try(Arc<Login>),
}

impl Adoption {
    /// Why the newest login is not the adopted one.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Takes what the folder holds.
    pub(crate) fn observe(&mut self, observed: Result<Login, Error>, now: Instant) -> Next {
        let login = match observed.and_then(|login| self.fits(login)) {
            Ok(login) => login,
            Err(error) => {
                self.candidate = None;
                return match error {
                    // Files that are being written are complete soon: no warning.
                    Error::Unsettled(_) => {
                        self.trouble.get_or_insert_with(|| error.to_string());
                        Next::Pause(PAUSE)
                    }
                    _ => {
                        self.warn(&error);
                        Next::Rest
                    }
                };
            }
        };
        if self.adopted.as_deref() == Some(&login) {
            (self.candidate, self.trouble) = (None, None);
            return Next::Rest;
        }
        if self.candidate.as_ref().is_none_or(|known| *known.login != login) {
            self.candidate = Some(Candidate { login: Arc::new(login), pauses: pauses(), not_before: now });
        }
        match &self.candidate {
            Some(one) if one.not_before <= now => Next::Try(Arc::clone(&one.login)),
            Some(one) => Next::Pause(one.not_before - now),
            None => Next::Rest,
        }
    }

    /// Takes the outcome of a try; returns the login that it adopts.
    pub(crate) fn record_try(
        &mut self,
        login: &Arc<Login>,
        outcome: Result<(), Error>,
        now: Instant,
    ) -> Option<Arc<Login>> {
        match outcome {
            Ok(()) => {
                self.adopted = Some(Arc::clone(login));
                (self.candidate, self.trouble) = (None, None);
                Some(Arc::clone(login))
            }
            Err(error) => {
                if let Some(candidate) = &mut self.candidate {
                    candidate.not_before = now + candidate.pauses.next().unwrap_or(PAUSE_MAX);
                }
                self.warn(&error);
                None
            }
        }
    }

    /// Refuses another engine: a pool speaks one protocol.
    fn fits(&self, login: Login) -> Result<Login, Error> {
        match &self.adopted {
            Some(adopted) if adopted.engine() != login.engine() => Err(Error::Incomplete(format!(
                "login {login}: the pool is for {:?}; restart the application",
                adopted.engine()
            ))),
            _ => Ok(login),
        }
    }

    /// Logs a problem once, as long as it is the same.
    fn warn(&mut self, error: &Error) {
        let text = error.to_string();
        if self.trouble.as_ref() != Some(&text) {
            match self.adopted {
                Some(_) => {
                    tracing::warn!(reason = %text, "cannot adopt the new login; keeping the current one")
                }
                None => tracing::warn!(reason = %text, "no login adopted yet"),
            }
            self.trouble = Some(text);
        }
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new().with_min_delay(PAUSE).with_max_delay(PAUSE_MAX).without_max_times().build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn login(uri: &str) -> Login {
        let files = BTreeMap::from([("uri".to_owned(), uri.to_owned())]);
        Login::from_files(&files, None).expect("the address is complete")
    }

    fn refused() -> Result<(), Error> {
        Err(Error::Unsupported("refused".to_owned()))
    }

    #[test]
    fn a_login_is_adopted_once_it_has_worked() {
        let (mut adoption, now) = (Adoption::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        assert_eq!(adoption.observe(Ok((*one).clone()), now), Next::Try(Arc::clone(&one)));
        assert_eq!(adoption.record_try(&one, Ok(()), now), Some(Arc::clone(&one)));
        assert_eq!(adoption.observe(Ok((*one).clone()), now), Next::Rest);
        let two = Arc::new(login("postgres://a:2@h/d"));
        assert_eq!(adoption.observe(Ok((*two).clone()), now), Next::Try(two));
    }

    #[test]
    fn a_refused_login_is_retried_with_backoff() {
        let (mut adoption, start) = (Adoption::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(adoption.observe(Ok((*one).clone()), now), Next::Try(Arc::clone(&one)));
            assert_eq!(adoption.record_try(&one, refused(), now), None);
            let Next::Pause(pause) = adoption.observe(Ok((*one).clone()), now) else { panic!("no pause") };
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
        // Another login does not wait for it.
        let two = Arc::new(login("postgres://a:2@h/d"));
        assert_eq!(adoption.observe(Ok((*two).clone()), now), Next::Try(two));
    }

    #[test]
    fn an_incomplete_login_changes_nothing() {
        let (mut adoption, now) = (Adoption::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        adoption.observe(Ok((*one).clone()), now);
        adoption.record_try(&one, Ok(()), now);
        assert_eq!(
            adoption.observe(Err(Error::Incomplete("password is missing".to_owned())), now),
            Next::Rest
        );
        assert_eq!(adoption.trouble(), Some("password is missing"));
        assert_eq!(adoption.observe(Err(Error::Unsettled("f".to_owned())), now), Next::Pause(PAUSE));
        assert_eq!(adoption.observe(Ok(login("mysql://a:1@h/d")), now), Next::Rest);
        assert!(adoption.trouble().is_some_and(|trouble| trouble.contains("restart the application")));
        assert_eq!(adoption.observe(Ok((*one).clone()), now), Next::Rest);
        assert_eq!(adoption.trouble(), None);
    }
}
