//! Options of a UDP socket.

/// Settings of a [`UdpDriver`](super::UdpDriver). The defaults suit a game server and a client alike.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    pub(crate) receive_buffer: usize,
    pub(crate) send_buffer: usize,
    pub(crate) dual_stack: bool,
    pub(crate) ecn: bool,
    pub(crate) gso: bool,
    pub(crate) gro: bool,
    pub(crate) dont_fragment: bool,
    pub(crate) reuse_port: bool,
    pub(crate) portable: bool,
    pub(crate) receive_limit: usize,
    pub(crate) sieve: bool,
}

muse_wire::setters! { UdpOptions:
    /// Bytes of receive buffer to ask the kernel for. Default 4 MB: two ticks of 10,000 clients. The kernel grants less
    /// where its limit is lower (`net.core.rmem_max` on Linux);
    /// [`UdpDriver::receive_buffer`](super::UdpDriver::receive_buffer) says how much. Costs memory only while it fills.
    receive_buffer: usize,

    /// Bytes of send buffer to ask the kernel for. Default 4 MB. When it is full, what is unsent waits in the driver.
    send_buffer: usize,

    /// Sets whether a socket bound to an IPv6 address takes IPv4 as well. Default true. IPv4 peers appear to the machine as
    /// plain IPv4 addresses either way.
    dual_stack: bool,

    /// Sets whether congestion marks are sent and read. Default true. Reading costs some 45 ns a datagram, in the kernel.
    ecn: bool,

    /// Sets whether several datagrams for one destination go to the kernel as one (segmentation offload), where it can.
    /// Default true; the driver falls back by itself when a network device refuses.
    gso: bool,

    /// Sets whether the kernel may hand over several datagrams of one sender at once, where it can. Default true. The
    /// machine sees single datagrams either way. Always on in the portable path.
    gro: bool,

    /// Sets whether routers must not fragment our datagrams. Default true: path MTU discovery needs it, and a fragment lost
    /// is a datagram lost. Always on in the portable path.
    dont_fragment: bool,

    /// Sets whether several sockets of this user may share the port. Default false; [`bind_shards`](crate::bind_shards) sets
    /// it. A process of the same user can then take part of the traffic.
    reuse_port: bool,

    /// Sets whether to use the path of the other platforms on Linux too: one system call per destination, through
    /// `quinn-udp`. Default false. For sandboxes that lack `sendmmsg`, and for tests.
    portable: bool,

    /// Most datagrams that one `receive` takes from the socket, give or take one batch. Default 8,192. Bounds a tick
    /// under a flood; what is left stays in the socket's buffer.
    receive_limit: usize,

    /// Sets whether the kernel drops a random part of the handshakes while more of them come than the socket's buffer holds
    /// between two looks at it: otherwise a flood of them crowds out players' packets. Only for sockets that carry the Muse
    /// protocol. Default false; [`EndpointDriver::bind`](crate::EndpointDriver::bind) sets it. Linux only.
    sieve: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            dual_stack: true,
            ecn: true,
            gso: true,
            gro: true,
            dont_fragment: true,
            reuse_port: false,
            portable: false,
            receive_limit: 8_192,
            sieve: false,
        }
    }
}
