//! The check of patterns (`~`, `LIKE`, `SIMILAR TO`) before they are compiled.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::refused::{PATTERN_BYTES_MAX, refuse_patterns};

/// Places of a pattern that is short: an automaton for it is mostly ready soon.
pub(super) const SHORT_POSITIONS_MAX: u64 = 64;

/// A pattern that is looked at when it is known; one that is written down and short is what it is.
pub(super) fn looked_at(pattern: Expr) -> Transformed<Expr> {
    if is_short(&pattern) || is_looked_at(&pattern) {
        return Transformed::no(pattern);
    }
    let signature = Signature::any(1, Volatility::Immutable);
    Transformed::yes(Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(Pattern { signature })),
        args: vec![pattern],
    }))
}

fn is_short(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(
            ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text),
            _,
        ) => text
            .as_ref()
            .is_none_or(|text| text.len() as u64 <= PATTERN_BYTES_MAX),
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_short(&cast.expr),
        _ => false,
    }
}

/// Whether a pattern is written down, and little work for any text. What is not is looked for by a
/// function, which looks at the clock, and not by an operator.
pub(super) fn is_little_work(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(value, _) => {
            let text = value.try_as_str().flatten();
            text.is_none_or(|text| positions(text.as_bytes()) <= SHORT_POSITIONS_MAX)
        }
        Expr::Cast(cast) => is_little_work(&cast.expr),
        _ => false,
    }
}

fn is_looked_at(pattern: &Expr) -> bool {
    matches!(pattern, Expr::ScalarFunction(call) if call.func.inner().is::<Pattern>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Pattern {
    signature: Signature,
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        "pattern"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] => Ok(of.clone()),
            _ => internal_err!("a pattern is one value"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [of] => Ok(Arc::clone(of)),
            _ => internal_err!("a pattern is one value"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [pattern] = args.args.as_slice() else {
            return internal_err!("a pattern is one value");
        };
        refuse_patterns(pattern)?;
        Ok(pattern.clone())
    }
}

/// The places of a pattern at which a match may be at once: its letters and classes, with
/// repetitions written out.
pub(super) fn positions(pattern: &[u8]) -> u64 {
    // Of each group that is open, and before the first.
    let mut groups = vec![0_u64];
    let mut last = 0;
    for token in Tokens(pattern) {
        let Some(sum) = groups.last_mut() else { break };
        match token {
            Token::Atom => {
                last = 1;
                *sum = sum.saturating_add(1);
            }
            Token::Open => {
                groups.push(0);
                last = 0;
            }
            Token::Close => {
                // One that was never opened is no pattern.
                if groups.len() > 1 {
                    last = groups.pop().unwrap_or(0);
                }
                if let Some(sum) = groups.last_mut() {
                    *sum = sum.saturating_add(last);
                }
            }
            Token::Repeated { most, .. } => {
                let more = last.saturating_mul(most.saturating_sub(1));
                *sum = sum.saturating_add(more);
                last = last.saturating_add(more);
            }
            Token::Or => last = 0,
        }
    }
    groups.into_iter().fold(0, u64::saturating_add)
}

/// Whether what is found again and again ends where the search for it has come to. It does not
/// where a match may go on without an end, and be what was found before that: each may look at the
/// rest of the text then.
pub(super) fn is_linear_again(pattern: &[u8]) -> bool {
    let (mut has_or, mut is_endless) = (false, false);
    // For each group whether there is something in it that goes on.
    let mut groups = vec![false];
    let mut last_group = false;
    for token in Tokens(pattern) {
        match token {
            Token::Open => groups.push(false),
            Token::Close => {
                last_group = groups.len() > 1 && groups.pop().unwrap_or(false);
                if let (true, Some(outer)) = (last_group, groups.last_mut()) {
                    *outer = true;
                }
                continue;
            }
            Token::Repeated { .. } if last_group => return false,
            Token::Repeated {
                is_endless: true, ..
            } => {
                is_endless = true;
                if let Some(group) = groups.last_mut() {
                    *group = true;
                }
            }
            Token::Or => has_or = true,
            Token::Atom | Token::Repeated { .. } => {}
        }
        last_group = false;
    }
    !(has_or && is_endless)
}

/// A part of a pattern, as far as it matters how much work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Atom,
    Open,
    Close,
    Or,
    Repeated { most: u64, is_endless: bool },
}

/// Takes a pattern apart. What is no pattern gives something, too: the engine refuses it.
struct Tokens<'p>(&'p [u8]);

