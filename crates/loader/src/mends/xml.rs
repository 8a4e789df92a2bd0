//! What is said of wrong RDF/XML. Its parser knows no places: what it found is looked for on the line that it was given last,
//! and is placed where it stands there once. Else the whole line is meant, which is what no shift says.

use super::wording::{LOOKED_AT_BYTES, Said, Surroundings, between, quoted, undeclared};

/// Attributes whose values are IRIs.
const IRI_ATTRIBUTES: [&str; 4] = ["about", "resource", "datatype", "base"];

pub(super) fn in_xml(found: &str, place: Surroundings<'_>) -> Option<Said> {
    let from = searchable(place.from);
    let at = |text: &str| sole(from.match_indices(text).map(|(at, _)| at)).unwrap_or(0);
    if let Some(name) = found.strip_prefix("Unknown prefix ") {
        let name = name.trim_end_matches(':');
        let said = undeclared(name, |name, iri| {
            format!("add xmlns:{name}=\"{iri}\" to the first element")
        });
        return Some(said.at(use_of_prefix(from, name).unwrap_or(0)));
    }
    if found.contains("Cannot find ';' after '&'") || found.contains("unescaped '&'") {
        let ampersands = from.match_indices('&').map(|(at, _)| at);
        let shift = sole(ampersands.filter(|at| !is_reference(&from[at + 1..])));
        let shift = shift.unwrap_or(0);
        return Some(Said::new("`&` stands by itself", "write `&amp;`").at(shift));
    }
    if let Some((_, tags)) = found.split_once("expected `")
        && let Some((expected, closed)) = tags.split_once("`, but `")
        && let Some(closed) = closed.strip_suffix("` was found")
    {
        let opened = expected.replacen("</", "<", 1);
        let said = Said::new(
            format!(
                "{} stands where {} has to be closed",
                quoted(closed),
                quoted(&opened)
            ),
            format!(
                "write {}, or close with it what was opened last",
                quoted(expected)
            ),
        );
        return Some(said.at(at(closed)));
    }
    if let Some((_, entity)) = found.split_once("unrecognized entity `") {
        let entity = format!("&{};", entity.trim_end_matches('`'));
        let said = Said::new(
            format!("there is no entity {}", quoted(&entity)),
            "write the character itself; XML has &lt; &gt; &amp; &quot; &apos; and those that <!DOCTYPE declares",
        );
        return Some(said.at(at(&entity)));
    }
    if let Some(text) = between(found, "Unexpected text event: '", "'") {
        let shift = text_between_tags(from, text.trim());
        let said = Said::new(
            "a text stands between elements",
            "put it into the element of a property, or take it away",
        );
        return Some(said.at(shift.unwrap_or(0)));
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
            format!("{} is no rdf:ID", quoted(value)),
            "it is a name: it begins with a letter or `_`, and has no spaces; rdf:about=\"...\" takes any IRI",
        );
        return Some(said.at(attribute(from, "rdf:ID", value).unwrap_or(0)));
    }
    if found.contains("tag not closed") {
        return Some(Said::new(
            "the file ends within a tag",
            "it may have been cut; fetch or write it anew",
        ));
    }
    None
}

/// The line, where all of it is known and all of it is tags and text; else nothing.
fn searchable(line: &str) -> &str {
    // A character may be cut at its end.
    let is_whole = line.len() + 4 < LOOKED_AT_BYTES;
    let is_other = ["<!--", "-->", "<![CDATA[", "]]>"]
        .iter()
        .any(|it| line.contains(it));
    if is_whole && !is_other { line } else { "" }
}

