//! Limits of sessions: so many in all, so many from one place, so many from all places of one neighbourhood.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use muse_wire::net::{customer, neighbourhood};

/// Counts sessions, those that are being made included.
#[derive(Clone, Debug)]
pub(super) struct Doors {
    inside: Arc<Mutex<Inside>>,
    limits: Limits,
}

/// The most sessions at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) all: usize,
    /// Of one IPv4 address or IPv6 /64.
    pub(super) per_address: usize,
    /// Of one IPv4 /24 or IPv6 /48.
    pub(super) per_prefix: usize,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    /// As many entries as there are sessions at most, each.
    by_place: HashMap<u64, usize>,
    by_neighbourhood: HashMap<u64, usize>,
}

impl Doors {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            inside: Arc::default(),
            limits,
        }
    }

    /// A pass, which is given back when it is dropped; none if there are too many inside.
    pub(super) fn enter(&self, from: IpAddr) -> Option<Pass> {
        let (place, around) = (customer(from), neighbourhood(from));
        let limits = self.limits;
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |counts: &HashMap<u64, usize>, key| counts.get(&key).copied().unwrap_or(0);
        if inside.all >= limits.all
            || count(&inside.by_place, place) >= limits.per_address
            || count(&inside.by_neighbourhood, around) >= limits.per_prefix
        {
            return None;
        }
        *inside.by_place.entry(place).or_default() += 1;
        *inside.by_neighbourhood.entry(around).or_default() += 1;
        inside.all += 1;
        Some(Pass {
            doors: self.clone(),
            place,
            around,
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
    around: u64,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self
            .doors
            .inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        inside.all = inside.all.saturating_sub(1);
        subtract(&mut inside.by_place, self.place);
        subtract(&mut inside.by_neighbourhood, self.around);
    }
}

fn subtract(counts: &mut HashMap<u64, usize>, key: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors(all: usize, per_address: usize, per_prefix: usize) -> Doors {
        Doors::new(Limits {
            all,
            per_address,
            per_prefix,
        })
    }

    #[test]
    fn doors_count_places_and_all_and_forget_who_left() {
        let doors = doors(3, 2, 3);
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
        assert!(inside.by_place.is_empty() && inside.by_neighbourhood.is_empty());
    }

    #[test]
    fn one_network_with_many_places_does_not_fill_everything() {
        let doors = doors(1_024, 64, 256);
        let mut passes = Vec::new();
        for (place, _) in (0..16_u16).flat_map(|place| (0..64).map(move |n| (place, n))) {
            let from: IpAddr = [0x2001, 0xdb8, 1, place, 0, 0, 0, 1].into();
            passes.extend(doors.enter(from));
        }
        assert_eq!(passes.len(), 256);
        let elsewhere: IpAddr = [0x2001, 0xdb8, 2, 0, 0, 0, 0, 1].into();
        assert!(doors.enter(elsewhere).is_some());
        drop(passes.pop());
        assert!(
            doors
                .enter([0x2001, 0xdb8, 1, 99, 0, 0, 0, 1].into())
                .is_some()
        );
    }

    #[test]
    fn a_customer_of_ipv6_is_one_place() {
        let doors = doors(9, 1, 9);
        let (a, b) = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::1");
        let _pass = doors.enter(a.parse().expect("an address"));
        assert!(doors.enter(b.parse().expect("an address")).is_none());
        let mapped = "::ffff:10.0.0.1".parse().expect("an address");
        let _pass = doors.enter(IpAddr::from([10, 0, 0, 1]));
        assert!(doors.enter(mapped).is_none());
    }
}
