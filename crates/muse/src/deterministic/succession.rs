//! Host migration: a match in a relay's room goes on when its host is gone.
//!
//! While it is well, the host names an *heir* among its guests: everybody is told the heir's public key, the relay a lock to which the heir alone has
//! the secret, and the heir what only the host knows. When the host leaves, crashes or is cut off, the heir shows the secret. The relay gives it the
//! room once it hears nothing of the host any more, and counts hosts, so that there is one at a time. The others connect to the heir by its key, and their
//! sessions go on where they are ([`Recovery`](muse_lockstep::Recovery)). A host that finds itself replaced comes back as a guest.
//!
//! The parts: `hosting` (naming an heir, and a new host's beginning), `following` (noticing that the host is gone, and what then), `message`.

mod following;
mod hosting;
mod message;

use std::collections::VecDeque;
use std::fmt;

use muse_drivers::relay::{Link, LinkEvent};
use muse_lockstep::{DeterministicGame, Frame, InputError};
use muse_transport::{ConnectionId, Endpoint, Entropy, Event, ServerKey};
use muse_wire::{Duration, Instant};

use super::Participant;
use following::Following;
use hosting::Hosting;
use message::{Message, Secret};

/// A machine's part in the succession of its match's hosts.
pub(super) struct Succession {
    channel: u8,
    entropy: Box<dyn Entropy>,
    /// The key by which this machine hosts, or would.
    key: ServerKey,
    /// It would host.
    willing: bool,
    phase: Phase,
    room_events: VecDeque<LinkEvent>,
    /// Messages that wait for a call that has the endpoint.
    out: Vec<(ConnectionId, Message)>,
}

#[derive(Debug)]
enum Phase {
    Hosting(Box<Hosting>),
    Following(Box<Following>),
}

impl fmt::Debug for Succession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Succession")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl Succession {
    fn draw(&mut self) -> Secret {
        let mut secret = [0; 16];
        self.entropy.fill(&mut secret);
        secret
    }

    fn say(&mut self, to: ConnectionId, message: Message) {
        if self.out.len() < OUT_MAX {
            self.out.push((to, message));
        }
    }

    fn hosting(&mut self) -> Option<&mut Hosting> {
        match &mut self.phase {
            Phase::Hosting(hosting) => Some(hosting),
            Phase::Following(_) => None,
        }
    }

    fn following(&mut self) -> Option<&mut Following> {
        match &mut self.phase {
            Phase::Following(following) => Some(following),
            Phase::Hosting(_) => None,
        }
    }
}

impl<G: DeterministicGame> Participant<G> {
    /// Lets the match go on under another host, when that is in a relay's room and this one is gone. `channel` is declared as
    /// [`succession_channel`](super::succession_channel) says, `key` is the host's, or the one by which a guest would host; `entropy` draws secrets. A guest
    /// that is not `willing` follows other hosts and never becomes one. From now on call
    /// [`advance_in_room`](Self::advance_in_room) in the place of [`advance`](Self::advance).
    ///
    /// A server that only orders has no heir.
    pub fn with_succession(
        mut self,
        channel: u8,
        key: ServerKey,
        willing: bool,
        entropy: impl Entropy + 'static,
    ) -> Self {
        if self.player.is_none() {
            return self;
        }
        let phase = match self.links {
            Some(_) => Phase::Hosting(Box::default()),
            None => Phase::Following(Box::default()),
        };
        self.succession = Some(Box::new(Succession {
            channel,
            entropy: Box::new(entropy),
            key,
            willing,
            phase,
            room_events: VecDeque::new(),
            out: Vec::new(),
        }));
        self
    }

    /// As [`advance`](Self::advance), for a match in a relay's room: takes the events of `link`, and has it do what a change of hosts takes.
    pub fn advance_in_room(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        link: &mut Link,
        input: impl FnMut(Frame) -> G::Input,
    ) -> Result<(), InputError> {
        while let Some(event) = link.poll_event() {
            self.handle_room_event(now, endpoint, link, event);
        }
        self.mind_hosting(now, endpoint, link);
        self.mind_following(now, endpoint, link);
        let given = self.advance(now, endpoint, input);
        self.send_succession(now, endpoint);
        given
    }

