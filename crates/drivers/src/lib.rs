//! The only sockets of Muse: batched UDP, in-memory links, game-loop client and server.
