//! Operations on two MUSE-RP hosts, the network between them and a stranger who sends anything from any address: whatever
//! an honest side accepts comes in order, and nothing is left running for ever.

use std::net::SocketAddr;

use arbitrary::{Arbitrary, Unstructured};
use muse_rp::{Channel, ConnectionId, Event, Host, HostOptions};
use muse_wire::{Duration, Instant};

use crate::{Bound, Target, no_setup};

/// Operations on two hosts.
pub const TARGET: Target = Target {
    name: "rp_host",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 200_000,
        per_byte: 200,
    },
    steps: Bound {
        base: 500_000,
        per_byte: 2_000,
    },
};

#[derive(Arbitrary)]
enum Operation {
    Connect,
    Send {
        from_server: bool,
        reliable: bool,
        kind: u16,
        len: u8,
    },
    Disconnect {
        server: bool,
    },
    Wait(u16),
    /// Takes what waits on the network: delivered, lost, delivered twice or put off.
    Network(u8),
    /// A datagram from the address of the other side.
    Forge {
        to_server: bool,
        reliable: bool,
        sequence: u32,
        ack: u32,
        flags: u8,
        payload: u8,
    },
    /// Any bytes from any port.
    Noise {
        to_server: bool,
        reliable: bool,
        port: u16,
        bytes: [u8; 40],
        len: u8,
    },
    Restart {
        server: bool,
    },
}

/// The bytes choose windows, percentage and operations.
fn run(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let Ok((window, percent)) = <(u8, u8)>::arbitrary(&mut choices) else {
        return;
    };
    let mut world = World {
        now: Instant::ZERO,
        window: u32::from(window).max(1),
        percent: percent % 101,
        hosts: Vec::new(),
        flying: Vec::new(),
        last: Vec::new(),
        seed: 0,
    };
    for server in [true, false] {
        let host = world.host(server);
        world.hosts.push(host);
    }
    while !choices.is_empty()
        && let Ok(operation) = Operation::arbitrary(&mut choices)
    {
        world.step(operation);
        world.exchange();
    }
    world.finish();
}

struct World {
    now: Instant,
    window: u32,
    percent: u8,
    /// The server and the client.
    hosts: Vec<Host>,
    flying: Vec<Flying>,
    /// The last number delivered per side, connection and channel.
    last: Vec<(usize, ConnectionId, Channel, u32)>,
    seed: u64,
}

struct Flying {
    to: usize,
    channel: Channel,
    bytes: Vec<u8>,
}

impl World {
    fn host(&mut self, server: bool) -> Host {
        self.seed += 1;
        let [reliable, partial] = ports(usize::from(!server));
        let options = HostOptions::default()
            .window(self.window)
            .percent(self.percent)
            .ports(reliable, partial);
        let mut host = Host::new(options, self.seed).expect("valid options");
        host.listen(server);
        host
    }

