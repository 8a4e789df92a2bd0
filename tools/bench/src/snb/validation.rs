//! Reads validation files in the form of the official driver's `validation_params.csv`: a line has
//! an operation and its result, both in JSON, with `|` between them.
//!
//! The driver does not name the operation: its kind is seen by the names of its parameters. A file
//! is read as a whole before anything is run, so that a broken line changes no database.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use serde_json::{Map, Value};
use thiserror::Error;

use super::operation::{Insertion, Kind, Operation};
use super::terms;

/// An operation and what it must answer.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The line in the file, from 1.
    pub line: usize,
    /// What is run.
    pub operation: Operation,
    /// What must come of it.
    pub result: Value,
}

/// A file that is not one of validation.
#[derive(Debug, Error)]
pub enum ValidationError {
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line, from 1.
        line: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing would be validated.
    #[error("it has no operations")]
    Empty,
    /// A line is not an operation and its result.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads all lines; empty ones are passed over.
///
/// # Errors
/// At the first line that is none, and when there is no line.
pub fn read(input: impl BufRead) -> Result<Vec<Expectation>, ValidationError> {
    let mut expectations = Vec::new();
    for (number, text) in input.lines().enumerate() {
        let line = number + 1;
        let text = text.map_err(|source| ValidationError::Read { line, source })?;
        if text.trim().is_empty() {
            continue;
        }
        let (operation, result) =
            parse_line(&text).map_err(|what| ValidationError::Line { line, what })?;
        expectations.push(Expectation {
            line,
            operation,
            result,
        });
    }
    if expectations.is_empty() {
        return Err(ValidationError::Empty);
    }
    Ok(expectations)
}

fn parse_line(text: &str) -> Result<(Operation, Value), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let operation = match values.next() {
        Some(Ok(Value::Object(operation))) => operation,
        Some(Ok(_)) | None => return Err("the operation is no JSON object".to_owned()),
        Some(Err(error)) => return Err(format!("the operation is no JSON: {error}")),
    };
    let rest = text.get(values.byte_offset()..).unwrap_or_default();
    let result = rest
        .trim_start()
        .strip_prefix('|')
        .ok_or("no `|` stands between the operation and its result")?;
    let result =
        serde_json::from_str(result).map_err(|error| format!("the result is no JSON: {error}"))?;
    let operation = self::operation(&operation)?;
    check_result(operation.kind(), &result)?;
    Ok((operation, result))
}

