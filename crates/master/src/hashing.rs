//! The queue of passwords to hash: whose is next, and who has to wait.
//!
//! A hash takes some 20 ms of a core and 19 MB on purpose, so nothing that a stranger can ask for costs more. Three things keep one of them from
//! using up what everybody shares. An address has a rate, a few places in a short queue and never all lanes; the addresses that wait take turns. A name has pauses after
//! wrong passwords: long ones for the address that they came from, short ones for all others, so that nobody can lock its owner out. Operators have a
//! lane of their own.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::recent::Recent;

/// Decides whose password is hashed next.
///
/// Call [`ask`](Self::ask), then [`poll_turn`](Self::poll_turn) until it has nothing; [`handle_wrong`](Self::handle_wrong) or
/// [`handle_right`](Self::handle_right) with what came out, and [`leave`](Self::leave) at the end of every turn, had or not, and then `poll_turn` again.
#[derive(Debug)]
pub(crate) struct HashQueue {
    /// Time between two hashes of one address in the long run; none if addresses do not count.
    interval: Option<Duration>,
    next: u64,
    turns: FxHashMap<TurnId, Turn>,
    players: Line,
    operators: Line,
    /// By address, when all that it asked for so far would be done at its rate.
    rates: Recent<IpAddr, Instant>,
    pairs: Recent<(Name, IpAddr), Tries>,
    names: Recent<Name, Tries>,
}

/// A password that is being hashed or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TurnId(u64);

/// Players and operators do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Player,
    Operator,
}

/// Somebody who brings a password.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) role: Role,
    /// The address, or with IPv6 the network of 64 bits.
    pub(crate) network: IpAddr,
    /// The name whose password is tried; none if a new one is to be stored.
    pub(crate) name: Option<String>,
}

/// The reason why a password is not hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum HashRefusal {
    /// This address asks too often.
    #[error("too many passwords from this address")]
    Address { retry_after: Duration },
    /// Too many wrong passwords for this name.
    #[error("too many wrong passwords for this name")]
    Name { retry_after: Duration },
    /// Too many addresses wait.
    #[error("too many sign in at once")]
    Full,
}

type Name = (Role, String);

#[derive(Clone, Copy, Debug)]
struct Turn {
    role: Role,
    network: IpAddr,
    runs: bool,
}

/// Wrong passwords in a row, and until when the next one has to wait.
#[derive(Clone, Copy, Debug)]
struct Tries {
    wrong: u32,
    until: Instant,
    last: Instant,
}

/// Those of one role.
#[derive(Debug)]
struct Line {
    lanes: usize,
    /// Lanes that one address may take.
    lanes_per_network: usize,
    waiting_per_network: usize,
    running: BTreeMap<IpAddr, usize>,
    hashing: usize,
    waiting: BTreeMap<IpAddr, VecDeque<TurnId>>,
    waits: usize,
    /// Addresses that have something waiting, in the order of their turns.
    order: VecDeque<IpAddr>,
}

impl HashQueue {
    /// So many hashes of one address in a minute in the long run; 0 if all addresses are one, as behind a proxy.
    pub(crate) fn new(per_minute: u32) -> Self {
        let interval =
            (per_minute > 0).then(|| Duration::from_micros(60_000_000 / u64::from(per_minute)));
        let line = |lanes: usize| match interval {
            Some(_) => Line::new(lanes, lanes.div_ceil(2), WAITING_PER_NETWORK),
            None => Line::new(lanes, lanes, WAITING_MAX),
        };
        Self {
            interval,
            next: 0,
            turns: FxHashMap::default(),
            players: line(PLAYER_LANES),
            operators: line(OPERATOR_LANES),
            rates: Recent::new(REMEMBERED_MAX),
            pairs: Recent::new(REMEMBERED_MAX),
            names: Recent::new(REMEMBERED_MAX),
        }
    }

    /// Says whether [`ask`](Self::ask) would refuse, for those who can look before they do something else.
    pub(crate) fn check(&self, now: Instant, asker: &Asker) -> Result<(), HashRefusal> {
        let network = self.network(asker);
        self.check_name(now, asker)?;
        if let (Some(interval), Some(busy_until)) = (self.interval, self.rates.get(&network)) {
            let ahead = busy_until - now;
            let burst = interval * BURST;
            if ahead > burst {
                let retry_after = ahead - burst;
                return Err(HashRefusal::Address { retry_after });
            }
        }
        self.line(asker.role).has_place(network).map(drop)
    }

