//! The application decides about each client before it is in, at once or later.
//!
//! A client is asked about once its address is proven, its token is good and it has shown that it knows the server's key. Until
//! the decision the server keeps its half of the key exchange and nothing else: no keys, no Accept, no connection. A client repeats
//! its Connect meanwhile; each one is answered with a Wait, so that the client does not give up, and shows that the client is still
//! there. A refusal is remembered and repeated for a client that missed it, so that nobody is asked about twice.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_wire::{Duration, Instant};
use thiserror::Error;

use super::{Endpoint, Occupant, is_resumable};
use crate::config::RESUMING_MAX;
use crate::event::{CloseReason, ConnectionId};
use crate::handshake::{
    ClientRandom, ConnectRequest, DECISION_TIMEOUT_MAX, REPLY_LEN_MAX, Refusal,
};
use crate::inbox::{LEVEL_FIRST, LEVEL_LAST, Question, Rare};

/// A client that repeats nothing for this long is gone: it repeats its Connect every second at least.
const ASKING_SILENCE: Duration = Duration::from_secs(6);
/// Refusals remembered for clients that missed them; the oldest is forgotten first.
const REFUSALS_MAX: usize = 256;

/// Limits on clients that wait for the application's decision: their number, and the time that each may wait.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey};
/// # use muse_wire::{Duration, Instant};
/// use muse_transport::{AdmissionLimits, Event, Refusal, ServerOptions};
/// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::Sequenced)).build()?;
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// # client.connect(Instant::ZERO, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()).hello(b"Mallory"))?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// server.listen(ServerOptions::new(key).admission(AdmissionLimits::default()));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [here, there] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # let now = simulation.now();
/// # let server = simulation.node_mut(there);
/// let mut buffer = Vec::new();
/// if let Some(Event::Asking { connection, hello, .. }) = server.poll_event(&mut buffer) {
///     match hello {
///         b"Mallory" => server.deny(now, connection, 7, "banned until Monday")?,
///         _ => server.admit(now, connection)?,
///     }
/// }
/// # simulation.run_for(Duration::from_millis(200));
/// # let client = simulation.node_mut(here);
/// // At the client:
/// let Some(Event::Refused { reason, .. }) = client.poll_event(&mut buffer) else {
///     unreachable!("Mallory is banned")
/// };
/// assert_eq!(reason, Refusal::Denied { code: 7, text: "banned until Monday".into() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    pending_max: usize,
    timeout: Duration,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            pending_max: 1_024,
            timeout: Duration::from_secs(30),
        }
    }
}

muse_wire::setters! { AdmissionLimits:
    /// Clients that may wait at once, 1,024 by default, about 2 KiB each; further ones are refused as by a busy server. Each
    /// takes the place of a connection.
    pending_max: usize,

    /// Time for a decision, 30 s by default, at most [`DECISION_TIMEOUT_MAX`]. Afterwards the client is refused as by a busy
    /// server, and the application is told with [`CloseReason::Undecided`].
    timeout: Duration = timeout.min(DECISION_TIMEOUT_MAX),
}

/// The reason that a client could not be admitted or denied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The client left, was decided about before, or never asked.
    #[error("no client with this id waits for a decision")]
    NotAsking,
    /// The client was refused nevertheless, for this reason: its token was used while it waited.
    #[error("the client was refused: {0}")]
    Refused(Refusal),
}

/// Clients that wait for a decision, and refusals that may have to be repeated.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// `None`: nobody is asked about.
    pub(super) limits: Option<AdmissionLimits>,
    pending: usize,
    /// Ordered, for strangers choose the names.
    refused: BTreeMap<ClientRandom, (SocketAddr, Vec<u8>)>,
    oldest: VecDeque<ClientRandom>,
}

impl Admission {
    fn remember(&mut self, random: ClientRandom, to: SocketAddr, refusal: &[u8]) {
        if self.oldest.len() >= REFUSALS_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.refused.remove(&oldest);
        }
        self.refused.insert(random, (to, refusal.to_vec()));
        self.oldest.push_back(random);
    }
}

/// A client that waits for a decision.
pub(super) struct Asking {
    request: Box<ConnectRequest>,
    heard_at: Instant,
    decide_by: Instant,
}

impl Asking {
    /// When it is refused or given up.
    pub(super) fn next_timeout(&self) -> Instant {
        self.decide_by.min(self.heard_at + ASKING_SILENCE)
    }
}

impl Endpoint {
    /// Lets a client in that [asks](crate::Event::Asking). [`Event::Connected`](crate::Event::Connected) follows on both sides, here once the client's
    /// first packet has come; if none comes, [`Event::Closed`](crate::Event::Closed).
    pub fn admit(&mut self, now: Instant, connection: ConnectionId) -> Result<(), AdmissionError> {
        let (index, mut asking) = self.take_asking(connection)?;
        let resumes = asking
            .request
            .token_id()
            .is_some_and(|token| is_resumable(&self.sessions, &self.slots, &token));
        asking.request.refresh(self.unix_now_s(now), resumes);
        let mut reply = [0; REPLY_LEN_MAX];
        self.accept(now, index, asking.request, true, &mut reply)
            .map_err(AdmissionError::Refused)
    }

    /// Refuses a client that [asks](crate::Event::Asking), which reads `code` and the first 128 bytes of `text` in
    /// [`Refusal::Denied`]. No event follows here.
    pub fn deny(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        code: u16,
        text: &str,
    ) -> Result<(), AdmissionError> {
        let (index, asking) = self.take_asking(connection)?;
        let text = text.to_owned();
        self.refuse_asking(now, index, &asking, &Refusal::Denied { code, text });
        if let Some(listener) = &mut self.listener {
            listener.counters_mut().denied += 1;
        }
        Ok(())
    }

