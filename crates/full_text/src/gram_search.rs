//! The evaluation of trigram queries.
//!
//! What a query reads is known before it is read: of an AND the postings of the rarest gram, or of
//! the OR that has the fewest; all others only say which of these documents stay, and are skipped
//! through. So a needle of twenty characters costs what its rarest gram costs. Others are asked as
//! long as they say much: a gram that most documents have is not, and after one that let nearly all
//! through, no further one is, for they are more common still.

use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, TERMINATED, Term};

use crate::error::TextError;
use crate::gram_query::GramQuery;
use crate::part::OpenPart;
use crate::schema::NUMBER;

/// So few documents are looked at by who asks sooner than other grams are looked up.
const FEW_DOCUMENTS: usize = 16;
/// A gram that more than the fourth part of all documents has leaves few out for what looking each
/// up costs.
const COMMON_PARTS: u64 = 4;
/// Where more than all but the eighth part stay, a gram said little.
const POOR_PARTS: usize = 8;
/// Postings between two looks at whether to go on.
const BETWEEN_LOOKS: usize = 64 * 1024;

/// The limits of a trigram search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GramBounds {
    /// As much as pays, by what all documents have; nothing where more than so many postings would
    /// have to be read. What is found may lack some of the grams.
    Postings(u64),
    /// All of it, however much that is: whether a document is found is told by its own grams alone,
    /// so that nothing follows from others.
    Exact,
}

/// Gives the number of every document that has the grams to `found`, and says so; or does nothing
/// and says `false`, where the bounds do not allow what would have to be read. From time to time
/// `go_on` is asked.
///
/// # Errors
/// When a part is damaged or has no grams, or `go_on` says no.
pub fn gram_search<'p>(
    parts: impl IntoIterator<Item = &'p OpenPart>,
    query: &GramQuery,
    bounds: GramBounds,
    go_on: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(u64),
) -> Result<bool, TextError> {
    let mut looked_up = Vec::new();
    let mut cost = 0_u64;
    for part in parts {
        let index = part.grams()?;
        let tree = Node::of(&index, part, query)?;
        cost = cost.saturating_add(tree.cost());
        if matches!(bounds, GramBounds::Postings(most) if cost > most) {
            return Ok(false);
        }
        looked_up.push((part, index, tree));
    }
    for (part, index, tree) in looked_up {
        let mut search = PartSearch {
            index: &index,
            go_on,
            seen: 0,
            is_exact: bounds == GramBounds::Exact,
            common: u64::from(part.segment().max_doc()) / COMMON_PARTS,
        };
        let documents = search.read(&tree)?;
        let numbers = part.segment().fast_fields().u64(NUMBER)?.values;
        for document in documents {
            found(numbers.get_val(document));
        }
    }
    Ok(true)
}

/// A query, looked up in the terms of a part.
enum Node {
    /// None: no document has it.
    Gram(Option<TermInfo>),
    /// By cost; not empty.
    All(Vec<Node>),
    Any(Vec<Node>),
    /// Every document, of which there are so many.
    Every(DocId),
}

impl Node {
    fn of(
        index: &InvertedIndexReader,
        part: &OpenPart,
        query: &GramQuery,
    ) -> Result<Self, TextError> {
        let of_each = |queries: &[GramQuery]| -> Result<Vec<Self>, TextError> {
            let nodes = queries.iter().map(|query| Self::of(index, part, query));
            nodes.collect()
        };
        Ok(match query {
            GramQuery::Gram(gram) => {
                let term = Term::from_field_text(part.gram_field()?, gram);
                let info = index.get_term_info(&term);
                Self::Gram(info.map_err(tantivy::TantivyError::from)?)
            }
            GramQuery::All(all) if all.is_empty() => Self::Every(part.segment().max_doc()),
            GramQuery::All(all) => {
                let mut nodes = of_each(all)?;
                nodes.sort_by_key(Self::cost);
                Self::All(nodes)
            }
            GramQuery::Any(any) => Self::Any(of_each(any)?),
        })
    }

