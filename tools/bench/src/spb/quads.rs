//! An in-memory quad store for [`super::naive`]. Some 60 bytes a quad beside its terms.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use oxrdf::Quad;
use oxttl::{NQuadsParser, TurtleParser};
use thiserror::Error;

use crate::files;

/// Files of one folder in another, so deep.
const DEPTH_MAX: usize = 8;

/// Why data cannot be read.
#[derive(Debug, Error)]
pub enum QuadsError {
    /// A file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// There is nothing to read.
    #[error("{}: there is no .nq, .nt or .ttl file, compressed or not", path.display())]
    Nothing {
        /// Where.
        path: PathBuf,
    },
}

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    NQuads,
    Turtle,
}

fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    match plain.rsplit_once('.')?.1 {
        "nq" => Some(Format::NQuads),
        "nt" | "ttl" => Some(Format::Turtle),
        _ => None,
    }
}

/// The files of a data set: those that are given, and all in the directories that are given, in
/// order.
///
/// # Errors
/// When one is not there, or has no data.
pub fn data_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, QuadsError> {
    let mut files = Vec::new();
    for path in given {
        let before = files.len();
        collect(path, DEPTH_MAX, &mut files).map_err(|source| QuadsError::File {
            path: path.clone(),
            source,
        })?;
        if files.len() == before {
            return Err(QuadsError::Nothing { path: path.clone() });
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        files.extend(format_of(path).map(|_| path.to_owned()));
        return Ok(());
    }
    if depth > 0 {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), depth - 1, files)?;
        }
    }
    Ok(())
}

/// Gives each quad of a file to a function.
///
/// # Errors
/// When the file cannot be read, or is not what its name says.
pub fn read_file(path: &Path, add: &mut dyn FnMut(Quad)) -> Result<(), QuadsError> {
    let input = files::open(path).map_err(|source| QuadsError::File {
        path: path.to_owned(),
        source,
    })?;
    let wrong = |message: String| QuadsError::Syntax {
        path: path.to_owned(),
        message,
    };
    match format_of(path) {
        Some(Format::NQuads) => read_n_quads(input, add).map_err(wrong),
        Some(Format::Turtle) => {
            for triple in TurtleParser::new().for_reader(input) {
                add(triple
                    .map_err(|error| wrong(error.to_string()))?
                    .in_graph(oxrdf::GraphName::DefaultGraph));
            }
            Ok(())
        }
        None => Err(QuadsError::Nothing {
            path: path.to_owned(),
        }),
    }
}

fn read_n_quads(input: impl Read, add: &mut dyn FnMut(Quad)) -> Result<(), String> {
    for quad in NQuadsParser::new().for_reader(input) {
        add(quad.map_err(|error| error.to_string())?);
    }
    Ok(())
}

type Id = u32;

/// The quads. Terms are as N-Triples has them, the default graph is an empty one.
#[derive(Debug, Default)]
pub struct Quads {
    ids: HashMap<String, Id>,
    terms: Vec<String>,
    /// Predicate, object, graph.
    by_subject: HashMap<Id, Vec<[Id; 3]>>,
    /// Subject, predicate, graph.
    by_object: HashMap<Id, Vec<[Id; 3]>>,
    /// Subject, predicate, object.
    by_graph: HashMap<Id, Vec<[Id; 3]>>,
}

