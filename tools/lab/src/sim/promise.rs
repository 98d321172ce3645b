//! The promises of each delivery mode, checked message by message on either side of every connection.

use std::collections::BTreeSet;

use muse::{Channel, Protocol};
use muse_transport::{ChannelConfig, Config, ConfigError, Delivery};
use muse_wire::Duration;

use super::aid::Plant;

/// The protocol of both sides, with its channels: the netcode's, one of each mode that promises something, and the game's.
#[derive(Clone, Debug)]
pub(super) struct Agreement {
    pub(super) protocol: Protocol,
    pub(super) config: Config,
    /// By number, from [`ORDERED`] on.
    channels: Vec<Channel>,
}

impl Agreement {
    pub(super) fn new() -> Result<Self, ConfigError> {
        let mut protocol = Protocol::with_id("lab", PROTOCOL).configure(|config| {
            config
                .keep_alive(Duration::from_millis(700))
                .silence(SILENCE)
                .resume_within(RESUME)
        });
        let deliveries = [
            Delivery::ReliableOrdered,
            Delivery::ReliableUnordered,
            Delivery::partially_reliable(WINDOW as u16, PERCENT as u8)?,
            Delivery::Sequenced,
            Delivery::ReliableOrdered,
        ];
        let add = |delivery| protocol.add_channel(ChannelConfig::new(delivery));
        Ok(Self {
            channels: deliveries.map(add).to_vec(),
            config: protocol.config().build()?,
            protocol,
        })
    }

    /// Returns the channel with this number.
    pub(super) fn channel(&self, number: u8) -> Channel {
        self.channels[usize::from(number - ORDERED)]
    }
}

/// The channels on which something is said when it is this turn.
pub(super) const fn turns(turn: u32) -> &'static [u8] {
    match turn % 3 {
        0 => &[ORDERED, PARTIAL],
        1 => &[ORDERED, UNORDERED],
        _ => &[PARTIAL, SEQUENCED],
    }
}

/// Numbers of the messages that one side has sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    next: [u32; CHANNELS],
}

impl Sent {
    /// The next message on a channel, which says its number and, last of all, how many there were on the others.
    pub(super) fn message(&mut self, channel: u8, is_last: bool) -> Vec<u8> {
        let number = &mut self.next[usize::from(channel)];
        let mut payload = number.to_le_bytes().to_vec();
        *number += 1;
        if is_last {
            payload.extend(self.next[usize::from(UNORDERED)].to_le_bytes());
        } else {
            // Lengths differ, so that packets are filled in many ways.
            payload.resize(5 + (*number * 37 % 90) as usize, 7);
        }
        payload
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.next.iter().map(|next| u64::from(*next)).sum()
    }
}

/// The messages that one side has received.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    ordered: u32,
    /// Everything below has come, and these above.
    unordered: u32,
    unordered_above: BTreeSet<u32>,
    partial: u32,
    /// Of the window that is being received.
    partial_in_window: u32,
    sequenced: Option<u32>,
    /// Messages of the unordered channel that there were, as the last message says.
    last: Option<u32>,
    count: u64,
}

impl Received {
    /// Takes a message, or says which promise it breaks. The planted bug is here: it loses a reliable message now and then.
    pub(super) fn take(
        &mut self,
        channel: u8,
        payload: &[u8],
        plant: &mut Plant,
    ) -> Result<(), String> {
        let Some((head, rest)) = payload.split_first_chunk::<4>() else {
            return Err(format!(
                "a message of {} bytes on channel {channel}",
                payload.len()
            ));
        };
        let number = u32::from_le_bytes(*head);
        if matches!(channel, ORDERED | UNORDERED) && plant.loses() {
            return Ok(());
        }
        self.count += 1;
        match channel {
            ORDERED => {
                if number != self.ordered {
                    let wanted = self.ordered;
                    return Err(format!(
                        "reliable ordered: message {number} instead of {wanted}"
                    ));
                }
                self.ordered += 1;
                if let (Some(total), 4) = (rest.first_chunk::<4>(), rest.len()) {
                    self.last = Some(u32::from_le_bytes(*total));
                }
            }
            UNORDERED => {
                if number < self.unordered || !self.unordered_above.insert(number) {
                    return Err(format!("reliable unordered: message {number} twice"));
                }
                while self.unordered_above.remove(&self.unordered) {
                    self.unordered += 1;
                }
            }
            PARTIAL => self.take_partial(number)?,
            SEQUENCED => {
                if self.sequenced >= Some(number) {
                    let last = self.sequenced;
                    return Err(format!("sequenced: message {number} after {last:?}"));
                }
                self.sequenced = Some(number);
            }
            _ => return Err(format!("a message on channel {channel}, which is not used")),
        }
        Ok(())
    }

