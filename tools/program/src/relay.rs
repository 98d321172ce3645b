//! Relays on real sockets: [`v2`] is the relay for Muse traffic, [`v1`] the one for clients of the older protocol; both fill a page of
//! [`metrics`].

pub mod metrics;
pub mod v1;
pub mod v2;
