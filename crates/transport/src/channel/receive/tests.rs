//! The receiving half alone: every order of arrival, twice, with fragments, and what a hostile peer may send.

use fastrand::Rng;

use super::*;
use crate::packet::FRAGMENT_LEN;

/// Keeps what is delivered.
#[derive(Default)]
struct Kept {
    messages: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    held: usize,
    /// The limit of what may be held; none by default.
    limit: Option<usize>,
    age: u64,
}

impl Sink for Kept {
    fn admit(&mut self, bytes: usize, _: Need) -> bool {
        self.limit.is_none_or(|limit| self.held + bytes <= limit)
    }

    fn hold(&mut self, bytes: usize) {
        self.held += bytes;
    }

    fn free(&mut self, bytes: usize) {
        self.held -= bytes;
    }

    fn deliver<'p>(&mut self, len: usize, pieces: impl Iterator<Item = &'p [u8]>) {
        self.messages.push(pieces.flatten().copied().collect());
        assert_eq!(self.messages.last().map(Vec::len), Some(len));
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    fn age(&self) -> u64 {
        self.age
    }
}

const FIRST: u64 = MESSAGE_NUMBER_FIRST;
const MESSAGE_MAX: usize = 1 << 20;

fn channel(delivery: Delivery) -> ReceiveChannel {
    ReceiveChannel::new(delivery, MESSAGE_MAX)
}

fn whole(number: u64, payload: &[u8]) -> MessageFrame<'_> {
    MessageFrame {
        channel: 0,
        priority: 2,
        number_low: Some(number as u16),
        fragment: None,
        payload,
    }
}

/// Handles a frame that an honest peer sends and for which there is room.
fn take(channel: &mut ReceiveChannel, frame: &MessageFrame<'_>, kept: &mut Kept) {
    assert_eq!(channel.receive(frame, kept), Ok(Admission::Taken));
}

fn message(index: u64) -> Vec<u8> {
    // Every seventh comes in pieces.
    let len = if index % 7 == 3 {
        2 * FRAGMENT_LEN + 10
    } else {
        8 + index as usize % 50
    };
    let mut payload = vec![index as u8; len];
    payload[..8].copy_from_slice(&index.to_le_bytes());
    payload
}

fn index_of(payload: &[u8]) -> u64 {
    let index = u64::from_le_bytes(*payload.first_chunk().expect("eight bytes"));
    assert_eq!(payload, message(index), "intact");
    index
}

/// Delivers 600 messages in an order that strays by up to `stray` places, each piece up to twice; of `lost` ones none.
fn shuffled(
    delivery: Delivery,
    stray: u64,
    seed: u64,
    lost: impl Fn(u64) -> bool,
) -> (ReceiveChannel, Vec<u64>) {
    let mut rng = Rng::with_seed(seed);
    let mut channel = channel(delivery);
    let mut kept = Kept::default();
    let mut arrivals = Vec::new();
    for index in 0..600 {
        let pieces = message(index).len().div_ceil(FRAGMENT_LEN);
        for piece in 0..pieces {
            for _ in 0..rng.u8(1..=2) {
                arrivals.push((index * 10 + rng.u64(..=stray * 10), index, piece, pieces));
            }
        }
    }
    arrivals.sort_unstable();
    for (_, index, piece, pieces) in arrivals.into_iter().filter(|arrival| !lost(arrival.1)) {
        let payload = message(index);
        let number = FIRST + index;
        let mut frame = whole(number, &payload);
        if pieces > 1 {
            let end = payload.len().min((piece + 1) * FRAGMENT_LEN);
            frame.payload = &payload[piece * FRAGMENT_LEN..end];
            frame.fragment = Some(Fragment {
                index: piece as u32,
                total: payload.len() as u32,
            });
        }
        let admission = channel
            .receive(&frame, &mut kept)
            .expect("what an honest peer sends");
        assert_eq!(admission, Admission::Taken);
        assert_eq!(kept.held, channel.held);
    }
    let order = kept
        .messages
        .iter()
        .map(|payload| index_of(payload))
        .collect();
    (channel, order)
}

