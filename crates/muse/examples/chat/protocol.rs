//! What is said in the chat, and how each kind of it travels.

use muse::prelude::*;

/// How the kinds of things said begin, in the order of their channels.
pub(crate) const STARTS: [&str; 6] = ["", "/topic ", "/like ", "/typing ", "/wave ", HUM];
pub(crate) const SAY: u8 = 0;
pub(crate) const HUM: &str = "/hum ";

/// The channels, one for each kind.
pub(crate) fn channels() -> Result<Config, muse::ConfigError> {
    let deliveries = [
        Delivery::ReliableOrdered,   // what people say: everything, in order
        Delivery::ReliableSequenced, // the topic: only the last one matters, but it must arrive
        Delivery::ReliableUnordered, // a like must arrive, and waits for nothing
        Delivery::Sequenced,         // that somebody is typing is worthless when late
        Delivery::Unreliable,        // a wave is nice if it arrives
        Delivery::partially_reliable(10, 80)?, // a tune: in order, of ten notes at least eight
    ];
    let channels = deliveries.map(ChannelConfig::new).into_iter();
    Ok(channels.fold(Config::new(0x6368_6174), Config::channel))
}

/// What a client calls itself: the first thing it says.
#[derive(Message)]
#[message(id = 1)]
pub(crate) struct Join {
    #[field(max = 40)]
    pub(crate) name: String,
}

/// Something said. The server fills in who said it: what clients claim is not believed.
#[derive(Message)]
#[message(id = 2)]
pub(crate) struct Line {
    #[field(max = 40)]
    pub(crate) who: String,
    #[field(max = 500)]
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(who: &str, text: &str) -> Self {
        Self {
            who: who.into(),
            text: text.into(),
        }
    }
}
