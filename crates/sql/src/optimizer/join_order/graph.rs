//! The join graph: relations and their join conditions.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

use crate::plan::walk::Walk;

/// The most relations and semi joins that are ordered together: the search takes three times as
/// long for each one more.
pub(super) const PARTS_MAX: usize = 11;

/// Relations, and what joins them. Parts are numbered: first the relations, then the semi joins;
/// sets of them are masks.
pub(super) struct Graph {
    pub(super) relations: Vec<Part>,
    pub(super) semis: Vec<Semi>,
    /// Expressions that have one value, each with the relation that it is of.
    pub(super) classes: Vec<Vec<(usize, Expr)>>,
    /// What else must hold, and the relations that it is about.
    pub(super) conditions: Vec<(Expr, u32)>,
}

/// What is joined.
pub(super) struct Part {
    pub(super) plan: Arc<LogicalPlan>,
}

/// A semi or anti join: keeps or drops rows of what it is over.
pub(super) struct Semi {
    pub(super) part: Part,
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) filter: Option<Expr>,
    pub(super) is_anti: bool,
    /// The relations whose columns it reads.
    pub(super) needs: u32,
}

/// Whether a node is one that joins relations in any order.
pub(super) fn is_tree(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if is_free(join))
}

fn is_free(join: &Join) -> bool {
    let is_kind = matches!(
        join.join_type,
        JoinType::Inner | JoinType::LeftSemi | JoinType::LeftAnti
    );
    is_kind && join.null_equality == NullEquality::NullEqualsNothing && !join.null_aware
}

/// What a tree was taken apart into, before it is known what is about which relation.
#[derive(Default)]
struct Pieces {
    relations: Vec<Part>,
    equal: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
    semis: Vec<Semi>,
}

impl Pieces {
    fn take(&mut self, plan: &Arc<LogicalPlan>) {
        if self.relations.len() + self.semis.len() > PARTS_MAX {
            return;
        }
        match plan.as_ref() {
            LogicalPlan::Join(join) if is_free(join) => {
                self.take(&join.left);
                if join.join_type == JoinType::Inner {
                    self.take(&join.right);
                    if self.relations.len() + self.semis.len() > PARTS_MAX {
                        return;
                    }
                    self.equal.extend(join.on.iter().cloned());
                    let filter = join.filter.clone();
                    let conditions = filter.into_iter().flat_map(split_conjunction_owned);
                    self.conditions.extend(conditions);
                    return;
                }
                self.semis.push(Semi {
                    part: Part {
                        plan: Arc::clone(&join.right),
                    },
                    on: join.on.clone(),
                    filter: join.filter.clone(),
                    is_anti: join.join_type == JoinType::LeftAnti,
                    needs: 0,
                });
            }
            // Columns that are left out come back, and go again when the tree is built.
            LogicalPlan::Projection(projection)
                if is_join_below(&projection.input)
                    && projection
                        .expr
                        .iter()
                        .all(|expr| matches!(expr, Expr::Column(_))) =>
            {
                self.take(&projection.input);
            }
            _ => self.relations.push(Part {
                plan: Arc::clone(plan),
            }),
        }
    }
}

fn is_join_below(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_join_below(&projection.input),
        plan => is_tree(plan),
    }
}