    fn step(&mut self, operation: Operation) {
        match operation {
            Operation::Connect => {
                // Refused while there is one.
                let _ = self.hosts[1].connect(self.now, address(0, Channel::Reliable));
            }
            Operation::Send {
                from_server,
                reliable,
                kind,
                len,
            } => {
                let payload = vec![len; usize::from(len) * 4];
                let host = &mut self.hosts[usize::from(!from_server)];
                let sent = host.send_to_all(channel(reliable), kind, &payload);
                assert_eq!(sent.is_err(), payload.len() > 989);
            }
            Operation::Disconnect { server } => self.hosts[usize::from(!server)].disconnect_all(),
            Operation::Wait(millis) => self.wait(Duration::from_millis(millis.into())),
            Operation::Network(choice) => self.network(choice),
            Operation::Forge {
                to_server,
                reliable,
                sequence,
                ack,
                flags,
                payload,
            } => {
                let mut bytes = Vec::from(sequence.to_le_bytes());
                bytes.extend(ack.to_le_bytes());
                bytes.push(flags);
                bytes.extend([0; 2]);
                bytes.resize(11 + usize::from(payload % 40), payload);
                let to = usize::from(!to_server);
                let from = address(1 - to, channel(reliable));
                self.hosts[to].handle_datagram(self.now, channel(reliable), from, &bytes);
            }
            Operation::Noise {
                to_server,
                reliable,
                port,
                bytes,
                len,
            } => {
                let bytes = &bytes[..usize::from(len).min(bytes.len())];
                let from = SocketAddr::from(([192, 0, 2, 9], port));
                let host = &mut self.hosts[usize::from(!to_server)];
                host.handle_datagram(self.now, channel(reliable), from, bytes);
            }
            Operation::Restart { server } => {
                let side = usize::from(!server);
                self.hosts[side] = self.host(server);
                self.last.retain(|(known, ..)| *known != side);
            }
        }
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        for _ in 0..STEPS_MAX {
            let due = self.hosts.iter().filter_map(Host::poll_timeout).min();
            let Some(due) = due.filter(|due| *due <= until) else {
                break;
            };
            self.now = self.now.max(due);
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
            self.exchange();
        }
        self.now = until;
    }

    fn network(&mut self, choice: u8) {
        if self.flying.is_empty() {
            return;
        }
        let index = usize::from(choice / 4) % self.flying.len();
        let flying = self.flying.remove(index);
        let from = address(1 - flying.to, flying.channel);
        for _ in 0..choice % 4 {
            self.hosts[flying.to].handle_datagram(self.now, flying.channel, from, &flying.bytes);
        }
    }

    /// Takes what the hosts send and what they tell.
    fn exchange(&mut self) {
        let mut buffer = [0; 1_000];
        for side in 0..2 {
            for channel in Channel::ALL {
                while let Some((to, len)) =
                    self.hosts[side].poll_transmit(self.now, channel, &mut buffer)
                {
                    if to == address(1 - side, channel) && self.flying.len() < FLYING_MAX {
                        self.flying.push(Flying {
                            to: 1 - side,
                            channel,
                            bytes: buffer[..len].to_vec(),
                        });
                    }
                }
            }
            while let Some(event) = self.hosts[side].poll_event() {
                self.look(side, &event);
            }
        }
    }

    /// Numbers of a channel only go up, and by no more than was skipped.
    fn look(&mut self, side: usize, event: &Event) {
        let Event::Message(message) = event else {
            return;
        };
        let key = (side, message.connection, message.channel);
        let known = self
            .last
            .iter_mut()
            .find(|(side, connection, channel, _)| (*side, *connection, *channel) == key);
        assert!(message.channel == Channel::Partial || message.skipped == 0);
        match known {
            Some((.., last)) => {
                let step = message.sequence.wrapping_sub(*last);
                assert_eq!(step, message.skipped + 1);
                *last = message.sequence;
            }
            None => self
                .last
                .push((side, message.connection, message.channel, message.sequence)),
        }
    }

    /// Without a network everything ends by itself.
    fn finish(&mut self) {
        self.flying.clear();
        for _ in 0..STEPS_MAX {
            let Some(due) = self.hosts.iter().filter_map(Host::poll_timeout).min() else {
                return;
            };
            self.now = self.now.max(due);
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
            self.exchange();
        }
        panic!("something goes on for ever");
    }
}

fn channel(reliable: bool) -> Channel {
    match reliable {
        true => Channel::Reliable,
        false => Channel::Partial,
    }
}

fn ports(side: usize) -> [u16; 2] {
    [[7_777, 7_778], [50_001, 50_002]][side]
}

fn address(side: usize, channel: Channel) -> SocketAddr {
    let port = ports(side)[usize::from(channel == Channel::Partial)];
    SocketAddr::from(([192, 0, 2, side as u8 + 1], port))
}

const STEPS_MAX: usize = 20_000;
const FLYING_MAX: usize = 256;
