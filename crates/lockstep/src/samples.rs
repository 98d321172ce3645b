//! Two example games, each in one file: [`duel`] for rollback and [`rts`] for lockstep; and [`plain`], which lets them play over
//! datagrams without encryption, for simulations and measurements.
//!
//! The games are played by the examples of `muse-net`, in simulations and benchmarks, and `muse replay` knows them.

pub mod duel;
pub mod plain;
pub mod rts;