impl Graph {
    /// Takes a tree apart; `None` if nothing can be ordered in it, or what a condition is about is
    /// not clear.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Self> {
        let mut pieces = Pieces::default();
        pieces.take(&Arc::new(plan.clone()));
        let parts = pieces.relations.len() + pieces.semis.len();
        if !(3..=PARTS_MAX).contains(&parts) {
            return None;
        }
        let mut graph = Self {
            relations: pieces.relations,
            semis: pieces.semis,
            classes: Vec::new(),
            conditions: Vec::new(),
        };
        if !graph.has_distinct_columns() {
            return None;
        }
        let is_volatile = |(left, right): &(Expr, Expr)| left.is_volatile() || right.is_volatile();
        let semi_is_volatile = |semi: &Semi| {
            semi.on.iter().any(is_volatile) || semi.filter.iter().any(Expr::is_volatile)
        };
        if pieces.equal.iter().any(is_volatile) || graph.semis.iter().any(semi_is_volatile) {
            return None;
        }
        for (left, right) in pieces.equal {
            let (of_left, of_right) = (graph.about(&left)?, graph.about(&right)?);
            let is_between = of_left.count_ones() == 1 && of_right.count_ones() == 1;
            match is_between && of_left != of_right {
                true => graph.equate(
                    (of_left.trailing_zeros() as usize, left),
                    (of_right.trailing_zeros() as usize, right),
                ),
                false => graph.conditions.push((left.eq(right), of_left | of_right)),
            }
        }
        for condition in pieces.conditions {
            if condition.is_volatile() {
                return None;
            }
            let about = graph.about(&condition)?;
            graph.conditions.push((condition, about));
        }
        // A condition is asked where its relations meet, and one of fewer than two meets nothing.
        if graph
            .conditions
            .iter()
            .any(|(_, about)| about.count_ones() < 2)
        {
            return None;
        }
        for place in 0..graph.semis.len() {
            let needs = graph.needs(&graph.semis[place])?;
            graph.semis[place].needs = needs;
        }
        Some(graph)
    }

    /// Relations and what semi joins compare with.
    pub(super) fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let semis = self.semis.iter_mut().map(|semi| &mut semi.part);
        self.relations.iter_mut().chain(semis)
    }

    pub(super) fn parts(&self) -> usize {
        self.relations.len() + self.semis.len()
    }

    fn has_distinct_columns(&self) -> bool {
        let semis = self.semis.iter().map(|semi| &semi.part);
        let parts = self.relations.iter().chain(semis);
        let columns: Vec<Column> = parts
            .flat_map(|part| part.plan.schema().columns())
            .collect();
        // One without a relation could be any of that name.
        let bare = columns.iter().filter(|column| column.relation.is_none());
        let bare: BTreeSet<&str> = bare.map(|column| column.name.as_str()).collect();
        let named = columns
            .iter()
            .filter(|column| bare.contains(column.name.as_str()));
        let mut seen = BTreeSet::new();
        named.count() == bare.len() && columns.iter().all(|column| seen.insert(column))
    }

    /// The relations that an expression is about; `None` if it names a column that is of none.
    fn about(&self, expr: &Expr) -> Option<u32> {
        let mut about = 0;
        for column in expr.column_refs() {
            about |= 1 << self.relation_of(column)?;
        }
        (!has_subquery(expr)).then_some(about)
    }

    fn relation_of(&self, column: &Column) -> Option<usize> {
        let has = |part: &Part| part.plan.schema().has_column(column);
        let found = self.relations.iter().position(has)?;
        let is_only = !self.relations[found + 1..].iter().any(has);
        is_only.then_some(found)
    }

    fn needs(&self, semi: &Semi) -> Option<u32> {
        let mut needs = 0;
        for (left, _) in &semi.on {
            needs |= self.about(left)?;
        }
        for column in semi.filter.iter().flat_map(Expr::column_refs) {
            if !semi.part.plan.schema().has_column(column) {
                needs |= 1 << self.relation_of(column)?;
            }
        }
        (needs != 0).then_some(needs)
    }

    /// Two expressions are equal, and so are all that are equal to one of them. A class has one of
    /// each relation: a second one stays a condition.
    fn equate(&mut self, one: (usize, Expr), other: (usize, Expr)) {
        let of = |member: &(usize, Expr)| self.classes.iter().position(|it| it.contains(member));
        let (first, second) = (of(&one), of(&other));
        let members = |class: Option<usize>, alone: &(usize, Expr)| -> Vec<usize> {
            match class {
                Some(class) => self.classes[class].iter().map(|it| it.0).collect(),
                None => vec![alone.0],
            }
        };
        let others = members(second, &other);
        let is_twice = members(first, &one).iter().any(|it| others.contains(it));
        if is_twice && (first.is_none() || first != second) {
            let about = 1 << one.0 | 1 << other.0;
            self.conditions.push((one.1.eq(other.1), about));
            return;
        }
        match (first, second) {
            (None, None) => self.classes.push(vec![one, other]),
            (Some(class), None) => self.classes[class].push(other),
            (None, Some(class)) => self.classes[class].push(one),
            (Some(first), Some(second)) if first != second => {
                let moved = self.classes.swap_remove(first.max(second));
                self.classes[first.min(second)].extend(moved);
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// What is equal between two sets of parts that have no part in common.
    pub(super) fn equal_between(&self, left: u32, right: u32) -> Vec<(Expr, Expr)> {
        let of = |class: &[(usize, Expr)], mask: u32| {
            let mut members = class.iter();
            let found = members.find(|(relation, _)| mask & 1 << relation != 0);
            found.map(|(_, expr)| expr.clone())
        };
        let pairs = self
            .classes
            .iter()
            .filter_map(|class| Some((of(class, left)?, of(class, right)?)));
        pairs.collect()
    }

    /// Whether there is such.
    pub(super) fn is_connected(&self, left: u32, right: u32) -> bool {
        let has = |class: &[(usize, Expr)], mask: u32| {
            class.iter().any(|(relation, _)| mask & 1 << relation != 0)
        };
        self.classes
            .iter()
            .any(|class| has(class, left) && has(class, right))
    }

    /// Conditions that can be asked where two sets meet, and neither before.
    pub(super) fn conditions_first_at(&self, left: u32, right: u32) -> Vec<Expr> {
        let both = left | right;
        let first =
            |about: u32| about & both == about && about & left != about && about & right != about;
        let conditions = self.conditions.iter().filter(|(_, about)| first(*about));
        conditions.map(|(condition, _)| condition.clone()).collect()
    }
}

fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    let _ = expr.apply_by(&mut |part| {
        found |= matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    found
}
