//! GGRS: pairs of players in the duel, over links in memory and in virtual time.
//!
//! GGRS asks the system what time it is. So that it plays in virtual time, this program has its own `clock_gettime`, which the standard library then
//! uses in place of the system's.

#[path = "../../../../tools/bench/src/rollback/pairs.rs"]
mod pairs;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use ggrs::{
    Config, GgrsRequest, InputStatus, Message, NonBlockingSocket, P2PSession, PlayerType,
    PredictRepeatLast, SessionBuilder, SessionState,
};
use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::{DeterministicGame, Frame, Step};
use muse_wire::{Duration, Instant};
use pairs::{Counts, Side};

struct Game2;

impl Config for Game2 {
    type Input = u8;
    type InputPredictor = PredictRepeatLast;
    type State = Duel;
    type Address = usize;
}

/// Packets as GGRS's own UDP socket makes them, without the socket.
#[derive(Default)]
struct Post {
    inbox: Vec<Vec<u8>>,
    outbox: Vec<Vec<u8>>,
}

struct Link {
    post: Rc<RefCell<Post>>,
    other: usize,
}

impl NonBlockingSocket<usize> for Link {
    fn send_to(&mut self, message: &Message, _: &usize) {
        let bytes = bincode::serialize(message).expect("a message serialises");
        self.post.borrow_mut().outbox.push(bytes);
    }

    fn receive_all_messages(&mut self) -> Vec<(usize, Message)> {
        let mut post = self.post.borrow_mut();
        let messages = post.inbox.drain(..);
        let messages = messages.filter_map(|bytes| bincode::deserialize(&bytes).ok());
        messages.map(|message| (self.other, message)).collect()
    }
}

struct GgrsSide {
    session: P2PSession<Game2>,
    me: usize,
    post: Rc<RefCell<Post>>,
    state: Duel,
    frame: u32,
    next_at: Instant,
    polled_at: Instant,
    counts: Counts,
    events: Vec<<Duel as DeterministicGame>::Event>,
}

impl Side for GgrsSide {
    fn handle(&mut self, _: Instant, packet: &mut [u8]) {
        // Messages are read when the session is run, which is when they are given to it.
        self.post.borrow_mut().inbox.push(packet.to_vec());
    }

    fn run(&mut self, now: Instant, input: &dyn Fn(u32) -> u8, out: &mut Vec<Vec<u8>>) {
        VIRTUAL_MICROS.store(now.as_micros(), Ordering::Relaxed);
        if self.session.current_state() == SessionState::Synchronizing {
            // Before the match, a hundred times a second will do.
            if self.polled_at + Duration::from_millis(10) <= now {
                self.polled_at = now;
                self.session.poll_remote_clients();
            }
            self.next_at = now;
        } else if self.next_at <= now {
            // As GGRS's own examples do: a machine that is ahead runs a tenth slower.
            let ahead = self.session.frames_ahead() > 0;
            self.next_at += Duration::from_micros(if ahead { 18_333 } else { 16_667 });
            self.advance(input);
        }
        out.append(&mut self.post.borrow_mut().outbox);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl GgrsSide {
    fn advance(&mut self, input: &dyn Fn(u32) -> u8) {
        let buttons = input(self.session.current_frame().max(0) as u32);
        self.session
            .add_local_input(self.me, buttons)
            .expect("a local player");
        // The other side may be too far behind: then this frame is left out.
        let requests = self.session.advance_frame().unwrap_or_default();
        let mut rolled_back = false;
        let mut advanced = 0;
        for request in requests {
            match request {
                GgrsRequest::SaveGameState { cell, frame } => {
                    cell.save(frame, Some(self.state), None)
                }
                GgrsRequest::LoadGameState { cell, frame } => {
                    self.state = cell.load().expect("it was saved");
                    self.frame = frame as u32;
                    rolled_back = true;
                }
                GgrsRequest::AdvanceFrame { inputs } => {
                    let buttons = |index: usize| {
                        let (bits, status) = inputs[index];
                        (status != InputStatus::Disconnected).then(|| Buttons::from_bits(bits))
                    };
                    let both = [buttons(0), buttons(1)];
                    let mut step = Step::new(Frame(self.frame), &both, &mut self.events);
                    self.state.step(&mut step);
                    self.events.clear();
                    self.frame += 1;
                    advanced += 1;
                }
            }
        }
        self.counts.rollbacks += u64::from(rolled_back);
        self.counts.resimulated += u64::saturating_sub(advanced, 1);
        self.counts.frames += u64::from(advanced > 0);
        self.session.events().for_each(drop);
    }
}

fn side(me: usize, seed: u64) -> Box<dyn Side> {
    let post = Rc::new(RefCell::new(Post::default()));
    let link = Link {
        post: Rc::clone(&post),
        other: 1 - me,
    };
    let kind = |player: usize| match player == me {
        true => PlayerType::Local,
        false => PlayerType::Remote(player),
    };
    let session = SessionBuilder::<Game2>::new()
        .with_num_players(2)
        .expect("two players")
        .add_player(kind(0), 0)
        .and_then(|builder| builder.add_player(kind(1), 1))
        .and_then(|builder| builder.start_p2p_session(link))
        .expect("a session of two");
    Box::new(GgrsSide {
        session,
        me,
        post,
        state: Duel::new(seed),
        frame: 0,
        next_at: Instant::ZERO,
        polled_at: Instant::ZERO,
        counts: Counts::default(),
        events: Vec::new(),
    })
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().unwrap_or(0));
    let mut number = |default| arguments.next().unwrap_or(default);
    let (pairs, seconds, round) = (number(16), number(10), number(0));
    let sides = (0..pairs)
        .map(|seed| [side(0, seed), side(1, seed)])
        .collect();
    let report = pairs::run(sides, seconds, round);
    println!(
        "result {}",
        serde_json::to_string(&report).expect("numbers")
    );
}

/// Replaces the function that the standard library calls for every clock. The benchmark's own CPU clock is read from the kernel without it.
///
/// # Safety
/// As the system's: `time` points to where a `timespec` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut Timespec) -> i32 {
    let micros = VIRTUAL_MICROS.load(Ordering::Relaxed);
    let value = Timespec {
        seconds: EPOCH_SECONDS + (micros / 1_000_000) as i64,
        nanoseconds: (micros % 1_000_000 * 1_000) as i64,
    };
    // SAFETY: the caller's promise.
    unsafe { time.write(value) };
    0
}

/// The system's `timespec` on 64-bit Linux.
#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

static VIRTUAL_MICROS: AtomicU64 = AtomicU64::new(0);
/// Some time long after 1970, from which deadlines can be subtracted.
const EPOCH_SECONDS: i64 = 1_000_000_000;
