//! Conditions of common access networks, between a player and a server in the same region: by function one direction each, by name both.
//!
//! They are typical, not measured on a particular network; `docs/netem.md` lists their numbers.

use muse_wire::Duration;

use super::{Conditions, Jitter, Queue};

/// A network by name, with what it does in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    name: &'static str,
    summary: &'static str,
    ways: Ways,
}

/// The conditions of a profile in each direction.
#[derive(Clone, Copy, Debug)]
enum Ways {
    Same(fn() -> Conditions),
    /// From the player to the server, and back, as [`Conditions::set`] reads it.
    Text(&'static str, &'static str),
}

impl Profile {
    /// All of them, from good to bad.
    pub fn all() -> &'static [Self] {
        PROFILES
    }

    /// Returns the profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        let is_it = |profile: &&Self| profile.name.eq_ignore_ascii_case(name);
        PROFILES.iter().find(is_it).copied()
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its meaning in a few words.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// From the player to the server.
    pub fn up(&self) -> Conditions {
        match self.ways {
            Ways::Same(conditions) => conditions(),
            Ways::Text(up, _) => up.parse().expect("a test reads all profiles"),
        }
    }

    /// From the server to the player.
    pub fn down(&self) -> Conditions {
        match self.ways {
            Ways::Same(conditions) => conditions(),
            Ways::Text(_, down) => down.parse().expect("a test reads all profiles"),
        }
    }
}

impl Conditions {
    /// A cable in the same building: 1 Gbit/s, 0.2 ms, nothing lost.
    pub fn lan() -> Self {
        Self::default()
            .delay(Duration::from_micros(200))
            .rate(1_000_000_000)
            .queue(Queue::Time(Duration::from_millis(5)))
            .mtu(1_500)
    }

    /// A wired home connection: 20 Mbit/s, 15 ms and up to 2 ms of jitter in order, 0.1 % loss.
    pub fn broadband() -> Self {
        Self::default()
            .delay(Duration::from_millis(15))
            .jitter(Jitter::Uniform(Duration::from_millis(2)))
            .keep_order(true)
            .loss(0.001)
            .rate(20_000_000)
            .mtu(1_500)
    }

    /// A busy wireless network at home: 20 Mbit/s, 18 ms, long-tailed jitter in order (median 2.5 ms, at most 150 ms),
    /// 1 % loss in bursts of 2.
    pub fn wifi() -> Self {
        Self::default()
            .delay(Duration::from_millis(18))
            .jitter(Jitter::Pareto {
                scale: Duration::from_millis(6),
                shape: 2.0,
                max: Duration::from_millis(150),
            })
            .keep_order(true)
            .burst_loss(0.01, 2.0)
            .rate(20_000_000)
            .queue(Queue::Time(Duration::from_millis(150)))
            .mtu(1_500)
    }

    /// A phone on the move: 5 Mbit/s with a deep queue (500 ms), 40 ms, long-tailed jitter in order (median 6 ms, at
    /// most 400 ms), 2 % loss in bursts of 4, packets up to 1,400 bytes.
    pub fn mobile() -> Self {
        Self::default()
            .delay(Duration::from_millis(40))
            .jitter(Jitter::Pareto {
                scale: Duration::from_millis(15),
                shape: 2.0,
                max: Duration::from_millis(400),
            })
            .keep_order(true)
            .burst_loss(0.02, 4.0)
            .rate(5_000_000)
            .queue(Queue::Time(Duration::from_millis(500)))
            .mtu(1_400)
    }

    /// A geostationary satellite: 10 Mbit/s, 270 ms and normal jitter (6 ms, deviation 3 ms) in order, 0.5 % loss in
    /// bursts of 3.
    pub fn satellite() -> Self {
        Self::default()
            .delay(Duration::from_millis(270))
            .jitter(Jitter::Normal {
                mean: Duration::from_millis(6),
                deviation: Duration::from_millis(3),
            })
            .keep_order(true)
            .burst_loss(0.005, 3.0)
            .rate(10_000_000)
            .queue(Queue::Time(Duration::from_millis(300)))
            .mtu(1_500)
    }

    /// A modem: 56 kbit/s with a queue of 12,000 bytes (1.7 s), 75 ms, 0.5 % loss.
    pub fn dialup() -> Self {
        Self::default()
            .delay(Duration::from_millis(75))
            .loss(0.005)
            .rate(56_000)
            .queue(Queue::Bytes(12_000))
            .mtu(1_500)
    }
}

