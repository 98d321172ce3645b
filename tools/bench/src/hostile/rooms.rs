//! Floods of room openings, of joins and of datagrams inside rooms at `muse relay`, beside rooms in which players talk.

use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use muse_bench_workload::control::Control;
use muse_relay::packet::{Candidates, LegId, PACKET_LEN_MAX, Packet, ShownToken, VERSION};
use muse_relay::{RoomCode, RoomKey};

use super::attacker::AttackReport;
use crate::isolation::Surroundings;
use crate::relay::v2::LoadReport;
use crate::role::{Programs, Role};
use muse_program::bars::{Bar, Verdict, settle};

/// An attack on a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoomAttack {
    /// Rooms are opened, from 64 networks, as many as the relay lets each have, and more.
    Openings,
    /// Guests join: rooms that do not exist, and one in which players are.
    Joins,
    /// Requests with a cookie that the relay did not make.
    FalseCookies,
    /// Guests of two of the players' rooms send ten times as much as the other attacks, and more than they may.
    Guests,
}

/// The relay and the attack.
#[derive(Args)]
pub(crate) struct RoomArguments {
    /// The relay.
    #[arg(long)]
    relay: SocketAddr,
    /// The attack.
    #[arg(long)]
    attack: RoomAttack,
    /// Hostile packets a second.
    #[arg(long)]
    rate: u64,
}

/// Attacks from `go` to `stop`.
pub(super) fn run(arguments: &RoomArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let mut strangers = Vec::new();
    for number in 0..ADDRESSES {
        strangers.push(Stranger::new(arguments.relay, number)?);
    }
    control.connected();
    while !control.has_started() {
        std::thread::sleep(TURN);
    }
    let mut rate = arguments.rate;
    if arguments.attack == RoomAttack::Guests {
        // Only now: the players have opened their rooms.
        rate *= GUESTS_TIMES;
        strangers.truncate(usize::from(GUESTS));
        for (number, stranger) in (0..GUESTS).zip(&mut strangers) {
            stranger.enter(RoomKey::new([number % GUESTS_ROOMS; 16]).code())?;
        }
    }
    let (begun, mut sent, mut report) = (Instant::now(), 0, AttackReport::default());
    let mut rng = fastrand::Rng::with_seed(1);
    let mut buffer = [0; PACKET_LEN_MAX];
    while !control.has_stopped() {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        for _ in 0..due.saturating_sub(sent).min(BURST_MAX) {
            let stranger = &strangers[sent as usize % strangers.len()];
            let len = match stranger.guest {
                Some(id) => datagram(id, &mut buffer),
                None => {
                    let packet = stranger.packet(arguments.attack, sent, &mut rng);
                    packet.emit(&mut buffer)
                }
            };
            sent += 1;
            // A full buffer is what a flood meets.
            if stranger.socket.send(&buffer[..len]).is_ok() {
                report.sent += 1;
                report.sent_bytes += len as u64;
            }
        }
        sent = sent.max(due.saturating_sub(BURST_MAX));
        for stranger in &strangers {
            while stranger.socket.recv(&mut buffer).is_ok() {}
        }
        std::thread::sleep(TURN);
    }
    control.result(&report);
    Ok(ExitCode::SUCCESS)
}

/// An address with a proof that it is reachable.
struct Stranger {
    socket: UdpSocket,
    random: [u8; 8],
    cookie: [u8; COOKIE_LEN],
    /// Its end of the way to a host, once it is in a room.
    guest: Option<LegId>,
}

