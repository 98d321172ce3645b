//! Captures in the pcapng format, for a proxy: what came in and what went out, on the side of the clients and on that of the server.
//!
//! Each side is an interface of its own in the file (`clients` and `server`), each packet says whether it came in or went out, and what was
//! lost has a comment that says why. Analysers show all three (`frame.interface_name`, `frame.packet_flags_direction`, `frame.comment`).

use std::io::{self, Write};
use std::net::SocketAddr;

use muse_wire::{Duration, Ecn};

use crate::packet_bytes::{self, LINK_TYPE_RAW_IP, SNAP_LEN};

/// Writes a pcapng file as a stream.
#[derive(Debug)]
pub struct PcapNg<W> {
    out: W,
    block: Vec<u8>,
}

/// A side of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side of the clients.
    Clients,
    /// The side of the server.
    Server,
}

impl<W: Write> PcapNg<W> {
    /// Begins a file.
    pub fn new(out: W) -> io::Result<Self> {
        let mut file = Self {
            out,
            block: Vec::new(),
        };
        file.begin(SECTION_HEADER);
        file.block.extend(0x1A2B_3C4Du32.to_le_bytes());
        file.block.extend([1, 0, 0, 0]);
        file.block.extend(u64::MAX.to_le_bytes());
        file.end()?;
        for name in ["clients", "server"] {
            file.begin(INTERFACE_DESCRIPTION);
            file.block.extend((LINK_TYPE_RAW_IP as u16).to_le_bytes());
            file.block.extend([0, 0]);
            file.block.extend(SNAP_LEN.to_le_bytes());
            file.option(IF_NAME, name.as_bytes());
            file.end_of_options();
            file.end()?;
        }
        Ok(file)
    }

    /// Records what came in at `at` after 1970, with a comment if there is something to say.
    #[expect(clippy::too_many_arguments, reason = "all of them are of one packet")]
    pub fn arrived(
        &mut self,
        side: Side,
        at: Duration,
        from: SocketAddr,
        to: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.packet(side, at, (from, to), ecn, payload, INBOUND, comment)
    }

    /// Records what went out.
    pub fn left(
        &mut self,
        side: Side,
        at: Duration,
        from: SocketAddr,
        to: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
    ) -> io::Result<()> {
        self.packet(side, at, (from, to), ecn, payload, OUTBOUND, None)
    }

    /// Hands on what is in buffers.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are of one packet")]
    fn packet(
        &mut self,
        side: Side,
        at: Duration,
        (from, to): (SocketAddr, SocketAddr),
        ecn: Ecn,
        payload: &[u8],
        flags: u32,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let Some(len) = packet_bytes::ip_len(from, to, payload) else {
            return Ok(());
        };
        self.begin(ENHANCED_PACKET);
        let interface = match side {
            Side::Clients => 0u32,
            Side::Server => 1,
        };
        let micros = at.as_micros();
        for word in [interface, (micros >> 32) as u32, micros as u32, len, len] {
            self.block.extend(word.to_le_bytes());
        }
        packet_bytes::write(&mut self.block, from, to, ecn, payload);
        self.pad();
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        self.end_of_options();
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        // The length, known at the end.
        self.block.extend([0; 4]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let len = value.len().min(OPTION_BYTES_MAX);
        self.block.extend(code.to_le_bytes());
        self.block.extend((len as u16).to_le_bytes());
        self.block.extend(&value[..len]);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.block.extend([0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.block.extend(len);
        self.out.write_all(&self.block)
    }
}

// Block types and option codes of the pcapng format.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const PACKET_FLAGS: u16 = 2;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Longest value of an option.
const OPTION_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// Type and content of each block, with the lengths at both ends checked.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let len = word(bytes, 4) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(bytes, len - 4) as usize, len);
            blocks.push((word(bytes, 0), bytes[8..len - 4].to_vec()));
            bytes = &bytes[len..];
        }
        blocks
    }

    #[test]
    fn both_sides_and_directions_can_be_told_apart() {
        let mut file = PcapNg::new(Vec::new()).expect("written");
        let (a, b) = (
            "192.0.2.1:1".parse().expect("address"),
            "192.0.2.2:2".parse().expect("address"),
        );
        let at = Duration::from_micros(5 << 32 | 7);
        file.arrived(
            Side::Clients,
            at,
            a,
            b,
            Ecn::NotCapable,
            b"odd",
            Some("lost: burst"),
        )
        .expect("written");
        file.left(Side::Server, at, b, a, Ecn::NotCapable, b"even")
            .expect("written");
        // One address of each kind: no packet.
        let c = "[2001:db8::1]:1".parse().expect("address");
        file.left(Side::Server, at, a, c, Ecn::NotCapable, b"mixed")
            .expect("left out");
        let blocks = blocks(&file.into_inner());
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, 6, 6]);
        let (first, second) = (&blocks[3].1, &blocks[4].1);
        let head = |block: &[u8]| [0, 4, 8, 12, 16].map(|at| word(block, at));
        assert_eq!(head(first), [0, 5, 7, 31, 31]);
        assert_eq!(head(second), [1, 5, 7, 32, 32]);
        assert_eq!(&first[20 + 28..20 + 31], b"odd");
        // Comment, flags and the end of options after the padded packet.
        assert_eq!(&first[20 + 32..20 + 36], [1, 0, 11, 0]);
        assert_eq!(&first[20 + 36..20 + 47], b"lost: burst");
        assert_eq!(&first[20 + 48..], [2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&second[20 + 32..], [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
