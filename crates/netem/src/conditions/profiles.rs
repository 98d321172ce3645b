//! Conditions of common access networks by name, between a player and a server in the same region.
//!
//! They are typical, not measured on a particular network; `docs/netem.md` lists their numbers.

use super::Conditions;

/// A network by name, with what it does in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    name: &'static str,
    summary: &'static str,
    /// The conditions in both directions, as [`Conditions::set`] reads them.
    both: &'static str,
    /// The conditions from the player to the server only, and back.
    ways: [&'static str; 2],
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
        self.way(0)
    }

    /// From the server to the player.
    pub fn down(&self) -> Conditions {
        self.way(1)
    }

    fn way(&self, index: usize) -> Conditions {
        let text = [self.both, self.ways[index]].join(",");
        text.parse().expect("a test reads all profiles")
    }
}

const PROFILES: &[Profile] = &[
    Profile {
        name: "perfect",
        summary: "nothing is delayed or lost",
        both: "",
        ways: ["", ""],
    },
    Profile {
        name: "lan",
        summary: "a cable in the same building",
        both: "delay=0.2,rate=1gbit,queue=5ms,mtu=1500",
        ways: ["", ""],
    },
    Profile {
        name: "fibre",
        summary: "glass to the house",
        both: "delay=5,jitter=uniform:0.5,order=keep,loss=0.01,queue=30ms,mtu=1500",
        ways: ["rate=100mbit", "rate=300mbit"],
    },
    Profile {
        name: "broadband",
        summary: "a wired home connection",
        both: "delay=15,jitter=uniform:2,order=keep,loss=0.1,rate=20mbit,mtu=1500",
        ways: ["", ""],
    },
    Profile {
        name: "dsl",
        summary: "a telephone line whose way up fills quickly",
        both: "delay=18,jitter=uniform:4,order=keep,loss=0.1,mtu=1492",
        ways: ["rate=1mbit,queue=500ms", "rate=16mbit,queue=200ms"],
    },
    Profile {
        name: "wifi",
        summary: "a busy wireless network at home",
        both: "delay=18,jitter=pareto:6:2:150,order=keep,loss=1,burst=2,rate=20mbit,queue=150ms,mtu=1500",
        ways: ["", ""],
    },
    Profile {
        name: "5g",
        summary: "a phone near a mast",
        both: "delay=12,jitter=pareto:3:2:100,order=keep,loss=0.2,burst=2,queue=200ms,mtu=1400",
        ways: ["rate=30mbit", "rate=150mbit"],
    },
    Profile {
        name: "4g",
        summary: "a phone in a town",
        both: "delay=28,jitter=pareto:8:2:250,order=keep,loss=0.5,burst=3,queue=400ms,mtu=1400",
        ways: ["rate=5mbit", "rate=20mbit"],
    },
    Profile {
        name: "mobile",
        summary: "a phone on the move",
        both: "delay=40,jitter=pareto:15:2:400,order=keep,loss=2,burst=4,rate=5mbit,queue=500ms,mtu=1400",
        ways: ["", ""],
    },
    Profile {
        name: "3g",
        summary: "a phone in the country",
        both: "delay=90,jitter=pareto:25:2:800,order=keep,loss=1,burst=4,queue=1000ms,mtu=1400",
        ways: ["rate=500kbit", "rate=2mbit"],
    },
    Profile {
        name: "hotel",
        summary: "wireless shared by a whole house, behind a long queue",
        both: "delay=35,jitter=pareto:20:1.8:600,order=keep,loss=3,burst=5,queue=800ms,mtu=1480",
        ways: ["rate=1mbit", "rate=3mbit"],
    },
    Profile {
        name: "starlink",
        summary: "satellites in a low orbit",
        both: "delay=20,jitter=pareto:6:2:150,order=keep,loss=1,burst=6,queue=150ms,mtu=1500",
        ways: ["rate=10mbit", "rate=100mbit"],
    },
    Profile {
        name: "satellite",
        summary: "a geostationary satellite",
        both: "delay=270,jitter=normal:6:3,order=keep,loss=0.5,burst=3,rate=10mbit,queue=300ms,mtu=1500",
        ways: ["", ""],
    },
    Profile {
        name: "intercontinental",
        summary: "a server on the other side of the world",
        both: "delay=140,jitter=4,order=keep,loss=0.5,burst=2,queue=100ms,mtu=1500",
        ways: ["rate=20mbit", "rate=50mbit"],
    },
    Profile {
        name: "dialup",
        summary: "a modem",
        both: "delay=75,loss=0.5,rate=56kbit,queue=12kb,mtu=1500",
        ways: ["", ""],
    },
    Profile {
        name: "terrible",
        summary: "what no player would stay on, for tests",
        both: "delay=150,jitter=100,loss=15,burst=3,duplicate=2,reorder=5,rate=2mbit,queue=300ms",
        ways: ["", ""],
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
