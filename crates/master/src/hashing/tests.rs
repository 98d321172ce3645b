//! In virtual time: a hash takes as long as it takes, and what counts is how many are done before somebody's own.

use super::*;

/// Time of one hash, as on a slow core.
const HASH: Duration = Duration::from_millis(40);

fn asker(network: u8, name: &str) -> Asker {
    Asker {
        role: Role::Player,
        network: IpAddr::from([192, 0, 2, network]),
        name: Some(name.to_owned()),
    }
}

fn operator(network: u8) -> Asker {
    Asker {
        role: Role::Operator,
        ..asker(network, "ada")
    }
}

/// A queue and the hashes that run.
struct Hashes {
    queue: HashQueue,
    now: Instant,
    running: Vec<(Instant, TurnId)>,
}

impl Hashes {
    fn new(per_minute: u32) -> Self {
        Self {
            queue: HashQueue::new(per_minute),
            now: Instant::from_secs(1_000_000),
            running: Vec::new(),
        }
    }

    fn ask(&mut self, asker: &Asker) -> Result<TurnId, HashRefusal> {
        let asked = self.queue.ask(self.now, asker).map(|(id, _)| id);
        self.start();
        asked
    }

    fn start(&mut self) {
        while let Some(id) = self.queue.poll_turn() {
            self.running.push((self.now + HASH, id));
        }
        assert!(self.running.len() <= PLAYER_LANES + OPERATOR_LANES);
    }

    /// Goes on until the next hash is done. Returns whose it was.
    fn finish(&mut self) -> Option<TurnId> {
        let &(done, id) = self.running.iter().min()?;
        self.running.retain(|(_, other)| *other != id);
        self.now = self.now.max(done);
        self.queue.leave(id);
        self.start();
        Some(id)
    }

    /// The time until this one is hashed, while `others` do what they do after each hash.
    fn wait_for(&mut self, id: TurnId, mut others: impl FnMut(&mut Self)) -> Duration {
        let begun = self.now;
        while self.finish().expect("it is in the queue") != id {
            others(self);
        }
        self.now - begun
    }
}

#[test]
fn four_hundred_sign_ins_of_one_address_keep_no_other_waiting() {
    let mut hashes = Hashes::new(30);
    let flood = |hashes: &mut Hashes| {
        let tried = (0..400).map(|n| hashes.ask(&asker(1, &format!("name {n}"))).is_ok());
        tried.filter(|taken| *taken).count()
    };
    // One in a lane, the others in their places.
    assert_eq!(flood(&mut hashes), 1 + WAITING_PER_NETWORK);
    for n in 0..100 {
        let other = asker(2 + n % 10, "ada");
        let id = hashes.ask(&other).expect("there is a place");
        let took = hashes.wait_for(id, |hashes| {
            flood(hashes);
        });
        // A lane is free for it.
        assert_eq!(took, HASH, "sign-in {n}");
        hashes.now += Duration::from_millis(300);
    }
}

#[test]
fn addresses_take_turns_however_much_each_asks_for() {
    let mut hashes = Hashes::new(30);
    for network in 1..=8 {
        while hashes.ask(&asker(network, "ada")).is_ok() {}
    }
    assert_eq!(hashes.queue.players.waits, WAITING_MAX);
    // A ninth one gets the place of somebody who has more.
    let ninth = hashes.ask(&asker(9, "ada")).expect("a place");
    assert_eq!(hashes.queue.players.waits, WAITING_MAX);
    // Each of the others has one turn before it, two at a time.
    let took = hashes.wait_for(ninth, |_| {});
    assert!(took <= HASH * 6, "{took}");
    while hashes.finish().is_some() {}
    assert!(hashes.queue.turns.is_empty() && hashes.queue.players.order.is_empty());
    assert!(hashes.queue.players.running.is_empty() && hashes.queue.players.waiting.is_empty());
}

#[test]
fn a_full_queue_of_many_addresses_is_full() {
    let mut hashes = Hashes::new(30);
    let mut network = 0;
    let refused = loop {
        network += 1;
        if let Err(refused) = hashes.ask(&asker(network, "ada")) {
            break refused;
        }
    };
    assert_eq!(refused, HashRefusal::Full);
    assert_eq!(usize::from(network), PLAYER_LANES + WAITING_MAX + 1);
}

