//! MUSE-RP v1, byte-compatible with the original implementation (RP-1 and following).
