//! The values of one column of a batch.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int64Builder, StringBuilder, StructArray, TimestampMicrosecondBuilder,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use orrery_term::lexical::{parse_double, parse_float};
use orrery_term::{Direction, LiteralKind, Term};
use oxsdatatypes::Boolean;

use super::shape::{DECIMAL_DIGITS, Shape, days, decimal, integer, microseconds, term_fields};

/// Builds a column of a shape. All values are of the shape, else they come out as null.
pub(super) enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Decimal(Decimal128Builder, u8),
    Double(Float64Builder),
    Float(Float32Builder),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    Time(TimestampMicrosecondBuilder, Option<Arc<str>>),
    Terms(Box<TermsBuilder>),
}

/// Builds a column of structs.
#[derive(Default)]
pub(super) struct TermsBuilder {
    kind: StringBuilder,
    value: StringBuilder,
    datatype: StringBuilder,
    language: StringBuilder,
    is_bound: Vec<bool>,
}

impl ColumnBuilder {
    pub(super) fn new(shape: &Shape<'_>) -> Self {
        match shape {
            Shape::Empty
            | Shape::Iri
            | Shape::BlankNode
            | Shape::String
            | Shape::Language(_)
            | Shape::Typed(_) => Self::Text(StringBuilder::new()),
            Shape::Integer(_) => Self::Integer(Int64Builder::new()),
            Shape::Decimal { scale, .. } => {
                let builder = Decimal128Builder::new();
                Self::Decimal(builder, *scale)
            }
            Shape::Double => Self::Double(Float64Builder::new()),
            Shape::Float => Self::Float(Float32Builder::new()),
            Shape::Boolean => Self::Boolean(BooleanBuilder::new()),
            Shape::Date => Self::Date(Date32Builder::new()),
            Shape::DateTime => Self::Time(TimestampMicrosecondBuilder::new(), None),
            Shape::Instant => {
                Self::Time(TimestampMicrosecondBuilder::new(), Some(Arc::from("UTC")))
            }
            Shape::Terms => Self::Terms(Box::default()),
        }
    }

    /// Appends a value, or that there is none.
    pub(super) fn append(&mut self, term: Option<&Term<'_>>) {
        let text = match term {
            Some(Term::Iri(iri)) => Some(iri.as_ref()),
            Some(Term::Literal(literal)) => Some(literal.lexical.as_ref()),
            Some(Term::BlankNode(_) | Term::Triple(_)) | None => None,
        };
        match self {
            Self::Text(builder) => match term {
                Some(Term::BlankNode(number)) => builder.append_value(format!("b{number}")),
                _ => builder.append_option(text),
            },
            Self::Integer(builder) => builder.append_option(text.and_then(integer)),
            Self::Decimal(builder, scale) => {
                builder.append_option(text.and_then(|text| decimal(text, *scale)));
            }
            Self::Double(builder) => {
                builder.append_option(text.and_then(parse_double));
            }
            Self::Float(builder) => {
                builder.append_option(text.and_then(parse_float));
            }
            Self::Boolean(builder) => {
                let value = text.and_then(|text| text.parse::<Boolean>().ok());
                builder.append_option(value.map(bool::from));
            }
            Self::Date(builder) => builder.append_option(text.and_then(days)),
            Self::Time(builder, _) => {
                let value = text.and_then(microseconds);
                builder.append_option(value.map(|(microseconds, _)| microseconds));
            }
            Self::Terms(builder) => builder.append(term),
        }
    }

    pub(super) fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Integer(mut builder) => Arc::new(builder.finish()),
            Self::Decimal(mut builder, scale) => {
                let scale = i8::try_from(scale).unwrap_or(i8::MAX);
                let data_type = DataType::Decimal128(DECIMAL_DIGITS, scale);
                Arc::new(builder.finish().with_data_type(data_type))
            }
            Self::Double(mut builder) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Boolean(mut builder) => Arc::new(builder.finish()),
            Self::Date(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder, zone) => Arc::new(builder.finish().with_timezone_opt(zone)),
            Self::Terms(builder) => builder.finish(),
        }
    }
}

impl TermsBuilder {
    fn append(&mut self, term: Option<&Term<'_>>) {
        self.is_bound.push(term.is_some());
        let (kind, value, datatype, language) = match term {
            None => ("", String::new(), None, None),
            Some(Term::Iri(iri)) => ("iri", iri.to_string(), None, None),
            Some(Term::BlankNode(number)) => ("bnode", format!("b{number}"), None, None),
            Some(triple @ Term::Triple(_)) => ("triple", triple.to_string(), None, None),
            Some(Term::Literal(literal)) => {
                let language = match &literal.kind {
                    LiteralKind::Language(tag) => Some(tag.to_string()),
                    LiteralKind::Directional(tag, Direction::LeftToRight) => {
                        Some(format!("{tag}--ltr"))
                    }
                    LiteralKind::Directional(tag, Direction::RightToLeft) => {
                        Some(format!("{tag}--rtl"))
                    }
                    LiteralKind::String | LiteralKind::Typed(_) => None,
                };
                let datatype = Some(literal.datatype());
                ("literal", literal.lexical.to_string(), datatype, language)
            }
        };
        self.kind.append_value(kind);
        self.value.append_value(value);
        self.datatype.append_option(datatype);
        self.language.append_option(language);
    }

    fn finish(mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.kind.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.datatype.finish()),
            Arc::new(self.language.finish()),
        ];
        Arc::new(StructArray::new(
            term_fields(),
            columns,
            Some(NullBuffer::from(self.is_bound)),
        ))
    }
}
