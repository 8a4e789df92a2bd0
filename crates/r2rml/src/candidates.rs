//! The selection of rules that can produce triples for a pattern, by their term maps alone.

use orrery_term::vocabulary::xsd;
use orrery_term::{LiteralKind, Term};

use crate::rules::{Column, Maker, MakerValue, TermKind};
use crate::template::{Inverse, Piece, Template};

impl Maker<Column> {
    /// Whether a row may give a term. What is not known is said to be possible.
    pub(crate) fn can_be(&self, term: &Term<'_>) -> bool {
        if let MakerValue::Constant(constant) = &self.value {
            return constant == term;
        }
        match (&self.kind, term) {
            (TermKind::Iri { is_absolute }, Term::Iri(iri)) => match &self.value {
                MakerValue::Template(template) if *is_absolute => {
                    template.inverse(iri) != Inverse::Never
                }
                _ => true,
            },
            (TermKind::Typed(datatype), Term::Literal(literal)) => {
                let datatype = datatype.as_deref().unwrap_or(xsd::STRING);
                match &literal.kind {
                    LiteralKind::String => datatype == xsd::STRING,
                    LiteralKind::Typed(other) => datatype == other.as_ref(),
                    LiteralKind::Language(_) | LiteralKind::Directional(..) => false,
                }
            }
            (TermKind::Language(tag), Term::Literal(literal)) => {
                matches!(&literal.kind, LiteralKind::Language(other) if other == tag)
            }
            // Blank nodes of a mapping have no names by which a query could ask.
            (TermKind::Iri { .. } | TermKind::BlankNode, _)
            | (TermKind::Typed(_) | TermKind::Language(_), _) => false,
        }
    }

    /// Whether no term is made by both. What is not known is said to be possible.
    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (MakerValue::Constant(term), _) => return !other.can_be(term),
            (_, MakerValue::Constant(term)) => return !self.can_be(term),
            _ => {}
        }
        match (&self.kind, &other.kind) {
            (TermKind::Iri { is_absolute: true }, TermKind::Iri { is_absolute: true }) => {
                match (&self.value, &other.value) {
                    (MakerValue::Template(one), MakerValue::Template(two)) => {
                        are_disjoint(one, two)
                    }
                    _ => false,
                }
            }
            (TermKind::Iri { .. }, TermKind::Iri { .. })
            | (TermKind::BlankNode, TermKind::BlankNode) => match (&self.value, &other.value) {
                // Labels are not encoded, and stand for themselves.
                (MakerValue::Template(one), MakerValue::Template(two)) => {
                    let (one, two) = (first_text(one), first_text(two));
                    self.kind == TermKind::BlankNode
                        && !one.starts_with(two)
                        && !two.starts_with(one)
                }
                _ => false,
            },
            (TermKind::Typed(one), TermKind::Typed(two)) => {
                let of = |datatype: &Option<String>| {
                    datatype.clone().unwrap_or_else(|| xsd::STRING.to_owned())
                };
                of(one) != of(two)
            }
            (TermKind::Language(one), TermKind::Language(two)) => one != two,
            _ => true,
        }
    }
}

fn first_text(template: &Template<Column>) -> &str {
    match template.pieces.first() {
        Some(Piece::Text(text)) => text,
        _ => "",
    }
}

/// Whether two templates of absolute IRIs have no IRI in common: they begin otherwise, or have
/// other separators, which no encoded value has.
fn are_disjoint(one: &Template<Column>, two: &Template<Column>) -> bool {
    let (first, second) = (first_text(one), first_text(two));
    if !first.starts_with(second) && !second.starts_with(first) {
        return true;
    }
    const SEPARATORS: [char; 16] = [
        '/', '#', '?', ':', ';', '=', '&', '@', '!', '$', '\'', '(', ')', '*', '+', ',',
    ];
    let separators = |template: &Template<Column>| -> String {
        let texts = template.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Column(_) => None,
        });
        texts
            .flat_map(|text| text.chars().filter(|char| SEPARATORS.contains(char)))
            .collect()
    };
    separators(one) != separators(two)
}
