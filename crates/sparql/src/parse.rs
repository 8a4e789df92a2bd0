//! From text to spargebra's algebra, with bounds and readable errors.
//!
//! The parser and everything that walks its tree recurse. A scan of the text
//! first measures how deep it can nest (brackets) and how long its operator
//! chains can get; too much of either is refused with its position, and what is
//! merely unusual is prepared on a thread with a large stack
//! ([`Shape::needs_large_stack`]). The scan costs about a microsecond per
//! kilobyte.

mod cache;
mod check;
mod select;
mod shape;
mod skip;
mod star;
mod substitute;
mod tokens;

pub(crate) use cache::ShapeCache;
pub use cache::ShapeCounts;
pub(crate) use skip::error_at;

use spargebra::{GraphUpdateOperation, Query, SparqlParser, SparqlSyntaxError, Update};

use self::skip::{skip_comment, skip_iri, skip_string};
use crate::error::QueryError;

/// Brackets that may stand inside each other.
const NESTING_MAX: usize = 128;
/// Negations (`!`) whose operands stand inside each other. Where an operand turns out to be wrong,
/// spargebra's grammar tries it a second time, so the time of a wrong query doubles with every level:
/// 20 levels took 1.5 s, 120 never end. That the operand is right is not known before it is parsed.
/// (`NOT EXISTS` and `!!!` without brackets are tried once, and may nest as deep as anything.)
const NEGATIONS_MAX: usize = 8;
/// Binary operators, keywords that nest and prefix operators of one query.
const OPERATORS_MAX: usize = 20_000;
/// Nesting and operators that surely fit an ordinary stack.
const ORDINARY_NESTING: usize = 8;
const ORDINARY_OPERATORS: usize = 150;
/// Stack of the thread that prepares unusual queries; touched only as far as needed.
pub(crate) const LARGE_STACK_BYTES: usize = 512 << 20;

/// What the scan saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    nesting: usize,
    operators: usize,
}

impl Shape {
    /// Whether parsing and planning could overflow the stack of a runtime's thread.
    pub(crate) fn needs_large_stack(self) -> bool {
        self.nesting > ORDINARY_NESTING || self.operators > ORDINARY_OPERATORS
    }
}

/// Runs what recurses deeply on a thread with a large stack, and waits for it.
pub(crate) fn on_large_stack<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, QueryError> + Send,
) -> Result<T, QueryError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(LARGE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| {
                QueryError::internal(format!("no thread for a large request: {error}"))
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(QueryError::internal("planning the request panicked")))
    })
}

/// The text without the byte-order mark that some editors put in front.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The words of a text outside of comments, strings and IRIs: keywords, names, numbers.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let is_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_:-".contains(byte);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            match bytes[at] {
                b'#' => at = skip_comment(bytes, at),
                b'"' | b'\'' => at = skip_string(bytes, at) + 1,
                b'<' => at = skip_iri(bytes, at) + 1,
                b'?' | b'$' => {
                    at += 1 + bytes[at + 1..]
                        .iter()
                        .take_while(|byte| is_word(byte))
                        .count()
                }
                byte if is_word(&byte) => {
                    let length = bytes[at..].iter().take_while(|byte| is_word(byte)).count();
                    let word = &text[at..at + length];
                    at += length;
                    return Some(word);
                }
                _ => at += 1,
            }
        }
        None
    })
}

/// Measures a query text and refuses what is out of bounds.
pub(crate) fn measure(text: &str, bytes_max: usize) -> Result<Shape, QueryError> {
    check_length("query", text, bytes_max)?;
    scan(text, false)
}

/// Measures the text of an update. What stands in `DATA` blocks, which hold no operators and may
/// be long, counts by its nesting only.
pub(crate) fn measure_update(text: &str, bytes_max: usize) -> Result<Shape, QueryError> {
    check_length("update", text, bytes_max)?;
    scan(text, true)
}

pub(crate) fn check_length(what: &str, text: &str, bytes_max: usize) -> Result<(), QueryError> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    Err(QueryError::Syntax {
        message: format!(
            "the {what} has {} bytes, more than the limit of {bytes_max}{}",
            text.len(),
            match what {
                "query" => " (--query-bytes-max)",
                _ => "",
            }
        ),
        line: 1,
        column: 1,
    })
}

