//! Sending typed messages, and sending to many connections at once.

use muse_schema::Message;
use muse_wire::Instant;

use super::{Endpoint, Occupant};
use crate::event::{ConnectionId, MessageId, SendError, SendOptions};
use crate::typed::{self, MessageError};

/// The outcome of a broadcast.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions};
/// # use muse_wire::{Duration, Instant};
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::ReliableUnordered)).build()?;
/// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// # client.connect(Instant::ZERO, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()))?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// # server.listen(ServerOptions::new(key));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [here, there] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # for node in [here, there] {
/// #     while simulation.node_mut(node).poll_event(&mut Vec::new()).is_some() {}
/// # }
/// # let now = simulation.now();
/// # let server = simulation.node_mut(there);
/// // One client is there.
/// let outcome = server.broadcast(now, 0, b"round 2");
/// assert_eq!((outcome.sent, outcome.refused.len()), (1, 0));
/// // There is no channel 9, and the outcome says for whom that was so.
/// let outcome = server.broadcast(now, 9, b"round 2");
/// assert_eq!((outcome.sent, outcome.refused.len()), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// The number of connections that took the message.
    pub sent: usize,
    /// Those that did not, and why; most often a full queue. Nothing is allocated while it is empty.
    pub refused: Vec<(ConnectionId, SendError)>,
}

impl Endpoint {
    /// Sends a typed message: its id in two bytes, then its encoding. The receiver gives the payload to a
    /// [`Dispatcher`](crate::Dispatcher).
    ///
    /// Nothing is allocated once the buffer kept for it has grown to the usual size.
    pub fn send_message<M: Message>(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        channel: u8,
        message: &M,
    ) -> Result<MessageId, MessageError> {
        self.send_message_with(now, connection, channel, message, &SendOptions::default())
    }

    /// Sends a typed message with a priority, a deadline or a receipt of its own.
    pub fn send_message_with<M: Message>(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        channel: u8,
        message: &M,
        options: &SendOptions,
    ) -> Result<MessageId, MessageError> {
        self.with_encoded(message, |endpoint, payload| {
            endpoint
                .send_with(now, connection, channel, payload, options)
                .map_err(MessageError::from)
        })
    }

    /// Sends a message to every connection.
    pub fn broadcast(&mut self, now: Instant, channel: u8, payload: &[u8]) -> Broadcast {
        self.broadcast_if(now, channel, payload, |_| true)
    }

    /// Sends a message to every connection that `wanted` agrees to.
    pub fn broadcast_if(
        &mut self,
        now: Instant,
        channel: u8,
        payload: &[u8],
        mut wanted: impl FnMut(ConnectionId) -> bool,
    ) -> Broadcast {
        let mut outcome = Broadcast::default();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let id = ConnectionId::new(index, slot.generation);
            let Occupant::Connection(connection) = &mut slot.occupant else {
                continue;
            };
            if !connection.is_announced() || !wanted(id) {
                continue;
            }
            match connection.send(
                now,
                &mut self.shared,
                channel,
                payload,
                &SendOptions::default(),
            ) {
                Ok(_) => {
                    outcome.sent += 1;
                    self.schedule.mark_dirty(index);
                }
                // On its way out: it is not one of those that should have got the message.
                Err(SendError::Closing | SendError::NoConnection) => {}
                Err(error) => outcome.refused.push((id, error)),
            }
        }
        outcome
    }

    /// Encodes a typed message once and sends it to every connection.
    pub fn broadcast_message<M: Message>(
        &mut self,
        now: Instant,
        channel: u8,
        message: &M,
    ) -> Result<Broadcast, MessageError> {
        self.with_encoded(message, |endpoint, payload| {
            Ok(endpoint.broadcast(now, channel, payload))
        })
    }

    /// True if [`poll_event`](Self::poll_event) has something to tell.
    pub fn has_events(&self) -> bool {
        !self.shared.inbox.is_empty()
    }

    /// Encodes into the buffer that is kept for it.
    fn with_encoded<M: Message, T>(
        &mut self,
        message: &M,
        act: impl FnOnce(&mut Self, &[u8]) -> Result<T, MessageError>,
    ) -> Result<T, MessageError> {
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        let result = match typed::encode(message, &mut encoded) {
            Ok(()) => act(self, &encoded),
            Err(error) => Err(error.into()),
        };
        if encoded.capacity() <= ENCODED_KEPT_MAX {
            self.encoded = encoded;
        }
        result
    }
}

/// Largest buffer kept for the next message: one huge message should not hold its memory for ever.
const ENCODED_KEPT_MAX: usize = 256 << 10;
