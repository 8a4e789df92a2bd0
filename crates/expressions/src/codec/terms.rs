//! The encoding of terms.

use oxrdf::vocab::xsd;
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, Variable};
use serde::{Deserialize, Serialize};
use spargebra::term::{GroundTerm, GroundTriple, NamedNodePattern, TermPattern, TriplePattern};

use super::error::CodecError;

/// Triple terms nested deeper do not travel.
const TRIPLE_DEPTH_MAX: usize = 24;

/// A term or a variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum TermText {
    Iri(String),
    Blank(String),
    Variable(String),
    /// An `xsd:string`.
    Text(String),
    Typed(String, String),
    Language(String, String),
    Directional {
        text: String,
        language: String,
        is_rtl: bool,
    },
    Triple(Box<[TermText; 3]>),
}

impl From<&Literal> for TermText {
    fn from(literal: &Literal) -> Self {
        let text = literal.value().to_owned();
        match (literal.language(), literal.direction()) {
            (Some(language), Some(direction)) => Self::Directional {
                text,
                language: language.to_owned(),
                is_rtl: direction == BaseDirection::Rtl,
            },
            (Some(language), None) => Self::Language(text, language.to_owned()),
            (None, _) if literal.datatype() == xsd::STRING => Self::Text(text),
            (None, _) => Self::Typed(text, literal.datatype().as_str().to_owned()),
        }
    }
}

impl From<&NamedNode> for TermText {
    fn from(node: &NamedNode) -> Self {
        Self::Iri(node.as_str().to_owned())
    }
}

impl From<&Variable> for TermText {
    fn from(variable: &Variable) -> Self {
        Self::Variable(variable.as_str().to_owned())
    }
}

impl From<&NamedNodePattern> for TermText {
    fn from(pattern: &NamedNodePattern) -> Self {
        match pattern {
            NamedNodePattern::NamedNode(node) => node.into(),
            NamedNodePattern::Variable(variable) => variable.into(),
        }
    }
}

fn too_deep() -> CodecError {
    CodecError::CannotTravel(format!(
        "a triple term of more than {TRIPLE_DEPTH_MAX} levels"
    ))
}

impl TermText {
    pub(super) fn of_pattern(term: &TermPattern) -> Result<Self, CodecError> {
        Self::of_pattern_within(term, TRIPLE_DEPTH_MAX)
    }

    fn of_pattern_within(term: &TermPattern, depth: usize) -> Result<Self, CodecError> {
        Ok(match term {
            TermPattern::NamedNode(node) => node.into(),
            TermPattern::BlankNode(node) => Self::Blank(node.as_str().to_owned()),
            TermPattern::Literal(literal) => literal.into(),
            TermPattern::Variable(variable) => variable.into(),
            TermPattern::Triple(triple) => {
                let below = depth.checked_sub(1).ok_or_else(too_deep)?;
                Self::Triple(Box::new(Self::of_triple(triple, below)?))
            }
        })
    }

    fn of_triple(triple: &TriplePattern, depth: usize) -> Result<[Self; 3], CodecError> {
        Ok([
            Self::of_pattern_within(&triple.subject, depth)?,
            (&triple.predicate).into(),
            Self::of_pattern_within(&triple.object, depth)?,
        ])
    }

    pub(super) fn triple_of(triple: &TriplePattern) -> Result<[Self; 3], CodecError> {
        Self::of_triple(triple, TRIPLE_DEPTH_MAX)
    }

    pub(super) fn of_ground(term: &GroundTerm) -> Result<Self, CodecError> {
        Self::of_ground_within(term, TRIPLE_DEPTH_MAX)
    }

    fn of_ground_within(term: &GroundTerm, depth: usize) -> Result<Self, CodecError> {
        Ok(match term {
            GroundTerm::NamedNode(node) => node.into(),
            GroundTerm::Literal(literal) => literal.into(),
            GroundTerm::Triple(triple) => {
                let below = depth.checked_sub(1).ok_or_else(too_deep)?;
                Self::Triple(Box::new([
                    (&triple.subject).into(),
                    (&triple.predicate).into(),
                    Self::of_ground_within(&triple.object, below)?,
                ]))
            }
        })
    }

    fn wrong(&self, wanted: &str) -> CodecError {
        CodecError::damaged(format!("{self:?} stands where {wanted} should"))
    }

    pub(super) fn into_node(self) -> Result<NamedNode, CodecError> {
        match self {
            Self::Iri(iri) => Ok(NamedNode::new_unchecked(iri)),
            other => Err(other.wrong("an IRI")),
        }
    }

    pub(super) fn into_node_pattern(self) -> Result<NamedNodePattern, CodecError> {
        match self {
            Self::Variable(name) => Ok(Variable::new_unchecked(name).into()),
            other => Ok(other.into_node()?.into()),
        }
    }

    pub(super) fn into_literal(self) -> Result<Literal, CodecError> {
        Ok(match self {
            Self::Text(text) => Literal::new_simple_literal(text),
            Self::Typed(text, datatype) => {
                Literal::new_typed_literal(text, NamedNode::new_unchecked(datatype))
            }
            Self::Language(text, language) => {
                Literal::new_language_tagged_literal_unchecked(text, language)
            }
            Self::Directional {
                text,
                language,
                is_rtl,
            } => {
                let direction = match is_rtl {
                    true => BaseDirection::Rtl,
                    false => BaseDirection::Ltr,
                };
                Literal::new_directional_language_tagged_literal_unchecked(
                    text, language, direction,
                )
            }
            other => return Err(other.wrong("a literal")),
        })
    }

    pub(super) fn into_pattern(self) -> Result<TermPattern, CodecError> {
        Ok(match self {
            Self::Iri(iri) => NamedNode::new_unchecked(iri).into(),
            Self::Variable(name) => Variable::new_unchecked(name).into(),
            Self::Blank(name) => {
                let node = BlankNode::new(name);
                node.map_err(|error| CodecError::damaged(error.to_string()))?
                    .into()
            }
            Self::Triple(parts) => TermPattern::Triple(Box::new(Self::into_triple(*parts)?)),
            literal @ (Self::Text(_)
            | Self::Typed(..)
            | Self::Language(..)
            | Self::Directional { .. }) => literal.into_literal()?.into(),
        })
    }

    pub(super) fn into_triple(parts: [Self; 3]) -> Result<TriplePattern, CodecError> {
        let [subject, predicate, object] = parts;
        Ok(TriplePattern {
            subject: subject.into_pattern()?,
            predicate: predicate.into_node_pattern()?,
            object: object.into_pattern()?,
        })
    }

    pub(super) fn into_ground(self) -> Result<GroundTerm, CodecError> {
        Ok(match self {
            Self::Iri(iri) => NamedNode::new_unchecked(iri).into(),
            Self::Triple(parts) => {
                let [subject, predicate, object] = *parts;
                GroundTerm::Triple(Box::new(GroundTriple {
                    subject: subject.into_node()?,
                    predicate: predicate.into_node()?,
                    object: object.into_ground()?,
                }))
            }
            Self::Blank(_) | Self::Variable(_) => return Err(self.wrong("a term")),
            literal @ (Self::Text(_)
            | Self::Typed(..)
            | Self::Language(..)
            | Self::Directional { .. }) => literal.into_literal()?.into(),
        })
    }
}
