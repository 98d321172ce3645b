//! Limits of how often one address and one account may ask. An address is counted before anything is known about who asks, an account wherever it comes from:
//! by HTTP, on its WebSocket, behind a proxy or at several addresses at once.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::http::{Request, StatusCode};
use governor::middleware::NoOpMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota};
use muse_master_client::AccountId;
use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::{KeyExtractor, PeerIpKeyExtractor};
use tower_governor::{GovernorError, GovernorLayer};

use super::failure::{self, Failure};

/// Counts recent requests by client.
pub(crate) struct Limits {
    addresses: Option<Arc<GovernorConfig<Network, NoOpMiddleware>>>,
    accounts: Option<DefaultKeyedRateLimiter<AccountId>>,
    lines: DefaultKeyedRateLimiter<AccountId>,
}

impl Limits {
    /// So many requests a second in the long run, [`BURST`] times as many at once; 0 for no limit.
    pub(crate) fn new(per_address: u32, per_account: u32) -> Self {
        let addresses = quota(per_address).map(|quota| {
            let config = GovernorConfigBuilder::default()
                .key_extractor(Network)
                .period(quota.replenish_interval())
                .burst_size(quota.burst_size().get())
                .finish();
            Arc::new(config.expect("neither is zero"))
        });
        let accounts = quota(per_account).map(DefaultKeyedRateLimiter::keyed);
        Self {
            addresses,
            accounts,
            lines: DefaultKeyedRateLimiter::keyed(
                Quota::per_second(NonZeroU32::MIN).allow_burst(LINES_BURST),
            ),
        }
    }

    /// These routes, for addresses that do not ask too often.
    pub(crate) fn by_address<S>(&self, routes: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        match &self.addresses {
            Some(addresses) => {
                let layer = GovernorLayer::new(Arc::clone(addresses));
                routes.layer(layer.error_handler(failure::limited))
            }
            None => routes,
        }
    }

    /// Counts a request of this account.
    pub(crate) fn check(&self, account: AccountId) -> Result<(), Failure> {
        match &self.accounts {
            Some(accounts) if accounts.check_key(&account).is_err() => {
                metrics::counter!("muse_requests_limited").increment(1);
                Err(TOO_MANY)
            }
            _ => Ok(()),
        }
    }

    /// Counts a line of chat that this account wants to write, valid or not.
    pub(crate) fn check_line(&self, account: AccountId) -> Result<(), Failure> {
        if self.lines.check_key(&account).is_err() {
            metrics::counter!("muse_requests_limited").increment(1);
            return Err(TOO_MANY_LINES);
        }
        Ok(())
    }

    /// Forgets clients that have not sent a request for a while, so that memory follows the clients that are there now.
    pub(crate) fn forget(&self) {
        if let Some(addresses) = &self.addresses {
            addresses.limiter().retain_recent();
        }
        if let Some(accounts) = &self.accounts {
            accounts.retain_recent();
            accounts.shrink_to_fit();
        }
        self.lines.retain_recent();
        self.lines.shrink_to_fit();
    }
}

/// Tells callers apart by address, or with IPv6 by the network of 64 bits that each has alone.
#[derive(Clone, Copy)]
struct Network;

impl KeyExtractor for Network {
    type Key = IpAddr;

    fn extract<T>(&self, request: &Request<T>) -> Result<IpAddr, GovernorError> {
        PeerIpKeyExtractor.extract(request).map(network)
    }
}

/// Returns the address, or with IPv6 the network of 64 bits that one customer has.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn quota(per_second: u32) -> Option<Quota> {
    let burst = NonZeroU32::new(per_second.saturating_mul(BURST))?;
    Some(Quota::per_second(NonZeroU32::new(per_second)?).allow_burst(burst))
}

const TOO_MANY: Failure = Failure::new(
    StatusCode::TOO_MANY_REQUESTS,
    "too_many_requests",
    "too many requests of this account",
);
const TOO_MANY_LINES: Failure = Failure::new(
    StatusCode::TOO_MANY_REQUESTS,
    "too_many_requests",
    "too many lines of chat, wait a little",
);
/// Lines of chat that one account may try to write at once; one more each second.
const LINES_BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
/// Seconds of requests that may come at once.
const BURST: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_its_burst_and_others_have_theirs() {
        let limits = Limits::new(0, 1);
        let (one, other) = (AccountId(1), AccountId(2));
        let served = (0..BURST + 5).filter(|_| limits.check(one).is_ok()).count();
        // The clock may add one or two meanwhile.
        assert!(
            (BURST as usize..BURST as usize + 3).contains(&served),
            "{served}"
        );
        assert!(limits.check(other).is_ok());
        limits.forget();
        assert!(limits.check(other).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let network = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1:2:3:4"), network("2001:db8::5:6:7:8"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }

    #[test]
    fn nothing_is_counted_without_a_limit() {
        let limits = Limits::new(0, 0);
        assert!((0..10_000).all(|_| limits.check(AccountId(1)).is_ok()));
        limits.forget();
    }
}
