//! Derive macro of muse-schema.