#[test]
fn operators_have_a_lane_that_players_cannot_take() {
    let mut hashes = Hashes::new(30);
    for network in 1..=60 {
        while hashes.ask(&asker(network, "ada")).is_ok() {}
    }
    let id = hashes.ask(&operator(1)).expect("a place");
    assert_eq!(hashes.wait_for(id, |_| {}), HASH);
    // And one address cannot keep it from the others either.
    while hashes.ask(&operator(1)).is_ok() {}
    let id = hashes.ask(&operator(2)).expect("a place");
    assert!(hashes.wait_for(id, |_| {}) <= HASH * 3);
}

#[test]
fn an_address_has_a_burst_and_then_its_rate() {
    let mut hashes = Hashes::new(30);
    let mut asked = 0;
    let refused = loop {
        match hashes.ask(&asker(1, &format!("name {asked}"))) {
            Ok(id) => drop(hashes.wait_for(id, |_| {})),
            Err(refused) => break refused,
        }
        asked += 1;
    };
    assert_eq!(asked, BURST + 1);
    let HashRefusal::Address { retry_after } = refused else {
        unreachable!("{refused}");
    };
    assert!(retry_after <= Duration::from_secs(2), "{retry_after}");
    hashes.now += retry_after;
    hashes.ask(&asker(1, "ada")).expect("its rate");
    hashes.queue.forget(hashes.now + Duration::from_secs(60));
    assert_eq!(hashes.queue.rates.get(&asker(1, "").network), None);
}

/// Tries wrong passwords from this address until one is refused. How long the next one has to wait.
fn pause(hashes: &mut Hashes, asker: &Asker) -> Duration {
    loop {
        match hashes.queue.check_name(hashes.now, asker) {
            Ok(()) => hashes.queue.handle_wrong(hashes.now, asker),
            Err(HashRefusal::Name { retry_after }) => return retry_after,
            Err(refused) => unreachable!("{refused}"),
        }
    }
}

#[test]
fn wrong_passwords_make_their_address_wait_and_never_the_owner_for_long() {
    let mut hashes = Hashes::new(30);
    let (thief, owner) = (asker(1, "ada"), asker(2, "ada"));
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let waited = pause(&mut hashes, &thief);
        // From elsewhere the owner is let in at once.
        assert_eq!(hashes.queue.check_name(hashes.now, &owner), Ok(()));
        pauses.push(waited.as_micros() / 1_000_000);
        hashes.now += waited;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
    // From everywhere at once: a new address of the owner waits for seconds, a known one not at all.
    hashes.queue.handle_right(hashes.now, &owner);
    for network in 3..=200 {
        hashes
            .queue
            .handle_wrong(hashes.now, &asker(network, "ada"));
    }
    assert_eq!(hashes.queue.check_name(hashes.now, &owner), Ok(()));
    assert_eq!(pause(&mut hashes, &asker(201, "ada")), NAME_PAUSE_MAX);
    assert_eq!(
        hashes.queue.check_name(hashes.now, &asker(201, "bob")),
        Ok(())
    );
    let later = hashes.now + WRONG_FOR;
    assert_eq!(hashes.queue.check_name(later, &thief), Ok(()));
}

#[test]
fn behind_a_proxy_all_lanes_are_used_and_no_pause_is_long() {
    let mut hashes = Hashes::new(0);
    let taken = (0..200).map(|_| hashes.ask(&asker(1, "ada")).is_ok());
    let taken = taken.filter(|taken| *taken).count();
    assert_eq!(taken, PLAYER_LANES + WAITING_MAX);
    assert_eq!(hashes.running.len(), PLAYER_LANES);
    for _ in 0..100 {
        hashes.queue.handle_wrong(hashes.now, &asker(1, "ada"));
    }
    assert_eq!(pause(&mut hashes, &asker(2, "ada")), NAME_PAUSE_MAX);
}

#[test]
fn who_goes_away_leaves_the_place_to_others() {
    let mut hashes = Hashes::new(30);
    let mut places = Vec::new();
    while let Ok(id) = hashes.ask(&asker(1, "ada")) {
        places.push(id);
    }
    for id in places.drain(1..) {
        hashes.queue.leave(id);
        hashes.queue.leave(id);
    }
    assert_eq!(hashes.queue.players.waits, 0);
    assert_eq!(hashes.finish(), Some(places[0]));
    assert_eq!((hashes.finish(), hashes.queue.turns.len()), (None, 0));
}
