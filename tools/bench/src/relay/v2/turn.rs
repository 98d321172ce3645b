//! Just enough of TURN (RFC 8656) to send through coturn: an allocation without a password, and a channel to the peer.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// True if coturn is installed.
pub(super) fn is_installed() -> bool {
    super::exists(PROGRAM)
}

/// The words that start coturn on one core with one thread that relays.
pub(super) fn words() -> Vec<OsString> {
    let pinned = if super::exists("taskset") {
        "taskset -c 0"
    } else {
        ""
    };
    let line = format!(
        "{pinned} {PROGRAM} -n --no-auth --no-tls --no-dtls --no-tcp --no-cli --no-tcp-relay --allow-loopback-peers \
         --listening-ip=127.0.0.1 --relay-ip=127.0.0.1 --listening-port={PORT} --relay-threads=1 --log-file=/dev/null --pidfile=/dev/null"
    );
    line.split_whitespace().map(OsString::from).collect()
}

/// Waits until the process has become coturn: until then it is one of the programs that set it apart, and its network is not yet its own.
pub(super) fn await_program(pid: u32) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() == PROGRAM {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(5) {
            bail!("coturn does not start");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the header in front of a packet of `size` bytes.
pub(super) fn header(size: usize) -> [u8; 4] {
    let [high, low] = (size as u16).to_be_bytes();
    let [first, second] = CHANNEL.to_be_bytes();
    [first, second, high, low]
}

/// Gets an allocation for the socket address `here`, and a channel from it to `peer`.
pub(super) fn allocate(
    here: SocketAddr,
    server: SocketAddr,
    peer: SocketAddr,
) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(here)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    // REQUESTED-TRANSPORT: UDP.
    let transport = attribute(0x0019, &[17, 0, 0, 0]);
    request(&socket, server, ALLOCATE, &transport).context("coturn allocates nothing")?;
    let number = attribute(
        0x000C,
        &[CHANNEL.to_be_bytes()[0], CHANNEL.to_be_bytes()[1], 0, 0],
    );
    let bind = [number, attribute(0x0012, &xor_address(peer)?)].concat();
    request(&socket, server, CHANNEL_BIND, &bind).context("coturn binds no channel")
}

/// Sends a request until it is answered with success.
fn request(socket: &UdpSocket, server: SocketAddr, kind: u16, body: &[u8]) -> anyhow::Result<()> {
    let mut message = kind.to_be_bytes().to_vec();
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(COOKIE.to_be_bytes());
    message.extend([7; 12]);
    message.extend(body);
    let mut answer = [0; 1_500];
    for _ in 0..ATTEMPTS {
        // It may not listen yet, which comes back as an error.
        let _ = socket.send_to(&message, server);
        if let Ok((len, _)) = socket.recv_from(&mut answer)
            && len >= 20
        {
            let kind_of_answer = u16::from_be_bytes([answer[0], answer[1]]);
            match kind_of_answer {
                success if success == kind | 0x0100 => return Ok(()),
                other => bail!("it answers {other:#06x}"),
            }
        }
    }
    bail!("no answer")
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn xor_address(address: SocketAddr) -> anyhow::Result<[u8; 8]> {
    let IpAddr::V4(ip) = address.ip() else {
        bail!("only IPv4 is spoken here");
    };
    let mut value = [0, 1, 0, 0, 0, 0, 0, 0];
    let port = address.port() ^ (COOKIE >> 16) as u16;
    value[2..4].copy_from_slice(&port.to_be_bytes());
    value[4..].copy_from_slice(&(ip.to_bits() ^ COOKIE).to_be_bytes());
    Ok(value)
}

const PROGRAM: &str = "turnserver";
/// Port that it listens on, in a network of its own.
pub(super) const PORT: u16 = 3_478;
const ALLOCATE: u16 = 0x0003;
const CHANNEL_BIND: u16 = 0x0009;
const CHANNEL: u16 = 0x4000;
const COOKIE: u32 = 0x2112_A442;
const ATTEMPTS: u32 = 25;
