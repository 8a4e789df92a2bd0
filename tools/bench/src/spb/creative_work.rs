//! A creative work: its statements in its own graph, and editorial operations.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::vocabulary::{RDF_TYPE, bbc, cwork, graph, work};
use orrery_bsbm::literals::{date_time, string};

const XSD_BOOLEAN: &str = "http://www.w3.org/2001/XMLSchema#boolean";

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A post of a journalist, for everybody.
    BlogPost,
    /// An item of news, for the nation.
    NewsItem,
    /// A programme, for everybody, live.
    Programme,
}

impl WorkKind {
    /// The class.
    pub fn class(self) -> &'static str {
        match self {
            Self::BlogPost => "BlogPost",
            Self::NewsItem => "NewsItem",
            Self::Programme => "Programme",
        }
    }

    /// For whom works of the kind are.
    pub fn audience(self) -> &'static str {
        match self {
            Self::BlogPost | Self::Programme => "InternationalAudience",
            Self::NewsItem => "NationalAudience",
        }
    }
}

/// A document in which a work is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number, no other work's.
    pub number: u64,
    /// For small screens.
    pub is_mobile: bool,
}

/// A work. Addresses have their angle brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreativeWork {
    /// Its number, by which work and graph are named.
    pub number: u64,
    /// Its kind.
    pub kind: WorkKind,
    /// Its title, which names the first entity that it is about.
    pub title: String,
    /// A shorter one.
    pub short_title: String,
    /// The kind of that entity.
    pub category: &'static str,
    /// A longer text.
    pub description: String,
    /// Entities that it is about, each once.
    pub about: Vec<String>,
    /// Entities that it mentions, each once.
    pub mentions: Vec<String>,
    /// Its formats, by name.
    pub formats: Vec<&'static str>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed last.
    pub modified_ms: i64,
    /// The number of its picture.
    pub thumbnail: u32,
    /// Where it is shown.
    pub pages: Vec<Page>,
}

impl CreativeWork {
    /// Its statements: subject, predicate and object as N-Triples has them.
    pub fn triples(&self) -> Vec<[String; 3]> {
        let own = work(self.number);
        let mut triples = Vec::with_capacity(32);
        let mut add = |predicate: String, object: String| {
            triples.push([own.clone(), predicate, object]);
        };
        add(RDF_TYPE.to_owned(), cwork(self.kind.class()));
        add(cwork("title"), string(&self.title));
        add(cwork("shortTitle"), string(&self.short_title));
        let category = format!("<http://www.bbc.co.uk/category/{}>", self.category);
        add(cwork("category"), category);
        add(cwork("description"), string(&self.description));
        for entity in &self.about {
            add(cwork("about"), entity.clone());
        }
        for entity in &self.mentions {
            add(cwork("mentions"), entity.clone());
        }
        add(cwork("audience"), cwork(self.kind.audience()));
        let is_live = self.kind == WorkKind::Programme;
        add(
            cwork("liveCoverage"),
            format!("\"{is_live}\"^^<{XSD_BOOLEAN}>"),
        );
        for format in &self.formats {
            add(cwork("primaryFormat"), cwork(format));
        }
        add(cwork("dateCreated"), date_time(self.created_ms));
        add(cwork("dateModified"), date_time(self.modified_ms));
        let thumbnail = format!("<http://www.bbc.co.uk/thumbnail/{}>", self.thumbnail);
        add(cwork("thumbnail"), thumbnail);
        let alt_text = format!("thumbnail of the work {}", self.number);
        add(cwork("altText"), string(&alt_text));
        for page in &self.pages {
            let document = format!("<http://www.bbc.co.uk/document/{}#id>", page.number);
            let form = if page.is_mobile { "Mobile" } else { "HighWeb" };
            triples.push([own.clone(), bbc("primaryContentOf"), document.clone()]);
            triples.push([document, bbc("webDocumentType"), bbc(form)]);
        }
        triples
    }

    /// Writes it as N-Quads; how many.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, output: &mut impl Write) -> io::Result<u64> {
        let graph = graph(self.number);
        let triples = self.triples();
        for [subject, predicate, object] in &triples {
            writeln!(output, "{subject} {predicate} {object} {graph} .")?;
        }
        Ok(triples.len() as u64)
    }

    /// The operation that adds it, in a graph of its own.
    pub fn insertion(&self) -> String {
        let mut text = format!("INSERT DATA {{ GRAPH {} {{\n", graph(self.number));
        for [subject, predicate, object] in self.triples() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{subject} {predicate} {object} .");
        }
        text.push_str("} }\n");
        text
    }

    /// The operation that takes what is in its graph out and writes it anew, in one request.
    pub fn replacement(&self) -> String {
        format!(
            "CLEAR SILENT GRAPH {} ;\n{}",
            graph(self.number),
            self.insertion()
        )
    }
}

/// The operation that takes a work out, with its graph.
pub fn deletion(number: u64) -> String {
    format!("DROP SILENT GRAPH {}", graph(number))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small work.
    pub(crate) fn small(number: u64) -> CreativeWork {
        CreativeWork {
            number,
            kind: WorkKind::NewsItem,
            title: "A \"title\"".to_owned(),
            short_title: "Title".to_owned(),
            category: "Event",
            description: "What it says".to_owned(),
            about: vec!["<http://example.org/a>".to_owned()],
            mentions: vec!["<http://example.org/b>".to_owned()],
            formats: vec!["TextualFormat"],
            created_ms: 0,
            modified_ms: 1,
            thumbnail: 5,
            pages: vec![Page {
                number: 9,
                is_mobile: true,
            }],
        }
    }

    #[test]
    fn a_work_is_written_whole_into_its_graph() {
        let mut bytes = Vec::new();
        let count = small(7).write(&mut bytes).unwrap();
        let quads: Vec<oxrdf::Quad> = oxttl::NQuadsParser::new()
            .for_slice(&bytes)
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!((quads.len() as u64, count), (16, 16));
        let graph = oxrdf::GraphName::NamedNode(oxrdf::NamedNode::new_unchecked(
            "http://www.bbc.co.uk/context/7#id",
        ));
        assert!(quads.iter().all(|quad| quad.graph_name == graph));
    }

    #[test]
    fn operations_are_sparql() {
        let update = small(7).replacement();
        let parsed = spargebra::SparqlParser::new()
            .parse_update(&update)
            .unwrap();
        assert_eq!(parsed.operations.len(), 2);
        assert!(
            spargebra::SparqlParser::new()
                .parse_update(&deletion(7))
                .is_ok()
        );
    }
}
