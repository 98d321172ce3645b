//! Deterministic matches over encrypted connections: the same frames on all machines, whatever the network does.

mod hostile;
mod migration;
mod network;
mod party;
mod sockets;
mod support;
