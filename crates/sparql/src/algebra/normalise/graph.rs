//! The translation of `GRAPH`, for one graph and for all.
//!
//! By the specification (SPARQL 1.1, 18.6) `GRAPH ?g { P }` is a union: `P` in each named graph,
//! joined with the graph's name. We match all graphs at once: the name is a column of every quad
//! inside, and so of every solution.
//!
//! ```text
//! GRAPH ?g { ?s :p ?o . ?o :q ?x }              quads of the same graph, because they have ?g in common
//! GRAPH ?g { OPTIONAL { ?s :p ?o } }            the graphs' names, OPTIONAL for each        (`bind_graph`)
//! GRAPH ?g { SELECT (COUNT(*) AS ?n) { .. } }   grouped by ?g, 0 for a graph without solutions
//! GRAPH ?g { SELECT ?s { .. } LIMIT 1 }         a limit for each value of ?g
//! GRAPH ?g { ?s :p ?o FILTER(?g = :a) }         the name is not yet there: ?g is unbound, another variable
//! ```
//!
//! So it matters not how many graphs there are. Only where a `LIMIT` inside lets each graph be read
//! no further, and there are few, they are taken apart into one branch each, as in the plain
//! translation.

use orrery_term::{Term, TermId};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{Literal, NamedNodePattern, Variable};

use super::{Normaliser, PatternPlace, derived};
use crate::algebra::expression::{for_each_variable, has_exists};
use crate::algebra::service::certain;
use crate::algebra::{Group, Item, Modifier, Scope, Values, Var, VarSet};
use crate::error::{QueryError, Result};

/// Named graphs that the plain translation takes a `GRAPH ?g` apart into.
const PLAIN_BRANCHES_MAX: usize = 10_000;

