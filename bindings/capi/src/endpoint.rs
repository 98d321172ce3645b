//! Servers and clients: connections, messages, events.

use std::ffi::c_char;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use muse::drivers::{Client, Server};
use muse::transport::token::{ConnectToken, TokenVerifier};
use muse::transport::{
    Connect, ConnectionId, Endpoint, SendOptions, ServerKey, ServerOptions, ServerPublicKey,
};
use muse::{Duration, Instant};

use crate::config::{MuseConfig, priority};
use crate::context::{Inner, Muse, Thing, with};
use crate::event::MuseEvent;
use crate::memory;
use crate::status::{Answer, Failure, MuseStatus};

/// How a client trusts its server.
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

/// How to connect.
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
    /// What to say to the server at once, at most 256 bytes; null for nothing.
    pub hello: *const u8,
    /// How many bytes that is.
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

/// How a server lets clients in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseServerOptions {
    /// The server's private key, 32 bytes, from `muse_key_new` or `muse_key_load_or_create`.
    pub key: *const u8,
    /// Keys whose tokens are taken. With any, only holders of a connect token get in.
    pub token_keys: *const MuseTokenKey,
    /// How many there are.
    pub token_key_count: usize,
    /// 1 also lets in clients without encryption, whose messages anyone on the way can read and forge.
    pub danger_allow_insecure: u8,
    /// 0.
    pub reserved: [u8; 7],
}

/// What to do with one message, beyond what its channel says.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseSendOptions {
    /// When it becomes worthless, by `muse_now`; 0 for never.
    pub deadline_us: u64,
    /// A MusePriority; 0 for what the channel says.
    pub priority: u8,
    /// 1 asks for an event that tells what became of it.
    pub receipt: u8,
    /// 0.
    pub reserved: [u8; 6],
}

/// What a connection may send.
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

/// An endpoint, and what was told of its last event.
pub(crate) struct Host {
    side: Side,
    buffer: Vec<u8>,
    words: String,
    /// An event that did not fit into the caller's buffer.
    waiting: Option<MuseEvent>,
}

enum Side {
    Client(Box<Client>),
    Server(Box<Server>),
}

impl Host {
    fn new(side: Side) -> Box<Self> {
        Box::new(Self {
            side,
            buffer: Vec::new(),
            words: String::new(),
            waiting: None,
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        match &self.side {
            Side::Client(client) => client.endpoint(),
            Side::Server(server) => server.endpoint(),
        }
    }

    fn endpoint_mut(&mut self) -> &mut Endpoint {
        match &mut self.side {
            Side::Client(client) => client.endpoint_mut(),
            Side::Server(server) => server.endpoint_mut(),
        }
    }

    fn now(&self) -> Instant {
        match &self.side {
            Side::Client(client) => client.now(),
            Side::Server(server) => server.now(),
        }
    }

    fn poll(&mut self) -> std::io::Result<()> {
        match &mut self.side {
            Side::Client(client) => client.poll(),
            Side::Server(server) => server.poll(),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.side {
            Side::Client(client) => client.flush(),
            Side::Server(server) => server.flush(),
        }
    }

    fn wait(&mut self, timeout: Duration) -> std::io::Result<bool> {
        match &mut self.side {
            Side::Client(client) => client.wait(timeout),
            Side::Server(server) => server.wait(timeout),
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match &self.side {
            Side::Client(client) => client.local_addr(),
            Side::Server(server) => server.local_addr(),
        }
    }

    /// The next event; it points into this host.
    fn next_event(&mut self) -> Option<MuseEvent> {
        if let Some(event) = self.waiting.take() {
            return Some(event);
        }
        // One huge message should not hold its memory for ever.
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
        let endpoint = match &mut self.side {
            Side::Client(client) => client.endpoint_mut(),
            Side::Server(server) => server.endpoint_mut(),
        };
        let event = endpoint.poll_event(&mut self.buffer)?;
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
    // SAFETY: as this function demands.
    unsafe {
        with(muse, |inner| {
            let place = memory::place(endpoint)?;
            let address = memory::text(address)?;
            let config = memory::read(config)?.build()?;
            let options = server_options(memory::read(options)?)?;
            let server = Server::bind(address, config, options)?;
            let host = Host::new(Side::Server(Box::new(server)));
            place.put(inner.insert(Thing::Endpoint(host))?);
            Ok(MuseStatus::Ok)
        })
    }
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
    // SAFETY: as this function demands.
    unsafe {
        with(muse, |inner| {
            let (place, connection) = (memory::place(endpoint)?, memory::place(connection)?);
            let address = memory::text(address)?;
            let config = memory::read(config)?.build()?;
            let how = connect_options(memory::read(connect)?)?;
            let client = Client::connect(address, config, how)?;
            connection.put(client.connection().to_bits());
            let host = Host::new(Side::Client(Box::new(client)));
            place.put(inner.insert(Thing::Endpoint(host))?);
            Ok(MuseStatus::Ok)
        })
    }
}

/// Takes in what has arrived and what has become due. Once a tick, before the events.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_poll(muse: *mut Muse, endpoint: u64) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            host.poll()?;
            Ok(MuseStatus::Ok)
        })
    }
}

/// Sends what is to be sent. Once a tick, after the game's step, or at once after something urgent.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_flush(muse: *mut Muse, endpoint: u64) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            host.flush()?;
            Ok(MuseStatus::Ok)
        })
    }
}

