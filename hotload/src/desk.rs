//! Decides which login is adopted. Pure: what was seen and when are arguments; looking, knocking and telling are
//! `source`'s.
//!
//! ```text
//! seen: same as adopted        -> rest
//! seen: nothing that is whole  -> rest, say why once
//! seen: another login          -> try it; refused: try again, ever more slowly
//! ```

use crate::{Error, Login};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The first pause after a refusal, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// What is adopted, and what wants to be.
#[derive(Default)]
pub(crate) struct Desk {
    adopted: Option<Arc<Login>>,
    candidate: Option<Candidate>,
    trouble: Option<String>,
}

struct Candidate {
    login: Arc<Login>,
    refusals: u32,
    not_before: Instant,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing, until the folder changes.
    Rest,
    /// Nothing for so long, or until the folder changes.
    Pause(Duration),
    /// Try this login.
    Try(Arc<Login>),
}

impl Desk {
    /// Why the newest login is not the adopted one.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Takes in what the folder holds.
    pub(crate) fn seen(&mut self, seen: Result<Login, Error>, now: Instant) -> Next {
        let login = match seen.and_then(|login| self.fits(login)) {
            Ok(login) => login,
            Err(error) => {
                self.candidate = None;
                return match error {
                    // What is being written is whole soon, and nothing to complain of.
                    Error::Unsettled(_) => {
                        self.trouble.get_or_insert_with(|| error.to_string());
                        Next::Pause(PAUSE)
                    }
                    _ => {
                        self.complain(&error);
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
            self.candidate = Some(Candidate { login: Arc::new(login), refusals: 0, not_before: now });
        }
        match &self.candidate {
            Some(one) if one.not_before <= now => Next::Try(Arc::clone(&one.login)),
            Some(one) => Next::Pause(one.not_before - now),
            None => Next::Rest,
        }
    }

    /// Takes in how a try ended; gives the login that is adopted by it.
    pub(crate) fn tried(
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
                    candidate.refusals += 1;
                    candidate.not_before = now + pause(candidate.refusals);
                }
                self.complain(&error);
                None
            }
        }
    }

    /// A pool speaks one protocol for as long as it lives.
    fn fits(&self, login: Login) -> Result<Login, Error> {
        match &self.adopted {
            Some(adopted) if adopted.engine() != login.engine() => Err(Error::Incomplete(format!(
                "login {login}: the pool is for {:?}; start the application anew",
                adopted.engine()
            ))),
            _ => Ok(login),
        }
    }

    /// Tells a trouble once, for as long as it is the same.
    fn complain(&mut self, error: &Error) {
        let text = error.to_string();
        if self.trouble.as_ref() != Some(&text) {
            match self.adopted {
                Some(_) => {
                    tracing::warn!(reason = %text, "a new login is not adopted; the one before is kept")
                }
                None => tracing::warn!(reason = %text, "no login is adopted yet"),
            }
            self.trouble = Some(text);
        }
    }
}

fn pause(refusals: u32) -> Duration {
    let doubled = PAUSE.saturating_mul(1 << refusals.saturating_sub(1).min(16));
    doubled.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn login(uri: &str) -> Login {
        let files = BTreeMap::from([("uri".to_owned(), uri.to_owned())]);
        Login::from_files(&files, None).expect("the address is whole")
    }

    fn refused() -> Result<(), Error> {
        Err(Error::Unsupported("refused".to_owned()))
    }

    #[test]
    fn a_login_is_adopted_once_it_has_worked() {
        let (mut desk, now) = (Desk::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        assert_eq!(desk.seen(Ok((*one).clone()), now), Next::Try(Arc::clone(&one)));
        assert_eq!(desk.tried(&one, Ok(()), now), Some(Arc::clone(&one)));
        assert_eq!(desk.seen(Ok((*one).clone()), now), Next::Rest);
        let two = Arc::new(login("postgres://a:2@h/d"));
        assert_eq!(desk.seen(Ok((*two).clone()), now), Next::Try(two));
    }

    #[test]
    fn a_refused_login_is_tried_ever_more_slowly() {
        let (mut desk, start) = (Desk::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(desk.seen(Ok((*one).clone()), now), Next::Try(Arc::clone(&one)));
            assert_eq!(desk.tried(&one, refused(), now), None);
            let Next::Pause(pause) = desk.seen(Ok((*one).clone()), now) else { panic!("no pause") };
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
        // Another one need not wait for it.
        let two = Arc::new(login("postgres://a:2@h/d"));
        assert_eq!(desk.seen(Ok((*two).clone()), now), Next::Try(two));
    }

    #[test]
    fn what_is_not_whole_changes_nothing() {
        let (mut desk, now) = (Desk::default(), Instant::now());
        let one = Arc::new(login("postgres://a:1@h/d"));
        desk.seen(Ok((*one).clone()), now);
        desk.tried(&one, Ok(()), now);
        assert_eq!(desk.seen(Err(Error::Incomplete("password is missing".to_owned())), now), Next::Rest);
        assert_eq!(desk.trouble(), Some("password is missing"));
        assert_eq!(desk.seen(Err(Error::Unsettled("f".to_owned())), now), Next::Pause(PAUSE));
        assert_eq!(desk.seen(Ok(login("mysql://a:1@h/d")), now), Next::Rest);
        assert!(desk.trouble().is_some_and(|trouble| trouble.contains("start the application anew")));
        assert_eq!(desk.seen(Ok((*one).clone()), now), Next::Rest);
        assert_eq!(desk.trouble(), None);
    }
}
