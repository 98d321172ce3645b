//! Rules of named queues, as operators write them.

use std::collections::BTreeMap;

use muse_wire::Duration;
use serde::Deserialize;

use super::MatchingConfig;

/// The queues that have rules of their own, by name: players ask for one by [`Preferences::queue`](muse_master_client::Preferences::queue).
///
/// In a file each queue is a table; what it does not say is as in the queue for everybody else:
///
/// ```
/// use muse_master::matching::QueueRules;
/// let rules = QueueRules::parse("
///     [ranked]
///     players = 2
///     rating_start = 50
///     rating_per_second = 10
///     latency_max_ms = 120
///
///     [casual]
///     players = 8
///     anything_after_seconds = 5
///     bots_after_seconds = 20
/// ")?;
/// assert_eq!(rules.names().collect::<Vec<_>>(), ["casual", "ranked"]);
/// # Ok::<(), muse_master::matching::RulesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct QueueRules {
    queues: BTreeMap<String, Rules>,
}

/// A mistake in a file of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It is not TOML, or says something that no queue has.
    #[error("{0}")]
    Syntax(String),
    /// A value is out of its range.
    #[error("queue {queue:?}: {option} is from {least} to {most}")]
    Range {
        /// The queue.
        queue: String,
        /// The option.
        option: &'static str,
        /// Its least value.
        least: u32,
        /// Its greatest value.
        most: u32,
    },
    /// There are more queues than a master keeps apart.
    #[error("there are {0} queues, and at most {QUEUES_MAX} are allowed")]
    TooMany(usize),
    /// Nobody could ask for a queue of this name.
    #[error("queue {0:?}: a name has 1 to {NAME_BYTES_MAX} bytes")]
    Name(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    players: Option<u8>,
    rating_start: Option<f64>,
    rating_per_second: Option<f64>,
    latency_start_ms: Option<f64>,
    latency_ms_per_second: Option<f64>,
    latency_max_ms: Option<u16>,
    anything_after_seconds: Option<f64>,
    bots_after_seconds: Option<f64>,
}

impl QueueRules {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It says where it is not TOML, names something that no queue has, or has a value out of its range.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let rules: Self =
            toml::from_str(text).map_err(|error| RulesError::Syntax(error.to_string()))?;
        if rules.queues.len() > QUEUES_MAX {
            return Err(RulesError::TooMany(rules.queues.len()));
        }
        for (name, queue) in &rules.queues {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(RulesError::Name(name.clone()));
            }
            queue.check(name)?;
        }
        Ok(rules)
    }

    /// The names of the queues.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// The options of a queue, on top of those of the queue for everybody else; none if it has no rules.
    pub fn config(&self, name: &str, general: &MatchingConfig) -> Option<MatchingConfig> {
        let rules = self.queues.get(name)?;
        let mut config = general.clone();
        config.size = rules.players;
        set(&mut config.rating_start, rules.rating_start);
        set(&mut config.rating_per_second, rules.rating_per_second);
        set(&mut config.latency_start_ms, rules.latency_start_ms);
        set(
            &mut config.latency_ms_per_second,
            rules.latency_ms_per_second,
        );
        set(
            &mut config.anything_after,
            rules.anything_after_seconds.map(seconds),
        );
        config.latency_max_ms = rules.latency_max_ms.or(config.latency_max_ms);
        if let Some(after) = rules.bots_after_seconds {
            config.bots_after = (after > 0.0).then(|| seconds(after));
        }
        Some(config)
    }
}

impl Rules {
    fn check(&self, queue: &str) -> Result<(), RulesError> {
        let players = self.players.map(f64::from);
        let latency_max_ms = self.latency_max_ms.map(f64::from);
        let ranges = [
            ("players", players, 1, PLAYERS_MAX),
            ("rating_start", self.rating_start, 0, RATING_MAX),
            ("rating_per_second", self.rating_per_second, 0, RATING_MAX),
            ("latency_start_ms", self.latency_start_ms, 0, LATENCY_MS_MAX),
            (
                "latency_ms_per_second",
                self.latency_ms_per_second,
                0,
                LATENCY_MS_MAX,
            ),
            ("latency_max_ms", latency_max_ms, 1, LATENCY_MS_MAX),
            (
                "anything_after_seconds",
                self.anything_after_seconds,
                0,
                SECONDS_MAX,
            ),
            (
                "bots_after_seconds",
                self.bots_after_seconds,
                0,
                SECONDS_MAX,
            ),
        ];
        for (option, value, least, most) in ranges {
            let range = f64::from(least)..=f64::from(most);
            if value.is_some_and(|value| !range.contains(&value)) {
                return Err(RulesError::Range {
                    queue: queue.to_owned(),
                    option,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

fn set<T>(value: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *value = said;
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

/// Queues with rules of their own.
const QUEUES_MAX: usize = 64;
/// Longest name: as long as a player's choice may be.
const NAME_BYTES_MAX: usize = 32;
const PLAYERS_MAX: u32 = 64;
const RATING_MAX: u32 = 10_000;
const LATENCY_MS_MAX: u32 = 10_000;
const SECONDS_MAX: u32 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_queue_does_not_say_is_as_for_everybody_else() {
        let rules = QueueRules::parse("[ranked]\nplayers = 4\nrating_start = 30").expect("rules");
        let general = MatchingConfig::default().bots_after(Some(Duration::from_secs(9)));
        let ranked = rules.config("ranked", &general).expect("it has rules");
        assert_eq!((ranked.size, ranked.rating_start), (Some(4), 30.0));
        assert_eq!(ranked.rating_per_second, general.rating_per_second);
        assert_eq!(ranked.bots_after, general.bots_after);
        assert!(rules.config("casual", &general).is_none());
        let never = QueueRules::parse("[ranked]\nbots_after_seconds = 0").expect("rules");
        let never = never.config("ranked", &general).expect("it has rules");
        assert_eq!(never.bots_after, None);
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let unknown = QueueRules::parse("[ranked]\nplayer = 4").expect_err("no such option");
        let text = unknown.to_string();
        assert!(
            text.contains("line 2") && text.contains("`players`"),
            "{text}"
        );
        let range = QueueRules::parse("[ranked]\nplayers = 65").expect_err("too many");
        let text = "queue \"ranked\": players is from 1 to 64";
        assert_eq!(range.to_string(), text);
        for wrong in [
            "[ranked]\nrating_start = nan",
            "[ranked]\nrating_per_second = -1",
            "[ranked]\nanything_after_seconds = inf",
            "[\"\"]",
            "ranked = 4",
        ] {
            assert!(QueueRules::parse(wrong).is_err(), "{wrong}");
        }
        let many: String = (0..65).map(|n| format!("[q{n}]\n")).collect();
        assert_eq!(QueueRules::parse(&many), Err(RulesError::TooMany(65)));
    }
}
