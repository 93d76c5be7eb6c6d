//! What is published for claims, and the Secrets that it may be published from, as last seen. No content of either.
//! Published Secrets are not listed: the names under which one may be are kept here, each read or yet to be read.

use crate::model::{Name, ObjectKey, PublishedView, Revision, Slot, SourceView, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of publishing.
#[derive(Clone, Debug)]
pub struct Publications {
    published: BTreeMap<Uid, BTreeMap<(Slot, ObjectKey), PublishedView>>,
    /// Names under which a Secret of a claim may be.
    secrets: BTreeMap<Uid, BTreeMap<Name, SecretState>>,
    sources: BTreeMap<Name, SourceView>,
    /// Claims whose connection comes from a Secret.
    users: BTreeMap<Name, BTreeSet<Uid>>,
    unlisted: BTreeSet<Slot>,
    /// Kinds that may not be listed: of those nothing can have been published, or be taken back.
    refused: BTreeSet<Slot>,
    sources_listed: bool,
}

/// Whether it is known what is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretState {
    /// It is: what is not among what is published is not there.
    Read,
    /// It is to be read.
    Unread,
    /// It may not be read: nothing can have been published there, or be taken back.
    Refused,
}

impl Default for Publications {
    fn default() -> Self {
        Publications {
            published: BTreeMap::new(),
            secrets: BTreeMap::new(),
            sources: BTreeMap::new(),
            users: BTreeMap::new(),
            unlisted: Slot::LISTED.into(),
            refused: BTreeSet::new(),
            sources_listed: false,
        }
    }
}

impl Publications {
    /// Whether everything but the Secrets has been listed once: before that, what is not known may well be there.
    pub fn is_listed(&self) -> bool {
        self.unlisted.is_empty() && self.sources_listed
    }

    /// Whether everything that can be taken back is known: each kind has been listed, or may not be.
    pub fn is_known(&self) -> bool {
        self.unlisted.is_subset(&self.refused)
    }

    /// Notes that a kind may not be listed.
    pub fn refuse(&mut self, slot: Slot) {
        self.refused.insert(slot);
    }

    /// What is published for a claim.
    pub fn of(&self, claim: &Uid) -> impl Iterator<Item = &PublishedView> {
        self.published.get(claim).into_iter().flat_map(BTreeMap::values)
    }

    /// The claims that anything is published for.
    pub fn claims(&self) -> impl Iterator<Item = &Uid> {
        self.published.keys()
    }

    /// Notes that a Secret of a claim may be under a name; it is to be read, unless it was.
    pub fn expect_secret(&mut self, claim: &Uid, name: &Name) {
        let names = self.secrets.entry(claim.clone()).or_default();
        if !names.contains_key(name) {
            names.insert(name.clone(), SecretState::Unread);
        }
    }

    /// Notes that what is under a name may have changed: it is to be read anew.
    pub fn doubt_secret(&mut self, claim: &Uid, name: &Name) {
        self.secrets.entry(claim.clone()).or_default().insert(name.clone(), SecretState::Unread);
    }

    /// Has every Secret of a claim read anew that is there. Says whether there is one.
    pub fn doubt_secrets(&mut self, claim: &Uid) -> bool {
        let there = self.of(claim).filter(|view| view.slot == Slot::Secret);
        let names: Vec<Name> = there.map(|view| view.key.name.clone()).collect();
        names.iter().for_each(|name| self.doubt_secret(claim, name));
        !names.is_empty()
    }

    /// The names of a claim's Secrets that are to be read before anything is done about them.
    pub fn unread_secrets(&self, claim: &Uid) -> Vec<Name> {
        let names = self.secrets.get(claim).into_iter().flatten();
        names.filter(|(_, look)| **look == SecretState::Unread).map(|(name, _)| name.clone()).collect()
    }

    /// Notes that what is under a name may not be read.
    pub fn refuse_secret(&mut self, claim: &Uid, name: &Name) {
        if let Some(look) = self.secrets.get_mut(claim).and_then(|names| names.get_mut(name)) {
            *look = SecretState::Refused;
        }
    }

    /// Has what could not be read tried once more.
    pub fn ask_again(&mut self, claim: &Uid, name: &Name) {
        let look = self.secrets.get_mut(claim).and_then(|names| names.get_mut(name));
        if let Some(look) = look.filter(|look| **look == SecretState::Refused) {
            *look = SecretState::Unread;
        }
    }

    /// Whether a Secret of a claim may not be read.
    pub fn has_refused_secrets(&self, claim: &Uid) -> bool {
        self.secrets.get(claim).is_some_and(|names| names.values().any(|look| *look == SecretState::Refused))
    }

    /// Every name under which a Secret of a claim was or is, and whether one may be there.
    pub fn secret_names(&self, claim: &Uid) -> impl Iterator<Item = (&Name, bool)> {
        let there: BTreeSet<&Name> =
            self.of(claim).filter(|view| view.slot == Slot::Secret).map(|view| &view.key.name).collect();
        let names = self.secrets.get(claim).into_iter().flatten();
        names.map(move |(name, look)| (name, *look != SecretState::Read || there.contains(name)))
    }

