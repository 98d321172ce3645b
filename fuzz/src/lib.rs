//! Bodies of the fuzz targets: each takes bytes, drives one part of Muse with them and asserts what must hold.

pub mod bits;
pub mod description;
pub mod handshake;
pub mod hostile_peer;
pub mod lockstep;
pub mod netcode_inputs;
pub mod operations;
pub mod packet;
pub mod partial;
pub mod range;
pub mod relay_v1_operations;
pub mod relay_v1_packet;
pub mod relay_v2_operations;
pub mod relay_v2_packet;
pub mod rp_host;
pub mod rp_packet;
pub mod schema;
pub mod session;
pub mod snapshot;
pub mod token;

#[cfg(test)]
mod tests {
    /// Runs every body over pseudo-random bytes, so that they are tried without a fuzzer, too.
    #[test]
    fn every_target_survives_noise() {
        let mut state = 1u64;
        for len in (0..400).chain(0..400) {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99_991);
                    // Small bytes half of the time: they decode further.
                    (state >> 56) as u8 & if state >> 40 & 1 == 0 { 0xFF } else { 0x03 }
                })
                .collect();
            crate::bits::run(&bytes);
            crate::description::run(&bytes);
            crate::handshake::run(&bytes);
            crate::hostile_peer::run(&bytes);
            crate::lockstep::run(&bytes);
            crate::netcode_inputs::run(&bytes);
            crate::operations::run(&bytes);
            crate::packet::run(&bytes);
            crate::partial::run(&bytes);
            crate::range::run(&bytes);
            crate::relay_v1_operations::run(&bytes);
            crate::relay_v1_packet::run(&bytes);
            crate::relay_v2_operations::run(&bytes);
            crate::relay_v2_packet::run(&bytes);
            crate::rp_host::run(&bytes);
            crate::rp_packet::run(&bytes);
            crate::schema::run(&bytes);
            crate::session::run(&bytes);
            crate::snapshot::run(&bytes);
            crate::token::run(&bytes);
        }
    }
}
