//! Servers and clients: connections, messages, events, admission.

use std::ffi::c_char;
use std::net::{SocketAddr, ToSocketAddrs};

use muse::drivers::{ClientDriver, EndpointDriver, danger_key_log_file};
use muse::transport::token::{ConnectToken, TokenVerifier};
use muse::transport::{
    AdmissionLimits, Connect, ConnectionId, Endpoint, SendOptions, ServerKey, ServerOptions,
    ServerPublicKey,
};
use muse::{Duration, Instant};

use crate::config::{MuseConfig, given, priority};
use crate::context::{Muse, run};
use crate::event::MuseEvent;
use crate::memory;
use crate::status::{Failure, MuseStatus};

/// The ground on which a client trusts its server.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseTrust {
    /// By the server's public key.
    Pinned = 0,
    /// By a connect token, which names the server's key.
    Token = 1,
    /// Not at all, and without encryption: anyone on the way can read and forge everything.
    DangerInsecure = 2,
}

/// Settings of a new connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseConnect {
    /// A MuseTrust.
    pub trust: u8,
    /// 0.
    pub reserved: [u8; 7],
    /// The server's public key, 32 bytes; for a pinned key alone.
    pub server_key: *const u8,
    /// The connect token as text; for a token alone.
    pub token: *const c_char,
    /// Bytes that reach the server with the connection, at most 256; null for none.
    pub hello: *const u8,
    /// Number of bytes at `hello`.
    pub hello_len: usize,
    /// Gives up after this time; 0 for 10 s.
    pub timeout_us: u64,
}

/// A key whose tokens a server takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseTokenKey {
    /// The key's number.
    pub key_id: u32,
    /// The issuer's public key.
    pub public_key: [u8; 32],
}

/// Settings of a server: its key, and which clients it lets in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseServerOptions {
    /// The server's private key, 32 bytes, from `muse_key_new` or `muse_key_load_or_create`.
    pub key: *const u8,
    /// Keys whose tokens are taken. With any, only holders of a connect token get in.
    pub token_keys: *const MuseTokenKey,
    /// Number of keys at `token_keys`.
    pub token_key_count: usize,
    /// 1 also lets in clients without encryption, whose messages anyone on the way can read and forge.
    pub danger_allow_insecure: u8,
    /// 1 asks about each client before it is in: MUSE_EVENT_KIND_ASKING, which `muse_admit` or `muse_deny` answers.
    pub asks: u8,
    /// 0.
    pub reserved: [u8; 2],
    /// Clients that may wait for a decision at once; 0 for 1,024. Further ones are refused as by a busy server.
    pub pending_max: u32,
    /// Time for a decision, at most 300 s; 0 for 30 s. Afterwards the client is refused as by a busy server, and MUSE_EVENT_KIND_CLOSED
    /// with MUSE_CLOSE_REASON_UNDECIDED follows.
    pub decision_timeout_us: u64,
}

/// Settings of one message, beyond those of its channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseSendOptions {
    /// The time at which it becomes worthless, by `muse_now`; 0 for never.
    pub deadline_us: u64,
    /// A MusePriority; 0 for that of the channel.
    pub priority: u8,
    /// 1 asks for an event that tells whether it was delivered.
    pub receipt: u8,
    /// 0.
    pub reserved: [u8; 6],
}

/// The bytes that a connection may send.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseBudget {
    /// Bytes that may leave at once.
    pub at_once: u64,
    /// Bytes that may be handed over in a tick of the given length, so that all have left before the next.
    pub this_tick: u64,
    /// Bytes a second in the long run; 0 when nothing limits them.
    pub rate: u64,
}

/// An endpoint with its socket, and what its last event points to.
pub(crate) struct OwnedEndpoint {
    driver: EndpointDriver,
    buffer: Vec<u8>,
    words: String,
    /// An event that did not fit into the caller's buffer.
    waiting: Option<MuseEvent>,
}

