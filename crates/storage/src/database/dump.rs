//! An iterator over all quads as terms, in SPOG order.
//!
//! Rows are read in batches of some thousand; the ids of a batch are sorted and each distinct one
//! is decoded once, in rank order. Memory stays at one batch; literals that are stored as streams
//! are not copied, but borrowed from where they are mapped.

use std::borrow::Cow;
use std::sync::Arc;

use orrery_term::{LanguageTags, Literal, LiteralKind, Term, TermId, TermKind, parse_key};

use crate::quads::dictionary::StreamedKey;
use crate::quads::index::{COLUMNS, Permutation, Scan};
use crate::{Error, ReadView, Result, Snapshot};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8 * 1024;

/// A quad as terms; the default graph has no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuadRef<'a> {
    /// The subject.
    pub subject: &'a Term<'static>,
    /// The predicate.
    pub predicate: &'a Term<'static>,
    /// The object; it may be a literal of any length, which should not be copied without need.
    pub object: Cow<'a, Term<'a>>,
    /// The graph's name; `None` in the default graph.
    pub graph: Option<&'a Term<'static>>,
}

/// Some thousand consecutive quads.
#[derive(Debug, Default)]
pub struct QuadBatch {
    /// Distinct ids in ascending order, and the term of each.
    ids: Vec<u64>,
    terms: Vec<Term<'static>>,
    /// Literals that are stored as streams, by ascending id; they are not among `ids`.
    streamed: Vec<(u64, StreamedLiteral)>,
    rows: Vec<[u64; COLUMNS]>,
    /// Whether language tags are in lower case, as the dictionaries have them.
    is_canonical: bool,
}

/// A literal that is stored as a stream.
#[derive(Debug)]
struct StreamedLiteral {
    key: StreamedKey,
    kind: LiteralKind<'static>,
    /// Where in the key its text begins.
    text_start: usize,
}

impl StreamedLiteral {
    /// `None` if the key is not that of a literal.
    fn new(key: StreamedKey, tags: Option<&LanguageTags>) -> Result<Option<Self>> {
        let whole = key.whole()?;
        let Ok(Term::Literal(Literal { lexical, kind })) = parse_key(whole) else {
            return Ok(None);
        };
        let text_start = whole.len() - lexical.len();
        let lexical = Cow::Borrowed("");
        let literal = Term::Literal(Literal { lexical, kind }.into_owned());
        let literal = match tags {
            Some(tags) => tags.in_term(literal),
            None => literal,
        };
        let Term::Literal(Literal { kind, .. }) = literal else {
            return Ok(None);
        };
        Ok(Some(Self {
            key,
            kind,
            text_start,
        }))
    }

    /// The literal, with its text where it is mapped.
    fn term(&self) -> Term<'_> {
        // Both were looked at when this was made: there is a text, and it is valid UTF-8.
        let key = self.key.whole().unwrap_or_default();
        let text = key.get(self.text_start..).unwrap_or_default();
        Term::Literal(Literal {
            lexical: String::from_utf8_lossy(text),
            kind: self.kind.clone(),
        })
    }
}

impl QuadBatch {
    /// One whose language tags are in lower case.
    pub(crate) fn canonical() -> Self {
        Self {
            is_canonical: true,
            ..Self::default()
        }
    }

