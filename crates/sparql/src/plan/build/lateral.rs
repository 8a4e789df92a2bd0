//! Plans of `LATERAL` whose group depends on the outer row
//! ([`depends_on_row`](crate::algebra::depends_on_row)). Other groups became joins when the algebra
//! was made.
//!
//! ```text
//! LATERAL { ?s :p ?o FILTER(?o > ?x) }       the group's parts joined to the rows on the left, its conditions on top: they see ?x
//! LATERAL { SELECT ?s ?o { ?s :p ?o } ORDER BY ?o LIMIT 2 }
//!                                            the different values of ?s on the left are numbered; the subquery starts
//!                                            from these, for all of them at once, and limits count by their number;
//!                                            then it is joined with the left side
//! ```
//!
//! So no plan runs once for each row, and rows with the same values are looked at once. Where a
//! variable of the left side may be unbound, or something inside gives another value each time,
//! each row has its own number. The left side and the seed are kept in memory, counted against the
//! pool ([`SharedExec`](orrery_operators::nodes::SharedExec)); sorts, joins and groups above them
//! spill as anywhere.

use crate::algebra::{Group, Item, Seed, Var, VarSet, sees_row_at_top};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::plan::rewrite::correlation::{Reach, correlated, has_minus};

/// What the group starts from, and how its solutions find back.
struct Start {
    left: Relation,
    /// The rows that the group is evaluated for.
    seed: Relation,
    row: Var,
    /// The columns of the left side by which solutions are joined to it.
    keys: VarSet,
}

impl Planner<'_> {
    /// `Lateral(left, group)`. `starts_from_rows`: its subqueries start from the rows in any case.
    pub(in crate::plan) fn lateral(
        &mut self,
        left: Relation,
        group: &Group,
        starts_from_rows: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        let outside = left.variables();
        if self.tuning.rewrites
            && !starts_from_rows
            && sees_row_at_top(group, &outside, &self.table)
        {
            let joined = self.joined_to(left, group);
            return self.group(&joined, None, needed, None);
        }
        let mentioned = outside.intersection(&group.visible.union(&group.outer));
        let is_by_values = self.tuning.rewrites
            && !mentioned.is_empty()
            && mentioned.is_subset(&left.certain)
            && group.is_steady();
        let start = match is_by_values {
            true => self.start_of_values(&left, &mentioned)?,
            false => self.start_of_rows(left, &mentioned)?,
        };
        let wanted = needed.intersection(&group.visible);
        let right = self.for_each_of(&start, group, &wanted)?;
        if right.is_empty && self.tuning.rewrites {
            return self.nothing(&outside.union(&group.visible).intersection(needed));
        }
        self.found_back(start, right, needed)
    }

    /// The group with the rows of the left side as one of its items.
    fn joined_to(&mut self, left: Relation, group: &Group) -> Group {
        let mut joined = Group::of(Item::Seed(self.seed_of_rows(&left)));
        self.seeds.push(left);
        for item in &group.items {
            joined.push(item.clone());
        }
        joined.filters.clone_from(&group.filters);
        joined.steps.clone_from(&group.steps);
        joined.visible.extend(&group.visible);
        joined.certain.extend(&group.certain);
        joined.outer.clone_from(&group.outer);
        joined
    }

    /// Of a relation that becomes the next of the seeds.
    fn seed_of_rows(&self, rows: &Relation) -> Seed {
        Seed {
            number: self.seeds.len(),
            visible: rows.variables(),
            certain: rows.certain.clone(),
            substituted: Vec::new(),
        }
    }

    /// One number for each combination of values that the group mentions.
    fn start_of_values(&mut self, left: &Relation, mentioned: &VarSet) -> Result<Start> {
        let row = self.table.fresh("row");
        let left = self.shared(left)?;
        let values = self.with_columns(left.clone(), mentioned.iter().collect())?;
        let values = self.distinct(values, left.rows)?;
        let numbered = self.numbered(values, row)?;
        Ok(Start {
            seed: self.shared(&numbered)?,
            left,
            row,
            keys: mentioned.clone(),
        })
    }

    /// One number for each row.
    fn start_of_rows(&mut self, left: Relation, mentioned: &VarSet) -> Result<Start> {
        let row = self.table.fresh("row");
        let numbered = self.numbered(left, row)?;
        let left = self.shared(&numbered)?;
        let columns = mentioned.union(&VarSet::of([row]));
        Ok(Start {
            seed: self.with_columns(left.clone(), columns.iter().collect())?,
            left,
            row,
            keys: VarSet::of([row]),
        })
    }

    /// The solutions of the group for all rows of the seed, with their keys and what is wanted of
    /// them.
    fn for_each_of(&mut self, start: &Start, group: &Group, wanted: &VarSet) -> Result<Relation> {
        let (mut seed, mut substituted) = (start.seed.clone(), Vec::new());
        if has_minus(group) {
            (seed, substituted) = self.with_witnesses(seed)?;
        }
        let item = Seed {
            substituted,
            ..self.seed_of_rows(&seed)
        };
        self.seeds.push(seed.clone());
        let correlated = correlated(group, &item, Reach::Subqueries(start.row));
        let mut read = wanted.union(&start.keys);
        read.insert(start.row);
        let right = self.group(&correlated, None, &read, None)?;
        // Groups give back their keys and the number only.
        if right.is_empty || start.keys.is_subset(&right.certain) {
            return Ok(right);
        }
        let own = right.variables().difference(&start.keys);
        let right = self.with_columns(right, own.iter().collect())?;
        let (keys, rows) = (start.keys.union(&VarSet::of([start.row])), right.rows);
        let keyed = self.with_columns(start.seed.clone(), keys.iter().collect())?;
        self.join(keyed, right, &read, Some(rows))
    }

    /// The solutions with what the left side has beside them. What both have, the seed had of the
    /// left side.
    fn found_back(&mut self, start: Start, right: Relation, needed: &VarSet) -> Result<Relation> {
        let Start { left, keys, .. } = start;
        let columns = right.variables().intersection(&needed.union(&keys));
        let right = self.with_columns(right, columns.iter().collect())?;
        let kept = left.variables().difference(&columns.difference(&keys));
        let kept = kept.intersection(&needed.union(&keys));
        let left = self.with_columns(left, kept.iter().collect())?;
        let rows = left.rows.max(right.rows);
        self.join(left, right, needed, Some(rows))
    }
}
