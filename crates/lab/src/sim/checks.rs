//! What must hold after every step, and what when nothing has gone wrong for a while.

use muse_wire::Duration;

use super::Sim;
use super::player::Standing;

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
        for player in &self.players {
            let over = player.server().and_then(|server| self.ended.get(&server));
            if player.standing == Standing::Plays
                && over.is_some_and(|at| self.now - *at > GONE_MAX)
            {
                let account = player.account;
                return Err(format!(
                    "account {account} plays on a server that ended {} s ago",
                    GONE_MAX.as_micros() / 1_000_000
                ));
            }
        }
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
                        "account {account} sees {entity:?} of tick {tick:?}, which was out of his interest"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Nothing has gone wrong for two minutes: is everything as it should be?
    pub(super) fn check_rest(&self) -> Result<(), String> {
        self.master.check_quiet()?;
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

/// How often what takes longer is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long a player may not notice that his server is gone: its silence, and the time in which a connection may be resumed.
const GONE_MAX: Duration = Duration::from_secs(20);
/// How long a player may be between master and match.
const LOST_MAX: Duration = Duration::from_secs(90);
