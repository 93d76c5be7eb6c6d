//! Every rule of binding, one test each, named as the sentence that it proves. Worlds are made by hand and
//! small; random worlds and random histories live elsewhere.

mod batch;
mod bound;
mod cache;
mod classes;
mod crash;
mod deleting;
mod drift;
mod edits;
mod fallback;
mod graphs;
mod joining;
mod matching;
mod never_bound;
mod part_end;
mod parts;
mod profile;
mod provisioning;
mod publishing;
mod queue;
mod quota;
mod resource;
mod sharing;
mod support;
mod templates;
