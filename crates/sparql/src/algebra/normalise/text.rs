//! Full-text search, `SERVICE <https://orrery-db.org/text#search>`, planned into the pattern around
//! it.
//!
//! ```text
//! SERVICE text:search { [] text:query "red wine" ; text:property rdfs:label ; text:entity ?e ; text:literal ?l ; text:score ?s }
//!     the index ->  VALUES (?l ?s) { ... }   and the pattern   ?e rdfs:label ?l
//! SERVICE text:search { ... text:limit 20 }
//!     the index -> literals, the best first, looked up in the quads until there are 20 -> VALUES (?e ?l ?s) { ... }
//! ```
//!
//! The search runs while the query is planned: so the planner knows how many literals there are,
//! and joins them with the other patterns in the order that it finds best: the literals lead where
//! they are few, and a pattern that matches less leads them. A plan with literals of a state in it
//! is not kept for others.
//!
//! A solution is a quad: its object matches the query, its predicate is one of those that are asked
//! for and that the index covers, its graph one of the pattern's and of the rules', and its subject
//! has a class of the rules (`TextRule`). With a limit the best of these come: by score, then by
//! the ids of literal, subject, predicate and graph. Of who does not see all graphs, literals that
//! an index of what they see would not have are left out as they are found, before they are counted
//! for a limit or a cost: what a search costs, and whether it fails, says nothing of hidden texts,
//! but for its time.
//!
//! What is found is paid for while it is found, [`PORTION`] at a time.
//!
//! Bounds: [`HITS_MAX`] literals at a time; what a limit needs not is not kept.

mod best;
mod foreign;
mod request;

use std::cell::Cell;
use std::sync::Arc;

use orrery_full_text::{HighlightOptions, Highlighter, Query};
use orrery_storage::text::{TextReader, TextRules};
use orrery_storage::{COLUMNS, Permutation, ReadView};
use orrery_term::{Literal, LiteralKind, Term, TermId};
use spargebra::algebra::GraphPattern;
use spargebra::term::TriplePattern;

use self::best::{Best, Found};
use self::foreign::ForeignSearch;
pub(super) use self::foreign::jena_search;
use self::request::Request;
use super::{Normaliser, PatternPlace};
use crate::algebra::{Group, Item, Quad, Scope, Slot, TextRule, Values, Var};
use crate::error::{QueryError, Result};

/// Literals that are kept at a time, without a limit in all.
const HITS_MAX: usize = 1 << 20;
/// Literals that a limit first keeps: more may be needed, for some stand in no quad that is asked
/// for.
const FIRST_HITS: usize = 256;
/// Literals that are paid for at once.
const PORTION: u64 = 256;
/// Solutions whose texts are highlighted.
const HIGHLIGHTS_MAX: usize = 100_000;

