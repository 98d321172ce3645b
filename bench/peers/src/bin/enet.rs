//! ENet's C library with its default settings: channel 0 unreliable, channel 1 reliable.
//!
//! The declarations of its interface (1.3) are written by hand: only what is used here.

use std::process::ExitCode;

#[cfg(not(have_enet))]
fn main() -> ExitCode {
    eprintln!("error: ENet's C library is not installed here (Debian: apt install libenet-dev)");
    ExitCode::from(4)
}

#[cfg(have_enet)]
fn main() -> ExitCode {
    muse_bench_workload::run::<hosts::Enet>(std::env::args().skip(1))
}

#[cfg(have_enet)]
mod hosts {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use muse_bench_peers::wait_readable;
    use muse_bench_workload::{Clients, Failure, Kind, Library, Options, Peer, Sent};

    use super::ffi;

    pub struct Enet;

    impl Library for Enet {
        type Server = Hosts;
        type Clients = Hosts;

        fn serve(options: &Options) -> Result<(Hosts, u16), Failure> {
            initialize()?;
            let host = Host::create(Some(options.port), CONNECTIONS_MAX)?;
            let port = host.port();
            let hosts = Hosts {
                hosts: vec![host],
                peers: Vec::new(),
                connected: 0,
                server: None,
            };
            Ok((hosts, port))
        }

        fn clients(_: &Options, server: SocketAddr) -> Result<Hosts, Failure> {
            initialize()?;
            Ok(Hosts {
                hosts: Vec::new(),
                peers: Vec::new(),
                connected: 0,
                server: Some(server),
            })
        }
    }

    /// The server's one host, or one for each client; and the peer of each connection.
    pub struct Hosts {
        hosts: Vec<Host>,
        peers: Vec<*mut ffi::ENetPeer>,
        connected: usize,
        /// The address that clients connect to.
        server: Option<SocketAddr>,
    }

    impl Clients for Hosts {
        fn add(&mut self) -> Result<(), Failure> {
            let host = Host::create(None, 1)?;
            if let Some(server) = self.server {
                self.peers.push(host.connect(server, self.peers.len())?);
            }
            self.hosts.push(host);
            Ok(())
        }
    }

    impl Peer for Hosts {
        /// ENet goes through its whole queue whenever its own window of 64 kB is full: a short queue is to its
        /// advantage.
        const IN_FLIGHT_MAX: u64 = 256;

        fn connected(&self) -> usize {
            self.connected
        }

        fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
            for host in &self.hosts {
                while let Some(event) = host.service() {
                    match event.kind {
                        ffi::EVENT_CONNECT => {
                            self.connected += 1;
                            // A client's peer has had its number since it began to connect.
                            if !self.peers.contains(&event.peer) {
                                // SAFETY: ENet keeps the peer as long as its host, and leaves `data` to us.
                                unsafe { (*event.peer).data = self.peers.len() };
                                self.peers.push(event.peer);
                            }
                        }
                        ffi::EVENT_DISCONNECT => eprintln!("enet: a peer was disconnected"),
                        _ => deliver(&event, received),
                    }
                }
            }
        }

        fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
            let (channel, flags) = match kind {
                Kind::Unreliable => (0, 0),
                Kind::Reliable => (1, ffi::PACKET_RELIABLE),
            };
            // SAFETY: ENet copies the message; the peer lives as long as its host; a packet that could not be sent
            // is still ours to destroy.
            unsafe {
                let packet = ffi::enet_packet_create(message.as_ptr().cast(), message.len(), flags);
                if ffi::enet_peer_send(self.peers[connection], channel, packet) == 0 {
                    return Sent::Accepted;
                }
                ffi::enet_packet_destroy(packet);
            }
            Sent::Full
        }

        fn flush(&mut self) {
            for host in &self.hosts {
                // SAFETY: the host lives until it is dropped.
                unsafe { ffi::enet_host_flush(host.0) };
            }
        }

        fn wait(&mut self, timeout: Duration) {
            // SAFETY: the socket is open as long as its host.
            let socket = unsafe { BorrowedFd::borrow_raw((*self.hosts[0].0).socket) };
            wait_readable(&socket, timeout);
        }
    }

    struct Host(*mut ffi::ENetHost);

    impl Host {
        fn create(port: Option<u16>, peers: usize) -> Result<Self, Failure> {
            let address = port.map(|port| address(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
            let pointer = address
                .as_ref()
                .map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: the address outlives the call.
            let host = unsafe { ffi::enet_host_create(pointer, peers, CHANNELS, 0, 0) };
            match host.is_null() {
                true => Err(Failure::new("enet: cannot create a host")),
                false => Ok(Self(host)),
            }
        }

        fn port(&self) -> u16 {
            // SAFETY: the host lives until it is dropped.
            unsafe { (*self.0).address.port }
        }

        fn connect(
            &self,
            server: SocketAddr,
            number: usize,
        ) -> Result<*mut ffi::ENetPeer, Failure> {
            // SAFETY: the address outlives the call; a peer that is not null is ENet's, and `data` is left to us.
            unsafe {
                let peer = ffi::enet_host_connect(self.0, &address(server), CHANNELS, 0);
                if peer.is_null() {
                    return Err(Failure::new("enet: cannot connect"));
                }
                (*peer).data = number;
                Ok(peer)
            }
        }

        fn service(&self) -> Option<ffi::ENetEvent> {
            let mut event = ffi::ENetEvent {
                kind: 0,
                peer: std::ptr::null_mut(),
                channel: 0,
                data: 0,
                packet: std::ptr::null_mut(),
            };
            // SAFETY: the host lives until it is dropped; ENet fills in the event.
            (unsafe { ffi::enet_host_service(self.0, &mut event, 0) } > 0).then_some(event)
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            // SAFETY: created by ENet, destroyed once.
            unsafe { ffi::enet_host_destroy(self.0) };
        }
    }

    fn deliver(event: &ffi::ENetEvent, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let kind = match event.channel {
            0 => Kind::Unreliable,
            _ => Kind::Reliable,
        };
        // SAFETY: a receive event names a live peer and a packet that is ours until we destroy it.
        unsafe {
            let packet = &*event.packet;
            let message = std::slice::from_raw_parts(packet.data, packet.len);
            received((*event.peer).data, kind, message);
            ffi::enet_packet_destroy(event.packet);
        }
    }

    fn initialize() -> Result<(), Failure> {
        // SAFETY: called once, before anything else.
        match unsafe { ffi::enet_initialize() } {
            0 => Ok(()),
            _ => Err(Failure::new("enet: cannot initialize")),
        }
    }

    fn address(address: SocketAddr) -> ffi::ENetAddress {
        let SocketAddr::V4(address) = address else {
            return ffi::ENetAddress { host: 0, port: 0 };
        };
        ffi::ENetAddress {
            host: u32::from_ne_bytes(address.ip().octets()),
            port: address.port(),
        }
    }

    const CHANNELS: usize = 2;
    const CONNECTIONS_MAX: usize = 1_024;
}

#[cfg(have_enet)]
mod ffi {
    use std::ffi::{c_int, c_void};

    #[repr(C)]
    pub struct ENetAddress {
        pub host: u32,
        pub port: u16,
    }

    /// The head of the host's structure; the rest is ENet's own.
    #[repr(C)]
    pub struct ENetHost {
        pub socket: c_int,
        pub address: ENetAddress,
    }

    /// The head of the peer's structure; the rest is ENet's own.
    #[repr(C)]
    pub struct ENetPeer {
        dispatch_list: [*mut c_void; 2],
        host: *mut ENetHost,
        outgoing_id: u16,
        incoming_id: u16,
        connect_id: u32,
        outgoing_session: u8,
        incoming_session: u8,
        address: ENetAddress,
        /// The application's own word.
        pub data: usize,
    }

    #[repr(C)]
    pub struct ENetPacket {
        references: usize,
        flags: u32,
        pub data: *mut u8,
        pub len: usize,
    }

    #[repr(C)]
    pub struct ENetEvent {
        pub kind: c_int,
        pub peer: *mut ENetPeer,
        pub channel: u8,
        pub data: u32,
        pub packet: *mut ENetPacket,
    }

    pub const EVENT_CONNECT: c_int = 1;
    pub const EVENT_DISCONNECT: c_int = 2;
    pub const PACKET_RELIABLE: u32 = 1;

    unsafe extern "C" {
        pub fn enet_initialize() -> c_int;
        pub fn enet_host_create(
            address: *const ENetAddress,
            peers: usize,
            channels: usize,
            incoming_bandwidth: u32,
            outgoing_bandwidth: u32,
        ) -> *mut ENetHost;
        pub fn enet_host_destroy(host: *mut ENetHost);
        pub fn enet_host_connect(
            host: *mut ENetHost,
            address: *const ENetAddress,
            channels: usize,
            data: u32,
        ) -> *mut ENetPeer;
        pub fn enet_host_service(
            host: *mut ENetHost,
            event: *mut ENetEvent,
            timeout_ms: u32,
        ) -> c_int;
        pub fn enet_host_flush(host: *mut ENetHost);
        pub fn enet_packet_create(data: *const c_void, len: usize, flags: u32) -> *mut ENetPacket;
        pub fn enet_packet_destroy(packet: *mut ENetPacket);
        pub fn enet_peer_send(peer: *mut ENetPeer, channel: u8, packet: *mut ENetPacket) -> c_int;
    }
}
