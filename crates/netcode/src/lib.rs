//! The netcode of a fast game, for any engine: bytes in, bytes out.
//!
//! Nothing here knows sockets or the transport: packets are slices of bytes, and any link that carries datagrams will do.

pub mod authority;
mod claim;
pub mod clock;
pub mod coder;
mod entity;
pub mod events;
pub mod extrapolation;
pub mod inputs;
pub mod interest;
pub mod interpolation;
pub mod prediction;
mod priority;
pub mod quality;
pub mod receiver;
pub mod replication;
mod scheduler;
pub mod session;
pub mod smoothing;
pub mod snapshot;
mod tick;
pub mod world;

pub use claim::{Claim, Shooter};
pub use entity::EntityId;
pub use events::{Event, EventClass};
/// Vectors and rotations, as interest and extrapolation take them.
pub use glam;
pub use receiver::{EntityStatus, Receiver, Refused, Update};
pub use replication::ClientView;
pub use session::{Client, LocalClient, PacketError, Remotes, Server, SessionConfig, Spawned};
pub use snapshot::Acknowledgement;
pub use tick::{Tick, TickTime};
pub use world::{Audience, ClientId, Kind, KindId, KindOptions, Kinds, World, WorldError};