impl Normaliser<'_> {
    pub(super) fn text_search(
        &mut self,
        inner: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        self.has_texts = true;
        let request = Request::of(inner)?;
        let view = Arc::clone(self.context.view());
        let reader =
            TextReader::within(&view, &**self.context.adjacencies())?.ok_or_else(no_index)?;
        let rules = reader.rules().cloned().unwrap_or_default();
        let rule = TextRule::of(&rules, &view)?;
        let search = Search {
            view: &view,
            reader: &reader,
            query: &request.query,
            language: request.language.as_deref().map(language_rules),
            rule: &rule,
            normaliser: self,
        };
        let predicates = predicates(&view, &request, &rules)?;
        let scope = rule.scope(&place.scope).filter(|scope| !scope.is_empty());
        let Some(scope) = scope.filter(|_| !predicates.as_ref().is_some_and(Vec::is_empty)) else {
            return self.no_texts(&request, place);
        };
        match request.limit {
            None => {
                let hits = search.all(false)?;
                self.with_pattern(&request, &hits, (predicates, &rule, scope), place)
            }
            Some(limit) => {
                let asked = Asked {
                    predicates: predicates.as_deref(),
                    scope: &scope,
                    of_pattern: &place.scope,
                };
                let rows = search.best_rows(&request, limit, &asked)?;
                self.with_rows(&request, &rows, place)
            }
        }
    }

    /// The literals of a search as users of other stores write it, if a pattern is one.
    pub(super) fn foreign_text_search(&mut self, pattern: &TriplePattern) -> Result<Option<Item>> {
        let Some(found) = ForeignSearch::of(pattern)? else {
            return Ok(None);
        };
        self.has_texts = true;
        let query = Query::parse(&found.query).map_err(|error| {
            QueryError::unsupported(format!("{} {:?}: {error}", found.name, found.query))
        })?;
        let view = Arc::clone(self.context.view());
        let reader =
            TextReader::within(&view, &**self.context.adjacencies())?.ok_or_else(no_index)?;
        let rules = reader.rules().cloned().unwrap_or_default();
        let search = Search {
            view: &view,
            reader: &reader,
            query: &query,
            language: None,
            rule: &TextRule::of(&rules, &view)?,
            normaliser: self,
        };
        let rows = search.all(true)?.into_iter().map(|hit| vec![Some(hit.id)]);
        let rows = rows.collect();
        Ok(Some(Item::Values(Values {
            variables: vec![self.variable(found.literal)],
            rows,
        })))
    }

    /// Literals that match, joined with the pattern of their quads.
    fn with_pattern(
        &mut self,
        request: &Request,
        hits: &[Found],
        (predicates, rule, scope): (Option<Vec<TermId>>, &TextRule, Scope),
        place: &PatternPlace,
    ) -> Result<Group> {
        let literal = self.variable_or_fresh(request.literal.as_ref(), "text");
        let mut variables = vec![literal];
        let score = request.score.as_ref().map(|name| self.variable(name));
        let highlight = request.highlight.as_ref().map(|name| self.variable(name));
        variables.extend(score);
        variables.extend(highlight);
        check_different(&variables)?;
        let mut rows = Vec::with_capacity(hits.len());
        for hit in hits {
            let mut row = vec![Some(hit.id)];
            if score.is_some() {
                row.push(Some(self.score(hit.score)?));
            }
            if highlight.is_some() {
                row.push(Some(self.highlight(request, hit.id, hits.len())?));
            }
            rows.push(row);
        }
        let mut group = Group::of(Item::Values(Values { variables, rows }));
        let predicate = match (&request.property, predicates.as_deref()) {
            (Some(name), _) => Slot::Variable(self.variable(name)),
            (None, Some([only])) => Slot::Constant(*only),
            (None, _) => Slot::Variable(self.table.fresh("property")),
        };
        if let (Slot::Variable(variable), Some(predicates)) = (predicate, predicates) {
            group.push(Item::Values(Values {
                variables: vec![variable],
                rows: predicates.into_iter().map(|id| vec![Some(id)]).collect(),
            }));
        }
        let subject = match &request.entity {
            None => Slot::Variable(self.table.fresh("entity")),
            Some(term) => self.slot(term, &mut Vec::new())?,
        };
        group.push(Item::Quad(Quad {
            subject,
            predicate,
            object: Slot::Variable(literal),
            scope,
            object_ranges: None,
        }));
        if !rule.restrict(&mut group, subject, &place.scope, &mut self.table) {
            return self.no_texts(request, place);
        }
        Ok(group)
    }

    /// Solutions that are known.
    fn with_rows(
        &mut self,
        request: &Request,
        found: &[Row],
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut variables = Vec::new();
        let subject = match &request.entity {
            None => None,
            Some(term) => self.slot(term, &mut Vec::new())?.variable(),
        };
        let property = request.property.as_ref().map(|name| self.variable(name));
        let literal = request.literal.as_ref().map(|name| self.variable(name));
        let score = request.score.as_ref().map(|name| self.variable(name));
        let highlight = request.highlight.as_ref().map(|name| self.variable(name));
        let graph = place.scope.variable();
        for variable in [subject, property, literal, score, highlight, graph] {
            variables.extend(variable);
        }
        check_different(&variables)?;
        let mut rows = Vec::with_capacity(found.len());
        for row in found {
            let [object, subject_id, predicate, graph_id] = row.quad;
            let mut values = Vec::with_capacity(variables.len());
            values.extend(subject.map(|_| Some(subject_id)));
            values.extend(property.map(|_| Some(predicate)));
            values.extend(literal.map(|_| Some(object)));
            if score.is_some() {
                values.push(Some(self.score(row.score)?));
            }
            if highlight.is_some() {
                values.push(Some(self.highlight(request, object, found.len())?));
            }
            values.extend(graph.map(|_| Some(graph_id)));
            rows.push(values);
        }
        Ok(Group::of(Item::Values(Values { variables, rows })))
    }

    /// No solutions, of the variables that there would be.
    fn no_texts(&mut self, request: &Request, place: &PatternPlace) -> Result<Group> {
        self.with_rows(request, &[], place)
    }

    fn variable_or_fresh(
        &mut self,
        name: Option<&spargebra::term::Variable>,
        otherwise: &str,
    ) -> Var {
        match name {
            Some(name) => self.variable(name),
            None => self.table.fresh(otherwise),
        }
    }

    fn score(&self, score: f32) -> Result<TermId> {
        const DOUBLE: &str = "http://www.w3.org/2001/XMLSchema#double";
        // As XML Schema writes it: 2.5E0, 1.0E1.
        let shortest = format!("{score:E}");
        let lexical = match shortest.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => shortest,
        };
        Ok(self.context.intern(&Term::typed(lexical, DOUBLE))?)
    }

    fn highlight(&self, request: &Request, id: TermId, rows: usize) -> Result<TermId> {
        if rows > HIGHLIGHTS_MAX {
            return Err(QueryError::unsupported(format!(
                "text:highlight of more than {HIGHLIGHTS_MAX} solutions; give a text:limit"
            )));
        }
        self.context.patience().check()?;
        let term = self.context.term(id)?;
        let Term::Literal(Literal { lexical, kind }) = &term else {
            return Ok(id);
        };
        let tag = match kind {
            LiteralKind::Language(tag) | LiteralKind::Directional(tag, _) => Some(&**tag),
            LiteralKind::String | LiteralKind::Typed(_) => None,
        };
        let highlighter = Highlighter::new(&request.query, HighlightOptions::default());
        let marked = highlighter.highlight(lexical, tag);
        Ok(self.context.intern(&Term::string(marked))?)
    }
}

