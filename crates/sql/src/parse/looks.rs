//! An estimate of the planner's visits to nested expressions, made without planning.
//!
//! For the field of a function the planner visits the fields of its arguments once; for that of a
//! CASE it visits them twice, for the type and for nullability. `coalesce` and the like become a
//! CASE with an argument in two places. So each level of functions within CASE within functions
//! doubles the work: `abs(case when a = 1 then abs(case when ...`.

/// So many repeated looks are taken: some 200 ms.
pub(crate) const REPEATED_MAX: u64 = 20_000;

/// So many repeated looks at one expression are those of every day: they are not counted.
const REPEATED_OF_ONE: u64 = 64;

/// Functions that become a CASE with an argument in two places.
const TWICE: [&str; 5] = ["coalesce", "nullif", "nvl", "nvl2", "ifnull"];

/// Looks at an expression, or at parts of one together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looks {
    /// If no question was asked twice: the parts that it has.
    pub(crate) once: u64,
    /// For its field, which answers all questions.
    field: u64,
    /// For one question.
    one: u64,
}

impl Looks {
    /// At what has no parts.
    pub(crate) const LEAF: Self = Self {
        once: 1,
        field: 1,
        one: 1,
    };

    /// The larger of both counts, for what is one or the other.
    pub(crate) fn max(&self, other: Self) -> Self {
        Self {
            once: self.once.max(other.once),
            field: self.field.max(other.field),
            one: self.one.max(other.one),
        }
    }

    /// The same, as if nothing was asked twice where that is little.
    pub(crate) fn without_few_repeated(self) -> Self {
        match self.repeated() > REPEATED_OF_ONE {
            true => self,
            false => Self {
                one: self.once,
                ..self
            },
        }
    }

    /// Those beyond the first ones.
    pub(crate) fn repeated(&self) -> u64 {
        self.one.saturating_sub(self.once)
    }

    /// Takes in those of one more part.
    pub(crate) fn add(&mut self, part: &Self) {
        self.once = self.once.saturating_add(part.once);
        self.field = self.field.saturating_add(part.field);
        self.one = self.one.saturating_add(part.one);
    }

    /// At a CASE of these parts.
    pub(crate) fn in_case(self) -> Self {
        Self {
            field: self.one.saturating_mul(2),
            ..self
        }
        .in_other()
    }

    /// At a function of these parts, or at an operator that becomes one.
    pub(crate) fn in_function(self, name: &str) -> Self {
        let is_twice = TWICE.iter().any(|it| it.eq_ignore_ascii_case(name));
        let field = self.field.saturating_mul(if is_twice { 2 } else { 1 });
        Self {
            field,
            one: field,
            ..self
        }
        .in_other()
    }

    /// At anything else of these parts.
    pub(crate) fn in_other(mut self) -> Self {
        self.add(&Self::LEAF);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize, around: impl Fn(Looks) -> Looks) -> u64 {
        (0..depth).fold(Looks::LEAF, |of, _| around(of)).repeated()
    }

    #[test]
    fn levels_of_one_kind_repeat_nothing_and_levels_of_both_double() {
        assert_eq!(nested(500, Looks::in_case), 0);
        assert_eq!(nested(500, |of| of.in_function("abs")), 0);
        assert_eq!(nested(500, Looks::in_other), 0);
        let of_both = |of: Looks| of.in_case().in_function("abs");
        assert!(nested(4, of_both) < 64);
        assert!(nested(16, of_both) > REPEATED_MAX);
        assert!(nested(16, |of| of.in_function("coalesce")) > REPEATED_MAX);
        assert_eq!(nested(100, of_both), u64::MAX - 201);
    }
}
