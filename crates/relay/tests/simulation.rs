//! The relay in virtual time: hosts and guests behind routers, with the transport above and the relay between.

#[path = "simulation/bans.rs"]
mod bans;
#[path = "simulation/crowd.rs"]
mod crowd;
#[path = "simulation/doubt.rs"]
mod doubt;
#[path = "simulation/forgetting.rs"]
mod forgetting;
#[path = "simulation/hostile.rs"]
mod hostile;
#[path = "simulation/lan.rs"]
mod lan;
#[path = "simulation/nats.rs"]
mod nats;
#[path = "simulation/nearest.rs"]
mod nearest;
#[path = "simulation/rooms.rs"]
mod rooms;
#[path = "simulation/seeds.rs"]
mod seeds;
#[path = "simulation/shares.rs"]
mod shares;
#[path = "simulation/short_codes.rs"]
mod short_codes;
#[path = "simulation/succession.rs"]
mod succession;
#[path = "simulation/tokens.rs"]
mod tokens;
#[path = "simulation/world.rs"]
mod world;
