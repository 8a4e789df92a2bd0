//! Turtle and TriG with prefixes, streamed.
//!
//! ```text
//! @prefix foaf: <http://xmlns.com/foaf/0.1/> .       what the first statements need, before them
//! <s> a foaf:Person ;                                statements that follow each other are grouped by subject and predicate
//!     foaf:name "A" , "B" .
//! @prefix dc: <http://purl.org/dc/elements/1.1/> .   what is first needed later, between two statements
//! ```
//!
//! Only prefixes that are used are declared. Which these are is known only at the end, and the
//! document is not buffered until then: the first [`HEAD_BYTES_MAX`] are held back, so that hardly
//! any document has declarations further down, where both languages allow them. A local name is
//! written only where the grammar takes it as it is; else the IRI is written in full.

use super::text::{
    is_bare_in_turtle, write_iri, write_literal_kind, write_ntriples_term, write_ntriples_text,
};
use orrery_term::{Literal, LiteralKind, Shortener, Term, vocabulary::rdf};
use std::sync::Arc;

/// Bytes that are held back for the declarations before them.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A document in the making.
#[derive(Debug)]
pub(super) struct Turtle {
    shortener: Arc<Shortener>,
    /// By the number of the prefix.
    is_declared: Vec<bool>,
    /// Declarations and statements that are held back.
    head: Option<(Vec<u8>, Vec<u8>)>,
    graph: Option<Term<'static>>,
    /// Of the statement that is not ended yet.
    open: Option<(Term<'static>, Term<'static>)>,
}

impl Turtle {
    pub(super) fn new(shortener: Arc<Shortener>) -> Self {
        Self {
            is_declared: vec![false; shortener.len()],
            head: Some((Vec::new(), Vec::new())),
            graph: None,
            open: None,
            shortener,
        }
    }

    /// Appends a quad; the error says why it cannot be written.
    pub(super) fn quad(
        &mut self,
        [subject, predicate, object]: [&Term<'_>; 3],
        graph: Option<&Term<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        check(subject, predicate, object, graph)?;
        match self.head.take() {
            None => {
                self.write(subject, predicate, object, graph, None, out);
            }
            Some((mut declarations, mut body)) => {
                let into = Some(&mut declarations);
                self.write(subject, predicate, object, graph, into, &mut body);
                match body.len() > HEAD_BYTES_MAX {
                    true => {
                        out.append(&mut declarations);
                        out.append(&mut body);
                    }
                    false => self.head = Some((declarations, body)),
                }
            }
        }
        Ok(())
    }

    /// Appends what ends the document.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        if let Some((declarations, body)) = self.head.take() {
            out.extend_from_slice(&declarations);
            out.extend_from_slice(&body);
        }
        self.end_graph(out);
    }

    fn write(
        &mut self,
        subject: &Term<'_>,
        predicate: &Term<'_>,
        object: &Term<'_>,
        graph: Option<&Term<'_>>,
        declarations: Option<&mut Vec<u8>>,
        out: &mut Vec<u8>,
    ) {
        // `a` needs no prefix.
        let is_type = matches!(predicate, Term::Iri(iri) if iri == rdf::TYPE);
        let named = (!is_type).then_some(predicate);
        self.declare(
            [Some(subject), named, Some(object), graph],
            declarations,
            out,
        );
        if self.graph.as_ref() != graph {
            self.end_graph(out);
            if let Some(graph) = graph {
                self.term(graph, out);
                out.extend_from_slice(b" {\n");
                self.graph = Some(graph.clone().into_owned());
            }
        }
        match &mut self.open {
            Some((open, of)) if &*open == subject => {
                if &*of == predicate {
                    out.extend_from_slice(b" , ");
                    return self.term(object, out);
                }
                *of = predicate.clone().into_owned();
                out.extend_from_slice(b" ;\n\t");
                self.indent(out);
            }
            open => {
                if open.is_some() {
                    out.extend_from_slice(b" .\n");
                }
                *open = Some((subject.clone().into_owned(), predicate.clone().into_owned()));
                self.indent(out);
                self.term(subject, out);
                out.push(b' ');
            }
        }
        match named {
            None => out.push(b'a'),
            Some(predicate) => self.term(predicate, out),
        }
        out.push(b' ');
        self.term(object, out);
    }

    fn indent(&self, out: &mut Vec<u8>) {
        if self.graph.is_some() {
            out.push(b'\t');
        }
    }

    fn end_statement(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.extend_from_slice(b" .\n");
        }
    }

    fn end_graph(&mut self, out: &mut Vec<u8>) {
        self.end_statement(out);
        if self.graph.take().is_some() {
            out.extend_from_slice(b"}\n");
        }
    }

    /// Declares the undeclared prefixes of a quad: in `declarations`, or in `out` after the end of
    /// the open statement and graph.
    fn declare(
        &mut self,
        terms: [Option<&Term<'_>>; 4],
        mut declarations: Option<&mut Vec<u8>>,
        out: &mut Vec<u8>,
    ) {
        let mut new = Vec::new();
        for term in terms.into_iter().flatten() {
            self.note_new(term, &mut new);
        }
        for number in new {
            if std::mem::replace(&mut self.is_declared[number], true) {
                continue;
            }
            let out = match &mut declarations {
                Some(apart) => &mut **apart,
                None => {
                    self.end_graph(out);
                    &mut *out
                }
            };
            let (name, iri) = self.shortener.prefix(number);
            out.extend_from_slice(b"@prefix ");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            write_iri(out, iri);
            out.extend_from_slice(b" .\n");
        }
    }

    fn note_new(&self, term: &Term<'_>, new: &mut Vec<usize>) {
        let iri = match term {
            Term::Iri(iri) => iri,
            Term::Literal(literal) => match &literal.kind {
                LiteralKind::Typed(datatype) if !is_bare_in_turtle(literal) => datatype,
                _ => return,
            },
            Term::BlankNode(_) => return,
            Term::Triple(triple) => {
                for part in triple.parts() {
                    self.note_new(part, new);
                }
                return;
            }
        };
        if let Some((number, _)) = self.shortener.shorten(iri)
            && !self.is_declared[number]
        {
            new.push(number);
        }
    }

    fn term(&self, term: &Term<'_>, out: &mut Vec<u8>) {
        match term {
            Term::Iri(iri) => self.iri(iri, out),
            Term::BlankNode(_) => write_ntriples_term(out, term),
            Term::Literal(literal) => self.literal(literal, out),
            Term::Triple(triple) => {
                out.extend_from_slice(b"<<( ");
                for part in triple.parts() {
                    self.term(part, out);
                    out.push(b' ');
                }
                out.extend_from_slice(b")>>");
            }
        }
    }

    fn literal(&self, literal: &Literal<'_>, out: &mut Vec<u8>) {
        if is_bare_in_turtle(literal) {
            return out.extend_from_slice(literal.lexical.as_bytes());
        }
        out.push(b'"');
        write_ntriples_text(out, &literal.lexical);
        out.push(b'"');
        match &literal.kind {
            LiteralKind::Typed(datatype) => {
                out.extend_from_slice(b"^^");
                self.iri(datatype, out);
            }
            _ => write_literal_kind(out, literal),
        }
    }

    fn iri(&self, iri: &str, out: &mut Vec<u8>) {
        let Some((number, local)) = self.shortener.shorten(iri) else {
            return write_iri(out, iri);
        };
        out.extend_from_slice(self.shortener.prefix(number).0.as_bytes());
        out.push(b':');
        out.extend_from_slice(local.as_bytes());
    }
}

