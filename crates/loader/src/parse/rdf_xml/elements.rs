//! The elements of RDF/XML: nodes and properties in turn, and the statements that they make
//! (RDF/XML, 7.2).

use super::attributes::not_here;
use super::fault::{Fault, Position};
use super::frame::{Frame, Kind, Statement};
use super::scope::{Attributes, Name, ParseType, RDF, Scope};
use super::tag::unescaped;
use super::{Problem, RdfXmlReader};
use crate::parse::held::InParts;
use crate::parse::mends::quoted;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use std::collections::BTreeSet;
use std::ops::Range;

/// Names of RDF that no element has: those of attributes, and what was given up.
const NO_ELEMENTS: [&str; 9] = [
    "about",
    "aboutEach",
    "aboutEachPrefix",
    "bagID",
    "datatype",
    "ID",
    "nodeID",
    "parseType",
    "resource",
];

/// Where a tag stands, with its text.
#[derive(Clone, Copy)]
struct Tag<'t> {
    begin: Position,
    text: &'t str,
}

impl Tag<'_> {
    fn fault(&self, name: Range<usize>, message: impl Into<String>, mend: &str) -> Fault {
        Fault::new(self.begin.part(self.text, name), message, mend)
    }
}

impl<R: InParts> RdfXmlReader<R> {
    /// An element begins.
    pub(super) fn start(&mut self, begin: Position, text: &str) -> Result<(), Fault> {
        let Some(around) = self.frames.last() else {
            return Ok(());
        };
        let (namespaces_before, held_before) = (self.namespaces.len(), self.held.len());
        let tag = Tag { begin, text };
        let around_scope = around.scope.clone();
        let opened = match around.kind {
            Kind::Skipped => Ok((Kind::Skipped, around_scope)),
            Kind::Literal { .. } => {
                self.written_namespaces.truncate(0);
                let literal = self.frames.len() - 1;
                self.start_in_literal(literal, tag)
                    .map(|kind| (kind, around_scope))
            }
            Kind::InLiteral { literal, .. } => self
                .start_in_literal(literal, tag)
                .map(|kind| (kind, around_scope)),
            _ => self.open(tag, &around_scope),
        };
        let (kind, scope) = match opened {
            Ok(opened) => opened,
            Err(fault) => {
                self.namespaces.truncate(namespaces_before);
                self.held.truncate(held_before);
                return Err(fault);
            }
        };
        let is_blank = |c: char| c.is_ascii_whitespace();
        let name = &text[..text.find(is_blank).unwrap_or(text.len())];
        self.frames.push(Frame {
            kind,
            name: name.into(),
            scope,
            namespaces_before,
            held_before,
        });
        Ok(())
    }

    fn open(&mut self, tag: Tag<'_>, around: &Scope) -> Result<(Kind, Scope), Fault> {
        let name_end = self.declare(tag.begin, tag.text)?;
        let name = self.resolve_name(tag.begin, tag.text, 0..name_end, true)?;
        let subject = match self.frames.last_mut().map(|frame| &mut frame.kind) {
            Some(Kind::Node { subject, items, .. }) => {
                // Counted whether the rest of the tag is right or not.
                *items += u64::from(matches!(name, Name::Rdf("li")));
                Some((subject.clone(), *items))
            }
            _ => None,
        };
        let (scope, attributes) = self.attributes(tag.begin, tag.text, around)?;
        if let Some((subject, items)) = subject {
            let predicate = match name {
                Name::Rdf("li") => format!("{RDF}_{items}"),
                Name::Rdf(local)
                    if NO_ELEMENTS.contains(&local) || matches!(local, "RDF" | "Description") =>
                {
                    return Err(no_element(tag, name_end, "a property"));
                }
                Name::Rdf(local) => format!("{RDF}{local}"),
                Name::Other(iri) => iri,
            };
            let predicate = NamedNode::new_unchecked(predicate);
            let kind = self.property((subject, predicate), tag, &scope, attributes)?;
            return Ok((kind, scope));
        }
        let is_document = matches!(
            self.frames.last().map(|frame| &frame.kind),
            Some(Kind::Document)
        );
        let of_type = match name {
            Name::Rdf("RDF") if is_document => return Ok((Kind::Rdf, scope)),
            Name::Rdf("Description") => None,
            Name::Rdf(local) if NO_ELEMENTS.contains(&local) || matches!(local, "RDF" | "li") => {
                return Err(no_element(tag, name_end, "a node"));
            }
            Name::Rdf(local) => Some(format!("{RDF}{local}")),
            Name::Other(iri) => Some(iri),
        };
        let subject = self.node(of_type, tag, &scope, attributes)?;
        let kind = Kind::Node {
            subject,
            items: 0,
            is_property: false,
        };
        Ok((kind, scope))
    }