#[test]
fn ordered_messages_come_once_and_in_order_across_the_wrap() {
    for seed in 0..20 {
        let (channel, order) = shuffled(Delivery::ReliableOrdered, 100, seed, |_| false);
        assert_eq!(order, (0..600).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(
            (channel.held, channel.slots.len()),
            (0, 0),
            "nothing is kept"
        );
    }
}

#[test]
fn unordered_messages_come_once() {
    for seed in 0..20 {
        let (channel, mut order) = shuffled(Delivery::ReliableUnordered, 100, seed, |_| false);
        assert!(!order.is_sorted(), "as they arrive");
        order.sort_unstable();
        assert_eq!(order, (0..600).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(
            (channel.held, channel.slots.len()),
            (0, 0),
            "nothing is kept"
        );
    }
}

#[test]
fn sequenced_messages_never_go_back() {
    for delivery in [Delivery::Sequenced, Delivery::ReliableSequenced] {
        for seed in 0..20 {
            let (channel, order) = shuffled(delivery, 100, seed, |_| false);
            assert!(order.is_sorted_by(|a, b| a < b), "{delivery:?} seed {seed}");
            assert_eq!(order.last(), Some(&599));
            assert!(order.len() > 50);
            assert_eq!(channel.stats.messages_received, order.len() as u64);
        }
    }
}

#[test]
fn a_partially_reliable_channel_skips_no_more_than_promised() {
    let delivery = Delivery::partially_reliable(10, 70).expect("a promise");
    for seed in 0..20 {
        let lost = |index: u64| index % 10 == 4 || index % 20 == 9;
        let (channel, order) = shuffled(delivery, 0, seed, lost);
        assert!(order.is_sorted_by(|a, b| a < b));
        for window in 0..59 {
            let range = window * 10..window * 10 + 10;
            let came = order.iter().filter(|index| range.contains(*index)).count();
            assert!(came >= 7, "window {window} of seed {seed}: {came}");
        }
        assert_eq!(channel.held, 0);
    }
}

#[test]
fn a_skipped_message_is_not_waited_for() {
    let mut channel = channel(Delivery::ReliableOrdered);
    let mut kept = Kept::default();
    take(&mut channel, &whole(FIRST + 1, b"b"), &mut kept);
    assert!(kept.messages.is_empty());
    channel
        .skip(FIRST as u16, &mut kept)
        .expect("in the window");
    channel.skip(FIRST as u16, &mut kept).expect("old news");
    take(&mut channel, &whole(FIRST, b"a"), &mut kept);
    assert_eq!(kept.messages, [b"b"]);
    assert_eq!(channel.stats.messages_skipped, 1);
    assert!(
        super::ReceiveChannel::new(Delivery::Sequenced, 10)
            .skip(0, &mut kept)
            .is_err()
    );
}

#[test]
fn what_no_honest_peer_sends_is_refused() {
    let mut kept = Kept::default();
    for delivery in [Delivery::ReliableOrdered, Delivery::ReliableUnordered] {
        let mut channel = channel(delivery);
        let far = FIRST + 2 * CHANNEL_WINDOW;
        assert!(channel.receive(&whole(far, b"far"), &mut kept).is_err());
        assert!(channel.skip(far as u16, &mut kept).is_err());
        let mut frame = whole(FIRST, &[0; FRAGMENT_LEN]);
        frame.fragment = Some(Fragment {
            index: 0,
            total: MESSAGE_MAX as u32 + 1,
        });
        assert!(
            channel.receive(&frame, &mut kept).is_err(),
            "larger than agreed"
        );
        frame.fragment = Some(Fragment {
            index: 0,
            total: 2_000,
        });
        assert!(channel.receive(&frame, &mut kept).is_ok());
        frame.fragment = Some(Fragment {
            index: 0,
            total: 3_000,
        });
        assert!(channel.receive(&frame, &mut kept).is_err(), "two totals");
        frame.number_low = None;
        assert!(channel.receive(&frame, &mut kept).is_err(), "no number");
    }
    assert!(kept.messages.is_empty());
}

#[test]
fn what_there_is_no_room_for_changes_nothing() {
    let promise = Delivery::partially_reliable(100, 100).expect("a promise");
    for delivery in [
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableSequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableOrdered,
        promise,
    ] {
        for seed in 0..10 {
            let mut rng = Rng::with_seed(seed);
            let mut channel = channel(delivery);
            let mut kept = Kept::default();
            for index in 0..100 {
                let payload = message(index);
                for (piece, bytes) in payload.chunks(FRAGMENT_LEN).enumerate() {
                    let mut frame = whole(FIRST + index, bytes);
                    if payload.len() > FRAGMENT_LEN {
                        frame.fragment = Some(Fragment {
                            index: piece as u32,
                            total: payload.len() as u32,
                        });
                    }
                    for _ in 0..rng.u8(..3) {
                        kept.limit = Some(kept.held);
                        let before = (channel.held, kept.messages.len());
                        let admission = channel.receive(&frame, &mut kept);
                        assert_eq!(admission, Ok(Admission::Refused));
                        assert_eq!(before, (channel.held, kept.messages.len()));
                    }
                    kept.limit = None;
                    take(&mut channel, &frame, &mut kept);
                }
            }
            let order: Vec<u64> = kept.messages.iter().map(|m| index_of(m)).collect();
            assert_eq!(order, (0..100).collect::<Vec<_>>(), "{delivery:?}");
        }
    }
}

#[test]
fn few_unfinished_unreliable_messages_are_kept() {
    let payload = [0; FRAGMENT_LEN];
    let mut kept = Kept::default();
    let mut unreliable = channel(Delivery::Unreliable);
    for number in 0..1_000 {
        let mut frame = whole(FIRST + number, &payload);
        frame.fragment = Some(Fragment {
            index: 90,
            total: 100_000,
        });
        take(&mut unreliable, &frame, &mut kept);
    }
    assert_eq!(unreliable.assemblies.len(), ASSEMBLIES_MAX);
    let each = ASSEMBLY_OVERHEAD + cost(FRAGMENT_LEN);
    assert_eq!(unreliable.held, ASSEMBLIES_MAX * each);
    assert_eq!(
        unreliable.stats.messages_incomplete,
        1_000 - ASSEMBLIES_MAX as u64
    );
    assert!(kept.messages.is_empty());
}

#[test]
fn the_oldest_unfinished_message_that_need_not_arrive_makes_room() {
    for (delivery, expendable) in [
        (Delivery::Sequenced, 3),
        (Delivery::ReliableSequenced, 2),
        (Delivery::ReliableOrdered, 0),
    ] {
        let mut channel = channel(delivery);
        let mut kept = Kept::default();
        // The highest number begins first.
        for (age, number) in [2, 0, 1].into_iter().enumerate() {
            kept.age = age as u64;
            let mut frame = whole(FIRST + number, &[0; FRAGMENT_LEN]);
            frame.fragment = Some(Fragment {
                index: 0,
                total: 5_000,
            });
            take(&mut channel, &frame, &mut kept);
        }
        let mut gone = Vec::new();
        while let Some(age) = channel.oldest_expendable() {
            gone.push(age);
            channel.evict(&mut kept);
        }
        assert_eq!(gone.len(), expendable, "{delivery:?}");
        assert!(gone.is_sorted());
        assert_eq!(
            kept.held,
            (3 - expendable) * (ASSEMBLY_OVERHEAD + cost(FRAGMENT_LEN))
        );
    }
}

#[test]
fn far_numbers_cost_little_time_and_memory() {
    let partial = Delivery::partially_reliable(4_096, 0).expect("a promise");
    let far = FIRST + 2 * CHANNEL_WINDOW - 1;
    for delivery in [Delivery::ReliableOrdered, Delivery::ReliableUnordered] {
        let mut channel = channel(delivery);
        let mut kept = Kept::default();
        take(&mut channel, &whole(far, b""), &mut kept);
        channel.skip(far as u16 - 1, &mut kept).expect("in reach");
        assert!(channel.held <= cost(0));
        assert!(channel.slots.capacity() <= 4);
    }
    // Every jump skips thousands, as the promise allows.
    let mut channel = channel(partial);
    let mut kept = Kept::default();
    let steps = work::steps_of(|| {
        for jump in 1..=10 {
            take(&mut channel, &whole(FIRST + jump * 4_000, b""), &mut kept);
        }
    });
    assert_eq!(channel.stats.messages_skipped, 10 * 4_000 + 1 - 10);
    assert!(steps <= 10 * 4_096 / 64, "{steps} steps");
}

#[test]
fn a_large_unreliable_message_is_delivered_once() {
    let mut channel = channel(Delivery::Unreliable);
    let mut kept = Kept::default();
    let payload = vec![1; 1_500];
    for _ in 0..3 {
        for (index, piece) in payload.chunks(FRAGMENT_LEN).enumerate() {
            let mut frame = whole(FIRST, piece);
            frame.fragment = Some(Fragment {
                index: index as u32,
                total: 1_500,
            });
            take(&mut channel, &frame, &mut kept);
        }
    }
    assert_eq!(kept.messages, [payload]);
}

#[test]
fn a_large_unreliable_message_is_not_delivered_again_after_many_others() {
    // Seed 11669 of the promises test: one that was completed late kept the memory of those between.
    let mut channel = channel(Delivery::Unreliable);
    let mut kept = Kept::default();
    let payload = vec![1; 1_500];
    let mut deliver = |number: u64| {
        for (index, piece) in payload.chunks(FRAGMENT_LEN).enumerate() {
            let mut frame = whole(FIRST + number, piece);
            frame.fragment = Some(Fragment {
                index: index as u32,
                total: 1_500,
            });
            take(&mut channel, &frame, &mut kept);
        }
    };
    deliver(5);
    deliver(1);
    (10..10 + COMPLETED_MAX as u64 - 1).for_each(&mut deliver);
    deliver(5);
    deliver(1);
    assert_eq!(kept.messages.len(), COMPLETED_MAX + 1);
}
