//! Players who connect, queue, play and come back as the library lets them, and call the masters over HTTP beside it. All that they choose comes from the seed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muse::master::{
    Account, Master, MasterEvent, MasterOptions, MatchSeat, Preferences, QueueStatus,
};
use muse_drivers::ClientDriver;
use muse_transport::{ChannelConfig, Config, Delivery, Event as GameEvent};
use serde_json::Value;

use crate::history::{Answer, Event, News, Operation, Recorder, Wish};
use crate::http;
use crate::proxy::Proxy;

/// The common part of all players.
pub(crate) struct Common {
    pub(crate) recorder: Recorder,
    /// From now on nobody leaves anything.
    pub(crate) calm: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Each player's account, once it is known.
    pub(crate) accounts: Mutex<Vec<Option<u64>>>,
    /// The time at which each player was last seen in a match, in milliseconds of the run.
    pub(crate) played_ms: Vec<AtomicU64>,
}

impl Common {
    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    fn has_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Starts the connection of a player.
pub(crate) fn connect(
    common: &Arc<Common>,
    player: u32,
    seed: u64,
    links: Vec<Proxy>,
) -> JoinHandle<()> {
    let common = Arc::clone(common);
    let rng = fastrand::Rng::with_seed(seed ^ u64::from(player) << 32);
    std::thread::spawn(move || Player::new(common, player, links, rng).run())
}

struct Player {
    common: Arc<Common>,
    player: u32,
    links: Vec<Proxy>,
    rng: fastrand::Rng,
    master: Master,
    game: Option<ClientDriver>,
    /// The time at which to queue, once nothing else goes on.
    queue_at: Instant,
    /// The time at which to leave the queue or the match.
    leave_at: Option<(Instant, Wish)>,
}

impl Player {
    fn new(common: Arc<Common>, player: u32, links: Vec<Proxy>, mut rng: fastrand::Rng) -> Self {
        let first = rng.usize(..links.len());
        let order = (0..links.len()).map(|step| (first + step) % links.len());
        let masters: Vec<String> = order
            .map(|master| format!("127.0.0.1:{}", links[master].port()))
            .collect();
        let options = MasterOptions::default()
            .seed(rng.u64(..))
            .retry(muse_wire::Duration::from_secs(2));
        let account = Account::guest_key(&device_key(player));
        let master = Master::connect_with(&masters.join(","), account, options);
        Self {
            common,
            player,
            links,
            rng,
            master: master.expect("addresses"),
            game: None,
            queue_at: Instant::now(),
            leave_at: None,
        }
    }

    fn run(mut self) {
        while !self.common.has_ended() {
            self.tick_game();
            while let Some(event) = self.master.poll() {
                self.handle(event);
            }
            self.decide();
            match &mut self.game {
                Some(game) => drop(game.wait(STEP)),
                None => std::thread::sleep(STEP),
            }
        }
    }

    fn handle(&mut self, event: MasterEvent) {
        match event {
            MasterEvent::Connected(_) => {
                let newest = (0..self.links.len()).max_by_key(|link| self.links[*link].opened());
                self.note(Event::Linked {
                    player: self.player,
                    master: newest.expect("there are masters"),
                });
            }
            MasterEvent::Lost { reason: why, .. } => self.note(Event::Unlinked {
                player: self.player,
                why,
            }),
            MasterEvent::Stopped => {
                let why = "stopped for good".to_owned();
                let player = self.player;
                self.note(Event::Unlinked { player, why });
            }
            MasterEvent::Seated(seat) => self.join(&seat),
            MasterEvent::Unseated => {
                if let Some(mut game) = self.game.take() {
                    game.close(0, "leaves");
                    let _ = game.flush();
                }
            }
            MasterEvent::Queued(state) => {
                let ticket = state.ticket.0;
                self.tell(News::Queued { ticket });
                self.leave_perhaps(Wish::LeaveQueue, 8);
            }
            MasterEvent::LeftQueue => {
                self.rest();
                self.tell(News::LeftQueue);
            }
            MasterEvent::MatchFound(match_id) => self.tell(News::Found {
                match_id: match_id.0,
            }),
            MasterEvent::Playing(match_id) => {
                let now_ms = self.common.recorder.now_ms();
                let index = usize::try_from(self.player).expect("few players");
                self.common.played_ms[index].store(now_ms, Ordering::Relaxed);
                self.tell(News::Playing {
                    match_id: match_id.0,
                });
                self.leave_perhaps(Wish::LeaveMatch, 6);
            }
            MasterEvent::SeatLost {
                match_id,
                reason: why,
                ..
            } => self.tell(News::SeatLost {
                match_id: match_id.0,
                why,
            }),
            MasterEvent::Cancelled { match_id, waiting } => {
                self.rest();
                self.tell(News::Cancelled {
                    match_id: match_id.0,
                    waiting,
                });
            }
            MasterEvent::MatchOver(match_id, outcome) => {
                self.rest();
                let outcome = outcome.map_or_else(
                    || "unknown".to_owned(),
                    |outcome| format!("{outcome:?}").to_lowercase(),
                );
                self.tell(News::Over {
                    match_id: match_id.0,
                    outcome,
                });
            }
            MasterEvent::Refused { code, .. } => self.tell(News::Refused { code }),
            _ => {}
        }
    }