    /// A node: its type and the properties that are attributes.
    fn node(
        &mut self,
        of_type: Option<String>,
        tag: Tag<'_>,
        scope: &Scope,
        attributes: Attributes,
    ) -> Result<NamedOrBlankNode, Fault> {
        if let Some(Frame {
            kind:
                Kind::Property {
                    object,
                    is_told,
                    text,
                    datatype,
                    ..
                },
            ..
        }) = self.frames.last()
        {
            let name = 0..tag.text.len();
            if object.is_some() {
                let message = match is_told {
                    true => {
                        "there is a node in a property whose attributes say already what its value is"
                    }
                    false => "there is a second node in one property",
                };
                let mend = "repeat the property for each of its values";
                return Err(tag.fault(name, message, mend));
            }
            if !is_blank(text) || datatype.is_some() {
                let message = "there is a node in a property whose value is a text";
                let mend = "take one of them away, or repeat the property";
                return Err(tag.fault(name, message, mend));
            }
        }
        let Attributes {
            id,
            node_id,
            about,
            resource,
            datatype,
            of_type: type_attribute,
            parse_type,
            annotation,
            annotation_node,
            properties,
        } = attributes;
        let misplaced = [
            resource.map(|it| it.1),
            datatype.map(|it| it.1),
            parse_type.map(|it| it.1),
            annotation.map(|it| it.1),
            annotation_node.map(|it| it.1),
        ];
        if let Some(name) = misplaced.into_iter().flatten().next() {
            return Err(not_here(tag.begin, tag.text, name));
        }
        let subject = match (id, node_id, about) {
            (None, None, None) => NamedOrBlankNode::from(BlankNode::default()),
            (Some((id, _)), None, None) => id.into(),
            (None, Some((node, _)), None) => node.into(),
            (None, None, Some((iri, _))) => iri.into(),
            (_, Some((_, name)), _) | (_, None, Some((_, name))) => {
                let message = "there are two names of one node";
                return Err(tag.fault(
                    name,
                    message,
                    "keep one of rdf:about, rdf:ID and rdf:nodeID",
                ));
            }
        };
        if let Some(of_type) = of_type {
            let of_type = NamedNode::new_unchecked(of_type);
            self.give(subject.clone(), rdf::TYPE.into(), of_type.into());
        }
        self.property_attributes(&subject, type_attribute, properties, scope);
        Ok(subject)
    }

    fn property_attributes(
        &mut self,
        subject: &NamedOrBlankNode,
        of_type: Option<(NamedNode, Range<usize>)>,
        properties: Vec<(NamedNode, String, Range<usize>)>,
        scope: &Scope,
    ) {
        if let Some((of_type, _)) = of_type {
            self.give(subject.clone(), rdf::TYPE.into(), of_type.into());
        }
        for (predicate, text, _) in properties {
            let object = literal(text, scope, None);
            self.give(subject.clone(), predicate, object.into());
        }
    }

