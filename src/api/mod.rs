//! The wire: CRD types as users write them. No rule lives here, only shapes and what a schema can refuse.
