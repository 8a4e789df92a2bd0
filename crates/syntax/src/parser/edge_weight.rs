//! `CREATE EDGE WEIGHT`, `DROP EDGE WEIGHT`, and weights as edges of `PATHS`.
//!
//! ```text
//! CREATE [OR REPLACE] EDGE WEIGHT <name> [START ?x END ?y] [BOTH WAYS] FROM { pattern } AS expression
//!   --> SELECT ?x ?y (expression AS ?weight) WHERE { pattern } GROUP BY ?x ?y          what is kept, with the prefixes that it needs
//! ```
//!
//! An expression without an aggregate is taken as the least of those of the pair's rows.
//! `BOTH WAYS` also matches the pattern with its two ends exchanged: done with the words of the
//! text, so that what is kept is SPARQL that anybody can read and run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use spargebra::GraphUpdateOperation;
use spargebra::term::{NamedNode, Variable};

use super::literal::is_plain_iri;
use super::{Aggregates, Parsed, Parser};
use crate::edge_weight::WeightStatement;
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::lexer::Lexer;
use crate::names::VariableId;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// What the ends are called where `START` and `END` do not say it.
const ENDS: [&str; 2] = ["x", "y"];

/// The name of an end and its number.
type End = (VariableId, Variable);

impl<'t> Parser<'t, '_> {
    /// Behind `CREATE`.
    pub(super) fn create_edge_weight(&mut self, is_silent: bool) -> Parsed<GraphUpdateOperation> {
        let replaces = self.eat_word("OR");
        if replaces {
            if !self.at_name("REPLACE") {
                return Err(self.no_word("REPLACE", "write CREATE OR REPLACE EDGE WEIGHT <name>"));
            }
            self.bump();
        }
        let name = self.name_of_weight()?;
        let ends = self.ends_of_weight()?;
        let is_both_ways = self.eat_word("BOTH");
        if is_both_ways {
            self.expect_word("WAYS", "write BOTH WAYS before FROM")?;
        }
        let definition = self.definition_of_weight(&ends, is_both_ways)?;
        let statement = WeightStatement::Create {
            name,
            definition,
            replaces,
            is_silent,
        };
        Ok(statement.into_operation())
    }

    /// Behind `DROP`.
    pub(super) fn drop_edge_weight(&mut self, is_silent: bool) -> Parsed<GraphUpdateOperation> {
        let name = self.name_of_weight()?;
        Ok(WeightStatement::Drop { name, is_silent }.into_operation())
    }

    /// `EDGE WEIGHT <name>`.
    fn name_of_weight(&mut self) -> Parsed<NamedNode> {
        self.expect_word("EDGE", "write CREATE EDGE WEIGHT <name> FROM { .. } AS ..")?;
        self.expect_word("WEIGHT", "write EDGE WEIGHT <name>")?;
        self.iri()
    }

    /// `START ?x END ?y`.
    fn ends_of_weight(&mut self) -> Parsed<[End; 2]> {
        if !self.eat_word("START") {
            return Ok(ENDS.map(|name| (self.names.id(name), Variable::new_unchecked(name))));
        }
        let start = self.end_of_weight()?;
        self.expect_word("END", "write START ?x END ?y")?;
        let end = self.end_of_weight()?;
        if start.0 == end.0 {
            let variable = end.1.as_str().to_owned();
            let failure = self.error_at(self.previous, ErrorKind::RepeatedVariable { variable });
            let note = "START and END name the two ends of an edge";
            return Err(failure.with_hint(Hint::Note(note)));
        }
        Ok([start, end])
    }

    fn end_of_weight(&mut self) -> Parsed<End> {
        if !self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
            let part = "a variable";
            let failure = self.error(ErrorKind::MissingPart { part });
            let note =
                "START and END name the variables of the pattern that an edge leads from and to";
            return Err(failure.with_hint(Hint::Note(note)));
        }
        self.variable()
    }

    /// `FROM { .. } AS ..`, as the query that is kept.
    fn definition_of_weight(&mut self, ends: &[End; 2], is_both_ways: bool) -> Parsed<String> {
        if !self.eat_keyword(Keyword::From) {
            return Err(self.no_keyword(Keyword::From));
        }
        let mark = self.scope.mark();
        let brace = self.token;
        let pattern = self.group()?;
        let inside = (brace.start as usize, self.previous.end as usize);
        for (_, variable) in ends {
            let mut is_bound = false;
            pattern.on_in_scope_variable(|seen| is_bound |= seen == variable);
            if !is_bound {
                return Err(self.does_not_bind(variable, brace));
            }
        }
        if !self.eat_keyword(Keyword::As) {
            let note = "behind the pattern, AS gives the weight of a pair: AS SUM(?n)";
            return Err(self.no_word("AS", note));
        }
        let first = self.token.start as usize;
        let is_aggregated = self.weight_of_pair(ends)?;
        let weighed = (first, self.previous.end as usize);
        self.scope.forget(mark);
        let matched = match is_both_ways {
            true => self.both_ways(inside, ends)?,
            false => self.part(inside).to_owned(),
        };
        let weight = self.part(weighed);
        let weight = match is_aggregated {
            true => weight.to_owned(),
            false => format!("MIN({weight})"),
        };
        let mut column = "weight".to_owned();
        while self.names.all().contains(&column.as_str()) {
            column.push('_');
        }
        let [start, end] = [&ends[0].1, &ends[1].1];
        let mut text = self.prologue_of([inside, weighed]);
        let _infallible = write!(
            text,
            "SELECT {start} {end} ({weight} AS ?{column}) WHERE {matched} GROUP BY {start} {end}"
        );
        self.copies(text.len())?;
        Ok(text)
    }

    /// The expression; whether it has an aggregate.
    fn weight_of_pair(&mut self, ends: &[End; 2]) -> Parsed<bool> {
        let around = std::mem::take(&mut self.aggregates_found);
        let free = self.free.len();
        let expression = self.with_aggregates(Aggregates::Allowed, Self::expression);
        let needed = self.free.split_off(free);
        let found = std::mem::replace(&mut self.aggregates_found, around);
        expression?;
        if found.is_empty() {
            return Ok(false);
        }
        let is_of_pair = |id: VariableId| ends.iter().any(|end| end.0 == id);
        if let Some((id, token)) = needed.into_iter().find(|(id, _)| !is_of_pair(*id)) {
            let variable = self.names.name(id).to_owned();
            let kind = ErrorKind::NotGrouped {
                variable,
                has_group_by: false,
            };
            let note = "it stands inside of one, as in SUM(?n): a pair may have several rows";
            return Err(self.error_at(token, kind).with_hint(Hint::Note(note)));
        }
        Ok(true)
    }

    /// A part of the text, between two tokens.
    fn part(&self, (from, to): (usize, usize)) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// The tokens of a part of the text that was read.
    fn tokens_of(&self, (from, to): (usize, usize)) -> impl Iterator<Item = Token> + use<'t> {
        let mut lexer = Lexer::starting_at(self.text, from);
        std::iter::from_fn(move || Some(lexer.next_token()))
            .take_while(move |it| it.kind != TokenKind::End && (it.start as usize) < to)
    }

    /// Declarations of what these parts of the text need.
    fn prologue_of(&self, parts: [(usize, usize); 2]) -> String {
        let mut text = String::new();
        let mut prefixes = BTreeMap::new();
        let mut is_relative = false;
        for token in parts.into_iter().flat_map(|part| self.tokens_of(part)) {
            let written = self.text_of(token);
            match token.kind {
                TokenKind::PrefixedName => {
                    let prefix = written.split(':').next().unwrap_or_default();
                    let known = self.prefixes.get(prefix);
                    prefixes.extend(known.map(|known| (prefix, known.iri.as_str())));
                }
                TokenKind::Iri => is_relative |= !is_plain_iri(&written[1..written.len() - 1]),
                _ => {}
            }
        }
        if let (true, Some(base)) = (is_relative, &self.base) {
            let _infallible = writeln!(text, "BASE <{base}>");
        }
        for (prefix, iri) in prefixes {
            let _infallible = writeln!(text, "PREFIX {prefix}: <{iri}>");
        }
        text
    }

    /// A group with a pattern as it is, and with its ends exchanged: but for pairs of a node with
    /// itself, which would be found twice.
    fn both_ways(&mut self, inside: (usize, usize), ends: &[End; 2]) -> Parsed<String> {
        let [start, end] = [ends[0].1.as_str(), ends[1].1.as_str()];
        let pattern = self.part(inside);
        let (mut swapped, mut copied) = (String::new(), inside.0);
        for token in self.tokens_of(inside) {
            let written = self.text_of(token);
            let other = match token.kind {
                TokenKind::Variable if &written[1..] == start => format!("?{end}"),
                TokenKind::Variable if &written[1..] == end => format!("?{start}"),
                // The same label in two groups would be an error.
                TokenKind::BlankNodeLabel => format!("{written}_back"),
                // What is no IRI, but two signs with variables between them, must not be
                // overlooked.
                TokenKind::Iri
                    if written.contains(['?', '$'])
                        && !is_plain_iri(&written[1..written.len() - 1]) =>
                {
                    let character = '?';
                    let failure = self.error_at(token, ErrorKind::CharacterInIri { character });
                    let note =
                        "with BOTH WAYS, write the IRI whole, or put a blank behind the sign";
                    return Err(failure.with_hint(Hint::Note(note)));
                }
                _ => continue,
            };
            swapped.push_str(self.part((copied, token.start as usize)));
            swapped.push_str(&other);
            copied = token.end as usize;
        }
        swapped.push_str(self.part((copied, inside.1)));
        Ok(format!(
            "{{ {pattern} UNION {{ {swapped} FILTER(!sameTerm(?{start}, ?{end})) }} }}"
        ))
    }
}