/// Whether the terms stand where they may.
fn check(
    subject: &Term<'_>,
    predicate: &Term<'_>,
    object: &Term<'_>,
    graph: Option<&Term<'_>>,
) -> Result<(), String> {
    let is_node = |term: &Term<'_>| matches!(term, Term::Iri(_) | Term::BlankNode(_));
    if !is_node(subject) {
        return Err(format!("{subject} cannot be a subject"));
    }
    if !matches!(predicate, Term::Iri(_)) {
        return Err(format!("{predicate} cannot be a predicate"));
    }
    if let Some(graph) = graph.filter(|graph| !is_node(graph)) {
        return Err(format!("{graph} cannot be a graph name"));
    }
    match object {
        Term::Triple(triple) => check(triple.subject(), triple.predicate(), triple.object(), None),
        Term::Iri(_) | Term::BlankNode(_) | Term::Literal(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphFormat, GraphSerializer};
    use super::*;
    use orrery_term::Prefixes;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn shortener(own: &[(&str, &str)]) -> Arc<Shortener> {
        let mut prefixes = Prefixes::default();
        for (name, iri) in own {
            prefixes.note_loaded(name, iri);
        }
        Arc::new(Shortener::new(&prefixes))
    }

    type Row = [Term<'static>; 3];

    fn written(
        format: GraphFormat,
        own: &[(&str, &str)],
        quads: &[(Row, Option<Term<'_>>)],
    ) -> String {
        let mut out = Vec::new();
        let mut serializer = GraphSerializer::with_prefixes(format, shortener(own));
        for ([s, p, o], graph) in quads {
            serializer.quad(s, p, o, graph.as_ref(), &mut out).unwrap();
        }
        serializer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn iri(text: &str) -> Term<'static> {
        Term::iri(text.to_owned())
    }

    #[test]
    fn only_what_is_used_is_declared_before_the_statements() {
        let own = [("e", "http://e/"), ("unused", "http://u/")];
        let rows = [
            (
                [
                    iri("http://e/s"),
                    iri(rdf::TYPE),
                    iri("http://xmlns.com/foaf/0.1/Person"),
                ],
                None,
            ),
            (
                [iri("http://e/s"), iri("http://e/a/b"), iri("http://e/")],
                None,
            ),
        ];
        assert_eq!(
            written(GraphFormat::Turtle, &own, &rows),
            "@prefix e: <http://e/> .\n@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n\
             e:s a foaf:Person ;\n\t<http://e/a/b> e: .\n"
        );
        assert_eq!(written(GraphFormat::Turtle, &own, &[]), "");
    }

    #[test]
    fn what_is_needed_later_is_declared_between_statements_and_graphs() {
        let own = [("e", "http://e/"), ("f", "http://f/")];
        let row = |number: usize, object: &str| {
            let graph = iri("http://e/g");
            (
                [
                    iri(&format!("http://e/s{number}")),
                    iri("http://e/p"),
                    iri(object),
                ],
                Some(graph),
            )
        };
        let mut rows: Vec<_> = (0..2000).map(|number| row(number, "http://e/o")).collect();
        rows.push(row(1999, "http://f/o"));
        let text = written(GraphFormat::TriG, &own, &rows);
        assert!(
            text.starts_with("@prefix e: <http://e/> .\ne:g {\n\te:s0 e:p e:o .\n"),
            "{}",
            &text[..80]
        );
        let end =
            "\te:s1999 e:p e:o .\n}\n@prefix f: <http://f/> .\ne:g {\n\te:s1999 e:p f:o .\n}\n";
        assert!(text.ends_with(end), "{}", &text[text.len() - 120..]);
    }

    fn any_iri() -> impl Strategy<Value = Term<'static>> {
        let local = prop_oneof![
            "[a-zA-Z0-9_:.é%-]{0,5}",
            Just("%41".to_owned()),
            Just("a%zz".to_owned()),
            "[a-z~!$&'()*+,;=/?#@.]{0,6}",
        ];
        let space = prop::sample::select(vec![
            "http://e/",
            "http://e/x/",
            "http://e/x#",
            "urn:",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        ]);
        (space, local)
            .prop_map(|(space, local)| format!("{space}{local}"))
            .prop_filter("no IRI", |iri| oxrdf::NamedNode::new(iri.clone()).is_ok())
            .prop_map(|text| iri(&text))
    }

    fn any_literal() -> impl Strategy<Value = Term<'static>> {
        let kind = prop_oneof![
            Just(LiteralKind::String),
            Just(LiteralKind::Language("en-gb".into())),
            prop::sample::select(vec![
                "http://www.w3.org/2001/XMLSchema#integer",
                "http://www.w3.org/2001/XMLSchema#decimal",
                "http://www.w3.org/2001/XMLSchema#date",
                "http://e/type",
                "http://e/x#a/b",
            ])
            .prop_map(|datatype| LiteralKind::Typed(datatype.into())),
        ];
        ("[0-9a-z\"\\\\\n.é+-]{0,5}", kind).prop_map(|(lexical, kind)| {
            Term::Literal(Literal {
                lexical: lexical.into(),
                kind,
            })
        })
    }

    fn lines(text: &str, format: oxrdfio::RdfFormat) -> BTreeSet<String> {
        let quads = oxrdfio::RdfParser::from_format(format).for_slice(text.as_bytes());
        quads
            .map(|quad| {
                quad.unwrap_or_else(|error| panic!("{error}: {text}"))
                    .to_string()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_written_with_prefixes_is_read_as_the_same_quads(
            rows in prop::collection::vec((any_iri(), any_iri(), prop_oneof![any_iri(), any_literal()], prop::option::of(any_iri())), 0..12),
        ) {
            let own = [
                ("", "http://e/"), ("x", "http://e/x/"), ("h.1", "http://e/x#"), ("é", "urn:"), ("d", "http://e/x"),
            ];
            let quads: Vec<_> = rows.into_iter().map(|(s, p, o, g)| ([s, p, o], g)).collect();
            let lines_of = |text: &str, format| lines(text, format);
            let trig = written(GraphFormat::TriG, &own, &quads);
            let plain = written(GraphFormat::NQuads, &[], &quads);
            prop_assert_eq!(lines_of(&trig, oxrdfio::RdfFormat::TriG), lines_of(&plain, oxrdfio::RdfFormat::NQuads));
            let triples: Vec<_> = quads.into_iter().map(|(row, _)| (row, None)).collect();
            let turtle = written(GraphFormat::Turtle, &own, &triples);
            let plain = written(GraphFormat::NTriples, &[], &triples);
            prop_assert_eq!(lines_of(&turtle, oxrdfio::RdfFormat::Turtle), lines_of(&plain, oxrdfio::RdfFormat::NTriples));
        }
    }
}
