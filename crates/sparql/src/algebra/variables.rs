//! Variables as small numbers, and sets of them.
//!
//! The planner asks "do these two share a variable" thousands of times per query;
//! with numbers in a bit set that is one `and` per 64 variables.

use std::sync::Arc;

use hashbrown::HashMap;
use spargebra::algebra::Expression;
use spargebra::term::Variable;

/// A variable of one query, by its number in the [`VariableTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Var(u32);

impl Var {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of a query's variables. Names that begin with a dot are the planner's
/// own: no query text can name them.
#[derive(Debug, Default)]
pub(crate) struct VariableTable {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Var>,
}

impl VariableTable {
    /// The variable of this name, new or known.
    pub(crate) fn of(&mut self, name: &str) -> Var {
        if let Some(&var) = self.numbers.get(name) {
            return var;
        }
        let name: Arc<str> = name.into();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "bounded by the length of a query"
        )]
        let var = Var(self.names.len() as u32);
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, var);
        var
    }

    /// The variable of this name, if it is known.
    pub(crate) fn get(&self, name: &str) -> Option<Var> {
        self.numbers.get(name).copied()
    }

    /// A variable that no query text can name; `hint` makes plans readable.
    pub(crate) fn fresh(&mut self, hint: &str) -> Var {
        let name = format!(".{}.{hint}", self.names.len());
        self.of(&name)
    }

    pub(crate) fn name(&self, var: Var) -> &Arc<str> {
        &self.names[var.index()]
    }

    /// The variable as an expression.
    pub(crate) fn read(&self, var: Var) -> Expression {
        Variable::new_unchecked(self.name(var).as_ref()).into()
    }
}

/// A set of variables. Up to 64 of them, as most queries have, need no memory of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct VarSet {
    /// The variables below 64.
    first: u64,
    /// The others, 64 a word.
    more: Vec<u64>,
}

impl VarSet {
    pub(crate) fn of(vars: impl IntoIterator<Item = Var>) -> Self {
        let mut set = Self::default();
        for var in vars {
            set.insert(var);
        }
        set
    }

    pub(crate) fn insert(&mut self, var: Var) {
        let bit = 1 << (var.index() % 64);
        match (var.index() / 64).checked_sub(1) {
            None => self.first |= bit,
            Some(word) => {
                if self.more.len() <= word {
                    self.more.resize(word + 1, 0);
                }
                self.more[word] |= bit;
            }
        }
    }

    pub(crate) fn contains(&self, var: Var) -> bool {
        let word = match (var.index() / 64).checked_sub(1) {
            None => self.first,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        };
        word & (1 << (var.index() % 64)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words().all(|word| word == 0)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.words().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.first |= other.first;
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        for (word, more) in self.more.iter_mut().zip(&other.more) {
            *word |= more;
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.extend(other);
        both
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let more = self.more.iter().zip(&other.more);
        Self {
            first: self.first & other.first,
            more: more.map(|(a, b)| a & b).collect(),
        }
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.first &= !other.first;
        for (word, gone) in rest.more.iter_mut().zip(&other.more) {
            *word &= !gone;
        }
        rest
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        let mut more = self.more.iter().zip(&other.more);
        self.first & other.first != 0 || more.any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        let mut more = self.more.iter().enumerate();
        self.first & !other.first == 0
            && more.all(|(at, word)| word & !other.more.get(at).copied().unwrap_or(0) == 0)
    }

    /// The variables in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        self.words().zip(0..).flat_map(|(word, number): (_, u32)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(Var(number * 64 + bit))
            })
        })
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_as_sets_across_words() {
        let mut table = VariableTable::default();
        let vars: Vec<Var> = (0..130).map(|n| table.of(&format!("v{n}"))).collect();
        let low = VarSet::of([vars[1], vars[63]]);
        let high = VarSet::of([vars[63], vars[129]]);
        assert!(low.intersects(&high));
        assert_eq!(low.union(&high).len(), 3);
        assert_eq!(
            low.intersection(&high).iter().collect::<Vec<_>>(),
            [vars[63]]
        );
        assert_eq!(
            high.difference(&low).iter().collect::<Vec<_>>(),
            [vars[129]]
        );
        assert!(!high.is_subset(&low));
        assert!(VarSet::of([vars[1]]).is_subset(&low));
        assert!(!VarSet::of([vars[2]]).intersects(&high));
    }
}