impl OwnedEndpoint {
    fn new(driver: EndpointDriver) -> Self {
        Self {
            driver,
            buffer: Vec::new(),
            words: String::new(),
            waiting: None,
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.driver.endpoint()
    }

    fn endpoint_mut(&mut self) -> &mut Endpoint {
        self.driver.endpoint_mut()
    }

    /// Returns what most commands of the endpoint begin with.
    fn at(&mut self, connection: u64) -> (&mut Endpoint, Instant, ConnectionId) {
        let now = self.now();
        (
            self.endpoint_mut(),
            now,
            ConnectionId::from_bits(connection),
        )
    }

    fn now(&self) -> Instant {
        self.driver.now()
    }

    /// Returns the next event; it points into this.
    fn next_event(&mut self) -> Option<MuseEvent> {
        if let Some(event) = self.waiting.take() {
            return Some(event);
        }
        // One huge message should not hold its memory for ever.
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
        let event = self.driver.poll_event(&mut self.buffer)?;
        Some(MuseEvent::of(&event, &mut self.words))
    }
}

/// Listens at `address` ("0.0.0.0:7000", "[::]:7000" for both IP versions, port 0 for any) and gives the handle of the new endpoint.
/// The key and everything else that is pointed to is copied.
///
/// # Safety
/// `muse` is null or a living Muse; every other pointer, also those in the structures, is null or points to what it is said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_server_new(
    muse: *mut Muse,
    address: *const c_char,
    config: *const MuseConfig,
    options: *const MuseServerOptions,
    endpoint: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(endpoint)?;
        let address = memory::text(address)?;
        let config = memory::read(config)?.build()?;
        let options = server_options(memory::read(options)?)?;
        let server = EndpointDriver::bind(address, config, options)?;
        place.put(inner.insert(OwnedEndpoint::new(server))?);
        Ok(())
    })
}

/// Begins to connect to `address` ("game.example:7000"; a name is looked up, which waits) and gives the handle of the new endpoint and the
/// id of its one connection. An event says how it went. Everything that is pointed to is copied.
///
/// # Safety
/// `muse` is null or a living Muse; every other pointer, also those in the structures, is null or points to what it is said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_client_new(
    muse: *mut Muse,
    address: *const c_char,
    config: *const MuseConfig,
    connect: *const MuseConnect,
    endpoint: *mut u64,
    connection: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let (place, connection) = (memory::place(endpoint)?, memory::place(connection)?);
        let address = memory::text(address)?;
        let config = memory::read(config)?.build()?;
        let how = connect_options(memory::read(connect)?)?;
        let client = ClientDriver::connect(address, config, how)?;
        connection.put(client.connection().to_bits());
        place.put(inner.insert(OwnedEndpoint::new(client.into()))?);
        Ok(())
    })
}

/// Receives what has arrived and does what has become due. Once a tick, before the events.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_poll(muse: *mut Muse, endpoint: u64) -> MuseStatus {
    on!(muse, endpoint, |owned| Ok(owned.driver.poll()?))
}

/// Sends what is to be sent. Once a tick, after the game's step, or at once after something urgent.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_flush(muse: *mut Muse, endpoint: u64) -> MuseStatus {
    on!(muse, endpoint, |owned| Ok(owned.driver.flush()?))
}

/// Flushes, then sleeps until something arrives or becomes due, for `timeout_us` at most; `muse_poll` comes next. MUSE_STATUS_NONE when
/// nothing arrived. The Muse is busy meanwhile.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_wait(muse: *mut Muse, endpoint: u64, timeout_us: u64) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let timeout = Duration::from_micros(timeout_us);
        Ok(owned.driver.wait(timeout)?)
    })
}

/// Gives the next event, or MUSE_STATUS_NONE. `payload`, `extra` and `address` point to the library's memory and may be read until the next
/// call of `muse_next_event`, `muse_receive`, `muse_destroy` or `muse_free` with this endpoint; other calls, sending above all, leave them
/// alone. Nothing is allocated for a message once the endpoint has seen one as long.
///
/// # Safety
/// `muse` is null or a living Muse; `event` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_next_event(
    muse: *mut Muse,
    endpoint: u64,
    event: *mut MuseEvent,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let place = memory::place(event)?;
        Ok(owned.next_event().map(|event| place.put(event)).is_some())
    })
}

/// As `muse_next_event`, but copies the payload, and `extra` and `address` behind it, to the caller's buffer, which `event` then points to.
/// If they do not fit, the answer is MUSE_STATUS_ERROR_SHORT_BUFFER, `event` tells the lengths with null pointers, and the event waits for the
/// next call.
///
/// # Safety
/// `muse` is null or a living Muse; `event` is null or can be written; so can `capacity` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_receive(
    muse: *mut Muse,
    endpoint: u64,
    event: *mut MuseEvent,
    buffer: *mut u8,
    capacity: usize,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let place = memory::place(event)?;
        let Some(event) = owned.next_event() else {
            return Ok(false);
        };
        let needed = event.payload_len + event.extra_len + event.address_len;
        if needed > capacity || needed > 0 && buffer.is_null() {
            owned.waiting = Some(event);
            place.put(MuseEvent {
                payload: std::ptr::null(),
                extra: std::ptr::null(),
                address: std::ptr::null(),
                ..event
            });
            let text = "the buffer is too short for the event";
            return Err(Failure::new(MuseStatus::ErrorShortBuffer, text));
        }
        let mut end = buffer;
        let mut copy = |from: *const u8, len: usize| {
            let copied = end.cast_const();
            if len > 0 {
                end.copy_from_nonoverlapping(from, len);
            }
            end = end.wrapping_add(len);
            copied
        };
        place.put(MuseEvent {
            payload: copy(event.payload, event.payload_len),
            extra: copy(event.extra, event.extra_len),
            address: copy(event.address, event.address_len),
            ..event
        });
        Ok(true)
    })
}