/// Flushes, then sleeps until something arrives or becomes due, for `timeout_us` at most; `muse_poll` comes next. MUSE_STATUS_NONE when
/// nothing arrived. The Muse is busy meanwhile.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_wait(muse: *mut Muse, endpoint: u64, timeout_us: u64) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            match host.wait(Duration::from_micros(timeout_us))? {
                true => Ok(MuseStatus::Ok),
                false => Ok(MuseStatus::None),
            }
        })
    }
}

/// What happened next, or MUSE_STATUS_NONE. `payload` and `extra` point to the library's memory and may be read until the next call of
/// `muse_next_event`, `muse_receive`, `muse_destroy` or `muse_free` with this endpoint; other calls, sending above all, leave them alone.
/// Nothing is allocated for a message once the endpoint has seen one as long.
///
/// # Safety
/// `muse` is null or a living Muse; `event` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_next_event(
    muse: *mut Muse,
    endpoint: u64,
    event: *mut MuseEvent,
) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let place = memory::place(event)?;
            let Some(event) = host.next_event() else {
                return Ok(MuseStatus::None);
            };
            place.put(event);
            Ok(MuseStatus::Ok)
        })
    }
}

/// As `muse_next_event`, but copies the payload, and `extra` behind it, to the caller's buffer, which `event` then points to. If they do
/// not fit, the answer is MUSE_STATUS_ERROR_SHORT_BUFFER, `event` tells both lengths with null pointers, and the event waits for the next call.
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let place = memory::place(event)?;
            let Some(event) = host.next_event() else {
                return Ok(MuseStatus::None);
            };
            let needed = event.payload_len + event.extra_len;
            if needed > capacity || needed > 0 && buffer.is_null() {
                host.waiting = Some(event);
                let (payload, extra) = (std::ptr::null(), std::ptr::null());
                place.put(MuseEvent {
                    payload,
                    extra,
                    ..event
                });
                let text = "the buffer is too short for the event";
                return Err(Failure::new(MuseStatus::ErrorShortBuffer, text));
            }
            let payload = memory::bytes(event.payload, event.payload_len)?;
            let extra = memory::bytes(event.extra, event.extra_len)?;
            if needed > 0 {
                let target = std::slice::from_raw_parts_mut(
                    buffer.cast::<std::mem::MaybeUninit<u8>>(),
                    needed,
                );
                for (place, byte) in target.iter_mut().zip(payload.iter().chain(extra)) {
                    place.write(*byte);
                }
            }
            let extra = buffer.wrapping_add(event.payload_len).cast_const();
            let payload = buffer.cast_const();
            place.put(MuseEvent {
                payload,
                extra,
                ..event
            });
            Ok(MuseStatus::Ok)
        })
    }
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let payload = memory::bytes(payload, len)?;
            let options = send_options(options.as_ref())?;
            let (now, connection) = (host.now(), ConnectionId::from_bits(connection));
            let id = host
                .endpoint_mut()
                .send_with(now, connection, channel, payload, &options)?;
            if let Ok(place) = memory::place(message) {
                place.put(id.number);
            }
            Ok(MuseStatus::Ok)
        })
    }
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let payload = memory::bytes(payload, len)?;
            let now = host.now();
            let broadcast = host.endpoint_mut().broadcast(now, channel, payload);
            if let Ok(place) = memory::place(sent) {
                place.put(broadcast.sent);
            }
            Ok(MuseStatus::Ok)
        })
    }
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let text = if text.is_null() {
                ""
            } else {
                memory::text(text)?
            };
            let (now, connection) = (host.now(), ConnectionId::from_bits(connection));
            host.endpoint_mut().close(now, connection, code, text);
            Ok(MuseStatus::Ok)
        })
    }
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let text = if text.is_null() {
                ""
            } else {
                memory::text(text)?
            };
            let (now, connection) = (host.now(), ConnectionId::from_bits(connection));
            host.endpoint_mut().finish(now, connection, code, text);
            Ok(MuseStatus::Ok)
        })
    }
}