fn scan(text: &str, has_data: bool) -> Result<Shape, QueryError> {
    let bytes = text.as_bytes();
    let (mut depth, mut nesting, mut operators) = (0_usize, 0_usize, 0_usize);
    let mut negations = Negations::default();
    let mut is_data = false;
    let mut at = 0;
    while at < bytes.len() {
        if negations.see(bytes[at], bytes.get(at + 1).copied()) > NEGATIONS_MAX {
            return Err(error_at(
                text,
                at,
                format!(
                    "negations with brackets are nested deeper than {NEGATIONS_MAX} levels; BIND gives an inner \
                     condition a name"
                ),
            ));
        }
        match bytes[at] {
            // An escape in a local name: the character after it means nothing.
            b'\\' => at += 1,
            b'#' => at = skip_comment(bytes, at),
            b'"' | b'\'' => at = skip_string(bytes, at),
            b'<' if bytes.get(at + 1) != Some(&b'<') => at = skip_iri(bytes, at),
            b'(' | b'{' | b'[' | b'<' => {
                if has_data && depth == 0 && follows_data(bytes, at) {
                    is_data = true;
                }
                // `<<` opens a triple, and may open its parenthesis with it.
                at += usize::from(bytes[at] == b'<');
                depth += 1;
                operators += usize::from(!is_data);
                nesting = nesting.max(depth);
                if depth > NESTING_MAX {
                    return Err(error_at(
                        text,
                        at,
                        format!("brackets are nested deeper than {NESTING_MAX} levels"),
                    ));
                }
            }
            b'>' if bytes.get(at + 1) == Some(&b'>') => {
                at += 1;
                depth = depth.saturating_sub(1);
            }
            b')' | b'}' | b']' => {
                depth = depth.saturating_sub(1);
                is_data &= depth > 0;
            }
            b'|' | b'&' | b'!' | b'+' | b'-' | b'*' | b'/' | b'^' if is_data => {}
            b'|' | b'&' | b'!' | b'+' | b'-' | b'*' | b'/' | b'^' => operators += 1,
            // OPTIONAL, UNION, MINUS, BIND, FILTER ...: counted by their brackets.
            _ => {}
        }
        if operators > OPERATORS_MAX {
            return Err(error_at(
                text,
                at,
                format!("more than {OPERATORS_MAX} operators and groups in one query"),
            ));
        }
        at += 1;
    }
    Ok(Shape { nesting, operators })
}

/// Whether the word before a bracket is `DATA`.
fn follows_data(bytes: &[u8], at: usize) -> bool {
    let word = bytes[..at].trim_ascii_end();
    word.len() >= 4 && word[word.len() - 4..].eq_ignore_ascii_case(b"DATA")
}

/// How many negations are open, at a position of the text.
#[derive(Default)]
struct Negations {
    /// Whether each open bracket belongs to the operand of a `!`.
    brackets: Vec<bool>,
    open: usize,
    /// True from a `!` to where its operand surely ends. It may stay true for longer, which
    /// only counts too many.
    is_operand: bool,
}

impl Negations {
    /// Takes the next byte; returns the number of open negations.
    fn see(&mut self, byte: u8, next: Option<u8>) -> usize {
        match byte {
            b'!' if next != Some(b'=') => self.is_operand = true,
            b'(' | b'{' | b'[' => {
                self.brackets.push(self.is_operand);
                self.open += usize::from(self.is_operand);
                self.is_operand = false;
            }
            b')' | b'}' | b']' => {
                self.open -= usize::from(self.brackets.pop().unwrap_or(false));
                self.is_operand = false;
            }
            b'&' | b'|' | b'=' | b',' | b';' => self.is_operand = false,
            _ => {}
        }
        self.open
    }
}

