//! What is said of wrong RDF/XML. Its parser knows no places: what it found is looked for on the line that it was given last.

use super::{Said, Surroundings, between, undeclared};

/// Attributes whose values are IRIs.
const IRI_ATTRIBUTES: [&str; 4] = ["about", "resource", "datatype", "base"];

pub(super) fn in_xml(found: &str, place: Surroundings<'_>) -> Option<Said> {
    let from = place.from;
    let at = |text: &str| from.find(text).unwrap_or(0);
    if let Some(name) = found.strip_prefix("Unknown prefix ") {
        let name = name.trim_end_matches(':');
        let said = undeclared(name, |name, iri| {
            format!("add xmlns:{name}=\"{iri}\" to the first element")
        });
        return Some(said.at(use_of_prefix(from, name).unwrap_or(0)));
    }
    if found.contains("Cannot find ';' after '&'") || found.contains("unescaped '&'") {
        let mut ampersands = from.match_indices('&').map(|(at, _)| at);
        let shift = ampersands.find(|at| !is_reference(&from[at + 1..]));
        let shift = shift.unwrap_or(0);
        return Some(Said::new("`&` stands by itself", "write `&amp;`").at(shift));
    }
    if let Some((_, tags)) = found.split_once("expected `")
        && let Some((expected, closed)) = tags.split_once("`, but `")
        && let Some(closed) = closed.strip_suffix("` was found")
    {
        let opened = expected.replacen("</", "<", 1);
        let said = Said::new(
            format!("`{closed}` stands where `{opened}` has to be closed"),
            format!("write `{expected}`, or close with it what was opened last"),
        );
        return Some(said.at(at(closed)));
    }
    if let Some((_, entity)) = found.split_once("unrecognized entity `") {
        let entity = format!("&{};", entity.trim_end_matches('`'));
        let said = Said::new(
            format!("there is no entity `{entity}`"),
            "write the character itself; XML has &lt; &gt; &amp; &quot; &apos; and those that <!DOCTYPE declares",
        );
        return Some(said.at(at(&entity)));
    }
    if let Some(text) = between(found, "Unexpected text event: '", "'") {
        let text = text.trim();
        let said = Said::new(
            "a text stands between elements",
            "put it into the element of a property, or take it away",
        );
        return Some(said.at(at(text)));
    }
    if found.contains("attribute value must be enclosed in") {
        let said = Said::new(
            "the value of an attribute stands without quotes",
            "write `name=\"value\"`",
        );
        return Some(said.at(unquoted_value(from).unwrap_or(0)));
    }
    if let Some(value) = found.strip_suffix(" is not a valid rdf:ID value") {
        let said = Said::new(
            format!("`{value}` is no rdf:ID"),
            "it is a name: it begins with a letter or `_`, and has no spaces; rdf:about=\"...\" takes any IRI",
        );
        return Some(said.at(at("rdf:ID")));
    }
    if found.contains("tag not closed") {
        return Some(Said::new(
            "the file ends within a tag",
            "it may have been cut; fetch or write it anew",
        ));
    }
    None
}

/// Where a prefix is used as the name of an element or attribute: not within another name.
fn use_of_prefix(line: &str, name: &str) -> Option<usize> {
    let used = format!("{name}:");
    let mut places = line.match_indices(&used).map(|(at, _)| at);
    let is_begin = |at: &usize| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|it| it.is_whitespace() || matches!(it, '<' | '/'))
    };
    places.find(is_begin)
}

/// Where the first value stands that has no quotes.
fn unquoted_value(line: &str) -> Option<usize> {
    let mut signs = line.match_indices('=').map(|(at, _)| at + 1);
    signs.find(|at| !line[*at..].trim_start().starts_with(['"', '\'']))
}

/// Where a character stands in the value of an attribute that is an IRI.
pub(super) fn wrong_in_iri(line: &str, wrong: char) -> Option<usize> {
    for (sign, _) in line.match_indices('=') {
        let name = line[..sign].trim_end();
        if !IRI_ATTRIBUTES.iter().any(|it| name.ends_with(it)) {
            continue;
        }
        let quote = line[sign + 1..].chars().next()?;
        let start = sign + 1 + quote.len_utf8();
        let end = line[start..]
            .find(quote)
            .map_or(line.len(), |at| start + at);
        if let Some(at) = line[start..end].find(wrong) {
            return Some(start + at);
        }
    }
    None
}

/// Whether a text behind `&` makes a reference of it: `amp;`, `#38;`.
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix('#').unwrap_or(text);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    end.is_some_and(|end| end > 0 && name[end..].starts_with(';'))
}
