//! Games on the same local network: a socket for who is found, and one for who looks (LAN discovery).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use muse_relay::lan::{Advert, Announcer, Finder, Found, GROUP, PORT};
use socket2::SockRef;

use crate::{Clock, Driver, UdpDriver, UdpOptions, fill_random};

/// Lets players on the local network find this host. Poll it once a tick, or a few times a second.
///
/// ```no_run
/// use muse_drivers::{LanAnnouncer, LanFinder};
/// use muse_relay::lan::Advert;
/// let advert = Advert { protocol: 7, port: 9_000, host_key: [1; 32], name: "Anna's game".to_owned() };
/// let mut announcer = LanAnnouncer::bind(advert)?;
/// let mut finder = LanFinder::bind(7)?;
/// for _tick in 0..60 {
///     announcer.poll()?;
///     for host in finder.poll()? {
///         println!("{} at {}", host.advert.name, host.address);
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LanAnnouncer {
    machine: Announcer,
    driver: UdpDriver,
    clock: Clock,
}

impl LanAnnouncer {
    /// Listens for questions at [`PORT`]. Several hosts on one machine share it.
    pub fn bind(advert: Advert) -> io::Result<Self> {
        let options = options().reuse_port(cfg!(unix));
        let driver = UdpDriver::bind((Ipv4Addr::UNSPECIFIED, PORT).into(), &options)?;
        // Without a network that knows groups, questions to the broadcast address still come.
        let _ = SockRef::from(driver.socket()).join_multicast_v4(&GROUP, &Ipv4Addr::UNSPECIFIED);
        let clock = Clock::start();
        Ok(Self {
            machine: Announcer::new(clock.now(), advert),
            driver,
            clock,
        })
    }

    /// Answers the players who have asked.
    pub fn poll(&mut self) -> io::Result<()> {
        self.driver.poll(self.clock.now(), &mut self.machine)
    }

    /// Announces something else from now on.
    pub fn set_advert(&mut self, advert: Advert) {
        self.machine.set_advert(advert);
    }
}

/// Finds hosts on the local network. Poll it once a tick, or a few times a second.
///
/// ```no_run
/// use muse_drivers::LanFinder;
/// let mut finder = LanFinder::bind(7)?;
/// for host in finder.poll()? {
///     println!("{} at {}", host.advert.name, host.address);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LanFinder {
    machine: Finder,
    driver: UdpDriver,
    clock: Clock,
}

impl LanFinder {
    /// Looks for games of this protocol.
    pub fn bind(protocol: u64) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let driver = UdpDriver::bind(any, &options())?;
        SockRef::from(driver.socket()).set_broadcast(true)?;
        let mut seed = [0; 8];
        fill_random(&mut seed)?;
        let clock = Clock::start();
        Ok(Self {
            machine: Finder::new(clock.now(), protocol, u64::from_le_bytes(seed)),
            driver,
            clock,
        })
    }

    /// Asks when it is time to, and returns the hosts that have answered lately.
    pub fn poll(&mut self) -> io::Result<&[Found]> {
        self.driver.poll(self.clock.now(), &mut self.machine)?;
        Ok(self.machine.hosts())
    }
}

/// Small buffers: a question or an answer at a time.
fn options() -> UdpOptions {
    UdpOptions::default()
        .receive_buffer(BUFFER_BYTES)
        .send_buffer(BUFFER_BYTES)
}

const BUFFER_BYTES: usize = 64 << 10;
