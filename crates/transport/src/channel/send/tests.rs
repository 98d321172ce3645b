//! The sending half alone: windows, priorities, deadlines, copies, receipts.

use super::*;

/// A channel with the packets that it has filled.
struct Bench {
    channel: SendChannel,
    now: Instant,
    packet: u64,
    receipts: Vec<Receipt>,
}

impl Bench {
    fn new(delivery: Delivery, repair: Repair) -> Self {
        let channel = SendChannel::new(3, &ChannelConfig::new(delivery).repair(repair));
        Self {
            channel,
            now: Instant::from_secs(1),
            packet: 1,
            receipts: Vec::new(),
        }
    }

    fn push(&mut self, payload: &[u8], options: Options) -> u64 {
        let receipts = &mut self.receipts;
        let pushed = self
            .channel
            .push(self.now, payload, options, &mut |receipt| {
                receipts.push(receipt)
            });
        pushed.expect("room in the queue").number
    }

    /// One packet of `room` bytes, filled as far as the channel has something to say.
    fn packet(&mut self, room: usize) -> Vec<(u64, u16)> {
        let mut buffer = vec![0; room];
        let mut writer = Writer::new(&mut buffer);
        let (mut frames, mut last) = (Vec::new(), None);
        let mut space = PacketSpace {
            number: self.packet,
            now: self.now,
            protected: false,
            writer: &mut writer,
            frames: &mut frames,
            last: &mut last,
        };
        while self.channel.put(&mut space) == Put::Written {}
        while self.channel.put_copy(&mut space) == Put::Written {}
        self.packet += 1;
        let pieces = frames.iter().filter_map(|frame| match frame {
            SentFrame::Message { number, piece, .. } => Some((*number, *piece)),
            SentFrame::Skip { .. } => None,
        });
        pieces.collect()
    }

    fn ack(&mut self, pieces: &[(u64, u16)]) {
        let receipts = &mut self.receipts;
        for &(number, piece) in pieces {
            self.channel
                .acked(number, piece, &mut |receipt| receipts.push(receipt));
        }
    }

    fn lose(&mut self, pieces: &[(u64, u16)]) {
        let receipts = &mut self.receipts;
        for &(number, piece) in pieces {
            self.channel
                .lost(self.now, number, piece, false, &mut |receipt| {
                    receipts.push(receipt)
                });
        }
    }

    fn expire(&mut self) {
        let receipts = &mut self.receipts;
        self.channel
            .expire(self.now, &mut |receipt| receipts.push(receipt));
    }

    fn drop_stale(&mut self, held_at: Instant) -> u64 {
        let receipts = &mut self.receipts;
        let tell = &mut |receipt| receipts.push(receipt);
        self.channel.drop_stale(self.now, held_at, tell).0
    }

    fn outcomes(&self) -> Vec<(u64, Outcome)> {
        self.receipts
            .iter()
            .map(|receipt| (receipt.id.number, receipt.outcome))
            .collect()
    }
}

const FIRST: u64 = MESSAGE_NUMBER_FIRST;

fn with_receipt() -> Options {
    Options {
        receipt: true,
        ..Options::default()
    }
}

fn at_level(level: u8) -> Options {
    Options {
        level: Some(level),
        ..Options::default()
    }
}

fn until(deadline: Instant) -> Options {
    Options {
        deadline: Some(deadline),
        receipt: true,
        ..Options::default()
    }
}

#[test]
fn what_is_lost_goes_again_until_it_is_acknowledged() {
    let mut bench = Bench::new(Delivery::ReliableOrdered, Repair::Balanced);
    let number = bench.push(b"hello", with_receipt());
    assert_eq!(number, FIRST);
    assert_eq!(bench.packet(100), [(FIRST, WHOLE)]);
    assert!(
        bench.packet(100).is_empty(),
        "once is enough while it is in flight"
    );
    bench.lose(&[(FIRST, WHOLE)]);
    let pieces = bench.packet(100);
    bench.ack(&pieces);
    bench.ack(&pieces);
    bench.lose(&pieces);
    assert_eq!(bench.outcomes(), [(FIRST, Outcome::Delivered)]);
    assert!(bench.packet(100).is_empty());
    assert_eq!(bench.channel.queued(), (0, 0));
}

