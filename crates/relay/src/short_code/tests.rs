//! Guests and a host over a network that loses, repeats and reorders, with right and wrong codes, and in between somebody who has all packets.

use muse_wire::{Duration, Instant};

use super::*;
use crate::packet::{End, LegId};

const HOST_KEY: [u8; 32] = [9; 32];

fn code(secret: u32) -> ShortCode {
    let room = RoomCode::from_bits(12_345).expect("30 bits");
    ShortCode::new(room, CodeSecret::new(secret.to_le_bytes()))
}

fn giver(seed: u8) -> KeyGiver {
    KeyGiver::new(Instant::ZERO, code(7), HOST_KEY, [seed; 32])
}

fn leg(number: usize) -> LegId {
    LegId::new(number as u32, number, End::Host)
}

/// A network between a host and guests: each datagram is lost, repeated and held back by chance. Counts what goes each way.
struct Net {
    now: Instant,
    random: fastrand::Rng,
    giver: KeyGiver,
    guests: Vec<KeyTaker>,
    /// Arrival, guest, to the host or from it, packet.
    flying: Vec<(Instant, usize, bool, CodePacket)>,
    loss: f64,
    /// Answers that were longer than what they answer, or answered nothing.
    grown: usize,
}

impl Net {
    fn new(seed: u64, loss: f64) -> Self {
        Self {
            now: Instant::ZERO,
            random: fastrand::Rng::with_seed(seed),
            giver: giver(seed as u8),
            guests: Vec::new(),
            flying: Vec::new(),
            loss,
            grown: 0,
        }
    }

    fn add(&mut self, secret: u32) -> usize {
        let number = self.guests.len();
        let seed = [number as u8 + 100; 32];
        self.guests
            .push(KeyTaker::new(self.now, code(secret), seed));
        number
    }

