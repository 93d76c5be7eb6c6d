//! The variables of expressions, as CEL values and as JSON. Their size is limited, because the time of an evaluation depends
//! on it and claims contain some of them.

use super::body::{SIZE_MAX, size_of};
use super::cel_env::CelEnv;
use super::compiled_class::Inputs;
use super::cost_check::Reference;
use super::value::to_cel;
use crate::model::{FieldError, Name, ValueError};
use kube_cel::cel::Context;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The named variables of one evaluation.
pub(super) struct Variables<'a> {
    pub context: Context<'static>,
    named: Vec<(&'a str, Cow<'a, Value>)>,
    /// Their total size.
    pub size: usize,
    /// The ids of objects that will never exist: their `when` is false and depends on no other object.
    pub left_out: BTreeSet<Name>,
}

impl<'a> Variables<'a> {
    /// The variables of a class; `object` is the object whose own `ready` or adapter expression is evaluated.
    ///
    /// # Errors
    /// Inputs that are too large.
    pub fn of(inputs: &Inputs<'a>, object: Option<&'a Value>) -> Result<Variables<'a>, FieldError> {
        let objects: Map<String, Value> =
            inputs.objects.iter().map(|(id, object)| (id.to_string(), (*object).clone())).collect();
        let or_empty = |value: Option<&'a Value>| {
            value.map_or_else(|| Cow::Owned(Value::Object(Map::new())), Cow::Borrowed)
        };
        Variables::new(vec![
            ("claim", or_empty(inputs.claim)),
            ("class", or_empty(inputs.class)),
            ("resource", or_empty(inputs.resource)),
            ("parameters", or_empty(inputs.parameters)),
            ("objects", Cow::Owned(Value::Object(objects))),
            ("object", or_empty(object)),
        ])
    }

    /// Variables of these values.
    ///
    /// # Errors
    /// A value that is too large.
    pub fn new(named: Vec<(&'a str, Cow<'a, Value>)>) -> Result<Variables<'a>, FieldError> {
        let (mut context, mut size) = (CelEnv::shared().context(), 0);
        for (name, value) in &named {
            let own = size_of(value);
            if own > SIZE_MAX {
                return Err(
                    ValueError::new(name, "is larger than 256 KiB", "make it smaller").in_field("inputs")
                );
            }
            size += own;
            context.add_variable_from_value(*name, to_cel(value));
        }
        Ok(Variables { context, named, size, left_out: BTreeSet::new() })
    }

    /// Whether an object of this id exists.
    pub fn has_object(&self, id: &str) -> bool {
        let objects = self.named.iter().find(|(name, _)| *name == "objects");
        objects.is_some_and(|(_, objects)| objects.get(id).is_some())
    }

    /// The value of a reference.
    pub fn find(&self, Reference { root, path }: &Reference) -> Option<&Value> {
        let (_, value) = self.named.iter().find(|(name, _)| name == root)?;
        path.iter().try_fold(&**value, |value, step| value.get(step))
    }
}
