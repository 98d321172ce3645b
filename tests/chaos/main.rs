//! Several masters under faults, in the manner of Jepsen: three masters, PostgreSQL with a synchronous standby that takes over, NATS, game servers and
//! players, all real, with proxies between them. Faults and players' choices come from a seed; the history of a run is written down, and checked when
//! it is over. The same folder has the restore drill: a backup that was taken under load has everything that was acknowledged before.
//!
//! `scripts/chaos-check.sh` runs one short seed; `MUSE_CHAOS_SECONDS=360 MUSE_SEEDS=10 scripts/chaos-check.sh` ten long ones.

#![cfg(all(feature = "postgres", feature = "nats"))]

mod checker;
mod cluster;
mod cluster_run;
mod database;
mod history;
mod http;
#[path = "../support/nats.rs"]
#[allow(dead_code, reason = "the bus's tests use more of it")]
mod nats;
mod plan;
mod players;
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "the store's tests use more of it")]
mod postgres;
#[path = "../master/program.rs"]
#[allow(dead_code, reason = "the master's tests use more of it")]
mod program;
mod proxy;
mod restore;
