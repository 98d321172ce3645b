//! A small game over MUSE-RP: two players or more hunt what appears on a field, for a minute.
//!
//! ```text
//! cargo run -p muse-rp-driver --example hunt                       two windows in one program, host and guest
//! cargo run -p muse-rp-driver --example hunt -- host 7777          a window and a host for others
//! cargo run -p muse-rp-driver --example hunt -- join 192.0.2.1:7777
//! cargo run -p muse-rp-driver --example hunt -- --headless 600     no windows: so many ticks, played by bots
//! ```
//!
//! Arrows or WASD walk, space shoots where you walked last. `--bots` has the program play.

mod messages;
mod picture;
mod rules;
mod session;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use minifb::{Key, Window, WindowOptions};
use muse_drivers::fill_random;
use muse_wire::{Duration, Instant};

use picture::{PIXELS_HIGH, PIXELS_WIDE, draw};
use rules::{Field, Input, Spot, TICKS_A_SECOND};
use session::{HuntGuest, HuntHost, OWN, Stage};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let bots = words.iter().position(|word| word == "--bots");
    let bots = bots.map(|at| words.remove(at)).is_some();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            let host = HuntHost::bind(HERE, 0, seed()?)?;
            let guest = HuntGuest::join(HERE, (HERE, host.port()?).into())?;
            play(Some(host), Some(guest), bots)
        }
        ["host", port] => {
            let host = HuntHost::bind(ANY, port.parse()?, seed()?)?;
            println!("listening: port {} and the next", host.port()?);
            play(Some(host), None, bots)
        }
        ["join", address] => {
            let guest = HuntGuest::join(ANY, address.parse::<SocketAddr>()?)?;
            play(None, Some(guest), bots)
        }
        ["--headless", ticks] => headless(ticks.parse()?),
        _ => Err(
            "usage: hunt [--bots] [host PORT | join ADDRESS:PORT], or hunt --headless TICKS".into(),
        ),
    }
}

/// Plays in windows until one is closed.
fn play(
    mut host: Option<HuntHost>,
    mut guest: Option<HuntGuest>,
    bots: bool,
) -> Result<(), Box<dyn Error>> {
    let mut views = [None, None];
    if host.is_some() {
        views[0] = Some(View::open("Hunt: host", 20, bots)?);
    }
    if guest.is_some() {
        views[1] = Some(View::open("Hunt: guest", 40 + PIXELS_WIDE as isize, bots)?);
    }
    let mut pace = Pace::default();
    loop {
        if let (Some(host), Some(view)) = (&mut host, &mut views[0]) {
            let input = view.input(&host.field, Some(OWN));
            host.tick(&input)?;
            if !view.show(&host.field, Some(OWN), host.stage) {
                break;
            }
        }
        if let (Some(guest), Some(view)) = (&mut guest, &mut views[1]) {
            let input = view.input(&guest.field, guest.own);
            guest.tick(&input)?;
            if !view.show(&guest.field, guest.own, guest.stage) {
                break;
            }
        }
        // What arrives is answered at once, not in the next tick only.
        let drivers = host.as_mut().map(HuntHost::driver).into_iter();
        let mut drivers: Vec<_> = drivers
            .chain(guest.as_mut().map(HuntGuest::driver))
            .collect();
        let due = pace.next(drivers[0].now());
        while drivers[0].now() < due {
            for driver in &mut drivers {
                driver.wait(Duration::from_millis(2))?;
                driver.poll()?;
            }
        }
    }
    if let Some(guest) = &mut guest {
        guest.driver().close()?;
    }
    if let Some(host) = &mut host {
        host.driver().close()?;
        report(&host.field);
    }
    Ok(())
}

/// Host and guest, played by bots, as fast as the sockets allow.
fn headless(ticks: u32) -> Result<(), Box<dyn Error>> {
    let mut host = HuntHost::bind(HERE, 0, 1)?;
    let mut guest = HuntGuest::join(HERE, (HERE, host.port()?).into())?;
    for _ in 0..ticks {
        host.tick(&host.field.bot(OWN))?;
        let input = guest.own.map(|own| guest.field.bot(own));
        guest.tick(&input.unwrap_or_default())?;
        guest.driver().wait(Duration::from_millis(2))?;
        if let Stage::Refused(reason) = guest.stage {
            return Err(reason.into());
        }
    }
    report(&host.field);
    guest.driver().close()?;
    host.driver().close()?;
    Ok(())
}

fn report(field: &Field) {
    for (id, player) in &field.players {
        println!("player {id}: {} points", player.points);
    }
}

/// A window of a player.
struct View {
    window: Window,
    title: &'static str,
    shown: Option<Stage>,
    /// The direction in which the player walked last.
    facing: Spot,
    bots: bool,
}

impl View {
    fn open(title: &'static str, left: isize, bots: bool) -> Result<Self, minifb::Error> {
        let options = WindowOptions::default();
        let mut window = Window::new(title, PIXELS_WIDE, PIXELS_HIGH, options)?;
        // Beside each other, so that one does not hide the other.
        window.set_position(left, 40);
        Ok(Self {
            window,
            title,
            shown: None,
            facing: [1.0, 0.0],
            bots,
        })
    }

    fn input(&mut self, field: &Field, own: Option<u8>) -> Input {
        if self.bots {
            return own.map(|own| field.bot(own)).unwrap_or_default();
        }
        let held = |keys: [Key; 2]| f32::from(keys.iter().any(|key| self.window.is_key_down(*key)));
        let walk = [
            held([Key::Right, Key::D]) - held([Key::Left, Key::A]),
            held([Key::Down, Key::S]) - held([Key::Up, Key::W]),
        ];
        if walk != [0.0; 2] {
            self.facing = walk;
        }
        let shoot = self.window.is_key_down(Key::Space).then_some(self.facing);
        Input { walk, shoot }
    }

    /// Draws, and says whether the window is still open.
    fn show(&mut self, field: &Field, own: Option<u8>, stage: Stage) -> bool {
        if self.shown.replace(stage) != Some(stage) {
            let about = match stage {
                Stage::Waiting => "waiting".to_owned(),
                Stage::Playing => "playing".to_owned(),
                Stage::Over => "the round is over".to_owned(),
                Stage::Refused(reason) => reason.to_string(),
                Stage::Lost(reason) => reason.to_string(),
            };
            self.window.set_title(&format!("{}: {about}", self.title));
        }
        let pixels = draw(field, own);
        let shown = self
            .window
            .update_with_buffer(&pixels, PIXELS_WIDE, PIXELS_HIGH);
        shown.is_ok() && self.window.is_open() && !self.window.is_key_down(Key::Escape)
    }
}

/// Ticks at the same distance.
#[derive(Default)]
struct Pace {
    due: Option<Instant>,
}

impl Pace {
    fn next(&mut self, now: Instant) -> Instant {
        let tick = Duration::from_millis(1_000 / u64::from(TICKS_A_SECOND));
        let due = self.due.unwrap_or(now) + tick;
        // After a pause the game goes on from there.
        let due = due.max(now);
        self.due = Some(due);
        due
    }
}

/// A round unlike any other.
fn seed() -> std::io::Result<u64> {
    let mut seed = [0; 8];
    fill_random(&mut seed)?;
    Ok(u64::from_le_bytes(seed))
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