impl Normaliser<'_> {
    pub(super) fn graph(
        &mut self,
        name: &NamedNodePattern,
        inner: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        match name {
            NamedNodePattern::NamedNode(node) => {
                let id = match self.mapped_graph(node.as_str()) {
                    Some(mapped) => Some(mapped),
                    None => self.context.view().id_in_quads(&Term::iri(node.as_str()))?,
                };
                if id.is_none() {
                    self.context.note_bound_to_commit();
                }
                self.in_graph(self.dataset.named_graph(id), inner, place)
            }
            NamedNodePattern::Variable(variable) => self.in_each_graph(variable, inner, place),
        }
    }

    fn in_each_graph(
        &mut self,
        variable: &Variable,
        inner: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let var = self.variable(variable);
        if !self.rewrites {
            let graphs = self.graphs(PLAIN_BRANCHES_MAX)?.ok_or_else(|| {
                let name = self.table.name(var);
                QueryError::unsupported(format!(
                    "GRAPH ?{name} without rewrites over more than {PLAIN_BRANCHES_MAX} named graphs"
                ))
            })?;
            return self.graph_by_graph(var, &graphs, inner, place);
        }
        if has_limit(inner)
            && let Some(graphs) = self.graphs(self.graph_branches_max)?
        {
            return self.graph_by_graph(var, &graphs, inner, place);
        }
        let scope = self.dataset.any_named_graph(var);
        if place.outer.contains(var) || !takes_for_bound(inner, variable) {
            let mut group = self.in_graph(scope.clone(), inner, place)?;
            self.name_graph(&mut group, &scope);
            return Ok(group);
        }
        // Inside, the name stands for another variable.
        let name = variable.as_str();
        let own = self.table.fresh(name);
        let outside = self.names.0.insert(name.to_owned(), own);
        let group = self.in_graph(scope.clone(), inner, place);
        if let Some(outside) = outside {
            self.names.0.insert(name.to_owned(), outside);
        }
        let mut group = group?;
        self.name_graph(&mut group, &scope);
        if group.visible.contains(own) {
            let is_same = self.is_same(own, var, group.certain.contains(own));
            group.filter(is_same, &place.outer, &self.table);
        }
        Ok(group)
    }

    /// That two variables agree: are the same term, or the first is unbound.
    fn is_same(&self, var: Var, name: Var, is_certain: bool) -> Expression {
        let of = |var| {
            let name = Variable::new_unchecked(self.table.name(var).as_ref());
            Box::new(Expression::Variable(name))
        };
        let is_same = Expression::SameTerm(of(var), of(name));
        match is_certain {
            true => is_same,
            false => Expression::Coalesce(vec![is_same, Expression::Literal(true.into())]),
        }
    }

    pub(super) fn in_graph(
        &mut self,
        scope: Scope,
        inner: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let inside = PatternPlace {
            scope: scope.clone(),
            ..place.clone()
        };
        let group = self.pattern(inner, &inside)?;
        let needs_check = match scope {
            Scope::Named(_) | Scope::Union(_) => !group.reads(&scope) && !self.has_mapped(&scope),
            Scope::Default | Scope::AllUnion | Scope::NamedVariable { .. } => false,
        };
        if !needs_check {
            return Ok(group);
        }
        // SPARQL 1.1, 18.6: GRAPH of a graph that is not there has no solutions.
        Ok(self.join(Group::of(Item::Graphs(scope)), group))
    }

    /// Joins a group with the names of its graphs, unless it has read them.
    fn name_graph(&self, group: &mut Group, scope: &Scope) {
        if !group.reads(scope) {
            let names = self.names_of_graphs(scope);
            *group = self.join(names, std::mem::take(group));
        }
    }

    /// The left side of an operator that looks at one solution after the other.
    pub(super) fn graph_by_graph_left(
        &mut self,
        left: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut group = self.pattern(left, place)?;
        self.bind_graph(&mut group, place);
        Ok(group)
    }

    /// Inside of `GRAPH ?g` every pattern is evaluated graph by graph: before a step looks whether
    /// something matches, or solutions are counted, it must be known in which graph.
    pub(super) fn bind_graph(&self, group: &mut Group, place: &PatternPlace) {
        if let Scope::NamedVariable { variable, .. } = &place.scope
            && !group.items_certain.contains(*variable)
        {
            let graphs = self.names_of_graphs(&place.scope);
            *group = graphs.join(std::mem::take(group), &self.table);
        }
    }

    /// An aggregation, inside of `GRAPH ?g` one of each graph. Without keys, a graph without
    /// solutions has a group too, an empty one.
    pub(super) fn aggregated(
        &mut self,
        mut group: Group,
        mut keys: Vec<Var>,
        mut aggregates: Vec<(Var, AggregateExpression)>,
        solution: VarSet,
        place: &PatternPlace,
    ) -> Group {
        let Some(graph) = place.scope.variable() else {
            return derived(
                group,
                Modifier::Aggregate {
                    keys,
                    aggregates,
                    solution,
                },
            );
        };
        self.bind_graph(&mut group, place);
        let is_one_group = keys.is_empty();
        if !keys.contains(&graph) {
            keys.push(graph);
        }
        let mut values = Vec::new();
        if is_one_group {
            for (var, aggregate) in &mut aggregates {
                let found = self.table.fresh("found");
                values.push((std::mem::replace(var, found), found, of_nothing(aggregate)));
            }
        }
        let found = derived(
            group,
            Modifier::Aggregate {
                keys,
                aggregates,
                solution,
            },
        );
        if !is_one_group {
            return found;
        }
        self.or_of_nothing(found, values, place)
    }

    /// One solution for each graph: what was found in it, or the values of an empty group.
    fn or_of_nothing(
        &mut self,
        mut found: Group,
        values: Vec<(Var, Var, Option<Literal>)>,
        place: &PatternPlace,
    ) -> Group {
        let has_any = self.table.fresh("matched");
        found.bind_surely(has_any, Expression::Literal(true.into()), &self.table);
        let mut all = self.names_of_graphs(&place.scope);
        all.push_optional(found, Vec::new(), None, &self.table);
        for (var, found, of_nothing) in values {
            let name = |var| Variable::new_unchecked(self.table.name(var).as_ref());
            let mut value = Expression::Variable(name(found));
            if let Some(literal) = of_nothing {
                value = Expression::If(
                    Box::new(Expression::Bound(name(has_any))),
                    Box::new(value),
                    Box::new(Expression::Literal(literal)),
                );
            }
            all.bind(var, value, &self.table);
        }
        all
    }

    /// The named graphs, if they are no more than that.
    fn graphs(&self, most: usize) -> Result<Option<Vec<TermId>>> {
        let graphs = match &self.dataset.named {
            Some(list) => list.to_vec(),
            None => {
                self.context.note_bound_to_commit();
                let mut graphs = (self.named_graphs)(most.saturating_add(1))?;
                graphs.extend(self.mapped_names());
                graphs
            }
        };
        Ok(Some(graphs).filter(|graphs| graphs.len() <= most))
    }

    /// `GRAPH ?g` as the specification has it: a union over the named graphs.
    fn graph_by_graph(
        &mut self,
        var: Var,
        graphs: &[TermId],
        inner: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut branches = Vec::with_capacity(graphs.len());
        for &graph in graphs {
            let body = self.in_graph(Scope::Named(graph), inner, place)?;
            let name = Group::of(Item::Values(Values {
                variables: vec![var],
                rows: vec![vec![Some(graph)]],
            }));
            branches.push(self.join(name, body));
        }
        if branches.is_empty() {
            let nothing = Values {
                variables: vec![var],
                rows: Vec::new(),
            };
            return Ok(Group::of(Item::Values(nothing)));
        }
        Ok(Group::of(Item::Union(branches)))
    }
}

