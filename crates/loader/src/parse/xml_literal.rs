//! XML literals of RDF/XML: only the namespaces in use are declared.
//!
//! The parser writes every namespace in scope on the outermost elements of an XML literal, so
//! that the same content becomes another literal in each document. As exclusive canonicalization has
//! it (W3C, Exclusive XML Canonicalization 1.0, 3), a declaration stays where an element or attribute
//! uses it and no element around declared it already. The order of attributes is left as it is.
//!
//! Text that is not of the form that the parser writes is returned unchanged.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Declarations: prefix (empty for the default namespace) to the raw text of the namespace.
type Declarations<'a> = BTreeMap<&'a str, &'a str>;

/// An open element.
#[derive(Default)]
struct Scope<'a> {
    /// What the input declares here.
    declared: Declarations<'a>,
    /// What the output declares here.
    rendered: Declarations<'a>,
}

/// A start tag, cut into its parts.
struct StartTag<'a> {
    name: &'a str,
    declared: Declarations<'a>,
    /// Names and raw values, without quotes.
    attributes: Vec<(&'a str, &'a str)>,
    is_empty: bool,
}

/// The literal with the declarations in use only.
pub(crate) fn with_used_namespaces(text: &str) -> Cow<'_, str> {
    if !text.contains("xmlns") {
        return Cow::Borrowed(text);
    }
    rewritten(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `None` where the text is not well formed.
fn rewritten(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<Scope<'_>> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = markup_end(rest)?;
        let markup = &rest[..end];
        rest = &rest[end..];
        if markup.starts_with("<!") || markup.starts_with("<?") {
            out.push_str(markup);
        } else if markup.starts_with("</") {
            open.pop()?;
            out.push_str(markup);
        } else {
            let tag = start_tag(markup)?;
            let scope = write_start(&tag, &open, &mut out);
            if tag.is_empty {
                // Canonical XML has no empty-element tags.
                let _ = write!(out, "</{}>", tag.name);
            } else {
                open.push(scope);
            }
        }
    }
    out.push_str(rest);
    open.is_empty().then_some(out)
}

/// Where the markup that the text begins with ends.
fn markup_end(text: &str) -> Option<usize> {
    for (opening, closing) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if let Some(inside) = text.strip_prefix(opening) {
            let length = inside.find(closing)?;
            return Some(opening.len() + length + closing.len());
        }
    }
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

fn start_tag(markup: &str) -> Option<StartTag<'_>> {
    let inner = markup.strip_prefix('<')?.strip_suffix('>')?;
    let (inner, is_empty) = match inner.strip_suffix('/') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    let name_end = inner
        .find(|c: char| c.is_ascii_whitespace())
        .unwrap_or(inner.len());
    let (name, mut rest) = inner.split_at(name_end);
    let mut tag = StartTag {
        name,
        declared: Declarations::new(),
        attributes: Vec::new(),
        is_empty,
    };
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(tag);
        }
        let (attribute, after) = rest.split_once('=')?;
        let after = after.trim_ascii_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        rest = after;
        let attribute = attribute.trim_ascii_end();
        match attribute.strip_prefix("xmlns") {
            Some("") => drop(tag.declared.insert("", value)),
            Some(prefix) if prefix.starts_with(':') => {
                tag.declared.insert(&prefix[1..], value);
            }
            _ => tag.attributes.push((attribute, value)),
        }
    }
}

/// Writes a start tag with the declarations that it needs.
fn write_start<'a>(tag: &StartTag<'a>, open: &[Scope<'a>], out: &mut String) -> Scope<'a> {
    let prefix_of = |name: &'a str| name.split_once(':').map(|(prefix, _)| prefix);
    let mut scope = Scope {
        declared: tag.declared.clone(),
        rendered: Declarations::new(),
    };
    let attributes = tag
        .attributes
        .iter()
        .filter_map(|(name, _)| prefix_of(name));
    for prefix in attributes.chain([prefix_of(tag.name).unwrap_or_default()]) {
        let around = || open.iter().rev();
        let declared = scope.declared.get(prefix).copied();
        let declared = declared.or_else(|| around().find_map(|s| s.declared.get(prefix).copied()));
        let rendered = around().find_map(|scope| scope.rendered.get(prefix).copied());
        let Some(namespace) = declared else { continue };
        if rendered.unwrap_or_default() != namespace {
            scope.rendered.insert(prefix, namespace);
        }
    }
    // Writing to a String cannot fail.
    let _ = write!(out, "<{}", tag.name);
    for (prefix, namespace) in &scope.rendered {
        let colon = if prefix.is_empty() { "" } else { ":" };
        let quote = quote_for(namespace);
        let _ = write!(out, " xmlns{colon}{prefix}={quote}{namespace}{quote}");
    }
    for (name, value) in &tag.attributes {
        let quote = quote_for(value);
        let _ = write!(out, " {name}={quote}{value}{quote}");
    }
    out.push('>');
    scope
}

/// A raw value holds at most one kind of quotes: the kind that it did not stand in.
fn quote_for(value: &str) -> char {
    if value.contains('"') { '\'' } else { '"' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_namespaces_are_left_out() {
        assert_eq!(
            with_used_namespaces("a <br xmlns:r=\"urn:r\" xmlns:e=\"urn:e\"></br> b"),
            "a <br></br> b"
        );
    }

    #[test]
    fn a_namespace_is_declared_where_it_is_used_first() {
        let text = "<h:h1 xmlns=\"urn:x\" xmlns:h=\"urn:h\" xmlns:h=\"urn:h\" xmlns:r=\"urn:r\">\
                    <b r:c='\"'>x<b/></b><h:i></h:i></h:h1><!-- <a> --><?p <a>?>";
        assert_eq!(
            with_used_namespaces(text),
            "<h:h1 xmlns:h=\"urn:h\"><b xmlns=\"urn:x\" xmlns:r=\"urn:r\" r:c='\"'>x<b></b></b>\
             <h:i></h:i></h:h1><!-- <a> --><?p <a>?>"
        );
    }

    #[test]
    fn a_default_namespace_can_be_taken_back() {
        let text = "<a xmlns=\"urn:x\"><b xmlns=\"\"><c></c></b></a>";
        assert_eq!(with_used_namespaces(text), text);
    }

    #[test]
    fn what_is_not_well_formed_stays() {
        for text in [
            "<a xmlns=\"urn:x\">",
            "</a> xmlns",
            "<a xmlns=",
            "<a xmlns></a>",
        ] {
            assert!(
                matches!(with_used_namespaces(text), Cow::Borrowed(_)),
                "{text}"
            );
        }
    }
}