/// The only one of some places.
fn sole(mut places: impl Iterator<Item = usize>) -> Option<usize> {
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

/// The line with blanks for the text between tags and for what stands in quotes; each byte keeps its place.
fn of_tags(line: &str) -> String {
    // It may begin within a tag.
    let mut is_tag = !line
        .trim_start_matches(|c| !matches!(c, '<' | '>'))
        .starts_with('<');
    let mut quote = None;
    let mut tags = String::with_capacity(line.len());
    for character in line.chars() {
        let is_shown = match quote {
            Some(open) if open == character => {
                quote = None;
                true
            }
            Some(_) => false,
            None if is_tag => {
                quote = matches!(character, '"' | '\'').then_some(character);
                is_tag = character != '>';
                true
            }
            None => {
                is_tag = character == '<';
                is_tag
            }
        };
        match is_shown {
            true => tags.push(character),
            false => tags.extend((0..character.len_utf8()).map(|_| ' ')),
        }
    }
    tags
}

/// Where a prefix is used first as that of an element or attribute, if it is not declared on the line.
fn use_of_prefix(line: &str, name: &str) -> Option<usize> {
    let tags = of_tags(line);
    if tags.contains(&format!("xmlns:{name}")) {
        return None;
    }
    let used = format!("{name}:");
    let mut places = tags.match_indices(&used).map(|(at, _)| at);
    let is_begin = |at: &usize| {
        let before = tags[..*at].chars().next_back();
        before.is_none_or(|it| it.is_whitespace() || it == '<')
    };
    places.find(is_begin)
}

/// Where a text stands between two tags, or between one and the line's end.
fn text_between_tags(line: &str, text: &str) -> Option<usize> {
    let places = line.match_indices(text).map(|(at, _)| at);
    sole(places.filter(|at| {
        let (before, behind) = (line[..*at].trim_end(), line[at + text.len()..].trim_start());
        (before.is_empty() || before.ends_with('>'))
            && (behind.is_empty() || behind.starts_with('<'))
    }))
}

/// Where an attribute stands with a value.
fn attribute(line: &str, name: &str, value: &str) -> Option<usize> {
    let tags = of_tags(line);
    let places = tags.match_indices(name).map(|(at, _)| at);
    sole(places.filter(|at| {
        let behind = line[at + name.len()..].trim_start().strip_prefix('=');
        let behind = behind.unwrap_or_default().trim_start();
        let written = behind.strip_prefix(['"', '\'']).unwrap_or_default();
        written
            .strip_prefix(value)
            .is_some_and(|end| end.starts_with(['"', '\'']))
    }))
}

/// Where a value stands that has no quotes.
fn unquoted_value(line: &str) -> Option<usize> {
    let tags = of_tags(line);
    let signs = tags.match_indices('=').map(|(at, _)| at + 1);
    sole(signs.filter(|at| {
        let value = tags[*at..].trim_start();
        !value.is_empty() && !value.starts_with(['"', '\''])
    }))
}

/// Where a character stands in the value of an attribute that is an IRI.
pub(super) fn wrong_in_iri(line: &str, wrong: char) -> Option<usize> {
    let line = searchable(line);
    let tags = of_tags(line);
    let signs = tags.match_indices('=').map(|(at, _)| at);
    sole(signs.filter_map(|sign| {
        let name = line[..sign].trim_end();
        if !IRI_ATTRIBUTES.iter().any(|it| name.ends_with(it)) {
            return None;
        }
        let value = line[sign + 1..].trim_start();
        let quote = value.chars().next()?;
        let inner = value.get(quote.len_utf8()..)?;
        let inner = &inner[..inner.find(quote).unwrap_or(inner.len())];
        let start = line.len() - value.len() + quote.len_utf8();
        Some(start + inner.find(wrong)?)
    }))
}

/// Whether a text behind `&` makes a reference of it: `amp;`, `#38;`.
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix('#').unwrap_or(text);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    end.is_some_and(|end| end > 0 && name[end..].starts_with(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of the line from the place on that is told, nothing where the whole line is meant.
    fn placed<'t>(found: &str, from: &'t str) -> &'t str {
        let place = Surroundings { before: "", from };
        match in_xml(found, place).unwrap().shift {
            0 => "",
            at => &from[at..],
        }
    }

    #[test]
    fn a_finding_is_placed_where_it_stands_once() {
        let tags = "ill-formed document: expected `</e:b>`, but `</e:c>` was found";
        assert_eq!(placed(tags, "<e:b>x</e:c>"), "</e:c>");
        assert_eq!(placed(tags, "<e:c>1</e:c><e:b>x</e:c>"), "");
        assert_eq!(placed(tags, "<!-- </e:c> --><e:b>x\n"), "");
        let long = format!("<e:b>x</e:c>{}", "<e:d/>".repeat(LOOKED_AT_BYTES));
        assert_eq!(placed(tags, &long[..LOOKED_AT_BYTES - 1]), "");
        let text = "Unexpected text event: ' T '";
        assert_eq!(placed(text, "<e:T/> T <e:T/>"), "T <e:T/>");
        assert_eq!(placed(text, "<e:T/> T <e:T/> T <e:T/>"), "");
        let id = "1 2 is not a valid rdf:ID value";
        assert_eq!(
            placed(id, "<e:S rdf:ID='ok'><e:T rdf:ID='1 2'/>"),
            "rdf:ID='1 2'/>"
        );
        let bare = "attribute value must be enclosed in `\"` or `'`";
        assert_eq!(
            placed(bare, "<e:T rdf:about=\"http://x/?a=b\" e:p=5>"),
            "5>"
        );
        assert_eq!(placed(bare, "e:q='a=b' e:p=5> it's a=b"), "5> it's a=b");
        let prefix = "Unknown prefix f:";
        assert_eq!(
            placed(prefix, "<e:b e:q='see f:x'>f:y<f:b/></e:b>"),
            "f:b/></e:b>"
        );
        let line = "<e:b rdf:resource='a b'/><e:b rdf:resource='c'/>";
        assert_eq!(wrong_in_iri(line, ' '), line.find(" b'"));
        assert_eq!(wrong_in_iri(&line.replace('c', "c d"), ' '), None);
    }

    #[test]
    fn names_are_cut() {
        let name = "n".repeat(10_000);
        for found in [
            format!("expected `</{name}>`, but `</{name}x>` was found"),
            format!("unrecognized entity `{name}`"),
            format!("{name} is not a valid rdf:ID value"),
            format!("Unknown prefix {name}:"),
        ] {
            let place = Surroundings {
                before: "",
                from: "",
            };
            let said = in_xml(&found, place).unwrap();
            let length = said.message.len() + said.mend.map_or(0, |mend| mend.len());
            assert!(length < 400, "{length}: {}", &found[..20]);
        }
    }
}