    fn launch(&mut self, guest: usize, to_host: bool, packet: CodePacket) {
        while self.random.f64() >= self.loss {
            let delay = Duration::from_millis(self.random.u64(5..150));
            self.flying.push((self.now + delay, guest, to_host, packet));
            if self.random.f64() > 0.2 {
                break;
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            for guest in 0..self.guests.len() {
                while let Some(packet) = self.guests[guest].poll_transmit(self.now) {
                    self.launch(guest, true, packet);
                }
            }
            let landed = self.flying.extract_if(.., |(at, ..)| *at <= self.now);
            let landed: Vec<_> = landed.collect();
            for (_, guest, to_host, packet) in landed {
                if !to_host {
                    self.guests[guest].handle(self.now, packet);
                } else if let Some(answer) = self.giver.handle(self.now, leg(guest), packet) {
                    self.grown += usize::from(len(&answer) > len(&packet));
                    self.launch(guest, false, answer);
                }
            }
            self.now += Duration::from_millis(5);
        }
    }
}

fn len(packet: &CodePacket) -> usize {
    packet.emit(&mut [0; CODE_PACKET_LEN_MAX])
}

/// Carries packets between a guest and a host without a network. Returns those that the guest sent.
fn exchange(
    giver: &mut KeyGiver,
    from: LegId,
    taker: &mut KeyTaker,
    now: Instant,
) -> Vec<CodePacket> {
    let mut said = Vec::new();
    while let Some(packet) = taker.poll_transmit(now) {
        said.push(packet);
        if let Some(answer) = giver.handle(now, from, packet) {
            taker.handle(now, answer);
        }
    }
    said
}

#[test]
fn the_right_code_gets_the_key_through_loss_and_disorder() {
    for seed in 0..20 {
        let mut net = Net::new(seed, 0.3);
        for _ in 0..4 {
            net.add(7);
        }
        net.run(Duration::from_secs(30));
        for guest in &net.guests {
            assert_eq!(guest.outcome(), Some(Ok(HOST_KEY)), "seed {seed}");
        }
        assert_eq!(
            net.giver.tries_left(),
            KeyGiver::TRIES_MAX,
            "nobody was wrong"
        );
        assert_eq!(net.grown, 0);
    }
}

#[test]
fn a_wrong_code_gets_nothing_and_is_counted_once_however_often_it_is_sent() {
    for seed in 0..20 {
        let mut net = Net::new(seed, 0.3);
        let (wrong, right) = (net.add(8), net.add(7));
        net.run(Duration::from_secs(30));
        assert_eq!(
            net.guests[wrong].outcome(),
            Some(Err(CodeRefusal::WrongCode))
        );
        assert_eq!(net.guests[right].outcome(), Some(Ok(HOST_KEY)));
        assert_eq!(
            net.giver.tries_left(),
            KeyGiver::TRIES_MAX - 1,
            "seed {seed}"
        );
    }
}

#[test]
fn guesses_are_spaced_out() {
    let mut giver = giver(1);
    let mut now = Instant::ZERO;
    let mut guesses = 0;
    let mut looked_at = 0;
    let span = Duration::from_secs(600);
    while now < Instant::ZERO + span {
        let mut taker = KeyTaker::new(now, code(100 + guesses), [guesses as u8; 32]);
        exchange(&mut giver, leg(guesses as usize % 50), &mut taker, now);
        looked_at += u32::from(taker.outcome() == Some(Err(CodeRefusal::WrongCode)));
        guesses += 1;
        now += Duration::from_millis(250);
    }
    assert_eq!(guesses, 2_400);
    assert_eq!(
        looked_at,
        KeyGiver::TRIES_MAX + 10 - 1,
        "eight, and one a minute"
    );
    // One who has the code comes in again as soon as a try has grown back.
    let mut taker = KeyTaker::new(now, code(7), [1; 32]);
    exchange(&mut giver, leg(1), &mut taker, now + KeyGiver::TRY_INTERVAL);
    assert_eq!(taker.outcome(), Some(Ok(HOST_KEY)));
}

#[test]
fn what_was_recorded_is_worth_nothing_later() {
    let mut giver = giver(2);
    let now = Instant::ZERO;
    let mut taker = KeyTaker::new(now, code(7), [1; 32]);
    let said = exchange(&mut giver, leg(1), &mut taker, now);
    assert_eq!((said.len(), taker.outcome()), (2, Some(Ok(HOST_KEY))));
    // From another way the host draws another point: the old proof does not fit.
    let answers: Vec<_> = said
        .iter()
        .map(|it| giver.handle(now, leg(2), *it))
        .collect();
    assert!(matches!(answers[0], Some(CodePacket::Answer { .. })));
    let denied = matches!(
        answers[1],
        Some(CodePacket::Denied {
            reason: Denial::WrongCode,
            ..
        })
    );
    assert!(denied, "{answers:?}");
    assert_eq!(giver.tries_left(), KeyGiver::TRIES_MAX - 1);
    // On the same way the same answers come again, and cost nothing.
    let again: Vec<_> = said
        .iter()
        .map(|it| giver.handle(now, leg(1), *it))
        .collect();
    assert!(matches!(again[1], Some(CodePacket::Key { .. })));
    assert_eq!(giver.tries_left(), KeyGiver::TRIES_MAX - 1);
}

#[test]
fn the_host_must_have_the_secret_too() {
    // The relay plays the host, with a guess of its own.
    let mut fake = KeyGiver::new(Instant::ZERO, code(8), [66; 32], [3; 32]);
    let mut taker = KeyTaker::new(Instant::ZERO, code(7), [1; 32]);
    exchange(&mut fake, leg(1), &mut taker, Instant::ZERO);
    assert_eq!(taker.outcome(), Some(Err(CodeRefusal::WrongCode)));
    // It lies and sends a key all the same.
    let mut taker = KeyTaker::new(Instant::ZERO, code(7), [2; 32]);
    let ask = taker.poll_transmit(Instant::ZERO).expect("an Ask");
    let answer = fake.handle(Instant::ZERO, leg(2), ask).expect("an Answer");
    taker.handle(Instant::ZERO, answer);
    let Some(CodePacket::Confirm { random, .. }) = taker.poll_transmit(Instant::ZERO) else {
        unreachable!("a Confirm follows");
    };
    let (sealed, proof) = ([66; 32], [0; 32]);
    let key = CodePacket::Key {
        random,
        sealed,
        proof,
    };
    taker.handle(Instant::ZERO, key);
    assert_eq!(taker.outcome(), None);
    // Neither does a second answer give it a second guess.
    taker.handle(Instant::ZERO, answer);
    assert_eq!(taker.poll_transmit(Instant::ZERO), None);
}

#[test]
fn an_exchange_that_the_host_lost_begins_anew_but_not_for_ever() {
    let now = Instant::ZERO;
    let mut taker = KeyTaker::new(now, code(7), [1; 32]);
    let mut rounds = 0;
    while taker.outcome().is_none() {
        let ask = taker.poll_transmit(now).expect("an Ask");
        let answer = giver(4).handle(now, leg(1), ask).expect("an Answer");
        taker.handle(now, answer);
        let confirm = taker.poll_transmit(now).expect("a Confirm");
        let answer = giver(5).handle(now, leg(1), confirm).expect("a denial");
        taker.handle(now, answer);
        rounds += 1;
    }
    assert_eq!(rounds, 3);
    assert_eq!(taker.outcome(), Some(Err(CodeRefusal::Interrupted)));
}

#[test]
fn a_flood_of_questions_is_bounded() {
    let mut giver = giver(6);
    let asked = KeyTaker::new(Instant::ZERO, code(7), [1; 32]).poll_transmit(Instant::ZERO);
    let Some(CodePacket::Ask { point, .. }) = asked else {
        unreachable!("an Ask comes first");
    };
    let mut answered = 0;
    for number in 0..1_000 {
        let random = (number as u64).to_le_bytes();
        let ask = CodePacket::Ask { random, point };
        answered += usize::from(giver.handle(Instant::ZERO, leg(number), ask).is_some());
    }
    assert_eq!((answered, giver.exchanges()), (64, 64));
}

#[test]
fn packets_are_read_back() {
    let (random, bytes) = ([1; 8], [2; 32]);
    let mut packets = vec![
        CodePacket::Ask {
            random,
            point: bytes,
        },
        CodePacket::Answer {
            random,
            point: bytes,
        },
        CodePacket::Confirm {
            random,
            proof: bytes,
        },
        CodePacket::Key {
            random,
            sealed: bytes,
            proof: [3; 32],
        },
    ];
    let reasons = [Denial::WrongCode, Denial::TooManyTries, Denial::Unknown];
    packets.extend(reasons.map(|reason| CodePacket::Denied { random, reason }));
    for packet in packets {
        let mut buffer = [0; CODE_PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        assert_eq!(CodePacket::parse(&buffer[..len]), Some(packet));
        assert_eq!(CodePacket::parse(&buffer[..len - 1]), None);
    }
}

#[test]
fn short_codes_are_read_as_people_type_them() {
    let code = code(0xF_FFFF);
    let text = code.to_string();
    assert_eq!((text.len(), text.find('-')), (11, Some(6)));
    assert_eq!(text.to_lowercase().replace('-', " ").parse(), Ok(code));
    assert_eq!(text[1..].parse::<ShortCode>(), Err(CodeError::Length));
    assert_eq!(
        format!("{text}A").parse::<ShortCode>(),
        Err(CodeError::Length)
    );
    assert_ne!(ShortCode::new(code.room(), CodeSecret::new([1; 4])), code);
}
