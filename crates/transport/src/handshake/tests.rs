//! Tests of the handshake.