/// A quad whose object matches: object, subject, predicate, graph.
struct Row {
    quad: [TermId; COLUMNS],
    score: f32,
}

/// Which quads a search asks for.
struct Asked<'a> {
    /// If not all.
    predicates: Option<&'a [TermId]>,
    /// The graphs of the pattern that the rules have, too.
    scope: &'a Scope,
    of_pattern: &'a Scope,
}

/// One search, as somebody sees one state.
struct Search<'s, 'q> {
    view: &'s Arc<ReadView>,
    reader: &'s TextReader,
    query: &'s Query,
    /// What takes literals in the language that is asked for.
    language: Option<TextRules>,
    rule: &'s TextRule,
    normaliser: &'s Normaliser<'q>,
}

impl Search<'_, '_> {
    /// The best hits that can be kept, the best first, and whether there were more. Those that the
    /// asker would find in an index of what they see.
    fn hits(&self, most: usize) -> Result<(Vec<Found>, bool)> {
        let context = self.normaliser.context;
        let patience = context.patience();
        let mut best = Best::new(most);
        let mut unpaid = 0;
        // The search is asked to end as soon as something fails in what it calls.
        let failed: Cell<Option<QueryError>> = Cell::new(None);
        let has_failed = || {
            let failure = failed.take();
            let is_some = failure.is_some();
            failed.set(failure);
            is_some
        };
        let searched = self.reader.search(
            self.query,
            &mut || !has_failed() && patience.check().is_ok(),
            &mut |id, score| {
                if has_failed() {
                    return;
                }
                let taken = self.is_for_asker(id).and_then(|is_for_asker| {
                    if !is_for_asker {
                        return patience.check().map_err(QueryError::from);
                    }
                    best.add(Found { id, score });
                    unpaid += 1;
                    match unpaid >= PORTION {
                        true => Ok(context.spend_planning(std::mem::take(&mut unpaid))?),
                        false => Ok(()),
                    }
                });
                failed.set(taken.err());
            },
        );
        context.spend_planning(unpaid)?;
        if let Some(error) = failed.take() {
            return Err(error);
        }
        patience.check()?;
        searched?;
        Ok(best.finish())
    }

