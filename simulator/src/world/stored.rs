//! An object of the world, open or packed into text, which takes a tenth of the memory. Reading a packed object unpacks
//! it and applies the writes since; most are never read.

use super::pending_writes::PendingWrites;
use conductor::action::Write;
use conductor::model::{Kind, Object, Revision};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Deeper values are not packed: they could not be parsed back. Neither the engine nor manifests nest that deep.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// Shared with its latest reader.
    Open(Arc<Object>),
    Packed {
        packed: Packed,
        /// The unpacked object, after the first read.
        open: OnceLock<Arc<Object>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Packed {
    kind: Kind,
    metadata: Box<ObjectMeta>,
    body: Box<str>,
    pending: Option<Box<PendingWrites>>,
}

impl Packed {
    /// Returns `None` if the object would not survive as text.
    fn new(object: &Object) -> Option<Packed> {
        is_packable(&object.body, 0).then(|| Packed {
            kind: object.kind,
            metadata: Box::new(object.metadata.clone()),
            body: object.body.to_string().into_boxed_str(),
            pending: None,
        })
    }

    fn unpack(&self) -> Object {
        // Our own text, of a value that was checked to be parseable.
        let body = serde_json::from_str(&self.body).unwrap_or_default();
        let mut object = Object { kind: self.kind, metadata: (*self.metadata).clone(), body };
        self.pending.iter().for_each(|pending| pending.apply_to(&mut object));
        object
    }

    fn revision(&self) -> Revision {
        match &self.pending {
            Some(pending) => pending.revision,
            None => Revision::read(self.metadata.resource_version.as_deref()),
        }
    }
}

impl Stored {
    pub fn new(object: Object) -> Stored {
        Stored::Open(Arc::new(object))
    }

    /// Packed from the start.
    pub fn packed(object: &Object) -> Stored {
        match Packed::new(object) {
            Some(packed) => Stored::Packed { packed, open: OnceLock::new() },
            None => Stored::new(object.clone()),
        }
    }

    /// Copies the object and leaves it packed.
    pub fn to_object(&self) -> Object {
        match self {
            Stored::Open(object) => (**object).clone(),
            Stored::Packed { packed, .. } => packed.unpack(),
        }
    }

    pub fn open(&self) -> &Object {
        match self {
            Stored::Open(object) => object,
            Stored::Packed { packed, open } => open.get_or_init(|| Arc::new(packed.unpack())),
        }
    }

    /// The object for changes, in place unless it is shared.
    pub fn open_mut(&mut self) -> &mut Object {
        Arc::make_mut(self.opened())
    }

    /// The object for reading.
    pub fn share(&mut self) -> Arc<Object> {
        self.opened().clone()
    }

    fn opened(&mut self) -> &mut Arc<Object> {
        if let Stored::Packed { packed, open } = self {
            let object = open.take().unwrap_or_else(|| Arc::new(packed.unpack()));
            *self = Stored::Open(object);
        }
        match self {
            Stored::Open(object) => object,
            Stored::Packed { .. } => self.opened(),
        }
    }

    /// Accepts a write without unpacking the object, if UID and revision match and the object stays. Returns whether it did.
    pub fn write_unseen(&mut self, write: &Write, revision: Revision, bumps_generation: bool) -> bool {
        self.pack();
        let Stored::Packed { packed, .. } = self else { return false };
        let is_meant = packed.metadata.uid.as_deref() == Some(&*write.uid)
            && write.revision == Some(packed.revision())
            && packed.revision() != Revision::default();
        if !is_meant || packed.metadata.deletion_timestamp.is_some() || !packed.body.starts_with('{') {
            return false;
        }
        packed.pending.get_or_insert_default().add(write.change.clone(), revision, bumps_generation);
        true
    }

    pub fn into_object(self) -> Object {
        match self {
            Stored::Open(object) => Arc::unwrap_or_clone(object),
            Stored::Packed { packed, open } => {
                open.into_inner().map_or_else(|| packed.unpack(), Arc::unwrap_or_clone)
            }
        }
    }

    pub fn pack(&mut self) {
        match self {
            Stored::Open(object) => {
                if let Some(packed) = Packed::new(object) {
                    *self = Stored::Packed { packed, open: OnceLock::new() };
                }
            }
            Stored::Packed { open, .. } => drop(open.take()),
        }
    }
}

/// Whether a value survives as text: a float may lose its last digit.
fn is_packable(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Array(items) => depth < DEPTH_MAX && items.iter().all(|item| is_packable(item, depth + 1)),
        Value::Object(fields) => {
            depth < DEPTH_MAX && fields.values().all(|field| is_packable(field, depth + 1))
        }
    }
}