/// Sends a message on a channel; `options` may be null. The payload is copied. `message`, if not null, gets the number that a receipt names.
///
/// # Safety
/// `muse` is null or a living Muse; `len` bytes can be read at `payload`; the others are null or point to what they are said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_send(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    channel: u8,
    payload: *const u8,
    len: usize,
    options: *const MuseSendOptions,
    message: *mut u64,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let payload = memory::bytes(payload, len)?;
        let options = send_options(options.as_ref())?;
        let (endpoint, now, connection) = owned.at(connection);
        let id = endpoint.send_with(now, connection, channel, payload, &options)?;
        if let Ok(place) = memory::place(message) {
            place.put(id.number);
        }
        Ok(())
    })
}

/// Sends a message to every connection; `sent`, if not null, gets how many took it. Those whose queue is full did not.
///
/// # Safety
/// `muse` is null or a living Muse; `len` bytes can be read at `payload`; `sent` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_broadcast(
    muse: *mut Muse,
    endpoint: u64,
    channel: u8,
    payload: *const u8,
    len: usize,
    sent: *mut usize,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let payload = memory::bytes(payload, len)?;
        let now = owned.now();
        let broadcast = owned.endpoint_mut().broadcast(now, channel, payload);
        if let Ok(place) = memory::place(sent) {
            place.put(broadcast.sent);
        }
        Ok(())
    })
}

/// Closes a connection at once and tells the peer why; `text` may be null. What is still on its way may be lost. The event follows.
///
/// # Safety
/// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_close(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    code: u16,
    text: *const c_char,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let (endpoint, now, connection) = owned.at(connection);
        endpoint.close(now, connection, code, memory::optional_text(text)?);
        Ok(())
    })
}

/// Closes a connection once everything reliable has arrived; the event says when. Nothing more can be sent meanwhile. `text` may be null.
///
/// # Safety
/// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_finish(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    code: u16,
    text: *const c_char,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let (endpoint, now, connection) = owned.at(connection);
        endpoint.finish(now, connection, code, memory::optional_text(text)?);
        Ok(())
    })
}

/// Lets a client in that asks (MUSE_EVENT_KIND_ASKING). MUSE_EVENT_KIND_CONNECTED follows on both sides, here once the client's first packet
/// has come; if none comes, MUSE_EVENT_KIND_CLOSED. MUSE_STATUS_ERROR_NO_CONNECTION when it no longer asks.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_admit(muse: *mut Muse, endpoint: u64, connection: u64) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let (endpoint, now, connection) = owned.at(connection);
        Ok(endpoint.admit(now, connection)?)
    })
}

/// Refuses a client that asks (MUSE_EVENT_KIND_ASKING), which reads `code` and the first 128 bytes of `text` with MUSE_REFUSAL_DENIED; `text` may
/// be null. No event follows here. MUSE_STATUS_ERROR_NO_CONNECTION when it no longer asks.
///
/// # Safety
/// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_deny(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    code: u16,
    text: *const c_char,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let (endpoint, now, connection) = owned.at(connection);
        Ok(endpoint.deny(now, connection, code, memory::optional_text(text)?)?)
    })
}

/// Gives the endpoint's time in microseconds, of its last poll or flush: deadlines and clocks go by it.
///
/// # Safety
/// `muse` is null or a living Muse; `now_us` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_now(muse: *mut Muse, endpoint: u64, now_us: *mut u64) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        memory::place(now_us)?.put(owned.now().as_micros());
        Ok(())
    })
}

/// Gives the bytes that a connection may send now, and in ticks of this length.
///
/// # Safety
/// `muse` is null or a living Muse; `budget` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_budget(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    tick_us: u64,
    budget: *mut MuseBudget,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let place = memory::place(budget)?;
        let (endpoint, now, connection) = owned.at(connection);
        let budget = endpoint.budget(now, connection).ok_or_else(no_connection)?;
        place.put(MuseBudget {
            at_once: budget.at_once() as u64,
            this_tick: budget.this_tick(Duration::from_micros(tick_us)) as u64,
            rate: budget.rate().unwrap_or(0),
        });
        Ok(())
    })
}

