//! Serializers for triples and quads: CONSTRUCT, DESCRIBE, dump.
//!
//! N-Triples and N-Quads, the formats of large dumps, are written here, RDF/XML in `rdf_xml`,
//! Turtle and TriG with prefixes in `turtle`, JSON-LD by `oxrdfio`. All but the first two group
//! consecutive statements by subject and predicate, so input in subject order comes out compact.

use super::text::{write_literal_kind, write_ntriples_term, write_ntriples_text};
use super::{FormatError, GraphFormat, rdf_xml::RdfXml, turtle::Turtle};
use orrery_term::{Direction, Literal, LiteralKind, Shortener, Term, Triple};
use oxrdf::{
    BaseDirection, BlankNodeRef, GraphNameRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef,
    QuadRef, TermRef,
};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes a graph or dataset: [`start`](Self::start), statements, [`finish`](Self::finish).
pub struct GraphSerializer {
    format: GraphFormat,
    state: State,
}

enum State {
    Lines,
    RdfXml(RdfXml),
    Turtle(Turtle),
    Oxigraph {
        writer: Box<WriterQuadSerializer<SharedBuffer>>,
        buffer: SharedBuffer,
        labels: [String; 3],
    },
}

impl GraphSerializer {
    /// Begins a document that shortens no IRIs; bytes come with the first statement or at the end.
    pub fn start(format: GraphFormat) -> Self {
        Self::with_prefixes(format, Arc::default())
    }

    /// Begins a document in which Turtle and TriG shorten IRIs with these prefixes; only those that
    /// are used are declared.
    pub fn with_prefixes(format: GraphFormat, prefixes: Arc<Shortener>) -> Self {
        let rdf_format = match format {
            GraphFormat::NTriples | GraphFormat::NQuads => {
                return Self {
                    format,
                    state: State::Lines,
                };
            }
            GraphFormat::Turtle | GraphFormat::TriG => {
                return Self {
                    format,
                    state: State::Turtle(Turtle::new(prefixes)),
                };
            }
            GraphFormat::RdfXml => {
                return Self {
                    format,
                    state: State::RdfXml(RdfXml::default()),
                };
            }
            GraphFormat::JsonLd => RdfFormat::JsonLd {
                profile: JsonLdProfileSet::empty(),
            },
        };
        let buffer = SharedBuffer::default();
        let writer = RdfSerializer::from_format(rdf_format).for_writer(buffer.clone());
        Self {
            format,
            state: State::Oxigraph {
                writer: Box::new(writer),
                buffer,
                labels: Default::default(),
            },
        }
    }

    /// Appends a triple.
    pub fn triple(
        &mut self,
        subject: &Term<'_>,
        predicate: &Term<'_>,
        object: &Term<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        self.quad(subject, predicate, object, None, out)
    }

    /// Appends a quad; `graph` is `None` for the default graph.
    pub fn quad(
        &mut self,
        subject: &Term<'_>,
        predicate: &Term<'_>,
        object: &Term<'_>,
        graph: Option<&Term<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        if graph.is_some() && !self.format.has_named_graphs() {
            return Err(self.inexpressible("the data has named graphs".to_owned()));
        }
        match &mut self.state {
            State::Lines => {
                for term in [subject, predicate, object].into_iter().chain(graph) {
                    write_ntriples_term(out, term);
                    out.push(b' ');
                }
                out.extend_from_slice(b".\n");
                Ok(())
            }
            State::RdfXml(document) => document
                .triple(subject, predicate, object, out)
                .map_err(|reason| self.inexpressible(reason)),
            State::Turtle(document) => document
                .quad([subject, predicate, object], graph, out)
                .map_err(|reason| self.inexpressible(reason)),
            State::Oxigraph {
                writer,
                buffer,
                labels,
            } => {
                let written = write_quad(writer, labels, subject, predicate, object, graph);
                buffer.drain_into(out);
                written.map_err(|error| self.inexpressible(error.to_string()))
            }
        }
    }

    /// Appends the beginning of a quad whose object is a literal, up to and including the opening
    /// quote; false if this format cannot write a literal in pieces. Pieces of the literal's text
    /// follow by [`text`](Self::text), then [`end_text`](Self::end_text).
    pub fn begin_text(
        &mut self,
        subject: &Term<'_>,
        predicate: &Term<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        if !matches!(self.state, State::Lines) {
            return false;
        }
        for term in [subject, predicate] {
            write_ntriples_term(out, term);
            out.push(b' ');
        }
        out.push(b'"');
        true
    }

