//! The cache of parsed queries by the shape of their text.
//!
//! ```text
//! text -> shape, constants --(known)--> clone of the shape's algebra -> constants put in -> Query
//!                          '-(else)---> parsed as it is -> Query
//!                                       the second time also with stand-ins -> kept, if putting the constants
//!                                                                              in gives the same Query
//! ```
//!
//! A shape is cached only if that comparison holds for the query that brought it. Shapes for which
//! it fails (a number in a place where none is a term) are noted as such, so that they are not
//! tried again. Queries that come once cost nothing but the look-up. Queries of one shape differ
//! only in their constants ([`super::shape`]), so the algebra is the one that parsing would give.
//! Nothing that depends on data is cached here: that is for `plan/order/order_cache.rs` and
//! `plan/kept` (`docs/decisions/0012-shapes-of-queries.md`, `0032-plans-kept.md`).
//!
//! Bounded by [`SHAPES_MAX`] and [`SHAPE_BYTES_MAX`]; the least recently used shape goes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use orrery_term::Prefixes;
use spargebra::Query;

use super::known::KnownShape;
use super::shape::{Constant, Shaped, shaped};
use super::substitute::{has_stand_in, stand_in, substitute};
use super::{Assumed, Refused, Stack};

/// Shapes that are kept.
const SHAPES_MAX: usize = 512;
/// Texts of all shapes together. Their algebra takes about twenty times as much.
const SHAPE_BYTES_MAX: usize = 512 << 10;
/// Longer texts are not looked up: parsing is not what they wait for.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Algebra by shape; shared by all queries of an engine.
#[derive(Debug, Default)]
pub(crate) struct ShapeCache {
    shapes: Mutex<Shapes>,
    hits: AtomicU64,
    misses: AtomicU64,
    /// How many shapes were ever known.
    numbers: AtomicU64,
}

/// A text that was read.
#[derive(Debug)]
pub(crate) enum ReadText<'t> {
    /// By the parser.
    Parsed(Box<Query>),
    /// Its shape is known.
    Known(Arc<KnownShape>, Vec<Constant<'t>>),
}

impl ReadText<'_> {
    /// The algebra.
    pub(crate) fn query(&self) -> Cow<'_, Query> {
        match self {
            Self::Parsed(query) => Cow::Borrowed(&**query),
            Self::Known(shape, constants) => Cow::Owned(shape.query(constants)),
        }
    }
}

#[derive(Debug)]
struct Shapes {
    by_text: LruCache<String, ShapeState>,
    text_bytes: usize,
    /// The table of assumed prefixes that came last, and how many others came before it: shapes of
    /// these are never found again.
    table: Arc<Prefixes>,
    table_number: u64,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            // Grows with what it holds; `keep` bounds it.
            by_text: LruCache::unbounded(),
            text_bytes: 0,
            table: Arc::default(),
            table_number: 0,
        }
    }
}

/// What is known of a shape.
#[derive(Clone, Debug)]
enum ShapeState {
    /// It came once.
    Seen,
    /// Its algebra, with stand-ins.
    Algebra(Arc<KnownShape>),
    /// Constants cannot be put into its algebra.
    Fixed,
}

/// The hits and misses of the parse cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeCounts {
    /// Queries whose shape was known.
    pub hits: u64,
    /// Queries that had to be parsed.
    pub misses: u64,
    /// Shapes that are kept.
    pub kept: u64,
}

