//! Full-text indexes of literals: tokenizer, searches with scores, highlights.
//!
//! ```text
//! (number, text, language)  ->  [build] PartBuilder  ->  Part: files in memory, to be stored by whoever keeps them
//!                                                          |
//! "red wine OR vin*"  ->  [query] Query        [part] OpenPart: the same files, read where they lie
//!                            '------> [search] <------'
//!                                        '->  Hits: number and score, the best first
//! ```
//!
//! A *document* is a text with a number that its owner knows it by; the numbers of a part ascend.
//! An index is any number of *parts*, none of which ever changes; a search asks all of them with
//! the same statistics, so that it makes no difference to a score in which part a document lies.
//! Postings, positions, automata and compression are `tantivy`'s; what is ours are the analysis by
//! languages, the queries, and the statistics.
//!
//! An index may have the trigrams of its texts too (`grams`): so substrings and regular expressions
//! are answered.
//!
//! Cost: building takes the memory that is given; a search one pass over the postings of its words.
//! Not done here: files, snapshots, quads, and who may see what: `storage` and what stands above it
//! know of these.

mod analysis;
mod build;
mod error;
mod files;
mod fold;
mod gram_query;
mod gram_search;
mod grams;
mod highlight;
mod part;
mod query;
mod schema;
mod search;

pub use analysis::{ANALYZERS, Analyzer};
pub use build::{Part, PartBuilder};
pub use error::{QueryError, TextError};
pub use files::PartFile;
pub use fold::fold;
pub use gram_query::GramQuery;
pub use gram_search::{GramBounds, gram_search};
pub use highlight::{HighlightOptions, Highlighter};
pub use part::{DocumentCounts, OpenPart};
pub use query::{QUERY_BYTES_MAX, Query};
pub use search::{Figures, Hit, search};
/// How stored bytes are lent to an index.
pub use tantivy::HasLen;
pub use tantivy::directory::{FileHandle, OwnedBytes};

#[cfg(test)]
mod tests;
