//! Relays, through which players behind routers meet (RL-1 and following, NC-11).
