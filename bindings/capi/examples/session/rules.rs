//! The rules that both sides of the session share.

use muse::Duration;
use muse::transport::{ChannelConfig, Config, ConfigError, Delivery};

pub(crate) const ORDERED: u8 = 4;
pub(crate) const CHANNELS: usize = 6;
/// Numbered messages on each channel.
pub(crate) const NUMBERS: u32 = 200;
/// Messages sent while the connection is cut.
pub(crate) const AFTER: u32 = 10;
/// Bytes of the large message behind its first byte.
pub(crate) const LARGE: usize = 1 << 20;
pub(crate) const WINDOW: u16 = 10;
pub(crate) const PERCENT: u8 = 80;

/// First bytes of messages: a number, a large message, and words of the script.
pub(crate) const NUMBER: u8 = b'N';
pub(crate) const BULK: u8 = b'L';
pub(crate) const REPORT: u8 = b'R';
pub(crate) const CUT: u8 = b'C';
pub(crate) const HELLO: u8 = b'H';
/// First byte of an answer in words.
pub(crate) const TEXT: u8 = b'T';

/// Lines that both sides must share besides the channels; a client that differs is told which.
pub(crate) const SHARED: &str = "session rules 1\nlarge message 1048577 bytes";

/// The number of the game.
pub(crate) const GAME: u64 = 0x6D75_7365_0009;
/// Channels that the plugin for Bevy has in front of a game's own.
pub(crate) const FRONT: [Delivery; 2] = [Delivery::Unreliable, Delivery::ReliableOrdered];

/// The transport with so many channels in front of those of the session.
pub(crate) fn config(front: &[Delivery]) -> Result<Config, ConfigError> {
    let front = front.iter().map(|delivery| ChannelConfig::new(*delivery));
    let mut config = front
        .fold(Config::new(GAME), Config::channel)
        .shared(SHARED)
        .keep_alive(Duration::from_millis(100))
        .silence(Duration::from_millis(300))
        .resume_within(Duration::from_secs(20));
    for delivery in [
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableSequenced,
        Delivery::ReliableOrdered,
        Delivery::partially_reliable(WINDOW, PERCENT)?,
    ] {
        config = config.channel(ChannelConfig::new(delivery));
    }
    config.build()
}

/// A numbered message: 24 bytes.
pub(crate) fn numbered(number: u32) -> [u8; 24] {
    let mut message = [number as u8; 24];
    message[0] = NUMBER;
    message[1..5].copy_from_slice(&number.to_le_bytes());
    message
}

pub(crate) fn number_of(message: &[u8]) -> Option<u32> {
    let (&first, rest) = message.split_first()?;
    let number = u32::from_le_bytes(*rest.first_chunk()?);
    (first == NUMBER && message == numbered(number)).then_some(number)
}

/// The large message of one side.
pub(crate) fn bulk(mut seed: u32) -> Vec<u8> {
    let mut message = vec![BULK];
    for _ in 0..LARGE {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        message.push((seed >> 24) as u8);
    }
    message
}

/// FNV-1a with 64 bits, as `docs/schema.md` has it.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The numbers that arrived on the six channels, and the lines that say so.
#[derive(Default)]
pub(crate) struct Arrivals {
    channels: [Vec<u32>; CHANNELS],
}

impl Arrivals {
    pub(crate) fn add(&mut self, channel: u8, number: u32) {
        if let Some(numbers) = self.channels.get_mut(usize::from(channel)) {
            numbers.push(number);
        }
    }

    /// Returns true once everything that must come has come. An echo of a partially reliable channel loses once more.
    pub(crate) fn is_complete(&self, echo: bool) -> bool {
        let whole = NUMBERS as usize;
        let partial = match echo {
            true => self.channels[5].len() >= whole / 2,
            false => self.windows_hold(),
        };
        self.channels[2].len() >= whole
            && self.channels[3].last() == Some(&(NUMBERS - 1))
            && self.channels[4].len() >= whole
            && partial
    }

    /// Of each aligned window as many as promised.
    fn windows_hold(&self) -> bool {
        let window = u32::from(WINDOW);
        (0..NUMBERS / window).all(|index| {
            let inside = self.channels[5].iter().filter(|n| **n / window == index);
            inside.count() >= usize::from(WINDOW) * usize::from(PERCENT) / 100
        })
    }

    pub(crate) fn lines(&self, echo: bool) -> Vec<String> {
        let whole = NUMBERS as usize;
        let [unreliable, sequenced, unordered, newest, ordered, partial] = &self.channels;
        let good = |good: bool| if good { "ok" } else { "broken" };
        let ascending = |numbers: &[u32]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
        let each_once = |numbers: &[u32]| {
            let mut sorted = numbers.to_vec();
            sorted.sort_unstable();
            ascending(&sorted)
        };
        let in_order = ordered.iter().copied().eq(0..NUMBERS);
        vec![
            format!(
                "unreliable: none twice, most there: {}",
                good(each_once(unreliable) && unreliable.len() > whole / 2)
            ),
            format!("sequenced: ascending: {}", good(ascending(sequenced))),
            format!(
                "reliable unordered: {} of {NUMBERS}, each once: {}",
                unordered.len(),
                good(each_once(unordered))
            ),
            format!(
                "reliable sequenced: ascending up to {}: {}",
                newest.last().copied().unwrap_or(0),
                good(ascending(newest))
            ),
            format!(
                "reliable ordered: {} of {NUMBERS} in order: {}",
                ordered.len(),
                good(in_order)
            ),
            format!(
                "partially reliable: ascending, as many as promised: {}",
                good(ascending(partial) && (echo || self.windows_hold()))
            ),
        ]
    }
}