/// Parses a query that [`measure`] let through.
pub(crate) fn parse(text: &str, base_iri: Option<&str>) -> Result<Query, QueryError> {
    let query = parsed(text, base_iri, |parser, text| parser.parse_query(text));
    let query = query.map_err(|error| {
        let update = parser(base_iri).map(|parser| parser.parse_update(text));
        match update {
            Ok(Ok(update)) if !update.operations.is_empty() => QueryError::Syntax {
                message: "this is an update, not a query; send it as one (`orrery update`, or parameter `update`)"
                    .to_owned(),
                line: 1,
                column: 1,
            },
            _ => error,
        }
    })?;
    let pattern = match &query {
        Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => pattern,
    };
    check::nested_aggregates(pattern)?;
    Ok(star::in_order_of_appearance(text, query))
}

/// Parses an update that [`measure_update`] let through.
pub(crate) fn parse_update(text: &str, base_iri: Option<&str>) -> Result<Update, QueryError> {
    let update = parsed(text, base_iri, |parser, text| parser.parse_update(text))?;
    for operation in &update.operations {
        if let GraphUpdateOperation::DeleteInsert { pattern, .. } = operation {
            check::nested_aggregates(pattern)?;
        }
    }
    Ok(update)
}

/// Reads a text with what spargebra reads otherwise than SPARQL, or lets through, set right.
fn parsed<T>(
    text: &str,
    base_iri: Option<&str>,
    read: impl Fn(SparqlParser, &str) -> Result<T, SparqlSyntaxError>,
) -> Result<T, QueryError> {
    let parser = parser(base_iri)?;
    let tokens = tokens::as_parsed(text);
    let read_in = read(parser.clone(), &tokens).or_else(|error| {
        let error = error.to_string();
        let rewritten = match error.contains(select::REFUSAL) {
            true => select::with_expressions_for_variables(&tokens),
            false => None,
        };
        rewritten
            .and_then(|text| read(parser, &text).ok())
            .ok_or_else(|| readable_error(text, &error))
    })?;
    check::triple_term_subjects(text)?;
    Ok(read_in)
}

fn parser(base_iri: Option<&str>) -> Result<SparqlParser, QueryError> {
    let parser = SparqlParser::new();
    let Some(base) = base_iri else {
        return Ok(parser);
    };
    parser
        .with_base_iri(base)
        .map_err(|error| QueryError::Syntax {
            message: format!("the base IRI <{base}> is not absolute: {error}"),
            line: 1,
            column: 1,
        })
}

/// Makes a sentence of the generated parser's `error at 3:17: expected one of ...`.
fn readable_error(text: &str, raw: &str) -> QueryError {
    let Some((line, column, expected)) = split_position(raw) else {
        return QueryError::Syntax {
            message: raw.to_owned(),
            line: 1,
            column: 1,
        };
    };
    let found = text
        .lines()
        .nth(line - 1)
        .map(|l| l.chars().skip(column - 1).collect::<String>())
        .map(|rest| word_of(&rest))
        .unwrap_or_default();
    let found = if found.is_empty() {
        "unexpected end of line or query".to_owned()
    } else {
        format!("unexpected `{found}`")
    };
    let message = match readable_expectation(expected) {
        Some(expected) => format!("{found}, expected {expected}"),
        None => found,
    };
    QueryError::Syntax {
        message,
        line,
        column,
    }
}

fn split_position(raw: &str) -> Option<(usize, usize, &str)> {
    let rest = raw.strip_prefix("error at ")?;
    let (line, rest) = rest.split_once(':')?;
    let (column, rest) = rest.split_once(':')?;
    let line = line.trim().parse().ok().filter(|&line| line > 0)?;
    let column = column.trim().parse().ok().filter(|&column| column > 0)?;
    Some((line, column, rest.trim()))
}

/// The token at the start of `rest`, cut to a readable length.
fn word_of(rest: &str) -> String {
    let rest = rest.trim_start();
    let word: String = rest
        .chars()
        .take_while(|c| !c.is_whitespace())
        .take(40)
        .collect();
    word
}

