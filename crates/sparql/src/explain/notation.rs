//! Names in a plan's text: IRIs by prefixes, generated variables by numbers.
//!
//! ```text
//! ?s <http://example.org/p> ?_:b1ef79f8790eff9badc79abc5f1b1712      the plan
//! ?s ex:p ?.node1                                                    what is shown
//! ```
//!
//! Strings stay as they are. IRIs that no prefix of the query or of the database, or a well-known
//! one, fits are written out.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use orrery_term::Shortener;

/// Length of the names that the parser makes up: 128 bits, rarely with several zeros at the
/// beginning.
const RANDOM_DIGITS: RangeInclusive<usize> = 24..=32;
/// Bytes of a query that are looked through for prefixes.
const PROLOGUE_BYTES_MAX: usize = 16 << 10;

/// The part of a query that may declare prefixes.
pub(crate) fn prologue(query: &str) -> &str {
    let end = query.find('{').unwrap_or(query.len());
    let end = query.floor_char_boundary(end.min(PROLOGUE_BYTES_MAX));
    &query[..end]
}

/// Rewrites the text of a plan.
pub(super) fn readable(plan: &str, prologue: &str, shortener: &Shortener) -> String {
    let mut notation = Notation::new(prologue, shortener);
    let mut text = String::with_capacity(plan.len());
    let mut rest = plan;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => {
                let end = end_of_string(rest);
                text.push_str(&rest[..end]);
                end
            }
            '<' => match end_of_iri(rest) {
                Some(end) => {
                    notation.iri(&rest[..end], &mut text);
                    end
                }
                None => {
                    text.push(first);
                    1
                }
            },
            _ if first.is_alphanumeric() || first == '_' => {
                let end = end_of_word(rest);
                notation.word(&rest[..end], &mut text);
                end
            }
            _ => {
                text.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    text
}

struct Notation<'q> {
    /// Prefix and namespace of the query; the longest namespace first.
    declared: Vec<(&'q str, &'q str)>,
    /// Those that need no declaration.
    shortener: &'q Shortener,
    random: HashMap<String, usize>,
}

impl<'q> Notation<'q> {
    fn new(prologue: &'q str, shortener: &'q Shortener) -> Self {
        let mut declared = declared(prologue);
        declared.sort_by_key(|(_, namespace)| std::cmp::Reverse(namespace.len()));
        Self {
            declared,
            shortener,
            random: HashMap::new(),
        }
    }

    /// `<iri>`, or what is shorter: with the longest namespace, of equal ones with the query's own.
    fn iri(&self, bracketed: &str, text: &mut String) {
        let iri = &bracketed[1..bracketed.len() - 1];
        let own = self.declared.iter().find_map(|(prefix, namespace)| {
            let local = iri.strip_prefix(namespace)?;
            is_local_name(local).then_some((*prefix, local))
        });
        let shared = self.shortener.shorten(iri).and_then(|(number, local)| {
            let (prefix, _) = self.shortener.prefix(number);
            // The query may mean something else by it.
            let is_free = self.declared.iter().all(|(known, _)| *known != prefix);
            is_free.then_some((prefix, local))
        });
        let shorter = match (own, shared) {
            (Some(own), Some(shared)) if shared.1.len() < own.1.len() => Some(shared),
            (Some(own), _) => Some(own),
            (None, shared) => shared,
        };
        match shorter {
            Some((prefix, local)) => {
                text.push_str(prefix);
                text.push(':');
                text.push_str(local);
            }
            None => text.push_str(bracketed),
        }
    }

    /// A word; one that the parser made up gets a number.
    fn word(&mut self, word: &str, text: &mut String) {
        let is_random = RANDOM_DIGITS.contains(&word.len())
            && word
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_random && !orrery_syntax::is_made_up(word) {
            text.push_str(word);
            return;
        }
        let next = self.random.len() + 1;
        let number = *self.random.entry(word.to_owned()).or_insert(next);
        let kind = match text.strip_suffix("_:") {
            Some(before) => {
                text.truncate(before.len());
                "node"
            }
            None => "value",
        };
        // In a name of the planner's own it stands behind a dot already.
        let dot = if text.ends_with('.') { "" } else { "." };
        text.push_str(&format!("{dot}{kind}{number}"));
    }
}

