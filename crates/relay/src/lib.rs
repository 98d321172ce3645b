//! Relays for Muse traffic (relay v2): players behind routers meet, and leave the relay when they can.
//!
//! A host opens a *room* with a key that it generated; the room's [`RoomCode`] follows from the key. Guests join by the code, and learn the host's public key
//! by a secret that is told with it ([`ShortCode`]) or from a link ([`Invitation`]). The relay
//! then passes their datagrams on by the [`LegId`] in front of them. What is in the datagrams is the transport's, sealed end to end: the
//! relay holds no key, cannot read them, and what it forged would not be taken. It keeps addresses and counters.
//!
//! - [`Relay`] is the relay itself, a [`Machine`](muse_wire::Machine).
//! - [`Link`] is the side of a host or a guest, and [`Relayed`] puts it under any machine, the transport's endpoint above all: joined
//!   through a relay or directly, the application sees the same connection. It also finds a direct way, with the relay as the
//!   place where both meet, and falls back to the relay when that way ends.
//! - [`Survey`] measures the round trips to several relays, [`choose`] picks the one that suits everybody.
//! - [`lan`] finds hosts on the same local network without any relay.
//!
//! The bytes are in `docs/relay-v2.md`.

mod code;
mod cookie;
pub mod lan;
mod limits;
mod link;
mod nearest;
pub mod packet;
mod rate;
mod relay;
mod short_code;
mod stats;
mod succession;
mod survey;
mod through;

pub use code::{CodeError, Invitation, RoomCode, RoomKey};
pub use limits::Limits;
pub use link::{Link, LinkEvent, LinkState};
pub use nearest::{Report, choose};
pub use packet::{LegId, Refusal};
pub use relay::{HostTokens, MasterKey, Relay, host_token_issuer};
pub use short_code::{
    CODE_PACKET_LEN_MAX, CodePacket, CodeRefusal, CodeSecret, Denial, KeyGiver, KeyTaker, ShortCode,
};
pub use stats::Stats;
pub use survey::{RELAYS_MAX, Survey};
pub use through::{Relayed, Through};
