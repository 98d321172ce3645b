//! Two example games, each in one file: [`duel`] for rollback and [`rts`] for lockstep.
//!
//! They are played by the programs in `examples/`, in the simulations and benchmarks, and `muse replay` knows them.

pub mod duel;
pub mod rts;