    /// Returns the next event of the room, which [`advance_in_room`](Self::advance_in_room) has taken from the link.
    pub fn poll_room_event(&mut self) -> Option<LinkEvent> {
        self.succession.as_mut()?.room_events.pop_front()
    }

    /// Returns the number of the match's host: how many there were before, as far as is known here.
    pub fn host_term(&self) -> u32 {
        match self.succession.as_deref().map(|it| &it.phase) {
            Some(Phase::Hosting(hosting)) => hosting.term,
            Some(Phase::Following(following)) => following.term,
            None => 0,
        }
    }

    /// Returns true if it was made [with succession](Self::with_succession).
    pub fn may_migrate(&self) -> bool {
        self.succession.is_some()
    }

    /// Returns true if this machine hosts: it orders the inputs of all.
    pub fn is_host(&self) -> bool {
        self.links.is_some()
    }

    /// Returns true if this machine is the one that hosts next, and the relay knows.
    pub fn is_heir(&self) -> bool {
        match self.succession.as_deref().map(|it| &it.phase) {
            Some(Phase::Following(following)) => following.is_heir(),
            _ => false,
        }
    }

    fn handle_room_event(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        link: &mut Link,
        event: LinkEvent,
    ) {
        match event {
            LinkEvent::Host { term, lock } => self.hear_of_host(now, endpoint, link, term, lock),
            LinkEvent::Succeeded { term } => self.take_over(now, endpoint, link, term),
            LinkEvent::Replaced => self.give_way(now, endpoint, link),
            _ => {}
        }
        if let Some(succession) = &mut self.succession {
            if succession.room_events.len() >= ROOM_EVENTS_MAX {
                succession.room_events.pop_front();
            }
            succession.room_events.push_back(event);
        }
    }

    pub(super) fn is_succession(&self, channel: u8) -> bool {
        let succession = self.succession.as_ref();
        succession.is_some_and(|succession| succession.channel == channel)
    }

    pub(super) fn handle_succession(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        payload: &[u8],
    ) {
        if let Some(message) = Message::parse(payload) {
            match self.links {
                Some(_) => self.hear_guest(now, connection, message),
                None => self.hear_host(connection, message),
            }
        }
    }

    /// An event of the endpoint that the match has handled as well.
    pub(super) fn note_connection(&mut self, now: Instant, event: &Event<'_>) {
        match event {
            Event::Connected { connection, .. } if self.links.is_none() => {
                self.offer(*connection);
            }
            Event::Closed { connection, .. } => {
                let hosting = self.succession.as_mut().and_then(|it| it.hosting());
                if let Some(hosting) = hosting {
                    hosting.forget(now, *connection);
                }
            }
            _ => {}
        }
    }

    fn send_succession(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(succession) = &mut self.succession else {
            return;
        };
        for (to, message) in std::mem::take(&mut succession.out) {
            // One that has gone meanwhile needs it no more.
            let _ = endpoint.send(now, to, succession.channel, &message.to_bytes());
        }
    }

    /// Returns true for a host that may have been succeeded: it orders nothing until it knows.
    pub(super) fn is_paused(&self) -> bool {
        match self.succession.as_deref().map(|it| &it.phase) {
            Some(Phase::Hosting(hosting)) => hosting.paused_since.is_some(),
            _ => false,
        }
    }

    /// Returns true for an heir that has asked for the room: the host must not take it for one that is content.
    pub(super) fn is_muted(&self) -> bool {
        match self.succession.as_deref().map(|it| &it.phase) {
            Some(Phase::Following(following)) => following.is_muted(),
            _ => false,
        }
    }

    pub(super) fn succession_due(&self, now: Instant) -> Instant {
        match &self.succession {
            Some(_) => now + MIND_EVERY,
            None => Instant::FAR_FUTURE,
        }
    }
}

/// The interval at which the succession is looked after, if nothing else happens.
const MIND_EVERY: Duration = Duration::from_millis(50);
const OUT_MAX: usize = 4_096;
/// Events of the room that wait to be polled; then the oldest are lost.
const ROOM_EVENTS_MAX: usize = 256;
