//! A linearizability checker for histories of one key, by Wing and Gong with Lowe's cache, as in
//! porcupine.
//!
//! A key holds a value or none; no two puts have the same value, so that a tag and its value are
//! the same thing. An operation whose outcome is unknown may have happened at any time after it was
//! called, or never.

use std::collections::HashSet;

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Overwrite(u64),
    Create(u64),
    /// Puts the second value if the first is there.
    Update(u64, u64),
    Delete,
    Get,
}

/// What it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Done,
    /// The condition did not hold.
    Refused,
    /// The value that was read; 0 for none.
    Value(u64),
    /// Nothing: it may have happened or not.
    Unknown,
}

/// An operation of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub ask: Ask,
    pub told: Told,
    pub called: u64,
    /// Greater than all times for an unknown outcome.
    pub returned: u64,
}

/// The value after an operation, if it can happen when the key has this value and tell what it
/// told.
fn step(operation: &Operation, value: u64) -> Option<u64> {
    let (holds, next) = match operation.ask {
        Ask::Overwrite(new) => (true, new),
        Ask::Create(new) => (value == 0, new),
        Ask::Update(old, new) => (value == old, new),
        Ask::Delete => (true, 0),
        Ask::Get => return (operation.told == Told::Value(value)).then_some(value),
    };
    match operation.told {
        Told::Done => holds.then_some(next),
        Told::Refused => (!holds).then_some(value),
        // If it does not hold, it changes nothing: as if it never happened.
        Told::Unknown => holds.then_some(next),
        Told::Value(_) => None,
    }
}

/// Looks for an order of all operations that have an outcome, and some of the others, in which each
/// tells what it told, and which keeps apart what did not overlap. Gives the most operations that
/// could be put in order if there is none.
pub(crate) fn check(operations: &[Operation]) -> Result<(), usize> {
    let mut search = Search {
        operations,
        done: vec![false; operations.len()],
        tried: HashSet::new(),
        most: 0,
    };
    let open = operations
        .iter()
        .filter(|operation| operation.told != Told::Unknown)
        .count();
    if search.go(0, open, 0) {
        Ok(())
    } else {
        Err(search.most)
    }
}

struct Search<'a> {
    operations: &'a [Operation],
    done: Vec<bool>,
    tried: HashSet<(Vec<bool>, u64)>,
    most: usize,
}

impl Search<'_> {
    fn go(&mut self, value: u64, open: usize, depth: usize) -> bool {
        self.most = self.most.max(depth);
        if open == 0 {
            return true;
        }
        if !self.tried.insert((self.done.clone(), value)) {
            return false;
        }
        let waiting = |at: &usize| !self.done[*at];
        let first_return = (0..self.operations.len())
            .filter(waiting)
            .map(|at| self.operations[at].returned)
            .min()
            .unwrap_or(u64::MAX);
        for at in 0..self.operations.len() {
            let operation = self.operations[at];
            if self.done[at] || operation.called > first_return {
                continue;
            }
            let Some(next) = step(&operation, value) else {
                continue;
            };
            self.done[at] = true;
            let left = open - usize::from(operation.told != Told::Unknown);
            if self.go(next, left, depth + 1) {
                return true;
            }
            self.done[at] = false;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(ask: Ask, told: Told, called: u64, returned: u64) -> Operation {
        Operation {
            ask,
            told,
            called,
            returned,
        }
    }

    #[test]
    fn reads_beside_a_write_may_see_either_value() {
        let history = [
            operation(Ask::Overwrite(1), Told::Done, 0, 1),
            operation(Ask::Overwrite(2), Told::Done, 2, 9),
            operation(Ask::Get, Told::Value(1), 3, 4),
            operation(Ask::Get, Told::Value(2), 5, 6),
        ];
        assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn a_read_of_what_was_replaced_before_it_began_is_found() {
        let history = [
            operation(Ask::Overwrite(1), Told::Done, 0, 1),
            operation(Ask::Overwrite(2), Told::Done, 2, 3),
            operation(Ask::Get, Told::Value(1), 4, 5),
        ];
        assert!(check(&history).is_err());
        let back_and_forth = [
            operation(Ask::Overwrite(1), Told::Done, 0, 1),
            operation(Ask::Overwrite(2), Told::Done, 2, 9),
            operation(Ask::Get, Told::Value(2), 3, 4),
            operation(Ask::Get, Told::Value(1), 5, 6),
        ];
        assert!(check(&back_and_forth).is_err());
    }

    #[test]
    fn a_lost_write_and_a_second_creation_are_found() {
        assert!(
            check(&[
                operation(Ask::Create(1), Told::Done, 0, 1),
                operation(Ask::Get, Told::Value(0), 2, 3)
            ])
            .is_err()
        );
        assert!(
            check(&[
                operation(Ask::Create(1), Told::Done, 0, 5),
                operation(Ask::Create(2), Told::Done, 1, 4)
            ])
            .is_err()
        );
        assert!(check(&[operation(Ask::Create(1), Told::Refused, 0, 5)]).is_err());
    }

    #[test]
    fn an_unknown_write_may_happen_late_or_never_but_not_before_it_was_called() {
        let unknown = operation(Ask::Overwrite(7), Told::Unknown, 4, u64::MAX);
        let read = |value, called| operation(Ask::Get, Told::Value(value), called, called + 1);
        assert_eq!(check(&[unknown, read(0, 6), read(7, 8)]), Ok(()));
        assert_eq!(check(&[unknown, read(0, 6), read(0, 8)]), Ok(()));
        assert!(check(&[unknown, read(7, 1)]).is_err());
        assert!(check(&[unknown, read(7, 6), read(0, 8)]).is_err());
    }
}