/// The prefixes that a prologue declares; of two of the same name the last.
fn declared(prologue: &str) -> Vec<(&str, &str)> {
    let mut prefixes: Vec<(&str, &str)> = Vec::new();
    for line in prologue.lines() {
        // A comment in a line with a declaration comes after it, unless an IRI has the `#`.
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('<') {
            let Some((namespace, after)) = after.split_once('>') else {
                break;
            };
            rest = after;
            let mut words = before.split_whitespace().rev();
            let (Some(name), Some(keyword)) = (words.next(), words.next()) else {
                continue;
            };
            if let Some(prefix) = name.strip_suffix(':')
                && keyword.eq_ignore_ascii_case("PREFIX")
                && !namespace.is_empty()
            {
                prefixes.retain(|known| known.0 != prefix);
                prefixes.push((prefix, namespace));
            }
        }
    }
    prefixes
}

/// A name that SPARQL lets stand behind a prefix without escapes; shorter than what is allowed.
fn is_local_name(local: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut characters = local.chars();
    characters
        .next()
        .is_none_or(|first| first.is_alphanumeric() || first == '_')
        && characters.all(is_inner)
        && !local.ends_with('.')
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn end_of_iri(text: &str) -> Option<usize> {
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'>' => return (at > 1).then_some(at + 1),
            b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\' | 0..=0x20 => return None,
            _ => {}
        }
    }
    None
}

fn end_of_word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_term::Prefixes;

    /// With a prefix of the database beside the well-known ones.
    fn text_of(plan: &str, prologue: &str) -> String {
        let mut prefixes = Prefixes::default();
        prefixes.note_loaded("db", "http://e/data/");
        readable(plan, prologue, &prefixes.shortener())
    }

    #[test]
    fn prefixes_of_the_database_need_no_declaration() {
        let plan = "<http://e/data/x> <http://xmlns.com/foaf/0.1/name> <http://e/y>";
        assert_eq!(text_of(plan, ""), "db:x foaf:name <http://e/y>");
        let query = "PREFIX foaf: <http://own/> PREFIX e: <http://e/>";
        assert_eq!(
            text_of(plan, query),
            "db:x <http://xmlns.com/foaf/0.1/name> e:y"
        );
    }

    #[test]
    fn iris_are_written_by_the_prefixes_of_the_query() {
        let query = "# PREFIX no: <http://no/>\nPREFIX e: <http://e/>PREFIX e: <http://e/a#>\n\
                     prefix : <http://e/>  BASE <http://b/> PREFIX bad <http://x/> SELECT * { ?s ?p 5 }";
        let plan = "?s <http://e/p> <http://e/a#b> <http://e/a/b> <http://no/p> ?x < 5 && ?y > 6 \
                    \"<http://e/p>\\\" \"^^<http://www.w3.org/2001/XMLSchema#byte> <http://e/x.>";
        assert_eq!(
            text_of(plan, prologue(query)),
            "?s :p e:b <http://e/a/b> <http://no/p> ?x < 5 && ?y > 6 \
             \"<http://e/p>\\\" \"^^xsd:byte <http://e/x.>"
        );
    }

    #[test]
    fn names_made_up_at_random_are_numbered() {
        let node = "b1ef79f8790eff9badc79abc5f1b1712";
        let value = "829561f69c641b489fbf7776407739";
        let plan = format!(
            "?_:{node} ?p {value}@1 as {value}, ?.7.{value} ?_:{node} \"{value}\" {value}000"
        );
        assert_eq!(
            text_of(&plan, ""),
            format!("?.node1 ?p .value2@1 as .value2, ?.7.value2 ?.node1 \"{value}\" {value}000")
        );
        assert_eq!(
            text_of("?_:_g7 _g__2@1 ?.7._g__2 ?_g ?_gx1", ""),
            "?.node1 .value2@1 ?.7.value2 ?_g ?_gx1"
        );
    }
}