    /// Checks the pauses of a name alone: for one that waited for its turn while others failed.
    pub(crate) fn check_name(&self, now: Instant, asker: &Asker) -> Result<(), HashRefusal> {
        let Some(name) = name(asker) else {
            return Ok(());
        };
        let own = self.pairs.get(&(name.clone(), self.network(asker)));
        let waits = match own {
            Some(tries) if tries.wrong == 0 && self.interval.is_some() => None,
            Some(tries) if tries.until > now => Some(tries),
            _ => self.names.get(&name).filter(|tries| tries.until > now),
        };
        match waits {
            Some(tries) => Err(HashRefusal::Name {
                retry_after: tries.until - now,
            }),
            None => Ok(()),
        }
    }

    /// Takes a place. If somebody from a busier address has to leave for it, whose place that was.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        asker: &Asker,
    ) -> Result<(TurnId, Option<TurnId>), HashRefusal> {
        self.check(now, asker)?;
        let (role, network) = (asker.role, self.network(asker));
        let evicted = self.line(role).has_place(network)?;
        if let Some(evicted) = evicted {
            self.leave(evicted);
        }
        if let Some(interval) = self.interval {
            let busy_until = self.rates.get(&network).unwrap_or(now).max(now);
            self.rates.insert(network, busy_until + interval);
        }
        let id = TurnId(self.next);
        self.next += 1;
        let runs = false;
        let turn = Turn {
            role,
            network,
            runs,
        };
        self.turns.insert(id, turn);
        self.line_mut(role).wait(network, id);
        Ok((id, evicted))
    }

    /// The next one that is to be hashed now.
    pub(crate) fn poll_turn(&mut self) -> Option<TurnId> {
        let id = self.players.next().or_else(|| self.operators.next())?;
        if let Some(turn) = self.turns.get_mut(&id) {
            turn.runs = true;
        }
        Some(id)
    }

    /// It is hashed, or nobody waits for it any more.
    pub(crate) fn leave(&mut self, id: TurnId) {
        let Some(turn) = self.turns.remove(&id) else {
            return;
        };
        let line = self.line_mut(turn.role);
        match turn.runs {
            true => line.finish(turn.network),
            false => line.give_up(turn.network, id),
        }
    }

    /// The password was not that of the name.
    pub(crate) fn handle_wrong(&mut self, now: Instant, asker: &Asker) {
        let Some(name) = name(asker) else { return };
        let pair = (name.clone(), self.network(asker));
        let own_max = match self.interval {
            Some(_) => OWN_PAUSE_MAX,
            // Everybody seems to come from one address: what stops a thief would stop the owner.
            None => NAME_PAUSE_MAX,
        };
        let own = Tries::wrong(self.pairs.get(&pair), now, OWN_FREE, own_max);
        self.pairs.insert(pair, own);
        let all = Tries::wrong(self.names.get(&name), now, NAME_FREE, NAME_PAUSE_MAX);
        self.names.insert(name, all);
    }

    /// The password was that of the name: from this address its owner need not wait for what others do.
    pub(crate) fn handle_right(&mut self, now: Instant, asker: &Asker) {
        if let Some(name) = name(asker) {
            let known = Tries {
                wrong: 0,
                until: now,
                last: now,
            };
            self.pairs.insert((name, self.network(asker)), known);
        }
    }

    /// Forgets what has no effect any more.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.rates.retain(|busy_until| *busy_until > now);
        self.pairs.retain(|tries| !tries.is_over(now));
        self.names.retain(|tries| !tries.is_over(now));
    }

    /// Returns how many are being hashed.
    #[cfg(test)]
    pub(crate) fn hashing(&self) -> usize {
        self.players.hashing + self.operators.hashing
    }

    fn network(&self, asker: &Asker) -> IpAddr {
        match self.interval {
            Some(_) => asker.network,
            None => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn line(&self, role: Role) -> &Line {
        match role {
            Role::Player => &self.players,
            Role::Operator => &self.operators,
        }
    }

    fn line_mut(&mut self, role: Role) -> &mut Line {
        match role {
            Role::Player => &mut self.players,
            Role::Operator => &mut self.operators,
        }
    }
}

fn name(asker: &Asker) -> Option<Name> {
    asker.name.clone().map(|name| (asker.role, name))
}

impl Tries {
    /// One more wrong password. After the first `free` ones the next has to wait, twice as long each time.
    fn wrong(before: Option<Self>, now: Instant, free: u32, pause_max: Duration) -> Self {
        let before = before.filter(|tries| !tries.is_over(now));
        let wrong = before.map_or(0, |tries| tries.wrong).saturating_add(1);
        let pause = match wrong.checked_sub(free) {
            None => Duration::ZERO,
            Some(doubled) => (PAUSE_FIRST * (1 << doubled.min(16))).min(pause_max),
        };
        Self {
            wrong,
            until: now + pause,
            last: now,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let kept = match self.wrong {
            0 => KNOWN_FOR,
            _ => WRONG_FOR,
        };
        now - self.last >= kept
    }
}

impl Line {
    fn new(lanes: usize, lanes_per_network: usize, waiting_per_network: usize) -> Self {
        Self {
            lanes,
            lanes_per_network,
            waiting_per_network,
            running: BTreeMap::new(),
            hashing: 0,
            waiting: BTreeMap::new(),
            waits: 0,
            order: VecDeque::new(),
        }
    }

    fn waiting_of(&self, network: IpAddr) -> usize {
        self.waiting.get(&network).map_or(0, VecDeque::len)
    }

    /// Says if there is a place for this address, and who leaves for it: the last one of the address that has most, if that has more than this one.
    fn has_place(&self, network: IpAddr) -> Result<Option<TurnId>, HashRefusal> {
        let own = self.waiting_of(network);
        if own >= self.waiting_per_network {
            let retry_after = PAUSE_FIRST;
            return Err(HashRefusal::Address { retry_after });
        }
        if self.waits < WAITING_MAX {
            return Ok(None);
        }
        let most = self.waiting.values().max_by_key(|waiting| waiting.len());
        let most = most.filter(|waiting| waiting.len() > own + 1);
        most.and_then(|waiting| waiting.back().copied())
            .map(Some)
            .ok_or(HashRefusal::Full)
    }

    fn wait(&mut self, network: IpAddr, id: TurnId) {
        let waiting = self.waiting.entry(network).or_default();
        if waiting.is_empty() {
            self.order.push_back(network);
        }
        waiting.push_back(id);
        self.waits += 1;
    }

    /// Takes a lane for the next address that may have one.
    fn next(&mut self) -> Option<TurnId> {
        if self.hashing >= self.lanes {
            return None;
        }
        let may = |network: &IpAddr| {
            self.running.get(network).copied().unwrap_or(0) < self.lanes_per_network
        };
        let place = self.order.iter().position(may)?;
        let network = self.order.remove(place)?;
        let waiting = self.waiting.get_mut(&network)?;
        let id = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&network);
        } else {
            self.order.push_back(network);
        }
        self.waits -= 1;
        self.hashing += 1;
        *self.running.entry(network).or_default() += 1;
        Some(id)
    }

    fn finish(&mut self, network: IpAddr) {
        self.hashing -= 1;
        let Some(running) = self.running.get_mut(&network) else {
            return;
        };
        *running -= 1;
        if *running == 0 {
            self.running.remove(&network);
        }
    }

    fn give_up(&mut self, network: IpAddr, id: TurnId) {
        let Some(waiting) = self.waiting.get_mut(&network) else {
            return;
        };
        waiting.retain(|other| *other != id);
        self.waits -= 1;
        if waiting.is_empty() {
            self.waiting.remove(&network);
            self.order.retain(|other| *other != network);
        }
    }
}

