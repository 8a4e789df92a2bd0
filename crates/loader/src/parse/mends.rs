//! Messages about syntax errors in RDF: the parser's finding in plain words, and the likely fix.
//!
//! The parsers say what they expected where they stopped. What was meant shows in the text around:
//! a name whose prefix is not declared, a quote that is never closed, a tag with an underscore.
//! This is looked for here, once there is an error; nothing is parsed again.

mod json;
mod wording;

pub(crate) use json::place_of as place_in_json;
pub(crate) use wording::{Said, Surroundings, quoted, undeclared};

use wording::{TOKEN_CHARACTERS_MAX, between, cut};

use crate::error::LoadOption;
use crate::excerpt::shown;
use crate::sources::format::Format;
use orrery_term::prefixes::probably_meant;

/// Longest message or mend, in characters: parsers repeat tokens of any length.
const SAID_CHARACTERS_MAX: usize = 400;

/// What is said of texts in lines that look like Turtle.
const IF_TURTLE: &str = "if the text is Turtle, give that as its format";

/// Names of prefixes that are schemes of IRIs in truth.
const SCHEMES: [&str; 6] = ["file", "ftp", "http", "https", "mailto", "urn"];

/// What is said of a parser's finding; of one whose text is gone, the parser's words.
pub(crate) fn said(format: Format, found: &str, place: Option<Surroundings<'_>>) -> Said {
    let of_place = |place| {
        let known = match format {
            Format::Turtle | Format::TriG => in_turtle(format, found, place),
            Format::NTriples | Format::NQuads => in_lines(format, found, place),
            // Its parser says what it found as people are told it, but for IRIs.
            Format::RdfXml => None,
            Format::JsonLd => json::in_json(found),
        };
        known.or_else(|| in_iri(format, found, place))
    };
    let known = match place {
        Some(place) => of_place(place),
        // What its parser finds without a place is told without one.
        None if format == Format::JsonLd => {
            let nowhere = Surroundings {
                before: "",
                from: "",
            };
            json::in_json(found).or_else(|| in_iri(format, found, nowhere))
        }
        None => None,
    };
    let known = known.or_else(|| in_another_encoding(found));
    let said = known.unwrap_or_else(|| Said::plain(found));
    // Both repeat what stands in the file.
    Said {
        message: shown(&cut(&said.message, SAID_CHARACTERS_MAX)),
        mend: said
            .mend
            .map(|mend| shown(&cut(&mend, SAID_CHARACTERS_MAX))),
        ..said
    }
}

/// Bytes that are no characters.
fn in_another_encoding(found: &str) -> Option<Said> {
    let is_encoding = found.to_ascii_lowercase().contains("utf-8");
    is_encoding.then(|| {
        Said::new(
            found,
            "the file is not UTF-8; convert it, e.g. `iconv -f latin1 -t utf-8`",
        )
    })
}

