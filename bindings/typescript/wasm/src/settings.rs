//! What a connection is to be like, put together call by call.

use muse_transport::{ChannelConfig, Config, Delivery, Priority, Repair};
use muse_wire::Duration;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::TIMEOUT;

/// Protocol, schema and channels: the same as the server's, which is checked at connect.
#[wasm_bindgen]
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    timeout: Duration,
}

#[wasm_bindgen]
impl Settings {
    /// For the game with this number.
    #[wasm_bindgen(constructor)]
    pub fn new(protocol: u64) -> Settings {
        Self {
            config: Config::new(protocol),
            timeout: TIMEOUT,
        }
    }

    /// What messages look like, as a number.
    pub fn schema(&mut self, hash: u64) {
        self.config = self.config.clone().schema(hash);
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

    /// A packet goes at least this often, in milliseconds.
    pub fn keep_alive(&mut self, ms: u32) {
        let interval = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().keep_alive(interval);
    }

    /// The connection counts as interrupted after so much silence, in milliseconds.
    pub fn silence(&mut self, ms: u32) {
        let silence = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().silence(silence);
    }

    /// It may come back within this time, in milliseconds.
    pub fn resume_within(&mut self, ms: u32) {
        let time = Duration::from_millis(u64::from(ms));
        self.config = self.config.clone().resume_within(time);
    }

    /// Longest message, in bytes.
    pub fn message_max(&mut self, bytes: u32) {
        self.config = self.config.clone().message_max(bytes as usize);
    }

    /// An attempt to connect is given up after this time, in milliseconds.
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
