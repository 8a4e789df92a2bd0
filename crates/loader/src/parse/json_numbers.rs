//! Integers of JSON-LD from 10^20 to 10^21, which are `xsd:integer` (JSON-LD 1.1 API, 8.6) and
//! which the parser takes for doubles.
//!
//! `oxjsonld` (0.2.7) makes integers of up to 20 digits. So a number of 21 is written as another of
//! 20 that stands nowhere else, and what becomes of that is set right in the literals that come
//! out: in integers, in doubles where a context asks for them, in literals of JSON.
//!
//! Cost: a look at each byte of the text.

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, Term};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Digits of the numbers that are replaced.
const DIGITS: usize = 21;
/// The longest number that is looked at.
const NUMBER_BYTES_MAX: usize = 64;
/// Distinct ones of a document; others stay doubles.
const REPLACED_MAX: usize = 100_000;
/// Between two that stand for others: more than doubles of that size are apart.
const STEP: u128 = 1_000_031;
const PIECE_BYTES: usize = 16 << 10;

/// What stands for which.
#[derive(Debug)]
pub(crate) struct Replaced {
    first: u128,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What stands for these digits.
    by_digits: HashMap<String, u128>,
    /// What a lexical form, of an integer or a double, is in truth.
    by_form: HashMap<String, String>,
}

impl Replaced {
    /// Nothing is replaced yet.
    pub(crate) fn new() -> Arc<Self> {
        let random = u128::from(RandomState::new().hash_one(0_u8)) % 10_u128.pow(18);
        Arc::new(Self {
            // Of 20 digits, whatever is added, and without zeros at its end.
            first: (8 * 10_u128.pow(19) + random) / 10 * 10 + 1,
            known: Mutex::default(),
        })
    }

    /// What a number is written as, if it has to be.
    fn instead(&self, number: &str) -> Option<String> {
        let digits = whole_digits(number)?;
        let sign = if number.starts_with('-') { "-" } else { "" };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let count = known.by_digits.len();
        let stands_for = match known.by_digits.get(&digits) {
            Some(stands_for) => *stands_for,
            None if count == REPLACED_MAX => return None,
            None => {
                let next = self.first + count as u128 * 10 * STEP;
                let written = next.to_string();
                let double = (as_double(&written), as_double(&digits));
                known.by_form.insert(double.0, double.1);
                known.by_form.insert(written, digits.clone());
                known.by_digits.insert(digits, next);
                next
            }
        };
        Some(format!("{sign}{stands_for}"))
    }

    /// Sets a term right in which one stands for another.
    pub(crate) fn restore(&self, term: &mut Term) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.by_digits.is_empty() {
            return;
        }
        let Term::Literal(literal) = term else { return };
        if literal.language().is_some() || literal.datatype() == xsd::STRING {
            return;
        }
        let value = literal.value();
        let right = if literal.datatype() == rdf::JSON {
            in_json(value, &known.by_digits)
        } else {
            let (sign, plain) = match value.strip_prefix('-') {
                Some(plain) => ("-", plain),
                None => ("", value),
            };
            let form = known.by_form.get(plain);
            form.map(|form| format!("{sign}{form}"))
        };
        if let Some(right) = right {
            *term = Literal::new_typed_literal(right, literal.datatype().into_owned()).into();
        }
    }
}

/// A literal of JSON, in which numbers are written as doubles are.
fn in_json(value: &str, known: &HashMap<String, u128>) -> Option<String> {
    let shown = |digits: &str| digits.parse::<f64>().ok().map(|number| number.to_string());
    let mut right = None;
    for (digits, stands_for) in known {
        let (from, to) = (shown(&stands_for.to_string())?, shown(digits)?);
        let text = right.as_deref().unwrap_or(value);
        if text.contains(&from) {
            right = Some(text.replace(&from, &to));
        }
    }
    right
}

/// The canonical double of these digits.
fn as_double(digits: &str) -> String {
    let (first, rest) = digits.split_at(1);
    let rest = rest.trim_end_matches('0');
    let rest = if rest.is_empty() { "0" } else { rest };
    format!("{first}.{rest}E{}", digits.len() - 1)
}

