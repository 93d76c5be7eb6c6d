//! Which resources there are: the common kinds, always, and those of CRDs, as long as they are established. What is
//! done with a resource is not here.

mod common;
mod custom;
mod resource;

pub(super) use common::{CRD_TABLE, Common, NAMESPACE_TABLE};
pub(super) use custom::{has_condition, read_crd};
pub(super) use resource::{Column, Resource, Scale, Version};

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A resource in one of its versions.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub resource: Arc<Resource>,
    /// An index into the resource's versions.
    pub at: usize,
}

impl Served {
    pub fn version(&self) -> &Version {
        &self.resource.versions[self.at]
    }

    pub fn api_version(&self) -> String {
        api_version(&self.resource.group, &self.version().name)
    }
}

/// Everything that is served at one moment.
#[derive(Debug, Default)]
pub(super) struct Registry {
    common: Vec<Arc<Resource>>,
    /// By the CRD's name, with the revision that they were read from.
    custom: BTreeMap<String, (u64, Arc<Resource>)>,
}

impl Registry {
    pub fn new() -> Registry {
        Registry { common: common::all().into_iter().map(Arc::new).collect(), custom: BTreeMap::new() }
    }

    /// The registry after CRDs have changed; what is unchanged is shared.
    pub fn with_crds<'a>(&self, crds: impl Iterator<Item = (&'a str, u64, &'a Value)>) -> Registry {
        let mut custom = BTreeMap::new();
        for (name, revision, crd) in crds {
            let known = self.custom.get(name).filter(|(read, _)| *read == revision).cloned();
            let read = || read_crd(crd).map(|resource| (revision, Arc::new(resource)));
            if let Some(entry) = known.or_else(read) {
                custom.insert(name.to_owned(), entry);
            }
        }
        Registry { common: self.common.clone(), custom }
    }

    /// All resources, the common ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.common.iter().chain(self.custom.values().map(|(_, resource)| resource))
    }

    /// A resource by group, version and plural.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        self.all().filter(|resource| resource.group == group && resource.plural == plural).find_map(
            |resource| {
                let at = resource.versions.iter().position(|found| found.served && found.name == version)?;
                Some(Served { resource: Arc::clone(resource), at })
            },
        )
    }

    /// A resource by what objects call themselves.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<Served> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.all().filter(|resource| resource.group == group && resource.kind == kind).find_map(|resource| {
            let at = resource.versions.iter().position(|found| found.served && found.name == version)?;
            Some(Served { resource: Arc::clone(resource), at })
        })
    }

    /// Whether a kind is one of those that are always there.
    pub fn is_common(api_version: &str, kind: &str) -> bool {
        common::knows(api_version, kind)
    }

    /// The resource whose objects are kept in a table, in its storage version.
    pub fn find_table(&self, table: &str) -> Option<Served> {
        let resource = self.all().find(|resource| &*resource.table == table)?;
        Some(Served { resource: Arc::clone(resource), at: resource.storage() })
    }

    /// Groups with their versions, in the order in which they are preferred.
    pub fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for resource in self.all() {
            let versions = resource.versions.iter().filter(|version| version.served);
            let at = groups.iter().position(|(group, _)| *group == resource.group).unwrap_or_else(|| {
                groups.push((resource.group.clone(), Vec::new()));
                groups.len() - 1
            });
            for version in
                versions.filter(|version| !groups[at].1.contains(&version.name)).collect::<Vec<_>>()
            {
                groups[at].1.push(version.name.clone());
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(resource::precedence(version)));
        }
        groups
    }
}

/// `group/version`, or the version alone for the group without a name.
pub(super) fn api_version(group: &str, version: &str) -> String {
    match group.is_empty() {
        true => version.to_owned(),
        false => format!("{group}/{version}"),
    }
}
