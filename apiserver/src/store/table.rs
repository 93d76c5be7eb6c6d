//! The objects of one resource, and the log of what happened to them. The log answers watches, and lists of an
//! earlier revision by taking back what came later.

use super::Stored;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;

/// How much of its history a resource remembers. The older changes are forgotten as soon as either is exceeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLimits {
    /// Changes.
    pub count: usize,
    /// Bytes of memory, about.
    pub bytes: usize,
}

/// What happened to one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub revision: u64,
    pub key: Arc<str>,
    pub before: Option<Arc<Stored>>,
    /// The new state; of a deleted object the last one, under the revision of its end.
    pub after: Arc<Stored>,
    pub deleted: bool,
    /// About how much memory `after` takes; `before` is the `after` of an earlier change, or of none that is kept.
    bytes: usize,
}

/// The log no longer reaches back that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The oldest revision that can still be gone on from.
    pub oldest: u64,
}

/// One resource.
#[derive(Debug)]
pub(crate) struct Table {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    log: VecDeque<Change>,
    limits: LogLimits,
    /// About how much memory the states in the log take.
    log_bytes: usize,
    /// Changes up to this revision are forgotten.
    floor: u64,
    news: watch::Sender<u64>,
}

impl Table {
    pub(super) fn new(limits: LogLimits, floor: u64) -> Table {
        let news = watch::Sender::new(floor);
        Table { objects: BTreeMap::new(), log: VecDeque::new(), limits, log_bytes: 0, floor, news }
    }

    pub fn find(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Reports the revision of each change.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Objects whose key begins with `prefix`, after `after` where it is named, in order.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> {
        let from = after.map_or(Bound::Included(prefix), Bound::Excluded);
        self.objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// As [`Table::range`], as it was at an earlier revision.
    pub fn range_at(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
    ) -> Result<BTreeMap<Arc<str>, Arc<Stored>>, Gone> {
        let later = self.since(revision)?;
        let mut objects: BTreeMap<_, _> =
            self.range(prefix, after).map(|(key, stored)| (Arc::clone(key), Arc::clone(stored))).collect();
        let within = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        for change in later.into_iter().rev().filter(|change| within(&change.key)) {
            match &change.before {
                Some(before) => objects.insert(Arc::clone(&change.key), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// What happened after a revision.
    pub fn since(&self, revision: u64) -> Result<Vec<Change>, Gone> {
        if revision < self.floor {
            return Err(Gone { oldest: self.floor });
        }
        let from = self.log.partition_point(|change| change.revision <= revision);
        Ok(self.log.range(from..).cloned().collect())
    }

    pub(super) fn restore(&mut self, key: &str, stored: Arc<Stored>) {
        self.objects.insert(Arc::from(key), stored);
    }

    pub(super) fn record(&mut self, key: &str, after: Arc<Stored>, deleted: bool) -> Option<Arc<Stored>> {
        let revision = after.revision;
        let shared: Arc<str> = match self.objects.get_key_value(key) {
            Some((shared, _)) => Arc::clone(shared),
            None => Arc::from(key),
        };
        let before = match deleted {
            true => self.objects.remove(key),
            false => self.objects.insert(Arc::clone(&shared), Arc::clone(&after)),
        };
        let bytes = memory(&after.value);
        self.log_bytes += bytes;
        self.log.push_back(Change { revision, key: shared, before: before.clone(), after, deleted, bytes });
        self.forget();
        self.news.send_replace(revision);
        before
    }

    /// Forgets the oldest changes until the limits hold; the last one stays, or it would be missed by every watch.
    fn forget(&mut self) {
        while self.log.len() > 1
            && (self.log.len() > self.limits.count || self.log_bytes > self.limits.bytes)
            && let Some(change) = self.log.pop_front()
        {
            self.floor = change.revision;
            self.log_bytes -= change.bytes;
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.log.clear();
        self.log_bytes = 0;
        self.floor = revision;
        self.news.send_replace(revision);
    }
}

/// About how much memory a value takes: itself, its text, and the nodes of its lists and maps.
fn memory(value: &Value) -> usize {
    const NODE: usize = size_of::<Value>();
    /// A key's own String beside its text, and its share of the map's nodes.
    const KEY: usize = 2 * size_of::<String>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(memory).sum::<usize>(),
        Value::Object(fields) => {
            NODE + fields.iter().map(|(key, value)| KEY + key.len() + memory(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(limits: LogLimits, padding: usize) -> Table {
        let mut table = Table::new(limits, 0);
        for revision in 1..=100 {
            let value = json!({"data": "x".repeat(padding)});
            table.record("a", Arc::new(Stored::new(value, revision)), false);
        }
        table
    }

    #[test]
    fn the_log_is_bounded_by_memory_as_well_as_by_count() {
        let one = memory(&json!({"data": "x".repeat(1_000)}));
        let limits = LogLimits { count: 50, bytes: 10 * one };
        let large = written(limits, 1_000);
        assert_eq!((large.log.len(), large.log_bytes), (10, 10 * one));
        assert_eq!(large.since(89).map(|_| ()), Err(Gone { oldest: 90 }), "an older watch lists again");
        assert_eq!(large.since(90).map(|later| later.len()), Ok(10));
        assert_eq!(written(limits, 1).log.len(), 50);
        assert_eq!(written(limits, 1 << 20).log.len(), 1, "the last change is there, however large");
    }
}