#[test]
fn a_frugal_channel_sends_what_was_lost_twice() {
    let mut bench = Bench::new(Delivery::ReliableOrdered, Repair::Frugal);
    bench.push(b"hello", Options::default());
    let pieces = bench.packet(100);
    bench.lose(&pieces);
    assert_eq!(
        bench.packet(100),
        [(FIRST, WHOLE)],
        "not twice in one packet"
    );
    assert_eq!(bench.packet(100), [(FIRST, WHOLE)], "the second copy");
    bench.lose(&[(FIRST, WHOLE)]);
    assert!(bench.packet(100).is_empty(), "one copy is still in flight");
}

#[test]
fn only_the_lost_pieces_of_a_large_message_go_again() {
    let mut bench = Bench::new(Delivery::ReliableUnordered, Repair::Balanced);
    bench.push(&[7; 5_000], with_receipt());
    let mut pieces = Vec::new();
    for _ in 0..5 {
        pieces.extend(bench.packet(1_150));
    }
    assert_eq!(pieces, [0, 1, 2, 3, 4].map(|piece| (FIRST, piece)));
    bench.ack(&[pieces[0], pieces[1], pieces[4]]);
    bench.lose(&[pieces[2], pieces[3]]);
    assert_eq!(bench.packet(1_150), [pieces[2]]);
    assert_eq!(bench.packet(1_150), [pieces[3]]);
    bench.ack(&[pieces[2]]);
    assert_eq!(bench.outcomes(), []);
    bench.ack(&[pieces[3]]);
    assert_eq!(bench.outcomes(), [(FIRST, Outcome::Delivered)]);
    assert!(bench.channel.is_settled());
}

#[test]
fn urgent_messages_beyond_the_window_do_not_stop_the_one_that_could_move_it() {
    let mut bench = Bench::new(Delivery::ReliableUnordered, Repair::Balanced);
    bench.push(b"later", at_level(3));
    for _ in 0..CHANNEL_WINDOW + 10 {
        bench.push(b"now", at_level(0));
    }
    let mut sent = Vec::new();
    for _ in 0..100_000 {
        let pieces = bench.packet(1_000);
        if pieces.is_empty() {
            break;
        }
        bench.ack(&pieces);
        sent.extend(pieces);
    }
    assert_eq!(
        sent.len() as u64,
        CHANNEL_WINDOW + 11,
        "everything went out"
    );
    assert_eq!(sent[0].0, FIRST + 1, "the urgent ones first");
    assert!(bench.channel.is_settled());
}

#[test]
fn the_receiver_hears_of_expired_messages_in_its_window_only() {
    let mut bench = Bench::new(Delivery::ReliableOrdered, Repair::Balanced);
    let count = 3 * CHANNEL_WINDOW;
    let deadline = bench.now + Duration::from_millis(5);
    for _ in 0..count {
        bench.push(b"", until(deadline));
    }
    bench.now = deadline;
    bench.expire();
    assert_eq!(bench.receipts.len() as u64, count);
    let mut told = 0;
    for round in 0..10 {
        let mut skips = Vec::new();
        while let Some(number) = bench.channel.next_skip() {
            assert!(
                number - FIRST < told + CHANNEL_WINDOW,
                "{number} in round {round}"
            );
            skips.push(number);
        }
        // The first of each round is lost and told again, after which the window moves.
        if let Some(&lost) = skips.first() {
            bench.channel.skip_lost(lost);
            assert_eq!(bench.channel.next_skip(), Some(lost));
        }
        for number in skips {
            bench.channel.skip_acked(number);
            told += 1;
        }
    }
    assert_eq!(told, count);
    assert!(bench.channel.is_settled());
    bench.channel.skip_lost(FIRST);
    assert!(!bench.channel.has_skips(), "old news");
}