/// Keeps named expectations (keywords, punctuation), drops character classes.
fn readable_expectation(expected: &str) -> Option<String> {
    let list = expected.strip_prefix("expected ").unwrap_or(expected);
    let list = list.strip_prefix("one of ").unwrap_or(list);
    if !list.contains(['"', '[', '\'']) {
        return Some(list.to_owned()).filter(|l| !l.is_empty());
    }
    let mut named: Vec<&str> = list
        .split(", ")
        .map(|item| item.trim().trim_matches('"'))
        .filter(|item| !item.is_empty() && !item.starts_with(['[', '\'', '#', '\\']))
        .collect();
    named.dedup();
    if named.is_empty() || named.len() > 12 {
        return None;
    }
    Some(format!("one of {}", named.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_outside_of_strings_iris_comments_and_variables() {
        let text = "SELECT ?from { <http://x/GRAPH> a ex:graph-1 ; ex:p 'FROM' . # GRAPH\n ?é \"\"\"GRAPH\"\"\" ?s } LIMIT 1";
        let words: Vec<&str> = words_of(text).collect();
        assert_eq!(words, ["SELECT", "a", "ex:graph-1", "ex:p", "LIMIT", "1"]);
        for text in ["", "?", "'", "'\\", "<", "#", "é", "\"\"\""] {
            assert!(words_of(text).all(|word| word == "é"), "{text}");
        }
    }

    #[test]
    fn a_syntax_error_names_line_column_and_word() {
        let error = parse("SELECT * WHERE {\n  ?s ?p FOO }", None).expect_err("not SPARQL");
        match error {
            QueryError::Syntax {
                message,
                line,
                column,
            } => {
                assert_eq!(line, 2, "{message}");
                assert!(column >= 9, "{column} {message}");
                assert!(!message.contains("['"), "{message}");
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_update_for_a_query_is_told_as_such() {
        let message = |text: &str| parse(text, None).expect_err("no query").to_string();
        assert!(message("DELETE WHERE { ?s ?p ?o }").contains("this is an update"));
        // Nothing is no update.
        for text in ["", "SELEC", "PREFIX a: <http://a/>"] {
            assert!(!message(text).contains("update"), "{text}");
        }
    }

    #[test]
    fn brackets_in_strings_comments_and_iris_do_not_nest() {
        let text = format!(
            "SELECT * {{ ?s <http://a/((((> \"{}\" }} # {}",
            "(".repeat(1000),
            "{".repeat(1000)
        );
        let shape = measure(&text, 1 << 20).expect("in bounds");
        assert_eq!(shape.nesting, 1);
    }

    #[test]
    fn hostile_nesting_is_refused_with_its_position() {
        let text = format!("SELECT * {{\n{}", "{".repeat(100_000));
        match measure(&text, 1 << 20) {
            Err(QueryError::Syntax { line, column, .. }) => {
                assert_eq!((line, column), (2, NESTING_MAX));
            }
            other => panic!("{other:?}"),
        }
        assert!(measure("SELECT", 3).is_err());
        for open in ["<<", "<< ", "<<(", "(<<"] {
            assert!(measure(&format!("ASK {{ {}", open.repeat(10_000)), 1 << 20).is_err());
        }
        let flat = "<< ?s ?p ?o >> ?q <<( ?s ?p ?o )>> . ".repeat(1000);
        assert!(measure(&format!("ASK {{ {flat} }}"), 1 << 20).is_ok());
        let comparisons = "FILTER(?a < ?b && ?c > ?d) ".repeat(1000);
        assert!(measure(&format!("ASK {{ {comparisons} }}"), 1 << 20).is_ok());
    }

    #[test]
    fn negations_may_follow_each_other_but_not_nest_without_bound() {
        let nested = |open: &str, levels: usize| {
            let text = format!(
                "ASK {{ FILTER({}1{}) }}",
                open.repeat(levels),
                ")".repeat(levels)
            );
            measure(&text, 1 << 20)
        };
        for open in ["!(", "! STR(", "!<http://e/f>(", "!e:f\\,(", "!  ("] {
            assert!(nested(open, NEGATIONS_MAX).is_ok(), "{open}");
            assert!(nested(open, NEGATIONS_MAX + 1).is_err(), "{open}");
        }
        assert!(nested("1 != (", 100).is_ok());
        let many = "!(?x) && !STR(?x) || ".repeat(1000);
        assert!(measure(&format!("ASK {{ FILTER({many} true) }}"), 1 << 20).is_ok());
    }
}
