//! Linux's `recvmmsg` and `sendmmsg`: many datagrams of many peers in one system call (decision 0004).
//!
//! The only unsafe code of Muse's sockets. Addresses and control messages are written and read as bytes in safe code
//! (`layout`); what is left is the calls themselves. Every pointer handed to the kernel is taken from a vector of this
//! module immediately before the call and is not used after it.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_void, iovec, mmsghdr};
use muse_wire::Ecn;

use super::backend::{Batch, Sink};
use super::layout::{CONTROL_BYTES, Control, NAME_BYTES, Name};
use super::options::UdpOptions;
use super::outbox::{BATCH_TRAINS, Message, Outbox, TRAIN_BYTES_MAX};

/// The arrays of both calls, made once.
#[derive(Debug)]
pub(super) struct Linux {
    incoming: Incoming,
    outgoing: Outgoing,
    ecn: bool,
}

impl Linux {
    /// Sets the options that only Linux has. What an old kernel does not know is left off, except what was asked for
    /// by name and cannot be replaced: that fails.
    pub(super) fn new(socket: &UdpSocket, options: &UdpOptions) -> io::Result<Self> {
        let ipv6 = socket.local_addr()?.is_ipv6();
        if options.dont_fragment {
            // "Probe" sets the flag and ignores the kernel's own guess of the path MTU: discovery is ours.
            set_option(
                socket,
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
            )?;
            if ipv6 {
                let probe = libc::IPV6_PMTUDISC_PROBE;
                set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)?;
                set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)?;
            }
        }
        let mut ecn = options.ecn;
        if ecn {
            ecn &= set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1).is_ok();
            if ipv6 {
                ecn &= set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1).is_ok();
            }
        }
        if options.gro {
            // Kernels before 5.0 lack it; datagrams then arrive one by one.
            let _ = set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        Ok(Self {
            incoming: Incoming::new(),
            outgoing: Outgoing::new(ipv6),
            ecn,
        })
    }

    #[inline]
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        sink: &mut impl Sink,
    ) -> io::Result<Batch> {
        self.incoming.receive(socket, sink)
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        outbox: &Outbox,
        segments_max: usize,
    ) -> io::Result<usize> {
        self.outgoing.send(socket, outbox, segments_max, self.ecn)
    }
}

/// Waits by `ppoll(2)`.
pub(super) fn wait(socket: &UdpSocket, writable: bool, timeout: Duration) -> io::Result<bool> {
    let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
    let mut entry = libc::pollfd {
        fd: socket.as_raw_fd(),
        events,
        revents: 0,
    };
    // Not poll(2) itself: its milliseconds are too coarse for a machine's timers.
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(WAIT_SECS_MAX) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    };
    // SAFETY: `entry` is one valid pollfd, exclusively borrowed for the call, and `timeout` a valid timespec; no signal
    // mask is given.
    let ready = unsafe { libc::ppoll(&mut entry, 1, &timeout, ptr::null()) };
    match ready {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        count => Ok(count > 0),
    }
}

