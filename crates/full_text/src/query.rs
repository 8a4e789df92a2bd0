//! The query language: parsing and meaning.
//!
//! ```text
//! query    = either { "OR" either }
//! either   = clause { ["AND"] clause }          all of them
//! clause   = ["NOT" | "-"] simple
//! simple   = "(" query ")" | '"' words '"' | word | word* | word~ | word~1 | word~2
//! ```
//!
//! `AND`, `OR` and `NOT` are those in capitals; `NOT` takes away from what stands beside it. A word
//! that the analyzer cuts into several (`e-mail`) is a phrase. What has no letter and no digit is
//! passed over. `word*` is any word that begins so, `word~1` one that is at most one letter away
//! (one that is added, left out, another one, or changed places with the next), `word~` two; these
//! count the same for all documents that have them, and are compared with words as they are
//! written, in small letters and without accents, never with stems.

use crate::analysis::Analyzer;
use crate::error::QueryError;

/// Longest query.
pub const QUERY_BYTES_MAX: usize = 16 << 10;
/// Most words and phrases.
const WORDS_MAX: usize = 256;
/// How deep parentheses may be nested.
const DEPTH_MAX: usize = 32;
/// Letters that a word may be away.
const DISTANCE_MAX: u8 = 2;

/// A query that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub(crate) root: Node,
    /// The analyzer whose documents are searched, if not all.
    pub(crate) only: Option<Analyzer>,
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A word, or words one after the other.
    Words(String),
    /// A word that begins so; as it stands in the index.
    Prefix(String),
    /// A word that is nearly so; as it stands in the index.
    Fuzzy(String, u8),
    /// Those of `all` without those of `none`. There is at least one in `all`.
    All { all: Vec<Node>, none: Vec<Node> },
    /// Any of them. There are at least two.
    Any(Vec<Node>),
}

impl Query {
    /// Searches only documents whose words are cut as those of a language, in lower case, or of
    /// none: of a language with a stemmer just its own, else all without a stemmer.
    #[must_use]
    pub fn in_language(mut self, tag: Option<&str>) -> Self {
        self.only = Some(Analyzer::of_language(tag));
        self
    }

    /// Reads a query.
    ///
    /// # Errors
    /// Where it is wrong, and what to write.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > QUERY_BYTES_MAX {
            let what = format!("a query has at most {QUERY_BYTES_MAX} bytes");
            return Err(QueryError { at: 0, what });
        }
        let mut parser = Parser {
            chars: text.chars().collect(),
            at: 0,
            words: 0,
        };
        let found = parser.query(0)?;
        parser.skip_space();
        if parser.at < parser.chars.len() {
            return Err(parser.error("there is no \"(\" for this \")\""));
        }
        match found {
            Some(Clause { node, is_not: None }) => Ok(Self {
                root: node,
                only: None,
            }),
            Some(Clause {
                is_not: Some(at), ..
            }) => Err(only_not(at)),
            None => Err(QueryError {
                at: 0,
                what: "there is no word to look for".to_owned(),
            }),
        }
    }

    /// A query of all of these words, as they are; none without words.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let words = words.into_iter().filter(|word| has_words(word));
        let all: Vec<Node> = words.map(|word| Node::Words(word.to_owned())).collect();
        all_of(all, Vec::new()).map(|root| Self { root, only: None })
    }

    /// Calls `each` with every part that documents are found by; not with those that take some
    /// away.
    pub(crate) fn for_each_found<'a>(&'a self, each: &mut impl FnMut(&'a Node)) {
        fn walk<'a>(node: &'a Node, each: &mut impl FnMut(&'a Node)) {
            match node {
                Node::Words(_) | Node::Prefix(_) | Node::Fuzzy(..) => each(node),
                Node::All { all, .. } => all.iter().for_each(|node| walk(node, each)),
                Node::Any(any) => any.iter().for_each(|node| walk(node, each)),
            }
        }
        walk(&self.root, each);
    }
}

/// A node, and where its NOT stands if it has one.
struct Clause {
    node: Node,
    is_not: Option<usize>,
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    words: usize,
}

/// What comes next.
#[derive(PartialEq)]
enum Next {
    End,
    Close,
    Or,
    And,
    Clause,
}

impl Parser {
    fn error(&self, what: impl Into<String>) -> QueryError {
        QueryError {
            at: self.at,
            what: what.into(),
        }
    }

