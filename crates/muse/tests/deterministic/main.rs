//! Deterministic matches over encrypted connections: the same frames on all machines, whatever the network does.

mod hostile;
mod network;
mod sockets;
mod support;
