//! What a request is about, once it is known to exist: a resource in a version, a namespace, a name, a subresource.

use super::object;
use super::registry::{Registry, Served};
use super::route::Target;
use super::status::Status;

/// A part of an object with a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sub {
    Whole,
    Status,
    Scale,
    /// Of a Namespace: its own finalizers.
    Finalize,
}

impl Sub {
    /// Its name in managed fields; the whole has none.
    pub fn name(self) -> &'static str {
        match self {
            Sub::Whole => "",
            Sub::Status => "status",
            Sub::Scale => "scale",
            Sub::Finalize => "finalize",
        }
    }
}

/// The subject of a request.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub served: Served,
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    pub sub: Sub,
}

impl Scope {
    /// Finds what a path names.
    pub fn find(registry: &Registry, target: &Target) -> Result<Scope, Status> {
        let served =
            registry.find(&target.group, &target.version, &target.plural).ok_or_else(Status::no_such_path)?;
        let version = served.version();
        let sub = match target.sub.as_str() {
            "" => Sub::Whole,
            "status" if version.status => Sub::Status,
            "scale" if version.scale.is_some() => Sub::Scale,
            "finalize" if target.plural == "namespaces" && target.group.is_empty() => Sub::Finalize,
            other => match super::unsupported::subresource(&target.plural, other) {
                Some(what) if !served.resource.is_custom() => return Err(Status::not_implemented(what)),
                _ if served.resource.is_custom() => {
                    return Err(Status::not_found(&served.resource.named(), &target.name));
                }
                _ => return Err(Status::no_such_path()),
            },
        };
        let namespaced = served.resource.namespaced;
        if !namespaced && !target.namespace.is_empty() {
            return Err(Status::no_such_path());
        }
        if namespaced && target.namespace.is_empty() && !target.name.is_empty() {
            return Err(Status::no_such_path());
        }
        let Target { namespace, name, .. } = target.clone();
        Ok(Scope { served, namespace, name, sub })
    }

    /// Whether this names a collection in all namespaces, which can only be read.
    pub fn is_across(&self) -> bool {
        self.served.resource.namespaced && self.namespace.is_empty() && self.name.is_empty()
    }

    pub fn key(&self) -> String {
        object::key(&self.namespace, &self.name)
    }

    /// Under which all keys of a collection begin.
    pub fn prefix(&self) -> String {
        match self.namespace.is_empty() {
            true => String::new(),
            false => format!("{}/", self.namespace),
        }
    }

    pub fn not_found(&self) -> Status {
        Status::not_found(&self.served.resource.named(), &self.name)
    }

    /// The warning for clients that use a deprecated version.
    pub fn warnings(&self) -> Vec<String> {
        self.served.version().deprecated.iter().cloned().collect()
    }
}
