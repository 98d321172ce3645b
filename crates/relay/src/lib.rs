//! Relays, through which players behind routers meet.
//!
//! [`v1`] is the relay that older clients in other languages speak to: TCP and UDP on one port, passed on once a tick. Its bytes
//! are in `docs/relay-v1.md`.
//!
//! [`v2`] is for Muse traffic: rooms with invitation codes, packets that the relay cannot read, and direct ways where there are any. Its
//! bytes are in `docs/relay-v2.md`.

pub mod v1;
pub mod v2;