#[test]
fn a_newer_state_takes_the_place_of_older_ones() {
    let mut bench = Bench::new(Delivery::ReliableSequenced, Repair::Balanced);
    bench.push(b"one", with_receipt());
    let old = bench.packet(100);
    bench.push(b"two", with_receipt());
    bench.push(b"three", with_receipt());
    assert_eq!(
        bench.outcomes(),
        [(FIRST, Outcome::Expired), (FIRST + 1, Outcome::Expired)]
    );
    bench.lose(&old);
    assert_eq!(bench.packet(100), [(FIRST + 2, WHOLE)]);
    assert_eq!(bench.channel.queued().1, 1);
}

#[test]
fn an_unreliable_message_is_forgotten_once_it_is_sent() {
    let mut bench = Bench::new(Delivery::Unreliable, Repair::Balanced);
    bench.push(b"one", with_receipt());
    let pieces = bench.packet(100);
    assert_eq!(bench.channel.queued(), (0, 0));
    bench.lose(&pieces);
    assert!(bench.packet(100).is_empty());
    assert_eq!(bench.outcomes(), [(FIRST, Outcome::Lost)]);
}

#[test]
fn an_expired_message_is_not_sent() {
    let mut bench = Bench::new(Delivery::Unreliable, Repair::Balanced);
    bench.push(b"late", until(bench.now + Duration::from_millis(10)));
    bench.push(b"in time", with_receipt());
    bench.now += Duration::from_millis(10);
    bench.expire();
    assert_eq!(bench.packet(100), [(FIRST + 1, WHOLE)]);
    assert_eq!(bench.outcomes(), [(FIRST, Outcome::Expired)]);
}

#[test]
fn a_full_queue_says_so_and_takes_one_message_of_any_size() {
    let config = ChannelConfig::new(Delivery::ReliableOrdered)
        .queue_bytes(100)
        .queue_messages(3);
    let mut channel = SendChannel::new(0, &config);
    let push = |channel: &mut SendChannel, len: usize| {
        channel
            .push(
                Instant::ZERO,
                &vec![0; len],
                Options::default(),
                &mut |_| (),
            )
            .map(|_| ())
    };
    assert_eq!(push(&mut channel, 500), Ok(()));
    assert_eq!(
        push(&mut channel, 1),
        Err(SendError::QueueFull {
            bytes: 500,
            messages: 1
        })
    );
    channel.acked(FIRST, 0, &mut |_| ());
    let mut channel = SendChannel::new(0, &config);
    assert_eq!([1, 1, 1].map(|len| push(&mut channel, len)), [Ok(()); 3]);
    assert_eq!(
        push(&mut channel, 0),
        Err(SendError::QueueFull {
            bytes: 3,
            messages: 3
        })
    );
    assert_eq!(channel.stats.refused, 1);
}

#[test]
fn the_promise_does_not_need_what_was_given_up_unless_nothing_follows() {
    let delivery = Delivery::partially_reliable(4, 50).expect("a promise");
    let mut bench = Bench::new(delivery, Repair::Balanced);
    for _ in 0..4 {
        bench.push(b"frame", with_receipt());
    }
    let pieces = bench.packet(100);
    assert_eq!(pieces.len(), 4);
    bench.ack(&pieces[..2]);
    bench.lose(&pieces[2..]);
    assert!(bench.packet(100).is_empty(), "two of four may be lost");
    assert!(bench.channel.awaits_progress() && !bench.channel.is_settled());
    // The receiver has skipped none and waits: the oldest goes after all.
    bench.channel.probe_given_up();
    assert_eq!(bench.packet(100), [pieces[2]]);
    bench.ack(&[pieces[2]]);
    bench.channel.probe_given_up();
    assert_eq!(bench.packet(100), [pieces[3]]);
    bench.ack(&[pieces[3]]);
    bench.channel.progress((FIRST + 4) as u16, 0, &mut |_| ());
    assert!(bench.channel.is_settled() && !bench.channel.awaits_progress());
    assert!(
        bench
            .outcomes()
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Delivered)
    );
}

