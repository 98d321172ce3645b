//! Whole sessions of [`Server`](muse_netcode::Server) and [`Client`](muse_netcode::Client) over virtual networks.

mod arena;
mod claims;
mod game;
mod grid;
mod hostile;
mod modes;
