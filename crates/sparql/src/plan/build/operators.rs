//! Plans of unions, paths and computed columns.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::expressions::{Column, Literal};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};
use orrery_operators::nodes::AppendExec;
use orrery_operators::path::{PathExec, PathSpecification};
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use crate::algebra::{Group, Item, PathItem, Quad, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::{operator_scope, operator_slot};

/// Rows of a union up to which its branches run one after the other: what tasks of their own cost
/// does not come back.
const APPENDED_ROWS_MAX: f64 = 5_000.0;
/// Branches of a union that may run at the same time; of more, one after the other.
const PARALLEL_BRANCHES_MAX: usize = 64;

impl Planner<'_> {
    /// The solutions of all branches, each joined to the seed if there is one. `fetch`: no more
    /// rows will be read.
    pub(in crate::plan) fn union(
        &mut self,
        branches: &[Group],
        seed: Option<Relation>,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let mut planned = Vec::with_capacity(branches.len());
        let mut visible = VarSet::default();
        for branch in branches {
            let relation = self.group(branch, seed.clone(), needed, fetch)?;
            visible.extend(&branch.visible);
            if !relation.is_empty {
                planned.push(relation);
            }
        }
        if planned.is_empty() {
            return self.nothing(&visible.intersection(needed));
        }
        if planned.len() == 1
            && let Some(only) = planned.pop()
        {
            return Ok(only);
        }
        let mut bound = VarSet::default();
        for relation in &planned {
            bound.extend(&relation.variables());
        }
        let columns: Vec<Var> = bound.intersection(needed).iter().collect();
        let mut certain = VarSet::of(columns.iter().copied());
        let (mut inputs, mut rows) = (Vec::with_capacity(planned.len()), 0.0);
        for relation in &planned {
            certain = certain.intersection(&relation.certain);
            rows += relation.rows;
            inputs.push(self.aligned(relation, &columns)?);
        }
        if self.tuning.rewrites
            && self.tuning.partitions.is_none()
            && (rows <= APPENDED_ROWS_MAX || inputs.len() > PARALLEL_BRANCHES_MAX)
            && let [first, others @ ..] = inputs.as_slice()
        {
            let plan = Arc::new(AppendExec::new(Arc::clone(first), others.iter().cloned()));
            return self.relation(plan, columns, certain, rows);
        }
        let union = UnionExec::try_new(inputs)?;
        self.estimates.set(&union, rows);
        let plan = Arc::new(CoalescePartitionsExec::new(union));
        self.relation(plan, columns, certain, rows)
    }

    /// The plan with exactly these columns; nulls where it binds no such variable.
    pub(in crate::plan) fn aligned(
        &self,
        relation: &Relation,
        columns: &[Var],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if relation.columns == columns {
            return Ok(Arc::clone(&relation.plan));
        }
        let expressions: Vec<ProjectionExpr> = columns
            .iter()
            .map(|var| {
                let name = self.table.name(*var);
                let expr: Arc<dyn PhysicalExpr> = match relation.column(*var) {
                    Some(at) => Arc::new(Column::new(name, at)),
                    None => Arc::new(Literal::new(ScalarValue::UInt64(None))),
                };
                ProjectionExpr {
                    expr,
                    alias: name.to_string(),
                }
            })
            .collect();
        let plan = ProjectionExec::try_new(expressions, Arc::clone(&relation.plan))?;
        Ok(Arc::new(plan))
    }

    /// A relation with exactly these columns.
    pub(in crate::plan) fn with_columns(
        &mut self,
        relation: Relation,
        columns: Vec<Var>,
    ) -> Result<Relation> {
        if relation.columns == columns {
            return Ok(relation);
        }
        let plan = self.aligned(&relation, &columns)?;
        let certain = relation
            .certain
            .intersection(&VarSet::of(columns.iter().copied()));
        let is_empty = relation.is_empty;
        let mut projected = self.relation(plan, columns, certain, relation.rows)?;
        projected.is_empty = is_empty;
        Ok(projected)
    }

    /// The relation with some of its columns once more under other names.
    pub(in crate::plan) fn with_copies(
        &mut self,
        relation: Relation,
        copies: &[(Var, Var)],
    ) -> Result<Relation> {
        let own = relation.columns.iter().map(|var| (*var, *var));
        let mut expressions = Vec::with_capacity(relation.columns.len() + copies.len());
        let mut columns = Vec::with_capacity(expressions.capacity());
        for (from, to) in own.chain(copies.iter().copied()) {
            if let Some(at) = relation.column(from) {
                expressions.push(ProjectionExpr {
                    expr: Arc::new(Column::new(self.table.name(from), at)),
                    alias: self.table.name(to).to_string(),
                });
                columns.push(to);
            }
        }
        let plan = ProjectionExec::try_new(expressions, Arc::clone(&relation.plan))?;
        self.relation(Arc::new(plan), columns, relation.certain, relation.rows)
    }

    /// `Extend(input, variable, expression)`. Where a seed binds the variable already, the group's
    /// solutions have to agree with it.
    pub(in crate::plan) fn bind(
        &mut self,
        mut input: Relation,
        variable: Var,
        expression: &Expression,
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut expression = Cow::Borrowed(expression);
        if input.column(variable).is_some() {
            let name = Variable::new_unchecked(self.table.name(variable).as_ref());
            let seeded = Expression::Variable(name);
            let is_same = Expression::SameTerm(
                Box::new(seeded.clone()),
                Box::new(expression.as_ref().clone()),
            );
            // Where either is unbound there is nothing to disagree with.
            let agrees = Expression::Coalesce(vec![is_same, Expression::Literal(true.into())]);
            input = self.filter(input, &[agrees])?;
            expression = Cow::Owned(Expression::Coalesce(vec![seeded, expression.into_owned()]));
        }
        if !needed.contains(variable) {
            return Ok(input);
        }
        let value = self
            .compile(&expression, &input.plan.schema())?
            .into_value();
        let mut columns: Vec<Var> = input
            .columns
            .iter()
            .copied()
            .filter(|var| needed.contains(*var) && *var != variable)
            .collect();
        let mut expressions: Vec<ProjectionExpr> = Vec::with_capacity(columns.len() + 1);
        for var in &columns {
            let name = self.table.name(*var);
            if let Some(at) = input.column(*var) {
                expressions.push(ProjectionExpr {
                    expr: Arc::new(Column::new(name, at)),
                    alias: name.to_string(),
                });
            }
        }
        expressions.push(ProjectionExpr {
            expr: value,
            alias: self.table.name(variable).to_string(),
        });
        columns.push(variable);
        let plan = ProjectionExec::try_new(expressions, input.plan)?;
        let certain = input
            .certain
            .intersection(&VarSet::of(columns.iter().copied()));
        self.relation(Arc::new(plan), columns, certain, input.rows)
    }

    /// The rows of the input from which a path may start.
    ///
    /// A path of length zero leads from every *node of the graph* to itself; a term that `VALUES`
    /// or `BIND` gave must be one. Where the other end is a constant, it leads from this to itself,
    /// node or not (SPARQL 1.1, 18.4).
    pub(in crate::plan) fn path_starts(
        &mut self,
        input: Relation,
        path: &PathItem,
        nodes: &VarSet,
        later: &VarSet,
    ) -> Result<Relation> {
        let ends = [path.subject, path.object];
        let has_constant = ends.iter().any(|end| end.variable().is_none());
        if has_constant || !path.can_be_empty() {
            return Ok(input);
        }
        let ends = ends.into_iter();
        let ends = VarSet::of(ends.filter_map(Slot::variable)).intersection(&input.variables());
        let unknown = ends.difference(nodes);
        let needed = later.union(&path.variables());
        let mut input = input;
        for end in unknown.iter() {
            let group = self.node_pattern(end, path);
            input = self.exists(input, &group, &[], false, &needed)?;
        }
        Ok(input)
    }

    /// `{ ?node ?p ?o } UNION { ?s ?p ?node }`
    fn node_pattern(&mut self, node: Var, path: &PathItem) -> Group {
        let node = Slot::Variable(node);
        let mut other = |hint| Slot::Variable(self.table.fresh(hint));
        let as_subject = (node, other("p"), other("o"));
        let as_object = (other("s"), other("p"), node);
        let branches = [as_subject, as_object].map(|(subject, predicate, object)| {
            Group::of(Item::Quad(Quad {
                object_ranges: None,
                subject,
                predicate,
                object,
                scope: path.scope.clone(),
            }))
        });
        Group::of(Item::Union(branches.into()))
    }

    /// A property path, from the input's rows if there is an input.
    pub(in crate::plan) fn path(
        &mut self,
        input: Option<Relation>,
        path: &PathItem,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let variables = path.variables();
        let mut bound = variables.clone();
        let mut certain = variables;
        if let Some(input) = &input {
            bound.extend(&input.variables());
            certain.extend(&input.certain);
        }
        let columns: Vec<Var> = bound.intersection(later).iter().collect();
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let plan = PathExec::try_new(
            Arc::clone(&self.context),
            input.map(|input| input.plan),
            PathSpecification {
                subject: operator_slot(path.subject, &self.table),
                path: path.path.clone(),
                object: operator_slot(path.object, &self.table),
                graph: operator_scope(&path.scope, &self.table),
                is_set: self.is_set && self.tuning.rewrites,
                output: self.names(&columns),
            },
        )?;
        self.relation(plan, columns, certain, rows)
    }
}