    /// Whether an index of what the asker sees would have a literal.
    fn is_for_asker(&self, id: TermId) -> Result<bool> {
        match self.sees_all() {
            true => Ok(true),
            false => self.rule.has_quad(self.view, id),
        }
    }

    fn sees_all(&self) -> bool {
        self.view.scope().graphs().is_none()
    }

    /// All literals that match and that the asker sees; those alone that stand in a quad of the
    /// rules, if no pattern asks for that.
    fn all(&self, is_alone: bool) -> Result<Vec<Found>> {
        let (mut hits, has_more) = self.hits(HITS_MAX)?;
        if has_more {
            return Err(QueryError::unsupported(format!(
                "a search that more than {HITS_MAX} literals match, without text:limit"
            )));
        }
        // Who does not see all gets no others anyway.
        let needs_quad = self.sees_all() && is_alone && self.rule.is_of_quads();
        if needs_quad || self.language.is_some() {
            let mut kept = Vec::with_capacity(hits.len());
            for hit in hits {
                self.normaliser.context.patience().check()?;
                let is_there = !needs_quad || self.rule.has_quad(self.view, hit.id)?;
                if is_there && self.is_in_language(hit.id)? {
                    kept.push(hit);
                }
            }
            hits = kept;
        }
        Ok(hits)
    }

    fn is_in_language(&self, id: TermId) -> Result<bool> {
        let Some(rules) = &self.language else {
            return Ok(true);
        };
        Ok(rules.text_of(&self.normaliser.context.term(id)?).is_some())
    }

    /// The first so many solutions, the best first.
    fn best_rows(&self, request: &Request, limit: usize, asked: &Asked<'_>) -> Result<Vec<Row>> {
        let Some(subject) = self.constant_subject(request)? else {
            return Ok(Vec::new());
        };
        let mut most = limit.saturating_mul(2).clamp(FIRST_HITS, HITS_MAX);
        loop {
            let (hits, has_more) = self.hits(most)?;
            let mut rows = Vec::new();
            for hit in &hits {
                if rows.len() >= limit {
                    break;
                }
                self.normaliser.context.patience().check()?;
                if !self.is_in_language(hit.id)? {
                    continue;
                }
                self.quads_of(*hit, subject, asked, limit, &mut rows)?;
            }
            if rows.len() >= limit || !has_more {
                rows.truncate(limit);
                return Ok(rows);
            }
            if most == HITS_MAX {
                return Err(QueryError::unsupported(format!(
                    "a search whose {HITS_MAX} best literals have less than text:limit quads; write a query that fewer literals match"
                )));
            }
            most = most.saturating_mul(8).min(HITS_MAX);
        }
    }

