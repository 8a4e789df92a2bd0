//! How much who asks may use, and what they have used: the limits of the catalog, enforced.
//!
//! ```text
//! request -> Accounts: one account for each user, key or address -> Meter, held until the end: how many at a time, time, rows, bytes
//!                                                                   CostWatch: touches that the operators count, charged while they work
//!                                                                   Payment: the same of updates and SQL, over all that they run
//!                                                                   PaidStatement: the same of a statement at another port
//! ```
//!
//! Where nobody has limits, nothing of this is made. The cost of a query is read for its answer's head and the query log as well.

mod account;
mod cost_watch;
mod exceeded;
mod meter;
mod paid_statement;
mod partial;
mod payment;

pub(crate) use cost_watch::CostWatch;
pub(crate) use exceeded::Exceeded;
pub(crate) use meter::Meter;
pub(crate) use paid_statement::PaidStatement;
pub(crate) use partial::{note_in_graph, note_in_solutions, note_in_table};
pub(crate) use payment::Payment;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use orrery_guard::{Limited, Limits, Subject};

use account::Account;

/// More accounts than this are looked through for those that are idle, and again when there are twice as many.
const ACCOUNTS_MAX: usize = 100_000;
/// Whoever has an IPv6 address has at least so many bits of them.
const IPV6_NETWORK_BITS: u32 = 64;

/// Whose an account is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Known(Limited),
    Address(IpAddr),
}

/// The accounts of all who have asked lately.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    accounts: HashMap<Holder, Arc<Account>>,
    /// With so many they are looked through.
    look_at: usize,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            look_at: ACCOUNTS_MAX,
        }
    }
}

impl Accounts {
    /// Counts a request in its accounts; none where nothing is limited.
    ///
    /// # Errors
    /// When there are as many requests as there may be, or nothing is left of a budget.
    pub(crate) fn enter(
        &self,
        limits: &[(Limited, Limits)],
        address: Option<IpAddr>,
    ) -> Result<Option<Arc<Meter>>, Exceeded> {
        if limits.is_empty() {
            return Ok(None);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { accounts, look_at } = &mut *open;
        let now = Instant::now();
        if accounts.len() >= *look_at {
            accounts.retain(|_, account| !account.is_idle(now));
            *look_at = ACCOUNTS_MAX.max(2 * accounts.len());
        }
        let payers = limits.iter().map(|(limited, limits)| {
            let account = accounts.entry(holder(limited, address));
            let account = account.or_insert_with(|| Arc::new(Account::new(now)));
            (Arc::clone(account), *limits)
        });
        let payers = payers.collect();
        drop(open);
        Meter::enter(payers).map(|meter| Some(Arc::new(meter)))
    }
}

/// Whose account it is: nobody known has one for each address.
fn holder(limited: &Limited, address: Option<IpAddr>) -> Holder {
    match (limited, address) {
        (Limited::Who(Subject::Anyone), Some(address)) => Holder::Address(network(address)),
        _ => Holder::Known(limited.clone()),
    }
}

/// What one client has of addresses.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << IPV6_NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_guard::{Budget, UserId};
    use std::time::Duration;

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
        // What was refused by one account is in none.
        let held = accounts.enter(&both, None).unwrap();
        assert!(held.is_some());
        assert!(accounts.enter(&[], None).unwrap().is_none());
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
