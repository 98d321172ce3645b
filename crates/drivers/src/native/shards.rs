//! Several sockets on one port, one per core, with every connection's packets going to the same one.
//!
//! Linux spreads packets over the sockets of a `SO_REUSEPORT` group by a hash of the addresses, which would send a
//! client whose address changed to a shard that does not know it, and let a token be used once at each. A classic BPF program does what
//! [`steering`](muse_transport::steering) says instead: packets of a connection go by its id, and a Connect by the name of its token.
//! Other packets go by the hash of the addresses.

use std::io;
use std::net::SocketAddr;

use muse_transport::steering::SHARDS_MAX;
#[cfg(target_os = "linux")]
use muse_transport::steering::{
    CONNECT_FIRST, CONNECTION_OFFSET, PACKET_BIT, TOKEN_LENGTH_OFFSET, TOKEN_NAME_OFFSET,
};

use crate::{UdpDriver, UdpOptions};

/// Binds up to `count` sockets to one address, one for each shard in order; port 0 lets the system choose one for all.
///
/// If packets cannot be steered (any system but Linux, kernels before 4.5, some sandboxes) the result is **one**
/// driver, not an error: a server runs as many shards as it gets. Keep all of them alive as long as the service runs:
/// closing one renumbers the rest.
///
/// ```
/// use muse_drivers::{Driver, UdpOptions, bind_shards};
/// let shards = bind_shards("127.0.0.1:0".parse().expect("an address"), 2, &UdpOptions::default())?;
/// let address = shards[0].local_addr()?;
/// for (number, driver) in shards.into_iter().enumerate() {
///     assert_eq!(driver.local_addr()?, address);
///     std::thread::spawn(move || { /* run shard `number` with `driver` */ let _ = (number, driver); });
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn bind_shards(
    address: SocketAddr,
    count: usize,
    options: &UdpOptions,
) -> io::Result<Vec<UdpDriver>> {
    if count == 0 || count > SHARDS_MAX {
        let message = format!("{count} shards asked for, 1 to {SHARDS_MAX} are possible");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if count == 1 || !cfg!(target_os = "linux") {
        return Ok(vec![UdpDriver::bind(address, options)?]);
    }
    bind_group(address, count, options)
}

#[cfg(target_os = "linux")]
fn bind_group(
    address: SocketAddr,
    count: usize,
    options: &UdpOptions,
) -> io::Result<Vec<UdpDriver>> {
    use crate::Driver;

    let shared = options.clone().reuse_port(true);
    let first = UdpDriver::bind(address, &shared)?;
    // Attached before there is a second socket: no packet is ever steered otherwise.
    if crate::udp::linux::attach_steering(first.socket(), &mut steering(count as u32)).is_err() {
        drop(first);
        return Ok(vec![UdpDriver::bind(address, options)?]);
    }
    let address = first.local_addr()?;
    let mut shards = vec![first];
    for _ in 1..count {
        shards.push(UdpDriver::bind(address, &shared)?);
    }
    Ok(shards)
}

#[cfg(not(target_os = "linux"))]
fn bind_group(address: SocketAddr, _: usize, options: &UdpOptions) -> io::Result<Vec<UdpDriver>> {
    Ok(vec![UdpDriver::bind(address, options)?])
}

/// The steering program, [`shard_of`](muse_transport::steering::shard_of) for the kernel, which runs it with offset 0 at the UDP payload; a load past
/// the end returns shard 0.
#[cfg(target_os = "linux")]
fn steering(count: u32) -> [libc::sock_filter; 11] {
    let load_byte = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    let load_half = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    let jump_if_set = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let jump_if_equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let modulo = (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K) as u16;
    let return_accumulator = (libc::BPF_RET | libc::BPF_A) as u16;
    let return_constant = (libc::BPF_RET | libc::BPF_K) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JA) as u16;
    // A branch passes so many of the next lines if the condition holds, and so many if not.
    let branch = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let plain = |code, k| branch(code, k, 0, 0);
    [
        plain(load_byte, 0),
        branch(jump_if_set, u32::from(PACKET_BIT), 0, 2),
        plain(load_byte, CONNECTION_OFFSET as u32),
        plain(jump, 4),
        branch(jump_if_equal, u32::from(CONNECT_FIRST), 0, 5),
        plain(load_half, TOKEN_LENGTH_OFFSET as u32),
        branch(jump_if_equal, 0, 3, 0),
        plain(load_byte, TOKEN_NAME_OFFSET as u32),
        plain(modulo, count),
        plain(return_accumulator, 0),
        // No such shard: the kernel then uses its own hash of the addresses, which it always has; the hash that a
        // program can read is that of the network card, and zero where there is none.
        plain(return_constant, u32::MAX),
    ]
}
