//! Content negotiation (RFC 9110, 12.5.1): chooses the format of an answer by the `Accept` header.
//!
//! The quality of a media type is that of the most specific range that matches it. Among equal
//! qualities a type the client named wins over one that a wildcard covers, then the server's order
//! decides. A range that cannot be parsed matches nothing.

use crate::request::media_type::MediaType;
use axum::http::{HeaderMap, HeaderValue, header};
use orrery_formats::{GraphFormat, SolutionFormat, TableFormat};
use std::borrow::Cow;

/// A format and the media type under which the client asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<F> {
    pub(crate) format: F,
    pub(crate) media_type: &'static str,
}

impl<F> Chosen<F> {
    /// The `Content-Type` header. Text types state their encoding: by RFC 2046 it would be ASCII.
    pub(crate) fn content_type(&self) -> HeaderValue {
        content_type_of(self.media_type)
    }
}

fn content_type_of(media_type: &'static str) -> HeaderValue {
    let with_charset = match media_type {
        "text/csv" => "text/csv; charset=utf-8",
        "text/tab-separated-values" => "text/tab-separated-values; charset=utf-8",
        "text/turtle" => "text/turtle; charset=utf-8",
        "text/xml" => "text/xml; charset=utf-8",
        "text/plain" => "text/plain; charset=utf-8",
        other => other,
    };
    HeaderValue::from_static(with_charset)
}

/// The formats that a client accepts: a `format=` parameter, else its `Accept` headers.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedFormats {
    format: Option<String>,
    accept: Option<Vec<MediaRange>>,
}

/// Why no format could be chosen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoFormat {
    /// `format=` has an unknown name; `known` lists the valid ones.
    UnknownName { name: String, known: String },
    /// Nothing in `Accept` fits; `offered` lists the formats.
    NotAcceptable { offered: String },
}

impl AcceptedFormats {
    pub(crate) fn new(headers: &HeaderMap, format: Option<String>) -> Self {
        Self {
            format,
            accept: parse_accept(headers),
        }
    }

    /// The format for the solutions of a SELECT, or the boolean of an ASK.
    pub(crate) fn solutions(&self) -> Result<Chosen<SolutionFormat>, NoFormat> {
        self.choose(
            &SolutionFormat::ALL,
            SolutionFormat::media_types,
            SolutionFormat::name,
            SolutionFormat::from_name,
        )
    }

    /// The format for the rows of a statement of SQL.
    pub(crate) fn tables(&self) -> Result<Chosen<TableFormat>, NoFormat> {
        self.choose(
            &TableFormat::ALL,
            TableFormat::media_types,
            TableFormat::name,
            TableFormat::from_name,
        )
    }

    /// The format for the triples of a CONSTRUCT or DESCRIBE.
    pub(crate) fn graph(&self) -> Result<Chosen<GraphFormat>, NoFormat> {
        self.choose(
            &GraphFormat::ALL,
            GraphFormat::media_types,
            GraphFormat::file_extension,
            GraphFormat::from_name,
        )
    }

    /// The format for the quads of a CONSTRUCT: one that holds graphs.
    pub(crate) fn dataset(&self) -> Result<Chosen<GraphFormat>, NoFormat> {
        self.choose(
            &GraphFormat::WITH_GRAPHS,
            GraphFormat::media_types,
            GraphFormat::file_extension,
            GraphFormat::from_name_with_graphs,
        )
    }

    fn choose<F: Copy + PartialEq>(
        &self,
        all: &[F],
        media_types: fn(F) -> &'static [&'static str],
        name_of: fn(F) -> &'static str,
        from_name: fn(&str) -> Option<F>,
    ) -> Result<Chosen<F>, NoFormat> {
        let offers = || {
            all.iter().flat_map(|&format| {
                let types = media_types(format).iter();
                types.map(move |&media_type| Chosen { format, media_type })
            })
        };
        if let Some(name) = self.format.as_ref().filter(|name| *name != AUTOMATIC) {
            let called = name_here(name);
            // Either a name, or media types as some clients send them.
            let by_type = || {
                called.split(',').find_map(|wanted| {
                    offers().find(|offer| offer.media_type.eq_ignore_ascii_case(wanted.trim()))
                })
            };
            return from_name(&called)
                .map(|format| Chosen {
                    format,
                    media_type: media_types(format).first().copied().unwrap_or("text/plain"),
                })
                .or_else(by_type)
                .ok_or_else(|| NoFormat::UnknownName {
                    name: name.clone(),
                    known: all
                        .iter()
                        .map(|&f| name_of(f))
                        .collect::<Vec<_>>()
                        .join(", "),
                });
        }
        let not_acceptable = || NoFormat::NotAcceptable {
            offered: offers()
                .map(|o| o.media_type)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let Some(ranges) = &self.accept else {
            return offers().next().ok_or_else(not_acceptable);
        };
        let mut best: Option<(Match, Chosen<F>)> = None;
        for offer in offers() {
            let Some(found) = match_of(ranges, offer.media_type) else {
                continue;
            };
            // Only a strictly better one: the first of equals is the server's favourite.
            if best.as_ref().is_none_or(|(held, _)| found > *held) {
                best = Some((found, offer));
            }
        }
        best.map(|(_, offer)| offer).ok_or_else(not_acceptable)
    }
}

