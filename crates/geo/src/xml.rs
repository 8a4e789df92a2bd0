//! XML texts as element trees, for GML and KML.
//!
//! The texts are untrusted data: no document type, no entities but the five of XML in attributes,
//! [`ELEMENTS_MAX`] elements, nested no deeper than [`DEPTH_MAX`], and [`ATTRIBUTES_MAX`]
//! attributes each. A tree takes some 100 bytes an element beside what the text takes, while it is
//! read.

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

/// As deep as what Well-Known Text of 32 parentheses becomes: a collection is two elements.
pub(crate) const DEPTH_MAX: usize = 64;
/// Elements of one text: lines and areas have their points in one.
const ELEMENTS_MAX: usize = 1 << 18;
/// Attributes of one element, declarations of namespaces among them.
const ATTRIBUTES_MAX: usize = 16;
/// Those that say something of a geometry. Others are read, and let go.
const ATTRIBUTES: [&str; 5] = ["srsName", "srsDimension", "decimal", "cs", "ts"];

/// An element, with what is in it.
#[derive(Debug, Default)]
pub(crate) struct Element {
    /// Without its prefix; empty where it is of another vocabulary.
    pub(crate) name: Box<str>,
    attributes: Vec<(Box<str>, Box<str>)>,
    /// The text between its children.
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// The value of an attribute without a prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| &**value)
    }

    /// Its only child that has a name; none where there are none or more.
    pub(crate) fn only_child(&self) -> Option<&Element> {
        let mut named = self.children.iter().filter(|it| !it.name.is_empty());
        named.next().filter(|_| named.next().is_none())
    }
}

/// The only element of a text, if it is of a vocabulary; what has no namespace is taken for one of
/// it.
pub(crate) fn read(text: &str, is_known: fn(&str) -> bool) -> Option<Element> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let mut elements = 0;
    loop {
        let (namespace, event) = reader.read_resolved_event().ok()?;
        match event {
            Event::Start(start) => {
                elements += 1;
                if root.is_some() || open.len() == DEPTH_MAX || elements > ELEMENTS_MAX {
                    return None;
                }
                let is_known = match namespace {
                    ResolveResult::Bound(iri) => is_known(std::str::from_utf8(iri.0).ok()?),
                    ResolveResult::Unbound => true,
                    ResolveResult::Unknown(_) => return None,
                };
                open.push(opened(&start, is_known)?);
            }
            Event::End(_) => {
                let closed = open.pop()?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => root = Some(closed),
                }
            }
            Event::Text(text) => add(&mut open, &text.decode().ok()?)?,
            Event::CData(text) => add(&mut open, &text.decode().ok()?)?,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(_) | Event::GeneralRef(_) | Event::Empty(_) => return None,
            Event::Eof => break,
        }
    }
    root.filter(|root| open.is_empty() && !root.name.is_empty())
}

fn opened(start: &BytesStart<'_>, is_known: bool) -> Option<Element> {
    let mut element = Element::default();
    if is_known {
        element.name = std::str::from_utf8(start.local_name().into_inner())
            .ok()?
            .into();
    }
    for (place, attribute) in start.attributes().with_checks(false).enumerate() {
        let attribute = attribute.ok()?;
        if place == ATTRIBUTES_MAX {
            return None;
        }
        if attribute.key.prefix().is_none() && attribute.key.as_namespace_binding().is_none() {
            let value = std::str::from_utf8(&attribute.value).ok()?;
            let value = quick_xml::escape::unescape(value).ok()?;
            let name = std::str::from_utf8(attribute.key.into_inner()).ok()?;
            if ATTRIBUTES.contains(&name) {
                element.attributes.push((name.into(), value.into()));
            }
        }
    }
    Some(element)
}

/// Adds text to the element that is open; none where it stands outside of all.
fn add(open: &mut [Element], text: &str) -> Option<()> {
    match open.last_mut() {
        Some(element) => {
            element.text.push_str(text);
            Some(())
        }
        None => text.trim().is_empty().then_some(()),
    }
}

/// A text as it stands between quotation marks.
pub(crate) fn escaped(text: &str) -> std::borrow::Cow<'_, str> {
    quick_xml::escape::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<String> {
        fn of(element: &Element) -> String {
            let children: Vec<String> = element.children.iter().map(of).collect();
            format!(
                "{}[{}]{}",
                element.name,
                element.text.trim(),
                children.concat()
            )
        }
        read(text, |iri| iri == "urn:a").as_ref().map(of)
    }

    #[test]
    fn elements_are_told_by_their_namespace() {
        for (text, expected) in [
            ("<a/>", "a[]"),
            ("<a xmlns='urn:a'>1<b>2</b>3</a>", "a[13]b[2]"),
            ("<x:a xmlns:x='urn:a'><y:b xmlns:y='urn:b'/></x:a>", "a[][]"),
            (
                " <?xml version='1.0'?><!-- c --><a><![CDATA[1 2]]></a>\n",
                "a[1 2]",
            ),
        ] {
            assert_eq!(names(text).as_deref(), Some(expected), "{text}");
        }
        let read = read(
            "<a srsName='1 &lt; 2' other='1' x:cs='2' xmlns:x='urn:b'/>",
            |_| true,
        )
        .unwrap();
        assert_eq!(read.attribute("srsName"), Some("1 < 2"));
        assert_eq!(read.attribute("cs"), None);
        assert_eq!(read.attribute("other"), None);
    }

    #[test]
    fn what_is_no_tree_or_too_much_of_one_is_none() {
        let deep = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        assert!(names(&deep(DEPTH_MAX)).is_some());
        let many = format!("<a>{}</a>", "<b/>".repeat(ELEMENTS_MAX));
        let attributes: Vec<String> = (0..30_000).map(|n| format!("xmlns:a{n}='u'")).collect();
        let attributes = format!("<a {}/>", attributes.join(" "));
        let billion = "<!DOCTYPE a [<!ENTITY b 'cc'>]><a>&b;</a>";
        for text in [
            "",
            "a",
            "<a>",
            "<a></b>",
            "</a>",
            "<a/><a/>",
            "<a/>b",
            "<x:a/>",
            "<a xmlns='urn:b'/>",
            "<a>&lt;</a>",
            "<a>&b;</a>",
            "<a b='&c;'/>",
            billion,
            &many,
            &attributes,
            &deep(DEPTH_MAX + 1),
            &deep(100_000),
        ] {
            assert!(names(text).is_none(), "{text:.80}");
        }
    }
}
