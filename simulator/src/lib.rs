//! The production scheduler, offline. Decisions are made in `conductor`; nothing here decides.