    fn property(
        &mut self,
        (subject, predicate): (NamedOrBlankNode, NamedNode),
        tag: Tag<'_>,
        scope: &Scope,
        attributes: Attributes,
    ) -> Result<Kind, Fault> {
        let Attributes {
            id,
            node_id,
            about,
            resource,
            datatype,
            of_type,
            parse_type,
            annotation,
            annotation_node,
            properties,
        } = attributes;
        let here = |name: Range<usize>| Err(not_here(tag.begin, tag.text, name));
        if let Some((_, name)) = about {
            return here(name);
        }
        let statement = Statement {
            subject,
            predicate,
            id: id.map(|it| it.0),
            annotation: annotation.map(|it| it.0),
            annotation_node: annotation_node.map(|it| it.0),
        };
        let first_property = properties.first().map(|it| it.2.clone());
        if let Some((parse_type, _)) = parse_type {
            // 7.2.17 to 7.2.20: beside it stands rdf:ID alone.
            let others = [
                resource.map(|it| it.1),
                node_id.map(|it| it.1),
                datatype.map(|it| it.1),
                of_type.map(|it| it.1),
                first_property,
            ];
            if let Some(name) = others.into_iter().flatten().next() {
                let message = format!(
                    "{} stands beside rdf:parseType",
                    quoted(&tag.text[name.clone()])
                );
                let mend =
                    "take one of them away: of its other attributes only rdf:ID can stand there";
                return Err(tag.fault(name, message, mend));
            }
            return Ok(self.parsed(parse_type, statement));
        }
        let is_told =
            resource.is_some() || node_id.is_some() || of_type.is_some() || !properties.is_empty();
        if !is_told {
            return Ok(Kind::Property {
                statement,
                object: None,
                is_told,
                datatype: datatype.map(|it| it.0),
                text: String::new(),
            });
        }
        if let Some((_, name)) = datatype {
            let message = "there is a datatype, and the value of the property is no text";
            return Err(tag.fault(
                name,
                message,
                "take rdf:datatype away, or the other attributes",
            ));
        }
        let object = match (resource, node_id) {
            (Some((iri, _)), None) => NamedOrBlankNode::from(iri),
            (None, Some((node, _))) => node.into(),
            (None, None) => BlankNode::default().into(),
            (Some(_), Some((_, name))) => {
                let message = "there are two values of one property";
                return Err(tag.fault(name, message, "keep one of rdf:resource and rdf:nodeID"));
            }
        };
        self.property_attributes(&object, of_type, properties, scope);
        Ok(Kind::Property {
            statement,
            object: Some(object),
            is_told,
            datatype: None,
            text: String::new(),
        })
    }

    fn parsed(&mut self, parse_type: ParseType, statement: Statement) -> Kind {
        match parse_type {
            ParseType::Collection => Kind::Collection {
                statement,
                objects: Vec::new(),
            },
            ParseType::Literal | ParseType::Other => Kind::Literal {
                statement,
                text: String::new(),
                is_given: parse_type == ParseType::Literal,
            },
            ParseType::Triple => Kind::Triple {
                statement,
                triples: Vec::new(),
            },
            ParseType::Resource => {
                let object = BlankNode::default();
                self.state(statement, object.clone().into());
                Kind::Node {
                    subject: object.into(),
                    items: 0,
                    is_property: true,
                }
            }
        }
    }

    /// An element within an XML literal. As exclusive canonicalization has it (W3C, Exclusive XML
    /// Canonicalization 1.0, 3), it declares the namespaces that it uses and no element around it
    /// declares, so that the same content is the same literal whatever else a document declares.
    fn start_in_literal(&mut self, literal: usize, tag: Tag<'_>) -> Result<Kind, Fault> {
        let name_end = self.declare(tag.begin, tag.text)?;
        let name = &tag.text[..name_end];
        let mut used = BTreeSet::from([name.split_once(':').map_or("", |it| it.0)]);
        let mut attributes = String::new();
        for attribute in &self.written {
            let name = &tag.text[attribute.name.clone()];
            if name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            used.extend(name.split_once(':').map(|it| it.0));
            let value = attribute.value.clone();
            let value = unescaped(tag.begin, tag.text, value, &self.entities, true)?;
            write_attribute(name, &value, &mut attributes);
        }
        let written_before = self.written_namespaces.len();
        let mut out = format!("<{name}");
        used.remove("xml");
        for prefix in used {
            let written = self.written_namespaces.get(prefix).unwrap_or_default();
            let namespace = self.namespaces.get(prefix);
            let Some(namespace) = namespace.filter(|it| *it != written) else {
                continue;
            };
            let colon = if prefix.is_empty() { "" } else { ":" };
            write_attribute(&format!("xmlns{colon}{prefix}"), namespace, &mut out);
            self.written_namespaces.push(prefix, namespace.to_owned());
        }
        out.push_str(&attributes);
        out.push('>');
        self.push_to_literal(literal, &out);
        Ok(Kind::InLiteral {
            literal,
            written_before,
        })
    }

