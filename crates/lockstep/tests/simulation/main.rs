//! Whole matches in simulation: hostile networks, cuts, joins, desynchronisation, traffic.

mod brawl;
mod desync;
mod direct;
mod duel;
mod hostile;
mod strategy;
mod support;