/// Copies the socket's own address to `buffer` as text with a zero at the end; `len` gets its length without it.
///
/// # Safety
/// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_local_address(
    muse: *mut Muse,
    endpoint: u64,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let len = memory::place(len)?;
        let address = owned.driver.local_addr()?;
        memory::copy_text(&address.to_string(), buffer, capacity, &len)
    })
}

/// Appends the secrets of every connection made from now on to the file at `path`, for an analyser. Whoever has them can read and
/// forge everything, so the file is made readable by its owner alone, and one that others can read is refused.
///
/// # Safety
/// `muse` is null or a living Muse; `path` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_danger_key_log(
    muse: *mut Muse,
    endpoint: u64,
    path: *const c_char,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let path = memory::text(path)?;
        let log = danger_key_log_file(path)?;
        owned.endpoint_mut().danger_key_log(log);
        Ok(())
    })
}

/// The body of a function that C calls, run by [`with_endpoint`].
macro_rules! on {
    ($muse:expr, $endpoint:expr, $body:expr) => {
        // SAFETY: as the function demands that this is the body of.
        unsafe { $crate::endpoint::with_endpoint($muse, $endpoint, $body) }
    };
}
pub(crate) use on;

/// Runs a function's body on an endpoint.
///
/// # Safety
/// `muse` is null or a living Muse.
pub(crate) unsafe fn with_endpoint<S: Into<MuseStatus>>(
    muse: *const Muse,
    endpoint: u64,
    act: impl FnOnce(&mut OwnedEndpoint) -> Result<S, Failure>,
) -> MuseStatus {
    run!(muse, |inner| act(inner.endpoint(endpoint)?))
}

pub(crate) fn no_connection() -> Failure {
    Failure::new(MuseStatus::ErrorNoConnection, "no such connection")
}

/// # Safety
/// The pointers are null or point to what they are said to.
unsafe fn server_options(options: &MuseServerOptions) -> Result<ServerOptions, Failure> {
    // SAFETY: as this function demands; a MuseTokenKey is valid whatever its bits.
    let (key, keys) = unsafe {
        (
            memory::read(options.key.cast::<[u8; 32]>())?,
            memory::items(options.token_keys, options.token_key_count)?,
        )
    };
    let mut server = ServerOptions::new(ServerKey::from_bytes(*key));
    if !keys.is_empty() {
        let mut verifier = TokenVerifier::new();
        for key in keys {
            verifier
                .add_key(key.key_id, &key.public_key)
                .map_err(Failure::of(MuseStatus::ErrorArgument))?;
        }
        server = server.tokens(verifier);
    }
    if options.danger_allow_insecure != 0 {
        server = server.danger_allow_insecure();
    }
    if options.asks != 0 {
        let timeout = Duration::from_micros(options.decision_timeout_us);
        let limits = AdmissionLimits::default();
        let limits = given(
            limits,
            options.pending_max as usize,
            AdmissionLimits::pending_max,
        );
        server = server.admission(given(limits, timeout, AdmissionLimits::timeout));
    }
    Ok(server)
}

/// # Safety
/// The pointers are null or point to what they are said to.
unsafe fn connect_options(options: &MuseConnect) -> Result<Connect, Failure> {
    // SAFETY: as this function demands.
    let hello = unsafe { memory::bytes(options.hello, options.hello_len) }?;
    let connect = match options.trust {
        0 => {
            // SAFETY: as this function demands.
            let key = unsafe { memory::read(options.server_key.cast::<[u8; 32]>()) }?;
            Connect::pinned(ServerPublicKey::from_bytes(*key))
        }
        1 => {
            // SAFETY: as this function demands.
            let text = unsafe { memory::text(options.token) }?;
            let token =
                ConnectToken::from_text(text).map_err(Failure::of(MuseStatus::ErrorToken))?;
            Connect::token(token)
        }
        2 => Connect::danger_insecure(),
        _ => return Err(Failure::argument("no such MuseTrust")),
    };
    let timeout = Duration::from_micros(options.timeout_us);
    Ok(given(connect.hello(hello), timeout, Connect::timeout))
}

fn send_options(options: Option<&MuseSendOptions>) -> Result<SendOptions, Failure> {
    let mut send = SendOptions::default();
    let Some(options) = options else {
        return Ok(send);
    };
    if let Some(priority) = priority(options.priority)? {
        send = send.priority(priority);
    }
    send = given(
        send,
        Instant::from_micros(options.deadline_us),
        SendOptions::deadline,
    );
    if options.receipt != 0 {
        send = send.receipt();
    }
    Ok(send)
}

/// Looks up the first address of a text.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let mut addresses = text.to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| Failure::argument("the name has no address"))
}

/// Largest buffer that is kept for the next event.
const BUFFER_KEPT_MAX: usize = 4 << 20;
