//! An object in the world: as it is, or folded into text, which takes a tenth of the memory. Whoever asks for a
//! folded one gets it as it was.

use conductor::model::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Deeper values than the engine or a manifest makes are not folded: they could not be read back.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// Shared with whoever was last told of it.
    Open(Arc<Object>),
    Folded {
        folded: Folded,
        /// Once somebody has looked at it.
        open: OnceLock<Arc<Object>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Folded {
    kind: Kind,
    metadata: Box<ObjectMeta>,
    body: Box<str>,
}

impl Folded {
    fn unfold(&self) -> Object {
        // It is our own text, of a value that was seen to be readable.
        let body = serde_json::from_str(&self.body).unwrap_or_default();
        Object { kind: self.kind, metadata: (*self.metadata).clone(), body }
    }
}

impl Stored {
    pub fn new(object: Object) -> Stored {
        Stored::Open(Arc::new(object))
    }

    /// As text from the beginning.
    pub fn folded(object: Object) -> Stored {
        let mut stored = Stored::new(object);
        stored.fold();
        stored
    }

    /// The object, which stays as it is kept.
    pub fn to_object(&self) -> Object {
        match self {
            Stored::Open(object) => (**object).clone(),
            Stored::Folded { folded, .. } => folded.unfold(),
        }
    }

    pub fn open(&self) -> &Object {
        match self {
            Stored::Open(object) => object,
            Stored::Folded { folded, open } => open.get_or_init(|| Arc::new(folded.unfold())),
        }
    }

    /// The object to be changed: where nobody else has it any more, in its place.
    pub fn open_mut(&mut self) -> &mut Object {
        Arc::make_mut(self.opened())
    }

    /// The object for somebody who only looks at it.
    pub fn share(&mut self) -> Arc<Object> {
        self.opened().clone()
    }

    fn opened(&mut self) -> &mut Arc<Object> {
        if let Stored::Folded { folded, open } = self {
            let object = open.take().unwrap_or_else(|| Arc::new(folded.unfold()));
            *self = Stored::Open(object);
        }
        match self {
            Stored::Open(object) => object,
            Stored::Folded { .. } => self.opened(),
        }
    }

    pub fn into_object(self) -> Object {
        match self {
            Stored::Open(object) => Arc::unwrap_or_clone(object),
            Stored::Folded { folded, open } => {
                open.into_inner().map_or_else(|| folded.unfold(), Arc::unwrap_or_clone)
            }
        }
    }

    pub fn fold(&mut self) {
        match self {
            Stored::Open(object) if is_foldable(&object.body, 0) => {
                let body = object.body.to_string().into_boxed_str();
                let metadata = Box::new(object.metadata.clone());
                let folded = Folded { kind: object.kind, metadata, body };
                *self = Stored::Folded { folded, open: OnceLock::new() };
            }
            Stored::Open(_) => {}
            Stored::Folded { open, .. } => drop(open.take()),
        }
    }
}

/// Whether a value is the same after it has been text: a fraction may lose its last digit.
fn is_foldable(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Array(items) => depth < DEPTH_MAX && items.iter().all(|item| is_foldable(item, depth + 1)),
        Value::Object(fields) => {
            depth < DEPTH_MAX && fields.values().all(|field| is_foldable(field, depth + 1))
        }
    }
}
