//! Whole matches in virtual time: the stage, players, and a network between them.

mod devices;
mod hostile;
mod network;
mod phases;
mod table;
mod versus;
mod weapons;
