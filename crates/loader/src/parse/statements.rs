//! A splitter that finds the ends of Turtle and TriG statements by tokens, for readers that skip
//! errors.
//!
//! A cut stands behind the dot of a statement, behind a directive, and behind each brace of a
//! graph. Beside the cut it says how sure it is: what a text, an IRI, a name is not closed of may
//! hide where the next statement begins, and so may a quote that one of three has lost.

use memchr::{memchr, memchr2};

/// What was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Statement,
    Directive,
    /// The name of a graph, and its brace.
    GraphOpens,
    /// The last statement of a graph, if it has no dot, and the brace that closes it.
    GraphCloses,
    /// A brace of a graph where there can be none.
    StrayBrace,
    /// What stands at the end, and has none of its own.
    Rest,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) part: Part,
    pub(crate) length: usize,
    /// All its tokens are closed, and are such as there are.
    pub(crate) is_clean: bool,
    /// None of its texts may be what is left of a longer one.
    pub(crate) has_plain_texts: bool,
    /// A line ends behind it.
    pub(crate) ends_line: bool,
    /// It has tokens.
    pub(crate) has_tokens: bool,
}

/// What is known where a text is cut.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Around {
    pub(crate) has_graphs: bool,
    pub(crate) is_in_graph: bool,
    /// No more text follows.
    pub(crate) is_end: bool,
}

/// Cuts off the first piece; nothing where more of the text has to be known.
pub(crate) fn cut(text: &[u8], around: Around) -> Option<Cut> {
    let mut scan = Scan {
        text,
        at: 0,
        around,
        is_clean: true,
        has_plain_texts: true,
    };
    let part = scan.part()?;
    let has_tokens = part.1;
    let (part, mut length) = (part.0, scan.at);
    // One blank behind it, so that whoever reads it sees where it ends.
    match text.get(length) {
        Some(next) if next.is_ascii_whitespace() => length += 1,
        Some(_) => {}
        None if around.is_end => {}
        None => return None,
    }
    Some(Cut {
        part,
        length,
        is_clean: scan.is_clean,
        has_plain_texts: scan.has_plain_texts,
        ends_line: ends_line(&text[length.saturating_sub(1)..], around.is_end)?,
        has_tokens,
    })
}

/// Whether nothing but blanks and a comment stands before the end of the line.
fn ends_line(text: &[u8], is_end: bool) -> Option<bool> {
    let rest = text
        .iter()
        .skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'.'));
    match rest.copied().next() {
        Some(b'\n' | b'#') => Some(true),
        Some(_) => Some(false),
        None => is_end.then_some(true),
    }
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    around: Around,
    is_clean: bool,
    has_plain_texts: bool,
}

