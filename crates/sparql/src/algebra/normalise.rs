//! The normalizer from spargebra's tree to [`Group`]s: names, scopes, constants, `EXISTS`.
//!
//! Constants become ids here, so everything later compares numbers. `GRAPH` is
//! pushed into the patterns it governs ([`graph`]).

mod algorithm;
mod called;
mod graph;
mod ground;
mod lateral;
mod lists;
mod mapped;
mod nearby;
mod optional;
mod plain;
mod related;
mod search;
mod taken_apart;
mod text;
mod triple_terms;
mod weights;

use std::sync::Arc;

use hashbrown::HashMap;
use orrery_operators::context::QueryContext;
use orrery_operators::weights::WeightTable;
use orrery_term::{Term, TermId, TermKind};
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};

use self::called::{has_calls, has_lists, has_places, has_relations};
use self::ground::{Ground, ground, ground_term};
use self::taken_apart::TakenApart;
pub(crate) use self::weights::weighed;
use super::expression::{balanced, conjuncts, has_exists, is_volatile, map_children, variables};
use super::services::{finds_paths, reads_weights, runs_algorithm, searches_texts};
use super::{
    Dataset, Derived, Group, Item, Modifier, OrderKey, PathItem, Quad, Scope, SeenMapped, Service,
    ServiceEndpoint, Slot, Values, Var, VarSet, VariableTable,
};
use crate::edge_weights::definition::EdgeWeight;
use crate::error::{QueryError, Result};
use crate::options::Tuning;
use crate::results::literal_from_oxrdf;

/// Depth of groups in groups; what the parser lets through is flatter unless hostile.
const DEPTH_MAX: usize = 400;
/// Of a query with a table of more rows than this no plan is kept.
const KEPT_VALUES_MAX: usize = 512;

/// The names that a (sub)query sees.
#[derive(Default)]
struct Names(HashMap<String, Var>);

/// Where a pattern stands.
#[derive(Clone)]
struct PatternPlace {
    scope: Scope,
    /// Variables that enclosing patterns bind, visible inside `EXISTS`.
    outer: VarSet,
    depth: usize,
    /// Whether only modifiers of the whole query stand above.
    is_outermost: bool,
}

/// Translates one query.
pub(crate) struct Normaliser<'q> {
    context: &'q Arc<QueryContext>,
    dataset: &'q Dataset,
    named_graphs: &'q dyn Fn(usize) -> Result<Vec<TermId>>,
    mapped: Option<&'q SeenMapped>,
    pub(crate) table: VariableTable,
    names: Names,
    /// Stands for every variable that its scope leaves unbound.
    unbound: Variable,
    is_root: bool,
    rewrites: bool,
    graph_branches_max: usize,
    /// Whether there is a search in it, or what is known of a place, so that the plan holds what
    /// was found.
    pub(crate) has_texts: bool,
    /// Gives the edge weights of a scope that are in memory.
    pub(crate) known_weights: Option<WeightsInMemory<'q>>,
    /// Whether it is the definition of an edge weight that is translated.
    pub(crate) is_in_definition: bool,
}

/// Gives the edge weights of a scope that are in memory.
pub(crate) type WeightsInMemory<'q> = &'q dyn Fn(&EdgeWeight, &Scope) -> Option<Arc<WeightTable>>;

impl<'q> Normaliser<'q> {
    /// `named_graphs` gives the first so many named graphs that have quads.
    pub(crate) fn new(
        context: &'q Arc<QueryContext>,
        dataset: &'q Dataset,
        named_graphs: &'q dyn Fn(usize) -> Result<Vec<TermId>>,
        tuning: Tuning,
    ) -> Self {
        Self {
            context,
            dataset,
            named_graphs,
            mapped: None,
            table: VariableTable::default(),
            names: Names::default(),
            unbound: Variable::new_unchecked(".unbound"),
            is_root: true,
            rewrites: tuning.rewrites,
            graph_branches_max: tuning.graph_branches_max,
            has_texts: false,
            known_weights: None,
            is_in_definition: false,
        }
    }

    /// Sees mapped graphs, too.
    pub(crate) fn with_mapped(self, mapped: Option<&'q SeenMapped>) -> Self {
        Self { mapped, ..self }
    }