    fn push_to_literal(&mut self, literal: usize, out: &str) {
        if let Some(Kind::Literal { text, .. }) =
            self.frames.get_mut(literal).map(|frame| &mut frame.kind)
        {
            text.push_str(out);
        }
    }

    /// Which frame is the literal that the reader is in.
    fn literal_around(&self) -> Option<usize> {
        match self.frames.last()?.kind {
            Kind::Literal { .. } => Some(self.frames.len() - 1),
            Kind::InLiteral { literal, .. } => Some(literal),
            _ => None,
        }
    }

    /// A comment or processing instruction, which only an XML literal takes.
    pub(super) fn markup_in_literal(&mut self, opening: &str, text: &str, closing: &str) {
        if let Some(literal) = self.literal_around() {
            self.push_to_literal(literal, &format!("{opening}{text}{closing}"));
        }
    }

    /// A text, or a piece of one.
    pub(super) fn text(&mut self, begin: Position, text: &str, is_raw: bool) -> Result<(), Fault> {
        let literal = self.literal_around();
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        if matches!(frame.kind, Kind::Skipped) {
            return Ok(());
        }
        let value = match is_raw {
            true if text.contains('\r') => text.replace("\r\n", "\n").replace('\r', "\n").into(),
            true => text.into(),
            false => unescaped(begin, text, 0..text.len(), &self.entities, false)?,
        };
        if let Some(literal) = literal {
            let mut out = String::with_capacity(value.len());
            write_text(&value, &mut out);
            self.push_to_literal(literal, &out);
            return Ok(());
        }
        if let Kind::Property { object, text, .. } = &mut frame.kind
            && object.is_none()
        {
            text.push_str(&value);
            return Ok(());
        }
        if is_blank(&value) {
            return Ok(());
        }
        let start = text.len() - text.trim_ascii_start().len();
        let place = begin.part(text, start..text.trim_ascii_end().len().max(start));
        let message = "a text stands between elements";
        let mend = "put it into the element of a property, or take it away";
        let fault = Fault::new(place, message, mend);
        match frame.kind {
            Kind::Document => Err(fault.ending_reading()),
            _ => Err(fault),
        }
    }

