//! The sort orders of quads, and a container with one value for each of them.
//!
//! The sort orders are enumerated only here: another order is one line of the list below. What a
//! base must have, and what a load writes, is said where that is decided (`BASE_PERMUTATIONS`, the
//! loader's segments); the manifest names each as a component of its own (decision 0021).

use std::fmt;

/// Number of columns of a quad.
pub const COLUMNS: usize = 4;

/// A quad as the bits of its four term ids, in the column order of a permutation.
pub type QuadRow = [u64; COLUMNS];

/// A position in a quad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuadPosition {
    /// The subject.
    Subject = 0,
    /// The predicate.
    Predicate = 1,
    /// The object.
    Object = 2,
    /// The graph name, or the default graph.
    Graph = 3,
}

/// Declares the permutations: name, number in files, name in lower case, and the position that each
/// column holds.
macro_rules! permutations {
    ($($(#[$doc:meta])* $name:ident = $tag:literal, $text:literal, [$($position:ident),*];)*) => {
        /// An order of the four positions by which quads are sorted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Permutation {
            $($(#[$doc])* $name = $tag,)*
        }

        impl Permutation {
            /// All permutations, in the order of their numbers.
            pub const ALL: [Self; [$($tag),*].len()] = [$(Self::$name),*];

            /// The quad position of each column.
            pub const fn columns(self) -> [QuadPosition; COLUMNS] {
                match self {
                    $(Self::$name => [$(QuadPosition::$position),*],)*
                }
            }

            /// A quad given as subject, predicate, object, graph, in this permutation's order.
            #[inline]
            pub const fn arrange(self, quad: [u64; COLUMNS]) -> QuadRow {
                match self {
                    $(Self::$name => [$(quad[QuadPosition::$position as usize]),*],)*
                }
            }

            /// The subject, predicate, object and graph of a row.
            #[inline]
            pub const fn quad(self, row: QuadRow) -> [u64; COLUMNS] {
                use QuadPosition::{Graph, Object, Predicate, Subject};
                match self {
                    $(Self::$name => [
                        row[const { Self::$name.column_of(Subject) }],
                        row[const { Self::$name.column_of(Predicate) }],
                        row[const { Self::$name.column_of(Object) }],
                        row[const { Self::$name.column_of(Graph) }],
                    ],)*
                }
            }

            /// The name in lower case: `psog`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

permutations! {
    /// Predicate, subject, object, graph.
    Psog = 0, "psog", [Predicate, Subject, Object, Graph];
    /// Predicate, object, subject, graph.
    Posg = 1, "posg", [Predicate, Object, Subject, Graph];
    /// Subject, predicate, object, graph.
    Spog = 2, "spog", [Subject, Predicate, Object, Graph];
    /// Object, subject, predicate, graph.
    Ospg = 3, "ospg", [Object, Subject, Predicate, Graph];
    /// Graph, subject, predicate, object; only where there are named graphs.
    Gspo = 4, "gspo", [Graph, Subject, Predicate, Object];
}

impl Permutation {
    /// The column of a quad position.
    pub const fn column_of(self, position: QuadPosition) -> usize {
        let columns = self.columns();
        let mut column = 0;
        while columns[column] as usize != position as usize {
            column += 1;
        }
        column
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|&permutation| permutation as u8 == tag)
    }
}

impl fmt::Display for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// At most one value for each permutation: the components of this kind that a directory has, a
/// snapshot's views of them, a query's cursors.
///
/// A look-up is an index into an array.
#[derive(Debug, Clone)]
pub struct PerPermutation<T>([Option<T>; Permutation::ALL.len()]);

impl<T> Default for PerPermutation<T> {
    fn default() -> Self {
        Self(Permutation::ALL.map(|_| None))
    }
}

impl<T> PerPermutation<T> {
    /// The value of a permutation.
    #[inline]
    pub fn get(&self, permutation: Permutation) -> Option<&T> {
        self.0[permutation as usize].as_ref()
    }

    /// The value of a permutation, made on first use.
    pub fn get_or_try_insert<E>(
        &mut self,
        permutation: Permutation,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&mut T, E> {
        let place = &mut self.0[permutation as usize];
        match place {
            Some(value) => Ok(value),
            None => Ok(place.insert(make()?)),
        }
    }

    /// Sets the value of a permutation.
    pub fn set(&mut self, permutation: Permutation, value: T) {
        self.0[permutation as usize] = Some(value);
    }

    /// Removes the value of a permutation.
    pub fn remove(&mut self, permutation: Permutation) {
        self.0[permutation as usize] = None;
    }

    /// The present values, in the order of permutations.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_and_rows_come_back_as_quads() {
        let quad = [10, 20, 30, 40];
        for (place, permutation) in Permutation::ALL.into_iter().enumerate() {
            // Files hold the number, `PerPermutation` has its place by it.
            assert_eq!(permutation as usize, place);
            assert_eq!(Permutation::from_tag(place as u8), Some(permutation));
            assert_eq!(permutation.quad(permutation.arrange(quad)), quad);
            let by_columns = permutation
                .columns()
                .map(|position| quad[position as usize]);
            assert_eq!(permutation.arrange(quad), by_columns);
            let letters: String = permutation
                .columns()
                .map(|position| match position {
                    QuadPosition::Subject => 's',
                    QuadPosition::Predicate => 'p',
                    QuadPosition::Object => 'o',
                    QuadPosition::Graph => 'g',
                })
                .iter()
                .collect();
            assert_eq!(permutation.name(), letters);
        }
        assert_eq!(Permutation::from_tag(Permutation::ALL.len() as u8), None);
    }

    #[test]
    fn each_permutation_has_a_place_of_its_own() {
        let mut names = PerPermutation::default();
        for permutation in Permutation::ALL.into_iter().rev() {
            assert_eq!(names.get(permutation), None);
            names.set(permutation, permutation.name());
        }
        assert!(
            names
                .values()
                .copied()
                .eq(Permutation::ALL.map(Permutation::name))
        );
        names.remove(Permutation::Gspo);
        assert_eq!(names.values().count(), Permutation::ALL.len() - 1);
        let refused: Result<_, u8> = names.get_or_try_insert(Permutation::Gspo, || Err(7));
        assert_eq!(refused, Err(7));
        let made: Result<_, u8> = names.get_or_try_insert(Permutation::Gspo, || Ok("made"));
        assert_eq!(made.map(|name| *name), Ok("made"));
        let found: Result<_, u8> = names.get_or_try_insert(Permutation::Gspo, || Err(8));
        assert_eq!(found.map(|name| *name), Ok("made"));
    }
}
