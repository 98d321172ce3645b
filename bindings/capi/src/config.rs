//! Channels and settings as C structures in which zero means the default.

use std::ffi::c_char;

use muse::Duration;
use muse::transport::congestion::Congestion;
use muse::transport::{ChannelConfig, Config, Delivery, Priority, Repair};

use crate::memory;
use crate::status::{Failure, MuseStatus};

/// The delivery mode of a channel.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseDelivery {
    /// At most once, in any order.
    Unreliable = 0,
    /// At most once, never older than what was delivered before.
    Sequenced = 1,
    /// Exactly once, in any order, as soon as it arrives.
    ReliableUnordered = 2,
    /// The newest surely arrives, older ones may be skipped.
    ReliableSequenced = 3,
    /// Exactly once, in the order sent.
    ReliableOrdered = 4,
    /// In order, and of each window of messages at least a promised share arrives.
    PartiallyReliable = 5,
}

/// The price that a reliable channel pays for low latency under loss.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseRepair {
    /// Parity over recent packets, up to 42 % extra bytes. The default.
    Balanced = 0,
    /// Nothing extra on first transmission.
    Frugal = 1,
    /// Parity with every packet, up to 114 % extra bytes.
    Fast = 2,
}

/// The urgency of a message.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MusePriority {
    /// That of the channel; of a channel, normal.
    Default = 0,
    /// Before everything else.
    Urgent = 1,
    /// Before what is normal.
    High = 2,
    /// As usual.
    Normal = 3,
    /// When nothing else waits.
    Low = 4,
}

/// One channel. All zero is an unreliable channel with the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseChannel {
    /// A MuseDelivery.
    pub delivery: u8,
    /// A MuseRepair.
    pub repair: u8,
    /// A MusePriority.
    pub priority: u8,
    /// Share of the bandwidth beside channels of the same priority, 1 to 255; 0 for 16.
    pub weight: u8,
    /// Partially reliable: messages in a window.
    pub window: u16,
    /// Partially reliable: how many of a hundred arrive at least.
    pub percent: u8,
    /// 0.
    pub reserved: u8,
    /// Bytes that may wait before sending fails; 0 for 8 MiB.
    pub queue_bytes: u32,
    /// Messages that may wait before sending fails; 0 for 32,768.
    pub queue_messages: u32,
}

/// The settings that both sides of a connection agree on, and limits. 0 is the default of every field but `channels`; times are microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseConfig {
    /// A number that other games do not use.
    pub protocol: u64,
    /// Everything else that both sides must share, a line of text for each thing ("7 Say { text: text max 100 }\ntick rate 50"), with a zero
    /// at the end; null for nothing. It is compared at connect, and a client that differs is refused and told the lines that do
    /// (MUSE_REFUSAL_SCHEMA). The order of lines does not matter; lines with the same first two words, or the same number at the front,
    /// are taken for the same thing. Anybody can read it. A server in Rust has the lines of its messages in `Protocol::describe`.
    pub shared: *const c_char,
    /// The channels, numbered from 0 in this order; the same on both sides.
    pub channels: *const MuseChannel,
    /// Number of channels, 1 to 256.
    pub channel_count: usize,
    /// Largest message in bytes; 0 for 16 MiB.
    pub message_max: u64,
    /// Longest time that an acknowledgement waits; 0 for 50 ms.
    pub ack_delay_us: u64,
    /// A silent connection pings this often; 0 for 2 s.
    pub keep_alive_us: u64,
    /// Nothing heard for this long interrupts a connection; 0 for 6 s.
    pub silence_us: u64,
    /// An interrupted connection may come back within this time; 0 for 30 s.
    pub resume_within_us: u64,
    /// Connections at once; 0 for 16,384.
    pub connections_max: u64,
    /// A fixed rate in bytes a second instead of congestion control, for links that are not shared; 0 for congestion control.
    pub fixed_rate: u64,
}

impl MuseConfig {
    /// Builds the config that this describes.
    ///
    /// # Safety
    /// `channels` is null, or `channel_count` channels can be read there; `shared` is null or a text that ends with a zero.
    pub(crate) unsafe fn build(&self) -> Result<Config, Failure> {
        // SAFETY: as this function demands; a MuseChannel is valid whatever its bits.
        let (channels, shared) = unsafe {
            (
                memory::items(self.channels, self.channel_count)?,
                memory::optional_text(self.shared)?,
            )
        };
        let mut config = Config::new(self.protocol).shared(shared);
        for channel in channels {
            config = config.channel(channel.build()?);
        }
        let (size, time) = (
            |size| usize::try_from(size).unwrap_or(usize::MAX),
            Duration::from_micros,
        );
        config = given(config, size(self.message_max), Config::message_max);
        config = given(config, time(self.ack_delay_us), Config::ack_delay);
        config = given(config, time(self.keep_alive_us), Config::keep_alive);
        config = given(config, time(self.silence_us), Config::silence);
        config = given(config, time(self.resume_within_us), Config::resume_within);
        config = given(config, size(self.connections_max), Config::connections_max);
        config = given(config, self.fixed_rate, |config, rate| {
            config.congestion(Congestion::fixed(rate))
        });
        config.build().map_err(Failure::of(MuseStatus::ErrorConfig))
    }
}

impl MuseChannel {
    fn build(&self) -> Result<ChannelConfig, Failure> {
        let delivery = match self.delivery {
            0 => Delivery::Unreliable,
            1 => Delivery::Sequenced,
            2 => Delivery::ReliableUnordered,
            3 => Delivery::ReliableSequenced,
            4 => Delivery::ReliableOrdered,
            5 => Delivery::partially_reliable(self.window, self.percent)
                .map_err(Failure::of(MuseStatus::ErrorConfig))?,
            _ => return Err(Failure::argument("no such MuseDelivery")),
        };
        let repair = match self.repair {
            0 => Repair::Balanced,
            1 => Repair::Frugal,
            2 => Repair::Fast,
            _ => return Err(Failure::argument("no such MuseRepair")),
        };
        let mut channel = ChannelConfig::new(delivery).repair(repair);
        if let Some(priority) = priority(self.priority)? {
            channel = channel.priority(priority);
        }
        channel = given(channel, self.weight, ChannelConfig::weight);
        channel = given(
            channel,
            self.queue_bytes as usize,
            ChannelConfig::queue_bytes,
        );
        channel = given(
            channel,
            self.queue_messages as usize,
            ChannelConfig::queue_messages,
        );
        Ok(channel)
    }
}

/// Sets an option, unless C gave 0, which stands for the default.
pub(crate) fn given<O, V: Default + PartialEq>(
    options: O,
    value: V,
    set: impl FnOnce(O, V) -> O,
) -> O {
    match value == V::default() {
        true => options,
        false => set(options, value),
    }
}

/// A [`MusePriority`]; none for the default.
pub(crate) fn priority(number: u8) -> Result<Option<Priority>, Failure> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Priority::Urgent)),
        2 => Ok(Some(Priority::High)),
        3 => Ok(Some(Priority::Normal)),
        4 => Ok(Some(Priority::Low)),
        _ => Err(Failure::argument("no such MusePriority")),
    }
}