/// What may be wrong with an IRI, wherever it stands.
fn in_iri(format: Format, found: &str, place: Surroundings<'_>) -> Option<Said> {
    // A datatype of JSON-LD is no matter of the base.
    if found.contains("No scheme found") && !found.starts_with("@type value") {
        let iri = place.token();
        return Some(match format {
            Format::NTriples | Format::NQuads => Said::new(
                format!(
                    "{iri} is a relative IRI, and {} has absolute ones only",
                    format.name()
                ),
                format!("write it in full; {IF_TURTLE}"),
            )
            .with(LoadOption::Format(Format::Turtle)),
            Format::Turtle | Format::TriG => Said::new(
                format!("{iri} is a relative IRI, and there is no base"),
                "write `@base <...> .` at the top",
            )
            .with(LoadOption::Base),
            Format::RdfXml => Said::new(
                "there is a relative IRI, and no base",
                "add xml:base=\"...\" to the first element",
            )
            .with(LoadOption::Base),
            Format::JsonLd => Said::new(
                "there is a relative IRI, and no base",
                "add \"@base\": \"...\" to the context",
            )
            .with(LoadOption::Base),
        });
    }
    if let Some((_, part)) = found.split_once("Invalid IRI percent encoding '") {
        let part = part.split_once('\'').map_or(part, |(part, _)| part);
        let shift = place.from.find(part).unwrap_or(0);
        let said = Said::new(
            format!("{} in an IRI encodes nothing", quoted(part)),
            "write %25 for a percent sign",
        );
        return Some(may_be_as_written(format, said.at(shift)));
    }
    let (_, rest) = found.split_once("Invalid IRI code point '")?;
    let wrong = rest.chars().next()?;
    // Not there, if it was written as an escape: the parsers see what that stands for.
    let written_at = match format {
        Format::RdfXml => place.from.find(wrong),
        _ => place.from.strip_prefix('<').and_then(|iri| {
            let end = iri.find('>').unwrap_or(iri.len());
            Some(1 + iri[..end].find(wrong)?)
        }),
    };
    if written_at.is_some() && format != Format::RdfXml && matches!(wrong, '<' | '\n' | '\r') {
        return Some(unclosed_iri());
    }
    let shift = written_at.unwrap_or(0);
    let name = match wrong {
        ' ' => "a space".to_owned(),
        other if other.is_control() => format!("U+{:04X}", u32::from(other)),
        other => format!("`{other}`"),
    };
    let mend = match wrong {
        ' ' if written_at.is_some() && format != Format::RdfXml => {
            "write %20 for it, or close the IRI with `>` before it".to_owned()
        }
        other => {
            let mut bytes = [0; 4];
            let bytes = other.encode_utf8(&mut bytes).bytes();
            let encoded: String = bytes.map(|byte| format!("%{byte:02X}")).collect();
            format!("write {encoded} for it")
        }
    };
    let said = Said::new(format!("{name} stands in an IRI"), mend).at(shift);
    Some(match wrong <= ' ' || "<>\"{}|^`\\".contains(wrong) {
        // What N-Triples cannot write is never taken.
        true => said,
        false => may_be_as_written(format, said),
    })
}

fn may_be_as_written(format: Format, said: Said) -> Said {
    match format {
        Format::JsonLd => said,
        _ => said.with(LoadOption::LenientIris),
    }
}

fn unclosed_iri() -> Said {
    Said::new(
        "the IRI that begins here is not closed",
        "put `>` behind it",
    )
}

fn in_turtle(format: Format, found: &str, place: Surroundings<'_>) -> Option<Said> {
    if let Some(name) = between(found, "The prefix ", ": has not been declared") {
        if let Some(said) = bare_iri(name, place) {
            return Some(said);
        }
        return Some(undeclared(name, |name, iri| {
            format!("add `@prefix {name}: <{iri}> .` at the top of the file")
        }));
    }
    if let Some(tag) = place.tag_before()
        && place.from.starts_with('_')
    {
        return Some(underscore_in_tag(tag, place));
    }
    if let Some(character) = place.from.chars().next()
        && "“”„‘’«»".contains(character)
    {
        return Some(Said::new(
            format!("`{character}` is no quote of Turtle"),
            "write `\"`: an editor for letters has changed it",
        ));
    }
    if let Some((token, role)) = misplaced(found) {
        return Some(misplaced_token(format, token, role, place));
    }
    let fixed = match found {
        _ if found.starts_with("Unexpected end of file") => match place.from {
            from if from.starts_with('<') => unclosed_iri(),
            from if from.starts_with("\"\"\"") || from.starts_with("'''") => Said::new(
                "the text that begins here is never closed",
                format!("put `{}` at its end", &from[..3]),
            ),
            from if from.starts_with(['"', '\'']) => unclosed_text(),
            _ => return None,
        },
        _ if found.contains("Line jumps are not allowed") => unclosed_text(),
        "Unexpected end" => Said::new(
            "the text ends within a statement",
            "look for a dot, `]`, `)` or `}` that is missing before",
        ),
        _ if found.starts_with("A dot is expected") => dot_missing(place),
        _ if found.starts_with("The PREFIX keyword should be followed by a prefix") => Said::new(
            "the name of a prefix ends in a colon",
            format!("write `{}:`", place.token()),
        ),
        _ if found.starts_with("blank node property lists should end") => Said::new(
            "`]` is missing before this",
            "close the blank node that `[` began",
        ),
        _ if found.starts_with("A language code should always start") => Said::new(
            "a language tag follows its `@` at once, and begins with a letter",
            "write \"...\"@en",
        ),
        _ if found.starts_with("Expecting a datatype IRI after ^^") => Said::new(
            format!("`{}` is no datatype", place.token()),
            "write an IRI behind ^^, such as ^^xsd:date",
        ),
        _ if found.starts_with("Unexpected escape character") => Said::new(
            found.replace("Unexpected escape character", "there is no escape"),
            "write a backslash itself as `\\\\`",
        ),
        _ if found.contains("'/' is not allowed at the beginning of a prefix name") => Said::new(
            "a slash cannot stand in the name behind a prefix",
            "write the IRI in full, <...>, or the slash as `\\/`",
        ),
        _ => return None,
    };
    Some(fixed)
}

