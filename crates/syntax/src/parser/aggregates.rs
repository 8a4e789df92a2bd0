//! The aggregates of a `SELECT`.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use spargebra::algebra::AggregateExpression;
use spargebra::term::Variable;

use crate::token::Token;

/// Aggregates of one `SELECT`; equal ones are computed once.
#[derive(Debug, Default)]
pub(super) struct Found {
    list: Vec<(Variable, AggregateExpression)>,
    /// Places in the list by hash.
    places: HashMap<u64, Vec<usize>, FixedState>,
    first: Option<Token>,
}

impl Found {
    /// The variable of an aggregate, whose name stands at a token.
    pub(super) fn variable(
        &mut self,
        aggregate: AggregateExpression,
        name: Token,
        fresh: impl FnOnce() -> String,
    ) -> Variable {
        self.first.get_or_insert(name);
        let hash = FixedState::default().hash_one(&aggregate);
        let places = self.places.entry(hash).or_default();
        for &place in places.iter() {
            if self.list[place].1 == aggregate {
                return self.list[place].0.clone();
            }
        }
        places.push(self.list.len());
        let variable = Variable::new_unchecked(fresh());
        self.list.push((variable.clone(), aggregate));
        variable
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Where the first one stands.
    pub(super) fn first(&self) -> Option<Token> {
        self.first
    }

    pub(super) fn into_list(self) -> Vec<(Variable, AggregateExpression)> {
        self.list
    }
}
