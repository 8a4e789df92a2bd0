//! Metering: enforces the catalog's limits on what a user, key or address may use.
//!
//! ```text
//! request -> Accounts: one account per user, key or address
//!         -> Meter, held until the end: concurrent requests, time, rows, bytes
//!              CostWatch:     touches that the operators count, charged while they work
//!              Payment:       the same for updates and SQL, over all that they run
//!              PaidStatement: the same for a statement at another port
//! ```
//!
//! Where no limits are set, none of this is created. A query's cost is also read for the head of
//! its answer and for the query log.

mod account;
mod cost_watch;
mod exceeded;
mod meter;
mod paid_statement;
mod payment;
mod till;

pub use cost_watch::CostWatch;
pub use exceeded::Exceeded;
pub use meter::Meter;
pub use paid_statement::PaidStatement;
pub use payment::Payment;

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use orrery_access::{Limited, Limits, Subject};

use account::Account;

/// Number of accounts beyond which an address gets no account of its own but shares one, so that
/// every sender is limited.
const ACCOUNTS_MAX: usize = 100_000;
/// Interval between two searches for idle accounts, while the maximum is reached.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Accounts shared by addresses without an account of their own.
const SHARED_MAX: u64 = 4_096;
/// Low bits of an IPv6 address that a shared account ignores (a /48): the holder of many networks
/// reaches few shared accounts.
const SHARED_NETWORK_BITS: u32 = 80;
/// Low bits of an IPv6 address that an account ignores (a /64): one client has at least these.
const IPV6_NETWORK_BITS: u32 = 64;

/// The holder of an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Known(Limited),
    Address(IpAddr),
    /// Some of the addresses beyond the maximum of accounts.
    Shared(u64),
}

/// The accounts of all recent senders.
#[derive(Debug, Default)]
pub struct Accounts {
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    accounts: HashMap<Holder, Arc<Account>>,
    /// Number of accounts beyond which new addresses share one.
    accounts_max: usize,
    /// Time of the last search for idle accounts.
    looked: Option<Instant>,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            accounts_max: ACCOUNTS_MAX,
            looked: None,
        }
    }
}

impl Accounts {
    /// Counts a request in its accounts; none if the sender has no limits.
    ///
    /// # Errors
    /// When the limit of concurrent requests is reached, or a budget is used up.
    pub fn enter(
        &self,
        limits: &[(Limited, Limits)],
        address: Option<IpAddr>,
    ) -> Result<Option<Arc<Meter>>, Exceeded> {
        if limits.is_empty() {
            return Ok(None);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let payers = limits
            .iter()
            .map(|(limited, limits)| (open.account(holder(limited, address), now), *limits));
        let payers = payers.collect();
        drop(open);
        Meter::enter(payers).map(|meter| Some(Arc::new(meter)))
    }
}

impl Open {
    /// The account of a holder; an address may get a shared one.
    fn account(&mut self, holder: Holder, now: Instant) -> Arc<Account> {
        if let Some(known) = self.accounts.get(&holder) {
            return Arc::clone(known);
        }
        if self.accounts.len() >= self.accounts_max {
            self.drop_idle_ones(now);
        }
        let holder = match holder {
            Holder::Address(address) if self.accounts.len() >= self.accounts_max => {
                let hash = self.accounts.hasher().hash_one(wider_network(address));
                Holder::Shared(hash % SHARED_MAX)
            }
            holder => holder,
        };
        let account = self.accounts.entry(holder);
        Arc::clone(account.or_insert_with(|| Arc::new(Account::new(now))))
    }

    /// Drops idle accounts, unless that was done less than `LOOK_EVERY` ago.
    fn drop_idle_ones(&mut self, now: Instant) {
        let is_just_now = |looked: Instant| now.saturating_duration_since(looked) < LOOK_EVERY;
        if self.looked.is_some_and(is_just_now) {
            return;
        }
        self.looked = Some(now);
        // An account that another thread holds is about to be entered; dropping it would reset it.
        self.accounts
            .retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle(now));
    }
}

/// The holder of a limit's account: unknown senders have one account per address.
fn holder(limited: &Limited, address: Option<IpAddr>) -> Holder {
    match (limited, address) {
        (Limited::Who(Subject::Anyone), Some(address)) => Holder::Address(network(address)),
        _ => Holder::Known(limited.clone()),
    }
}

/// The network that counts as one client: the address itself, or an IPv6 /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << IPV6_NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address => address,
    }
}

