//! A cache of verified passwords, and the delay of names with many wrong attempts.
//!
//! HTTP's Basic sends the password with each request, and Argon2 takes its time on purpose: what
//! was found right is kept for some minutes as a keyed digest that is of no use outside of this
//! process. Each wrong password of a name makes the next wait longer, whether there is such a user
//! or not; and as long as others wait for the same name, no more are looked at: guessing in
//! parallel gains nothing.
//!
//! Failures are counted in a table of fixed size, at a place that a hash with a secret key finds
//! for a name: no flood of other names makes a count be forgotten, and a wrong password costs the
//! same however many there were. Names at the same place share its wait; which those are nobody
//! knows who has not the key.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::{KeptPassword, UserId};

/// How long a right password is known.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// Passwords that are known at most.
const KNOWN_MAX: usize = 10_000;
/// Wrong passwords of a name that cost nothing.
const FREE_FAILURES: u32 = 4;
/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(900);
/// Failures are forgotten when there were none for so long after the wait: who guesses and then
/// keeps still for that gains less than who waits each time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Places where failures are counted: 3 MiB.
const PLACES: usize = 1 << 17;

type Fingerprint = [u8; 32];

/// The cache of recently verified passwords, and of wrong attempts.
pub struct Known {
    /// Makes digests those of this process alone.
    secret: [u8; 32],
    right: HashMap<Fingerprint, (UserId, Instant)>,
    /// [`PLACES`] of them.
    wrong: Box<[Option<Failures>]>,
    /// Finds the place of a name, with keys of this process.
    places: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    free_at: Instant,
}

/// The action for a password attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Attempt {
    /// It was right a moment ago.
    Known(UserId),
    /// It has to be checked.
    Check,
    /// It is not looked at before so much time has gone.
    Wait(Duration),
}

