//! The attributes of an element, and their effect on it and its content (base, language).

use super::RdfXmlReader;
use super::fault::{Fault, Position};
use super::scope::{Attributes, ITS, Name, ParseType, RDF, Scope, Version, XML};
use super::tag::{Written, is_plain_name, parts, unescaped};
use crate::error::LoadOption;
use crate::parse::held::InParts;
use crate::parse::iris::Iris;
use crate::parse::mends::{quoted, undeclared};
use oxiri::Iri;
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode};
use std::ops::Range;
use std::rc::Rc;

impl<R: InParts> RdfXmlReader<R> {
    /// The parts of a tag, and the namespaces that it declares. Gives back where its name ends.
    pub(super) fn declare(&mut self, begin: Position, tag: &str) -> Result<usize, Fault> {
        let mut written = std::mem::take(&mut self.written);
        let name_end = parts(begin, tag, &mut written);
        let declared = name_end.and_then(|end| {
            for attribute in &written {
                let name = &tag[attribute.name.clone()];
                let prefix = match name.strip_prefix("xmlns") {
                    Some("") => "",
                    Some(prefix) => match prefix.strip_prefix(':') {
                        Some(prefix) => prefix,
                        None => continue,
                    },
                    None => continue,
                };
                let value = self.value(begin, tag, attribute)?;
                if !prefix.is_empty() && prefix != "xml" && self.iris.check(&value).is_ok() {
                    self.prefixes.note_loaded(prefix, &value);
                }
                self.namespaces.push(prefix, value);
            }
            Ok(end)
        });
        self.written = written;
        declared
    }