/// A finding such as `bare is not a valid RDF object`: the token, and what it cannot be.
fn misplaced(found: &str) -> Option<(&str, &'static str)> {
    const ROLES: [(&str, &str); 6] = [
        (" is not a valid subject or graph name", "a subject"),
        (" is not a valid RDF subject", "a subject"),
        (" is not a valid predicate", "a predicate"),
        (" is not a valid RDF object", "an object"),
        (" is not a valid graph name", "a graph's name"),
        (" is not a valid RDF quoted triple object", "an object"),
    ];
    ROLES
        .iter()
        .find_map(|(ending, role)| Some((found.strip_suffix(ending)?, *role)))
}

fn misplaced_token(
    format: Format,
    token: &str,
    role: &'static str,
    place: Surroundings<'_>,
) -> Said {
    let before = place.before.trim_end();
    let plain = format!("{} cannot be {role}", quoted(token));
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_alphanumeric() || "_-".contains(c))
    };
    match token {
        "." if role == "a subject" => Said::new("there is a dot too many", "take it away"),
        "." if before.ends_with(',') => Said::new(
            "an object is missing between the comma and the dot",
            "take the comma away",
        ),
        "." if role == "an object" && is_list_open(before) => Said::new(
            "`)` is missing before the dot",
            "close the list that `(` began",
        ),
        "{" if role == "a graph's name" => Said::new(
            "the graph's name is missing before `{`",
            "write `GRAPH <...> {`; what is in no named graph stands without GRAPH",
        ),
        "." => Said::new(
            format!("{role} is missing before the dot"),
            "a statement has a subject, a predicate and an object",
        ),
        ";" | "," => Said::new(
            format!("{role} is missing before `{token}`"),
            "a statement has a subject, a predicate and an object",
        ),
        "{" | "}" if format == Format::Turtle => graphs_in_turtle(),
        "]" | ")" | "}" if matches!(role, "an object" | "a predicate") => Said::new(
            format!("{role} is missing before `{token}`"),
            "a statement has a subject, a predicate and an object",
        ),
        "]" | ")" | "}" => Said::new(
            format!("`{token}` closes nothing that is open"),
            "take it away, or open it before",
        ),
        _ if token.eq_ignore_ascii_case("graph") && format == Format::Turtle => graphs_in_turtle(),
        _ if token.eq_ignore_ascii_case("true") || token.eq_ignore_ascii_case("false") => {
            Said::new(
                plain,
                format!("write `{}`, in small letters", token.to_ascii_lowercase()),
            )
        }
        _ if token.starts_with(['?', '$']) => {
            Said::new(plain, "data have no variables; a blank node is `_:name`")
        }
        // Before it stands what a text was closed with, and its own beginning was meant as a part
        // of it.
        _ if role == "a subject" && before.ends_with(['"', '\'']) && is_name(token) => Said::new(
            format!("the text ended before {}", quoted(token)),
            match before.ends_with('"') {
                true => "write a quote within a text as `\\\"`",
                false => "write `'` within a text as `\\'`, or the text between two `\"`",
            },
        ),
        _ if token.starts_with('-')
            && before.ends_with(|last: char| last.is_ascii_digit())
            && token[1..].starts_with(|next: char| next.is_ascii_digit()) =>
        {
            Said::new(
                "a date stands without quotes",
                "write \"2020-12-31\"^^xsd:date",
            )
        }
        _ if token.starts_with('"') || token.starts_with('\'') => {
            Said::new(plain, "only an object can be a text")
        }
        _ if is_name(token) && !token.is_empty() => Said::new(
            plain,
            format!(
                "write `prefix:{token}` or `<{token}>` for an IRI, \"{token}\" for a text{}",
                match role {
                    "an object" => "",
                    _ => ", which only an object can be",
                }
            ),
        ),
        _ => Said::plain(plain),
    }
}

