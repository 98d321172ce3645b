//! The certificate of WebTransport: one of our own making that browsers accept by its hash.
//!
//! `serverCertificateHashes` of WebTransport takes certificates of ECDSA with P-256 that are valid for two weeks at most. Ours is valid
//! for less, begins in the past because clocks differ, and is renewed while it still is valid. The operator's certificate, if there is one, stays with
//! HTTP and WebSockets, over which the hash is told: over QUIC browsers accept no authority that a company or a test has made itself.

use std::io;
use std::time::Duration;

use wtransport::Identity;
use wtransport::tls::self_signed::time::OffsetDateTime;

/// A new certificate, and the hash that browsers accept it by.
pub(super) fn self_signed() -> io::Result<(Identity, [u8; 32])> {
    let from = OffsetDateTime::now_utc() - BEGINS_BEFORE;
    let identity = Identity::self_signed_builder()
        .subject_alt_names(["localhost", "127.0.0.1", "::1"])
        .validity_period(from, from + VALID_FOR)
        .build()
        .map_err(|error| io::Error::other(format!("a certificate for WebTransport: {error}")))?;
    let hash = hash(&identity)?;
    Ok((identity, hash))
}

fn hash(identity: &Identity) -> io::Result<[u8; 32]> {
    let first = identity.certificate_chain().as_slice().first();
    let none = || io::Error::other("a certificate chain without a certificate");
    Ok(*first.ok_or_else(none)?.hash().as_ref())
}

/// The time after which a certificate is replaced.
pub(super) const RENEW_AFTER: Duration = Duration::from_secs(6 * DAY_S);
/// A browser whose clock is up to a day slow accepts a new certificate.
const BEGINS_BEFORE: Duration = Duration::from_secs(DAY_S);
/// A day less than the two weeks that browsers allow.
const VALID_FOR: Duration = Duration::from_secs(13 * DAY_S);
const DAY_S: u64 = 24 * 60 * 60;