/// The network that one client can easily obtain: the address itself, or an IPv6 /48.
fn wider_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << SHARED_NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_access::{Budget, UserId};

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn addresses_and_users_have_accounts_of_their_own() {
        let accounts = Accounts::default();
        let one = Limits {
            concurrent: Some(1),
            ..Limits::default()
        };
        let anyone = [(Limited::Who(Subject::Anyone), one)];
        let held = accounts.enter(&anyone, address("10.0.0.1")).unwrap();
        assert!(accounts.enter(&anyone, address("10.0.0.1")).is_err());
        assert!(accounts.enter(&anyone, address("::ffff:10.0.0.1")).is_err());
        let other = accounts.enter(&anyone, address("10.0.0.2")).unwrap();
        let v6 = accounts.enter(&anyone, address("2001:db8::1")).unwrap();
        assert!(accounts.enter(&anyone, address("2001:db8::2")).is_err());
        drop((held, other, v6));
        accounts.enter(&anyone, address("10.0.0.1")).unwrap();

        let user = Limited::Who(Subject::User(UserId(7)));
        let of_key = (Limited::Key("k".to_owned()), one);
        let both = [(user.clone(), one), of_key.clone()];
        let held = accounts.enter(&both, None).unwrap();
        assert!(accounts.enter(&[of_key], None).is_err());
        assert!(accounts.enter(&both, None).is_err());
        drop(held);
        // A request that one account refuses is counted in none.
        let held = accounts.enter(&both, None).unwrap();
        assert!(held.is_some());
        assert!(accounts.enter(&[], None).unwrap().is_none());
    }

    /// Accounts that are shared beyond this number.
    fn with_room_for(accounts_max: usize) -> Accounts {
        let open = Open {
            accounts_max,
            ..Open::default()
        };
        Accounts {
            open: Mutex::new(open),
        }
    }

    fn count(accounts: &Accounts) -> usize {
        accounts.open.lock().unwrap().accounts.len()
    }

    #[test]
    fn addresses_beyond_the_bound_share_accounts_and_are_limited_there() {
        let accounts = with_room_for(2);
        let one = Limits {
            concurrent: Some(1),
            ..Limits::default()
        };
        let anyone = [(Limited::Who(Subject::Anyone), one)];
        let enter = |text: &str| accounts.enter(&anyone, address(text));
        let own = [enter("10.0.0.1").unwrap(), enter("2001:db8::1").unwrap()];
        // Networks with a common prefix share one account.
        let shared = enter("2001:db9:0:1::1").unwrap();
        for network in 2..1_000 {
            assert!(enter(&format!("2001:db9:0:{network:x}::1")).is_err());
        }
        assert_eq!(count(&accounts), 3);
        // Other addresses go on as long as there are shared accounts; so do those with an account,
        // and users.
        for network in 0..10_000_u32 {
            let (high, low) = (network >> 8, network & 0xff);
            drop(enter(&format!("192.168.{high}.{low}")));
        }
        assert!(count(&accounts) as u64 <= 3 + SHARED_MAX);
        assert!(enter("10.0.0.1").is_err());
        let user = [(Limited::Who(Subject::User(UserId(7))), one)];
        let of_user = accounts.enter(&user, None).unwrap();
        assert!(accounts.enter(&user, None).is_err());
        drop((own, shared, of_user));
        assert!(enter("2001:db9:0:2::1").is_ok());
    }

    #[test]
    fn an_account_that_is_about_to_be_entered_is_not_dropped() {
        let accounts = with_room_for(1);
        let now = Instant::now();
        let address = |text| Holder::Address(network(address(text).unwrap()));
        let mut open = accounts.open.lock().unwrap();
        let taken_out = open.account(address("10.0.0.1"), now);
        open.account(address("10.0.0.2"), now + LOOK_EVERY);
        let again = open.account(address("10.0.0.1"), now);
        assert!(Arc::ptr_eq(&taken_out, &again));
        drop((taken_out, again));
        open.account(address("10.0.0.3"), now + 2 * LOOK_EVERY);
        assert!(!open.accounts.contains_key(&address("10.0.0.1")));
        assert!(open.accounts.contains_key(&address("10.0.0.3")));
    }

    #[test]
    fn a_meter_takes_from_all_and_has_the_least_of_each() {
        let accounts = Accounts::default();
        let limits = |touches, rows| Limits {
            rows: Some(rows),
            time_ms: Some(1_000 * rows),
            cost: Some(Budget {
                touches,
                seconds: 1_000,
            }),
            ..Limits::default()
        };
        let user = (Limited::Who(Subject::User(UserId(7))), limits(100, 5));
        let key = (Limited::Key("k".to_owned()), limits(50, 9));
        let meter = accounts.enter(&[user.clone(), key.clone()], None);
        let meter = meter.unwrap().unwrap();
        assert_eq!(meter.rows_max(), Some(5));
        assert_eq!(meter.time_max(), Some(Duration::from_secs(5)));
        assert!(meter.take(49).is_ok());
        assert!(matches!(
            meter.take(2),
            Err(Exceeded::Cost { touches: 50, .. })
        ));
        drop(meter);
        assert!(accounts.enter(&[key], None).is_err());
        assert!(accounts.enter(&[user], None).is_ok());
    }
}
