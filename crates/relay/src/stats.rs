//! Counts of a relay.

/// Counters of a [`Relay`](super::Relay) since it began. Every datagram for other players is counted once, under `packets_in` or a cause for which it was
/// dropped; every other one under `control_in` or `malformed`, and what became of it beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams taken to be passed on.
    pub packets_in: u64,
    /// Their bytes, with the relay's header.
    pub bytes_in: u64,
    /// Datagrams passed on.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Other packets that were understood.
    pub control_in: u64,
    /// Datagrams that are no packets of this protocol.
    pub malformed: u64,
    /// Datagrams for ids that do not exist.
    pub unknown: u64,
    /// Datagrams beyond the rate of their guest, or of their room or the relay and beyond their share of it.
    pub limited: u64,
    /// Datagrams that came while too many waited to be sent.
    pub overflowed: u64,
    /// Requests whose cookie was not good.
    pub unproven: u64,
    /// Requests beyond the rate of their address, packets for the relay beyond the rate of their guest or room, and answers to strangers and checks of tokens
    /// beyond the relay's.
    pub throttled: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Rooms that were opened.
    pub rooms_opened: u64,
    /// Rooms that a host closed.
    pub rooms_closed: u64,
    /// Rooms whose host fell silent.
    pub rooms_expired: u64,
    /// Guests that joined.
    pub guests_joined: u64,
    /// Guests that left, or whose room was closed.
    pub guests_left: u64,
    /// Guests that fell silent.
    pub guests_expired: u64,
    /// Guests that their host banned.
    pub guests_banned: u64,
    /// Proven changes of address.
    pub moves: u64,
    /// Times that a host and a guest were told each other's addresses.
    pub introductions: u64,
    /// Ways that became direct.
    pub directs: u64,
    /// Rooms that a host's heir took over.
    pub successions: u64,
}
