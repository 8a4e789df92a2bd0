//! Variables as small numbers, and sets of them.
//!
//! The planner asks "do these two share a variable" thousands of times per query;
//! with numbers in a bit set that is one `and` per 64 variables.

use std::collections::HashMap;
use std::sync::Arc;

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
}

/// A set of variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct VarSet(Vec<u64>);

impl VarSet {
    pub(crate) fn of(vars: impl IntoIterator<Item = Var>) -> Self {
        let mut set = Self::default();
        for var in vars {
            set.insert(var);
        }
        set
    }

    pub(crate) fn insert(&mut self, var: Var) {
        let word = var.index() / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (var.index() % 64);
    }

    pub(crate) fn contains(&self, var: Var) -> bool {
        self.0
            .get(var.index() / 64)
            .is_some_and(|word| word & (1 << (var.index() % 64)) != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.extend(other);
        both
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        for (word, gone) in rest.0.iter_mut().zip(&other.0) {
            *word &= !gone;
        }
        rest
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0
            .iter()
            .enumerate()
            .all(|(at, word)| word & !other.0.get(at).copied().unwrap_or(0) == 0)
    }

    /// The variables in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            (0..64_u32)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| {
                    #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
                    let base = (at * 64) as u32;
                    Var(base + bit)
                })
        })
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
