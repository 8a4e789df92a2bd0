//! The walk of short reads that follows a complex read.
//!
//! As in the official driver: after each complex read a coin decides whether short reads follow,
//! about a person (1, 2, 3) or a message (4, 5, 6, 7) in turn; after the last of these about the
//! other, each time less likely by the dissipation. Their persons and messages are those that
//! results had, the oldest first, of which so many are remembered.

use std::collections::VecDeque;

use serde_json::Value;

use crate::snb::operation::Operation;
use crate::snb::validation::{read_of_message, read_of_person};
use orrery_bsbm::Random;

/// Persons, and messages, that are remembered.
const REMEMBERED_MAX: usize = 1_024;
/// How much less likely each further group of short reads is.
const DISSIPATION: f64 = 0.2;
/// The messages that short read 2 gives.
const MESSAGES: u64 = 10;

/// What results had.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    persons: VecDeque<u64>,
    messages: VecDeque<u64>,
}

impl Remembered {
    /// Takes up the persons and messages of a result.
    pub(super) fn add(&mut self, result: &Value) {
        match result {
            Value::Array(rows) => rows.iter().for_each(|row| self.add(row)),
            Value::Object(row) => row
                .iter()
                .for_each(|(name, value)| self.add_field(name, value)),
            _ => {}
        }
    }

    fn add_field(&mut self, name: &str, value: &Value) {
        match name {
            "personId" | "friendId" | "originalPostAuthorId" | "moderatorId" | "replyAuthorId" => {
                keep(&mut self.persons, value);
            }
            "personIdsInPath" => {
                let persons = value.as_array().into_iter().flatten();
                persons.for_each(|person| keep(&mut self.persons, person));
            }
            "messageId" | "commentId" | "originalPostId" => keep(&mut self.messages, value),
            _ => {}
        }
    }

    fn take(&mut self, is_person: bool) -> Option<u64> {
        match is_person {
            true => self.persons.pop_front(),
            false => self.messages.pop_front(),
        }
    }
}

fn keep(queue: &mut VecDeque<u64>, number: &Value) {
    if let Some(number) = number.as_u64() {
        if queue.len() == REMEMBERED_MAX {
            queue.pop_front();
        }
        queue.push_back(number);
    }
}

/// The walk after one complex read.
#[derive(Debug)]
pub(super) struct Walk {
    likelihood: f64,
    /// The short read that is next, from 1.
    next: u8,
}

impl Walk {
    /// A walk that begins with a person or a message.
    pub(super) fn new(begins_with_person: bool) -> Self {
        Self {
            likelihood: 1.0,
            next: if begins_with_person { 1 } else { 4 },
        }
    }

    /// The next short read, while there is one.
    pub(super) fn next(
        &mut self,
        remembered: &mut Remembered,
        random: &mut Random,
    ) -> Option<Operation> {
        let number = self.next;
        if matches!(number, 1 | 4) && f64::from(random.below(1_000)) >= self.likelihood * 1_000.0 {
            return None;
        }
        self.next = match number {
            3 => 4,
            7 => 1,
            number => number + 1,
        };
        if matches!(number, 3 | 7) {
            self.likelihood -= DISSIPATION;
        }
        let is_person = number <= 3;
        let about = remembered.take(is_person)?;
        Some(match is_person {
            true => read_of_person(number, about, (number == 2).then_some(MESSAGES)),
            false => read_of_message(number, about),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snb::operation::Kind;

    #[test]
    fn a_walk_goes_from_persons_to_messages_and_ends() {
        let mut remembered = Remembered::default();
        let rows: Vec<Value> = (0..50)
            .map(|number| json!({ "personId": number, "messageId": number }))
            .collect();
        remembered.add(&json!(rows));
        let mut walk = Walk::new(true);
        let mut random = Random::new(1);
        let mut kinds = Vec::new();
        while let Some(operation) = walk.next(&mut remembered, &mut random) {
            kinds.push(operation.kind());
        }
        assert_eq!(kinds[..3], [1, 2, 3].map(Kind::Short));
        let expected = (1..=7).cycle().map(Kind::Short);
        assert!(
            kinds.iter().copied().eq(expected.take(kinds.len())),
            "{kinds:?}"
        );
        assert!(kinds.len() <= 5 * 4);
    }

    #[test]
    fn nothing_remembered_ends_it() {
        let mut walk = Walk::new(false);
        let next = walk.next(&mut Remembered::default(), &mut Random::new(1));
        assert_eq!(next, None);
    }

    #[test]
    fn so_many_are_remembered() {
        let mut remembered = Remembered::default();
        for number in 0..2_000 {
            remembered.add(&json!([{ "personIdsInPath": [number] }]));
        }
        assert_eq!(remembered.persons.len(), REMEMBERED_MAX);
        assert_eq!(remembered.take(true), Some(2_000 - REMEMBERED_MAX as u64));
    }
}
