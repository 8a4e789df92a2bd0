//! The builder of an index part.
//!
//! Documents are gathered in memory until their owner finds it enough
//! ([`PartBuilder::memory_bytes`]); what comes out is a handful of files in memory, about as large
//! as the texts, or twice that where they are stemmed. tantivy takes memory in pages of a megabyte,
//! some for each kind of table, before there is anything to keep: whoever compares what a part
//! takes with a small share asks for [`PartBuilder::grown_bytes`] as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::directory::{FileHandle, OwnedBytes, RamDirectory};
use tantivy::schema::TantivyDocument;
use tantivy::{Directory, Index, IndexSettings, SingleSegmentIndexWriter};

use crate::analysis::{ANALYZERS, Analyzer, tokenizers};
use crate::error::TextError;
use crate::files::PartFile;
use crate::part::{DocumentCounts, OpenPart};
use crate::schema::Fields;

/// Less memory makes no part. tantivy makes tables in a size that follows from it.
const MEMORY_BYTES_MIN: usize = 1 << 20;
/// Documents of a part: tantivy counts them in 32 bits, of which it needs some.
const DOCUMENTS_MAX: u64 = 1 << 30;

/// A part that is being made.
pub struct PartBuilder {
    fields: &'static Fields,
    directory: RamDirectory,
    writer: SingleSegmentIndexWriter,
    documents: [u64; ANALYZERS],
    last: Option<u64>,
    /// What it took with the first document.
    begun_bytes: usize,
}

/// A finished part: files in memory.
#[derive(Debug)]
pub struct Part {
    /// Its files.
    pub files: Vec<PartFile>,
    /// How many documents there are.
    pub documents: DocumentCounts,
}

impl std::fmt::Debug for PartBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartBuilder")
            .field("documents", &self.documents())
            .finish_non_exhaustive()
    }
}

impl PartBuilder {
    /// Begins one that will take about so much memory, with grams or without.
    ///
    /// # Errors
    /// When there is no such memory.
    pub fn new(memory_bytes: usize, has_grams: bool) -> Result<Self, TextError> {
        let fields = match has_grams {
            true => Fields::with_grams(),
            false => Fields::of_all(),
        };
        let directory = RamDirectory::create();
        let settings = IndexSettings {
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let writer = Index::builder()
            .schema(fields.schema.clone())
            .settings(settings)
            .tokenizers(tokenizers().clone())
            .single_segment_index_writer(directory.clone(), memory_bytes.max(MEMORY_BYTES_MIN))?;
        Ok(Self {
            fields,
            directory,
            documents: [0; ANALYZERS],
            begun_bytes: writer.mem_usage(),
            writer,
            last: None,
        })
    }

    /// Adds a document: its number, which is greater than the one before, its text, and its
    /// language tag in lower case.
    ///
    /// # Errors
    /// When the part is full, or the numbers do not ascend.
    pub fn add(&mut self, number: u64, text: &str, tag: Option<&str>) -> Result<(), TextError> {
        if self.last.is_some_and(|last| last >= number) {
            let what = "the numbers of documents do not ascend".to_owned();
            return Err(TextError::Damaged(what));
        }
        self.last = Some(number);
        let analyzer = Analyzer::of_language(tag);
        let mut document = TantivyDocument::new();
        document.add_u64(self.fields.number(), number);
        document.add_text(self.fields.stems(analyzer), text);
        if analyzer.has_stems() {
            document.add_text(self.fields.words(analyzer), text);
        }
        if let Some(grams) = self.fields.grams() {
            document.add_text(grams, text);
        }
        self.writer.add_document(document)?;
        self.documents[analyzer.number()] += 1;
        if self.documents() == 1 {
            self.begun_bytes = self.memory_bytes();
        }
        Ok(())
    }

    /// Memory that it holds by now; finishing it takes as much again at most.
    pub fn memory_bytes(&self) -> usize {
        self.writer.mem_usage()
    }

    /// The part of the memory that came after the first document.
    pub fn grown_bytes(&self) -> usize {
        self.memory_bytes().saturating_sub(self.begun_bytes)
    }

    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.documents.iter().sum()
    }

    /// Whether no more documents go into it.
    pub fn is_full(&self) -> bool {
        self.documents() >= DOCUMENTS_MAX
    }

    /// Finishes it.
    ///
    /// # Errors
    /// When tantivy cannot write it.
    pub fn finish(self) -> Result<Part, TextError> {
        let index = self.writer.finalize()?;
        let mut names: Vec<_> = index
            .load_metas()?
            .list_segment_files()
            .into_iter()
            .collect();
        names.push("meta.json".into());
        names.sort_unstable();
        let mut files = Vec::new();
        for name in names {
            if !self.directory.exists(&name).unwrap_or(false) {
                // Deletions, which there are none of.
                continue;
            }
            // The small ones are read the way that they are written.
            let bytes: Arc<dyn FileHandle> = match name.extension() {
                Some(extension) if extension == "json" => {
                    let bytes = self.directory.atomic_read(&name);
                    let bytes = bytes.map_err(tantivy::TantivyError::from)?;
                    Arc::new(OwnedBytes::new(bytes))
                }
                _ => {
                    let file = self.directory.get_file_handle(&name);
                    file.map_err(tantivy::TantivyError::from)?
                }
            };
            files.push(PartFile {
                name: name.to_string_lossy().into_owned(),
                bytes,
            });
        }
        let counted = Analyzer::all().zip(self.documents);
        let counted = counted.filter(|(_, documents)| *documents > 0);
        let documents: BTreeMap<String, u64> = counted
            .map(|(analyzer, documents)| (analyzer.name().to_owned(), documents))
            .collect();
        Ok(Part {
            files,
            documents: DocumentCounts(documents),
        })
    }
}

impl Part {
    /// Opens it where it is, in memory.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn open(self) -> Result<OpenPart, TextError> {
        OpenPart::open(self.files, &self.documents)
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }
}