/// The digits of a number without a sign, if it is whole and has 21 of them.
fn whole_digits(number: &str) -> Option<String> {
    let number = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let without_zeros = digits.trim_end_matches('0');
    let zeros = digits.len() - without_zeros.len();
    let exponent = exponent - fraction.len() as i64 + zeros as i64;
    let digits = without_zeros.trim_start_matches('0');
    let length = i64::try_from(digits.len()).ok()?.checked_add(exponent)?;
    let is_of_length = !digits.is_empty() && exponent >= 0 && length == DIGITS as i64;
    is_of_length.then(|| digits.to_owned() + &"0".repeat(DIGITS - digits.len()))
}

/// The text with such numbers replaced.
pub(crate) struct JsonNumbers {
    input: Box<dyn Read + Send>,
    replaced: Arc<Replaced>,
    state: State,
    /// The number that is being read.
    number: Vec<u8>,
    text: Vec<u8>,
    given: usize,
    is_at_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    Text,
    Escape,
    Number,
    /// Too long to be looked at.
    LongNumber,
}

impl JsonNumbers {
    pub(crate) fn new(input: Box<dyn Read + Send>, replaced: Arc<Replaced>) -> Self {
        Self {
            input,
            replaced,
            state: State::Plain,
            number: Vec::new(),
            text: Vec::new(),
            given: 0,
            is_at_end: false,
        }
    }

    fn byte(&mut self, byte: u8) {
        let is_of_number = byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        match self.state {
            State::Number if is_of_number && self.number.len() < NUMBER_BYTES_MAX => {
                self.number.push(byte);
                return;
            }
            State::Number if is_of_number => {
                self.text.append(&mut self.number);
                self.state = State::LongNumber;
            }
            State::Number => self.end_number(),
            State::LongNumber if !is_of_number => self.state = State::Plain,
            State::Plain | State::Text | State::Escape | State::LongNumber => {}
        }
        self.state = match (self.state, byte) {
            (State::Plain, b'"') => State::Text,
            (State::Plain, b'-' | b'0'..=b'9') => {
                self.number.push(byte);
                self.state = State::Number;
                return;
            }
            (State::Text, b'"') => State::Plain,
            (State::Text, b'\\') => State::Escape,
            (State::Escape, _) => State::Text,
            (state, _) => state,
        };
        self.text.push(byte);
    }

    fn end_number(&mut self) {
        let number = std::mem::take(&mut self.number);
        let instead = std::str::from_utf8(&number).ok();
        let instead = instead
            .filter(|number| number.len() > 3)
            .and_then(|number| self.replaced.instead(number));
        match instead {
            Some(instead) => self.text.extend_from_slice(instead.as_bytes()),
            None => self.text.extend_from_slice(&number),
        }
        self.state = State::Plain;
    }
}

impl Read for JsonNumbers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.is_at_end {
            self.text.clear();
            self.given = 0;
            let mut piece = [0; PIECE_BYTES];
            let read = self.input.read(&mut piece)?;
            for byte in &piece[..read] {
                self.byte(*byte);
            }
            if read == 0 {
                self.is_at_end = true;
                self.end_number();
            }
        }
        let rest = &self.text[self.given..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_21_digits_are_found_however_they_are_written() {
        let digits = |number: &str| whole_digits(number);
        assert_eq!(
            digits("100000000000000000000").unwrap(),
            format!("1{}", "0".repeat(20))
        );
        assert_eq!(digits("-1e20").unwrap(), format!("1{}", "0".repeat(20)));
        assert_eq!(
            digits("1.25E+20").unwrap(),
            format!("125{}", "0".repeat(18))
        );
        assert_eq!(digits("999999999999999999999.0").unwrap(), "9".repeat(21));
        for other in [
            "1e21",
            "1e19",
            "1.5",
            "99999999999999999999",
            "-",
            "1e",
            "1e99999999999999999999",
            "0e20",
        ] {
            assert_eq!(digits(other), None, "{other}");
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let text = r#"{"a": [1, -2.5e3, "100000000000000000000 \" 100000000000000000001"], "b": 1e300, "c":12}"#;
        let long = format!("{text}{}", "1".repeat(1_000));
        let mut read = String::new();
        let input = Box::new(io::Cursor::new(long.clone().into_bytes()));
        JsonNumbers::new(input, Replaced::new())
            .read_to_string(&mut read)
            .unwrap();
        assert_eq!(read, long);
    }
}