const PROFILES: &[Profile] = &[
    Profile {
        name: "perfect",
        summary: "nothing is delayed or lost",
        ways: Ways::Same(Conditions::default),
    },
    Profile {
        name: "lan",
        summary: "a cable in the same building",
        ways: Ways::Same(Conditions::lan),
    },
    Profile {
        name: "fibre",
        summary: "glass to the house",
        ways: Ways::Text(
            "delay=5,jitter=uniform:0.5,order=keep,loss=0.01,rate=100mbit,queue=30ms,mtu=1500",
            "delay=5,jitter=uniform:0.5,order=keep,loss=0.01,rate=300mbit,queue=30ms,mtu=1500",
        ),
    },
    Profile {
        name: "broadband",
        summary: "a wired home connection",
        ways: Ways::Same(Conditions::broadband),
    },
    Profile {
        name: "dsl",
        summary: "a telephone line whose way up fills quickly",
        ways: Ways::Text(
            "delay=18,jitter=uniform:4,order=keep,loss=0.1,rate=1mbit,queue=500ms,mtu=1492",
            "delay=18,jitter=uniform:4,order=keep,loss=0.1,rate=16mbit,queue=200ms,mtu=1492",
        ),
    },
    Profile {
        name: "wifi",
        summary: "a busy wireless network at home",
        ways: Ways::Same(Conditions::wifi),
    },
    Profile {
        name: "5g",
        summary: "a phone near a mast",
        ways: Ways::Text(
            "delay=12,jitter=pareto:3:2:100,order=keep,loss=0.2,burst=2,rate=30mbit,queue=200ms,mtu=1400",
            "delay=12,jitter=pareto:3:2:100,order=keep,loss=0.2,burst=2,rate=150mbit,queue=200ms,mtu=1400",
        ),
    },
    Profile {
        name: "4g",
        summary: "a phone in a town",
        ways: Ways::Text(
            "delay=28,jitter=pareto:8:2:250,order=keep,loss=0.5,burst=3,rate=5mbit,queue=400ms,mtu=1400",
            "delay=28,jitter=pareto:8:2:250,order=keep,loss=0.5,burst=3,rate=20mbit,queue=400ms,mtu=1400",
        ),
    },
    Profile {
        name: "mobile",
        summary: "a phone on the move",
        ways: Ways::Same(Conditions::mobile),
    },
    Profile {
        name: "3g",
        summary: "a phone in the country",
        ways: Ways::Text(
            "delay=90,jitter=pareto:25:2:800,order=keep,loss=1,burst=4,rate=500kbit,queue=1000ms,mtu=1400",
            "delay=90,jitter=pareto:25:2:800,order=keep,loss=1,burst=4,rate=2mbit,queue=1000ms,mtu=1400",
        ),
    },
    Profile {
        name: "hotel",
        summary: "wireless shared by a whole house, behind a long queue",
        ways: Ways::Text(
            "delay=35,jitter=pareto:20:1.8:600,order=keep,loss=3,burst=5,rate=1mbit,queue=800ms,mtu=1480",
            "delay=35,jitter=pareto:20:1.8:600,order=keep,loss=3,burst=5,rate=3mbit,queue=800ms,mtu=1480",
        ),
    },
    Profile {
        name: "starlink",
        summary: "satellites in a low orbit",
        ways: Ways::Text(
            "delay=20,jitter=pareto:6:2:150,order=keep,loss=1,burst=6,rate=10mbit,queue=150ms,mtu=1500",
            "delay=20,jitter=pareto:6:2:150,order=keep,loss=1,burst=6,rate=100mbit,queue=150ms,mtu=1500",
        ),
    },
    Profile {
        name: "satellite",
        summary: "a geostationary satellite",
        ways: Ways::Same(Conditions::satellite),
    },
    Profile {
        name: "intercontinental",
        summary: "a server on the other side of the world",
        ways: Ways::Text(
            "delay=140,jitter=4,order=keep,loss=0.5,burst=2,rate=20mbit,queue=100ms,mtu=1500",
            "delay=140,jitter=4,order=keep,loss=0.5,burst=2,rate=50mbit,queue=100ms,mtu=1500",
        ),
    },
    Profile {
        name: "dialup",
        summary: "a modem",
        ways: Ways::Same(Conditions::dialup),
    },
    Profile {
        name: "terrible",
        summary: "what no player would stay on, for tests",
        ways: Ways::Text(
            "delay=150,jitter=100,loss=15,burst=3,duplicate=2,reorder=5,rate=2mbit,queue=300ms",
            "delay=150,jitter=100,loss=15,burst=3,duplicate=2,reorder=5,rate=2mbit,queue=300ms",
        ),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_profiles_can_be_read_and_differ() {
        for (index, profile) in Profile::all().iter().enumerate() {
            let found = Profile::named(&profile.name().to_uppercase()).expect("it is there");
            assert_eq!(found.name(), profile.name());
            let ways = (profile.up(), profile.down());
            let others = &Profile::all()[..index];
            assert!(
                others
                    .iter()
                    .all(|other| (other.up(), other.down()) != ways),
                "{}",
                profile.name()
            );
        }
        assert!(Profile::named("carrier pigeon").is_none());
    }
}
