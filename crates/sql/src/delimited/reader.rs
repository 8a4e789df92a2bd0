//! The parser from bytes to batches of texts.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use memchr::{memchr, memchr_iter, memchr2};

use super::dialect::{Dialect, Form};
use orrery_storage::table::COLUMNS_MAX;

use crate::{Error, Result, SqlState};

/// A record may have so many bytes: it is in memory as a whole.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// A batch ends at so many rows, or bytes.
const BATCH_ROWS: usize = 8 * 1024;
const BATCH_BYTES: usize = 4 << 20;
/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 100;

/// Rows as texts.
#[derive(Debug)]
pub(crate) struct TextBatch {
    /// A `Utf8View` array for each column.
    pub(crate) columns: Vec<ArrayRef>,
    /// How many there are, also where no column is wanted.
    pub(crate) rows: usize,
    /// The line on which each begins.
    lines: Vec<u64>,
}

impl TextBatch {
    /// The line on which a row begins, counted from one.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or_default()
    }
}

/// What takes bytes and gives batches.
#[derive(Debug)]
pub(crate) struct Reader {
    /// What messages call the input: `file x.csv`, `COPY t`.
    name: String,
    dialect: Dialect,
    /// The columns of a record.
    names: Vec<String>,
    /// The array that each goes to; one that nobody wants goes to none.
    places: Vec<Option<usize>>,
    /// By column: whether NULL is taken as a text, and whether the text for NULL is one also within
    /// quotes.
    never_null: Vec<bool>,
    null_if_quoted: Vec<bool>,
    builders: Vec<StringViewBuilder>,
    lines: Vec<u64>,
    batch_bytes: usize,
    /// Bytes of which no record was made yet, from `start` on; those before `scanned` are known to
    /// be within the first.
    pending: Vec<u8>,
    start: usize,
    scanned: usize,
    in_quotes: bool,
    /// The line on which `start` is.
    line: u64,
    is_first: bool,
    /// The mark for the end of the data was there.
    is_over: bool,
    /// A field without its quotes and escapes.
    unescaped: Vec<u8>,
    /// The fields of the first record, where nothing else is wanted.
    first: Option<Vec<String>>,
    header: Header,
    /// Whether lines end with a carriage return and a line feed: as the first does.
    has_returns: bool,
    /// Whether this record has a carriage return somewhere, which may be within quotes alone.
    has_return: bool,
}

/// What is looked at of the line of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// Nothing.
    Skipped,
    /// No column has the name of another.
    Places,
    /// The columns have these names.
    Exact,
}

impl Reader {
    /// For an input of this name, whose records have these columns, each of which goes to the array
    /// of its place.
    pub(crate) fn new(
        name: String,
        dialect: Dialect,
        names: Vec<String>,
        places: Vec<Option<usize>>,
    ) -> Self {
        let arrays = places.iter().flatten().map(|place| place + 1).max();
        Self {
            builders: (0..arrays.unwrap_or(0))
                .map(|_| StringViewBuilder::new())
                .collect(),
            never_null: vec![false; names.len()],
            null_if_quoted: vec![false; names.len()],
            name,
            dialect,
            names,
            places,
            lines: Vec::new(),
            batch_bytes: 0,
            pending: Vec::new(),
            start: 0,
            scanned: 0,
            in_quotes: false,
            line: 1,
            is_first: true,
            is_over: false,
            unescaped: Vec::new(),
            first: None,
            header: Header::Skipped,
            has_returns: false,
            has_return: false,
        }
    }

    /// The same where some columns have no NULL, and some have one also within quotes.
    pub(crate) fn with_nulls(mut self, never_null: Vec<bool>, null_if_quoted: Vec<bool>) -> Self {
        self.never_null = never_null;
        self.null_if_quoted = null_if_quoted;
        self
    }