    /// Takes in what was found under the name of a claim's Secret.
    pub fn read_secret(&mut self, claim: &Uid, key: &ObjectKey, found: Option<PublishedView>) {
        self.secrets.entry(claim.clone()).or_default().insert(key.name.clone(), SecretState::Read);
        match found.filter(|view| view.claim == *claim && view.slot == Slot::Secret) {
            Some(view) => drop(self.set(view)),
            None => {
                let place = (Slot::Secret, key.clone());
                let known = self.published.get(claim).and_then(|of_claim| of_claim.get(&place));
                if let Some(uid) = known.map(|known| known.uid.clone()) {
                    self.remove(claim, Slot::Secret, key, &uid);
                }
            }
        }
    }

    /// Takes in something published, unless a newer state of it is known. Says whether that is news.
    pub fn set(&mut self, view: PublishedView) -> bool {
        view.secrets.iter().for_each(|name| self.expect_secret(&view.claim, name));
        if view.slot == Slot::Secret {
            let names = self.secrets.entry(view.claim.clone()).or_default();
            names.insert(view.key.name.clone(), SecretState::Read);
        }
        let of_claim = self.published.entry(view.claim.clone()).or_default();
        let place = (view.slot, view.key.clone());
        let known = of_claim.get(&place);
        if known.is_some_and(|known| *known == view || view.revision.is_older_than(known.revision)) {
            return false;
        }
        of_claim.insert(place, view);
        true
    }

    /// Forgets something published.
    pub fn remove(&mut self, claim: &Uid, slot: Slot, key: &ObjectKey, uid: &Uid) {
        let Some(of_claim) = self.published.get_mut(claim) else { return };
        let place = (slot, key.clone());
        if of_claim.get(&place).is_some_and(|known| known.uid == *uid) {
            of_claim.remove(&place);
        }
        if of_claim.is_empty() {
            self.published.remove(claim);
        }
    }

    /// Takes in a list of everything published of a kind. Gives the claims that this is news to.
    pub fn list(&mut self, slot: Slot, views: Vec<PublishedView>, revision: Revision) -> BTreeSet<Uid> {
        self.unlisted.remove(&slot);
        self.refused.remove(&slot);
        let listed: BTreeSet<Uid> = views.iter().map(|view| view.uid.clone()).collect();
        let known = self.published.values().flat_map(BTreeMap::values);
        let gone = known
            .filter(|v| v.slot == slot && !listed.contains(&v.uid) && !revision.is_older_than(v.revision));
        let gone: Vec<PublishedView> = gone.cloned().collect();
        gone.iter().for_each(|view| self.remove(&view.claim, slot, &view.key, &view.uid));
        let mut news: BTreeSet<Uid> = gone.into_iter().map(|view| view.claim).collect();
        for view in views {
            let claim = view.claim.clone();
            if self.set(view) {
                news.insert(claim);
            }
        }
        news
    }

    /// A Secret in the system namespace.
    pub fn source(&self, name: &str) -> Option<&SourceView> {
        self.sources.get(name)
    }

    /// Notes that a claim's connection comes from a Secret.
    pub fn note_user(&mut self, source: &str, claim: &Uid) {
        match self.users.get_mut(source) {
            Some(users) => drop(users.insert(claim.clone())),
            None => drop(self.users.insert(Name::from(source), BTreeSet::from([claim.clone()]))),
        }
    }

    /// Forgets a claim.
    pub fn forget(&mut self, claim: &Uid) {
        self.published.remove(claim);
        self.secrets.remove(claim);
        self.users.retain(|_, users| {
            users.remove(claim);
            !users.is_empty()
        });
    }

    /// The claims whose connection comes from a Secret.
    pub fn users_of(&self, source: &str) -> Vec<Uid> {
        self.users.get(source).into_iter().flatten().cloned().collect()
    }

    /// Takes in every Secret. Gives the claims that this may be news to: all that use any.
    pub fn list_sources(&mut self, sources: Vec<SourceView>) -> BTreeSet<Uid> {
        self.sources = sources.into_iter().map(|source| (source.name.clone(), source)).collect();
        self.sources_listed = true;
        self.users.values().flatten().cloned().collect()
    }

    /// Takes in a Secret, unless a newer state of it is known.
    pub fn set_source(&mut self, source: SourceView) {
        let known = self.sources.get(&source.name);
        if !known.is_some_and(|known| source.revision.is_older_than(known.revision)) {
            self.sources.insert(source.name.clone(), source);
        }
    }

    /// Forgets a Secret.
    pub fn remove_source(&mut self, name: &Name, uid: &Uid) {
        if self.sources.get(name).is_some_and(|known| known.uid == *uid) {
            self.sources.remove(name);
        }
    }
}
