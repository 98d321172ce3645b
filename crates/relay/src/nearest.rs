//! Chooses the relay that suits a host and its guests, by measured round trips. Pure.

use muse_wire::Duration;

/// The round trips of one member to each relay, in the same order for everybody; `None` where no answer came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By relay.
    pub round_trips: Vec<Option<Duration>>,
}

/// The relay for these members, the host first: one that all reach if there is one, and among those the one whose longest way
/// between the host and a guest is shortest. `None` when the host reaches no relay.
///
/// ```
/// use muse_relay::{Report, choose};
/// use muse_wire::Duration;
/// let report = |times: [u64; 2]| Report {
///     round_trips: times.map(|time| Some(Duration::from_millis(time))).to_vec(),
/// };
/// // The host is near the first relay, both guests near the second.
/// assert_eq!(choose(&[report([10, 40]), report([90, 20]), report([80, 30])]), Some(1));
/// ```
pub fn choose(reports: &[Report]) -> Option<usize> {
    let (host, guests) = reports.split_first()?;
    let reachable = host.round_trips.iter().enumerate();
    let costs = reachable.filter_map(|(relay, host)| {
        let host = (*host)?;
        let mut cost = Cost::default();
        for guest in guests {
            match guest.round_trips.get(relay).copied().flatten() {
                Some(guest) => cost.add(host + guest),
                None => cost.out_of_reach += 1,
            }
        }
        if guests.is_empty() {
            cost.add(host);
        }
        Some((cost, relay))
    });
    costs.min().map(|(_, relay)| relay)
}

/// In the order in which it counts.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    out_of_reach: usize,
    longest: Duration,
    sum: Duration,
}

impl Cost {
    fn add(&mut self, way: Duration) {
        self.longest = self.longest.max(way);
        self.sum += way;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times: &[u64]) -> Report {
        let time = |ms: &u64| (*ms > 0).then(|| Duration::from_millis(*ms));
        Report {
            round_trips: times.iter().map(time).collect(),
        }
    }

    #[test]
    fn a_host_alone_takes_the_nearest() {
        assert_eq!(choose(&[report(&[30, 20, 25])]), Some(1));
        assert_eq!(choose(&[report(&[0, 0])]), None);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn a_relay_that_everybody_reaches_beats_a_near_one() {
        let reports = [report(&[5, 80]), report(&[0, 90]), report(&[5, 90])];
        assert_eq!(choose(&reports), Some(1));
    }

    #[test]
    fn the_longest_way_counts_then_the_sum_then_the_order() {
        assert_eq!(
            choose(&[report(&[10, 10]), report(&[50, 40]), report(&[1, 40])]),
            Some(1)
        );
        assert_eq!(
            choose(&[report(&[10, 10]), report(&[40, 40]), report(&[30, 20])]),
            Some(1)
        );
        assert_eq!(choose(&[report(&[10, 10]), report(&[40, 40])]), Some(0));
    }

    #[test]
    fn reports_of_different_length_are_no_reason_to_stumble() {
        assert_eq!(choose(&[report(&[10, 20]), report(&[5])]), Some(0));
    }
}
