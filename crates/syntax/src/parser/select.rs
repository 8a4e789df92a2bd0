//! The parser of `SELECT`: the clause, and the projection, groups and order that it puts around
//! the pattern.

use foldhash::fast::FixedState;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::Variable;

use super::modifiers::Modifiers;
use super::triples::join;
use super::{Aggregates, Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::names::VariableId;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// `DISTINCT` and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duplicates {
    Kept,
    Removed,
    Reduced,
}

/// One column.
#[derive(Debug)]
pub(super) struct Item {
    /// None for what has no name in the text.
    pub(super) id: Option<VariableId>,
    pub(super) variable: Variable,
    pub(super) token: Token,
    /// What it is computed from, and the variables that this needs.
    pub(super) expression: Option<(Expression, Vec<(VariableId, Token)>)>,
}

/// What is selected.
#[derive(Debug)]
pub(super) enum Selection {
    /// `*`, in the order of names.
    Star(Token),
    /// `*`, in the order of appearance.
    StarAsNamed(Token),
    /// What there is, for the forms of queries without columns: of groups, what they are grouped
    /// by.
    Visible,
    Items(Vec<Item>),
}

/// Columns up to this many are searched one by one.
const LISTED_MAX: usize = 16;

/// Columns in their order.
#[derive(Debug, Default)]
struct Ids {
    list: Vec<VariableId>,
    /// Filled once the list is long.
    set: hashbrown::HashSet<VariableId, FixedState>,
}

impl Ids {
    fn has(&self, id: VariableId) -> bool {
        match self.list.len() <= LISTED_MAX {
            true => self.list.contains(&id),
            false => self.set.contains(&id),
        }
    }

    fn add(&mut self, id: VariableId) {
        self.list.push(id);
        if self.list.len() > LISTED_MAX {
            if self.set.is_empty() {
                self.set.extend(&self.list);
            }
            self.set.insert(id);
        }
    }
}

