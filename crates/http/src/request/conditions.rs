//! Conditional requests (RFC 9110, 13): entity tags, `If-Match`, `If-None-Match` and
//! `If-Unmodified-Since`.
//!
//! ```text
//! "17"            commit 17, in the answer to a change
//! "17-turtle-62a…"     what was read from commit 17 of that time, as Turtle
//! "17-csv-62a…-gzip"   the same as CSV, compressed
//! "17-csv-62a…-s5d0e…" the same, read by someone who may not see all graphs
//! ```
//!
//! A tag names the commit that was read, and the form of the answer, so each representation has its
//! own tag, as strong tags must. A condition on a change is about the commit: any tag of the
//! current one meets `If-Match`, so what was read in any format can be checked against. For
//! reading, only the very same tag meets `If-None-Match`.
//!
//! - `If-Match` (strong comparison) or, without it, `If-Unmodified-Since` fails: 412.
//! - `If-None-Match` (weak comparison) fails: 304 for GET and HEAD, 412 for all others. `*` is any
//!   graph that exists.
//! - `If-Modified-Since` is ignored: dates of whole seconds cannot tell two commits apart.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use orrery_service::errors::ServiceError;
use orrery_sql::SqlScope;
use orrery_storage::{GraphNames, ReadScope};
use orrery_term::Prefixes;
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most tags in one header.
const TAGS_MAX: usize = 64;
/// Bytes of a scope's digest in a tag.
const TAG_DIGEST_BYTES: usize = 16;
/// Suffixes that compression adds to the tag of an answer.
const CODINGS: [&str; 3] = ["-gzip", "-br", "-zstd"];

/// The conditions of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
    /// In microseconds since 1970.
    if_unmodified_since_us: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    Any,
    Listed(Vec<Tag>),
}

/// An entity tag, between its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    is_weak: bool,
    text: String,
}

/// The commit that a request is about, and whether its target exists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) commit: u64,
    /// When it was committed, in microseconds since 1970.
    pub(crate) time_us: i64,
    /// Whether the address names something that exists.
    pub(crate) exists: bool,
}

impl Conditions {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ServiceError> {
        Ok(Self {
            if_match: tags(headers, header::IF_MATCH)?,
            if_none_match: tags(headers, header::IF_NONE_MATCH)?,
            if_unmodified_since_us: date_us(headers, &header::IF_UNMODIFIED_SINCE),
        })
    }

    /// Whether the request has no conditions.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fails a request that does more than read, unless the commit is the one that the client
    /// wants.
    pub(crate) fn check_change(&self, state: State) -> Result<(), ServiceError> {
        self.check_state(state)?;
        let is_met = match &self.if_none_match {
            None => true,
            Some(Tags::Any) => !state.exists,
            Some(Tags::Listed(tags)) => !state.exists || !names_commit(tags, state.commit),
        };
        if is_met {
            return Ok(());
        }
        Err(ServiceError::Precondition {
            message: match &self.if_none_match {
                Some(Tags::Any) => "it is there already, and If-None-Match is `*`".to_owned(),
                _ => format!(
                    "the current commit is {}, which If-None-Match names",
                    state.commit
                ),
            },
        })
    }

    /// Checks a request that reads: returns the client's tag if its cached answer is still valid.
    ///
    /// A method that is not for reading fails then. Without a format, no cached answer is valid.
    pub(crate) fn check_read(
        &self,
        method: &Method,
        state: State,
        format: Option<&str>,
    ) -> Result<Option<HeaderValue>, ServiceError> {
        self.check_state(state)?;
        let Some(format) = format else {
            return Ok(None);
        };
        let tag = format!("{}-{format}", state.commit);
        let known = match &self.if_none_match {
            None => None,
            Some(Tags::Any) => Some(tag.as_str()),
            Some(Tags::Listed(tags)) => {
                let mut known = tags.iter().map(|tag| tag.text.as_str());
                known.find(|known| plain(known) == tag)
            }
        };
        if known.is_some() && !matches!(*method, Method::GET | Method::HEAD) {
            return Err(ServiceError::Precondition {
                message: format!(
                    "If-None-Match names what this query would read, commit {}; only GET gets 304 for that",
                    state.commit
                ),
            });
        }
        Ok(known.map(|known| header_of(format!("\"{known}\""))))
    }

