//! Events for the page: messages of the game server in the form of `protocol.ts`.

use std::collections::VecDeque;

use muse::netcode::Tick;
use muse::transport::{CloseReason, Refusal};
use muse_biobot::messages::Name;
use muse_biobot::{Level, Mode, Phase, SLOTS_MAX, TICKS_PER_SECOND, ToPlayer};
use serde_json::{Value, json};

/// Events that wait for the page.
#[derive(Debug, Default)]
pub struct Events {
    waiting: VecDeque<Value>,
    names: Vec<Name>,
}

impl Events {
    /// Adds an event. The oldest go when nobody takes them.
    pub fn push(&mut self, event: Value) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Value> {
        self.waiting.pop_front()
    }

    /// The first event of a match.
    pub fn welcome(&mut self, slot: Option<u8>, mode: Mode, seed: u64, level: &Level) {
        self.names.clear();
        self.push(json!({
            "type": "welcome",
            "slot": slot.map_or(-1, i32::from),
            "mode": mode,
            // JavaScript has no whole numbers of 64 bits; this one is only shown.
            "seed": seed as u32,
            "level": level,
        }));
    }

    /// The game server said something, at this tick. `own_name` replaces the name of `own_slot` where a name was not asked for.
    pub fn message(&mut self, message: &ToPlayer, tick: Tick) {
        let event = match message {
            ToPlayer::Welcome { .. } => return,
            ToPlayer::Names { names } => {
                self.names.clone_from(names);
                json!({"type": "names", "names": self.by_slot()})
            }
            ToPlayer::Chat { from, text } => {
                json!({"type": "chat", "slot": slot(*from), "text": text})
            }
            ToPlayer::KillFeed {
                killer,
                victim,
                weapon,
            } => json!({
                "type": "kill", "killer": slot(*killer), "victim": victim, "weapon": weapon,
            }),
            ToPlayer::Hit {
                damage,
                killed,
                critical,
            } => json!({
                "type": "hit", "damage": damage, "kill": killed, "critical": critical,
            }),
            ToPlayer::Hurt { damage, direction } => {
                json!({"type": "hurt", "damage": damage, "direction": direction})
            }
            ToPlayer::Vote {
                dropped: Some((slot, until)),
            } => {
                let ticks = until.saturating_sub(tick.0);
                let seconds = f64::from(ticks) / f64::from(TICKS_PER_SECOND);
                json!({"type": "paused", "slot": slot, "seconds": seconds})
            }
            ToPlayer::Vote { dropped: None } => json!({"type": "unpaused"}),
            ToPlayer::Progress { checkpoint, owned } => json!({
                "type": "message",
                "message": {"type": "progress", "checkpoint": checkpoint, "owned": owned},
            }),
            ToPlayer::Goal {
                team,
                scorer,
                goals,
            } => json!({
                "type": "goal", "team": team, "scorer": slot(*scorer), "goals": goals,
            }),
            ToPlayer::Result { phase, table } => {
                let names = self.by_slot();
                let lines: Vec<Value> = table
                    .iter()
                    .map(|line| {
                        json!({
                            "slot": line.slot,
                            "name": names.get(usize::from(line.slot)),
                            "points": line.points,
                            "kills": line.kills,
                            "deaths": line.deaths,
                        })
                    })
                    .collect();
                json!({"type": "result", "won": *phase == Phase::Won, "lines": lines})
            }
        };
        self.push(event);
    }

    fn by_slot(&self) -> Vec<&str> {
        let last = self
            .names
            .iter()
            .map(|name| usize::from(name.slot) + 1)
            .max();
        let mut names = vec![""; last.unwrap_or(0).min(SLOTS_MAX)];
        for name in &self.names {
            if let Some(place) = names.get_mut(usize::from(name.slot)) {
                *place = &name.name;
            }
        }
        names
    }
}

/// Says why there is no connection (any more).
pub fn ended(error: &muse::Error) -> Value {
    match error {
        muse::Error::Closed(reason) => closed(reason),
        muse::Error::Refused(reason) => refused(reason),
        muse::Error::Unanswered => unanswered(),
        other => json!({"type": "closed", "reason": "broken", "text": other.to_string()}),
    }
}

/// The end of a connection.
fn closed(reason: &CloseReason) -> Value {
    let (reason, text) = match reason {
        CloseReason::ByPeer { code, text } => (format!("server-{code}"), text.clone()),
        CloseReason::ByUs => ("left".to_owned(), String::new()),
        CloseReason::Lost => (
            "lost".to_owned(),
            "the server is not heard any more".to_owned(),
        ),
        CloseReason::Replaced => (
            "replaced".to_owned(),
            "the same player came from elsewhere".to_owned(),
        ),
        other => ("broken".to_owned(), format!("{other:?}")),
    };
    json!({"type": "closed", "reason": reason, "text": text})
}

/// The server did not let us in.
fn refused(reason: &Refusal) -> Value {
    let (kind, text) = match reason {
        Refusal::Full => ("full", reason.to_string()),
        Refusal::Schema { .. } | Refusal::Version { .. } => ("version", OTHER_VERSION.to_owned()),
        _ => ("refused", reason.to_string()),
    };
    json!({"type": "closed", "reason": kind, "text": text})
}

/// Nobody answered.
fn unanswered() -> Value {
    json!({"type": "closed", "reason": "unanswered", "text": "the server did not answer"})
}

fn slot(slot: Option<u8>) -> i32 {
    slot.map_or(-1, i32::from)
}

/// Advice for a page that is not of the server's version.
const OTHER_VERSION: &str = "This page is of another version than the game server. Reload it; if this is said again, the server is the older one.";
/// Events that may wait.
const WAITING_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_names_of_their_players() {
        let mut events = Events::default();
        let names = vec![Name {
            slot: 1,
            name: "Ada".to_owned(),
            present: true,
        }];
        events.message(&ToPlayer::Names { names }, Tick(0));
        assert_eq!(
            events.poll(),
            Some(json!({"type": "names", "names": ["", "Ada"]}))
        );
        let table = vec![muse_biobot::messages::Line {
            slot: 1,
            points: 30,
            kills: 2,
            deaths: 1,
        }];
        let phase = Phase::Won;
        events.message(&ToPlayer::Result { phase, table }, Tick(9));
        let line = json!({"slot": 1, "name": "Ada", "points": 30, "kills": 2, "deaths": 1});
        let result = json!({"type": "result", "won": true, "lines": [line]});
        assert_eq!(events.poll(), Some(result));
        let dropped = Some((0, 109));
        events.message(&ToPlayer::Vote { dropped }, Tick(9));
        assert_eq!(
            events.poll(),
            Some(json!({"type": "paused", "slot": 0, "seconds": 2.0}))
        );
    }

    #[test]
    fn another_version_is_said_in_words() {
        let reason = Refusal::Schema {
            client: 1,
            server: 2,
            differences: Vec::new(),
        };
        let event = refused(&reason);
        assert_eq!(event["reason"], "version");
        assert_eq!(event["text"], OTHER_VERSION);
    }

    #[test]
    fn a_page_that_takes_nothing_costs_no_memory_without_end() {
        let mut events = Events::default();
        for _ in 0..10_000 {
            events.push(Value::Null);
        }
        assert_eq!(std::iter::from_fn(|| events.poll()).count(), WAITING_MAX);
    }
}
