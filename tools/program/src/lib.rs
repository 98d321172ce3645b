//! The parts that the `muse` program and the tools beside it (`bench`, `lab`, `proxy`) share, so that a benchmark measures the relay that
//! ships and every command ends on Ctrl-C in the same way.

pub mod address;
pub mod bars;
pub mod child;
pub mod figures;
pub mod http;
pub mod interrupt;
pub mod lateness;
pub mod logs;
pub mod options;
pub mod parallel;
pub mod relay;
