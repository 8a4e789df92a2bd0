//! Updates.

use spargebra::algebra::{GraphPattern, GraphTarget, QueryDataset};
use spargebra::term::{
    GraphName, GraphNamePattern, GroundQuad, GroundQuadPattern, NamedNode, Quad, QuadPattern,
    Variable,
};
use spargebra::{GraphUpdateOperation, Update};

use super::literal::is_iri;
use super::triples::{Elements, Place, begins_triples, is_triples, join, triple};
use super::{Parsed, Parser};
use crate::error::ErrorKind;
use crate::expected::Thing;
use crate::token::TokenKind;
use crate::word::Keyword;

impl<'t> Parser<'t, '_> {
    /// An update and nothing behind it.
    pub(crate) fn update_unit(&mut self) -> Parsed<Update> {
        let mut operations = Vec::new();
        let mut number = 0;
        loop {
            self.prologue()?;
            if !self.at_operation() {
                break;
            }
            number += 1;
            self.begin_operation();
            if let Err(failure) = self.operation_of_update(number, &mut operations) {
                self.recover_in_update(failure)?;
            }
            self.labels.clear();
            if !self.eat(TokenKind::Semicolon) {
                break;
            }
        }
        if !self.at_thing(Thing::End, |it| it == TokenKind::End) {
            let failure = self.behind_update(number > 0);
            self.report(failure)?;
        }
        Ok(Update {
            operations,
            base_iri: self.base.clone(),
        })
    }

    /// Whether an operation begins here.
    fn at_operation(&mut self) -> bool {
        // All of them are asked for, for all may stand here.
        let mut is_here = false;
        for keyword in Keyword::OPERATIONS {
            is_here |= self.at_keyword(keyword);
        }
        is_here
    }

    fn operation_of_update(
        &mut self,
        number: usize,
        operations: &mut Vec<GraphUpdateOperation>,
    ) -> Parsed<()> {
        let TokenKind::Keyword(keyword) = self.token.kind else {
            return Err(self.unexpected());
        };
        match keyword {
            Keyword::Insert | Keyword::Delete | Keyword::With => {
                let operation = self.change(number)?;
                operations.push(operation);
                return Ok(());
            }
            _ => self.bump(),
        };
        let silent = self.eat_keyword(Keyword::Silent);
        match keyword {
            Keyword::Load => {
                let source = self.iri()?;
                let destination = match self.eat_keyword(Keyword::Into) {
                    true => GraphName::NamedNode(self.graph_ref()?),
                    false => GraphName::DefaultGraph,
                };
                operations.push(GraphUpdateOperation::Load {
                    silent,
                    source,
                    destination,
                });
            }
            Keyword::Clear => {
                let graph = self.target()?;
                operations.push(GraphUpdateOperation::Clear { silent, graph });
            }
            Keyword::Drop if self.at_word("EDGE") => {
                operations.push(self.drop_edge_weight(silent)?);
            }
            Keyword::Drop => {
                let graph = self.target()?;
                operations.push(GraphUpdateOperation::Drop { silent, graph });
            }
            Keyword::Create if self.at_word("EDGE") || self.at_word("OR") => {
                operations.push(self.create_edge_weight(silent)?);
            }
            Keyword::Create => {
                let graph = self.graph_ref()?;
                operations.push(GraphUpdateOperation::Create { silent, graph });
            }
            // ADD, MOVE, COPY, rewritten as SPARQL 1.1 Update, 3.2.3 to 3.2.5, does.
            _ => {
                let from = self.graph_or_default()?;
                if !self.eat_keyword(Keyword::To) {
                    return Err(self.no_keyword(Keyword::To));
                }
                let to = self.graph_or_default()?;
                if from == to {
                    return Ok(());
                }
                if keyword != Keyword::Add {
                    operations.push(GraphUpdateOperation::Drop {
                        silent: true,
                        graph: to.clone().into(),
                    });
                }
                operations.push(copy(from.clone(), to));
                if keyword == Keyword::Move {
                    operations.push(GraphUpdateOperation::Drop {
                        silent,
                        graph: from.into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// `GRAPH <iri>`.
    fn graph_ref(&mut self) -> Parsed<NamedNode> {
        if !self.eat_keyword(Keyword::Graph) {
            return Err(match is_iri(self.token.kind) {
                true => self.no_keyword(Keyword::Graph),
                false => self.unexpected(),
            });
        }
        self.iri()
    }

    fn target(&mut self) -> Parsed<GraphTarget> {
        if self.eat_keyword(Keyword::Default) {
            return Ok(GraphTarget::DefaultGraph);
        }
        if self.eat_keyword(Keyword::Named) {
            return Ok(GraphTarget::NamedGraphs);
        }
        if self.eat_keyword(Keyword::All) {
            return Ok(GraphTarget::AllGraphs);
        }
        Ok(self.graph_ref()?.into())
    }

    fn graph_or_default(&mut self) -> Parsed<GraphName> {
        if self.eat_keyword(Keyword::Default) {
            return Ok(GraphName::DefaultGraph);
        }
        self.eat_keyword(Keyword::Graph);
        Ok(GraphName::NamedNode(self.iri()?))
    }

    /// What begins with `INSERT`, `DELETE` or `WITH`.
    fn change(&mut self, number: usize) -> Parsed<GraphUpdateOperation> {
        if self.at_keyword(Keyword::Insert) && self.second_is(Keyword::Data) {
            self.bump();
            self.bump();
            let data = self.inserted_data(number)?;
            return Ok(GraphUpdateOperation::InsertData { data });
        }
        if self.at_keyword(Keyword::Delete) && self.second_is(Keyword::Data) {
            self.bump();
            self.bump();
            let data = self.deleted_data()?;
            return Ok(GraphUpdateOperation::DeleteData { data });
        }
        if self.at_keyword(Keyword::Delete) && self.second_is(Keyword::Where) {
            self.bump();
            self.bump();
            return self.delete_where();
        }
        self.modify()
    }

    fn second_is(&self, keyword: Keyword) -> bool {
        self.second().kind == TokenKind::Keyword(keyword)
    }

    fn inserted_data(&mut self, number: usize) -> Parsed<Vec<Quad>> {
        let (mut data, mut lost) = (Vec::new(), 0_usize);
        self.quads(
            Place::InsertedData(number),
            &mut |quad| match Quad::try_from(quad) {
                Ok(quad) => data.push(quad),
                Err(()) => lost += 1,
            },
        )?;
        self.check_lost(lost, ErrorKind::InvalidSubject)?;
        Ok(data)
    }

    fn deleted_data(&mut self) -> Parsed<Vec<GroundQuad>> {
        let (mut data, mut lost) = (Vec::new(), 0_usize);
        self.quads(Place::DeletedData, &mut |quad| match Quad::try_from(quad)
            .and_then(GroundQuad::try_from)
        {
            Ok(quad) => data.push(quad),
            Err(()) => lost += 1,
        })?;
        self.check_lost(lost, ErrorKind::BlankNodeInDelete)?;
        Ok(data)
    }

    /// What cannot be said was told where it stands, and is left out. Were it not, it would vanish
    /// here.
    fn check_lost(&mut self, lost: usize, kind: ErrorKind) -> Parsed<()> {
        if lost == 0 || !self.errors.is_empty() {
            return Ok(());
        }
        let failure = self.error_at(self.previous, kind);
        self.report(failure)
    }

    /// What is to go.
    fn ground(&mut self, quads: Vec<QuadPattern>) -> Parsed<Vec<GroundQuadPattern>> {
        let count = quads.len();
        let quads = quads.into_iter().map(GroundQuadPattern::try_from);
        let quads: Vec<GroundQuadPattern> = quads.filter_map(Result::ok).collect();
        self.check_lost(count - quads.len(), ErrorKind::BlankNodeInDelete)?;
        Ok(quads)
    }

    fn delete_where(&mut self) -> Parsed<GraphUpdateOperation> {
        let mut quads = Vec::new();
        self.quads(Place::Deletion, &mut |quad| quads.push(quad))?;
        let mut pattern = GraphPattern::default();
        for quad in &quads {
            let triple = triple(
                quad.subject.clone(),
                quad.predicate.clone(),
                quad.object.clone(),
            );
            let bgp = GraphPattern::Bgp {
                patterns: vec![triple],
            };
            let name = match &quad.graph_name {
                GraphNamePattern::DefaultGraph => None,
                GraphNamePattern::NamedNode(name) => Some(name.clone().into()),
                GraphNamePattern::Variable(name) => Some(name.clone().into()),
            };
            let next = match name {
                Some(name) => {
                    self.deeper()?;
                    GraphPattern::Graph {
                        name,
                        inner: Box::new(bgp),
                    }
                }
                None => bgp,
            };
            if !(is_triples(&pattern) && is_triples(&next)) {
                self.deeper()?;
            }
            pattern = join(pattern, next);
        }
        Ok(GraphUpdateOperation::DeleteInsert {
            delete: self.ground(quads)?,
            insert: Vec::new(),
            using: None,
            pattern: Box::new(pattern),
        })
    }

    fn modify(&mut self) -> Parsed<GraphUpdateOperation> {
        let with = match self.eat_keyword(Keyword::With) {
            true => Some(self.iri()?),
            false => None,
        };
        if self.second_is(Keyword::Data) {
            return Err(self.data_with_graph());
        }
        let (mut delete, mut insert) = (Vec::new(), Vec::new());
        let mut is_change = false;
        if self.eat_keyword(Keyword::Delete) {
            self.check_table(Keyword::From)?;
            self.quads(Place::Deletion, &mut |quad| delete.push(quad))?;
            is_change = true;
        }
        self.labels.clear();
        if self.eat_keyword(Keyword::Insert) {
            self.check_table(Keyword::Into)?;
            self.quads(Place::Template, &mut |quad| insert.push(quad))?;
            is_change = true;
        }
        self.labels.clear();
        if !is_change {
            return Err(self.unexpected());
        }
        let mut using = self.dataset(Keyword::Using)?;
        let has_where = self.eat_keyword(Keyword::Where);
        if !has_where {
            let failure = self.no_where();
            self.report(failure)?;
        }
        let mark = self.scope.mark();
        let pattern = match has_where || self.token.kind == TokenKind::LeftBrace {
            true => self.group()?,
            false => GraphPattern::default(),
        };
        self.scope.forget(mark);
        let mut delete = self.ground(delete)?;
        if let Some(with) = with {
            self.copies((delete.len() + insert.len()).saturating_mul(with.as_str().len()))?;
            for quad in &mut delete {
                put_graph(&mut quad.graph_name, &with);
            }
            for quad in &mut insert {
                put_graph(&mut quad.graph_name, &with);
            }
            using.get_or_insert(QueryDataset {
                default: vec![with],
                named: None,
            });
        }
        Ok(GraphUpdateOperation::DeleteInsert {
            delete,
            insert,
            using,
            pattern: Box::new(pattern),
        })
    }

    /// `DELETE FROM`, `INSERT INTO`.
    fn check_table(&self, keyword: Keyword) -> Parsed<()> {
        match self.token.kind == TokenKind::Keyword(keyword) {
            true => Err(self.no_table()),
            false => Ok(()),
        }
    }

    /// Quads in braces.
    fn quads(&mut self, place: Place, out: &mut dyn FnMut(QuadPattern)) -> Parsed<()> {
        let depth = self.open_brace()?;
        let mut elements = Elements::default();
        loop {
            let result = self.quads_inside(place, &mut elements, out);
            match result {
                Ok(()) if self.at(TokenKind::RightBrace) => break,
                Ok(()) if self.token.kind == TokenKind::End => break,
                Ok(()) => {
                    let failure =
                        self.no_quad("put it into the last braces of `DELETE { .. } WHERE { .. }`");
                    self.recover_in_group(failure, depth)?;
                }
                Err(failure) => self.recover_in_group(failure, depth)?,
            }
            if self.token.kind == TokenKind::End {
                break;
            }
        }
        self.close(TokenKind::RightBrace)
    }

    fn quads_inside(
        &mut self,
        place: Place,
        elements: &mut Elements,
        out: &mut dyn FnMut(QuadPattern),
    ) -> Parsed<()> {
        let mut may_be_triples = true;
        loop {
            if may_be_triples && self.at_thing(Thing::Term, begins_triples) {
                self.statements(place, elements, &GraphNamePattern::DefaultGraph, out)?;
                may_be_triples = false;
            } else if self.eat_keyword(Keyword::Graph) {
                if matches!(place, Place::InsertedData(_) | Place::DeletedData)
                    && self.token.kind == TokenKind::Variable
                {
                    let failure = self.error(ErrorKind::VariableInData);
                    self.report(failure)?;
                }
                let graph = GraphNamePattern::from(self.variable_or_iri()?);
                if !self.at(TokenKind::LeftBrace) {
                    let previous = self.previous;
                    return Err(self.no_bracket("{", previous));
                }
                self.open(TokenKind::LeftBrace, "{")?;
                if self.at_thing(Thing::Term, begins_triples) {
                    self.statements(place, elements, &graph, out)?;
                }
                self.close(TokenKind::RightBrace)?;
                self.eat(TokenKind::Dot);
                may_be_triples = true;
            } else {
                return Ok(());
            }
        }
    }

    /// Triples of a graph. Each subject's go out before the next is read, so that long data are
    /// there once.
    fn statements(
        &mut self,
        place: Place,
        elements: &mut Elements,
        graph: &GraphNamePattern,
        out: &mut dyn FnMut(QuadPattern),
    ) -> Parsed<()> {
        loop {
            let result = self.triples_of_subject(place, elements);
            // Behind an error, too: what was read belongs to this graph.
            for triple in elements.drain_triples() {
                if let GraphNamePattern::NamedNode(name) = graph {
                    self.copies(name.as_str().len())?;
                }
                out(QuadPattern {
                    subject: triple.subject,
                    predicate: triple.predicate,
                    object: triple.object,
                    graph_name: graph.clone(),
                });
            }
            result?;
            if !self.eat(TokenKind::Dot) || !self.at_thing(Thing::Term, begins_triples) {
                return Ok(());
            }
        }
    }
}

fn put_graph(name: &mut GraphNamePattern, with: &NamedNode) {
    if matches!(name, GraphNamePattern::DefaultGraph) {
        *name = with.clone().into();
    }
}

fn copy(from: GraphName, to: GraphName) -> GraphUpdateOperation {
    let variable = Variable::new_unchecked;
    let bgp = GraphPattern::Bgp {
        patterns: vec![triple(variable("s"), variable("p"), variable("o"))],
    };
    GraphUpdateOperation::DeleteInsert {
        delete: Vec::new(),
        insert: vec![QuadPattern {
            subject: variable("s").into(),
            predicate: variable("p").into(),
            object: variable("o").into(),
            graph_name: to.into(),
        }],
        using: None,
        pattern: Box::new(match from {
            GraphName::NamedNode(from) => GraphPattern::Graph {
                name: from.into(),
                inner: Box::new(bgp),
            },
            GraphName::DefaultGraph => bgp,
        }),
    }
}