    fn decide(&mut self) {
        let now = Instant::now();
        let is_free = self.master.current_match().is_none();
        let status = self.master.queue_status();
        if self.master.is_connected()
            && is_free
            && status == QueueStatus::Out
            && self.queue_at <= now
        {
            self.wish(Wish::Queue);
            self.rest();
            let _ = self.master.queue(Preferences::default());
        }
        let Some((at, wish)) = self.leave_at else {
            return;
        };
        if at <= now {
            self.leave_at = None;
            if wish == Wish::LeaveQueue && status == QueueStatus::Waiting {
                self.wish(wish);
                self.master.leave_queue();
            } else if wish == Wish::LeaveMatch && !is_free {
                self.wish(wish);
                self.master.leave_match();
            }
        }
    }

    /// Chooses whether to leave, once in so many times.
    fn leave_perhaps(&mut self, wish: Wish, once_in: u32) {
        let leaves = self.rng.u32(..once_in) == 0;
        let after = Duration::from_millis(self.rng.u64(..3_000));
        let leaves = leaves && !self.common.is_calm();
        self.leave_at = leaves.then(|| (Instant::now() + after, wish));
    }

    fn rest(&mut self) {
        self.queue_at = Instant::now() + Duration::from_millis(self.rng.u64(100..1_500));
    }

    fn join(&mut self, seat: &MatchSeat) {
        let config = Config::new(PROTOCOL).channel(ChannelConfig::new(Delivery::ReliableOrdered));
        match ClientDriver::connect(seat.address.as_str(), config, seat.connect()) {
            Ok(game) => self.game = Some(game),
            Err(error) => self.master.handle_game_lost(&error.to_string()),
        }
    }

    fn tick_game(&mut self) {
        let Some(game) = &mut self.game else {
            return;
        };
        let (master, mut is_over) = (&mut self.master, false);
        let ticked = game.tick(|_, event| {
            master.handle_game_event(&event);
            is_over |= matches!(
                event,
                GameEvent::Closed { .. } | GameEvent::Refused { .. } | GameEvent::Unanswered { .. }
            );
        });
        if is_over || ticked.is_err() {
            self.game = None;
        }
    }

    fn wish(&self, wish: Wish) {
        let player = self.player;
        self.note(Event::Wished { player, wish });
    }

    fn tell(&self, news: News) {
        let player = self.player;
        self.note(Event::Told { player, news });
    }

    fn note(&self, event: Event) {
        self.common.recorder.note(event);
    }
}

/// Starts the calls of a player.
pub(crate) fn call(
    common: &Arc<Common>,
    player: u32,
    seed: u64,
    masters: Vec<u16>,
) -> JoinHandle<()> {
    let mut caller = Caller {
        common: Arc::clone(common),
        player,
        masters,
        rng: fastrand::Rng::with_seed(seed ^ u64::from(player) << 32 ^ 1 << 63),
        token: None,
        version: None,
        made: 0,
    };
    std::thread::spawn(move || {
        while !caller.common.has_ended() {
            let pause = caller.rng.u64(100..700);
            std::thread::sleep(Duration::from_millis(pause));
            caller.turn();
        }
    })
}

/// A player's calls over HTTP, one after the other.
struct Caller {
    common: Arc<Common>,
    player: u32,
    masters: Vec<u16>,
    rng: fastrand::Rng,
    token: Option<String>,
    /// The version of the progress, if it is known.
    version: Option<u64>,
    /// Documents and lines that were made up.
    made: u64,
}

impl Caller {
    fn turn(&mut self) {
        let dice = self.rng.u8(..20);
        let operation = match (self.token.is_some(), dice, self.version) {
            (false, ..) => Operation::SignIn,
            (_, 0..9, Some(based_on)) => Operation::Save {
                based_on,
                document: self.fresh(),
            },
            (_, 0..12, _) => Operation::Load,
            (_, 12..16, _) => Operation::Say {
                text: format!("line {} of player {}", self.fresh(), self.player),
            },
            (_, 16, _) if !self.common.is_calm() && self.rng.u8(..4) == 0 => Operation::LeaveQueue,
            _ => Operation::State,
        };
        let master = self.masters[self.rng.usize(..self.masters.len())];
        let other = self.rng.usize(..);
        let Some((method, path, body)) = self.request(&operation, other) else {
            return;
        };
        let recorder = &self.common.recorder;
        let number = recorder.ask(self.player, operation.clone());
        let answer = http::call(master, method, &path, self.token.as_deref(), &body);
        let answer = match answer {
            Ok((status, body)) => self.read(&operation, status, &body),
            Err(why) => Answer::Unknown { why },
        };
        if matches!(operation, Operation::Save { .. }) && !matches!(answer, Answer::Saved { .. }) {
            self.version = None;
        }
        let answered = Event::Answered { number, answer };
        self.common.recorder.note(answered);
    }

