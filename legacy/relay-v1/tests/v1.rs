//! Relay v1 in virtual time, one module for each part of it.

#[path = "v1/client.rs"]
mod client;
#[path = "v1/common.rs"]
mod common;
#[path = "v1/datagrams.rs"]
mod datagrams;
#[path = "v1/limits.rs"]
mod limits;
#[path = "v1/streams.rs"]
mod streams;