#[test]
fn a_report_settles_what_the_receiver_skipped_and_revokes_what_it_cannot_spare() {
    let delivery = Delivery::partially_reliable(4, 50).expect("a promise");
    let mut bench = Bench::new(delivery, Repair::Balanced);
    for _ in 0..4 {
        bench.push(b"frame", with_receipt());
    }
    let pieces = bench.packet(100);
    bench.lose(&[pieces[2], pieces[3]]);
    // The receiver has skipped the first two itself, so that the others must come.
    let receipts = &mut bench.receipts;
    bench
        .channel
        .progress((FIRST + 2) as u16, 2, &mut |receipt| receipts.push(receipt));
    assert_eq!(
        bench.outcomes(),
        [(FIRST, Outcome::Lost), (FIRST + 1, Outcome::Lost)]
    );
    assert_eq!(bench.packet(100), [pieces[2], pieces[3]]);
}

#[test]
fn the_oldest_of_what_was_lost_goes_first() {
    let mut bench = Bench::new(Delivery::ReliableOrdered, Repair::Balanced);
    for _ in 0..4 {
        bench.push(&[0; 100], Options::default());
    }
    let sent = bench.packet(1_000);
    assert_eq!(sent.len(), 4);
    for lost in [2, 3, 0, 1] {
        bench.lose(&[sent[lost]]);
    }
    assert_eq!(bench.packet(1_000), sent);
}

#[test]
fn congestion_costs_a_channel_its_oldest_messages() {
    let mut bench = Bench::new(Delivery::Unreliable, Repair::Balanced);
    let held_at = bench.now + Duration::from_millis(100);
    bench.push(b"old", with_receipt());
    bench.push(b"old and less urgent", at_level(3));
    bench.now = held_at;
    bench.push(b"young", Options::default());
    bench.now += Duration::from_millis(149);
    bench.push(b"after", with_receipt());
    assert_eq!(bench.drop_stale(held_at), 0, "not yet");
    bench.now += Duration::from_millis(1);
    assert_eq!(bench.drop_stale(held_at), 2, "250 ms old");
    assert_eq!(bench.outcomes(), [(FIRST, Outcome::Expired)]);
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.drop_stale(held_at), 1);
    assert_eq!(bench.drop_stale(held_at), 0, "it was not held back");
    bench.packet(100);
    assert_eq!(bench.channel.stats.messages_stale, 3);
    assert_eq!(bench.channel.queued(), (0, 0));
}

#[test]
fn the_newest_of_a_sequenced_channel_stays() {
    let mut bench = Bench::new(Delivery::Sequenced, Repair::Balanced);
    for _ in 0..5 {
        bench.push(b"here", with_receipt());
    }
    let held_at = bench.now;
    bench.now += Duration::from_secs(9);
    assert_eq!(bench.drop_stale(held_at), 4);
    assert_eq!(bench.packet(100), [(FIRST + 4, WHOLE)]);
}

#[test]
fn a_message_that_has_begun_to_leave_is_finished() {
    let mut bench = Bench::new(Delivery::Unreliable, Repair::Balanced);
    bench.push(&[7; 3_000], Options::default());
    bench.push(&[7; 3_000], Options::default());
    assert_eq!(bench.packet(1_150), [(FIRST, 0)]);
    let held_at = bench.now;
    bench.now += Duration::from_millis(300);
    assert_eq!(bench.drop_stale(held_at), 1, "the second");
    assert_eq!(bench.packet(1_150), [(FIRST, 1)]);
    assert_eq!(bench.packet(1_150), [(FIRST, 2)]);
    assert!(bench.packet(1_150).is_empty());
}

#[test]
fn what_must_arrive_is_kept_however_old_it_is() {
    for delivery in [
        Delivery::ReliableUnordered,
        Delivery::ReliableOrdered,
        Delivery::ReliableSequenced,
        Delivery::partially_reliable(10, 50).expect("sensible"),
    ] {
        let mut bench = Bench::new(delivery, Repair::Balanced);
        bench.push(b"hello", Options::default());
        let held_at = bench.now;
        bench.now += Duration::from_secs(9);
        assert_eq!(bench.drop_stale(held_at), 0);
        assert_eq!(bench.packet(100).len(), 1);
    }
}
