//! Seeded network conditioner and virtual network in virtual time.