    /// Translates the pattern of a query.
    pub(crate) fn query(&mut self, pattern: &GraphPattern) -> Result<Group> {
        let place = PatternPlace {
            scope: self.dataset.default.clone(),
            outer: VarSet::default(),
            depth: 0,
            is_outermost: true,
        };
        self.pattern(pattern, &place)
    }

    /// The variable that a name of the query's outermost level means.
    pub(crate) fn variable(&mut self, variable: &Variable) -> Var {
        if let Some(&var) = self.names.0.get(variable.as_str()) {
            return var;
        }
        let var = if self.is_root {
            self.table.of(variable.as_str())
        } else {
            self.table.fresh(variable.as_str())
        };
        self.names.0.insert(variable.as_str().to_owned(), var);
        var
    }

    fn pattern(&mut self, pattern: &GraphPattern, place: &PatternPlace) -> Result<Group> {
        self.context.patience().check()?;
        if place.depth > DEPTH_MAX {
            return Err(QueryError::unsupported(format!(
                "groups nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let outermost = PatternPlace {
            depth: place.depth + 1,
            ..place.clone()
        };
        let inside = PatternPlace {
            is_outermost: false,
            ..outermost.clone()
        };
        let place = &inside;
        match pattern {
            GraphPattern::Bgp { patterns } => self.basic(patterns, place),
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                if let Some(group) = self.related_alternatives(subject, path, object, place)? {
                    return Ok(group);
                }
                let mut taken_apart = Vec::new();
                let subject = self.path_end(subject, &mut taken_apart)?;
                let object = self.path_end(object, &mut taken_apart)?;
                let group = self.path(subject, path, object, place)?;
                Ok(self.take_apart(group, taken_apart))
            }
            GraphPattern::Join { left, right } => {
                let left = self.pattern(left, place)?;
                let right = self.pattern(right, place)?;
                Ok(self.join(left, right))
            }
            GraphPattern::Lateral { left, right } => self.lateral(left, right, place),
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => self.left_join(left, right, expression.as_ref(), place),
            GraphPattern::Filter { expr, inner } => {
                let mut group = self.pattern(inner, place)?;
                let expression = balanced(expr.clone())?;
                if self.rewrites {
                    self.filter(&mut group, expression, place)?;
                } else {
                    self.plain_filter(&mut group, expression, place)?;
                }
                Ok(group)
            }
            GraphPattern::Union { left, right } => self.union(left, right, place),
            GraphPattern::Graph { name, inner } => self.graph(name, inner, place),
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                let mut group = self.pattern(inner, place)?;
                let expression = balanced(expression.clone())?;
                if is_volatile(&expression) {
                    // Another value in each graph.
                    self.bind_graph(&mut group, place);
                }
                let expression = self.value(&mut group, expression, place)?;
                let variable = self.variable(variable);
                group.bind(variable, expression, &self.table);
                Ok(group)
            }
            GraphPattern::Minus { left, right } => {
                let mut group = self.graph_by_graph_left(left, place)?;
                let right = self.pattern(right, place)?;
                group.minus(right, place.scope.variable(), &place.outer);
                Ok(group)
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => self.values(variables, bindings),
            GraphPattern::OrderBy { inner, expression } => self.order(inner, expression, place),
            GraphPattern::Project { inner, variables } => {
                if outermost.is_outermost {
                    self.outermost_project(inner, variables, place)
                } else {
                    self.subquery(inner, variables, place)
                }
            }
            GraphPattern::Distinct { inner } => {
                let mut inner = self.pattern(inner, &outermost)?;
                self.bind_graph(&mut inner, place);
                Ok(derived(inner, Modifier::Distinct))
            }
            // SPARQL 1.1, 18.5: REDUCED may keep duplicates.
            GraphPattern::Reduced { inner } => self.pattern(inner, &outermost),
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => {
                let mut inner = self.pattern(inner, &outermost)?;
                self.bind_graph(&mut inner, place);
                let modifier = Modifier::Slice {
                    offset: *start,
                    limit: *length,
                    of_each: place.scope.variable().into_iter().collect(),
                };
                Ok(derived(inner, modifier))
            }
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => self.aggregate(inner, variables, aggregates, place),
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => {
                if finds_paths(name) {
                    return self.path_search(inner, place);
                }
                if runs_algorithm(name) {
                    return self.algorithm(inner, place);
                }
                if reads_weights(name) {
                    return self.edge_weights(inner, place);
                }
                if searches_texts(name) {
                    return self.text_search(inner, place);
                }
                Ok(self.service(name, inner, *silent))
            }
        }
    }

    fn service(&mut self, name: &NamedNodePattern, inner: &GraphPattern, is_silent: bool) -> Group {
        let endpoint = match name {
            NamedNodePattern::NamedNode(iri) => ServiceEndpoint::Iri(iri.as_str().into()),
            NamedNodePattern::Variable(variable) => {
                ServiceEndpoint::Variable(self.variable(variable))
            }
        };
        let service = Service::new(endpoint, inner, is_silent, |name| self.variable(name));
        Group::of(Item::Service(Box::new(service)))
    }

    fn basic(&mut self, patterns: &[TriplePattern], place: &PatternPlace) -> Result<Group> {
        if has_relations(patterns) {
            return self.with_relations(patterns, place);
        }
        self.basic_without_relations(patterns, place)
    }

    /// The same, where relations of places are those that are stated.
    fn basic_without_relations(
        &mut self,
        patterns: &[TriplePattern],
        place: &PatternPlace,
    ) -> Result<Group> {
        if has_places(patterns) {
            return self.with_places(patterns, place);
        }
        // A list is a walk over what its graphs say together; where one of them is mapped, that is
        // refused as other walks are.
        if has_lists(patterns) {
            return self.with_calls(patterns, place);
        }
        match self.mapped_basic(patterns, place)? {
            Some(group) => Ok(group),
            None => self.stored_basic(patterns, place),
        }
    }

    fn stored_basic(&mut self, patterns: &[TriplePattern], place: &PatternPlace) -> Result<Group> {
        if has_calls(patterns) {
            return self.with_calls(patterns, place);
        }
        let mut group = Group::default();
        let mut taken_apart = Vec::new();
        for pattern in patterns {
            self.context.patience().check()?;
            if let Some(found) = self.foreign_text_search(pattern)? {
                group.push(found);
                continue;
            }
            let predicate = match &pattern.predicate {
                NamedNodePattern::NamedNode(node) => self.constant(&Term::iri(node.as_str()))?,
                NamedNodePattern::Variable(variable) => Slot::Variable(self.variable(variable)),
            };
            let quad = Quad {
                object_ranges: None,
                subject: self.slot(&pattern.subject, &mut taken_apart)?,
                predicate,
                object: self.slot(&pattern.object, &mut taken_apart)?,
                scope: place.scope.clone(),
            };
            group.push(Item::Quad(quad));
        }
        Ok(self.take_apart(group, taken_apart))
    }

    /// The slot of a term; triple terms with variables are added to those that are taken apart.
    fn slot(&mut self, term: &TermPattern, taken_apart: &mut Vec<TakenApart>) -> Result<Slot> {
        match term {
            TermPattern::NamedNode(node) => self.constant(&Term::iri(node.as_str())),
            TermPattern::BlankNode(node) => {
                let name = Variable::new_unchecked(format!("_:{}", node.as_str()));
                Ok(Slot::Variable(self.variable(&name)))
            }
            TermPattern::Literal(literal) => self.constant(&literal_from_oxrdf(literal)),
            TermPattern::Variable(variable) => Ok(Slot::Variable(self.variable(variable))),
            TermPattern::Triple(triple) => self.triple_slot(triple, taken_apart),
        }
    }

    fn constant(&self, term: &Term<'_>) -> Result<Slot> {
        let id = self.context.view().id_in_quads(term)?;
        if id.is_none() {
            self.context.note_bound_to_commit();
        }
        Ok(id.map_or(Slot::Absent, Slot::Constant))
    }

    fn path_end(&mut self, term: &TermPattern, taken_apart: &mut Vec<TakenApart>) -> Result<Slot> {
        match ground(term) {
            Ground::Term(constant) => Ok(Slot::Constant(self.intern(&constant)?)),
            // Not even a path of length zero starts from what is no term.
            Ground::Impossible => Ok(Slot::Absent),
            Ground::Open => self.slot(term, taken_apart),
        }
    }

    fn intern(&self, term: &Term<'_>) -> Result<TermId> {
        let id = self.context.intern(term)?;
        if self.context.has_plan_of_its_own() {
            return Ok(id);
        }
        let view = self.context.view();
        let is_seen = id.kind() != TermKind::QueryLocal
            && (view.scope().graphs().is_none() || view.id_in_quads(term)?.is_some());
        if !is_seen {
            self.context.note_plan_of_its_own();
        }
        Ok(id)
    }

    /// A path between two ends; simple steps become patterns, alternatives unions.
    fn path(
        &mut self,
        subject: Slot,
        path: &PropertyPathExpression,
        object: Slot,
        place: &PatternPlace,
    ) -> Result<Group> {
        self.context.patience().check()?;
        match path {
            PropertyPathExpression::NamedNode(node) => {
                let ends = (subject, node.as_str(), object);
                if let Some(group) = self.mapped_step(ends, place)? {
                    return Ok(group);
                }
                let quad = Quad {
                    object_ranges: None,
                    subject,
                    predicate: self.constant(&Term::iri(node.as_str()))?,
                    object,
                    scope: place.scope.clone(),
                };
                Ok(Group::of(Item::Quad(quad)))
            }
            PropertyPathExpression::Reverse(inner) => self.path(object, inner, subject, place),
            PropertyPathExpression::Sequence(first, second) => {
                let middle = Slot::Variable(self.table.fresh("path"));
                let first = self.path(subject, first, middle, place)?;
                let second = self.path(middle, second, object, place)?;
                Ok(self.join(first, second))
            }
            PropertyPathExpression::Alternative(first, second) => {
                // A long chain leans to the left; walk it without recursion.
                let mut rest = &**first;
                let mut paths = vec![&**second];
                while let PropertyPathExpression::Alternative(left, right) = rest {
                    paths.push(right);
                    rest = left;
                }
                paths.push(rest);
                let paths = paths.into_iter().rev();
                let branches = paths.map(|path| self.path(subject, path, object, place));
                Ok(union_of(branches.collect::<Result<_>>()?))
            }
            PropertyPathExpression::ZeroOrMore(_)
            | PropertyPathExpression::OneOrMore(_)
            | PropertyPathExpression::ZeroOrOne(_)
            | PropertyPathExpression::NegatedPropertySet(_) => {
                self.refuse_mapped_path(&place.scope)?;
                Ok(Group::of(Item::Path(PathItem {
                    subject,
                    path: path.clone(),
                    object,
                    scope: place.scope.clone(),
                })))
            }
        }
    }

    fn filter(
        &mut self,
        group: &mut Group,
        expression: Expression,
        place: &PatternPlace,
    ) -> Result<()> {
        for condition in conjuncts(expression) {
            let (pattern, is_negated) = match &condition {
                Expression::Exists(pattern) => (Some(pattern), false),
                Expression::Not(inner) => match inner.as_ref() {
                    Expression::Exists(pattern) => (Some(pattern), true),
                    _ => (None, false),
                },
                _ => (None, false),
            };
            if let Some(pattern) = pattern {
                let inner = self.exists_pattern(group, pattern, place)?;
                self.bind_graph(group, place);
                group.exists(inner, is_negated);
                continue;
            }
            let condition = self.value(group, condition, place)?;
            group.filter(condition, &place.outer, &self.table);
        }
        Ok(())
    }

    fn exists_pattern(
        &mut self,
        group: &Group,
        pattern: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let inside = PatternPlace {
            outer: place.outer.union(&group.visible),
            ..place.clone()
        };
        self.pattern(pattern, &inside)
    }

    /// Prepares an expression over a group: `EXISTS` become marks, names are resolved.
    fn value(
        &mut self,
        group: &mut Group,
        expression: Expression,
        place: &PatternPlace,
    ) -> Result<Expression> {
        let expression = if has_exists(&expression) {
            self.marks(group, expression, place)?
        } else {
            expression
        };
        let visible = group.visible.union(&place.outer);
        self.rename(expression, &visible)
    }

    fn marks(
        &mut self,
        group: &mut Group,
        expression: Expression,
        place: &PatternPlace,
    ) -> Result<Expression> {
        if let Expression::Exists(pattern) = &expression {
            let inner = self.exists_pattern(group, pattern, place)?;
            let mark = self.table.fresh("exists");
            self.bind_graph(group, place);
            group.mark(mark, inner);
            let name = Variable::new_unchecked(self.table.name(mark).as_ref());
            // Known to `rename` under its own name.
            self.names.0.insert(name.as_str().to_owned(), mark);
            return Ok(Expression::Variable(name));
        }
        map_children(expression, &mut |child| self.marks(group, child, place))
    }

    /// Gives the variables of an expression their unique names; those not visible become unbound.
    fn rename(&mut self, expression: Expression, visible: &VarSet) -> Result<Expression> {
        Ok(match expression {
            Expression::Variable(variable) => {
                Expression::Variable(self.renamed(&variable, visible))
            }
            Expression::Bound(variable) => Expression::Bound(self.renamed(&variable, visible)),
            other => map_children(other, &mut |child| self.rename(child, visible))?,
        })
    }

    fn renamed(&mut self, variable: &Variable, visible: &VarSet) -> Variable {
        let var = self.variable(variable);
        if !visible.contains(var) {
            return self.unbound.clone();
        }
        Variable::new_unchecked(self.table.name(var).as_ref())
    }

    fn union(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        // The chain of a long UNION leans to the left; walk it without recursion.
        let mut branches = vec![right];
        let mut rest = left;
        while let GraphPattern::Union { left, right } = rest {
            branches.push(right);
            rest = left;
        }
        branches.push(rest);
        let branches = branches.into_iter().rev();
        let branches = branches.map(|branch| self.pattern(branch, place));
        Ok(union_of(branches.collect::<Result<_>>()?))
    }

    fn values(
        &mut self,
        variables: &[Variable],
        bindings: &[Vec<Option<GroundTerm>>],
    ) -> Result<Group> {
        if bindings.len() > KEPT_VALUES_MAX {
            // Nor is it looked up of each whether who asks sees it.
            self.context.note_plan_of_its_own();
        }
        let variables = variables.iter().map(|v| self.variable(v)).collect();
        let mut rows = Vec::with_capacity(bindings.len());
        for binding in bindings {
            let row: Result<Vec<_>> = binding
                .iter()
                .map(|term| term.as_ref().map(|term| self.ground(term)).transpose())
                .collect();
            rows.push(row?);
        }
        Ok(Group::of(Item::Values(Values { variables, rows })))
    }

    fn ground(&self, term: &GroundTerm) -> Result<TermId> {
        self.intern(&ground_term(term)?)
    }

    fn order(
        &mut self,
        inner: &GraphPattern,
        keys: &[OrderExpression],
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut group = self.pattern(inner, place)?;
        self.bind_graph(&mut group, place);
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            let (expression, is_descending) = match key {
                OrderExpression::Asc(expression) => (expression, false),
                OrderExpression::Desc(expression) => (expression, true),
            };
            let expression = balanced(expression.clone())?;
            let expression = self.value(&mut group, expression, place)?;
            self.note_outer(&mut group, &expression);
            order.push(OrderKey {
                expression,
                is_descending,
            });
        }
        Ok(derived(group, Modifier::Order(order)))
    }

    /// A modifier of the group reads what a row around it binds.
    fn note_outer(&self, group: &mut Group, expression: &Expression) {
        let seen = variables(expression, &self.table);
        group.outer.extend(&seen.difference(&group.visible));
    }

    /// The projection of the whole query: inner names stay as they are.
    fn outermost_project(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        place: &PatternPlace,
    ) -> Result<Group> {
        let projected = variables.iter().map(|v| self.variable(v)).collect();
        let group = self.pattern(inner, place)?;
        Ok(derived(group, Modifier::Project(projected)))
    }

    /// A subquery: what it does not project gets names of its own. Inside of `GRAPH ?g` the graph's
    /// name goes with its solutions.
    fn subquery(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut projected: Vec<Var> = variables.iter().map(|v| self.variable(v)).collect();
        let inside = Names(
            variables
                .iter()
                .zip(&projected)
                .map(|(variable, var)| (variable.as_str().to_owned(), *var))
                .collect(),
        );
        let outside = std::mem::replace(&mut self.names, inside);
        let was_root = std::mem::replace(&mut self.is_root, false);
        let group = self.pattern(inner, place);
        self.names = outside;
        self.is_root = was_root;
        let mut group = group?;
        self.bind_graph(&mut group, place);
        let graph = place.scope.variable();
        projected.extend(graph.filter(|graph| !projected.contains(graph)));
        Ok(derived(group, Modifier::Project(projected)))
    }

    fn aggregate(
        &mut self,
        inner: &GraphPattern,
        keys: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut group = self.pattern(inner, place)?;
        let keys: Vec<Var> = keys.iter().map(|v| self.variable(v)).collect();
        let mut computed = Vec::with_capacity(aggregates.len());
        for (variable, aggregate) in aggregates {
            let aggregate = match aggregate {
                AggregateExpression::CountSolutions { .. } => aggregate.clone(),
                AggregateExpression::FunctionCall {
                    name,
                    expr,
                    distinct,
                } => {
                    let expr = self.value(&mut group, balanced(expr.clone())?, place)?;
                    self.note_outer(&mut group, &expr);
                    AggregateExpression::FunctionCall {
                        name: name.clone(),
                        expr,
                        distinct: *distinct,
                    }
                }
            };
            computed.push((self.variable(variable), aggregate));
        }
        let mut solution = VarSet::default();
        inner.on_in_scope_variable(|variable| solution.insert(self.variable(variable)));
        Ok(self.aggregated(group, keys, computed, solution, place))
    }
}

/// A plain subquery joins like a group: what it hides has unique names.
fn without_projection(group: Group) -> Group {
    let is_projection = group.filters.is_empty()
        && group.steps.is_empty()
        && matches!(
            group.items.as_slice(),
            [Item::Derived(derived)] if matches!(derived.modifier, Modifier::Project(_))
        );
    if !is_projection {
        return group;
    }
    let mut items = group.items;
    match items.pop() {
        Some(Item::Derived(derived)) => derived.inner,
        Some(other) => Group::of(other),
        None => Group::default(),
    }
}

/// Puts a modifier on a group.
fn derived(inner: Group, modifier: Modifier) -> Group {
    let (visible, certain) = match &modifier {
        Modifier::Project(variables) => {
            let projected = VarSet::of(variables.iter().copied());
            (
                inner.visible.intersection(&projected),
                inner.certain.intersection(&projected),
            )
        }
        Modifier::Aggregate {
            keys, aggregates, ..
        } => {
            let keys = VarSet::of(keys.iter().copied());
            let mut visible = keys.intersection(&inner.visible);
            for (var, _) in aggregates {
                visible.insert(*var);
            }
            (visible, keys.intersection(&inner.certain))
        }
        Modifier::Distinct | Modifier::Order(_) | Modifier::Slice { .. } => {
            (inner.visible.clone(), inner.certain.clone())
        }
    };
    let outer = inner.outer.clone();
    let mut group = Group::of(Item::Derived(Box::new(Derived {
        inner,
        modifier,
        visible,
        certain,
    })));
    group.outer = outer;
    group
}

/// The union of some groups, one level of it.
fn union_of(groups: Vec<Group>) -> Group {
    let mut outer = VarSet::default();
    let mut branches = Vec::with_capacity(groups.len());
    for group in groups {
        outer.extend(&group.outer);
        let is_union = group.steps.is_empty()
            && group.filters.is_empty()
            && matches!(group.items.as_slice(), [Item::Union(_)]);
        if is_union {
            for item in group.items {
                if let Item::Union(inner) = item {
                    branches.extend(inner);
                }
            }
        } else {
            branches.push(group);
        }
    }
    let mut union = Group::of(Item::Union(branches));
    union.outer = outer;
    union
}
