//! A class's protection: a class with resources is not removed under them.

use crate::action::{Change, with_finalizer};
use crate::api::names::CLASS_PROTECTION;
use crate::model::{Class, Kind};

/// The change that protects a class in use, or lets go of one that nobody uses.
pub fn plan_class(class: &Class, resources: usize) -> Option<Change> {
    let protected = class.meta.has_finalizer(CLASS_PROTECTION);
    // Protection comes with the first resource; it goes only when the class itself is to go.
    let protect = if class.meta.deleting { protected && resources > 0 } else { protected || resources > 0 };
    (protect != protected).then(|| Change::ClassFinalizers {
        finalizers: with_finalizer(Kind::Class(class.ty), &class.meta.finalizers, protect),
    })
}
