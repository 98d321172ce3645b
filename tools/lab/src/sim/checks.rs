//! The checks after every step, and those when nothing has gone wrong for a while.

use muse_wire::Duration;

use super::Sim;
use super::player::{FAREWELL, Standing};
use super::promise::{RESUME, SILENCE};

impl Sim {
    /// After every step.
    pub(super) fn check(&self) -> Result<(), String> {
        let alive = self.servers.len() + self.starting.len();
        self.master.check(alive)?;
        if !self.now.as_micros().is_multiple_of(LOOK.as_micros()) {
            return Ok(());
        }
        for player in &self.players {
            let limit = match player.standing {
                Standing::Seated if player.is_online && self.master.is_up() => LOST_MAX,
                _ => continue,
            };
            if self.now - player.since > limit {
                let account = player.account;
                return Err(format!(
                    "account {account} has been between master and match for {} s",
                    limit.as_micros() / 1_000_000
                ));
            }
        }
        self.check_gone(SILENCE + RESUME)?;
        self.check_two_matches()?;
        for player in &self.players {
            let Some((server, seen)) = player.sees() else {
                continue;
            };
            let Some(server) = self.servers.get(&server) else {
                continue;
            };
            for (entity, tick) in seen {
                if !server.shows(player.account, entity, tick) {
                    let account = player.account;
                    return Err(format!(
                        "account {account} sees {entity:?} of tick {tick:?}, which is outside of its interest"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Nobody plays on a server that is gone for longer than it takes to notice.
    fn check_gone(&self, within: Duration) -> Result<(), String> {
        for player in &self.players {
            let server = player
                .server()
                .filter(|_| player.standing == Standing::Plays);
            let Some(ended) = server.and_then(|server| self.ended.get(&server)) else {
                continue;
            };
            let since = self.now - *ended;
            if since > within + MOMENT {
                return Err(format!(
                    "account {} plays on a server that ended {:.3} s ago",
                    player.account,
                    since.as_secs_f64()
                ));
            }
        }
        Ok(())
    }

    /// Nobody plays one match while the master has a seat for them in another, for longer than it takes to tell them.
    fn check_two_matches(&self) -> Result<(), String> {
        for player in &self.players {
            let plays = player
                .match_id()
                .filter(|_| player.standing == Standing::Plays);
            let Some(match_id) = plays.filter(|_| player.is_online && self.master.is_up()) else {
                continue;
            };
            let other = self
                .master
                .seat_of(player.account)
                .filter(|seat| *seat != match_id);
            if let Some(other) = other.filter(|_| self.master.has_match(match_id)) {
                return Err(format!(
                    "account {} plays match {match_id} and has a seat in match {other}",
                    player.account
                ));
            }
        }
        Ok(())
    }

    /// Nothing has gone wrong for two minutes: is everything as it should be?
    pub(super) fn check_rest(&self) -> Result<(), String> {
        self.master.check_quiet(self.now)?;
        // The server says it, and if that is lost, the master.
        self.check_gone(FAREWELL)?;
        for player in &self.players {
            let account = player.account;
            match player.standing {
                Standing::Off => return Err(format!("account {account} was not started again")),
                Standing::Waits
                    if !self.master.knows(account) && self.now - player.since > LOST_MAX =>
                {
                    return Err(format!(
                        "account {account} waits, and the master does not know of it"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The interval of the checks that take longer.
const LOOK: Duration = Duration::from_millis(250);
/// Steps, the way of a datagram and the master's messages besides.
const MOMENT: Duration = Duration::from_millis(500);
/// The longest time that a player may be between master and match.
const LOST_MAX: Duration = Duration::from_secs(90);