impl ShapeCache {
    /// Reads a query: by its shape if that is known, else by the parser.
    pub(crate) fn read<'t>(
        &self,
        text: &'t str,
        assumed: Assumed<'_>,
        stack: Stack,
    ) -> Result<ReadText<'t>, Refused> {
        let shaped = (text.len() <= TEXT_BYTES_MAX)
            .then(|| shaped(text))
            .flatten();
        let Some(mut shaped) = shaped else {
            let (query, _) = super::parse(text, assumed, stack)?;
            self.misses.fetch_add(1, Ordering::Relaxed);
            return Ok(ReadText::Parsed(Box::new(query)));
        };
        // Relative IRIs that remain in the text mean something else under another base.
        shaped.shape.push('\u{1}');
        shaped.shape.push_str(assumed.base_iri.unwrap_or_default());
        // So do prefixes under other tables of those that are assumed.
        if let Some(prefixes) = assumed.prefixes {
            shaped.shape.push('\u{2}');
            let mut number = self.table_number(prefixes);
            while number > 0 {
                shaped.shape.push(char::from((number & 0x7F) as u8));
                number >>= 7;
            }
        }
        let known = self.find(&shaped.shape);
        if let Some(ShapeState::Algebra(shape)) = known {
            if stack == Stack::Ordinary && !shape.is_ordinary() {
                return Err(Refused::NeedsLargeStack);
            }
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(ReadText::Known(shape, shaped.constants));
        }
        let (query, shape) = super::parse(text, assumed, stack)?;
        self.misses.fetch_add(1, Ordering::Relaxed);
        match known {
            None => self.keep(shaped.shape, ShapeState::Seen),
            Some(ShapeState::Seen) => {
                let template = template(text, &shaped, assumed, stack, &query);
                let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                let state = template.map_or(ShapeState::Fixed, |query| {
                    let is_ordinary = super::is_ordinary(shape);
                    let kinds = &shaped.constants;
                    ShapeState::Algebra(Arc::new(KnownShape::new(
                        number,
                        query,
                        is_ordinary,
                        kinds,
                    )))
                });
                self.keep(shaped.shape, state);
            }
            Some(ShapeState::Fixed | ShapeState::Algebra(_)) => {}
        }
        Ok(ReadText::Parsed(Box::new(query)))
    }

    /// A number that no other table of prefixes has.
    fn table_number(&self, assumed: &Arc<Prefixes>) -> u64 {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&shapes.table, assumed) {
            // Snapshots share a table until it changes, and a checkpoint makes an equal one.
            if shapes.table != *assumed {
                shapes.table_number += 1;
            }
            shapes.table = Arc::clone(assumed);
        }
        shapes.table_number
    }

    pub(crate) fn counts(&self) -> ShapeCounts {
        let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        ShapeCounts {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            kept: shapes.by_text.len() as u64,
        }
    }

    fn find(&self, shape: &str) -> Option<ShapeState> {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        shapes.by_text.get(shape).cloned()
    }

    fn keep(&self, shape: String, state: ShapeState) {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = shape.len();
        if shapes.by_text.put(shape, state).is_none() {
            shapes.text_bytes += bytes;
        }
        while shapes.by_text.len() > SHAPES_MAX || shapes.text_bytes > SHAPE_BYTES_MAX {
            let Some((oldest, _)) = shapes.by_text.pop_lru() else {
                break;
            };
            shapes.text_bytes -= oldest.len();
        }
    }
}