    /// Number of quads.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no quad.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The quads.
    pub fn iter(&self) -> impl Iterator<Item = QuadRef<'_>> {
        // Every id of a row was entered into `ids`, but for those of streams.
        let term = |id: u64| &self.terms[self.ids.partition_point(|&other| other < id)];
        let object = move |id: u64| match self.streamed(id) {
            Some(literal) => Cow::Owned(literal.term()),
            None => Cow::Borrowed(term(id)),
        };
        self.rows.iter().map(move |&[s, p, o, g]| QuadRef {
            subject: term(s),
            predicate: term(p),
            object: object(o),
            graph: (g != TermId::DEFAULT_GRAPH.bits()).then(|| term(g)),
        })
    }

    fn streamed(&self, id: u64) -> Option<&StreamedLiteral> {
        let at = self
            .streamed
            .binary_search_by_key(&id, |(id, _)| *id)
            .ok()?;
        Some(&self.streamed[at].1)
    }

    /// Takes up other quads.
    pub(crate) fn fill(&mut self, snapshot: &Snapshot, quads: &[[TermId; COLUMNS]]) -> Result<()> {
        self.rows.clear();
        self.rows
            .extend(quads.iter().map(|quad| quad.map(TermId::bits)));
        self.decode(snapshot)
    }

    fn decode(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.ids.clear();
        self.ids.extend(self.rows.iter().flatten());
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.retain(|&id| id != TermId::DEFAULT_GRAPH.bits());
        self.take_streamed(snapshot)?;
        let ids: Vec<TermId> = self.ids.iter().map(|&id| TermId::from_bits(id)).collect();
        self.terms.clear();
        let tags = self.tags(snapshot);
        snapshot.terms(&ids, |_, term| {
            let term = term.into_owned();
            self.terms.push(match tags {
                Some(tags) => tags.in_term(term),
                None => term,
            });
        })
    }

    /// How tags are written, where that matters.
    fn tags<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s LanguageTags> {
        (!self.is_canonical).then(|| snapshot.language_tags())
    }
}

impl QuadBatch {
    /// Takes the literals that are stored as streams out of `ids`.
    fn take_streamed(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.streamed.clear();
        if !snapshot.dictionary().may_have_streamed() {
            return Ok(());
        }
        let mut cursor = snapshot.dictionary().iter(0);
        for &bits in &self.ids {
            let id = TermId::from_bits(bits);
            if id.checked_kind() != Some(TermKind::Literal) {
                continue;
            }
            if let Some(key) = cursor.streamed(id.payload())?
                && let Some(literal) = StreamedLiteral::new(key, self.tags(snapshot))?
            {
                self.streamed.push((bits, literal));
            }
        }
        let streamed = &self.streamed;
        let is_streamed = |id: &u64| streamed.binary_search_by_key(id, |(id, _)| *id).is_ok();
        self.ids.retain(|id| !is_streamed(id));
        Ok(())
    }
}

/// Reads all quads, batch by batch.
#[derive(Debug)]
pub struct Quads {
    view: Arc<ReadView>,
    scan: Scan,
    batch: QuadBatch,
}

impl ReadView {
    /// All quads in the order of SPOG.
    pub fn quads(self: &Arc<Self>) -> Result<Quads> {
        let index = self.index(Permutation::Spog).ok_or_else(|| {
            Error::corrupt(
                self.snapshot().directory(),
                0,
                "the permutation SPOG is missing",
            )
        })?;
        Ok(Quads {
            view: Arc::clone(self),
            scan: index.scan(index.all(), [true; COLUMNS]),
            batch: QuadBatch::default(),
        })
    }
}

impl Quads {
    /// Writes language tags in lower case, as canonical N-Quads do (RDF 1.2).
    #[must_use]
    pub fn canonical(mut self) -> Self {
        self.batch.is_canonical = true;
        self
    }

    /// The next quads, or `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<&QuadBatch>> {
        self.batch.rows.clear();
        while self.batch.rows.len() < BATCH_ROWS {
            let Some(vector) = self.scan.next_vector()? else {
                break;
            };
            let columns: [&[u64]; COLUMNS] = std::array::from_fn(|column| vector.column(column));
            let rows = 0..vector.rows().len() as usize;
            self.batch
                .rows
                .extend(rows.map(|row| columns.map(|column| column[row])));
        }
        if self.batch.rows.is_empty() {
            return Ok(None);
        }
        self.batch.decode(self.view.snapshot())?;
        Ok(Some(&self.batch))
    }
}
