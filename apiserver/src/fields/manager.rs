//! One who writes.

use crate::call::Call;
use crate::scope::Sub;

/// Who writes, when, and through which part of an object.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    pub name: String,
    pub now: String,
    pub sub: Sub,
}

impl Manager {
    pub fn of(call: &Call, sub: Sub, now: String) -> Manager {
        Manager { name: call.manager(), now, sub }
    }

    pub fn named(name: &str, now: String) -> Manager {
        Manager { name: name.to_owned(), now, sub: Sub::Whole }
    }
}
