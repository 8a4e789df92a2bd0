//! Plans of leaves over mapped graphs: needed columns and pushed-down filters.

use std::sync::Arc;

use orrery_operators::source::SourceExec;
use orrery_term::Term;
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use crate::algebra::{Group, Item, Mapped, Var, VarSet};
use crate::error::Result;
use crate::mapped::{MappedComparison, MappedCondition};
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::results::literal_from_oxrdf;

impl Planner<'_> {
    /// A leaf by itself.
    pub(in crate::plan) fn mapped(&mut self, mapped: &Mapped, needed: &VarSet) -> Result<Relation> {
        let columns = mapped.variables.iter().copied();
        let columns: Vec<Var> = columns.filter(|var| needed.contains(*var)).collect();
        let names = self.names(&columns);
        let source = mapped.rows.source(&names, &mapped.conditions);
        let plan = SourceExec::leaf(Arc::clone(&self.context), source, &names);
        let certain = VarSet::of(columns.iter().copied());
        self.relation(plan, columns, certain, mapped.expected_rows())
    }

    /// A group whose leaves know what its filters say of their variables, if there is such a leaf.
    pub(in crate::plan) fn with_mapped_conditions(&self, group: &Group) -> Option<Group> {
        let is_mapped = |item: &Item| matches!(item, Item::Mapped(_));
        if group.filters.is_empty() || !group.items.iter().any(is_mapped) {
            return None;
        }
        let mut conditions = Vec::new();
        for filter in &group.filters {
            conditions_of(filter, &mut conditions);
        }
        let mut group = group.clone();
        for item in &mut group.items {
            if let Item::Mapped(mapped) = item {
                let names = self.names(&mapped.variables);
                let own = conditions.iter().filter(|it| names.contains(&it.variable));
                mapped.conditions = own.cloned().collect();
            }
        }
        Some(group)
    }
}

/// What a filter says of a variable and a constant.
fn conditions_of(filter: &Expression, conditions: &mut Vec<MappedCondition>) {
    use MappedComparison as Is;
    let (left, right, comparison, turned) = match filter {
        Expression::And(left, right) => {
            conditions_of(left, conditions);
            conditions_of(right, conditions);
            return;
        }
        Expression::Equal(left, right) => (left, right, Is::Equal, Is::Equal),
        Expression::SameTerm(left, right) => (left, right, Is::Same, Is::Same),
        Expression::Less(left, right) => (left, right, Is::Less, Is::Greater),
        Expression::LessOrEqual(left, right) => (left, right, Is::LessOrEqual, Is::GreaterOrEqual),
        Expression::Greater(left, right) => (left, right, Is::Greater, Is::Less),
        Expression::GreaterOrEqual(left, right) => {
            (left, right, Is::GreaterOrEqual, Is::LessOrEqual)
        }
        _ => return,
    };
    let (variable, term, comparison) = match (&**left, &**right) {
        (Expression::Variable(variable), other) => (variable, constant(other), comparison),
        (other, Expression::Variable(variable)) => (variable, constant(other), turned),
        _ => return,
    };
    if let Some(term) = term {
        conditions.push(condition(variable, comparison, term));
    }
}

fn condition(
    variable: &Variable,
    comparison: MappedComparison,
    term: Term<'static>,
) -> MappedCondition {
    MappedCondition {
        variable: variable.as_str().into(),
        comparison,
        term,
    }
}

fn constant(expression: &Expression) -> Option<Term<'static>> {
    match expression {
        Expression::NamedNode(node) => Some(Term::iri(node.as_str().to_owned())),
        Expression::Literal(literal) => Some(literal_from_oxrdf(literal).into_owned()),
        _ => None,
    }
}