    fn check_state(&self, state: State) -> Result<(), ServiceError> {
        let fails = |message: String| Err(ServiceError::Precondition { message });
        match &self.if_match {
            None => {}
            Some(Tags::Any) if state.exists => return Ok(()),
            Some(Tags::Any) => return fails("it is not there, and If-Match is `*`".to_owned()),
            Some(Tags::Listed(tags)) => {
                let strong: Vec<Tag> = tags.iter().filter(|tag| !tag.is_weak).cloned().collect();
                if names_commit(&strong, state.commit) {
                    return Ok(());
                }
                return fails(format!(
                    "the current commit is {}, not the one that If-Match names; read again, then retry",
                    state.commit
                ));
            }
        }
        match self.if_unmodified_since_us {
            Some(since_us) if state.time_us > since_us => fails(format!(
                "commit {} was made after the time that If-Unmodified-Since names; read again, then retry",
                state.commit
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether one of the tags is of this commit, in any format.
fn names_commit(tags: &[Tag], commit: u64) -> bool {
    tags.iter().any(|tag| {
        let number = tag.text.split('-').next().unwrap_or_default();
        number.parse() == Ok(commit)
    })
}

/// The `ETag` of what is read from a commit in the format with this name.
pub(crate) fn etag_of_read(commit: u64, format: &str) -> HeaderValue {
    header_of(format!("\"{commit}-{format}\""))
}

/// The part of the tag for a scope that hides graphs: a digest of the visible graphs. Askers who
/// see the same have the same tag.
pub(crate) fn tag_of_scope(scope: &ReadScope) -> &str {
    scope.digest(tag_of_graphs).unwrap_or_default()
}

fn tag_of_graphs(graphs: &GraphNames) -> String {
    let mut digest = Sha256::new();
    digest.update([u8::from(graphs.has_default)]);
    digest.update((graphs.named.len() as u64).to_le_bytes());
    for name in &graphs.named {
        let name = name.to_string();
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
    }
    for beginning in graphs.below.iter() {
        digest.update((beginning.len() as u64).to_le_bytes());
        digest.update(beginning);
    }
    shown_digest("-s", digest)
}

/// The part of the tag for a SQL scope that hides tables or graphs.
pub(crate) fn tag_of_tables(scope: &SqlScope) -> String {
    let of_graphs = tag_of_scope(&scope.graphs);
    let Some(tables) = &scope.reads else {
        return of_graphs.to_owned();
    };
    let mut digest = Sha256::new();
    let mut add = |mark: u8, text: &str| {
        digest.update([mark]);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    tables.schemas.iter().for_each(|schema| add(0, schema));
    for (schema, names) in &tables.tables {
        add(1, schema);
        names.iter().for_each(|name| add(2, name));
    }
    shown_digest("-t", digest) + of_graphs
}

/// The part of the tag for the assumed prefixes, where an old commit is read with the present ones.
pub(crate) fn tag_of_prefixes(prefixes: &Prefixes) -> String {
    if prefixes.is_empty() {
        return String::new();
    }
    let mut digest = Sha256::new();
    for (name, iri, _) in prefixes.iter() {
        // Neither has a blank or a line break.
        digest.update(format!("{name} {iri}\n"));
    }
    shown_digest("-p", digest)
}

fn shown_digest(mark: &str, digest: Sha256) -> String {
    let digest = digest.finalize();
    let shown = digest.iter().take(TAG_DIGEST_BYTES);
    shown.fold(mark.to_owned(), |tag, byte| format!("{tag}{byte:02x}"))
}

/// The `ETag` of a commit.
pub(crate) fn etag_of_commit(commit: u64) -> HeaderValue {
    header_of(format!("\"{commit}\""))
}

/// A tag without the suffix of compression.
fn plain(tag: &str) -> &str {
    let ending = CODINGS.iter().find_map(|ending| tag.strip_suffix(ending));
    ending.unwrap_or(tag)
}

fn header_of(tag: String) -> HeaderValue {
    // Made of digits, letters and hyphens, so always a valid header.
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Gives an answer that was compressed on its way a tag of its own.
pub(crate) fn mark_compressed(headers: &mut HeaderMap) {
    let coding = headers.get(header::CONTENT_ENCODING);
    let Some(ending) = coding.and_then(|coding| {
        let coding = coding.to_str().ok()?;
        CODINGS.iter().find(|ending| ending[1..] == *coding)
    }) else {
        return;
    };
    let plain = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let plain = plain.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
    // The answer of another server is marked already.
    let is_marked = |tag: &&str| CODINGS.iter().any(|ending| tag.ends_with(ending));
    if let Some(plain) = plain.filter(|tag| !is_marked(tag)) {
        let compressed = header_of(format!("\"{plain}{ending}\""));
        headers.insert(header::ETAG, compressed);
    }
}

/// The tags of a header, over all its lines.
fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags>, ServiceError> {
    let mut lines = headers.get_all(&name).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let wrong = |found: &str| {
        let shown = &found[..found.floor_char_boundary(40)];
        ServiceError::bad_request(format!(
            "{}: `{shown}` is no entity tag; write it as it came in ETag, with its quotes: \"17\", or `*`",
            display_name(&name)
        ))
    };
    let mut listed = Vec::new();
    for line in lines {
        let text = line.to_str().map_err(|_| wrong("not ASCII"))?.trim();
        if text == "*" {
            return Ok(Some(Tags::Any));
        }
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let (tag, after) = first_tag(rest).ok_or_else(|| wrong(rest))?;
            if listed.len() >= TAGS_MAX {
                return Err(ServiceError::bad_request(format!(
                    "{} lists more than {TAGS_MAX} tags",
                    display_name(&name)
                )));
            }
            listed.push(tag);
            rest = after;
        }
    }
    Ok(Some(Tags::Listed(listed)))
}

/// Parses `W/"..."` or `"..."` at the beginning of a list; returns the tag and the rest. A comma
/// may stand inside a tag.
fn first_tag(text: &str) -> Option<(Tag, &str)> {
    let strong = text.strip_prefix("W/");
    let (tag, after) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
    let after_blanks = after.trim_start_matches([' ', '\t']);
    if !(after_blanks.is_empty() || after_blanks.starts_with(',')) {
        return None;
    }
    let tag = Tag {
        is_weak: strong.is_some(),
        text: tag.to_owned(),
    };
    Some((tag, after_blanks))
}

fn display_name(name: &HeaderName) -> &'static str {
    if *name == header::IF_MATCH {
        "If-Match"
    } else {
        "If-None-Match"
    }
}

/// The date of a header; an invalid one is ignored (RFC 9110, 13.1.4).
fn date_us(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    let text = headers.get(name)?.to_str().ok()?;
    let date: SystemTime = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::error_response::ErrorResponse as _;
    use axum::http::StatusCode;

    fn conditions(lines: &[(HeaderName, &str)]) -> Result<Conditions, StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        Conditions::of(&headers).map_err(|error| error.status())
    }

    const NOW: State = State {
        commit: 17,
        time_us: 1_000_000_500_000,
        // (1,000,000.5 s after the beginning of 1970)
        exists: true,
    };

    fn may_change(lines: &[(HeaderName, &str)], state: State) -> bool {
        conditions(lines).unwrap().check_change(state).is_ok()
    }

    #[test]
    fn if_match_wants_a_strong_tag_of_the_commit() {
        let matches = |value| may_change(&[(header::IF_MATCH, value)], NOW);
        for value in [
            "*",
            "\"17\"",
            "\"17-turtle\"",
            "\"17-csv-gzip\"",
            "\"3\", \"17\"",
            "\"a,b\",\"17\"",
            ", \"17\" ,",
        ] {
            assert!(matches(value), "{value}");
        }
        for value in [
            "\"18\"", "\"1\"", "\"17x\"", "W/\"17\"", "\"x\"", "\"\"", "",
        ] {
            assert!(!matches(value), "{value}");
        }
        let lines = [(header::IF_MATCH, "\"3\""), (header::IF_MATCH, "\"17\"")];
        assert!(may_change(&lines, NOW));
        let missing = State {
            exists: false,
            ..NOW
        };
        assert!(!may_change(&[(header::IF_MATCH, "*")], missing));
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
            for value in [
                "17",
                "\"17",
                "'17'",
                "w/\"17\"",
                "\"17\"x",
                "\"1\", *",
                "\"17\" \"18\"",
            ] {
                let read = conditions(&[(name.clone(), value)]);
                assert_eq!(read, Err(StatusCode::BAD_REQUEST), "{value}");
            }
        }
        let many = vec!["\"1\""; TAGS_MAX + 1].join(",");
        assert!(conditions(&[(header::IF_MATCH, &many)]).is_err());
    }

    #[test]
    fn if_none_match_keeps_from_overwriting() {
        let missing = State {
            exists: false,
            ..NOW
        };
        for (value, there, not_there) in [
            ("*", false, true),
            ("\"17\"", false, true),
            ("W/\"17-csv\"", false, true),
            ("\"16\"", true, true),
        ] {
            let lines = [(header::IF_NONE_MATCH, value)];
            assert_eq!(may_change(&lines, NOW), there, "{value}");
            assert_eq!(may_change(&lines, missing), not_there, "{value}");
        }
    }

    #[test]
    fn who_has_this_very_representation_need_not_get_it() {
        let known = |value: &str| {
            let conditions = conditions(&[(header::IF_NONE_MATCH, value)]).unwrap();
            let known = conditions.check_read(&Method::GET, NOW, Some("csv"));
            known.unwrap().is_some()
        };
        for value in [
            "*",
            "\"17-csv\"",
            "W/\"17-csv\"",
            "\"17-csv-gzip\"",
            "\"x\", \"17-csv\"",
        ] {
            assert!(known(value), "{value}");
        }
        for value in ["\"17\"", "\"17-json\"", "\"16-csv\""] {
            assert!(!known(value), "{value}");
        }
        let posted = conditions(&[(header::IF_NONE_MATCH, "\"17-csv\"")]).unwrap();
        let error = posted
            .check_read(&Method::POST, NOW, Some("csv"))
            .unwrap_err();
        assert_eq!(error.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(posted.check_read(&Method::GET, NOW, None).unwrap(), None);
        // The answer 304 names the tag of the compressed answer.
        let known = conditions(&[(header::IF_NONE_MATCH, "\"17-csv-gzip\"")]).unwrap();
        let known = known.check_read(&Method::GET, NOW, Some("csv")).unwrap();
        assert_eq!(known.unwrap(), "\"17-csv-gzip\"");
    }

    #[test]
    fn dates_count_where_there_are_no_tags() {
        // 1,000,000 s after the beginning of 1970, half a second before the commit.
        let before = (header::IF_UNMODIFIED_SINCE, "Mon, 12 Jan 1970 13:46:40 GMT");
        let after = (header::IF_UNMODIFIED_SINCE, "Mon, 12 Jan 1970 13:46:41 GMT");
        assert!(!may_change(std::slice::from_ref(&before), NOW));
        assert!(may_change(&[after], NOW));
        assert!(may_change(
            &[(header::IF_UNMODIFIED_SINCE, "yesterday")],
            NOW
        ));
        assert!(may_change(&[(header::IF_MATCH, "\"17\""), before], NOW));
    }

    #[test]
    fn a_compressed_answer_has_a_tag_of_its_own() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, etag_of_read(17, "csv"));
        mark_compressed(&mut headers);
        assert_eq!(headers[header::ETAG], "\"17-csv\"");
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        mark_compressed(&mut headers);
        assert_eq!(headers[header::ETAG], "\"17-csv-gzip\"");
    }
}
