//! The N-Triples writer, with a buffer of one mebibyte.
//!
//! The texts of the benchmark need no escapes (words of ASCII letters), so
//! everything is copied as it is.

use std::io::{self, Write};

use crate::literals::civil;

use super::vocabulary::{Entity, XSD_DATE, XSD_DATE_TIME, XSD_INTEGER, write_number};

const BUFFER_BYTES: usize = 1 << 20;

/// The last of these subjects, its triples, and what was counted.
pub(crate) struct TripleWriter<'a> {
    output: &'a mut dyn Write,
    buffer: Vec<u8>,
    /// `<iri> ` of the current subject.
    subject: Vec<u8>,
    triples: u64,
    bytes: u64,
}

impl<'a> TripleWriter<'a> {
    pub(crate) fn new(output: &'a mut dyn Write) -> Self {
        Self {
            output,
            buffer: Vec::with_capacity(BUFFER_BYTES + (BUFFER_BYTES >> 3)),
            subject: Vec::with_capacity(128),
            triples: 0,
            bytes: 0,
        }
    }

    /// The triples that follow are about this entity.
    pub(crate) fn subject(&mut self, entity: Entity) -> io::Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        self.subject.clear();
        self.subject.push(b'<');
        entity.write(&mut self.subject);
        self.subject.extend_from_slice(b"> ");
        Ok(())
    }

    /// One triple whose object `write` appends, complete with its brackets or
    /// quotes. `predicate` is one of the vocabulary's constants.
    #[inline]
    pub(crate) fn triple(&mut self, predicate: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.buffer.extend_from_slice(&self.subject);
        self.buffer.extend_from_slice(predicate.as_bytes());
        write(&mut self.buffer);
        self.buffer.extend_from_slice(b" .\n");
        self.triples += 1;
    }

    /// The object is a constant of the vocabulary, in its brackets.
    pub(crate) fn constant(&mut self, predicate: &str, object: &str) {
        self.triple(predicate, |out| out.extend_from_slice(object.as_bytes()));
    }

    /// The object is another entity.
    pub(crate) fn entity(&mut self, predicate: &str, object: Entity) {
        self.triple(predicate, |out| {
            out.push(b'<');
            object.write(out);
            out.push(b'>');
        });
    }

    /// The object is a literal; `suffix` is what follows the text: the closing
    /// quote with a datatype or a language behind it.
    pub(crate) fn literal(
        &mut self,
        predicate: &str,
        suffix: &str,
        text: impl FnOnce(&mut Vec<u8>),
    ) {
        self.triple(predicate, |out| {
            out.push(b'"');
            text(out);
            out.extend_from_slice(suffix.as_bytes());
        });
    }

    /// The object is an `xsd:integer`.
    pub(crate) fn integer(&mut self, predicate: &str, value: u32) {
        self.literal(predicate, XSD_INTEGER, |out| write_number(out, value));
    }

    /// The object is an `xsd:date`.
    pub(crate) fn date(&mut self, predicate: &str, date: Date) {
        self.literal(predicate, XSD_DATE, |out| date.write(out));
    }

    /// The object is the `xsd:dateTime` at which the day begins.
    pub(crate) fn midnight(&mut self, predicate: &str, date: Date) {
        self.literal(predicate, XSD_DATE_TIME, |out| {
            date.write(out);
            out.extend_from_slice(b"T00:00:00");
        });
    }

    /// Passes on what is buffered; returns triples and bytes written.
    pub(crate) fn finish(mut self) -> io::Result<(u64, u64)> {
        self.flush()?;
        self.output.flush()?;
        Ok((self.triples, self.bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date(u32);

impl Date {
    /// From year, month and day of the Gregorian calendar, from 1970 on
    /// (Howard Hinnant's `days_from_civil`).
    pub(crate) const fn new(year: u32, month: u32, day: u32) -> Self {
        let year = if month <= 2 { year - 1 } else { year };
        let era = year / 400;
        let year_of_era = year - era * 400;
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Self(era * 146_097 + day_of_era - 719_468)
    }

    pub(crate) const fn plus(self, days: u32) -> Self {
        Self(self.0 + days)
    }

    pub(crate) const fn minus(self, days: u32) -> Self {
        Self(self.0 - days)
    }

    /// Appends `YYYY-MM-DD`.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let (year, month, day) = civil(i64::from(self.0));
        // No date is before 1970.
        write_number(out, year.unsigned_abs() as u32);
        for part in [month, day] {
            out.push(b'-');
            out.push(b'0' + (part / 10) as u8);
            out.push(b'0' + (part % 10) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(date: Date) -> String {
        let mut out = Vec::new();
        date.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_come_back_as_they_went_in() {
        assert_eq!(shown(Date::new(2008, 6, 20)), "2008-06-20");
        assert_eq!(shown(Date::new(2000, 2, 29)), "2000-02-29");
        assert_eq!(shown(Date::new(2000, 2, 29).plus(1)), "2000-03-01");
        assert_eq!(shown(Date::new(2008, 1, 1).minus(1)), "2007-12-31");
        assert_eq!(shown(Date::new(1970, 1, 1)), "1970-01-01");
    }

    #[test]
    fn a_triple_is_one_line() {
        let mut output = Vec::new();
        let mut writer = TripleWriter::new(&mut output);
        writer.subject(Entity::Vendor(3)).unwrap();
        writer.integer("<p> ", 12);
        assert_eq!(writer.finish().unwrap().0, 1);
        let text = String::from_utf8(output).unwrap();
        assert!(
            text.ends_with("Vendor3> <p> \"12\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n")
        );
    }
}
