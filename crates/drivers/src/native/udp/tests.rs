//! Answers of the kernel that loopback never gives: full buffers, oversized datagrams, refused trains.

use std::collections::VecDeque;

use muse_wire::{Ecn, Transmit};

use super::*;

/// Has `left` transmits of `len` bytes each.
struct Source {
    left: usize,
    len: usize,
    segment: Option<usize>,
    port: u16,
}

impl Machine for Source {
    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        Some(Transmit {
            to,
            len: self.len,
            segment: self.segment,
            ecn: Ecn::NotCapable,
        })
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

fn scripted(answers: Vec<Result<usize, io::Error>>) -> io::Result<UdpDriver> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut driver = UdpDriver::bind(address, &UdpOptions::default())?;
    driver.backend = Backend::Scripted(VecDeque::from(answers));
    Ok(driver)
}

#[cfg(target_os = "linux")]
fn system_error(code: i32) -> Result<usize, io::Error> {
    Err(io::Error::from_raw_os_error(code))
}

fn singles(left: usize) -> Source {
    Source {
        left,
        len: 10,
        segment: None,
        port: 9,
    }
}

#[test]
fn a_full_socket_keeps_the_rest_for_the_next_flush() -> io::Result<()> {
    let blocked = || Err(ErrorKind::WouldBlock.into());
    let mut driver = scripted(vec![Ok(3), blocked(), blocked(), Ok(2)])?;
    let mut machine = singles(10);
    assert_eq!(driver.flush(Instant::ZERO, &mut machine)?, 3);
    assert!(driver.has_unsent());
    machine.left = 1_000;
    assert_eq!(driver.flush(Instant::ZERO, &mut machine)?, 0);
    assert_eq!(
        machine.left, 1_000,
        "a full socket takes nothing from the machine"
    );
    assert_eq!(driver.flush(Instant::ZERO, &mut machine)?, 1_007);
    assert!(!driver.has_unsent());
    assert_eq!(driver.counters().blocked, 2);
    assert_eq!(driver.counters().datagrams_sent, 1_010);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn an_oversized_datagram_is_dropped_alone() -> io::Result<()> {
    let mut driver = scripted(vec![Ok(4), system_error(libc::EMSGSIZE)])?;
    assert_eq!(driver.flush(Instant::ZERO, &mut singles(10))?, 9);
    assert_eq!(driver.counters().oversized, 1);
    assert_eq!(driver.counters().unreachable, 0);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn errors_about_a_destination_are_counted_and_the_others_still_served() -> io::Result<()> {
    let codes = [
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EPERM,
        libc::ENOBUFS,
    ];
    let answers = codes
        .into_iter()
        .flat_map(|code| [Ok(1), system_error(code)])
        .collect();
    let mut driver = scripted(answers)?;
    assert_eq!(driver.flush(Instant::ZERO, &mut singles(100))?, 95);
    assert_eq!(driver.counters().unreachable, 5);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_broken_socket_is_reported_and_never_loops() -> io::Result<()> {
    let mut driver = scripted(vec![system_error(libc::EBADF)])?;
    let error = driver
        .flush(Instant::ZERO, &mut singles(2))
        .expect_err("the socket is broken");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    assert_eq!(
        driver.flush(Instant::ZERO, &mut singles(0))?,
        1,
        "the failed datagram is gone"
    );
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn refused_trains_go_as_single_datagrams_and_end_after_a_few() -> io::Result<()> {
    // Each train of five is refused, then its datagrams go; after the third refusal no more trains are tried.
    let refused = || system_error(libc::EIO);
    let mut driver = scripted(vec![
        refused(),
        Ok(5),
        refused(),
        Ok(5),
        refused(),
        Ok(5),
        Ok(6),
    ])?;
    let mut machine = Source {
        left: 5,
        len: 50,
        segment: Some(10),
        port: 9,
    };
    assert_eq!(driver.flush(Instant::ZERO, &mut machine)?, 25);
    assert_eq!(driver.counters().trains_refused, 3);
    assert_eq!(driver.segments_max, 1);
    assert_eq!(driver.counters().unreachable, 0);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn trains_refused_for_their_size_do_not_end_trains() -> io::Result<()> {
    let too_long = || [system_error(libc::EINVAL), system_error(libc::EMSGSIZE)];
    let answers = (0..10)
        .flat_map(|_| too_long().into_iter().chain([Ok(4)]))
        .collect();
    let mut driver = scripted(answers)?;
    let mut machine = Source {
        left: 10,
        len: 50,
        segment: Some(10),
        port: 9,
    };
    assert_eq!(driver.flush(Instant::ZERO, &mut machine)?, 40);
    assert_eq!(driver.counters().oversized, 10);
    assert!(driver.segments_max > 1);
    Ok(())
}

#[test]
fn an_endless_machine_is_let_go() -> io::Result<()> {
    let mut driver = scripted(Vec::new())?;
    let sent = driver.flush(Instant::ZERO, &mut singles(usize::MAX))?;
    assert_eq!(sent, FLUSH_BATCHES_MAX * outbox::BATCH_TRAINS);
    let mut nowhere = Source {
        port: 0,
        ..singles(usize::MAX)
    };
    assert_eq!(driver.flush(Instant::ZERO, &mut nowhere)?, 0);
    assert_eq!(driver.counters().unreachable, sent as u64);
    Ok(())
}

/// Counts what arrives by its first byte.
#[derive(Default)]
struct Count {
    handshakes: usize,
    others: usize,
}

impl Machine for Count {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        match datagram.payload[0] {
            1 | 3 => self.handshakes += 1,
            _ => self.others += 1,
        }
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> {
        None
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_sieve_holds_back_handshakes_and_nothing_else() -> io::Result<()> {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut driver = UdpDriver::bind(here, &UdpOptions::default())?;
    let to = driver.local_addr()?;
    let stranger = UdpSocket::bind(here)?;
    let flood = |driver: &mut UdpDriver, looks: usize| {
        let mut count = Count::default();
        for _ in 0..looks {
            for first in [1, 3, 0x80, 0x41] {
                stranger.send_to(&[first; 40], to)?;
            }
            driver.receive(Instant::ZERO, &mut count)?;
        }
        io::Result::Ok(count)
    };
    driver.backend.sieve(&driver.socket, 3);
    let held = flood(&mut driver, 2_000)?;
    assert_eq!(held.others, 4_000);
    assert!(
        (350..650).contains(&held.handshakes),
        "one in eight of 4,000: {}",
        held.handshakes
    );
    driver.backend.sieve(&driver.socket, 0);
    assert_eq!(flood(&mut driver, 100)?.handshakes, 200);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_flood_between_two_looks_brings_the_sieve() -> io::Result<()> {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut driver = UdpDriver::bind(here, &UdpOptions::default().sieve(true))?;
    let to = driver.local_addr()?;
    let stranger = UdpSocket::bind(here)?;
    for _ in 0..2_500 {
        stranger.send_to(&[1; 40], to)?;
    }
    let mut count = Count::default();
    driver.receive(Instant::ZERO, &mut count)?;
    // The kernel may grant a buffer that holds fewer of them; the sieve is then the finer.
    assert!(driver.counters().sieve_shift > 0, "{}", count.handshakes);
    Ok(())
}
