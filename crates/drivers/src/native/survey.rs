//! Measures how far relays are from here.

use std::io;
use std::net::SocketAddr;

use muse_relay::{Report, Survey};
use muse_wire::{Duration, Machine};

use crate::native::relay::seed;
use crate::{Clock, Driver, UdpDriver, UdpOptions};

/// Asks every relay a few times and returns the shortest round trip to each, in the same order; none where no answer came. Takes half a second when
/// all answer, two when one does not. A master that is told these (`POST /v1/relay`) says which relay suits a player and their friends.
pub fn survey_relays(relays: &[SocketAddr]) -> io::Result<Report> {
    let clock = Clock::start();
    let mut link = UdpDriver::bind_any(0, &UdpOptions::default())?;
    let mut survey = Survey::new(clock.now(), relays, seed()?);
    loop {
        let now = clock.now();
        link.poll(now, &mut survey)?;
        if survey.is_done(now) {
            return Ok(survey.report());
        }
        let due = survey.poll_timeout().map_or(PATIENCE, |due| due - now);
        link.wait(due.min(PATIENCE))?;
    }
}

/// Longest time between two looks at the clock.
const PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use muse_relay::{Limits, Relay};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_relay_that_answers_has_a_distance_and_one_that_does_not_has_none() {
        let mut link = UdpDriver::bind((Ipv4Addr::LOCALHOST, 0).into(), &UdpOptions::default())
            .expect("a socket");
        let there = link.local_addr().expect("bound");
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let nowhere = silent.local_addr().expect("bound");
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let serving = std::thread::spawn(move || {
            let clock = Clock::start();
            let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
            while !seen.load(Ordering::Relaxed) {
                link.poll(clock.now(), &mut relay).expect("it serves");
                link.wait(Duration::from_millis(20)).expect("it waits");
            }
        });
        let report = survey_relays(&[nowhere, there]).expect("a survey");
        over.store(true, Ordering::Relaxed);
        serving.join().expect("no panic");
        assert_eq!(report.round_trips.len(), 2);
        assert_eq!(report.round_trips[0], None);
        assert!(report.round_trips[1].is_some());
    }
}