/// The value by which some clients leave the choice to the server.
const AUTOMATIC: &str = "auto";

/// The format's name here, for a name that other servers and their clients use. A `+` that was not
/// encoded came as a space.
fn name_here(name: &str) -> Cow<'_, str> {
    let written = name.to_ascii_lowercase().replace(' ', "+");
    match written.as_str() {
        "n3" | "text/n3" | "text/rdf+n3" | "application/n3" => "turtle".into(),
        "rdf+xml" | "rdf/xml" => "rdfxml".into(),
        "json-ld" | "ld+json" => "jsonld".into(),
        "n-triples" | "text/plain+rdf" => "ntriples".into(),
        "n-quads" => "nquads".into(),
        "sparql-json" | "sparql-results+json" => "json".into(),
        "sparql-xml" | "sparql-results+xml" => "xml".into(),
        // In a list, spaces stand between the types.
        _ if name.contains(' ') && !name.contains(',') => written.into(),
        _ => name.into(),
    }
}

/// True if the client prefers JSON to text for an error message.
pub(crate) fn prefers_json_errors(headers: &HeaderMap) -> bool {
    let Some(ranges) = parse_accept(headers) else {
        return false;
    };
    // Only if named: `*/*` gets the plain line, and that is what curl sends.
    ["application/problem+json", "application/json"]
        .into_iter()
        .any(|media_type| {
            match_of(&ranges, media_type).is_some_and(|found| found.specificity == EXACT)
        })
}

/// How well a media type fits; the order of the fields is the order of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    quality_permille: u16,
    specificity: u8,
}

const EXACT: u8 = 2;

/// One element of an `Accept` header, lower case; `*` stands for any.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MediaRange {
    main: String,
    sub: String,
    quality_permille: u16,
}

/// Parses `Accept`; `None` without the header, which means that any format is accepted.
fn parse_accept(headers: &HeaderMap) -> Option<Vec<MediaRange>> {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    values.peek()?;
    let ranges: Vec<MediaRange> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|element| !element.trim().is_empty())
        .take(RANGES_MAX)
        .filter_map(parse_range)
        .collect();
    Some(ranges)
}

/// Most ranges that are read, more than any client sends; the rest of a header is ignored.
const RANGES_MAX: usize = 64;

fn parse_range(element: &str) -> Option<MediaRange> {
    let range = MediaType::parse(element);
    let (main, sub) = range.main_and_sub()?;
    // Parameters other than q (charset, profile, version) do not tell our formats apart.
    let quality_permille = range.parameter("q").map_or(Some(1000), parse_quality)?;
    Some(MediaRange {
        main: main.to_owned(),
        sub: sub.to_owned(),
        quality_permille,
    })
}