    /// The subject that solutions have to have: `Some(None)` any, `None` one that no quad has.
    fn constant_subject(&self, request: &Request) -> Result<Option<Option<TermId>>> {
        use spargebra::term::TermPattern;
        let term = match &request.entity {
            Some(TermPattern::NamedNode(node)) => Term::iri(node.as_str().to_owned()),
            _ => return Ok(Some(None)),
        };
        Ok(self.view.id_in_quads(&term)?.map(Some))
    }

    fn quads_of(
        &self,
        hit: Found,
        subject: Option<TermId>,
        asked: &Asked<'_>,
        limit: usize,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let Some(index) = self.view.index(Permutation::Ospg) else {
            return Ok(());
        };
        let range = match subject {
            Some(subject) => index.range(&[hit.id, subject])?,
            None => index.range(&[hit.id])?,
        };
        let mut scan = index.scan(range, [true; COLUMNS]);
        let mut last = None;
        while let Some(vector) = scan.next_vector()? {
            let columns: [&[u64]; COLUMNS] = std::array::from_fn(|column| vector.column(column));
            for row in 0..columns[0].len() {
                let quad = columns.map(|column| TermId::from_bits(column[row]));
                let [object, subject, predicate, graph] = quad;
                let scope = asked.scope;
                let is_asked = asked
                    .predicates
                    .is_none_or(|asked| asked.contains(&predicate));
                // Of a merge of graphs each triple comes once.
                let triple = (object, subject, predicate);
                let is_known = scope.variable().is_none() && last == Some(triple);
                let of_class = (graph, asked.of_pattern);
                if !is_asked
                    || is_known
                    || !is_in(scope, graph)
                    || !self.rule.has_class(self.view, subject, of_class)?
                {
                    continue;
                }
                last = Some(triple);
                rows.push(Row {
                    quad,
                    score: hit.score,
                });
                if rows.len() >= limit {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The predicates that solutions may have, if not all; those that no quad has are left out.
fn predicates(
    view: &ReadView,
    request: &Request,
    rules: &TextRules,
) -> Result<Option<Vec<TermId>>> {
    let asked: Vec<&str> = match request.properties.as_slice() {
        [] if rules.predicates.is_empty() => return Ok(None),
        [] => rules.predicates.iter().map(String::as_str).collect(),
        iris => {
            let covered = |iri: &str| {
                rules.predicates.is_empty() || rules.predicates.iter().any(|known| known == iri)
            };
            if let Some(other) = iris.iter().find(|iri| !covered(iri)) {
                let known = rules.predicates.join("> <");
                return Err(QueryError::unsupported(format!(
                    "text:property <{other}>: the index of texts has <{known}> only; `orrery text create` makes one of others"
                )));
            }
            iris.iter().map(String::as_str).collect()
        }
    };
    let mut ids = Vec::with_capacity(asked.len());
    for iri in asked {
        ids.extend(view.id_in_quads(&Term::iri(iri.to_owned()))?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

fn language_rules(language: &str) -> TextRules {
    TextRules {
        languages: vec![language.to_owned()],
        ..TextRules::default()
    }
}

fn is_in(scope: &Scope, graph: TermId) -> bool {
    match scope {
        Scope::Default => graph == TermId::DEFAULT_GRAPH,
        Scope::Union(graphs) => graphs.contains(&graph),
        Scope::AllUnion => true,
        Scope::Named(name) => graph == *name,
        Scope::NamedVariable { allowed, .. } => {
            graph != TermId::DEFAULT_GRAPH
                && allowed
                    .as_ref()
                    .is_none_or(|allowed| allowed.contains(&graph))
        }
    }
}

fn check_different(variables: &[Var]) -> Result<()> {
    let mut sorted: Vec<Var> = variables.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).any(|two| two[0] == two[1]) {
        true => Err(QueryError::unsupported(
            "a search that binds the variable of its graph in another way, too",
        )),
        false => Ok(()),
    }
}

fn no_index() -> QueryError {
    QueryError::unsupported(
        "a search in a state that has no index of texts; `orrery text create --db DIR` makes one",
    )
}
