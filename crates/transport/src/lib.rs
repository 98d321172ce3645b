//! The Muse protocol, sans-IO: secure connections with every delivery mode.
