//! RDF/XML, one element per subject and one per statement.
//!
//! A writer of our own because `oxrdfxml`'s (0.2.5) writes documents that do not read back: a
//! predicate or class IRI without an XML name at its end becomes `oxprefix:`, control
//! characters go out raw, and carriage returns become line feeds on the way back. Here
//! the last is escaped, and what XML cannot say is an error.
//!
//! Triple terms and base directions are those of RDF/XML 1.2.
//!
//! <https://www.w3.org/TR/rdf12-xml/>

use super::rows::ITS;
use super::text::{is_xml_forbidden, write_blank_node_label, write_xml_text};
use orrery_term::{LiteralKind, Term, names};

/// A document in the making.
#[derive(Debug, Default)]
pub(super) struct RdfXml {
    is_started: bool,
    /// Subject of the open `rdf:Description`.
    subject: Option<Term<'static>>,
}

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// Names that mean something else in the syntax (RDF/XML, 7.2.2 to 7.2.4).
const RESERVED: [&str; 15] = [
    "RDF",
    "ID",
    "about",
    "bagID",
    "parseType",
    "resource",
    "nodeID",
    "datatype",
    "Description",
    "aboutEach",
    "aboutEachPrefix",
    "li",
    "version",
    "annotation",
    "annotationNodeID",
];

/// Namespaces that no document may declare (Namespaces in XML, 3).
const UNDECLARABLE: [&str; 2] = [
    "http://www.w3.org/XML/1998/namespace",
    "http://www.w3.org/2000/xmlns/",
];

impl RdfXml {
    /// Appends a triple, or says why it cannot be written.
    pub(super) fn triple(
        &mut self,
        subject: &Term<'_>,
        predicate: &Term<'_>,
        object: &Term<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        check(subject)?;
        check_property(predicate, object)?;
        self.start(out);
        if self.subject.as_ref() != Some(subject) {
            self.end_subject(out);
            write_description(subject, out)?;
            self.subject = Some(subject.clone().into_owned());
        }
        write_property(predicate, object, out)
    }

    /// Appends what ends the document.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        self.start(out);
        self.end_subject(out);
        out.extend_from_slice(b"</rdf:RDF>\n");
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rdf:RDF xmlns:rdf=\"");
        out.extend_from_slice(RDF.as_bytes());
        out.extend_from_slice(b"\">\n");
    }

    fn end_subject(&mut self, out: &mut Vec<u8>) {
        if self.subject.take().is_some() {
            out.extend_from_slice(b"</rdf:Description>\n");
        }
    }
}

/// Appends `<rdf:Description rdf:about="iri">`.
fn write_description(subject: &Term<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(b"<rdf:Description");
    write_node(out, "about", subject)?;
    out.extend_from_slice(b">\n");
    Ok(())
}

/// Appends the element of a statement. What is of RDF 1.2 says so itself: when the document began,
/// nobody knew that it would come.
fn write_property(
    predicate: &Term<'_>,
    object: &Term<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let (namespace, name) = qualified_name(predicate)?;
    out.extend_from_slice(b"  <p:");
    out.extend_from_slice(name.as_bytes());
    write_attribute(out, "xmlns:p", namespace);
    match object {
        Term::Iri(_) | Term::BlankNode(_) => {
            write_node(out, "resource", object)?;
            out.extend_from_slice(b"/>\n");
            return Ok(());
        }
        Term::Literal(literal) => {
            match &literal.kind {
                LiteralKind::String => {}
                LiteralKind::Language(tag) => write_attribute(out, "xml:lang", tag),
                LiteralKind::Directional(tag, direction) => {
                    write_attribute(out, "rdf:version", "1.2");
                    write_attribute(out, "xmlns:its", ITS);
                    write_attribute(out, "its:version", "2.0");
                    write_attribute(out, "its:dir", direction.as_str());
                    write_attribute(out, "xml:lang", tag);
                }
                LiteralKind::Typed(datatype) => write_attribute(out, "rdf:datatype", datatype),
            }
            out.push(b'>');
            write_xml_text(out, &literal.lexical);
        }
        Term::Triple(triple) => {
            write_attribute(out, "rdf:version", "1.2");
            write_attribute(out, "rdf:parseType", "Triple");
            out.extend_from_slice(b">\n");
            write_description(triple.subject(), out)?;
            write_property(triple.predicate(), triple.object(), out)?;
            out.extend_from_slice(b"</rdf:Description>\n");
        }
    }
    out.extend_from_slice(b"</p:");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b">\n");
    Ok(())
}

fn write_attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    write_xml_text(out, value);
    out.push(b'"');
}

/// Appends ` rdf:about="iri"` or ` rdf:nodeID="b1"`.
fn write_node(out: &mut Vec<u8>, role: &str, node: &Term<'_>) -> Result<(), String> {
    match node {
        Term::Iri(iri) => write_attribute(out, &format!("rdf:{role}"), iri),
        Term::BlankNode(number) => {
            out.extend_from_slice(b" rdf:nodeID=\"");
            write_blank_node_label(out, *number);
            out.push(b'"');
        }
        Term::Literal(_) | Term::Triple(_) => return Err(format!("{node} cannot be a subject")),
    }
    Ok(())
}

/// Whether a statement's predicate and object can be written, before anything of it is.
fn check_property(predicate: &Term<'_>, object: &Term<'_>) -> Result<(), String> {
    qualified_name(predicate)?;
    match object {
        Term::Triple(triple) => {
            check(triple.subject())?;
            check_property(triple.predicate(), triple.object())
        }
        Term::Iri(_) | Term::BlankNode(_) | Term::Literal(_) => check(object),
    }
}

fn check(term: &Term<'_>) -> Result<(), String> {
    let text = match term {
        Term::Literal(literal) => &literal.lexical,
        Term::Iri(iri) => iri,
        Term::BlankNode(_) | Term::Triple(_) => return Ok(()),
    };
    match text.chars().find(|&character| is_xml_forbidden(character)) {
        None => Ok(()),
        Some(character) => Err(format!(
            "XML has no way to write the character U+{:04X}",
            u32::from(character)
        )),
    }
}

/// The IRI of a predicate as namespace and local name, the name as long as possible.
fn qualified_name<'a>(predicate: &'a Term<'_>) -> Result<(&'a str, &'a str), String> {
    let Term::Iri(iri) = predicate else {
        return Err(format!("{predicate} cannot be a predicate"));
    };
    let nameless = || format!("the predicate <{iri}> does not end in an XML name");
    let mut start = None;
    for (at, character) in iri.char_indices().rev() {
        if !is_name_character(character) {
            break;
        }
        if names::is_name_start(character) {
            start = Some(at);
        }
    }
    let (namespace, name) = iri.split_at(start.ok_or_else(nameless)?);
    if namespace.is_empty() {
        return Err(nameless());
    }
    if namespace == RDF && RESERVED.contains(&name) {
        return Err(format!("rdf:{name} is part of the syntax of RDF/XML"));
    }
    if UNDECLARABLE.contains(&namespace) {
        return Err(format!("the namespace <{namespace}> is XML's own"));
    }
    Ok((namespace, name))
}

/// `NCNameChar` of Namespaces in XML.
fn is_name_character(character: char) -> bool {
    names::is_name_character(character) || character == '.'
}
