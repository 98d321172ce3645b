//! Deterministic sessions: lockstep and rollback (NC-36, NC-37).