    /// Clients that wait for a decision.
    pub fn pending(&self) -> usize {
        self.admission.pending
    }

    /// A client has passed the checks of the handshake: it is in, asked about, or refused for want of room.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        request: Box<ConnectRequest>,
        reply: &mut [u8],
    ) {
        let limits = self.admission.limits;
        if limits.is_some_and(|limits| self.admission.pending >= limits.pending_max) {
            if let Some(listener) = &mut self.listener {
                listener.counters_mut().pending_limited += 1;
            }
            self.refuse(now, &request, &Refusal::Busy, reply);
            return;
        }
        let resumes = request
            .token_id()
            .is_some_and(|token| is_resumable(&self.sessions, &self.slots, &token));
        let beyond = if resumes { RESUMING_MAX } else { 0 };
        let Some(index) = self.take_slot(self.config.connections_max + beyond) else {
            // Whoever comes back has a place: it is free once others who came back before have taken over theirs. The client asks again by itself.
            if resumes {
                if let Some(listener) = &mut self.listener {
                    listener.counters_mut().resuming_limited += 1;
                }
                return;
            }
            self.refuse(now, &request, &Refusal::Full, reply);
            return;
        };
        match limits {
            Some(limits) => self.ask(now, index, request, limits, reply),
            // A refusal is the client's to read; there is nobody to tell here.
            None => drop(self.accept(now, index, request, false, reply)),
        }
    }

    /// A Connect of a client that was answered before: the same answer again, to the same address only. `false` if there is
    /// no such client.
    pub(super) fn repeat_answer(
        &mut self,
        now: Instant,
        random: &ClientRandom,
        from: SocketAddr,
    ) -> bool {
        let Some(listener) = &mut self.listener else {
            return false;
        };
        if let Some((to, refusal)) = self.admission.refused.get(random) {
            if *to == from && listener.may_reply(now) {
                let refusal = refusal.clone();
                self.reply(from, &refusal);
            }
            return true;
        }
        let Some(&index) = self.unconfirmed.get(random) else {
            return false;
        };
        match &mut self.slots[index as usize].occupant {
            Occupant::Asking(asking) if asking.request.from() == from => {
                asking.heard_at = now;
                let mut reply = [0; REPLY_LEN_MAX];
                let len = listener.wait(now, random, &mut reply);
                self.schedule.mark_dirty(index as usize);
                self.reply(from, &reply[..len]);
            }
            Occupant::Connection(connection) if connection.is_at(from) => {
                if let Some(accept) = connection.accept_bytes() {
                    let accept = accept.to_vec();
                    self.reply(from, &accept);
                }
            }
            _ => {}
        }
        true
    }

    /// A client has waited too long for a decision, or has left.
    pub(super) fn handle_asking_timeout(&mut self, now: Instant, index: usize) {
        let id = ConnectionId::new(index, self.slots[index].generation);
        let Ok((index, asking)) = self.take_asking(id) else {
            return;
        };
        let Some(listener) = &mut self.listener else {
            return;
        };
        let undecided = asking.decide_by <= now;
        let reason = if undecided {
            listener.counters_mut().undecided += 1;
            self.refuse_asking(now, index, &asking, &Refusal::Busy);
            CloseReason::Undecided
        } else {
            listener.counters_mut().withdrawn += 1;
            self.release_slot(index);
            CloseReason::Lost
        };
        self.shared.inbox.rare(id, LEVEL_LAST, Rare::Closed(reason));
    }

    fn ask(
        &mut self,
        now: Instant,
        index: usize,
        request: Box<ConnectRequest>,
        limits: AdmissionLimits,
        reply: &mut [u8],
    ) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        let (from, random) = (request.from(), request.client_random());
        listener.counters_mut().asked += 1;
        let len = listener.wait(now, &random, reply);
        let slot = &mut self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        let question = Question {
            account: request.account().unwrap_or(0),
            user_data: request.user_data().to_vec(),
            hello: request.payload().to_vec(),
            address: from,
        };
        slot.occupant = Occupant::Asking(Box::new(Asking {
            request,
            heard_at: now,
            decide_by: now + limits.timeout,
        }));
        self.admission.pending += 1;
        self.unconfirmed.insert(random, index as u32);
        self.schedule.mark_dirty(index);
        self.shared
            .inbox
            .rare(id, LEVEL_FIRST, Rare::Asking(question));
        self.reply(from, &reply[..len]);
    }

    /// Takes a client out of the waiting ones. Its slot stays taken.
    fn take_asking(
        &mut self,
        connection: ConnectionId,
    ) -> Result<(usize, Box<Asking>), AdmissionError> {
        let index = self.find(connection).ok_or(AdmissionError::NotAsking)?;
        let occupant = &mut self.slots[index].occupant;
        match std::mem::replace(occupant, Occupant::Nobody) {
            Occupant::Asking(asking) => {
                self.admission.pending -= 1;
                self.unconfirmed.remove(&asking.request.client_random());
                Ok((index, asking))
            }
            other => {
                *occupant = other;
                Err(AdmissionError::NotAsking)
            }
        }
    }

    /// Refuses a client taken out of the waiting ones, and remembers it in case it misses the refusal.
    fn refuse_asking(&mut self, now: Instant, index: usize, asking: &Asking, refusal: &Refusal) {
        self.release_slot(index);
        let mut reply = [0; REPLY_LEN_MAX];
        let len = self.refuse(now, &asking.request, refusal, &mut reply);
        // Without a reply left the application is asked about the client again when it repeats itself.
        if len > 0 {
            let (random, from) = (asking.request.client_random(), asking.request.from());
            self.admission.remember(random, from, &reply[..len]);
        }
    }
}
