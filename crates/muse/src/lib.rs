//! Multiplayer networking for games: the facade library that games depend on.
