//! A client that joins again with other numbers, as the original does when the offer reaches it twice, has both channels.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod either;
    pub(crate) mod original;
    pub(crate) mod world;
}

use muse_netem::{Conditions, Jitter};
use muse_rp::{Channel, ConnectionId, Event, Host, HostOptions};
use muse_wire::Duration;
use support::either::Either;
use support::original::Original;
use support::world::{PORTS, World, addresses};

const SERVER: usize = 0;
const CLIENT: usize = 1;
const MESSAGES: u32 = 40;

/// Our server and the original's client, over a path on which the offer is repeated before the client can have joined.
struct Pair {
    world: World<Either>,
    percent: u8,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let conditions = Conditions::default()
            .delay(Duration::from_millis(random.u64(300..900)))
            .jitter(Jitter::Uniform(Duration::from_millis(random.u64(1..300))))
            .loss(random.f64() * 0.3)
            .duplicate(
                random.f64() * 0.3,
                Duration::from_millis(random.u64(1..600)),
            )
            .reorder(
                random.f64() * 0.3,
                Duration::from_millis(random.u64(1..600)),
            );
        let percent = [0, 50, 80, 100][random.u64(0..4) as usize];
        let options = HostOptions::default()
            .ports(PORTS[0], PORTS[1])
            .window(10)
            .percent(percent)
            // Only the answer to the newest ping counts, and these paths are long.
            .ping_interval(Duration::from_secs(5))
            .time_out(Duration::from_secs(120));
        let mut world = World::new(seed, conditions);
        let mut server = Host::new(options, seed).expect("valid options");
        server.listen(true);
        world.add(Either::Ours(server));
        let client = Original::client(!seed, PORTS, addresses(SERVER)[0]);
        world.add(Either::Original(client));
        Self { world, percent }
    }

    fn server(&mut self) -> &mut Host {
        self.world.host(SERVER).ours()
    }

    fn client(&mut self) -> &mut Original {
        self.world.host(CLIENT).original()
    }

    /// Both send on both channels; everything is acknowledged, what is reliable arrives, and the promise holds.
    fn exchange(&mut self, connection: ConnectionId) {
        for number in 0..MESSAGES {
            let (now, payload) = (self.world.now, number.to_le_bytes());
            for channel in Channel::ALL {
                let sent = self.server().send(connection, channel, 7, &payload);
                sent.expect("room in the queue");
                self.client().send(now, channel, &payload);
            }
        }
        let mut seconds = 0;
        while Channel::ALL.into_iter().any(|channel| {
            self.server().unacknowledged(connection, channel) > 0
                || self.client().unacknowledged(channel) > 0
        }) {
            self.world.run_for(Duration::from_secs(1));
            seconds += 1;
            assert!(seconds < 600, "not everything is acknowledged");
        }
        let at_server = self.world.take_events(SERVER);
        for channel in Channel::ALL {
            let at_client = std::mem::take(&mut self.client().received[channel as usize]);
            let at_client = at_client.iter().map(|(_, payload)| &payload[..]);
            let arrived = at_server.iter().filter_map(|event| match event {
                Event::Message(message) if message.channel == channel => Some(&message.payload[..]),
                Event::Message(_) | Event::Connected { .. } => None,
                other => panic!("{other:?}"),
            });
            self.check(channel, at_client.collect());
            self.check(channel, arrived.collect());
        }
    }

    fn check(&self, channel: Channel, payloads: Vec<&[u8]>) {
        let numbers: Vec<u32> = payloads
            .into_iter()
            // Step 4, which the original hands on.
            .filter(|payload| !payload.is_empty())
            .map(|payload| u32::from_le_bytes(payload.try_into().expect("four bytes")))
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        let least = match channel {
            Channel::Reliable => MESSAGES,
            // The window may be cut by the step that is its first slot.
            Channel::Partial => (MESSAGES - 10) * u32::from(self.percent) / 100,
        };
        assert!(numbers.len() as u32 >= least, "{channel}: {numbers:?}");
        assert_eq!(numbers.last(), Some(&(MESSAGES - 1)), "the last is settled");
    }
}

#[test]
fn both_channels_work_after_new_numbers() {
    let (mut drawn_anew, mut failed) = (0, Vec::new());
    for seed in 0..2_000 {
        let ran = std::panic::catch_unwind(|| {
            let mut pair = Pair::new(seed);
            pair.world.run_for(Duration::from_secs(30));
            assert!(pair.client().connected, "the client is connected");
            let connection = pair.server().connections().next();
            let drawn = pair.client().drawn;
            pair.exchange(connection.expect("the server is connected"));
            drawn
        });
        match ran {
            Ok(drawn) => drawn_anew += u32::from(drawn > 1),
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    assert!(drawn_anew > 600, "only {drawn_anew} clients drew twice");
}