/// Attaches a classic BPF program that picks the socket of a `SO_REUSEPORT` group for each packet.
pub(crate) fn attach_steering(
    socket: &impl AsFd,
    program: &mut [libc::sock_filter],
) -> io::Result<()> {
    attach_program(socket, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

/// Attaches a classic BPF program that says which datagrams reach the socket at all, in place of the one before.
pub(super) fn attach_sieve(
    socket: &UdpSocket,
    program: &mut [libc::sock_filter],
) -> io::Result<()> {
    attach_program(socket, libc::SO_ATTACH_FILTER, program)
}

/// Lets every datagram reach the socket again.
pub(super) fn detach_sieve(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0)
}

fn attach_program(
    socket: &impl AsFd,
    option: c_int,
    program: &mut [libc::sock_filter],
) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let value = libc::sock_fprog {
        len,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: `value` points to `len` instructions that live through the call; the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn set_option(socket: &UdpSocket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the value is one `c_int` that lives through the call, with its size given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Datagrams prepared together before they are handled.
const GROUP: usize = 16;

#[derive(Debug)]
struct Incoming {
    payloads: Vec<u8>,
    names: Vec<Name>,
    controls: Vec<Control>,
    vectors: Vec<iovec>,
    headers: Vec<mmsghdr>,
    /// The number of buffers to offer next time.
    slots: usize,
}

// SAFETY: the pointers in `vectors` and `headers` are written before each call and never read between calls; all else
// is plain owned data.
unsafe impl Send for Incoming {}

impl Incoming {
    fn new() -> Self {
        Self {
            payloads: vec![0; RECEIVE_SLOTS * SLOT_STRIDE],
            names: vec![Name::default(); RECEIVE_SLOTS],
            controls: vec![Control::default(); RECEIVE_SLOTS],
            vectors: vec![EMPTY_VECTOR; RECEIVE_SLOTS],
            headers: empty_headers(RECEIVE_SLOTS),
            slots: RECEIVE_SLOTS,
        }
    }

    #[inline]
    fn receive(&mut self, socket: &UdpSocket, sink: &mut impl Sink) -> io::Result<Batch> {
        let slots = self.slots;
        let count = self.call(socket, slots)?;
        let mut batch = Batch {
            full: count == slots,
            ..Batch::default()
        };
        let groups = self.payloads.chunks_mut(SLOT_STRIDE * GROUP);
        for (group, payloads) in groups.take(count.div_ceil(GROUP)).enumerate() {
            let range = group * GROUP..count.min((group + 1) * GROUP);
            // The memory behind a group of datagrams is fetched together rather than one after the other.
            for (header, slot) in self.headers[range.clone()]
                .iter()
                .zip(payloads.chunks_exact(SLOT_STRIDE))
            {
                sink.prepare(&slot[..(header.msg_len as usize).min(slot.len())]);
            }
            let entries = range.zip(payloads.chunks_exact_mut(SLOT_STRIDE));
            for (index, slot) in entries {
                let header = &self.headers[index];
                let len = header.msg_len as usize;
                let Some(from) = self.names[index].address() else {
                    continue;
                };
                if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || len > slot.len() {
                    batch.truncated += 1;
                    continue;
                }
                // Some C libraries have a shorter type here.
                #[allow(clippy::unnecessary_cast)]
                let (ecn, segment) =
                    self.controls[index].parse(header.msg_hdr.msg_controllen as usize);
                batch.hand_over(from, ecn, &mut slot[..len], segment.unwrap_or(len), sink);
            }
        }
        // Trains fill their buffers: offer fewer then, so that what was copied is still in the cache when it is read.
        let mean = batch.bytes / count.max(1);
        self.slots = (RECEIVE_BYTES_TARGET / mean.max(1)).clamp(RECEIVE_SLOTS_MIN, RECEIVE_SLOTS);
        Ok(batch)
    }

    fn call(&mut self, socket: &UdpSocket, slots: usize) -> io::Result<usize> {
        let payloads = self.payloads.chunks_exact_mut(SLOT_STRIDE);
        let entries = self.headers[..slots]
            .iter_mut()
            .zip(&mut self.vectors)
            .zip(payloads);
        for (((header, vector), slot), (name, control)) in
            entries.zip(self.names.iter_mut().zip(&mut self.controls))
        {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = SLOT_BYTES;
            let header = &mut header.msg_hdr;
            header.msg_name = name.0.as_mut_ptr().cast();
            header.msg_namelen = NAME_BYTES as libc::socklen_t;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_flags = 0;
        }
        // SAFETY: the first `slots` headers point, since the loop above, to a name, a vector, a payload buffer and a
        // control buffer each of their own with their true sizes, all owned by `self` and untouched during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                slots as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

#[derive(Debug)]
struct Outgoing {
    names: Vec<Name>,
    controls: Vec<Control>,
    vectors: Vec<iovec>,
    headers: Vec<mmsghdr>,
    ipv6: bool,
    /// The mark that the socket itself puts on datagrams: those need no control message, which saves time.
    mark: Ecn,
    /// Another mark that datagrams had lately, and how many in a row.
    mark_wanted: Ecn,
    mark_misses: usize,
}

// SAFETY: as for `Incoming`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    fn new(ipv6: bool) -> Self {
        Self {
            names: vec![Name::default(); BATCH_TRAINS],
            controls: vec![Control::default(); BATCH_TRAINS],
            vectors: vec![EMPTY_VECTOR; BATCH_TRAINS],
            headers: empty_headers(BATCH_TRAINS),
            ipv6,
            mark: Ecn::NotCapable,
            mark_wanted: Ecn::NotCapable,
            mark_misses: 0,
        }
    }

    #[inline]
    fn send(
        &mut self,
        socket: &UdpSocket,
        outbox: &Outbox,
        segments_max: usize,
        ecn: bool,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, message) in outbox.messages(segments_max).take(BATCH_TRAINS).enumerate() {
            self.prepare(index, &message, ecn);
            count += 1;
        }
        self.point(count);
        // Not by the C library's function of this name: musl's makes a call for each datagram, as it does not know that
        // the padding of these headers is zero, which `empty_headers` has seen to.
        // SAFETY: the first `count` headers point, since the line above, to a name, a vector and a control buffer owned
        // by `self`, with the lengths that `prepare` gave them; the vectors point to bytes of `outbox`, which stays
        // borrowed through the call. The kernel only reads them and writes lengths into the headers.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
            )
        };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error());
        if self.mark_misses >= MARK_MISSES_MAX {
            self.follow_mark(socket);
        }
        sent
    }

    /// Writes everything of one entry but the pointers between its parts.
    #[inline]
    fn prepare(&mut self, index: usize, message: &Message<'_>, ecn: bool) {
        let (name, control) = (&mut self.names[index], &mut self.controls[index]);
        let name_len = name.write(message.to, self.ipv6);
        let mut control_len = 0;
        if ecn && message.ecn != self.mark {
            let mapped = message.to.is_ipv4();
            let (level, kind) = if mapped {
                (libc::IPPROTO_IP, libc::IP_TOS)
            } else {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
            };
            let value = c_int::from(message.ecn.bits()).to_ne_bytes();
            control_len = control.write(control_len, level, kind, &value);
            self.mark_misses = if message.ecn == self.mark_wanted {
                self.mark_misses + 1
            } else {
                1
            };
            self.mark_wanted = message.ecn;
        } else {
            self.mark_misses = 0;
        }
        if let Some(segment) = message.segment {
            // Segments are cut from at most `TRAIN_BYTES_MAX` bytes, which fit 16 bits.
            let value = (segment.min(TRAIN_BYTES_MAX) as u16).to_ne_bytes();
            control_len = control.write(control_len, libc::SOL_UDP, libc::UDP_SEGMENT, &value);
        }
        let vector = &mut self.vectors[index];
        vector.iov_base = message.bytes.as_ptr().cast_mut().cast();
        vector.iov_len = message.bytes.len();
        let header = &mut self.headers[index].msg_hdr;
        header.msg_namelen = name_len as libc::socklen_t;
        header.msg_iovlen = 1;
        header.msg_controllen = control_len as _;
    }

    /// Points the first `count` headers to what was prepared for them, after the last safe borrow of it.
    #[inline]
    fn point(&mut self, count: usize) {
        let entries = self.headers[..count].iter_mut().zip(&mut self.vectors);
        let names = self.names.iter_mut().zip(&mut self.controls);
        for ((header, vector), (name, control)) in entries.zip(names) {
            let header = &mut header.msg_hdr;
            header.msg_name = name.0.as_mut_ptr().cast();
            header.msg_iov = vector;
            header.msg_control = control.0.as_mut_ptr().cast();
        }
    }

    /// Makes the mark that traffic has now the socket's own.
    fn follow_mark(&mut self, socket: &UdpSocket) {
        self.mark_misses = 0;
        let bits = c_int::from(self.mark_wanted.bits());
        let mut set = set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, bits).is_ok();
        if self.ipv6 {
            set &= set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, bits).is_ok();
        }
        if set {
            self.mark = self.mark_wanted;
        }
    }
}