    fn value(&self, begin: Position, tag: &str, attribute: &Written) -> Result<String, Fault> {
        let value = unescaped(begin, tag, attribute.value.clone(), &self.entities, true)?;
        Ok(value.into_owned())
    }

    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.namespaces.get(prefix).filter(|it| !it.is_empty())
    }

    /// What the name of an element or attribute stands for.
    pub(super) fn resolve_name<'t>(
        &self,
        begin: Position,
        tag: &'t str,
        name: Range<usize>,
        is_element: bool,
    ) -> Result<Name<'t>, Fault> {
        let text = &tag[name.clone()];
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let namespace = match prefix.is_empty() && !is_element {
            true => None,
            false => self.namespace(prefix),
        };
        let Some(namespace) = namespace else {
            let place = begin.part(tag, name);
            if !prefix.is_empty() {
                let said = undeclared(prefix, |name, iri| {
                    format!("add xmlns:{name}=\"{iri}\" to the first element")
                });
                return Err(Fault::of(place, said));
            }
            let message = format!(
                "{} has no namespace, and in RDF/XML each name has one",
                quoted(text)
            );
            let mend = match is_element {
                true => "write a prefix before it, or declare a namespace by xmlns=\"...\"",
                false => "write a prefix before it, as in rdf:about",
            };
            return Err(Fault::new(place, message, mend));
        };
        if namespace == RDF {
            return Ok(Name::Rdf(local));
        }
        let iri = format!("{namespace}{local}");
        match self.iris.check(&iri) {
            Ok(_) => Ok(Name::Other(iri)),
            Err(message) => Err(Fault::plain(
                begin.part(tag, name),
                format!("{} stands for <{iri}>: {message}", quoted(text)),
            )),
        }
    }

    /// What the attributes say, and what holds in the element.
    pub(super) fn attributes(
        &mut self,
        begin: Position,
        tag: &str,
        around: &Scope,
    ) -> Result<(Scope, Attributes), Fault> {
        let written = std::mem::take(&mut self.written);
        let read = self.scope(begin, tag, &written, around).and_then(|scope| {
            let attributes = self.attributes_in(begin, tag, &written, &scope)?;
            Ok((scope, attributes))
        });
        self.written = written;
        read
    }

    fn scope(
        &self,
        begin: Position,
        tag: &str,
        written: &[Written],
        around: &Scope,
    ) -> Result<Scope, Fault> {
        let mut scope = around.clone();
        let mut direction = None;
        for attribute in written {
            let name = &tag[attribute.name.clone()];
            let Some((prefix, local)) = name.split_once(':') else {
                continue;
            };
            match (self.namespace(prefix), local) {
                (Some(XML), "lang") => {
                    let language = self.value(begin, tag, attribute)?;
                    scope.language = match language.is_empty() {
                        true => None,
                        false => Some(language_tag(begin, tag, attribute, &language)?),
                    };
                }
                (Some(XML), "base") => {
                    let iri = self.resolve(begin, tag, attribute, around)?;
                    scope.base = Some(Rc::new(Iri::parse_unchecked(iri.into_string())));
                }
                (Some(ITS), "dir") => direction = Some(attribute),
                (Some(RDF), "version") => {
                    scope.version = match self.value(begin, tag, attribute)?.as_str() {
                        "1.1" => Version::V11,
                        "1.2" => Version::V12,
                        "1.2-basic" => Version::V12Basic,
                        other => {
                            let place = begin.part(tag, attribute.value.clone());
                            let message = format!("{} is no version of RDF", quoted(other));
                            return Err(Fault::new(place, message, "write 1.1, 1.2 or 1.2-basic"));
                        }
                    };
                }
                _ => {}
            }
        }
        if let Some(attribute) = direction
            && scope.version != Version::V11
        {
            scope.direction = match self.value(begin, tag, attribute)?.as_str() {
                "ltr" => Some(BaseDirection::Ltr),
                "rtl" => Some(BaseDirection::Rtl),
                other => {
                    let place = begin.part(tag, attribute.value.clone());
                    let message = format!("{} is no direction of a text", quoted(other));
                    return Err(Fault::new(place, message, "write ltr or rtl"));
                }
            };
        }
        Ok(scope)
    }

    fn attributes_in(
        &mut self,
        begin: Position,
        tag: &str,
        written: &[Written],
        scope: &Scope,
    ) -> Result<Attributes, Fault> {
        let mut found = Attributes::default();
        for attribute in written {
            let at = attribute.name.clone();
            let name = &tag[at.clone()];
            if name.starts_with("xml") {
                // What XML itself has, and namespaces.
                continue;
            }
            if let Some((prefix, "dir" | "version")) = name.split_once(':')
                && self.namespace(prefix) == Some(ITS)
            {
                continue;
            }
            let iri = |reader: &Self| reader.resolve(begin, tag, attribute, scope);
            match self.resolve_name(begin, tag, at.clone(), false)? {
                Name::Rdf("ID") => found.id = Some((self.id(begin, tag, attribute, scope)?, at)),
                Name::Rdf("nodeID") => {
                    found.node_id = Some((self.label(begin, tag, attribute)?, at));
                }
                Name::Rdf("bagID") => drop(self.label(begin, tag, attribute)?),
                Name::Rdf("about") => found.about = Some((iri(self)?, at)),
                Name::Rdf("resource") => found.resource = Some((iri(self)?, at)),
                Name::Rdf("datatype") => found.datatype = Some((iri(self)?, at)),
                Name::Rdf("type") => found.of_type = Some((iri(self)?, at)),
                Name::Rdf("annotation") => found.annotation = Some((iri(self)?, at)),
                Name::Rdf("annotationNodeID") => {
                    found.annotation_node = Some((self.label(begin, tag, attribute)?, at));
                }
                Name::Rdf("version") => {}
                Name::Rdf("parseType") => {
                    let value = match self.value(begin, tag, attribute)?.as_str() {
                        "Collection" => ParseType::Collection,
                        "Literal" => ParseType::Literal,
                        "Resource" => ParseType::Resource,
                        "Triple" => ParseType::Triple,
                        _ => ParseType::Other,
                    };
                    found.parse_type = Some((value, at));
                }
                Name::Rdf("aboutEach" | "aboutEachPrefix" | "li" | "RDF" | "Description") => {
                    return Err(not_here(begin, tag, at));
                }
                Name::Rdf(local) => {
                    let value = self.value(begin, tag, attribute)?;
                    let iri = NamedNode::new_unchecked(format!("{RDF}{local}"));
                    found.properties.push((iri, value, at));
                }
                Name::Other(iri) => {
                    let value = self.value(begin, tag, attribute)?;
                    found
                        .properties
                        .push((NamedNode::new_unchecked(iri), value, at));
                }
            }
        }
        Ok(found)
    }

    /// The IRI that the value of an attribute is, absolute or not.
    fn resolve(
        &self,
        begin: Position,
        tag: &str,
        attribute: &Written,
        scope: &Scope,
    ) -> Result<NamedNode, Fault> {
        let value = unescaped(begin, tag, attribute.value.clone(), &self.entities, true)?;
        self.resolved(&value, scope).map_err(|found| {
            let fault = Fault::of_iri(begin, tag, attribute.value.clone(), &found);
            match found.contains("No scheme found") {
                true => fault.with(LoadOption::Base),
                false => fault,
            }
        })
    }

    fn resolved(&self, iri: &str, scope: &Scope) -> Result<NamedNode, String> {
        let absolute = match &scope.base {
            Some(base) => match base.resolve(iri) {
                Ok(absolute) => absolute.into_inner(),
                Err(error) if self.iris == Iris::Right => return Err(error.to_string()),
                Err(_) => base.resolve_unchecked(iri).into_inner(),
            },
            None => iri.to_owned(),
        };
        match self.iris.check(&absolute) {
            Ok(_) => Ok(NamedNode::new_unchecked(absolute)),
            Err(message) => Err(message.into_owned()),
        }
    }

    fn id(
        &mut self,
        begin: Position,
        tag: &str,
        attribute: &Written,
        scope: &Scope,
    ) -> Result<NamedNode, Fault> {
        let value = self.value(begin, tag, attribute)?;
        let place = || begin.part(tag, attribute.value.clone());
        if !is_plain_name(&value) {
            let message = format!("{} is no rdf:ID", quoted(&value));
            let mend = "it is a name: it begins with a letter or `_`, and has no spaces; rdf:about=\"...\" takes any IRI";
            return Err(Fault::new(place(), message, mend));
        }
        let iri = self
            .resolved(&format!("#{value}"), scope)
            .map_err(|found| {
                Fault::of_iri(begin, tag, attribute.value.clone(), &found).with(LoadOption::Base)
            })?;
        if !self.ids.insert(iri.as_str().to_owned()) {
            let message = format!("the rdf:ID {} was given before", quoted(&value));
            let mend = "give another, or say more of the same thing by rdf:about=\"#...\"";
            return Err(Fault::new(place(), message, mend));
        }
        Ok(iri)
    }

    /// The label of a blank node.
    fn label(&self, begin: Position, tag: &str, attribute: &Written) -> Result<BlankNode, Fault> {
        let value = self.value(begin, tag, attribute)?;
        match is_plain_name(&value) {
            true => Ok(BlankNode::new_unchecked(value)),
            false => Err(Fault::new(
                begin.part(tag, attribute.value.clone()),
                format!("{} is no name of a node", quoted(&value)),
                "it begins with a letter or `_`, and has no spaces and no colon",
            )),
        }
    }
}

/// An attribute that an element must not have.
pub(super) fn not_here(begin: Position, tag: &str, name: Range<usize>) -> Fault {
    let message = format!("{} does not belong here", quoted(&tag[name.clone()]));
    let mend = "take it away, or put it on an element that can have it (RDF/XML, 7.2)";
    Fault::new(begin.part(tag, name), message, mend)
}

fn language_tag(
    begin: Position,
    tag: &str,
    attribute: &Written,
    language: &str,
) -> Result<Rc<str>, Fault> {
    let language = language.to_ascii_lowercase();
    match Literal::new_language_tagged_literal("", language.as_str()) {
        Ok(_) => Ok(language.into()),
        Err(error) => Err(Fault::new(
            begin.part(tag, attribute.value.clone()),
            format!("{} is no language tag: {error}", quoted(&language)),
            "write one such as en or de-AT",
        )),
    }
}