    /// The same that looks at the line of names.
    pub(crate) fn with_header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// Memory that it holds beside what was given away.
    pub(crate) fn held_bytes(&self) -> usize {
        self.pending.capacity() + self.unescaped.capacity() + 2 * self.batch_bytes
    }

    /// Takes bytes. Batches that are full are to be taken before the next.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<TextBatch>> {
        let mut full = Vec::new();
        if self.is_over {
            return Ok(full);
        }
        self.pending.extend_from_slice(bytes);
        while let Some(end) = self.end_of_record()? {
            self.take_record(end)?;
            self.start = end + 1;
            self.scanned = self.start;
            if self.lines.len() >= BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
                full.push(self.batch());
            }
            if self.is_over {
                break;
            }
        }
        self.pending.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.pending.len() > RECORD_BYTES_MAX {
            let what = format!("a record has more than {RECORD_BYTES_MAX} bytes");
            let error = Error::new(SqlState::ProgramLimitExceeded, what);
            return Err(self.at_line(error));
        }
        Ok(full)
    }

    /// The rest, when there are no more bytes.
    pub(crate) fn finish(&mut self) -> Result<Option<TextBatch>> {
        if !self.is_over && !self.pending.is_empty() {
            if self.in_quotes {
                return Err(self.at_line(bad("unterminated CSV quoted field")));
            }
            let end = self.pending.len();
            self.take_record(end)?;
            self.pending.clear();
        }
        Ok((!self.lines.is_empty()).then(|| self.batch()))
    }

    /// The rows that are whole, where no more are wanted.
    pub(crate) fn rest(&mut self) -> Option<TextBatch> {
        (!self.lines.is_empty()).then(|| self.batch())
    }

    fn batch(&mut self) -> TextBatch {
        self.batch_bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        let finish = |builder: &mut StringViewBuilder| Arc::new(builder.finish()) as ArrayRef;
        TextBatch {
            columns: self.builders.iter_mut().map(finish).collect(),
            rows: lines.len(),
            lines,
        }
    }

    /// Where the first record ends: at a line feed.
    fn end_of_record(&mut self) -> Result<Option<usize>> {
        let Dialect { quote, escape, .. } = self.dialect;
        while self.scanned < self.pending.len() {
            let rest = &self.pending[self.scanned..];
            let found = match (self.dialect.form, self.in_quotes) {
                (Form::Text, _) => memchr2(b'\\', b'\n', rest),
                (Form::Csv, false) => memchr2(quote, b'\n', rest),
                (Form::Csv, true) => memchr2(quote, escape, rest),
            };
            let Some(found) = found else {
                self.scanned = self.pending.len();
                break;
            };
            let at = self.scanned + found;
            let byte = self.pending[at];
            let is_escape = match self.dialect.form {
                Form::Text => byte == b'\\',
                Form::Csv => self.in_quotes && byte == escape && escape != quote,
            };
            if is_escape {
                let Some(next) = self.pending.get(at + 1) else {
                    // What it is for comes with the next bytes.
                    self.scanned = at;
                    break;
                };
                let is_taken = self.dialect.form == Form::Text || *next == quote || *next == escape;
                self.scanned = at + 1 + usize::from(is_taken);
            } else if byte == b'\n' && !self.in_quotes {
                return Ok(Some(at));
            } else {
                // Two quotes in a row leave and enter again.
                self.in_quotes = !self.in_quotes;
                self.scanned = at + 1;
            }
        }
        Ok(None)
    }

    /// Makes a row of the bytes up to `end`.
    fn take_record(&mut self, end: usize) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let done = self.take_bytes(&pending[self.start..end]);
        self.pending = pending;
        done
    }

    fn take_bytes(&mut self, record: &[u8]) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        self.has_returns |= is_first && record.ends_with(b"\r");
        let record = match self.has_returns {
            true => record.strip_suffix(b"\r").unwrap_or(record),
            false => record,
        };
        self.has_return = memchr(b'\r', record).is_some();
        let record = match is_first {
            true => record.strip_prefix(b"\xef\xbb\xbf").unwrap_or(record),
            false => record,
        };
        if self.dialect.form == Form::Text && record == b"\\." {
            self.is_over = true;
            return Ok(());
        }
        let record = match std::str::from_utf8(record) {
            Ok(record) => record,
            Err(error) => {
                let place = error.valid_up_to();
                let wrong = Error::new(
                    SqlState::CharacterNotInRepertoire,
                    format!(
                        "invalid byte sequence for encoding \"UTF8\": 0x{:02x}",
                        record[place]
                    ),
                );
                let before = String::from_utf8_lossy(&record[..place]);
                return Err(self.at(wrong, &before));
            }
        };
        if let Some(place) = memchr(0, record.as_bytes()) {
            return Err(self.at(no_text(), &record[..place]));
        }
        if is_first && self.dialect.has_header {
            self.check_header(record)?;
        } else {
            match self.dialect.form {
                Form::Text => self.split_text(record)?,
                Form::Csv => self.split_csv(record)?,
            }
            self.lines.push(self.line);
            self.batch_bytes += record.len();
            self.is_over |= self.first.is_some();
        }
        self.line += 1 + memchr_iter(b'\n', record.as_bytes()).count() as u64;
        Ok(())
    }

    /// Fails where the names are other than the columns: rows would be read by their places.
    fn check_header(&mut self, record: &str) -> Result<()> {
        if self.header == Header::Skipped {
            return Ok(());
        }
        self.first = Some(Vec::new());
        match self.dialect.form {
            Form::Text => self.split_text(record)?,
            Form::Csv => self.split_csv(record)?,
        }
        let found = self.first.take().unwrap_or_default();
        let is_exact = self.header == Header::Exact;
        let wrong = (0..found.len().max(self.names.len())).find(|place| {
            let (found, name) = (found.get(*place), self.names.get(*place));
            let is_unnamed = found.is_some_and(String::is_empty);
            found != name
                && !is_unnamed
                && (is_exact || found.is_some_and(|found| self.names.contains(found)))
        });
        match wrong {
            None => Ok(()),
            Some(place) => {
                let shown = |name: Option<&String>| match name {
                    Some(name) => format!("\"{name}\""),
                    None => "no name".to_owned(),
                };
                let (found, name) = (found.get(place), self.names.get(place));
                Err(self.at_line(bad(format!(
                    "the line of names has {} where {} is expected",
                    shown(found),
                    shown(name)
                ))))
            }
        }
    }

    fn split_csv(&mut self, record: &str) -> Result<()> {
        let Dialect {
            delimiter,
            quote,
            escape,
            ..
        } = self.dialect;
        let bytes = record.as_bytes();
        let (mut at, mut number) = (0, 0);
        loop {
            let field = at;
            let end = memchr2(delimiter, quote, &bytes[at..]).map_or(bytes.len(), |it| at + it);
            if bytes.get(end) != Some(&quote) {
                self.refuse_return(record, field, &bytes[field..end])?;
                self.take_field(record, number, field, &record[field..end], false)?;
                at = end;
            } else {
                let mut value = std::mem::take(&mut self.unescaped);
                value.clear();
                let mut in_quotes = false;
                while let Some(byte) = bytes.get(at) {
                    let next = bytes.get(at + 1);
                    if in_quotes
                        && *byte == escape
                        && next.is_some_and(|it| *it == quote || *it == escape)
                    {
                        value.extend(next);
                        at += 2;
                        continue;
                    }
                    if *byte == quote {
                        in_quotes = !in_quotes;
                    } else if !in_quotes && *byte == b'\r' {
                        return self.refuse_return(record, at, b"\r");
                    } else if !in_quotes && *byte == delimiter {
                        break;
                    } else {
                        value.push(*byte);
                    }
                    at += 1;
                }
                // Delimiter, quote and escape are ASCII, so that what is between them is whole
                // characters.
                let text = String::from_utf8_lossy(&value);
                self.take_field(record, number, field, &text, true)?;
                drop(text);
                self.unescaped = value;
            }
            number += 1;
            if at >= bytes.len() {
                break;
            }
            at += 1;
        }
        self.require_all(number)
    }

    fn split_text(&mut self, record: &str) -> Result<()> {
        let delimiter = self.dialect.delimiter;
        let bytes = record.as_bytes();
        let has_escapes = memchr(b'\\', bytes).is_some();
        let (mut at, mut number) = (0, 0);
        loop {
            let field = at;
            let mut is_escaped = false;
            loop {
                let found = match has_escapes {
                    true => memchr2(delimiter, b'\\', &bytes[at..]),
                    false => memchr(delimiter, &bytes[at..]),
                };
                at = found.map_or(bytes.len(), |found| at + found);
                if bytes.get(at) != Some(&b'\\') {
                    break;
                }
                is_escaped = true;
                at = bytes.len().min(at + 2);
            }
            let raw = &bytes[field..at];
            if !is_escaped {
                self.refuse_return(record, field, raw)?;
            }
            if !is_escaped || raw == self.dialect.null.as_bytes() {
                self.take_field(record, number, field, &record[field..at], false)?;
            } else {
                let mut value = std::mem::take(&mut self.unescaped);
                value.clear();
                unescape(raw, &mut value);
                let Ok(text) = std::str::from_utf8(&value) else {
                    let wrong = Error::new(
                        SqlState::CharacterNotInRepertoire,
                        "invalid byte sequence for encoding \"UTF8\" behind a backslash",
                    );
                    return Err(self.at(wrong, &record[..field]));
                };
                if memchr(0, text.as_bytes()).is_some() {
                    return Err(self.at(no_text(), &record[..field]));
                }
                // Not NULL, whatever it says.
                self.take_field(record, number, field, text, true)?;
                self.unescaped = value;
            }
            number += 1;
            if at >= bytes.len() {
                break;
            }
            at += 1;
        }
        self.require_all(number)
    }

    /// Puts a field, which begins at a byte of the record, to its array.
    fn take_field(
        &mut self,
        record: &str,
        number: usize,
        begin: usize,
        value: &str,
        is_quoted: bool,
    ) -> Result<()> {
        if let Some(first) = &mut self.first {
            if first.len() >= COLUMNS_MAX {
                let what = format!("a record has more than {COLUMNS_MAX} fields");
                return Err(self.at_line(Error::new(SqlState::TooManyColumns, what)));
            }
            first.push(value.to_owned());
            return Ok(());
        }
        let Some(place) = self.places.get(number) else {
            let error = bad("extra data after last expected column");
            return Err(self.at(error, &record[..begin]));
        };
        let Some(place) = place else { return Ok(()) };
        let is_null = value == self.dialect.null
            && match is_quoted {
                true => self.null_if_quoted[number],
                false => !self.never_null[number],
            };
        match is_null {
            true => self.builders[*place].append_null(),
            false => self.builders[*place]
                .try_append_value(value)
                .map_err(|error| Error::of_run(&error.into()))?,
        }
        Ok(())
    }

    /// Fails for a carriage return that is neither quoted nor the end of a line.
    fn refuse_return(&self, record: &str, begin: usize, field: &[u8]) -> Result<()> {
        if !self.has_return {
            return Ok(());
        }
        let Some(at) = memchr(b'\r', field) else {
            return Ok(());
        };
        let what = match self.dialect.form {
            Form::Text => "literal carriage return found in data",
            Form::Csv => "unquoted carriage return found in data",
        };
        let error = bad(what).with_hint(match self.dialect.form {
            Form::Text => "Use \"\\r\" to represent carriage return.",
            Form::Csv => "Use quoted CSV field to represent carriage return.",
        });
        Err(self.at(error, &record[..begin + at]))
    }

    fn require_all(&self, fields: usize) -> Result<()> {
        if self.first.is_some() {
            return Ok(());
        }
        match self.names.get(fields) {
            None => Ok(()),
            Some(missing) => {
                Err(self.at_line(bad(format!("missing data for column \"{missing}\""))))
            }
        }
    }

    fn at_line(&self, error: Error) -> Error {
        error.with_context(format!("{}, line {}", self.name, self.line))
    }

    /// With the line and the character, of which `before` is what stands before it in the record.
    fn at(&self, error: Error, before: &str) -> Error {
        let lines = memchr_iter(b'\n', before.as_bytes()).count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        error.with_context(format!(
            "{}, line {}, character {}",
            self.name,
            self.line + lines as u64,
            last.chars().count() + 1
        ))
    }
}

