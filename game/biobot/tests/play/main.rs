//! Whole matches in virtual time: the stage, players, and a network between them.

mod attempts;
mod ball;
mod claims;
mod devices;
mod escape;
mod hostile;
mod network;
mod phases;
mod recording;
mod table;
mod validated;
mod versus;
mod weapons;