    fn take_partial(&mut self, number: u32) -> Result<(), String> {
        if number < self.partial {
            return Err(format!("partially reliable: message {number} out of order"));
        }
        let (window, last) = (number / WINDOW, self.partial / WINDOW);
        if window > last {
            let all = self.partial_in_window;
            // Whole windows that were passed without a message break the promise, too.
            if all * 100 < WINDOW * PERCENT || window > last + 1 {
                return Err(format!(
                    "partially reliable: {all} of {WINDOW} messages before {number}, {PERCENT} % are promised"
                ));
            }
            self.partial_in_window = 0;
        }
        self.partial = number + 1;
        self.partial_in_window += 1;
        if self.partial.is_multiple_of(WINDOW) {
            // The next message is of the next window.
            let all = self.partial_in_window;
            if all * 100 < WINDOW * PERCENT {
                return Err(format!("partially reliable: {all} of {WINDOW} messages"));
            }
            self.partial_in_window = 0;
        }
        Ok(())
    }

    /// The connection was closed after everything reliable had arrived: has it?
    pub(super) fn close(&self) -> Result<(), String> {
        let Some(total) = self.last else {
            return Err("closed in order, but the last message has not come".to_owned());
        };
        if self.unordered != total || !self.unordered_above.is_empty() {
            return Err(format!(
                "closed in order, but {} of {total} reliable unordered messages have come",
                self.unordered + self.unordered_above.len() as u32
            ));
        }
        Ok(())
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

pub(super) const ORDERED: u8 = 1;
const UNORDERED: u8 = 2;
const PARTIAL: u8 = 3;
const SEQUENCED: u8 = 4;
/// Messages of the game itself.
pub(super) const GAME: u8 = 5;
const CHANNELS: usize = 5;
/// Of the partially reliable channel: at least so many per cent of each window arrive.
const WINDOW: u32 = 20;
const PERCENT: u32 = 90;
pub(super) const PROTOCOL: u64 = 0x51;
/// After this much of it the other side is looked for.
pub(super) const SILENCE: Duration = Duration::from_secs(3);
/// And for this long.
pub(super) const RESUME: Duration = Duration::from_secs(12);

#[cfg(test)]
mod tests {
    use super::*;

    fn take(received: &mut Received, channel: u8, number: u32) -> Result<(), String> {
        received.take(channel, &number.to_le_bytes(), &mut Plant::none())
    }

    #[test]
    fn kept_promises_are_kept() {
        let (mut sent, mut received) = (Sent::default(), Received::default());
        let mut plant = Plant::none();
        for channel in [ORDERED, UNORDERED, PARTIAL, SEQUENCED] {
            for _ in 0..100 {
                let message = sent.message(channel, false);
                received.take(channel, &message, &mut plant).expect("kept");
            }
        }
        assert!(received.close().is_err(), "the last message is missing");
        let last = sent.message(ORDERED, true);
        received.take(ORDERED, &last, &mut plant).expect("kept");
        assert_eq!(received.close(), Ok(()));
        assert_eq!(received.count(), sent.count());
    }

    #[test]
    fn broken_promises_are_found() {
        let mut received = Received::default();
        assert!(take(&mut received, ORDERED, 1).is_err(), "a gap");
        let mut received = Received::default();
        take(&mut received, UNORDERED, 4).expect("any order");
        assert!(take(&mut received, UNORDERED, 4).is_err(), "twice");
        let mut received = Received::default();
        take(&mut received, SEQUENCED, 4).expect("gaps are allowed");
        assert!(take(&mut received, SEQUENCED, 3).is_err(), "older");
        let mut received = Received::default();
        let mut arrived = (0..WINDOW).filter(|number| number % 7 != 3);
        let broken = arrived.any(|number| take(&mut received, PARTIAL, number).is_err());
        assert!(broken, "17 of 20 where 18 are promised");
    }
}
