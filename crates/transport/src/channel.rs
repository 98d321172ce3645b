//! Channels: one half sends, one half receives; what they promise is a [`Delivery`](crate::Delivery).
//!
//! Both halves are made when first used, so that a channel that a connection never uses costs it nothing.

pub(crate) mod assembly;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod store;
