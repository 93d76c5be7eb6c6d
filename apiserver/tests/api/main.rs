//! The embedded API, asked in process as any client asks it. What a real API server answers to the same questions is
//! compared elsewhere; these tests need no control plane.

mod ask;
mod basics;
mod connections;
mod controller;
mod custom;
mod durable;
mod full_disk;
mod fuzz;
mod memory;
mod owners;
mod served;
mod system_namespace;
mod watches;
