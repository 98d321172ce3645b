//! Clients that misbehave while the others talk: floods over UDP and TCP, a reader that never reads, broken headers, and datagrams in
//! others' names.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use muse_relay_v1::packet::{DatagramHeader, STREAM_HEADER, StreamHeader};

/// One of each.
pub(super) struct Hostile {
    server: SocketAddr,
    flooder: TcpStream,
    socket: UdpSocket,
    address: u8,
    /// Kept open and never read.
    _slow: TcpStream,
    stranger: UdpSocket,
    buffer: Vec<u8>,
}

impl Hostile {
    pub(super) fn connect(server: SocketAddr) -> anyhow::Result<Self> {
        let slow = TcpStream::connect(server)?;
        let mut flooder = TcpStream::connect(server)?;
        let mut welcome = [0; STREAM_HEADER + 1];
        flooder.read_exact(&mut welcome)?;
        flooder.set_nonblocking(true)?;
        let (socket, stranger) = (
            UdpSocket::bind("127.0.0.1:0")?,
            UdpSocket::bind("127.0.0.9:0")?,
        );
        socket.set_nonblocking(true)?;
        stranger.set_nonblocking(true)?;
        Ok(Self {
            server,
            flooder,
            socket,
            address: welcome[STREAM_HEADER],
            _slow: slow,
            stranger,
            buffer: vec![0; 64 << 10],
        })
    }

    /// Does one turn of their attacks. None of it has to succeed.
    pub(super) fn turn(&mut self) {
        let datagram = |address| {
            let header = DatagramHeader {
                kind: FLOOD_KIND,
                control: 0,
                time: 0,
                address,
            };
            header.emit(0)
        };
        for number in 0..DATAGRAMS {
            let _ = self.socket.send_to(&datagram(self.address), self.server);
            // In another's name, and nothing that is a packet.
            let _ = self.stranger.send_to(&datagram(number), self.server);
            let _ = self.stranger.send_to(&[number; 30], self.server);
            let _ = self.socket.recv(&mut self.buffer);
        }
        let header = StreamHeader {
            length: 0,
            control: 0x50,
        };
        let _ = self.flooder.write(&header.emit().repeat(PACKETS));
        while matches!(self.flooder.read(&mut self.buffer), Ok(len) if len > 0) {}
        if let Ok(mut broken) = TcpStream::connect(self.server) {
            let _ = broken.write(&[1, 0, 0, 2, 0]);
        }
    }
}

/// Not what the others send.
const FLOOD_KIND: u8 = 99;
/// In a turn of 10 ms.
const DATAGRAMS: u8 = 100;
const PACKETS: usize = 1_000;
