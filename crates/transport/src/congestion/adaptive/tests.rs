//! Behaviour of the adaptive controller that needs no bottleneck: `tests/congestion` has those.