    fn skip_space(&mut self) {
        while self
            .chars
            .get(self.at)
            .is_some_and(|char| char.is_whitespace())
        {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Next {
        self.skip_space();
        match self.chars.get(self.at) {
            None => Next::End,
            Some(')') => Next::Close,
            Some(_) if self.is_keyword("OR") => Next::Or,
            Some(_) if self.is_keyword("AND") => Next::And,
            Some(_) => Next::Clause,
        }
    }

    /// Whether a word in capitals stands here by itself.
    fn is_keyword(&self, keyword: &str) -> bool {
        let rest = &self.chars[self.at..];
        let length = keyword.len();
        let ends = rest.get(length).is_none_or(|&char| ends_word(char));
        ends && rest.len() >= length && rest.iter().zip(keyword.chars()).all(|(a, b)| *a == b)
    }

    fn query(&mut self, depth: usize) -> Result<Option<Clause>, QueryError> {
        if depth > DEPTH_MAX {
            return Err(self.error(format!("parentheses are nested more than {DEPTH_MAX} deep")));
        }
        let mut any = Vec::new();
        let mut not_at = None;
        loop {
            if matches!(self.peek(), Next::Or | Next::And) {
                return Err(self.error("a word is missing before this"));
            }
            match self.either(depth)? {
                Some(Clause { node, is_not: None }) => any.push(node),
                Some(clause) => not_at = not_at.or(clause.is_not),
                None => {}
            }
            if self.peek() != Next::Or {
                break;
            }
            self.at += "OR".len();
            if matches!(self.peek(), Next::End | Next::Close) {
                return Err(self.error("a word is missing after \"OR\""));
            }
        }
        if let Some(at) = not_at {
            return Err(only_not(at));
        }
        let node = match any.len() {
            0 | 1 => any.pop(),
            _ => Some(Node::Any(any)),
        };
        Ok(node.map(|node| Clause { node, is_not: None }))
    }

    /// Clauses that all have to match.
    fn either(&mut self, depth: usize) -> Result<Option<Clause>, QueryError> {
        let (mut all, mut none) = (Vec::new(), Vec::new());
        let mut not_at = None;
        loop {
            match self.peek() {
                Next::Clause => {}
                Next::And => {
                    self.at += "AND".len();
                    if self.peek() != Next::Clause {
                        return Err(self.error("a word is missing after \"AND\""));
                    }
                }
                Next::End | Next::Close | Next::Or => break,
            }
            match self.clause(depth)? {
                Some(Clause { node, is_not: None }) => all.push(node),
                Some(Clause { node, is_not: at }) => {
                    not_at = not_at.or(at);
                    none.push(node);
                }
                None => {}
            }
        }
        match (all.is_empty(), not_at) {
            (true, Some(at)) => Err(only_not(at)),
            _ => Ok(all_of(all, none).map(|node| Clause { node, is_not: None })),
        }
    }

    fn clause(&mut self, depth: usize) -> Result<Option<Clause>, QueryError> {
        let start = self.at;
        let is_minus = self.chars[self.at] == '-'
            && self
                .chars
                .get(self.at + 1)
                .is_some_and(|char| char.is_alphanumeric() || matches!(char, '"' | '('));
        let is_not = is_minus || self.is_keyword("NOT");
        if is_not {
            self.at += if is_minus { 1 } else { "NOT".len() };
            if self.peek() != Next::Clause || self.is_keyword("NOT") {
                return Err(self.error("a word is missing after \"NOT\""));
            }
        }
        let node = self.simple(depth)?;
        Ok(node.map(|node| Clause {
            node,
            is_not: is_not.then_some(start),
        }))
    }

    fn simple(&mut self, depth: usize) -> Result<Option<Node>, QueryError> {
        match self.chars[self.at] {
            '(' => {
                let open = self.at;
                self.at += 1;
                let inner = self.query(depth + 1)?;
                if self.peek() != Next::Close {
                    let what = "there is no \")\" for this \"(\"".to_owned();
                    return Err(QueryError { at: open, what });
                }
                self.at += 1;
                Ok(inner.map(|clause| clause.node))
            }
            '"' => {
                let open = self.at;
                let rest = &self.chars[open + 1..];
                let Some(length) = rest.iter().position(|&char| char == '"') else {
                    let what = "this quotation mark is not closed".to_owned();
                    return Err(QueryError { at: open, what });
                };
                let words: String = rest[..length].iter().collect();
                self.at += length + 2;
                self.count()?;
                Ok(has_words(&words).then_some(Node::Words(words)))
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Option<Node>, QueryError> {
        let start = self.at;
        let rest = &self.chars[start..];
        let length = rest.iter().position(|&char| ends_word(char));
        let word: String = rest[..length.unwrap_or(rest.len())].iter().collect();
        self.at += word.chars().count();
        self.count()?;
        let error = |what: &str| {
            Err(QueryError {
                at: start,
                what: what.to_owned(),
            })
        };
        if let Some(beginning) = word.strip_suffix('*') {
            return match single(beginning) {
                Some(word) => Ok(Some(Node::Prefix(word))),
                None => {
                    error("before \"*\" there is one beginning of a word, of letters and digits")
                }
            };
        }
        if let Some((near, distance)) = word.split_once('~') {
            let distance = match distance {
                "" => Some(DISTANCE_MAX),
                digits => digits
                    .parse()
                    .ok()
                    .filter(|found| (1..=DISTANCE_MAX).contains(found)),
            };
            return match (single(near), distance) {
                (Some(word), Some(distance)) => Ok(Some(Node::Fuzzy(word, distance))),
                (None, _) => error("before \"~\" there is one word, of letters and digits"),
                (_, None) => {
                    error("after \"~\" there is 1 or 2: the letters that a word may be away")
                }
            };
        }
        if word.contains('*') && has_words(&word) {
            return error("\"*\" stands at the end of a word only");
        }
        Ok(has_words(&word).then_some(Node::Words(word)))
    }

    fn count(&mut self) -> Result<(), QueryError> {
        self.words += 1;
        match self.words > WORDS_MAX {
            true => Err(self.error(format!("a query has at most {WORDS_MAX} words and phrases"))),
            false => Ok(()),
        }
    }
}

fn all_of(mut all: Vec<Node>, none: Vec<Node>) -> Option<Node> {
    match (all.len(), none.len()) {
        (0, _) => None,
        (1, 0) => all.pop(),
        _ => Some(Node::All { all, none }),
    }
}

fn only_not(at: usize) -> QueryError {
    QueryError {
        at,
        what: "NOT takes away from what other words find, and there are none beside it".to_owned(),
    }
}

fn ends_word(char: char) -> bool {
    char.is_whitespace() || matches!(char, '(' | ')' | '"')
}

fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// A word as it stands in the index, if it is one.
fn single(text: &str) -> Option<String> {
    let mut words = Analyzer::PLAIN.words(text);
    match words.len() {
        1 => words.pop().map(|word| word.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Node {
        Node::Words(text.to_owned())
    }

    fn all(all: Vec<Node>) -> Node {
        Node::All { all, none: vec![] }
    }

    #[track_caller]
    fn parses(text: &str, expected: Node) {
        assert_eq!(Query::parse(text).unwrap().root, expected, "{text}");
    }

    #[track_caller]
    fn fails(text: &str, at: usize, what: &str) {
        let error = Query::parse(text).unwrap_err();
        assert!(
            error.at == at && error.what.contains(what),
            "{text}: {error:?}"
        );
    }

    #[test]
    fn words_beside_each_other_are_all_wanted() {
        let three = vec![words("a"), words("b c"), words("d")];
        parses("a AND \"b c\" d", all(three));
        parses("  a  ", words("a"));
        parses("a ! b", all(vec![words("a"), words("b")]));
        parses("and or", all(vec![words("and"), words("or")]));
    }

    #[test]
    fn or_binds_less_than_and() {
        let right = all(vec![words("b"), words("c")]);
        parses("a OR b c", Node::Any(vec![words("a"), right]));
        let left = Node::Any(vec![words("a"), words("b")]);
        parses("(a OR b) c", all(vec![left, words("c")]));
    }

    #[test]
    fn not_takes_away() {
        let expected = Node::All {
            all: vec![words("a")],
            none: vec![words("b"), words("c")],
        };
        parses("a NOT b -c", expected);
        fails("NOT b", 0, "beside it");
        fails("a OR -b", 5, "beside it");
        fails("(NOT b) a", 1, "beside it");
        parses("a-b", words("a-b"));
    }

    #[test]
    fn beginnings_and_near_words_are_as_in_the_index() {
        parses("Vín*", Node::Prefix("vin".to_owned()));
        parses("Rouge~1", Node::Fuzzy("rouge".to_owned(), 1));
        parses("rouge~", Node::Fuzzy("rouge".to_owned(), 2));
        fails("a rouge~3", 2, "1 or 2");
        fails("a*b", 0, "at the end");
        fails("*", 0, "one beginning");
        fails("a-b*", 0, "one beginning");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        fails("", 0, "no word");
        fails("!!", 0, "no word");
        fails("a (b", 2, "no \")\"");
        fails("a b)", 3, "no \"(\"");
        fails("a \"b", 2, "not closed");
        fails("a OR", 4, "after \"OR\"");
        fails("OR a", 0, "before this");
        fails("a AND", 5, "after \"AND\"");
        fails("a NOT NOT b", 6, "after \"NOT\"");
        fails(&"(".repeat(100), 33, "nested");
        fails(&"a ".repeat(300), 513, "at most");
    }
}
