//! Relays: where they are, how far players are from each, and which one suits the players of a room.
//!
//! A game asks for the list, measures, and tells the master what it measured; the master answers with the relay for this player, or for their room as
//! far as its members have measured. Who hosts is the first member. What players measured is a hint that grows old, so it is kept in memory
//! and told to the other masters.

use std::collections::BTreeMap;
use std::sync::Mutex;

use muse_master_client::AccountId;
use muse_master_client::api::RelayPlace;
use muse_relay::{Report, choose};
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;

use crate::hub::lock;

/// The relays of this master.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    places: Vec<RelayPlace>,
    measured: Mutex<FxHashMap<AccountId, (Instant, Report)>>,
}

impl Relays {
    pub(crate) fn new(places: Vec<RelayPlace>) -> Self {
        Self {
            places,
            measured: Mutex::default(),
        }
    }

    /// All of them, in an order that stays.
    pub(crate) fn places(&self) -> &[RelayPlace] {
        &self.places
    }

    /// The relay of a region.
    pub(crate) fn place(&self, region: &str) -> Option<&RelayPlace> {
        self.places.iter().find(|place| place.region == region)
    }

    /// A player measured milliseconds to the relays of regions. Regions without one are not looked at.
    pub(crate) fn handle_measured(
        &self,
        now: Instant,
        account: AccountId,
        latency_ms: &BTreeMap<String, u16>,
    ) {
        let round_trip = |place: &RelayPlace| {
            let ms = latency_ms.get(&place.region)?;
            Some(Duration::from_millis(u64::from(*ms)))
        };
        let report = Report {
            round_trips: self.places.iter().map(round_trip).collect(),
        };
        let mut measured = lock(&self.measured);
        if measured.len() >= MEASURED_MAX {
            measured.retain(|_, (at, _)| *at + HOLDS > now);
        }
        if measured.len() < MEASURED_MAX || measured.contains_key(&account) {
            measured.insert(account, (now, report));
        }
    }

    /// The relay for these players, the host first: the one whose longest way between the host and a guest is shortest, among those that all
    /// reach. Players who have not measured are ignored; if nobody has, it is the first.
    pub(crate) fn choose(&self, now: Instant, members: &[AccountId]) -> Option<&RelayPlace> {
        let measured = lock(&self.measured);
        let known = |account: &AccountId| {
            let (at, report) = measured.get(account)?;
            (*at + HOLDS > now).then(|| report.clone())
        };
        let reports: Vec<Report> = members.iter().filter_map(known).collect();
        let chosen = choose(&reports).unwrap_or(0);
        self.places.get(chosen)
    }
}

/// Time for which a measurement holds.
const HOLDS: Duration = Duration::from_secs(600);
/// Players whose measurements are kept.
const MEASURED_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn relays() -> Relays {
        let place = |region: &str| RelayPlace {
            region: region.to_owned(),
            address: format!("{region}.example:7780"),
            key: None,
        };
        Relays::new(["eu", "us", "asia"].map(place).to_vec())
    }

    fn tell(relays: &Relays, now: Instant, account: u64, measured: &[(&str, u16)]) {
        let measured = measured.iter().map(|(name, ms)| ((*name).to_owned(), *ms));
        relays.handle_measured(now, AccountId(account), &measured.collect());
    }

    fn chosen(relays: &Relays, now: Instant, members: &[u64]) -> Option<String> {
        let members: Vec<AccountId> = members.iter().copied().map(AccountId).collect();
        let place = relays.choose(now, &members)?;
        Some(place.region.clone())
    }

    #[test]
    fn the_nearest_relay_of_a_player_is_not_always_that_of_his_room() {
        let (relays, now) = (relays(), Instant::from_secs(1));
        tell(&relays, now, 1, &[("eu", 10), ("us", 40), ("asia", 200)]);
        tell(&relays, now, 2, &[("eu", 110), ("us", 30), ("asia", 150)]);
        assert_eq!(chosen(&relays, now, &[1]).as_deref(), Some("eu"));
        assert_eq!(chosen(&relays, now, &[1, 2]).as_deref(), Some("us"));
        // One that has not measured changes nothing.
        assert_eq!(chosen(&relays, now, &[1, 2, 3]).as_deref(), Some("us"));
        // One that reaches nothing but a far relay does.
        tell(&relays, now, 4, &[("asia", 20), ("mars", 1)]);
        assert_eq!(chosen(&relays, now, &[1, 2, 4]).as_deref(), Some("asia"));
    }

    #[test]
    fn without_measurements_it_is_the_first_and_without_relays_none() {
        let (relays, now) = (relays(), Instant::from_secs(1));
        assert_eq!(chosen(&relays, now, &[1]).as_deref(), Some("eu"));
        tell(&relays, now, 1, &[("asia", 20)]);
        assert_eq!(chosen(&relays, now, &[1]).as_deref(), Some("asia"));
        let later = now + HOLDS;
        assert_eq!(chosen(&relays, later, &[1]).as_deref(), Some("eu"));
        assert_eq!(chosen(&Relays::default(), now, &[1]), None);
    }
}