impl Stranger {
    fn new(relay: SocketAddr, number: u8) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::from(([127, 66, number, 1], 0)))?;
        socket.connect(relay)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        let (random, mut buffer) = ([number; 8], [0; PACKET_LEN_MAX]);
        let hello = Packet::Hello {
            version: VERSION,
            random,
        };
        let len = hello.emit(&mut buffer);
        socket.send(&buffer[..len])?;
        let len = socket.recv(&mut buffer)?;
        let Some(Packet::Cookie { cookie, .. }) = Packet::parse(&buffer[..len]) else {
            anyhow::bail!("the relay does not answer");
        };
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            random,
            cookie,
            guest: None,
        })
    }

    /// Joins a room.
    fn enter(&mut self, code: RoomCode) -> anyhow::Result<()> {
        self.socket.set_nonblocking(false)?;
        let mut buffer = [0; PACKET_LEN_MAX];
        while self.guest.is_none() {
            let join = self.join(code);
            let len = join.emit(&mut buffer);
            self.socket.send(&buffer[..len])?;
            let len = self.socket.recv(&mut buffer)?;
            match Packet::parse(&buffer[..len]) {
                Some(Packet::Joined { id, .. }) => self.guest = Some(id),
                // The one from before has expired.
                Some(Packet::Cookie { cookie, .. }) => self.cookie = cookie,
                answer => anyhow::bail!("the relay lets no guest in: {answer:?}"),
            }
        }
        self.socket.set_nonblocking(true)?;
        Ok(())
    }

    fn join(&self, code: RoomCode) -> Packet {
        Packet::Join {
            direct: true,
            random: self.random,
            cookie: self.cookie,
            code,
            local: Candidates::NONE,
        }
    }

    fn packet(&self, attack: RoomAttack, number: u64, rng: &mut fastrand::Rng) -> Packet {
        let mut key = [0; 16];
        rng.fill(&mut key);
        let mut cookie = self.cookie;
        if attack == RoomAttack::FalseCookies {
            rng.fill(&mut cookie);
        }
        match attack {
            RoomAttack::Openings | RoomAttack::FalseCookies => Packet::Open {
                direct: true,
                random: self.random,
                cookie,
                key: RoomKey::new(key),
                local: Candidates::NONE,
                token: ShownToken::NONE,
                term: 0,
            },
            RoomAttack::Joins | RoomAttack::Guests => {
                // The first of the players' rooms, and codes that are guessed.
                let theirs = RoomKey::new([0; 16]).code();
                let guessed = RoomCode::from_bits(rng.u64(..1 << 30)).unwrap_or(theirs);
                self.join(match number.is_multiple_of(2) {
                    true => theirs,
                    false => guessed,
                })
            }
        }
    }
}

/// Writes a datagram to the host, which is none of the players': they are of another length.
fn datagram(id: LegId, buffer: &mut [u8; PACKET_LEN_MAX]) -> usize {
    let header = id.data_header();
    buffer[..header.len()].copy_from_slice(&header);
    // A data packet of the transport begins so.
    buffer[header.len()] = 0x80;
    buffer.len()
}

/// A relay with rooms in which players talk, and an attack or none.
struct Run {
    load: LoadReport,
    relay_cpu_seconds: f64,
    relay_memory_growth_bytes: u64,
    attacker: AttackReport,
}

/// Runs every attack against a relay of its own, and judges what the players in other rooms notice.
pub(super) fn bars(
    verdict: Verdict,
    surroundings: Surroundings,
    seconds: u64,
    rate: u64,
) -> anyhow::Result<Vec<Bar>> {
    let calm = || -> anyhow::Result<Run> {
        let quiet = measure(surroundings, None, seconds, rate)?;
        print("no attack", &quiet);
        Ok(quiet)
    };
    let mut quiet = calm()?;
    let mut bars = Vec::new();
    for attack in RoomAttack::value_variants() {
        let name = name(*attack)?.replace('-', "_");
        // Rooms and guests up to the relay's own limits, at the size that they are said to have.
        let state = match attack {
            RoomAttack::Openings => ROOMS_KILOBYTES,
            RoomAttack::Joins => GUESTS_KILOBYTES,
            RoomAttack::FalseCookies | RoomAttack::Guests => 0.0,
        };
        bars.extend(settle(verdict, |again| {
            if again {
                quiet = calm()?;
            }
            let run = measure(surroundings, Some(*attack), seconds, rate)?;
            print(&name, &run);
            Ok(judge(&name, &run, &quiet, state))
        })?);
    }
    Ok(bars)
}

