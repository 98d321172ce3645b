//! The page's connection to the master, as a Worker runs it: texts and times in, texts out.
//!
//! [`muse::master::PlayerLink`] decides; the Worker owns the WebSocket and the HTTP calls. What it is to do comes as JSON from
//! [`Master::poll_action`], what the page may show from [`Master::poll_event`].

use muse::master::MatchEnding;
use muse::master::{
    MasterMachine, MasterStep, PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig, Preferences,
};
use muse::wire::{Duration, Instant};
use serde_json::{Value, json};

/// The connection of one signed-in player to the master.
#[derive(Debug)]
pub struct Master {
    link: PlayerLink,
    /// The time of the last call that told it.
    now: Instant,
}

impl Master {
    /// Starts to connect.
    pub fn start(now: Instant, seed: u64) -> Self {
        // A page is looked at: it tries again sooner than a game on a phone.
        let config = PlayerLinkConfig::default().retry(Duration::from_secs(3));
        let mut link = PlayerLink::new(config, seed);
        link.start(now);
        Self { link, now }
    }

    /// Enters the queue, or changes what is asked for: `preferences` is JSON. Returns false if it is none, or beyond the limits.
    pub fn queue(&mut self, preferences: &str) -> bool {
        let Ok(preferences) = serde_json::from_str::<Preferences>(preferences) else {
            return false;
        };
        if preferences.check().is_err() {
            return false;
        }
        self.link.queue(preferences);
        true
    }

    /// Leaves the queue.
    pub fn leave_queue(&mut self) {
        self.link.leave_queue();
    }

    /// Gives the seat in a match up.
    pub fn leave_match(&mut self) {
        self.link.leave_match();
    }

    /// Leaves everything.
    pub fn stop(&mut self) {
        self.link.stop();
    }

    /// Handles an open WebSocket.
    pub fn handle_connected(&mut self, now: Instant) {
        self.now = now;
        self.link.handle_connected(now);
    }

    /// Handles a WebSocket that closed or could not be opened.
    pub fn handle_lost(&mut self, now: Instant) {
        self.now = now;
        self.link.handle_lost(now);
    }

    /// Handles a text of the master. One that cannot be read is skipped: a newer master may know more messages.
    pub fn handle_message(&mut self, now: Instant, text: &str) {
        self.now = now;
        let _ = self.link.handle_text(now, text);
    }

    /// Handles a game server that let us in.
    pub fn handle_game_connected(&mut self) {
        self.link.handle_game_connected(self.now);
    }

    /// Handles a game server that refused the seat or is lost.
    pub fn handle_game_lost(&mut self, now: Instant) {
        self.now = now;
        self.link
            .handle_game_lost(now, "the connection to the game server ended");
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
        if self.link.poll_timeout().is_some_and(|due| due <= now) {
            self.link.handle_timeout(now);
        }
    }

    /// Returns when to call [`advance`](Self::advance) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }

    /// Returns what the Worker is to do: `{"do":"connect"}`, `disconnect`, `send` with `text`, `join` with `address`, `token` and `match`, `leave`.
    pub fn poll_action(&mut self) -> Option<Value> {
        loop {
            return Some(match self.link.poll_step()? {
                MasterStep::Connect => json!({"do": "connect"}),
                MasterStep::Disconnect => json!({"do": "disconnect"}),
                MasterStep::Send(text) => json!({"do": "send", "text": text}),
                MasterStep::Command(PlayerAction::JoinGame(seat)) => json!({
                    "do": "join",
                    "match": seat.match_id.0,
                    "address": seat.address,
                    "token": seat.token,
                }),
                MasterStep::Command(PlayerAction::LeaveGame) => json!({"do": "leave"}),
                MasterStep::Command(_) => continue,
            });
        }
    }

    /// Returns what the page may show, as `protocol.ts` has it.
    pub fn poll_event(&mut self, now: Instant) -> Option<Value> {
        let wait_ms = |until: Instant| until.saturating_since(now).as_micros() / 1_000;
        let offline = |until: Instant, full: bool| json!({"type": "offline", "retryMs": wait_ms(until), "full": full});
        loop {
            return Some(match self.link.poll_event()? {
                PlayerEvent::Online(account) => json!({"type": "online", "account": account.0}),
                PlayerEvent::Offline(until) => offline(until, false),
                PlayerEvent::Full(until) => offline(until, true),
                PlayerEvent::Queued(state) => json!({
                    "type": "queue",
                    "waitedMs": state.waited_ms,
                    "preferences": state.preferences,
                }),
                PlayerEvent::LeftQueue => json!({"type": "left-queue"}),
                PlayerEvent::MatchFound(id) => json!({"type": "match-found", "match": id.0}),
                PlayerEvent::Playing(id) => json!({"type": "playing", "match": id.0}),
                PlayerEvent::GameLost { match_id, .. } => {
                    json!({"type": "game-lost", "match": match_id.0})
                }
                PlayerEvent::MatchCancelled { match_id, .. } => {
                    json!({"type": "back", "match": match_id.0, "outcome": MatchEnding::Cancelled})
                }
                PlayerEvent::MatchOver(id, outcome) => {
                    json!({"type": "back", "match": id.0, "outcome": outcome})
                }
                PlayerEvent::Refused { code, message } => {
                    let message = json!({"type": "refused", "code": code, "message": message});
                    json!({"type": "master", "message": message})
                }
                PlayerEvent::Stopped => {
                    let message = json!({"type": "closing", "come_back": false});
                    json!({"type": "master", "message": message})
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

        assert!(!master.queue("{"), "no JSON");
        assert!(!master.queue(r#"{"players":0,"choices":{},"latency_ms":{},"bots":false}"#));
        assert!(master.queue(
            r#"{"players":2,"choices":{"mode":"cooperative"},"latency_ms":{},"bots":true}"#
        ));
        let sent = actions(&mut master);
        assert!(
            sent[0]["text"]
                .as_str()
                .is_some_and(|text| text.contains(r#""type":"queue""#)),
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