/// Whether a list was begun on this line and is not closed.
fn is_list_open(before: &str) -> bool {
    before.matches('(').count() > before.matches(')').count()
}

fn graphs_in_turtle() -> Said {
    Said::new(
        "Turtle has no graphs in braces",
        "if the text is TriG, give that as its format",
    )
    .with(LoadOption::Format(Format::TriG))
}

fn dot_missing(place: Surroundings<'_>) -> Said {
    match place.before.trim().is_empty() {
        true => Said::new(
            "the statement before this has no dot at its end",
            "put ` .` behind it (or `;` before a further predicate, `,` before a further object)",
        ),
        false => Said::new(
            "a dot is missing before this",
            "put ` .` there (or `;` before a further predicate, `,` before a further object)",
        ),
    }
}

fn unclosed_text() -> Said {
    Said::new(
        "the text that begins here is not closed on its line",
        "put the same quote at its end; a text over several lines stands in three quotes, \"\"\"",
    )
}

fn underscore_in_tag(tag: &str, place: Surroundings<'_>) -> Said {
    let rest: String = place
        .from
        .chars()
        .skip(1)
        .take_while(char::is_ascii_alphanumeric)
        .take(TOKEN_CHARACTERS_MAX)
        .collect();
    Said::new(
        "a language tag has no underscore",
        format!("write @{tag}-{rest}"),
    )
}

/// An IRI that was written without its brackets, whose scheme looks like a prefix.
fn bare_iri(name: &str, place: Surroundings<'_>) -> Option<Said> {
    let behind = place.from.strip_prefix(name)?.strip_prefix(':')?;
    if !SCHEMES.contains(&name) && !behind.starts_with("//") {
        return None;
    }
    let is_end =
        |character: char| character.is_whitespace() || "<>\"{}|^`;,[]()".contains(character);
    let end = place.from.find(is_end).unwrap_or(place.from.len());
    let iri = &place.from[..end];
    // A dot at its end ends the statement.
    let iri = iri.strip_suffix('.').unwrap_or(iri);
    Some(Said::new(
        "an IRI stands in angle brackets",
        match iri.chars().nth(TOKEN_CHARACTERS_MAX) {
            None => format!("write <{iri}>"),
            Some(_) => format!(
                "write `<` before `{}:`, and `>` behind the IRI",
                cut(name, TOKEN_CHARACTERS_MAX)
            ),
        },
    ))
}