/// A byte that no text has, as PostgreSQL's texts have none.
fn no_text() -> Error {
    Error::new(
        SqlState::CharacterNotInRepertoire,
        "invalid byte sequence for encoding \"UTF8\": 0x00",
    )
}

/// The fields of the first record of some bytes, however many they are.
pub(crate) fn first_record(
    name: &str,
    dialect: &Dialect,
    bytes: &[u8],
) -> Result<Option<Vec<String>>> {
    let dialect = Dialect {
        has_header: false,
        ..dialect.clone()
    };
    let mut reader = Reader::new(name.to_owned(), dialect, Vec::new(), Vec::new());
    reader.first = Some(Vec::new());
    reader.push(bytes)?;
    reader.finish()?;
    Ok(reader.first)
}

/// An error of a value, with its place as messages have it.
pub(crate) fn at_value(
    error: Error,
    name: &str,
    line: u64,
    column: Option<(&str, Option<&str>)>,
) -> Error {
    let mut place = format!("{name}, line {line}");
    if let Some((column, value)) = column {
        place.push_str(&format!(", column {column}"));
        if let Some(value) = value {
            let cut: String = value.chars().take(SHOWN_CHARS_MAX).collect();
            let dots = if cut.len() < value.len() { "..." } else { "" };
            place.push_str(&format!(": \"{}{dots}\"", cut.escape_debug()));
        }
    }
    error.with_context(place)
}