/// Parses `0`, `0.5`, `1.000`: at most three decimals (RFC 9110, 12.4.2), more are cut.
fn parse_quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u16 = match whole {
        "0" | "" => 0,
        "1" => 1000,
        _ => return None,
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let permille = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(3)
        .fold(0u16, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    Some((whole + permille).min(1000))
}

/// How well a media type fits the ranges; `None` if it is not wanted.
fn match_of(ranges: &[MediaRange], media_type: &str) -> Option<Match> {
    let (main, sub) = media_type.split_once('/')?;
    ranges
        .iter()
        .filter_map(|range| {
            let specificity = match (range.main.as_str(), range.sub.as_str()) {
                (m, s) if m == main && s == sub => EXACT,
                (m, "*") if m == main => 1,
                ("*", "*") => 0,
                _ => return None,
            };
            Some((specificity, range.quality_permille))
        })
        .max()
        .filter(|&(_, quality_permille)| quality_permille > 0)
        .map(|(specificity, quality_permille)| Match {
            quality_permille,
            specificity,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &str) -> AcceptedFormats {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        AcceptedFormats::new(&headers, None)
    }

    #[test]
    fn no_accept_header_gets_the_favourite() {
        let accepted = AcceptedFormats::new(&HeaderMap::new(), None);
        assert_eq!(accepted.solutions().unwrap().format, SolutionFormat::Json);
        assert_eq!(accepted.graph().unwrap().format, GraphFormat::Turtle);
    }

    #[test]
    fn quality_decides_then_specificity_then_the_servers_order() {
        let solutions = |accept| accepted(accept).solutions().unwrap().media_type;
        assert_eq!(solutions("*/*"), "application/sparql-results+json");
        assert_eq!(solutions("text/csv, */*"), "text/csv");
        assert_eq!(
            solutions("text/csv;q=0.5, */*;q=0.9"),
            "application/sparql-results+json"
        );
        assert_eq!(solutions("TEXT/CSV"), "text/csv");
        assert_eq!(
            solutions("text/*;q=0.3, application/json;q=0.2"),
            "text/xml"
        );
        assert_eq!(
            solutions("application/sparql-results+xml,application/sparql-results+json"),
            "application/sparql-results+json"
        );
        assert_eq!(
            solutions("application/xml;charset=utf-8;q=1.0"),
            "application/xml"
        );
        assert_eq!(
            solutions("application/sparql-results+json;q=0, application/json;q=0, */*;q=0.1"),
            "application/sparql-results+xml"
        );
    }

    #[test]
    fn several_accept_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, HeaderValue::from_static("image/png"));
        headers.append(
            header::ACCEPT,
            HeaderValue::from_static("text/tab-separated-values"),
        );
        let chosen = AcceptedFormats::new(&headers, None).solutions().unwrap();
        assert_eq!(chosen.format, SolutionFormat::Tsv);
        assert_eq!(
            chosen.content_type(),
            "text/tab-separated-values; charset=utf-8"
        );
    }

    #[test]
    fn nothing_acceptable_lists_what_there_is() {
        let Err(NoFormat::NotAcceptable { offered }) = accepted("image/png").solutions() else {
            panic!("an image was found acceptable");
        };
        assert!(offered.starts_with("application/sparql-results+json, application/json"));
        assert!(accepted("text/csv;q=0").solutions().is_err());
        assert!(accepted("nonsense").graph().is_err());
        assert!(accepted("text/csv;q=2").solutions().is_err());
    }

    #[test]
    fn json_and_xml_mean_the_graph_formats_for_triples() {
        assert_eq!(
            accepted("application/json").graph().unwrap().format,
            GraphFormat::JsonLd
        );
        let xml = accepted("application/xml").graph().unwrap();
        assert_eq!(
            (xml.format, xml.media_type),
            (GraphFormat::RdfXml, "application/xml")
        );
    }

    #[test]
    fn format_parameter_wins_over_accept() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("image/png"));
        let ask = |name: &str| AcceptedFormats::new(&headers, Some(name.to_owned())).solutions();
        assert_eq!(ask("CSV").unwrap().format, SolutionFormat::Csv);
        assert_eq!(
            ask("table").unwrap().content_type(),
            "text/plain; charset=utf-8"
        );
        for list in [
            "application/sparql-results+xml",
            "application/x-unknown, application/sparql-results+xml",
        ] {
            assert_eq!(ask(list).unwrap().format, SolutionFormat::Xml);
        }
        let Err(NoFormat::UnknownName { known, .. }) = ask("turtle") else {
            panic!("solutions were written as Turtle");
        };
        assert_eq!(known, "json, xml, csv, tsv, arrow, parquet, table");
    }

    #[test]
    fn qualities_are_read_to_three_decimals() {
        assert_eq!(parse_quality("0.5"), Some(500));
        assert_eq!(parse_quality("1.000"), Some(1000));
        assert_eq!(parse_quality("1.9"), Some(1000));
        assert_eq!(parse_quality("0.12345"), Some(123));
        assert_eq!(parse_quality("-1"), None);
        assert_eq!(parse_quality("0.x"), None);
    }

    #[test]
    fn json_errors_only_for_those_who_name_json() {
        let prefers = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            prefers_json_errors(&headers)
        };
        assert!(prefers("application/json"));
        assert!(prefers("text/csv, application/problem+json"));
        assert!(!prefers("*/*"));
        assert!(!prefers("application/sparql-results+json"));
        assert!(!prefers_json_errors(&HeaderMap::new()));
    }
}