impl<'t> Parser<'t, '_> {
    /// A `SELECT` inside of a group.
    pub(super) fn sub_select(&mut self) -> Parsed<GraphPattern> {
        let found = std::mem::take(&mut self.aggregates_found);
        let mark = self.scope.mark();
        let assigned = self.assigned.begin_select();
        let selected = self.selected_inside(mark);
        let columns = selected.as_ref().map(|(_, columns)| columns.as_slice());
        self.assigned
            .end_select(assigned, columns.unwrap_or_default());
        // Whatever became of it: what is around it has its own aggregates, and sees its columns
        // only.
        self.aggregates_found = found;
        self.scope.forget(mark);
        let (pattern, columns) = selected?;
        for id in columns {
            self.scope.see(id);
        }
        Ok(pattern)
    }

    fn selected_inside(&mut self, mark: usize) -> Parsed<(GraphPattern, Vec<VariableId>)> {
        let (duplicates, mut selection) = self.select_clause()?;
        if let Selection::StarAsNamed(star) = selection {
            selection = Selection::Star(star);
        }
        let pattern = self.where_clause()?;
        let modifiers = self.modifiers()?;
        self.selected(selection, pattern, modifiers, mark, duplicates)
    }

    /// `SELECT` of a query, until its dataset.
    fn select_clause(&mut self) -> Parsed<(Duplicates, Selection)> {
        self.expect_keyword(Keyword::Select)?;
        let duplicates = if self.eat_keyword(Keyword::Distinct) {
            Duplicates::Removed
        } else if self.eat_keyword(Keyword::Reduced) {
            Duplicates::Reduced
        } else {
            Duplicates::Kept
        };
        if self.eat(TokenKind::Star) {
            return Ok((duplicates, Selection::StarAsNamed(self.previous)));
        }
        let mut items = Vec::new();
        loop {
            let depth = self.opened.len();
            let item = match self.token.kind {
                TokenKind::Variable => self.selected_variable(),
                TokenKind::LeftParen => {
                    let item = self.with_aggregates(Aggregates::Allowed, Self::selected_expression);
                    match item {
                        Ok(item) => Ok(item),
                        Err(failure) => {
                            self.recover_behind_bracket(failure, depth)?;
                            continue;
                        }
                    }
                }
                _ if !items.is_empty() && !self.is_wrong_column() => break,
                _ => Err(self.no_column(items.is_empty())),
            };
            match item {
                Ok(item) => items.push(item),
                Err(failure) => {
                    self.recover_in_columns(failure)?;
                    if items.is_empty()
                        && self.token.kind != TokenKind::Variable
                        && self.token.kind != TokenKind::LeftParen
                    {
                        break;
                    }
                }
            }
            self.expected.thing(Thing::Variable);
            self.expected.token(TokenKind::LeftParen);
        }
        Ok((duplicates, Selection::Items(items)))
    }

    fn selected_variable(&mut self) -> Parsed<Item> {
        let token = self.token;
        let (id, variable) = self.variable()?;
        Ok(Item {
            id: Some(id),
            variable,
            token,
            expression: None,
        })
    }

    fn selected_expression(&mut self) -> Parsed<Item> {
        // Opened first: going on behind an error takes what is open.
        self.open(TokenKind::LeftParen, "(")?;
        self.deeper()?;
        let free = self.free.len();
        let expression = self.expression()?;
        let needed = self.free.split_off(free);
        if !self.eat_keyword(Keyword::As) {
            return Err(self.no_as());
        }
        let token = self.token;
        let (id, variable) = self.variable()?;
        self.close(TokenKind::RightParen)?;
        Ok(Item {
            id: Some(id),
            variable,
            token,
            expression: Some((expression, needed)),
        })
    }

    /// The clauses of a query behind `SELECT`.
    pub(super) fn select_query(
        &mut self,
    ) -> Parsed<(Option<spargebra::algebra::QueryDataset>, GraphPattern)> {
        let mark = self.scope.mark();
        let (duplicates, selection) = self.select_clause()?;
        let dataset = self.dataset(Keyword::From)?;
        let pattern = self.where_clause()?;
        let modifiers = self.modifiers()?;
        let (pattern, _) = self.selected(selection, pattern, modifiers, mark, duplicates)?;
        Ok((dataset, pattern))
    }

    /// All of a pattern's variables, for the other forms of queries.
    pub(super) fn all_selected(
        &mut self,
        selection: Selection,
        pattern: GraphPattern,
        modifiers: Modifiers,
        mark: usize,
    ) -> Parsed<GraphPattern> {
        let selected = self.selected(selection, pattern, modifiers, mark, Duplicates::Kept)?;
        Ok(selected.0)
    }

    /// Puts grouping, conditions, columns and order around a pattern.
    fn selected(
        &mut self,
        selection: Selection,
        pattern: GraphPattern,
        modifiers: Modifiers,
        mark: usize,
        duplicates: Duplicates,
    ) -> Parsed<(GraphPattern, Vec<VariableId>)> {
        let found = std::mem::take(&mut self.aggregates_found);
        let first_aggregate = found.first();
        let has_group_by = modifiers.group.is_some();
        let is_grouped = has_group_by || !found.is_empty();
        let mut pattern = pattern;
        // All rows are one group: `AS` must not give a value to what has one in them (SPARQL 1.1,
        // 18.2.1). A `GROUP BY` hides what it does not name (SPARQL 1.2, test group-by-scope-1).
        let hidden = match is_grouped && !has_group_by {
            true => self.computed_again(&selection, mark),
            false => Vec::new(),
        };
        if is_grouped {
            let group = modifiers.group.unwrap_or_default();
            self.check_computed_groups(&group.assigned, mark)?;
            self.scope.forget(mark);
            for (expression, variable) in group.computed {
                self.deeper()?;
                pattern = GraphPattern::Extend {
                    inner: Box::new(pattern),
                    variable,
                    expression,
                };
            }
            let grouped = |id| group.ids.contains(&id) || modifiers.value_ids.contains(&id);
            self.assigned.keep(grouped);
            for id in group.ids.into_iter().chain(modifiers.value_ids) {
                self.scope.see(id);
            }
            pattern = GraphPattern::Group {
                inner: Box::new(pattern),
                variables: group.variables,
                aggregates: found.into_list(),
            };
        }
        if let Some(expr) = modifiers.having {
            pattern = GraphPattern::Filter {
                expr,
                inner: Box::new(pattern),
            };
        }
        if let Some(values) = modifiers.values {
            pattern = join(pattern, values);
        }
        let (pattern, columns, ids) = match selection {
            Selection::Items(items) => {
                let groups = is_grouped.then_some(has_group_by);
                self.items_selected(items, pattern, (mark, &hidden), groups)?
            }
            star => {
                if is_grouped && let Selection::Star(at) | Selection::StarAsNamed(at) = star {
                    let token = first_aggregate.unwrap_or(at);
                    let failure = self.error_at(token, ErrorKind::StarWithGroups { has_group_by });
                    let hint = Hint::Note("name the variables that SELECT gives");
                    self.report(failure.with_hint(hint))?;
                }
                let mut ids = self.scope.since(mark);
                if !matches!(star, Selection::StarAsNamed(_)) {
                    ids.sort_by_key(|id| self.names.name(*id));
                }
                let names = ids
                    .iter()
                    .map(|id| Variable::new_unchecked(self.names.name(*id)));
                (pattern, names.collect(), ids)
            }
        };
        let pattern = arranged(
            pattern,
            columns,
            modifiers.order,
            modifiers.slice,
            duplicates,
        );
        Ok((pattern, ids))
    }

    /// Columns that are computed though the pattern gives them values.
    fn computed_again(&self, selection: &Selection, mark: usize) -> Vec<VariableId> {
        let Selection::Items(items) = selection else {
            return Vec::new();
        };
        let computed = items.iter().filter(|item| item.expression.is_some());
        let ids = computed.filter_map(|item| item.id);
        ids.filter(|id| self.scope.has(*id, mark)).collect()
    }

    /// Refuses `GROUP BY (... AS ?x)` where `?x` has a value already.
    fn check_computed_groups(
        &mut self,
        assigned: &[(VariableId, Token)],
        mark: usize,
    ) -> Parsed<()> {
        for (at, (id, token)) in assigned.iter().enumerate() {
            let is_twice = assigned[..at].iter().any(|(other, _)| other == id);
            if is_twice || self.scope.has(*id, mark) {
                let failure = self.already_bound(*id, *token);
                self.report(failure)?;
            }
        }
        Ok(())
    }

    fn already_bound(&self, id: VariableId, token: Token) -> super::Failure {
        let variable = self.names.name(id).to_owned();
        let kind = ErrorKind::AlreadyBound { variable };
        let hint = Hint::Note("give it another name");
        self.error_at(token, kind).with_hint(hint)
    }

    /// The columns of a list; the `hidden` ones have values in the rows of the only group.
    /// `groups`: whether there are groups, and whether by a `GROUP BY`.
    fn items_selected(
        &mut self,
        items: Vec<Item>,
        mut pattern: GraphPattern,
        (mark, hidden): (usize, &[VariableId]),
        groups: Option<bool>,
    ) -> Parsed<(GraphPattern, Vec<Variable>, Vec<VariableId>)> {
        let mut columns = Vec::with_capacity(items.len());
        let mut ids = Ids::default();
        for item in items {
            let computed = item.expression.is_some();
            let id = item.id;
            let is_twice = id.is_some_and(|id| ids.has(id));
            // Columns are a set (SPARQL 1.1, 18.2.4.4): a variable may be named again, but not
            // computed again.
            if is_twice && !computed {
                continue;
            }
            let mut failure = None;
            if is_twice {
                failure = id.map(|id| self.repeated(id, item.token));
            } else if let Some(id) = id {
                let is_visible = self.scope.has(id, mark);
                if computed && (is_visible || hidden.contains(&id)) {
                    failure = Some(self.already_bound(id, item.token));
                } else if !computed
                    && !is_visible
                    && let Some(has_group_by) = groups
                {
                    failure = Some(self.not_grouped(id, item.token, has_group_by));
                }
            }
            if let (Some(id), true) = (id, computed) {
                self.assigned.add(id, item.token);
            }
            if let Some((expression, needed)) = item.expression {
                if failure.is_none()
                    && let Some(has_group_by) = groups
                {
                    // Those of earlier columns can be used, too (SPARQL 1.2, 18.2.4.4).
                    let missing = needed
                        .iter()
                        .find(|(id, _)| !self.scope.has(*id, mark) && !ids.has(*id));
                    failure =
                        missing.map(|(id, token)| self.not_grouped(*id, *token, has_group_by));
                }
                pattern = GraphPattern::Extend {
                    inner: Box::new(pattern),
                    variable: item.variable.clone(),
                    expression,
                };
            }
            if let Some(failure) = failure {
                self.report(failure)?;
            }
            if let Some(id) = id {
                ids.add(id);
            }
            columns.push(item.variable);
        }
        Ok((pattern, columns, ids.list))
    }

    fn not_grouped(&self, id: VariableId, token: Token, has_group_by: bool) -> super::Failure {
        let variable = self.names.name(id).to_owned();
        let hint = Hint::GroupBy {
            variable: variable.clone(),
            has_group_by,
        };
        let kind = ErrorKind::NotGrouped {
            variable,
            has_group_by,
        };
        self.error_at(token, kind).with_hint(hint)
    }

    /// `WHERE { ... }`.
    pub(super) fn where_clause(&mut self) -> Parsed<GraphPattern> {
        self.eat_keyword(Keyword::Where);
        if !self.at(TokenKind::LeftBrace) {
            let failure = self.no_pattern();
            self.report(failure)?;
            // A word in the place of `WHERE` is one that was misspelled.
            if self.token.kind == TokenKind::Word {
                self.bump();
            }
            if self.token.kind != TokenKind::LeftBrace {
                return Ok(GraphPattern::default());
            }
        }
        self.group()
    }
}

fn arranged(
    mut pattern: GraphPattern,
    variables: Vec<Variable>,
    order: Option<Vec<spargebra::algebra::OrderExpression>>,
    slice: Option<(usize, Option<usize>)>,
    duplicates: Duplicates,
) -> GraphPattern {
    if let Some(expression) = order {
        pattern = GraphPattern::OrderBy {
            inner: Box::new(pattern),
            expression,
        };
    }
    pattern = GraphPattern::Project {
        inner: Box::new(pattern),
        variables,
    };
    pattern = match duplicates {
        Duplicates::Kept => pattern,
        Duplicates::Removed => GraphPattern::Distinct {
            inner: Box::new(pattern),
        },
        Duplicates::Reduced => GraphPattern::Reduced {
            inner: Box::new(pattern),
        },
    };
    if let Some((start, length)) = slice {
        pattern = GraphPattern::Slice {
            inner: Box::new(pattern),
            start,
            length,
        };
    }
    pattern
}