    /// Postings that are read.
    fn cost(&self) -> u64 {
        match self {
            Self::Gram(info) => info.as_ref().map_or(0, |info| u64::from(info.doc_freq)),
            Self::All(all) => all.first().map_or(0, Self::cost),
            Self::Any(any) => any.iter().map(Self::cost).sum(),
            Self::Every(documents) => u64::from(*documents),
        }
    }
}

/// The search in one part.
struct PartSearch<'s> {
    index: &'s InvertedIndexReader,
    go_on: &'s mut dyn FnMut() -> bool,
    seen: usize,
    /// Whether each gram is asked.
    is_exact: bool,
    /// Grams that more documents have are not looked up to leave some out.
    common: u64,
}

impl PartSearch<'_> {
    /// The documents of a query, ascending.
    fn read(&mut self, node: &Node) -> Result<Vec<DocId>, TextError> {
        match node {
            Node::Gram(None) => Ok(Vec::new()),
            Node::Gram(Some(info)) => {
                let mut postings = self.postings(info)?;
                let mut documents = Vec::with_capacity(info.doc_freq as usize);
                let mut document = postings.doc();
                while document != TERMINATED {
                    documents.push(document);
                    document = postings.advance();
                }
                self.note(documents.len())?;
                Ok(documents)
            }
            Node::All(all) => {
                let Some((first, others)) = all.split_first() else {
                    return Ok(Vec::new());
                };
                let documents = self.read(first)?;
                self.keep_all(documents, others)
            }
            Node::Any(any) => {
                let mut documents = Vec::new();
                for one in any {
                    documents.extend(self.read(one)?);
                }
                Ok(each_once(documents))
            }
            Node::Every(count) => Ok((0..*count).collect()),
        }
    }

    /// Those of some documents that a query has, too.
    fn keep(&mut self, documents: &[DocId], node: &Node) -> Result<Vec<DocId>, TextError> {
        match node {
            Node::Gram(None) => Ok(Vec::new()),
            Node::Gram(Some(info)) => {
                let mut postings = self.postings(info)?;
                let mut kept = Vec::new();
                let mut at = postings.doc();
                for &document in documents {
                    if at < document {
                        at = postings.seek(document);
                    }
                    if at == document {
                        kept.push(document);
                    }
                }
                self.note(documents.len())?;
                Ok(kept)
            }
            Node::All(all) => self.keep_all(documents.to_vec(), all),
            Node::Any(any) => {
                let mut kept = Vec::new();
                for one in any {
                    kept.extend(self.keep(documents, one)?);
                }
                Ok(each_once(kept))
            }
            Node::Every(_) => Ok(documents.to_vec()),
        }
    }

    fn keep_all(
        &mut self,
        mut documents: Vec<DocId>,
        all: &[Node],
    ) -> Result<Vec<DocId>, TextError> {
        for one in all {
            let is_enough = documents.len() <= FEW_DOCUMENTS || one.cost() > self.common;
            if documents.is_empty() || is_enough && !self.is_exact {
                break;
            }
            let kept = self.keep(&documents, one)?;
            let says_little = kept.len() > documents.len() / POOR_PARTS * (POOR_PARTS - 1);
            documents = kept;
            if says_little && !self.is_exact {
                break;
            }
        }
        Ok(documents)
    }

    fn postings(&self, info: &TermInfo) -> Result<SegmentPostings, TextError> {
        let index = self.index;
        let postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic);
        Ok(postings.map_err(tantivy::TantivyError::from)?)
    }

    fn note(&mut self, postings: usize) -> Result<(), TextError> {
        self.seen += postings;
        if self.seen >= BETWEEN_LOOKS {
            self.seen = 0;
            if !(self.go_on)() {
                return Err(TextError::Stopped);
            }
        }
        Ok(())
    }
}

fn each_once(mut documents: Vec<DocId>) -> Vec<DocId> {
    documents.sort_unstable();
    documents.dedup();
    documents
}