impl Tokens<'_> {
    fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    /// Skips all up to and with a byte.
    fn skip_behind(&mut self, end: u8) {
        let found = self.0.iter().position(|byte| *byte == end);
        self.skip(found.map_or(self.0.len(), |at| at + 1));
    }

    /// Skips a class behind its bracket, with classes in it.
    fn skip_class(&mut self) {
        let mut depth = 1;
        if self.0.first() == Some(&b'^') {
            self.skip(1);
        }
        if self.0.first() == Some(&b']') {
            self.skip(1);
        }
        while let (true, Some(byte)) = (depth > 0, self.0.first()) {
            match byte {
                b'\\' => self.skip(1),
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            self.skip(1);
        }
    }

    /// Takes `{3,5}` behind its bracket.
    fn counts(&mut self) -> Token {
        let end = self.0.iter().position(|byte| *byte == b'}');
        let within = self.0.get(..end.unwrap_or(0)).unwrap_or_default();
        let within = String::from_utf8_lossy(within);
        let number = |text: &str| text.trim().parse().ok();
        let (least, most) = within.split_once(',').unwrap_or((&within, &within));
        let least = number(least);
        let token = Token::Repeated {
            most: number(most).or(least).unwrap_or(1),
            is_endless: within.contains(',') && most.trim().is_empty(),
        };
        self.skip(end.map_or(0, |end| end + 1));
        token
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.0.first()?;
            self.skip(1);
            return Some(match byte {
                b'(' => {
                    if self.0.first() == Some(&b'?') {
                        // Flags, or a name.
                        let end = |byte: &u8| matches!(byte, b':' | b'>' | b')');
                        let found = self.0.iter().position(end);
                        let is_over = found.and_then(|at| self.0.get(at)) == Some(&b')');
                        self.skip(found.map_or(self.0.len(), |at| at + 1));
                        if is_over {
                            continue;
                        }
                    }
                    Token::Open
                }
                b')' => Token::Close,
                b'|' => Token::Or,
                b'*' | b'+' => Token::Repeated {
                    most: 1,
                    is_endless: true,
                },
                b'?' => Token::Repeated {
                    most: 1,
                    is_endless: false,
                },
                b'{' => self.counts(),
                b'[' => {
                    self.skip_class();
                    Token::Atom
                }
                b'\\' => {
                    let kind = self.0.first().copied();
                    self.skip(1);
                    if matches!(kind, Some(b'p' | b'P' | b'x' | b'u' | b'U'))
                        && self.0.first() == Some(&b'{')
                    {
                        self.skip_behind(b'}');
                    } else if matches!(kind, Some(b'p' | b'P')) {
                        self.skip(1);
                    }
                    Token::Atom
                }
                // The first byte of a letter stands for it.
                0x80..=0xbf => continue,
                _ => Token::Atom,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_patterns_are_counted_with_repetitions_within_repetitions() {
        for (pattern, expected) in [
            ("", 0),
            ("abc", 3),
            ("a{10}", 10),
            ("(ab){10}c", 21),
            ("((a{10}){10}b){10}", 1_010),
            ("[a-z{3}]{2,5}x*", 6),
            ("[^]\\]a]b", 2),
            ("\\pL{50}|\\p{Greek}+", 51),
            ("(?i)é(?:b|c)", 3),
            ("(?<name>a){3}", 3),
            ("a{2,}", 2),
            (")(", 0),
            ("a{", 1),
        ] {
            assert_eq!(positions(pattern.as_bytes()), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_may_look_at_the_rest_of_the_text_for_each_match_are_known() {
        for (pattern, is_linear) in [
            ("a", true),
            ("a|b", true),
            ("\\s+", true),
            ("<[^>]*>", true),
            ("(a)(b+)", true),
            ("(ab){3}|c", true),
            ("a*b|a", false),
            ("a(.*b)?", false),
            ("a(b(.*c)d)?", false),
            ("(a{3,}b)*", false),
            ("(?:a|b*c)", false),
        ] {
            assert_eq!(is_linear_again(pattern.as_bytes()), is_linear, "{pattern}");
        }
    }
}