    /// Appends a piece of a literal's text.
    pub fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        write_ntriples_text(out, piece);
    }

    /// Appends what follows the text of a literal, and the graph.
    pub fn end_text(&mut self, literal: &Literal<'_>, graph: Option<&Term<'_>>, out: &mut Vec<u8>) {
        out.push(b'"');
        write_literal_kind(out, literal);
        if let Some(graph) = graph {
            out.push(b' ');
            write_ntriples_term(out, graph);
        }
        out.extend_from_slice(b" .\n");
    }

    /// Appends what ends the document.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match self.state {
            State::Lines => Ok(()),
            State::RdfXml(document) => {
                document.finish(out);
                Ok(())
            }
            State::Turtle(document) => {
                document.finish(out);
                Ok(())
            }
            State::Oxigraph { writer, buffer, .. } => {
                let finished = writer.finish();
                buffer.drain_into(out);
                finished
                    .map(drop)
                    .map_err(|error| FormatError::Inexpressible {
                        format: self.format.name(),
                        reason: error.to_string(),
                    })
            }
        }
    }

    fn inexpressible(&self, reason: String) -> FormatError {
        FormatError::Inexpressible {
            format: self.format.name(),
            reason,
        }
    }
}

impl std::fmt::Debug for GraphSerializer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphSerializer")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

fn write_quad(
    writer: &mut WriterQuadSerializer<SharedBuffer>,
    labels: &mut [String; 3],
    subject: &Term<'_>,
    predicate: &Term<'_>,
    object: &Term<'_>,
    graph: Option<&Term<'_>>,
) -> io::Result<()> {
    let [subject_label, object_label, graph_label] = labels;
    let triple_term;
    let quad = QuadRef {
        subject: node(subject, subject_label)?,
        predicate: match predicate {
            Term::Iri(iri) => NamedNodeRef::new_unchecked(iri),
            other => return Err(misplaced(other, "predicate")),
        },
        object: match object {
            Term::Literal(literal) => TermRef::Literal(literal_ref(literal)),
            Term::Triple(triple) => {
                triple_term = oxrdf_triple(triple)?;
                TermRef::Triple(&triple_term)
            }
            node_term => node(node_term, object_label)?.into(),
        },
        graph_name: match graph {
            None => GraphNameRef::DefaultGraph,
            Some(name) => node(name, graph_label)?.into(),
        },
    };
    writer.serialize_quad(quad)
}

fn node<'a>(term: &'a Term<'_>, label: &'a mut String) -> io::Result<NamedOrBlankNodeRef<'a>> {
    match term {
        Term::Iri(iri) => Ok(NamedNodeRef::new_unchecked(iri).into()),
        Term::BlankNode(number) => {
            use std::fmt::Write as _;
            label.clear();
            // Writing to a String cannot fail.
            let _ = write!(label, "b{number}");
            Ok(BlankNodeRef::new_unchecked(label).into())
        }
        other @ (Term::Literal(_) | Term::Triple(_)) => {
            Err(misplaced(other, "subject or graph name"))
        }
    }
}

/// A triple term for the writer, which wants its own.
fn oxrdf_triple(triple: &Triple<'_>) -> io::Result<oxrdf::Triple> {
    let label = &mut String::new();
    let predicate = match triple.predicate() {
        Term::Iri(iri) => NamedNodeRef::new_unchecked(iri),
        other => return Err(misplaced(other, "predicate")),
    };
    Ok(oxrdf::Triple {
        subject: node(triple.subject(), label)?.into_owned(),
        predicate: predicate.into_owned(),
        object: match triple.object() {
            Term::Literal(literal) => literal_ref(literal).into_owned().into(),
            Term::Triple(triple) => oxrdf_triple(triple)?.into(),
            object => node(object, label)?.into_owned().into(),
        },
    })
}

fn literal_ref<'a>(literal: &'a Literal<'_>) -> LiteralRef<'a> {
    match &literal.kind {
        LiteralKind::String => LiteralRef::new_simple_literal(&literal.lexical),
        LiteralKind::Language(tag) => {
            LiteralRef::new_language_tagged_literal_unchecked(&literal.lexical, tag)
        }
        LiteralKind::Directional(tag, direction) => {
            let direction = match direction {
                Direction::LeftToRight => BaseDirection::Ltr,
                Direction::RightToLeft => BaseDirection::Rtl,
            };
            LiteralRef::new_directional_language_tagged_literal_unchecked(
                &literal.lexical,
                tag,
                direction,
            )
        }
        LiteralKind::Typed(datatype) => {
            LiteralRef::new_typed_literal(&literal.lexical, NamedNodeRef::new_unchecked(datatype))
        }
    }
}

fn misplaced(term: &Term<'_>, role: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{term} cannot be a {role}"),
    )
}

/// The buffer inside an `oxrdfio` writer, which keeps its sink to itself until the
/// end. The lock is never contended; it is there because answers move between threads.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn drain_into(&self, out: &mut Vec<u8>) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.append(&mut bytes);
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