/// What ends a directive that has no dot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Iri,
    Text,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Passes over blanks and comments.
    fn blanks(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'#' => {
                    let rest = &self.text[self.at..];
                    self.at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn part(&mut self) -> Option<(Part, bool)> {
        let mut is_first = true;
        let mut is_directive = false;
        let mut until = None;
        loop {
            self.blanks();
            let Some(byte) = self.peek(0) else {
                return self.around.is_end.then_some((Part::Rest, !is_first));
            };
            let was_first = std::mem::replace(&mut is_first, false);
            // What a token is may show in the two bytes behind it only.
            if !self.around.is_end && self.at + 3 > self.text.len() {
                return None;
            }
            match byte {
                b'<' if self.peek(1) == Some(b'<') => self.at += 2,
                b'<' => {
                    self.iri()?;
                    if until == Some(Until::Iri) {
                        return Some((Part::Directive, true));
                    }
                }
                quote @ (b'"' | b'\'') => {
                    self.string(quote)?;
                    if until == Some(Until::Text) {
                        return Some((Part::Directive, true));
                    }
                }
                b'.' if !self.peek(1).is_some_and(|next| next.is_ascii_digit()) => {
                    self.at += 1;
                    return Some((
                        if is_directive {
                            Part::Directive
                        } else {
                            Part::Statement
                        },
                        true,
                    ));
                }
                b'{' if self.peek(1) == Some(b'|') => self.at += 2,
                b'|' if self.peek(1) == Some(b'}') => self.at += 2,
                b'{' | b'}' if self.around.has_graphs => {
                    self.at += 1;
                    let part = match (byte, self.around.is_in_graph) {
                        (b'{', false) => Part::GraphOpens,
                        (b'}', true) => Part::GraphCloses,
                        _ => Part::StrayBrace,
                    };
                    return Some((part, true));
                }
                b'[' | b']' | b'(' | b')' | b',' | b';' | b'^' | b'~' | b'>' => self.at += 1,
                b'@' => {
                    let word = self.word(|byte| byte.is_ascii_alphanumeric() || byte == b'-')?;
                    let is_keyword = matches!(word, b"@prefix" | b"@base" | b"@version");
                    is_directive |= is_keyword;
                    self.is_clean &= is_keyword == was_first && word.len() > 1;
                }
                _ => {
                    let word = self.name()?;
                    let lower = word.to_ascii_lowercase();
                    match lower.as_slice() {
                        b"prefix" | b"base" if was_first => until = Some(Until::Iri),
                        b"version" if was_first => until = Some(Until::Text),
                        _ => {}
                    }
                }
            }
        }
    }

    fn iri(&mut self) -> Option<()> {
        let rest = &self.text[self.at + 1..];
        let is_end = |byte: &u8| matches!(byte, b'>' | b'<' | b'"' | b'\n' | b'\r');
        let Some(end) = rest.iter().position(is_end) else {
            return self.unclosed();
        };
        let inner = &rest[..end];
        // A blank and a dot or a comment behind it: it may have ended there.
        let may_end = |pair: &[u8]| matches!(pair, [b' ' | b'\t', b'.' | b'#' | b';' | b',']);
        if rest[end] != b'>' || inner.windows(2).any(may_end) {
            self.is_clean = false;
        }
        self.at += 1 + end + usize::from(rest[end] == b'>');
        Some(())
    }

    /// A token without an end: it goes on to the end of the text.
    fn unclosed(&mut self) -> Option<()> {
        self.is_clean = false;
        self.at = self.text.len();
        self.around.is_end.then_some(())
    }

    fn string(&mut self, quote: u8) -> Option<()> {
        if self.peek(1) == Some(quote) && self.peek(2) == Some(quote) {
            self.has_plain_texts = false;
            let mut from = self.at + 3;
            loop {
                let Some(at) = memchr2(quote, b'\\', self.text.get(from..)?) else {
                    return self.unclosed();
                };
                from += at;
                if self.text[from] == b'\\' {
                    from += 2;
                } else if self.text[from..].starts_with(&[quote; 3]) {
                    // The first three, whatever stands behind them (Turtle, 6.5).
                    self.at = from + 3;
                    return Some(());
                } else {
                    from += 1;
                }
                if from >= self.text.len() {
                    return self.unclosed();
                }
            }
        }
        let start = self.at + 1;
        let mut from = start;
        loop {
            let rest = self.text.get(from..).unwrap_or_default();
            let is_special = |byte: &u8| *byte == quote || matches!(byte, b'\\' | b'\n' | b'\r');
            let Some(at) = rest.iter().position(is_special) else {
                return self.unclosed();
            };
            from += at;
            match self.text[from] {
                b'\\' => from += 2,
                byte if byte == quote => break,
                _ => {
                    self.is_clean = false;
                    self.at = from;
                    return Some(());
                }
            }
        }
        let next = self.text.get(from + 1);
        let is_delimited =
            next.is_none_or(|byte| byte.is_ascii_whitespace() || b"@^,;.)]}".contains(byte));
        self.has_plain_texts &= is_delimited && from >= start + 2;
        self.at = from + 1;
        Some(())
    }

    /// The byte at the place, and those behind it that belong to it.
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> Option<&[u8]> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let length = rest.iter().position(|byte| !belongs(*byte));
        let length = match length {
            Some(length) => length,
            None if self.around.is_end => rest.len(),
            None => return None,
        };
        self.at += 1 + length;
        Some(&self.text[start..self.at])
    }

    /// A name, a number, a keyword.
    fn name(&mut self) -> Option<&[u8]> {
        let start = self.at;
        let first = self.text[start];
        let is_number = first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.');
        let mut at = start;
        let mut has_colon = false;
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b'\\' => at += 2,
                b':' => {
                    has_colon = true;
                    at += 1;
                }
                b'+' if is_number => at += 1,
                b'_' | b'-' | b'.' | b'%' | 0x80.. => at += 1,
                byte if byte.is_ascii_alphanumeric() => at += 1,
                _ => break,
            }
        }
        if at >= self.text.len() {
            if !self.around.is_end {
                return None;
            }
            at = self.text.len();
        }
        // A dot at its end ends the statement.
        while at > start + 1 && self.text[at - 1] == b'.' && self.text[at - 2] != b'\\' {
            at -= 1;
        }
        if at == start {
            // No token begins so.
            self.is_clean = false;
            at += 1;
        }
        self.at = at;
        let word = &self.text[start..at];
        let is_keyword = || {
            let lower = word.to_ascii_lowercase();
            let known: [&[u8]; 7] = [
                b"a", b"true", b"false", b"prefix", b"base", b"graph", b"version",
            ];
            known.contains(&lower.as_slice())
        };
        self.is_clean &= has_colon || is_number || is_keyword();
        self.is_clean &= memchr(b'\\', word).is_none() || has_colon;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(text: &str, has_graphs: bool) -> Vec<(Part, String, bool)> {
        let mut around = Around {
            has_graphs,
            is_in_graph: false,
            is_end: true,
        };
        let mut rest = text.as_bytes();
        let mut found = Vec::new();
        while let Some(cut) = cut(rest, around).filter(|cut| cut.length > 0) {
            let part = String::from_utf8_lossy(&rest[..cut.length])
                .trim()
                .to_owned();
            rest = &rest[cut.length..];
            around.is_in_graph = match cut.part {
                Part::GraphOpens => true,
                Part::GraphCloses => false,
                _ => around.is_in_graph,
            };
            found.push((cut.part, part, cut.is_clean));
        }
        found
    }

    #[test]
    fn statements_end_at_their_dots_and_nowhere_else() {
        let statements = [
            "@prefix : <http://e/a.b> .",
            "PREFIX x: <http://e/x.>",
            ":a.b :p 1.5 , .5 , 1.5e+3 , \"a. b\" , 'c.\\' d.'@en , \"\"\"x\n. \"y\" :z .\n\"\"\" .",
            "_:a.b a [ :q ( 1 2.5 3 ) ; x:y\\.z <http://e/. > ] .",
            "# a comment. with dots .\n:a :b true.",
            "<< :a :b :c >> :d <<( :a :b 1 )>> {| :e :f |} ~ :g .",
        ];
        let text = statements.join("\n");
        let found = cuts(&text, false);
        let parts: Vec<&str> = found.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(parts[..5], statements[..5]);
        assert!(found.iter().all(|it| it.2), "{found:?}");
    }

    #[test]
    fn graphs_open_and_close_and_stray_braces_are_told() {
        let text = ":g { :a :b :c . :d :e :f } GRAPH :h {} :i :j :k . } :g { :a :b { ";
        let parts: Vec<Part> = cuts(text, true).into_iter().map(|it| it.0).collect();
        use Part::{GraphCloses, GraphOpens, Statement, StrayBrace};
        assert_eq!(
            parts,
            [
                GraphOpens,
                Statement,
                GraphCloses,
                GraphOpens,
                GraphCloses,
                Statement,
                StrayBrace,
                GraphOpens,
                StrayBrace
            ]
        );
    }

    #[test]
    fn what_is_not_closed_is_not_clean() {
        for text in [
            ":a :b \"c .\n",
            ":a :b <http://e/ .\n:c :d <e> .",
            ":a :b <http://e/x . # see -> there",
            ":a :b word .",
            ":a :b \"\"\"c .",
            ":a :b \"\"\"c\"\"\"\" ),\n:d .",
            ":a :b ? .",
        ] {
            assert!(!cuts(text, false)[0].2, "{text}");
        }
        assert!(cuts(":a :b <http://e/x y> .", false)[0].2);
    }

    #[test]
    fn a_cut_is_the_same_however_much_is_known_of_the_text() {
        let text = ":a :b \"\"\"c\"\"\"^^:d , 1.5 , _:x.y ; a <e> . # c\n:d";
        let whole = cut(
            text.as_bytes(),
            Around {
                is_end: true,
                ..Around::default()
            },
        )
        .unwrap();
        for known in 0..text.len() {
            if let Some(found) = cut(&text.as_bytes()[..known], Around::default()) {
                assert_eq!(found, whole, "{known}");
            }
        }
    }
}
