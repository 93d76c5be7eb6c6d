//! The one binary, `conductor`: it reads arguments, calls the libraries and prints.
fn main() {}