/// A result has the form that its operation's kind gives.
fn check_result(kind: Kind, result: &Value) -> Result<(), String> {
    let (is_right, form) = match kind {
        Kind::Complex(13) | Kind::Short(1 | 4 | 5 | 6) => (result.is_object(), "an object"),
        Kind::Complex(_) | Kind::Short(_) => (
            result
                .as_array()
                .is_some_and(|rows| rows.iter().all(Value::is_object)),
            "a list of objects",
        ),
        Kind::Insert(_) => (
            result.is_string() || result.is_number() || result.is_null(),
            "-1",
        ),
    };
    if is_right {
        return Ok(());
    }
    Err(format!("the result of {kind} is not {form}"))
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn value(&self, name: &str) -> Result<&Value, String> {
        self.0
            .get(name)
            .ok_or_else(|| format!("the operation has no `{name}`"))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let value = self.value(name)?;
        value
            .as_u64()
            .ok_or_else(|| format!("`{name}` is no number from 0 on: {value}"))
    }

    fn time(&self, name: &str) -> Result<i64, String> {
        let value = self.value(name)?;
        value
            .as_i64()
            .ok_or_else(|| format!("`{name}` is no time in milliseconds: {value}"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        match self.value(name)? {
            Value::String(text) => Ok(text.clone()),
            Value::Null => Ok(String::new()),
            other => Err(format!("`{name}` is no text: {other}")),
        }
    }

    fn list<T>(&self, name: &str, of: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, String> {
        let value = self.value(name)?;
        value
            .as_array()
            .and_then(|items| items.iter().map(of).collect())
            .ok_or_else(|| format!("`{name}` is not the list that it should be: {value}"))
    }

    fn numbers(&self, name: &str) -> Result<Vec<u64>, String> {
        self.list(name, Value::as_u64)
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        self.list(name, |item| item.as_str().map(str::to_owned))
    }

    /// Organizations with years.
    fn years(&self, name: &str) -> Result<Vec<(u64, i64)>, String> {
        self.list(name, |item| {
            let number = item.get("organizationId").or_else(|| item.get("id"))?;
            Some((number.as_u64()?, item.get("year")?.as_i64()?))
        })
    }

    /// The number of a message that may be left out: -1 says so.
    fn message(&self, name: &str) -> Result<Option<u64>, String> {
        let value = self.value(name)?;
        match value.as_i64() {
            Some(-1) => Ok(None),
            _ => self.number(name).map(Some),
        }
    }
}

/// The complex reads but 13 and 14, as the driver names the number of the person.
const COMPLEX_READS: u8 = 12;
const DAY_MS: i64 = 86_400_000;

/// The operation that has these parameters, by the names of the official driver.
///
/// # Errors
/// When none has.
pub fn operation(fields: &Map<String, Value>) -> Result<Operation, String> {
    parse_operation(&Fields(fields))
}

fn parse_operation(fields: &Fields<'_>) -> Result<Operation, String> {
    for number in 1..=COMPLEX_READS {
        let person = format!("personIdQ{number}");
        if fields.has(&person) {
            return complex_read(fields, number, &person);
        }
    }
    let way = |from, to| Ok::<_, String>((fields.number(from)?, fields.number(to)?));
    if fields.has("person1IdQ13StartNode") {
        let (from, to) = way("person1IdQ13StartNode", "person2IdQ13EndNode")?;
        return Ok(Operation::Distance { from, to });
    }
    if fields.has("person1IdQ14StartNode") {
        let (from, to) = way("person1IdQ14StartNode", "person2IdQ14EndNode")?;
        return Ok(Operation::Ways { from, to });
    }
    if let Some(read) = short_read(fields)? {
        return Ok(read);
    }
    match insertion(fields)? {
        Some(insertion) => Ok(Operation::Insert(Box::new(insertion))),
        None => {
            let names: Vec<&str> = fields.0.keys().map(String::as_str).collect();
            Err(format!(
                "no operation has these parameters: {}",
                names.join(", ")
            ))
        }
    }
}

/// Collects the terms of a template.
struct Parameters(BTreeMap<String, String>);

impl Parameters {
    fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn with(mut self, name: &str, term: String) -> Self {
        self.0.insert(name.to_owned(), term);
        self
    }

    fn read(self, kind: Kind) -> Operation {
        Operation::Read {
            kind,
            parameters: self.0,
        }
    }
}

fn complex_read(fields: &Fields<'_>, number: u8, person: &str) -> Result<Operation, String> {
    let mut parameters = Parameters::new()
        .with("person", terms::person(fields.number(person)?))
        .with("limit", fields.number("limit")?.to_string());
    let text = |name: &str| fields.text(name).map(|text| terms::string(&text));
    let time = |name: &str| fields.time(name).map(terms::date_time);
    if matches!(number, 3 | 4) {
        let start = fields.time("startDate")?;
        let days = fields.time("durationDays")?;
        let end = days
            .checked_mul(DAY_MS)
            .and_then(|length| start.checked_add(length))
            .ok_or("`durationDays` is beyond all time")?;
        parameters = parameters
            .with("startDate", terms::date_time(start))
            .with("endDate", terms::date_time(end));
    }
    let parameters = match number {
        1 => parameters.with("firstName", text("firstName")?),
        2 | 9 => parameters.with("maxDate", time("maxDate")?),
        3 => parameters
            .with("countryXName", text("countryXName")?)
            .with("countryYName", text("countryYName")?),
        5 => parameters.with("minDate", time("minDate")?),
        6 => parameters.with("tagName", text("tagName")?),
        10 => {
            let month = fields.number("month")?;
            if !(1..=12).contains(&month) {
                return Err(format!("`month` is no month: {month}"));
            }
            parameters
                .with("month", month.to_string())
                .with("nextMonth", (month % 12 + 1).to_string())
        }
        11 => parameters
            .with("countryName", text("countryName")?)
            .with("workFromYear", fields.time("workFromYear")?.to_string()),
        12 => parameters.with("tagClassName", text("tagClassName")?),
        _ => parameters,
    };
    Ok(parameters.read(Kind::Complex(number)))
}

fn short_read(fields: &Fields<'_>) -> Result<Option<Operation>, String> {
    for number in 1..=3 {
        let person = format!("personIdSQ{number}");
        if fields.has(&person) {
            let limit = match number {
                2 => Some(fields.number("limit")?),
                _ => None,
            };
            let person = fields.number(&person)?;
            return Ok(Some(read_of_person(number, person, limit)));
        }
    }
    let messages = [
        (4, "messageIdContent"),
        (5, "messageIdCreator"),
        (6, "messageForumId"),
        (7, "messageRepliesId"),
    ];
    for (number, name) in messages {
        if fields.has(name) {
            return Ok(Some(read_of_message(number, fields.number(name)?)));
        }
    }
    Ok(None)
}

/// Short read 1, 2 or 3.
pub fn read_of_person(number: u8, person: u64, limit: Option<u64>) -> Operation {
    let mut parameters = Parameters::new().with("person", terms::person(person));
    if let Some(limit) = limit {
        parameters = parameters.with("limit", limit.to_string());
    }
    parameters.read(Kind::Short(number))
}

/// Short read 4, 5, 6 or 7.
pub fn read_of_message(number: u8, message: u64) -> Operation {
    Parameters::new()
        .with("post", terms::post(message))
        .with("comment", terms::comment(message))
        .read(Kind::Short(number))
}

fn insertion(fields: &Fields<'_>) -> Result<Option<Insertion>, String> {
    let creation_date = || fields.time("creationDate");
    let location_ip = || match fields.has("locationIP") {
        true => fields.text("locationIP"),
        false => fields.text("locationIp"),
    };
    if fields.has("personFirstName") {
        return Ok(Some(Insertion::Person {
            person: fields.number("personId")?,
            first_name: fields.text("personFirstName")?,
            last_name: fields.text("personLastName")?,
            gender: fields.text("gender")?,
            birthday: fields.time("birthday")?,
            creation_date: creation_date()?,
            location_ip: location_ip()?,
            browser_used: fields.text("browserUsed")?,
            city: fields.number("cityId")?,
            languages: fields.texts("languages")?,
            emails: fields.texts("emails")?,
            tags: fields.numbers("tagIds")?,
            study_at: fields.years("studyAt")?,
            work_at: fields.years("workAt")?,
        }));
    }
    if fields.has("forumTitle") {
        return Ok(Some(Insertion::Forum {
            forum: fields.number("forumId")?,
            title: fields.text("forumTitle")?,
            creation_date: creation_date()?,
            moderator: fields.number("moderatorPersonId")?,
            tags: fields.numbers("tagIds")?,
        }));
    }
    if fields.has("joinDate") {
        return Ok(Some(Insertion::Membership {
            forum: fields.number("forumId")?,
            person: fields.number("personId")?,
            join_date: fields.time("joinDate")?,
        }));
    }
    if fields.has("person1Id") {
        return Ok(Some(Insertion::Friendship {
            person1: fields.number("person1Id")?,
            person2: fields.number("person2Id")?,
            creation_date: creation_date()?,
        }));
    }
    let is_comment = fields.has("commentId");
    if !is_comment && !fields.has("postId") {
        return Ok(None);
    }
    let message = fields.number(if is_comment { "commentId" } else { "postId" })?;
    if fields.has("personId") {
        return Ok(Some(Insertion::Like {
            person: fields.number("personId")?,
            message,
            is_comment,
            creation_date: creation_date()?,
        }));
    }
    if !fields.has("content") {
        return Ok(None);
    }
    if is_comment {
        let to_post = fields.message("replyToPostId")?;
        let to_comment = fields.message("replyToCommentId")?;
        let reply_to = match (to_post, to_comment) {
            (Some(post), None) => (post, false),
            (None, Some(comment)) => (comment, true),
            _ => {
                return Err(
                    "one of `replyToPostId` and `replyToCommentId` is a message, the other -1"
                        .to_owned(),
                );
            }
        };
        return Ok(Some(Insertion::Comment {
            comment: message,
            creation_date: creation_date()?,
            location_ip: location_ip()?,
            browser_used: fields.text("browserUsed")?,
            content: fields.text("content")?,
            length: fields.number("length")?,
            author: fields.number("authorPersonId")?,
            country: fields.number("countryId")?,
            reply_to,
            tags: fields.numbers("tagIds")?,
        }));
    }
    Ok(Some(Insertion::Post {
        post: message,
        image_file: fields.text("imageFile")?,
        creation_date: creation_date()?,
        location_ip: location_ip()?,
        browser_used: fields.text("browserUsed")?,
        language: fields.text("language")?,
        content: fields.text("content")?,
        length: fields.number("length")?,
        author: fields.number("authorPersonId")?,
        forum: fields.number("forumId")?,
        country: fields.number("countryId")?,
        tags: fields.numbers("tagIds")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Expectation, String> {
        let mut read = read(text.as_bytes()).map_err(|error| error.to_string())?;
        assert_eq!(read.len(), 1);
        Ok(read.remove(0))
    }

    #[test]
    fn a_read_has_the_terms_of_its_template() {
        let expectation = one(
            r#"{"personIdQ3":5,"countryXName":"A\"","countryYName":"B","startDate":0,"durationDays":2,"limit":20}|[]"#,
        )
        .unwrap();
        let Operation::Read { kind, parameters } = expectation.operation else {
            panic!("a read");
        };
        assert_eq!(kind, Kind::Complex(3));
        assert_eq!(parameters["countryXName"], r#""A\"""#);
        assert!(parameters["endDate"].starts_with("\"1970-01-03T00:00:00.000Z\""));
        assert_eq!(parameters["limit"], "20");
    }

    #[test]
    fn december_is_before_january() {
        let expectation = one(r#"{"personIdQ10":5,"month":12,"limit":10}|[]"#).unwrap();
        let Operation::Read { parameters, .. } = expectation.operation else {
            panic!("a read");
        };
        assert_eq!(parameters["nextMonth"], "1");
    }

    #[test]
    fn each_insertion_is_seen_by_its_parameters() {
        let lines = [
            r#"{"personId":1,"personFirstName":"a","personLastName":"b","gender":"c","birthday":0,"creationDate":1,"locationIp":"d","browserUsed":"e","cityId":2,"languages":["f"],"emails":[],"tagIds":[3],"studyAt":[{"organizationId":4,"year":2000}],"workAt":[]}"#,
            r#"{"personId":1,"postId":2,"creationDate":3}"#,
            r#"{"personId":1,"commentId":2,"creationDate":3}"#,
            r#"{"forumId":1,"forumTitle":"a","creationDate":2,"moderatorPersonId":3,"tagIds":[]}"#,
            r#"{"forumId":1,"personId":2,"joinDate":3}"#,
            r#"{"postId":1,"imageFile":"","creationDate":2,"locationIp":"a","browserUsed":"b","language":"c","content":"d|","length":2,"authorPersonId":3,"forumId":4,"countryId":5,"tagIds":[6]}"#,
            r#"{"commentId":1,"creationDate":2,"locationIp":"a","browserUsed":"b","content":"c","length":1,"countryId":3,"replyToPostId":-1,"tagIds":[],"authorPersonId":4,"replyToCommentId":5}"#,
            r#"{"person1Id":1,"person2Id":2,"creationDate":3}"#,
        ];
        for (number, line) in (1..).zip(lines) {
            let expectation = one(&format!("{line}|\"-1\"")).unwrap();
            assert_eq!(expectation.operation.kind(), Kind::Insert(number), "{line}");
        }
    }

    #[test]
    fn a_file_without_operations_validates_nothing() {
        for text in ["", "\n \n"] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(matches!(error, ValidationError::Empty), "{error}");
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (line, part) in [
            ("{\"personIdSQ1\":1}", "no `|`"),
            ("{\"personIdSQ1\":1|{}", "no JSON"),
            ("[1]|{}", "no JSON object"),
            ("{\"personIdSQ1\":1}|{", "the result is no JSON"),
            ("{\"personIdSQ1\":-1}|{}", "`personIdSQ1`"),
            ("{\"personIdSQ1\":1}|[]", "not an object"),
            ("{\"personIdQ15\":1}|[]", "no operation"),
            ("{\"personIdQ8\":1}|[]", "no `limit`"),
            (
                "{\"personIdQ10\":1,\"month\":13,\"limit\":1}|[]",
                "no month",
            ),
            ("{\"personIdQ8\":1,\"limit\":1}|[1]", "list of objects"),
        ] {
            let text = format!("{{\"personIdSQ1\":1}}|{{}}\n\n{line}\n");
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 3: "), "{error}");
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