/// The endpoint's time in microseconds, of its last poll or flush: deadlines and clocks go by it.
///
/// # Safety
/// `muse` is null or a living Muse; `now_us` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_now(muse: *mut Muse, endpoint: u64, now_us: *mut u64) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            memory::place(now_us)?.put(host.now().as_micros());
            Ok(MuseStatus::Ok)
        })
    }
}

/// What a connection may send now, and in ticks of this length.
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let place = memory::place(budget)?;
            let (now, connection) = (host.now(), ConnectionId::from_bits(connection));
            let Some(budget) = host.endpoint_mut().budget(now, connection) else {
                return Err(no_connection());
            };
            place.put(MuseBudget {
                at_once: budget.at_once() as u64,
                this_tick: budget.this_tick(Duration::from_micros(tick_us)) as u64,
                rate: budget.rate().unwrap_or(0),
            });
            Ok(MuseStatus::Ok)
        })
    }
}

/// The socket's own address as text with a zero at the end; `len` gets its length without it.
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
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let len = memory::place(len)?;
            let text = format!("{}\0", host.local_addr()?);
            let outcome = memory::copy_out(text.as_bytes(), buffer.cast(), capacity, &len);
            len.put(text.len() - 1);
            outcome.map(|()| MuseStatus::Ok)
        })
    }
}

/// Appends the secrets of every connection made from now on to the file at `path`, for an analyser. Whoever has them can read and
/// forge everything.
///
/// # Safety
/// `muse` is null or a living Muse; `path` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_danger_key_log(
    muse: *mut Muse,
    endpoint: u64,
    path: *const c_char,
) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe {
        on(muse, endpoint, |host| {
            let path = memory::text(path)?;
            let file = OpenOptions::new().append(true).create(true).open(path)?;
            let file = Mutex::new(file);
            host.endpoint_mut().danger_key_log(Arc::new(move |line| {
                if let Ok(mut file) = file.lock() {
                    // A log that cannot be written must not end the connection.
                    let _ = writeln!(file, "{line}");
                }
            }));
            Ok(MuseStatus::Ok)
        })
    }
}

/// Runs a function's body on an endpoint.
///
/// # Safety
/// `muse` is null or a living Muse.
pub(crate) unsafe fn on(
    muse: *const Muse,
    endpoint: u64,
    act: impl FnOnce(&mut Host) -> Answer,
) -> MuseStatus {
    // SAFETY: as this function demands.
    unsafe { with(muse, |inner: &mut Inner| act(inner.endpoint(endpoint)?)) }
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
                .map_err(|error| Failure::new(MuseStatus::ErrorArgument, error.to_string()))?;
        }
        server = server.tokens(verifier);
    }
    if options.danger_allow_insecure != 0 {
        server = server.danger_allow_insecure();
    }
    Ok(server)
}

/// # Safety
/// The pointers are null or point to what they are said to.
unsafe fn connect_options(options: &MuseConnect) -> Result<Connect, Failure> {
    // SAFETY: as this function demands.
    let hello = unsafe { memory::bytes(options.hello, options.hello_len) }?;
    let mut connect = match options.trust {
        0 => {
            // SAFETY: as this function demands.
            let key = unsafe { memory::read(options.server_key.cast::<[u8; 32]>()) }?;
            Connect::pinned(ServerPublicKey::from_bytes(*key))
        }
        1 => {
            // SAFETY: as this function demands.
            let text = unsafe { memory::text(options.token) }?;
            let token = ConnectToken::from_text(text)
                .map_err(|error| Failure::new(MuseStatus::ErrorToken, error.to_string()))?;
            Connect::token(token)
        }
        2 => Connect::danger_insecure(),
        _ => return Err(Failure::argument("no such MuseTrust")),
    };
    connect = connect.hello(hello);
    if options.timeout_us != 0 {
        connect = connect.timeout(Duration::from_micros(options.timeout_us));
    }
    Ok(connect)
}

fn send_options(options: Option<&MuseSendOptions>) -> Result<SendOptions, Failure> {
    let mut send = SendOptions::default();
    let Some(options) = options else {
        return Ok(send);
    };
    if let Some(priority) = priority(options.priority)? {
        send = send.priority(priority);
    }
    if options.deadline_us != 0 {
        send = send.deadline(Instant::from_micros(options.deadline_us));
    }
    if options.receipt != 0 {
        send = send.receipt();
    }
    Ok(send)
}

/// The first address of a text.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let mut addresses = text.to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| Failure::argument("the name has no address"))
}

/// Largest buffer that is kept for the next event.
const BUFFER_KEPT_MAX: usize = 4 << 20;
