//! Names, keys and revisions: how objects are identified. A name can be reused; a UID never is.

use std::fmt;
use std::sync::Arc;

/// A name, cheap to clone.
pub type Name = Arc<str>;

/// The API server's identity of one object's life.
pub type Uid = Arc<str>;

/// A point in time, in milliseconds since the Unix epoch. Always an argument: nothing here reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// This time plus `ms` milliseconds.
    pub fn plus_ms(self, ms: i64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// When to retry after so many failures in a row: the first pause doubles with each further failure, up to the longest.
    pub fn backed_off(self, failures: u32, ms_first: i64, ms_max: i64) -> Time {
        let doubled = ms_first.saturating_mul(1 << failures.saturating_sub(1).min(16));
        self.plus_ms(doubled.min(ms_max))
    }
}

/// The `resourceVersion` of an object as a number; zero if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// Parses a `resourceVersion`; one that is not a number is unknown.
    pub fn read(text: Option<&str>) -> Revision {
        Revision(text.and_then(|t| t.parse().ok()).unwrap_or(0))
    }

    /// Whether both revisions are known and this one is older than `other`.
    pub fn is_older_than(self, other: Revision) -> bool {
        self.0 != 0 && other.0 != 0 && self.0 < other.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identifies a write, to match it with its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// Namespace and name of an object. Objects that are recreated with the same name have the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: Name,
    /// The object's name.
    pub name: Name,
}

impl ObjectKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Self {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
