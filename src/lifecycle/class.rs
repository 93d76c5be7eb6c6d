//! A class's protection: a class with resources is not removed under them.

use crate::action::{Change, with_finalizer};
use crate::api::names::CLASS_PROTECTION;
use crate::model::{Class, Kind};

/// The change that protects a class in use, or releases one that no resource uses.
pub fn plan_class(class: &Class, resources: usize) -> Option<Change> {
    let protected = class.meta.has_finalizer(CLASS_PROTECTION);
    // The finalizer comes with the first resource; it is removed only when the class is deleted.
    let protect = if class.meta.deleting { protected && resources > 0 } else { protected || resources > 0 };
    (protect != protected).then(|| Change::ClassFinalizers {
        finalizers: with_finalizer(Kind::Class(class.ty), &class.meta.finalizers, protect),
    })
}