/// The algebra with stand-ins, if putting the constants in makes it the query that was parsed.
fn template(
    text: &str,
    shaped: &Shaped<'_>,
    assumed: Assumed<'_>,
    stack: Stack,
    query: &Query,
) -> Option<Query> {
    if has_stand_in(text) {
        return None;
    }
    let mut with_stand_ins = String::with_capacity(text.len() + 32 * shaped.constants.len());
    let mut copied = 0;
    for (place, constant) in shaped.constants.iter().enumerate() {
        let inner = constant.text();
        let at = inner.as_ptr() as usize - text.as_ptr() as usize;
        with_stand_ins.push_str(text.get(copied..at)?);
        with_stand_ins.push_str(&stand_in(place, *constant));
        copied = at + inner.len();
    }
    with_stand_ins.push_str(text.get(copied..)?);
    let (template, _) = super::parse(&with_stand_ins, assumed, stack).ok()?;
    let mut filled = template.clone();
    substitute(&mut filled, &shaped.constants);
    (filled == *query).then_some(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn based(base_iri: Option<&str>) -> Assumed<'_> {
        Assumed {
            base_iri,
            prefixes: None,
            waiting: None,
        }
    }

    impl ShapeCache {
        fn parsed(&self, text: &str, base_iri: Option<&str>) -> Result<Query, Refused> {
            self.parse(text, based(base_iri), Stack::Large)
        }

        fn parse(&self, text: &str, assumed: Assumed<'_>, stack: Stack) -> Result<Query, Refused> {
            let read = self.read(text, assumed, stack)?;
            Ok(read.query().into_owned())
        }
    }

    fn parsed_anew(text: &str, base_iri: Option<&str>) -> Result<Query, Refused> {
        super::super::parse(text, based(base_iri), Stack::Large).map(|(query, _)| query)
    }

    #[test]
    fn a_table_of_assumed_prefixes_is_part_of_the_shape() {
        let cache = ShapeCache::default();
        let table = |iri| {
            let mut prefixes = Prefixes::default();
            prefixes.note_loaded("e", iri);
            Arc::new(prefixes)
        };
        let (one, other) = (table("http://one/"), table("http://other/"));
        let equal = Arc::new(Prefixes::clone(&one));
        let with = |prefixes| Assumed {
            base_iri: None,
            prefixes,
            waiting: None,
        };
        let text = "SELECT ?o { e:s <http://e/p> ?o }";
        for (assumed, iri) in [
            (&one, "<http://one/s>"),
            (&one, "<http://one/s>"),
            (&equal, "<http://one/s>"),
            (&other, "<http://other/s>"),
            (&one, "<http://one/s>"),
            (&other, "<http://other/s>"),
        ] {
            let query = cache
                .parse(text, with(Some(assumed)), Stack::Large)
                .unwrap();
            assert!(query.to_string().contains(iri), "{query}");
            assert!(cache.parse(text, with(None), Stack::Large).is_err());
        }
        assert_eq!(cache.counts().hits, 1);
    }

    #[test]
    fn the_least_recently_used_shape_goes() {
        let cache = ShapeCache::default();
        let query =
            |number: usize| format!("SELECT ?v{number} {{ <http://e/s> <http://e/p> ?v{number} }}");
        for number in 0..SHAPES_MAX {
            cache.parsed(&query(number), None).unwrap();
            cache.parsed(&query(number), None).unwrap();
        }
        assert_eq!(cache.counts().hits, 0);
        cache.parsed(&query(0), None).unwrap();
        cache.parsed(&query(SHAPES_MAX), None).unwrap();
        cache.parsed(&query(0), None).unwrap();
        cache.parsed(&query(1), None).unwrap();
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.kept), (2, SHAPES_MAX as u64));
        assert_eq!(counts.misses, 2 * SHAPES_MAX as u64 + 2);
    }

    #[test]
    fn the_texts_together_are_bounded() {
        let cache = ShapeCache::default();
        let padding = " ".repeat(TEXT_BYTES_MAX - 200);
        for number in 0..2 * SHAPE_BYTES_MAX / padding.len() {
            let text = format!("ASK {{ <http://e/s> <http://e/p> ?v{number} }}{padding}");
            cache.parsed(&text, None).unwrap();
        }
        let shapes = cache.shapes.lock().unwrap();
        assert!(shapes.text_bytes <= SHAPE_BYTES_MAX);
        let sum: usize = shapes.by_text.iter().map(|(text, _)| text.len()).sum();
        assert_eq!(shapes.text_bytes, sum);
    }

    #[test]
    fn a_base_is_part_of_the_shape() {
        let cache = ShapeCache::default();
        let text = "SELECT ?o { <s> <http://e/p> ?o }";
        for base in [
            "http://a/",
            "http://b/",
            "http://a/",
            "http://b/",
            "http://a/",
        ] {
            let parsed = cache.parsed(text, Some(base)).unwrap();
            assert_eq!(parsed, parsed_anew(text, Some(base)).unwrap());
        }
        assert_eq!(cache.counts().hits, 1);
    }

    #[test]
    fn errors_are_those_of_the_parser() {
        let cache = ShapeCache::default();
        for _ in 0..2 {
            let error = cache
                .parsed("SELECT * { <http://e/s> FOO 5 }", None)
                .unwrap_err();
            assert!(
                matches!(
                    error,
                    Refused::Error(crate::error::QueryError::Syntax { line: 1, .. })
                ),
                "{error:?}"
            );
        }
        assert_eq!(cache.counts().hits, 0);
    }

    /// Parts of queries in which any constant may stand at `%`: kinds are drawn for each.
    const GROUPS: [&str; 12] = [
        "?a <http://e/p> % .",
        "%i ?p ?b .",
        "?a %i % , % .",
        "FILTER(?a > % || ?b = % && !(?a IN (%, %)))",
        "OPTIONAL { ?a %i ?c FILTER(?c != %) }",
        "{ ?a <http://e/q> % } UNION { %i e:p5 ?b }",
        "GRAPH %i { ?a ?p % }",
        "VALUES (?a ?b) { (% UNDEF) (% %) }",
        "BIND(IF(?a = %, %, STR(%)) AS ?d)",
        "FILTER NOT EXISTS { ?a ?p % MINUS { ?a ?q % } }",
        "?a %i* ?b . ?a ^%i|!(%i) ?c .",
        "FILTER(e:f(%) < xsd:integer(%) + % - 3 * -4)",
    ];

    fn constant(kind: u8, number: u16) -> String {
        match kind % 6 {
            0 => format!("<http://example.com/thing{number}>"),
            1 => format!("'text {number}'"),
            2 => format!("\"{number}\"@en"),
            3 => number.to_string(),
            4 => format!("\"{number}\"^^<http://e/t>"),
            // Not taken out.
            _ => "0.5".to_owned(),
        }
    }

    fn text(groups: &[usize], draws: &mut impl Iterator<Item = (u8, u16)>) -> String {
        let mut text = "PREFIX e: <http://e/> PREFIX xsd: <http://x/> SELECT * {".to_owned();
        for &group in groups {
            let mut rest = GROUPS[group % GROUPS.len()];
            while let Some((before, after)) = rest.split_once('%') {
                let (kind, number) = draws.next().unwrap();
                let is_iri = after.starts_with('i');
                text.push(' ');
                text.push_str(before);
                text.push_str(&constant(if is_iri { 0 } else { kind }, number));
                rest = if is_iri { &after[1..] } else { after };
            }
            text.push_str(rest);
        }
        text + " } LIMIT 10"
    }

    proptest::proptest! {
        #[test]
        fn known_shapes_with_other_constants_are_read_as_the_parser_does(
            groups in proptest::collection::vec(0..GROUPS.len(), 1..6),
            kinds in proptest::collection::vec(proptest::prelude::any::<u8>(), 40),
            numbers in proptest::collection::vec(proptest::collection::vec(0..50_u16, 40), 4),
        ) {
            let cache = ShapeCache::default();
            let mut is_shaped = false;
            for numbers in numbers {
                let text = text(&groups, &mut kinds.iter().copied().zip(numbers));
                is_shaped = shaped(&text).is_some();
                let cached = cache.parsed(&text, Some("http://base.org/sparql"));
                let Ok(parsed) = parsed_anew(&text, Some("http://base.org/sparql")) else {
                    // A variable that is bound twice.
                    proptest::prop_assert!(cached.is_err());
                    return Ok(());
                };
                proptest::prop_assert_eq!(cached.unwrap(), parsed);
            }
            // Shapes without names that the parser makes up are known from the third query on.
            let makes_up = groups.contains(&10);
            let known = if is_shaped { 2 } else { 0 };
            proptest::prop_assert!(makes_up || cache.counts().hits == known);
        }
    }
}
