//! Components that say what is replicated, to whom, and whose it is.

use bevy_ecs::prelude::*;
use muse::netcode::{ClientId, EntityId};

/// The entity exists on clients, too. On the server the game adds it, beside a component that the [`Protocol`](crate::Protocol) has; on clients the
/// plugin does.
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct Replicated;

/// The entity's name on the wire, the same on both sides. The plugin adds it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetId(pub EntityId);

/// The client that owns the entity, and plays it if it has the player's component. Parts for owners go to it alone.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub ClientId);

/// On the client: the entity is its own player, whose component is predicted.
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct Predicted;

/// Only these clients, and the owner, see the entity. Without it everyone does. As soon as any entity has it, each client gets a list of what it
/// sees whenever that changes.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq)]
pub struct VisibleTo(pub Vec<ClientId>);