fn bad(words: impl Into<String>) -> Error {
    Error::new(SqlState::BadCopyFileFormat, words)
}

/// What backslashes stand for, in PostgreSQL's text form.
fn unescape(raw: &[u8], value: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        at += 1;
        if *byte != b'\\' {
            value.push(*byte);
            continue;
        }
        let Some(next) = raw.get(at) else {
            value.push(b'\\');
            break;
        };
        at += 1;
        let digits = |from: usize, radix: u32, most: usize| {
            let digits = raw[from..].iter().take(most);
            digits
                .take_while(|byte| char::from(**byte).is_digit(radix))
                .count()
        };
        let number = |from: usize, count: usize, radix: u32| {
            let digits = raw[from..from + count].iter();
            digits.fold(0_u32, |number, byte| {
                number * radix + char::from(*byte).to_digit(radix).unwrap_or(0)
            }) as u8
        };
        match next {
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'v' => value.push(11),
            b'0'..=b'7' => {
                let count = digits(at - 1, 8, 3);
                value.push(number(at - 1, count, 8));
                at += count - 1;
            }
            b'x' if digits(at, 16, 2) > 0 => {
                let count = digits(at, 16, 2);
                value.push(number(at, count, 16));
                at += count;
            }
            other => value.push(*other),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, AsArray};

    use super::*;

    /// All rows, however the bytes are cut: each with its line, and NULL as `-`.
    fn rows(dialect: &Dialect, columns: usize, bytes: &[u8], chunk: usize) -> Result<Vec<String>> {
        let names = (0..columns).map(|it| format!("c{it}")).collect();
        let places = (0..columns).map(Some).collect();
        let mut reader = Reader::new("x".to_owned(), dialect.clone(), names, places);
        let mut batches = Vec::new();
        for chunk in bytes.chunks(chunk) {
            batches.extend(reader.push(chunk)?);
        }
        batches.extend(reader.finish()?);
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.rows).map(|row| {
                let values = batch.columns.iter().map(|column| {
                    let texts = column.as_string_view();
                    match texts.is_null(row) {
                        true => "-".to_owned(),
                        false => texts.value(row).to_owned(),
                    }
                });
                let values: Vec<String> = values.collect();
                format!("{}:{}", batch.line(row), values.join("|"))
            })
        });
        Ok(rows.collect())
    }

    #[test]
    fn records_are_the_same_however_their_bytes_are_cut() {
        let csv = Dialect::of(Form::Csv);
        let other = Dialect {
            delimiter: b';',
            quote: b'\'',
            escape: b'\\',
            ..Dialect::of(Form::Csv)
        };
        let text = Dialect::of(Form::Text);
        let cases: [(&Dialect, &str, &[&str]); 3] = [
            (
                &csv,
                "\u{feff}a,\"b\n\"\"c\"\r\n,\"\"\nx\"y,z\"w,ä\n",
                &["1:a|b\n\"c", "3:-|", "4:xy,zw|ä"],
            ),
            (
                &other,
                "'a\\'b\\\\';'\\n'\n'c\n;';d",
                &["1:a'b\\|\\n", "2:c\n;|d"],
            ),
            (
                &text,
                "a\\\nb\t\\N\n\\\\N\tx\\ty\\\\\n\\x41\\101\t\\.\n\\.\nrest",
                &["1:a\nb|-", "3:\\N|x\ty\\", "4:AA|."],
            ),
        ];
        for (dialect, bytes, expected) in cases {
            for chunk in 1..=bytes.len() {
                let rows = rows(dialect, 2, bytes.as_bytes(), chunk).unwrap();
                assert_eq!(rows, expected, "{bytes:?} in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn columns_that_nobody_wants_are_passed_over_and_records_still_counted() {
        let csv = Dialect::of(Form::Csv);
        let names = vec!["a".to_owned(), "b".to_owned()];
        let mut reader = Reader::new("x".to_owned(), csv, names, vec![None, None]);
        reader.push(b"1,2\n3,4\n").unwrap();
        let batch = reader.finish().unwrap().unwrap();
        assert_eq!((batch.rows, batch.columns.len()), (2, 0));
        assert!(reader.push(b"1\n").is_err());
    }

    #[test]
    fn carriage_returns_are_ends_of_lines_or_quoted() {
        let (csv, text) = (Dialect::of(Form::Csv), Dialect::of(Form::Text));
        assert_eq!(
            rows(&csv, 1, b"a\r\n\"b\rc\"\r\n", 3).unwrap(),
            ["1:a", "2:b\rc"]
        );
        for (dialect, bytes) in [
            (&csv, &b"a\nb\r\n"[..]),
            (&csv, b"a\rb\r"),
            (&csv, b"\"a\"\rb\n"),
            (&text, b"a\rb\n"),
        ] {
            let error = rows(dialect, 1, bytes, 2).unwrap_err();
            assert_eq!(error.state, SqlState::BadCopyFileFormat);
            assert!(error.message.contains("carriage return"), "{error}");
        }
    }

    #[test]
    fn a_record_without_end_is_refused_before_it_fills_the_memory() {
        let csv = Dialect::of(Form::Csv);
        let mut reader = Reader::new("x".to_owned(), csv, vec!["a".to_owned()], vec![Some(0)]);
        let chunk = vec![b'x'; 8 << 20];
        let refused = (0..10).find_map(|_| reader.push(&chunk).err());
        assert_eq!(refused.unwrap().state, SqlState::ProgramLimitExceeded);
    }
}