fn empty_headers(count: usize) -> Vec<mmsghdr> {
    // SAFETY: an `mmsghdr` is integers and pointers, for all of which zero is a value. It is zeroed rather than written
    // out because some C libraries have padding fields in it.
    (0..count).map(|_| unsafe { mem::zeroed() }).collect()
}

const EMPTY_VECTOR: iovec = iovec {
    iov_base: ptr::null_mut::<c_void>(),
    iov_len: 0,
};

/// Most datagrams in one train: `UDP_MAX_SEGMENTS` of the kernels that have the fewest.
pub(super) const SEGMENTS_MAX: usize = 64;
/// Buffers for one `recvmmsg`.
const RECEIVE_SLOTS: usize = 64;
/// Buffers when each fills up.
const RECEIVE_SLOTS_MIN: usize = 4;
/// Bytes that one `recvmmsg` should bring at most, roughly: they must stay in the second-level cache.
const RECEIVE_BYTES_TARGET: usize = 256 << 10;
/// The largest datagram, or the largest train that the kernel coalesces.
const SLOT_BYTES: usize = 65_536;
/// Not a power of two apart, or all buffers would compete for the same few lines of the cache.
const SLOT_STRIDE: usize = SLOT_BYTES + 192;
/// Longest wait: a day, which every C library's time can say.
const WAIT_SECS_MAX: u64 = 86_400;
/// The number of datagrams in a row that must differ from the socket's mark until it is changed.
const MARK_MISSES_MAX: usize = 64;
