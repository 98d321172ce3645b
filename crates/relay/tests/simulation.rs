//! Relay v2 in virtual time: hosts and guests behind routers, with the transport above and the relay between.

#[path = "v2_simulation/hostile.rs"]
mod hostile;
#[path = "v2_simulation/lan.rs"]
mod lan;
#[path = "v2_simulation/nats.rs"]
mod nats;
#[path = "v2_simulation/nearest.rs"]
mod nearest;
#[path = "v2_simulation/rooms.rs"]
mod rooms;
#[path = "v2_simulation/seeds.rs"]
mod seeds;
#[path = "v2_simulation/world.rs"]
mod world;