impl Quads {
    /// All quads of files. Nodes without a name are told apart by file.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(files: &[PathBuf]) -> Result<Self, QuadsError> {
        let mut quads = Self::default();
        for (number, path) in files.iter().enumerate() {
            read_file(path, &mut |quad| {
                let term = |text: String| match text.strip_prefix("_:") {
                    Some(name) => format!("_:f{number}{name}"),
                    None => text,
                };
                let graph = match &quad.graph_name {
                    oxrdf::GraphName::DefaultGraph => String::new(),
                    named => named.to_string(),
                };
                let terms = [
                    term(quad.subject.to_string()),
                    quad.predicate.to_string(),
                    term(quad.object.to_string()),
                ];
                quads.add(&terms, &graph);
            })?;
        }
        Ok(quads)
    }

    fn id(&mut self, term: &str) -> Id {
        if let Some(id) = self.ids.get(term) {
            return *id;
        }
        let id = Id::try_from(self.terms.len()).unwrap_or(Id::MAX);
        self.ids.insert(term.to_owned(), id);
        self.terms.push(term.to_owned());
        id
    }

    /// Adds a quad, if it is not there.
    pub fn add(&mut self, [subject, predicate, object]: &[String; 3], graph: &str) {
        let [subject, predicate, object, graph] =
            [subject, predicate, object, graph].map(|term| self.id(term));
        let of_subject = self.by_subject.entry(subject).or_default();
        if of_subject.contains(&[predicate, object, graph]) {
            return;
        }
        of_subject.push([predicate, object, graph]);
        let of_object = self.by_object.entry(object).or_default();
        of_object.push([subject, predicate, graph]);
        let of_graph = self.by_graph.entry(graph).or_default();
        of_graph.push([subject, predicate, object]);
    }

    /// Takes a graph out.
    pub fn drop_graph(&mut self, graph: &str) {
        let Some(graph) = self.ids.get(graph) else {
            return;
        };
        for [subject, predicate, object] in self.by_graph.remove(graph).unwrap_or_default() {
            if let Some(quads) = self.by_subject.get_mut(&subject) {
                quads.retain(|quad| *quad != [predicate, object, *graph]);
            }
            if let Some(quads) = self.by_object.get_mut(&object) {
                quads.retain(|quad| *quad != [subject, predicate, *graph]);
            }
        }
    }

    fn term(&self, id: Id) -> &str {
        &self.terms[id as usize]
    }

    /// How many quads there are.
    pub fn len(&self) -> usize {
        self.by_graph.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Predicates and objects of a subject in any graph, each pair once.
    pub fn of_subject(&self, subject: &str) -> BTreeSet<(&str, &str)> {
        let quads = self.ids.get(subject).and_then(|id| self.by_subject.get(id));
        let quads = quads.into_iter().flatten();
        quads
            .map(|[predicate, object, _]| (self.term(*predicate), self.term(*object)))
            .collect()
    }

    /// Subjects and predicates of an object in any graph, each pair once.
    pub fn of_object(&self, object: &str) -> BTreeSet<(&str, &str)> {
        let quads = self.ids.get(object).and_then(|id| self.by_object.get(id));
        let quads = quads.into_iter().flatten();
        quads
            .map(|[subject, predicate, _]| (self.term(*subject), self.term(*predicate)))
            .collect()
    }

    /// The objects of a subject and a predicate.
    pub fn objects(&self, subject: &str, predicate: &str) -> BTreeSet<&str> {
        let parts = |[predicate, object, _]: [Id; 3]| (predicate, object);
        self.others(&self.by_subject, subject, predicate, parts)
    }

    /// The subjects of a predicate and an object.
    pub fn subjects(&self, predicate: &str, object: &str) -> BTreeSet<&str> {
        let parts = |[subject, predicate, _]: [Id; 3]| (predicate, subject);
        self.others(&self.by_object, object, predicate, parts)
    }

    fn others(
        &self,
        index: &HashMap<Id, Vec<[Id; 3]>>,
        of: &str,
        predicate: &str,
        parts: impl Fn([Id; 3]) -> (Id, Id),
    ) -> BTreeSet<&str> {
        let (Some(of), Some(predicate)) = (self.ids.get(of), self.ids.get(predicate)) else {
            return BTreeSet::new();
        };
        let quads = index.get(of).into_iter().flatten();
        quads
            .map(|quad| parts(*quad))
            .filter(|(other, _)| other == predicate)
            .map(|(_, found)| self.term(found))
            .collect()
    }

    /// All subjects that something is said of by a predicate: every quad is looked at.
    pub fn with(&self, predicate: &str) -> BTreeSet<&str> {
        let Some(predicate) = self.ids.get(predicate) else {
            return BTreeSet::new();
        };
        let subjects = self.by_subject.iter();
        let subjects = subjects.filter(|(_, quads)| quads.iter().any(|[it, ..]| it == predicate));
        subjects.map(|(subject, _)| self.term(*subject)).collect()
    }

    /// The named graphs that say something of a subject by a predicate.
    pub fn graphs(&self, subject: &str, predicate: &str) -> BTreeSet<&str> {
        let quads = self.ids.get(subject).and_then(|id| self.by_subject.get(id));
        let quads = quads.into_iter().flatten();
        quads
            .filter(|[other, _, graph]| {
                self.term(*other) == predicate && !self.term(*graph).is_empty()
            })
            .map(|[_, _, graph]| self.term(*graph))
            .collect()
    }

    /// The triples of a graph.
    pub fn of_graph(&self, graph: &str) -> BTreeSet<[&str; 3]> {
        let quads = self.ids.get(graph).and_then(|id| self.by_graph.get(id));
        let quads = quads.into_iter().flatten();
        quads.map(|quad| quad.map(|id| self.term(id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> [String; 3] {
        let mut parts = text.splitn(3, ' ').map(str::to_owned);
        [(); 3].map(|()| parts.next().unwrap())
    }

    #[test]
    fn what_is_added_is_found_and_what_is_dropped_is_not() {
        let mut quads = Quads::default();
        quads.add(&triple("<a> <p> <b>"), "<g>");
        quads.add(&triple("<a> <p> <b>"), "<g>");
        quads.add(&triple("<a> <p> <b>"), "");
        quads.add(&triple("<a> <q> \"x\""), "<g>");
        assert_eq!(quads.len(), 3);
        assert_eq!(quads.of_subject("<a>").len(), 2);
        assert_eq!(quads.graphs("<a>", "<p>").len(), 1);
        assert_eq!(quads.of_graph("<g>").len(), 2);
        quads.drop_graph("<g>");
        assert_eq!(quads.len(), 1);
        assert_eq!(quads.objects("<a>", "<p>").len(), 1);
        assert!(quads.objects("<a>", "<q>").is_empty());
        assert!(quads.of_object("\"x\"").is_empty());
    }

    #[test]
    fn files_are_found_in_folders_and_what_is_missing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("a.nq"), "<a:a> <a:p> <a:b> <a:g> .\n").unwrap();
        std::fs::write(folder.path().join("b.ttl"), "<a:a> <a:p> 1, [] .").unwrap();
        std::fs::write(folder.path().join("readme.txt"), "no data").unwrap();
        let files = data_files(&[folder.path().to_owned()]).unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(Quads::read(&files).unwrap().len(), 3);
        let nothing = data_files(&[folder.path().join("readme.txt")]).unwrap_err();
        assert!(nothing.to_string().contains("no .nq"), "{nothing}");
        assert!(data_files(&[folder.path().join("missing")]).is_err());
    }
}