impl Default for Known {
    fn default() -> Self {
        Self {
            secret: rand::random(),
            right: HashMap::new(),
            wrong: vec![None; PLACES].into(),
            places: RandomState::new(),
        }
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Known {
    /// The action for a password attempt on a name, with `kept` if there is such a user.
    pub fn attempt(
        &self,
        name: &str,
        password: &str,
        kept: Option<&KeptPassword>,
        now: Instant,
    ) -> Attempt {
        if let Some(wait) = self.wait(name, now) {
            return Attempt::Wait(wait);
        }
        let known = kept.and_then(|kept| self.right.get(&self.fingerprint(name, password, kept)));
        match known {
            Some((user, until)) if *until > now => Attempt::Known(*user),
            _ => Attempt::Check,
        }
    }

    /// The time until passwords of a name are checked again, after wrong ones.
    pub fn wait(&self, name: &str, now: Instant) -> Option<Duration> {
        let failures = self.wrong[self.place(name)]?;
        (failures.free_at > now).then(|| failures.free_at - now)
    }

    /// Notes that a client has shown that it knows the password of a name, without sending it.
    pub fn was_shown(&mut self, name: &str) {
        self.wrong[self.place(name)] = None;
    }

    /// Notes that a password was right.
    pub fn was_right(
        &mut self,
        name: &str,
        password: &str,
        kept: &KeptPassword,
        user: UserId,
        now: Instant,
    ) {
        self.was_shown(name);
        if self.right.len() >= KNOWN_MAX {
            self.right.retain(|_, (_, until)| *until > now);
        }
        // Full of passwords that are in use: this one is checked again.
        if self.right.len() < KNOWN_MAX {
            let fingerprint = self.fingerprint(name, password, kept);
            self.right.insert(fingerprint, (user, now + KNOWN_FOR));
        }
    }

    /// Notes that it was wrong, or that there is no such user. Returns for how long the name is not
    /// looked at.
    pub fn was_wrong(&mut self, name: &str, now: Instant) -> Duration {
        let before = self.wrong[self.place(name)];
        let before = before.filter(|it| now < it.free_at + FORGOTTEN_AFTER);
        let count = before.map_or(0, |it| it.count).saturating_add(1);
        let doublings = count.checked_sub(FREE_FAILURES + 1);
        let wait = doublings.map_or(Duration::ZERO, |doublings| {
            let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
            FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT)
        });
        self.wrong[self.place(name)] = Some(Failures {
            count,
            free_at: now + wait,
        });
        wait
    }

    fn place(&self, name: &str) -> usize {
        // As many as there are bits of the mask.
        self.places.hash_one(name) as usize & (PLACES - 1)
    }

    /// A digest of all that says that the password is right: with another kept password it is
    /// another one.
    fn fingerprint(&self, name: &str, password: &str, kept: &KeptPassword) -> Fingerprint {
        let mut digest = Sha256::new();
        digest.update(self.secret);
        for part in [name, password, kept.text()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: UserId = UserId(3);

    #[test]
    fn a_right_password_is_known_for_a_while_and_no_longer_than_it_is_right() {
        let (mut known, now) = (Known::default(), Instant::now());
        let kept = KeptPassword::new("long enough").unwrap();
        let ask = |known: &Known, password: &str, kept: &KeptPassword, at| {
            known.attempt("alice", password, Some(kept), at)
        };
        assert_eq!(ask(&known, "long enough", &kept, now), Attempt::Check);
        known.was_right("alice", "long enough", &kept, USER, now);
        assert_eq!(ask(&known, "long enough", &kept, now), Attempt::Known(USER));
        assert_eq!(ask(&known, "long enougH", &kept, now), Attempt::Check);
        assert_eq!(
            ask(&known, "long enough", &kept, now + KNOWN_FOR),
            Attempt::Check
        );
        let changed = KeptPassword::new("another one").unwrap();
        assert_eq!(ask(&known, "long enough", &changed, now), Attempt::Check);
        assert_eq!(
            known.attempt("alice", "long enough", None, now),
            Attempt::Check
        );
        assert_eq!(
            known.attempt("bob", "long enough", Some(&kept), now),
            Attempt::Check
        );
    }

    #[test]
    fn whoever_guesses_waits_longer_and_longer_for_users_and_for_nobody() {
        let (mut known, now) = (Known::default(), Instant::now());
        let kept = KeptPassword::new("long enough").unwrap();
        for _ in 0..FREE_FAILURES {
            assert_eq!(known.was_wrong("alice", now), Duration::ZERO);
        }
        let mut waits = Vec::new();
        let mut at = now;
        for _ in 0..14 {
            let wait = known.was_wrong("alice", at);
            // The right password waits, too: else it would be told by that.
            assert_eq!(
                known.attempt("alice", "long enough", Some(&kept), at),
                Attempt::Wait(wait)
            );
            at += wait;
            assert_eq!(
                known.attempt("alice", "long enough", Some(&kept), at),
                Attempt::Check
            );
            waits.push(wait);
        }
        assert_eq!(waits[0], FIRST_WAIT);
        assert!(waits.is_sorted());
        assert_eq!(waits.last(), Some(&LONGEST_WAIT));
        assert_eq!(known.attempt("bob", "x", None, now), Attempt::Check);
        known.was_right("alice", "long enough", &kept, USER, at);
        assert_eq!(known.was_wrong("alice", at), Duration::ZERO);
    }

    #[test]
    fn no_flood_of_other_names_makes_a_count_be_forgotten() {
        let (mut known, now) = (Known::default(), Instant::now());
        let guess = |known: &mut Known, name: &str, times| {
            (0..times).fold(Duration::ZERO, |_, _| known.was_wrong(name, now))
        };
        let waits = guess(&mut known, "alice", FREE_FAILURES + 3);
        assert_eq!(waits, 4 * FIRST_WAIT);
        // More than there are places, of which each waits then.
        for number in 0..3 * PLACES {
            known.was_wrong(&format!("name {number}"), now);
        }
        assert!(known.wait("alice", now) >= Some(waits));
        assert!(guess(&mut known, "alice", 1) > waits);
        // Nobody gets by without being counted.
        guess(&mut known, "a new one", FREE_FAILURES + 1);
        assert!(known.wait("a new one", now) >= Some(FIRST_WAIT));
    }

    #[test]
    fn failures_are_forgotten_after_a_day_without_any() {
        let (mut known, now) = (Known::default(), Instant::now());
        let mut wait = Duration::ZERO;
        for _ in 0..FREE_FAILURES + 2 {
            wait = known.was_wrong("alice", now);
        }
        let almost = now + wait + FORGOTTEN_AFTER - Duration::from_secs(1);
        let again = known.was_wrong("alice", almost);
        assert_eq!(again, 2 * wait);
        let forgotten = almost + again + FORGOTTEN_AFTER;
        assert_eq!(known.was_wrong("alice", forgotten), Duration::ZERO);
    }
}