/// What an aggregate of no solutions is (SPARQL 1.1, 18.5.1); `None` for an error.
fn of_nothing(aggregate: &AggregateExpression) -> Option<Literal> {
    match aggregate {
        AggregateExpression::CountSolutions { .. } => Some(0.into()),
        AggregateExpression::FunctionCall { name, .. } => match name {
            AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg => {
                Some(0.into())
            }
            AggregateFunction::GroupConcat { .. } => Some(Literal::new_simple_literal("")),
            AggregateFunction::Min
            | AggregateFunction::Max
            | AggregateFunction::Sample
            | AggregateFunction::Custom(_) => None,
        },
    }
}

/// Whether a pattern would be answered otherwise if this variable were bound before its end:
/// something inside reads it where it may be unbound.
fn takes_for_bound(pattern: &GraphPattern, variable: &Variable) -> bool {
    let takes = |pattern| takes_for_bound(pattern, variable);
    let is_free = |pattern| !certain(pattern).contains(&variable);
    let modifies = |inner, is_read: bool| {
        takes(inner) || (is_free(inner) && (is_read || mentions(inner, variable)))
    };
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => false,
        GraphPattern::Join { left, right } | GraphPattern::Union { left, right } => {
            takes(left) || takes(right)
        }
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            let is_read = mentions(right, variable)
                || expression.as_ref().is_some_and(|it| reads(it, variable));
            takes(left) || takes(right) || (is_read && is_free(left))
        }
        // What is on the right reads what the left side has.
        GraphPattern::Lateral { left, right } => takes(left) || takes(right) || is_free(left),
        // The name of the graph is not counted as common, this variable would be.
        GraphPattern::Minus { left, right } => {
            takes(left) || takes(right) || mentions(right, variable)
        }
        GraphPattern::Filter { expr, inner } => {
            takes(inner) || (reads(expr, variable) && is_free(inner))
        }
        GraphPattern::Extend {
            inner,
            variable: bound,
            expression,
        } => takes(inner) || bound == variable || (reads(expression, variable) && is_free(inner)),
        GraphPattern::Graph { inner, .. } => takes(inner),
        GraphPattern::Service { name, .. } => {
            matches!(name, NamedNodePattern::Variable(name) if name == variable)
        }
        // Keys and limits do not read it without projecting it.
        GraphPattern::OrderBy { inner, .. } => modifies(inner, true),
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => modifies(inner, false),
        GraphPattern::Group { inner, .. } => modifies(inner, true),
        // Another variable, if it is not projected.
        GraphPattern::Project { inner, variables } => {
            variables.contains(variable) && modifies(inner, true)
        }
    }
}

/// Whether an expression may look at a variable; what `EXISTS` looks at is not looked at.
fn reads(expression: &Expression, variable: &Variable) -> bool {
    let mut found = has_exists(expression);
    for_each_variable(expression, &mut |seen| found |= seen == variable);
    found
}

/// Whether a pattern can bind a variable.
fn mentions(pattern: &GraphPattern, variable: &Variable) -> bool {
    let mut found = false;
    pattern.on_in_scope_variable(|seen| found |= seen == variable);
    found
}

/// Whether a `LIMIT` inside keeps some solutions of each graph.
fn has_limit(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Slice { .. } => true,
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Minus { left, right } => has_limit(left) || has_limit(right),
        GraphPattern::Group { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => has_limit(inner),
        // A GRAPH inside sets the graph anew, a SERVICE is elsewhere.
        GraphPattern::Graph { .. } | GraphPattern::Service { .. } => false,
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => false,
    }
}
