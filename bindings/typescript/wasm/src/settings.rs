//! The settings of a connection, put together call by call.

use muse::{ChannelConfig, Config, Delivery, Duration, Priority, Repair};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::TIMEOUT;

/// Protocol, shared lines and channels: the same as the server's, which is checked at connect.
#[wasm_bindgen]
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    timeout: Duration,
}

#[wasm_bindgen]
impl Settings {
    /// Settings for the game with this protocol id.
    #[wasm_bindgen(constructor)]
    pub fn new(protocol: u64) -> Settings {
        Self {
            config: Config::new(protocol),
            timeout: TIMEOUT,
        }
    }

    /// Adds lines that both sides must share; a client that differs is told which do.
    pub fn shared(&mut self, lines: &str) {
        self.config = self.config.clone().shared(lines);
    }

    /// Adds a channel: `unreliable`, `sequenced`, `reliable-unordered`, `reliable-sequenced`, `reliable-ordered`, or `partially-reliable` with a window
    /// and a per cent; repair `frugal`, `balanced` or `fast`; priority `urgent`, `high`, `normal` or `low`.
    pub fn channel(
        &mut self,
        delivery: &str,
        window: u16,
        percent: u8,
        repair: &str,
        priority: &str,
    ) -> Result<(), String> {
        let delivery = match delivery {
            "unreliable" => Delivery::Unreliable,
            "sequenced" => Delivery::Sequenced,
            "reliable-unordered" => Delivery::ReliableUnordered,
            "reliable-sequenced" => Delivery::ReliableSequenced,
            "reliable-ordered" => Delivery::ReliableOrdered,
            "partially-reliable" => {
                let partial = Delivery::partially_reliable(window, percent);
                partial.map_err(|error| error.to_string())?
            }
            other => return Err(format!("there is no delivery {other:?}")),
        };
        let repair = match repair {
            "frugal" => Repair::Frugal,
            "balanced" => Repair::Balanced,
            "fast" => Repair::Fast,
            other => return Err(format!("there is no repair {other:?}")),
        };
        let priority = match priority {
            "urgent" => Priority::Urgent,
            "high" => Priority::High,
            "normal" => Priority::Normal,
            "low" => Priority::Low,
            other => return Err(format!("there is no priority {other:?}")),
        };
        let channel = ChannelConfig::new(delivery)
            .repair(repair)
            .priority(priority);
        self.config = self.config.clone().channel(channel);
        Ok(())
    }

    /// Sets the time after which a silent connection sends a packet, in milliseconds.
    pub fn keep_alive(&mut self, ms: u32) {
        let interval = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().keep_alive(interval);
    }

    /// Sets the silence after which the connection counts as interrupted, in milliseconds.
    pub fn silence(&mut self, ms: u32) {
        let silence = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().silence(silence);
    }

    /// Sets the time within which an interrupted connection may come back, in milliseconds.
    pub fn resume_within(&mut self, ms: u32) {
        let time = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().resume_within(time);
    }

    /// Sets the length of the longest message, in bytes.
    pub fn message_max(&mut self, bytes: u32) {
        self.config = self.config.clone().message_max(bytes as usize);
    }

    /// Sets the time after which an attempt to connect is given up, in milliseconds.
    pub fn connect_within(&mut self, ms: u32) {
        self.timeout = Duration::from_millis(u64::from(ms));
    }
}

impl Settings {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn into_config(self) -> Result<Config, String> {
        self.config.build().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delivery_has_a_name_and_others_are_refused() {
        let mut settings = Settings::new(1);
        for delivery in [
            "unreliable",
            "sequenced",
            "reliable-unordered",
            "reliable-sequenced",
            "reliable-ordered",
            "partially-reliable",
        ] {
            let added = settings.channel(delivery, 10, 80, "balanced", "normal");
            assert_eq!(added, Ok(()), "{delivery}");
        }
        let wrong = settings.channel("soon", 0, 0, "balanced", "normal");
        assert_eq!(wrong, Err("there is no delivery \"soon\"".to_owned()));
        assert!(
            settings
                .channel("sequenced", 0, 0, "dear", "normal")
                .is_err()
        );
        let config = settings.into_config().expect("six sensible channels");
        assert_eq!(config.channels().len(), 6);
    }
}