    fn fresh(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Method, path and body of a call; none if it cannot be made yet.
    fn request(
        &self,
        operation: &Operation,
        other: usize,
    ) -> Option<(&'static str, String, String)> {
        let call = |method, path: &str, body: String| Some((method, path.to_owned(), body));
        match operation {
            Operation::SignIn => {
                let body = format!(r#"{{"device_key":"{}"}}"#, device_key(self.player));
                call("POST", "/v1/guest", body)
            }
            Operation::Save { based_on, document } => {
                let body = format!(r#"{{"version":{based_on},"document":{document}}}"#);
                call("PUT", PROGRESS, body)
            }
            Operation::Load => call("GET", PROGRESS, String::new()),
            Operation::Say { text } => {
                let accounts = self.common.accounts.lock().expect("nobody panicked");
                let known: Vec<u64> = accounts.iter().flatten().copied().collect();
                let to = known.get(other % known.len().max(1))?;
                let body = format!(r#"{{"text":"{text}"}}"#);
                call("POST", &format!("/v1/chat/direct/{to}"), body)
            }
            Operation::LeaveQueue => call("DELETE", "/v1/ticket", String::new()),
            Operation::State => call("GET", "/v1/state", String::new()),
        }
    }

    fn read(&mut self, operation: &Operation, status: u16, body: &str) -> Answer {
        let unknown = |why: &str| Answer::Unknown {
            why: format!("{status} {why}"),
        };
        match status {
            200 | 204 => {}
            401 => {
                self.token = None;
                return Answer::Refused { status };
            }
            400..500 => return Answer::Refused { status },
            _ => return unknown(body),
        }
        let parsed: Value = match serde_json::from_str(body) {
            Ok(parsed) => parsed,
            Err(_) if status == 204 => Value::Null,
            Err(_) => return unknown("cut off"),
        };
        match operation {
            Operation::SignIn => {
                let token = parsed["access_token"].as_str().map(str::to_owned);
                let Some(account) = parsed["account"].as_u64() else {
                    return unknown("no account");
                };
                self.token = token;
                let index = usize::try_from(self.player).expect("few players");
                let mut accounts = self.common.accounts.lock().expect("nobody panicked");
                accounts[index] = Some(account);
                Answer::SignedIn { account }
            }
            Operation::Save { .. } => {
                self.version = parsed["version"].as_u64();
                match self.version {
                    Some(version) => Answer::Saved { version },
                    None => unknown("no version"),
                }
            }
            Operation::Load => {
                self.version = parsed["version"].as_u64();
                match self.version {
                    Some(version) => Answer::Loaded {
                        version,
                        document: parsed["document"].as_u64(),
                    },
                    None => unknown("no version"),
                }
            }
            Operation::Say { .. } => Answer::Said,
            Operation::LeaveQueue => Answer::Left,
            Operation::State => Answer::Stands {
                ticket: parsed["ticket"]["ticket"].as_u64(),
                match_id: parsed["match_id"].as_u64(),
            },
        }
    }
}

fn device_key(player: u32) -> String {
    format!("device key of player number {player}")
}

/// The protocol of the game without rules, as `muse master-game` has it.
const PROTOCOL: u64 = 0x4d55_5345_0000_0001;
const PROGRESS: &str = "/v1/progress/chaos";
const STEP: Duration = Duration::from_millis(10);
