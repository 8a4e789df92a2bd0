//! Diagnoses of foreign syntax: operators, comments, odd characters, whole texts of other
//! languages.

use crate::error::REPEATED_BYTES_MAX;
use crate::error::{ErrorKind, Hint};
use crate::lexer::Lexer;
use crate::parser::{Failure, Parser};
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// Bytes of a text that are looked through for what language it is.
const LOOKED_AT_BYTES_MAX: usize = 4_096;

const NO_REMAINDER: Hint = Hint::Note("SPARQL has no remainder: ?a - ?b * FLOOR(?a / ?b)");

/// Words that operators are called elsewhere, and what to write.
fn operator_for(word: &str) -> Option<Hint> {
    Some(match word.to_ascii_uppercase().as_str() {
        "AND" => Hint::Write("&&".to_owned()),
        "OR" => Hint::Write("||".to_owned()),
        "DIV" => Hint::Write("/".to_owned()),
        "MOD" => NO_REMAINDER,
        "LIKE" | "ILIKE" => {
            Hint::Note("write STRSTARTS(?x, \"...\"), CONTAINS(?x, \"...\") or REGEX(?x, \"...\")")
        }
        "IS" => Hint::Note("write BOUND(?x) or !BOUND(?x), or `=`"),
        "BETWEEN" => Hint::Note("write `?x >= least && ?x <= most`"),
        _ => return None,
    })
}

/// What an editor for letters, or a keyboard of another language, makes of signs.
fn sign_for(character: char) -> Option<&'static str> {
    Some(match character {
        '“' | '”' | '„' | '«' | '»' | '″' => "\"",
        '‘' | '’' | '‚' | '‹' | '›' | '′' | '`' => "'",
        '–' | '—' | '−' | '‐' | '‑' => "-",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "!=",
        '×' | '∗' | '＊' => "*",
        '÷' => "/",
        '∧' => "&&",
        '∨' => "||",
        '¬' | '！' => "!",
        '；' => ";",
        '，' | '、' => ",",
        '。' | '．' => ".",
        '（' => "(",
        '）' => ")",
        '｛' => "{",
        '｝' => "}",
        '？' => "?",
        '＝' => "=",
        '＜' | '〈' | '⟨' => "<",
        '＞' | '〉' | '⟩' => ">",
        _ => return None,
    })
}

impl Parser<'_, '_> {
    /// Whether the next token is of this kind and begins where this one ends.
    fn is_followed_by(&self, kind: TokenKind) -> bool {
        let second = self.second();
        second.kind == kind && second.start == self.token.end
    }

    /// `-- ...`, `// ...` or `/* ... */`.
    pub(super) fn foreign_comment(&self) -> Option<Failure> {
        let is_comment = match self.token.kind {
            TokenKind::Minus => self.is_followed_by(TokenKind::Minus),
            TokenKind::Slash => {
                self.is_followed_by(TokenKind::Slash) || self.is_followed_by(TokenKind::Star)
            }
            _ => false,
        };
        is_comment.then(|| {
            let start = self.token.start as usize;
            let failure = self.error_in(start..start + 2, ErrorKind::ForeignOperator);
            failure.with_hint(Hint::Comment)
        })
    }

    /// A character that no token begins with.
    pub(super) fn foreign_character(&self) -> Option<Failure> {
        if let Some(failure) = self.tag_with_underscore() {
            return Some(failure);
        }
        let character = self.text_of(self.token).chars().next()?;
        if let Some(sign) = sign_for(character) {
            let failure = self.error(ErrorKind::ForeignCharacter { character });
            let mend = self.string_between(sign);
            return Some(failure.with_hint(mend.unwrap_or_else(|| Hint::Write(sign.to_owned()))));
        }
        match character {
            '\\' => {
                let hint = Hint::Note("escapes stand in strings, IRIs and local names only");
                Some(self.error(ErrorKind::Unexpected).with_hint(hint))
            }
            '$' => {
                let hint = Hint::Note("a variable has a name of letters, digits and `_` behind it");
                Some(self.error(ErrorKind::Unexpected).with_hint(hint))
            }
            it if it.is_ascii() && !it.is_ascii_control() => None,
            it if it.is_alphanumeric() => None,
            _ => {
                let failure = self.error(ErrorKind::ForeignCharacter { character });
                Some(match character.is_whitespace() {
                    true => failure.with_hint(Hint::Note("write an ordinary space")),
                    false => failure.with_hint(Hint::LeaveOut),
                })
            }
        }
    }

