//! The objects of one resource, and the log of what happened to them. The log answers watches, and lists of an
//! earlier revision by taking back what came later.

use super::Stored;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;

/// What happened to one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub revision: u64,
    pub key: Arc<str>,
    pub before: Option<Arc<Stored>>,
    /// The new state; of a deleted object the last one, under the revision of its end.
    pub after: Arc<Stored>,
    pub deleted: bool,
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
    log_max: usize,
    /// Changes up to this revision are forgotten.
    floor: u64,
    news: watch::Sender<u64>,
}

impl Table {
    pub(super) fn new(log_max: usize, floor: u64) -> Table {
        let news = watch::Sender::new(floor);
        Table { objects: BTreeMap::new(), log: VecDeque::new(), log_max, floor, news }
    }

    pub fn find(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Tells of the revision of each change.
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
        self.log.push_back(Change { revision, key: shared, before: before.clone(), after, deleted });
        if self.log.len() > self.log_max {
            self.floor = self.log.pop_front().map_or(self.floor, |change| change.revision);
        }
        self.news.send_replace(revision);
        before
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.log.clear();
        self.floor = revision;
        self.news.send_replace(revision);
    }
}