fn measure(
    surroundings: Surroundings,
    attack: Option<RoomAttack>,
    seconds: u64,
    rate: u64,
) -> anyhow::Result<Run> {
    let mut programs = Programs::new(surroundings);
    let mut relay = programs.muse("the relay", 0, "relay --listen 127.0.0.1:0 --open")?;
    let ready = relay.expect("ready", START_MAX)?;
    let at = ready.split_whitespace().next().context("no address")?;
    let mut attacker = attack
        .map(|attack| -> anyhow::Result<Role> {
            let attack = name(attack)?;
            let line = format!("bench-hostile rooms --relay {at} --attack {attack} --rate {rate}");
            let mut attacker = programs.muse("the attacker", 1, &line)?;
            attacker.expect("connected", START_MAX)?;
            Ok(attacker)
        })
        .transpose()?;
    programs.set_realtime(PRIORITY);
    let line = format!(
        "bench-relay v2 load --kind relay --server {at} --size 64 --seconds {seconds} --rate {HONEST_RATE}"
    );
    let mut players = programs.muse("the players", 1, &line)?;
    players.expect("connected", START_MAX)?;
    let (before, cpu) = (relay.watch_memory()?, relay.cpu_seconds()?);
    if let Some(attacker) = &mut attacker {
        attacker.say("go")?;
    }
    players.say("go")?;
    players.expect("done", Duration::from_secs(seconds) + START_MAX)?;
    let run = Run {
        relay_cpu_seconds: relay.cpu_seconds()? - cpu,
        relay_memory_growth_bytes: relay.memory()?.resident_max.saturating_sub(before),
        attacker: attacker
            .map(Role::stop::<AttackReport>)
            .transpose()?
            .unwrap_or_default(),
        load: players.stop()?,
    };
    ensure!(run.load.received > 0, "nothing came through the relay");
    Ok(run)
}

fn print(name: &str, run: &Run) {
    println!(
        "  {name:16} p50 {:.0} us, p99 {:.0} us, delivered {:.3} %, relay {:.2} CPU-s, memory +{} kB, {} hostile packets of {} kB",
        run.load.p50_us,
        run.load.p99_us,
        run.load.arrived_percent(),
        run.relay_cpu_seconds,
        run.relay_memory_growth_bytes / 1_024,
        run.attacker.sent,
        run.attacker.sent_bytes / 1_024,
    );
}

fn judge(name: &str, run: &Run, quiet: &Run, state: f64) -> Vec<Bar> {
    let name = |what: &str| format!("hostile_relay_{name}_{what}");
    let ratio = run.load.p99_us / quiet.load.p99_us;
    let bytes = quiet.load.sent as f64 * HONEST_BYTES;
    let honest = quiet.relay_cpu_seconds / bytes;
    let hostile_cpu = (run.relay_cpu_seconds - quiet.relay_cpu_seconds).max(0.0);
    let hostile = hostile_cpu / run.attacker.sent_bytes.max(1) as f64;
    let held = run.relay_memory_growth_bytes as f64 / 1e3;
    let limit = run.attacker.sent_bytes as f64 / 1e3 + MEMORY_KILOBYTES + state;
    let delivered = run.load.arrived_percent();
    vec![
        Bar::at_most(name("p99_ratio"), ratio, 2.0).timed(),
        // Datagrams: what is reliable is so between the players, who send again.
        Bar::at_least(name("delivered_percent"), delivered, 99.0),
        Bar::at_most(name("cpu_per_byte_ratio"), hostile / honest, 4.0).timed(),
        Bar::at_most(name("memory_kilobytes"), held, limit),
    ]
}

fn name(attack: RoomAttack) -> anyhow::Result<String> {
    let value = attack.to_possible_value();
    Ok(value
        .context("every attack has a name")?
        .get_name()
        .to_owned())
}

/// Bytes of the proof that a relay gives.
const COOKIE_LEN: usize = 20;
/// Addresses of the attacker, each in another network of 256.
const ADDRESSES: u8 = 64;
/// Guests that flood the rooms they are in, those rooms, and how many times as much they send in all: more than twice what a guest may.
const GUESTS: u8 = 8;
const GUESTS_ROOMS: u8 = 2;
const GUESTS_TIMES: u64 = 10;
/// Packets a second of all players together.
const HONEST_RATE: u64 = 3_200;
/// Bytes of such a packet, with the relay's header.
const HONEST_BYTES: f64 = 72.0;
/// Memory of all rooms that a relay opens by default, 4,096, and of the guests of one room, 256.
const ROOMS_KILOBYTES: f64 = 4_096.0 * 0.5;
const GUESTS_KILOBYTES: f64 = 256.0 * 0.35;
/// Memory beside the bytes received that an attack may cost: what the program itself takes as it goes.
const MEMORY_KILOBYTES: f64 = 64.0;
const PRIORITY: u8 = 20;
const TURN: Duration = Duration::from_millis(2);
/// Hostile packets of one turn; a turn that comes late does not make good for all that it missed.
const BURST_MAX: u64 = 512;
const START_MAX: Duration = Duration::from_secs(20);