    /// `“text”`: a whole string between marks of another kind.
    fn string_between(&self, mark: &str) -> Option<Hint> {
        let (start, first) = (self.token.start as usize, self.token.end as usize);
        let rest = self.text.get(first..)?.lines().next()?;
        let mut characters = rest.char_indices();
        let is_end = |(_, it): &(usize, char)| sign_for(*it) == Some(mark);
        let (length, last) = characters.find(is_end)?;
        let inner = &rest[..length];
        let is_string = matches!(mark, "\"" | "'")
            && !inner.contains([mark.chars().next()?, '\\'])
            && length <= REPEATED_BYTES_MAX;
        is_string.then(|| Hint::Replace {
            span: start..first + length + last.len_utf8(),
            text: format!("{mark}{inner}{mark}"),
        })
    }

    /// `@en_GB`: the tag, and behind it what it cannot hold.
    fn tag_with_underscore(&self) -> Option<Failure> {
        let is_tag = self.text_of(self.token) == "_"
            && self.previous.kind == TokenKind::LanguageTag
            && self.previous.end == self.token.start;
        if !is_tag {
            return None;
        }
        let start = self.previous.start as usize;
        let rest = self.text.get(start..)?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"@_-".contains(byte);
        let length = rest.bytes().take_while(is_part).count();
        let tag = rest[..length].replace('_', "-");
        let failure = self.error_in(start..start + length, ErrorKind::InvalidLanguageTag);
        Some(failure.with_hint(Hint::Write(tag.trim_end_matches('-').to_owned())))
    }

    /// A sign or word of another language where an operator can stand.
    pub(super) fn foreign_operator(&self) -> Option<Failure> {
        let text = self.text_of(self.token);
        let mend = match self.token.kind {
            TokenKind::Word if text.eq_ignore_ascii_case("IS") => {
                self.test_for_null().or_else(|| operator_for(text))?
            }
            TokenKind::Word => operator_for(text)?,
            TokenKind::Bar => Hint::Write("||".to_owned()),
            TokenKind::Unknown if text == "&" => Hint::Write("&&".to_owned()),
            TokenKind::Unknown if text == "%" => NO_REMAINDER,
            _ => return None,
        };
        Some(self.error(ErrorKind::ForeignOperator).with_hint(mend))
    }

    /// `?x IS NULL`, `?x IS NOT NULL`: the `IS` is here.
    fn test_for_null(&self) -> Option<Hint> {
        let mut lexer = Lexer::starting_at(self.text, self.token.end as usize);
        let mut last = lexer.next_token();
        let is_negated = last.kind == TokenKind::Keyword(Keyword::Not);
        if is_negated {
            last = lexer.next_token();
        }
        let is_test = self.previous.kind == TokenKind::Variable
            && self.text_of(last).eq_ignore_ascii_case("NULL");
        is_test.then(|| {
            let variable = self.text_of(self.previous);
            let not = if is_negated { "" } else { "!" };
            Hint::Replace {
                span: self.previous.start as usize..last.end as usize,
                text: format!("{not}BOUND({variable})"),
            }
        })
    }

    /// `==`, `<>`, `=>` and the like: an operator where an operand has to stand.
    pub(in crate::parser) fn doubled_operator(&self, operator: Token) -> Option<Failure> {
        let mend = match (operator.kind, self.token.kind) {
            (TokenKind::Equal, TokenKind::Equal) => "=",
            (TokenKind::Less, TokenKind::Greater) => "!=",
            (TokenKind::Equal, TokenKind::Greater) => ">=",
            (TokenKind::Equal, TokenKind::Less) => "<=",
            (TokenKind::NotEqual, TokenKind::Equal) => "!=",
            _ => return None,
        };
        if operator.end != self.token.start {
            return None;
        }
        let span = operator.start as usize..self.token.end as usize;
        let failure = self.error_in(span, ErrorKind::ForeignOperator);
        Some(failure.with_hint(Hint::Write(mend.to_owned())))
    }

    /// A text of SQL, or what begins like one: tables in the place of patterns.
    pub(super) fn other_language(&self) -> Option<Failure> {
        let end = self.text.floor_char_boundary(LOOKED_AT_BYTES_MAX);
        let beginning = &self.text[..end];
        if beginning.contains('{') {
            return None;
        }
        let mut lexer = Lexer::new(beginning);
        let mut before = lexer.next_token();
        loop {
            let token = lexer.next_token();
            let names_table = matches!(
                before.kind,
                TokenKind::Keyword(Keyword::From | Keyword::Into)
            ) && token.kind == TokenKind::Word;
            if names_table {
                let failure = self.error(ErrorKind::OtherLanguage { language: "SQL" });
                return Some(failure.with_hint(Hint::Note(
                    "SPARQL has patterns in the place of tables: `SELECT ?name WHERE { ?person ex:name ?name }`",
                )));
            }
            if token.kind == TokenKind::End {
                return None;
            }
            before = token;
        }
    }
}