    /// The innermost element ends.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        self.namespaces.truncate(frame.namespaces_before);
        if let Err(fault) = self.close(frame.kind, &frame.name, &frame.scope) {
            self.held.truncate(frame.held_before);
            self.problem = Some(Problem::Fault(fault));
        }
        let around = self.frames.last().map(|frame| &frame.kind);
        match around {
            Some(Kind::Document | Kind::Rdf) => self.release(),
            // What was read is understood, though nobody is given it before the outermost node
            // ends.
            Some(Kind::Node { .. }) if self.held_bytes_max.is_some() => self.markup.end_part(),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, kind: Kind, name: &str, scope: &Scope) -> Result<(), Fault> {
        match kind {
            Kind::Document | Kind::Rdf | Kind::Skipped => {}
            Kind::InLiteral {
                literal,
                written_before,
            } => {
                self.written_namespaces.truncate(written_before);
                self.push_to_literal(literal, &format!("</{name}>"));
            }
            Kind::Node {
                is_property: true, ..
            } => {}
            Kind::Node { subject, .. } => match self.frames.last_mut().map(|it| &mut it.kind) {
                Some(Kind::Property { object, text, .. }) => {
                    text.clear();
                    *object = Some(subject);
                }
                Some(Kind::Collection { objects, .. }) => objects.push(subject),
                _ => {}
            },
            Kind::Property {
                statement,
                object,
                datatype,
                text,
                ..
            } => {
                let object = match object {
                    Some(node) => Term::from(node),
                    None => literal(text, scope, datatype).into(),
                };
                self.state(statement, object);
            }
            Kind::Collection { statement, objects } => {
                let mut rest = NamedOrBlankNode::from(rdf::NIL);
                for object in objects.into_iter().rev() {
                    let item = NamedOrBlankNode::from(BlankNode::default());
                    self.give(item.clone(), rdf::FIRST.into(), object.into());
                    self.give(item.clone(), rdf::REST.into(), rest.into());
                    rest = item;
                }
                self.state(statement, rest.into());
            }
            Kind::Literal {
                statement,
                text,
                is_given,
            } => {
                if is_given {
                    let object = Literal::new_typed_literal(text, rdf::XML_LITERAL);
                    self.state(statement, object.into());
                }
            }
            Kind::Triple { statement, triples } => {
                if !scope.has_triple_terms() {
                    return Ok(());
                }
                let place = self.markup.position().place(0);
                let [triple] = <[Triple; 1]>::try_from(triples).map_err(|triples| {
                    let message = format!(
                        "rdf:parseType=\"Triple\" has {} statements in it",
                        triples.len()
                    );
                    Fault::new(place, message, "put one there: a node with one property")
                })?;
                self.state(statement, Term::Triple(Box::new(triple)));
            }
        }
        Ok(())
    }

    /// Makes the statement of a property, and what is said of the statement.
    fn state(&mut self, statement: Statement, object: Term) {
        let Statement {
            subject,
            predicate,
            id,
            annotation,
            annotation_node,
        } = statement;
        if let Some(id) = id {
            let id = NamedOrBlankNode::from(id);
            self.give(id.clone(), rdf::TYPE.into(), rdf::STATEMENT.into());
            self.give(id.clone(), rdf::SUBJECT.into(), subject.clone().into());
            self.give(id.clone(), rdf::PREDICATE.into(), predicate.clone().into());
            self.give(id, rdf::OBJECT.into(), object.clone());
        }
        let reifiers = annotation.map(NamedOrBlankNode::from).into_iter();
        for reifier in reifiers.chain(annotation_node.map(NamedOrBlankNode::from)) {
            let triple = Triple::new(subject.clone(), predicate.clone(), object.clone());
            self.give(reifier, rdf::REIFIES.into(), Term::Triple(Box::new(triple)));
        }
        self.give(subject, predicate, object);
    }

    fn give(&mut self, subject: NamedOrBlankNode, predicate: NamedNode, object: Term) {
        self.emit(Quad::new(
            subject,
            predicate,
            object,
            GraphName::DefaultGraph,
        ));
    }
}

fn no_element(tag: Tag<'_>, name_end: usize, what: &str) -> Fault {
    let message = format!("{} cannot be {what}", quoted(&tag.text[..name_end]));
    tag.fault(
        0..name_end,
        message,
        "it is a name that RDF/XML keeps for something else (7.2.2)",
    )
}

fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

fn literal(text: String, scope: &Scope, datatype: Option<NamedNode>) -> Literal {
    match (datatype, &scope.language, scope.direction) {
        (Some(datatype), _, _) => Literal::new_typed_literal(text, datatype),
        (None, None, _) => Literal::new_simple_literal(text),
        (None, Some(language), None) => {
            Literal::new_language_tagged_literal_unchecked(text, language.as_ref())
        }
        (None, Some(language), Some(direction)) => {
            Literal::new_directional_language_tagged_literal_unchecked(
                text,
                language.as_ref(),
                direction,
            )
        }
    }
}

/// As canonical XML has it (1.1, 2.3).
fn write_text(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
}

fn write_attribute(name: &str, value: &str, out: &mut String) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    for character in value.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
    out.push('"');
}