fn in_lines(format: Format, found: &str, place: Surroundings<'_>) -> Option<Said> {
    let (token, name) = (place.token(), format.name());
    if found.contains("Invalid IRI") || found.contains("No scheme found") {
        return None;
    }
    if let Some(tag) = place.tag_before()
        && place.from.starts_with('_')
    {
        return Some(underscore_in_tag(tag, place));
    }
    let lower = token.to_ascii_lowercase();
    let turtle = IF_TURTLE;
    let as_turtle = LoadOption::Format(Format::Turtle);
    if place.before.trim().is_empty()
        && ["@prefix", "@base", "prefix", "base"].contains(&lower.as_str())
    {
        let said = Said::new(format!("{name} declares no prefixes"), turtle);
        return Some(said.with(as_turtle));
    }
    let prefixed = token.split_once(':').filter(|(prefix, _)| {
        let is_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        *prefix != "_" && prefix.chars().all(is_name)
    });
    if let Some((prefix, local)) = prefixed {
        if let Some(said) = bare_iri(prefix, place) {
            return Some(said);
        }
        let said = match probably_meant(prefix) {
            Some(iri) => Said::new(
                format!("{name} has no prefixes, and `{token}` uses one"),
                format!("write <{iri}{local}>; {turtle}"),
            ),
            None => Said::new(
                format!("{name} has no prefixes, and `{token}` uses one"),
                format!("write the IRI in full; {turtle}"),
            ),
        };
        return Some(said.with(as_turtle));
    }
    let said = match found {
        _ if found.starts_with("expected a predicate") && token == "a" => Said::new(
            format!("{name} has no `a`"),
            format!("write <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>; {turtle}"),
        )
        .with(as_turtle),
        _ if found.starts_with("expected an object") && is_number(token) => Said::new(
            format!("{name} has no numbers without quotes"),
            format!(
                "write \"{token}\"^^<http://www.w3.org/2001/XMLSchema#{}>; {turtle}",
                number_type(token)
            ),
        )
        .with(as_turtle),
        _ if found.starts_with("expected an object")
            && ["true", "false"].contains(&lower.as_str()) =>
        {
            Said::new(
                format!("{name} has no booleans without quotes"),
                format!("write \"{lower}\"^^<http://www.w3.org/2001/XMLSchema#boolean>; {turtle}"),
            )
            .with(as_turtle)
        }
        _ if found.starts_with("expected an object") && token.starts_with('\'') => {
            Said::new("a text stands in double quotes", "write `\"`")
        }
        _ if found.starts_with("expected the dot")
            && place.from.starts_with(['<', '_'])
            && format == Format::NTriples =>
        {
            Said::new(
                "there is a fourth term, and N-Triples has three",
                "if it names a graph, the text is N-Quads: give that as its format",
            )
            .with(LoadOption::Format(Format::NQuads))
        }
        _ if found.starts_with("expected the dot") && place.from.starts_with([';', ',']) => {
            Said::new(
                format!(
                    "{name} has no `{}`: each statement stands on a line of its own",
                    &place.from[..1]
                ),
                turtle,
            )
            .with(as_turtle)
        }
        _ if found.starts_with("expected the dot")
            && place
                .from
                .trim_start_matches([' ', '\t'])
                .starts_with(['\n', '\r'])
            || found.starts_with("expected the dot") && place.from.is_empty() =>
        {
            Said::new(
                "the dot that ends a statement is missing",
                "put ` .` at the end of the line",
            )
        }
        _ if found.starts_with("expected the dot") && place.before.trim_end().ends_with('"') => {
            Said::new(
                "the text ended before this, and a dot was expected",
                "write a quote within a text as `\\\"`",
            )
        }
        _ if found.starts_with("expected a quote at the end") => Said::new(
            "the text that begins here is not closed on its line",
            "put `\"` at its end; a line feed within it is written `\\n`",
        ),
        _ => return None,
    };
    Some(said)
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
        && token.parse::<f64>().is_ok()
}

fn number_type(token: &str) -> &'static str {
    if token.contains(['e', 'E']) {
        "double"
    } else if token.contains('.') {
        "decimal"
    } else {
        "integer"
    }
}
