//! Limits of sessions: so many in all, so many from one place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use muse_wire::net::customer;

/// Counts sessions, those that are being made included.
#[derive(Clone, Debug)]
pub(super) struct Doors {
    inside: Arc<Mutex<Inside>>,
    sessions_max: usize,
    sessions_per_address: usize,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    /// As many entries as there are sessions at most.
    by_place: HashMap<u64, usize>,
}

impl Doors {
    pub(super) fn new(sessions_max: usize, sessions_per_address: usize) -> Self {
        Self {
            inside: Arc::default(),
            sessions_max,
            sessions_per_address,
        }
    }

    /// A pass, which is given back when it is dropped; none if there are too many inside.
    pub(super) fn enter(&self, from: IpAddr) -> Option<Pass> {
        let place = customer(from);
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.all >= self.sessions_max {
            return None;
        }
        let here = inside.by_place.entry(place).or_default();
        if *here >= self.sessions_per_address {
            return None;
        }
        *here += 1;
        inside.all += 1;
        Some(Pass {
            doors: self.clone(),
            place,
        })
    }

    /// Returns the number of sessions.
    pub(super) fn inside(&self) -> usize {
        self.inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .all
    }
}

/// Leave to have a session.
#[derive(Debug)]
pub(super) struct Pass {
    doors: Doors,
    place: u64,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self
            .doors
            .inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        inside.all = inside.all.saturating_sub(1);
        if let Some(here) = inside.by_place.get_mut(&self.place) {
            *here -= 1;
            if *here == 0 {
                inside.by_place.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_count_places_and_all_and_forget_who_left() {
        let doors = Doors::new(3, 2);
        let (home, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = doors.enter(home);
        let second = doors.enter(home);
        assert!(first.is_some() && second.is_some());
        assert!(doors.enter(home).is_none(), "two of one place");
        let third = doors.enter(other);
        assert!(third.is_some());
        assert!(doors.enter(IpAddr::from([1; 4])).is_none(), "three in all");
        drop(first);
        assert_eq!(doors.inside(), 2);
        assert!(doors.enter(home).is_some());
        drop((second, third));
        assert_eq!(doors.inside(), 0);
        let inside = doors.inside.lock().expect("nobody panicked");
        assert!(inside.by_place.is_empty());
    }

    #[test]
    fn a_customer_of_ipv6_is_one_place() {
        let doors = Doors::new(9, 1);
        let (a, b) = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::1");
        let _pass = doors.enter(a.parse().expect("an address"));
        assert!(doors.enter(b.parse().expect("an address")).is_none());
        let mapped = "::ffff:10.0.0.1".parse().expect("an address");
        let _pass = doors.enter(IpAddr::from([10, 0, 0, 1]));
        assert!(doors.enter(mapped).is_none());
    }
}
