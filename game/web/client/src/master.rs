//! The client's life with the master, as a Worker runs it: texts and times in, texts out.
//!
//! [`muse_master_client::PlayerLink`] decides; the Worker owns the WebSocket and the HTTP calls. What it is to do comes as JSON from
//! [`Master::poll_action`], what the page may show from [`Master::poll_event`].

use muse_master_client::messages::{self, FromMaster};
use muse_master_client::{PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig, Preferences};
use muse_wire::{Duration, Instant};
use serde_json::{Value, json};

/// The life of one signed-in player.
#[derive(Debug)]
pub struct Master {
    life: PlayerLink,
}

impl Master {
    /// Begins to connect.
    pub fn start(now: Instant, seed: u64) -> Self {
        // A page is looked at: it tries again sooner than a game on a phone.
        let config = PlayerLinkConfig::default().retry(Duration::from_secs(3));
        let mut life = PlayerLink::new(config, seed);
        life.start(now);
        Self { life }
    }

    /// The player pressed *play*: `preferences` is JSON. False if it is none, or beyond the limits.
    pub fn play(&mut self, preferences: &str) -> bool {
        let Ok(preferences) = serde_json::from_str::<Preferences>(preferences) else {
            return false;
        };
        if preferences.check().is_err() {
            return false;
        }
        self.life.play(preferences);
        true
    }

    /// Leaves the queue.
    pub fn leave_queue(&mut self) {
        self.life.leave_queue();
    }

    /// Gives the seat in a match up.
    pub fn leave_match(&mut self) {
        self.life.leave_match();
    }

    /// Leaves everything.
    pub fn stop(&mut self) {
        self.life.stop();
    }

    /// The WebSocket is open.
    pub fn handle_connected(&mut self, now: Instant) {
        self.life.handle_connected(now);
    }

    /// The WebSocket closed or could not be opened.
    pub fn handle_lost(&mut self, now: Instant) {
        self.life.handle_lost(now);
    }

    /// The master said this. What cannot be read is passed over: a newer master may know more words.
    pub fn handle_message(&mut self, now: Instant, text: &str) {
        if let Ok(message) = messages::decode::<FromMaster>(text) {
            self.life.handle_message(now, message);
        }
    }

    /// The game server let us in.
    pub fn handle_game_connected(&mut self) {
        self.life.handle_game_connected();
    }

    /// The game server is lost.
    pub fn handle_game_lost(&mut self, now: Instant) {
        self.life.handle_game_lost(now);
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        if self.life.poll_timeout().is_some_and(|due| due <= now) {
            self.life.handle_timeout(now);
        }
    }

    /// When to call [`advance`](Self::advance) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.life.poll_timeout()
    }

    /// What the Worker is to do: `{"do":"connect"}`, `disconnect`, `send` with `text`, `join` with `address`, `token` and `match`, `leave`.
    pub fn poll_action(&mut self) -> Option<Value> {
        loop {
            return Some(match self.life.poll_action()? {
                PlayerAction::Connect => json!({"do": "connect"}),
                PlayerAction::Disconnect => json!({"do": "disconnect"}),
                PlayerAction::Send(message) => {
                    json!({"do": "send", "text": messages::encode(&message)})
                }
                PlayerAction::JoinGame(seat) => json!({
                    "do": "join",
                    "match": seat.match_id.0,
                    "address": seat.address,
                    "token": seat.token,
                }),
                PlayerAction::LeaveGame => json!({"do": "leave"}),
                _ => continue,
            });
        }
    }

    /// What the page may show, as `protocol.ts` has it.
    pub fn poll_event(&mut self, now: Instant) -> Option<Value> {
        let wait_ms = |until: Instant| until.saturating_since(now).as_micros() / 1_000;
        loop {
            return Some(match self.life.poll_event()? {
                PlayerEvent::Online(account) => json!({"type": "online", "account": account.0}),
                PlayerEvent::Offline(until) => {
                    json!({"type": "offline", "retryMs": wait_ms(until), "full": false})
                }
                PlayerEvent::Full(until) => {
                    json!({"type": "offline", "retryMs": wait_ms(until), "full": true})
                }
                PlayerEvent::Queue(state) => json!({
                    "type": "queue",
                    "waitedMs": state.waited_ms,
                    "preferences": state.preferences,
                }),
                PlayerEvent::LeftQueue => json!({"type": "left-queue"}),
                PlayerEvent::MatchFound(id) => json!({"type": "match-found", "match": id.0}),
                PlayerEvent::Playing(id) => json!({"type": "playing", "match": id.0}),
                PlayerEvent::GameLost(id) => json!({"type": "game-lost", "match": id.0}),
                PlayerEvent::Back(id, outcome) => {
                    json!({"type": "back", "match": id.0, "outcome": outcome})
                }
                PlayerEvent::Message(message) => json!({"type": "master", "message": message}),
                _ => continue,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(master: &mut Master) -> Vec<Value> {
        std::iter::from_fn(|| master.poll_action()).collect()
    }

    #[test]
    fn a_player_signs_in_queues_plays_and_returns() {
        let now = Instant::from_millis(1);
        let mut master = Master::start(now, 7);
        master.advance(now);
        assert_eq!(actions(&mut master), [json!({"do": "connect"})]);
        master.handle_connected(now);
        master.handle_message(
            now,
            r#"{"type":"welcome","account":5,"ticket":null,"seat":null}"#,
        );
        assert_eq!(
            master.poll_event(now),
            Some(json!({"type": "online", "account": 5}))
        );

        assert!(!master.play("{"), "no JSON");
        assert!(!master.play(r#"{"players":0,"choices":{},"latency_ms":{},"bots":false}"#));
        assert!(
            master.play(
                r#"{"players":2,"choices":{"mode":"cooperative"},"latency_ms":{},"bots":true}"#
            )
        );
        let sent = actions(&mut master);
        assert!(
            sent[0]["text"]
                .as_str()
                .is_some_and(|text| text.contains(r#""type":"play""#)),
            "{sent:?}"
        );

        let seat =
            r#"{"type":"seat","match_id":4,"address":"127.0.0.1:9","token":"t","preferences":{}}"#;
        master.handle_message(now, seat);
        let join = json!({"do": "join", "match": 4, "address": "127.0.0.1:9", "token": "t"});
        assert_eq!(actions(&mut master), [join]);
        master.handle_game_connected();
        assert_eq!(
            master.poll_event(now),
            Some(json!({"type": "playing", "match": 4}))
        );
        master.handle_message(
            now,
            r#"{"type":"match_over","match_id":4,"outcome":"finished"}"#,
        );
        assert_eq!(actions(&mut master), [json!({"do": "leave"})]);
        let back = json!({"type": "back", "match": 4, "outcome": "finished"});
        assert_eq!(master.poll_event(now), Some(back));
    }

    #[test]
    fn words_of_a_newer_master_are_passed_over() {
        let mut master = Master::start(Instant::ZERO, 7);
        master.handle_message(Instant::ZERO, r#"{"type":"telepathy"}"#);
        master.handle_message(Instant::ZERO, "not even JSON");
        assert_eq!(master.poll_event(Instant::ZERO), None);
    }
}
