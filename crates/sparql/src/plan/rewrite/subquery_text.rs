//! The canonical text of a subquery, equal for subqueries that differ only in variable names.

use std::fmt::Write;

use spargebra::algebra::{AggregateExpression, Expression};
use spargebra::term::Variable;

use crate::algebra::expression::{has_exists, is_volatile, map_children};
use crate::algebra::{
    Derived, Group, Item, Modifier, Slot, Step, StepKind, Var, VarSet, VariableTable,
};

/// The text of a subquery, and its variables by number; `None` if it may not be shared.
pub(super) fn text_of(derived: &Derived, table: &VariableTable) -> Option<(String, Vec<Var>)> {
    let mut writer = TextWriter {
        table,
        text: String::new(),
        numbered: Vec::new(),
    };
    writer.derived(derived)?;
    Some((writer.text, writer.numbered))
}

/// Writes the text of a subquery.
struct TextWriter<'t> {
    table: &'t VariableTable,
    text: String,
    numbered: Vec<Var>,
}

impl TextWriter<'_> {
    fn number(&mut self, var: Var) -> usize {
        match self.numbered.iter().position(|known| *known == var) {
            Some(number) => number,
            None => {
                self.numbered.push(var);
                self.numbered.len() - 1
            }
        }
    }

    fn var(&mut self, var: Var) {
        let number = self.number(var);
        let _ = write!(self.text, "?{number} ");
    }

    /// In the order of the numbers, for a set has none of its own.
    fn set(&mut self, set: &VarSet) {
        let mut numbers: Vec<usize> = set.iter().map(|var| self.number(var)).collect();
        numbers.sort_unstable();
        let _ = write!(self.text, "{numbers:?} ");
    }

    fn slot(&mut self, slot: Slot) {
        match slot {
            Slot::Variable(var) => self.var(var),
            Slot::Constant(_) | Slot::Absent => {
                let _ = write!(self.text, "{slot:?} ");
            }
        }
    }

    fn expression(&mut self, expression: &Expression) -> Option<()> {
        if has_exists(expression) || is_volatile(expression) {
            return None;
        }
        let numbered = self.with_numbers(expression.clone());
        let _ = write!(self.text, "({numbered:?}) ");
        Some(())
    }

    fn with_numbers(&mut self, expression: Expression) -> Expression {
        let mut name = |variable: &Variable| match self.table.get(variable.as_str()) {
            Some(var) => Variable::new_unchecked(self.number(var).to_string()),
            None => variable.clone(),
        };
        match expression {
            Expression::Variable(variable) => Expression::Variable(name(&variable)),
            Expression::Bound(variable) => Expression::Bound(name(&variable)),
            other => {
                let mapped = map_children(other, &mut |child| {
                    Ok::<_, std::convert::Infallible>(self.with_numbers(child))
                });
                match mapped {
                    Ok(expression) => expression,
                    Err(never) => match never {},
                }
            }
        }
    }

    fn derived(&mut self, derived: &Derived) -> Option<()> {
        self.text.push_str("{ ");
        self.group(&derived.inner)?;
        match &derived.modifier {
            Modifier::Project(vars) => {
                self.text.push_str("project ");
                vars.iter().for_each(|var| self.var(*var));
            }
            Modifier::Distinct => self.text.push_str("distinct "),
            Modifier::Aggregate {
                keys,
                aggregates,
                solution,
            } => {
                self.text.push_str("group ");
                keys.iter().for_each(|var| self.var(*var));
                for (var, aggregate) in aggregates {
                    self.aggregate(*var, aggregate)?;
                }
                self.set(solution);
            }
            // Which rows a limit takes is free, but must not be the same in both places by accident
            // of a plan.
            Modifier::Order(_) | Modifier::Slice { .. } => return None,
        }
        self.set(&derived.visible);
        self.text.push_str("} ");
        Some(())
    }

    fn aggregate(&mut self, var: Var, aggregate: &AggregateExpression) -> Option<()> {
        self.var(var);
        match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                let _ = write!(self.text, "count {distinct} ");
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                let _ = write!(self.text, "{name:?} {distinct} ");
                self.expression(expr)?;
            }
        }
        Some(())
    }

    fn group(&mut self, group: &Group) -> Option<()> {
        if !group.outer.is_empty() {
            return None;
        }
        for item in &group.items {
            self.item(item)?;
        }
        for filter in &group.filters {
            self.text.push_str("filter ");
            self.expression(filter)?;
        }
        for step in &group.steps {
            self.step(step)?;
        }
        Some(())
    }

    fn item(&mut self, item: &Item) -> Option<()> {
        match item {
            Item::Quad(quad) => {
                self.slot(quad.subject);
                self.slot(quad.predicate);
                self.slot(quad.object);
                if quad.scope.variable().is_some() {
                    return None;
                }
                let _ = write!(self.text, "{:?} {:?} . ", quad.scope, quad.object_ranges);
            }
            Item::Derived(derived) => self.derived(derived)?,
            Item::Group(group) => {
                self.text.push_str("{ ");
                self.group(group)?;
                self.text.push_str("} ");
            }
            Item::Union(branches) => {
                for branch in branches {
                    self.text.push_str("union { ");
                    self.group(branch)?;
                    self.text.push_str("} ");
                }
            }
            Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Service(_)
            | Item::Mapped(_)
            | Item::Search(_)
            | Item::Algorithm(_)
            | Item::Weights(_)
            | Item::Seed(_) => {
                return None;
            }
        }
        Some(())
    }

    fn step(&mut self, step: &Step) -> Option<()> {
        match &step.kind {
            StepKind::Filter(condition) => {
                self.text.push_str("having ");
                self.expression(condition)
            }
            StepKind::Bind {
                variable,
                expression,
                ..
            } => {
                self.text.push_str("bind ");
                self.var(*variable);
                self.expression(expression)
            }
            StepKind::Optional { .. }
            | StepKind::OptionalIf { .. }
            | StepKind::Lateral { .. }
            | StepKind::Minus { .. }
            | StepKind::Exists { .. }
            | StepKind::Mark { .. } => None,
        }
    }
}
