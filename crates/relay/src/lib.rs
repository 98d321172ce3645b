//! Relays, through which players behind routers meet (RL-1 and following, NC-11).
//!
//! [`v1`] is the relay that older clients in other languages speak to: TCP and UDP on one port, passed on once a tick. Its bytes
//! are in `docs/relay-v1.md`.

pub mod v1;