/// Passwords of players that are hashed at once; one address has half of these lanes at most.
const PLAYER_LANES: usize = 2;
/// Passwords of operators that are hashed at once.
const OPERATOR_LANES: usize = 1;
/// Passwords that wait: what the lanes do in less than a second.
const WAITING_MAX: usize = 48;
/// Passwords of one address that wait.
const WAITING_PER_NETWORK: usize = 6;
/// Hashes that an address may ask for at once, before its rate counts.
const BURST: u64 = 20;
/// Wrong passwords of one address for one name before the next has to wait.
const OWN_FREE: u32 = 5;
/// Wrong passwords of all addresses for one name before the next has to wait.
const NAME_FREE: u32 = 20;
/// The first pause; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause for the address that the wrong passwords came from.
const OWN_PAUSE_MAX: Duration = Duration::from_secs(900);
/// The longest pause for all other addresses, so that the owner waits no longer.
const NAME_PAUSE_MAX: Duration = Duration::from_secs(8);
/// Time after which wrong passwords are forgotten; longer than the longest pause.
const WRONG_FOR: Duration = Duration::from_secs(3_600);
/// Time for which an address from which the owner has signed in is known.
const KNOWN_FOR: Duration = Duration::from_secs(7 * 86_400);
/// Addresses and names that are remembered, of each kind: at least so many, and twice as many at most, of less than 100 bytes.
const REMEMBERED_MAX: usize = 16_384;

#[cfg(test)]
mod tests;
