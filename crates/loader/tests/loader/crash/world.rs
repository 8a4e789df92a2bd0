//! The quads of the crash tests, and the expected database after each commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, Int32Array, StringViewArray};
use arrow::datatypes::Int32Type;
use orrery_full_text::Query;
use orrery_storage::io::{Clock, FileSystem};
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DEFAULT_SCHEMA, IndexDefinition, KeyRows, PrimaryKey,
    RelationId, RowPlace, TableDefinition, TableState,
};
use orrery_storage::text::TextReader;
use orrery_storage::{
    Database, ReadView, Result, Retention, SmallQuad, Snapshot, Transaction, WriterOptions,
};
use orrery_term::{Literal, LiteralKind, Term, TermId};

/// Where the database is on its disk.
pub(crate) const DIRECTORY: &str = "/db";

/// How many different quads there are.
pub(crate) const QUADS: u32 = 300;

/// How many different rows a table has beside them. In a state, those are the numbers from
/// [`QUADS`] on.
pub(crate) const ROWS: u32 = 60;

/// The table, and its index.
pub(crate) const TABLE: RelationId = RelationId(1);
const INDEX: RelationId = RelationId(2);

/// The quads of a state, by number, and the rows of the table.
pub(crate) type State = BTreeSet<u32>;

static ALL: LazyLock<BTreeMap<SmallQuad, u32>> =
    LazyLock::new(|| (0..QUADS).map(|number| (quad(number), number)).collect());

fn iri(text: String) -> Term<'static> {
    Term::iri(format!("http://example.org/{text}"))
}

/// Quads with terms of every kind: inside the id, short and long, in the default graph and in
/// others.
pub(crate) fn quad(number: u32) -> SmallQuad {
    let object = match number % 5 {
        0 => Term::string(format!(
            "a text that is too long for an id, number {number}"
        )),
        1 => Term::typed(
            number.to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
        ),
        2 => Term::language(format!("ein Text mit der Nummer {number}"), "de"),
        3 => iri(format!("object/{}", number / 7)),
        _ => Term::string("long ".repeat(1 + number as usize * 5)),
    };
    let graph = (number % 4 == 3).then(|| iri(format!("graph/{}", number % 3)));
    let subject = iri(format!("subject/{}", number / 6));
    (
        subject,
        iri(format!("predicate/{}", number % 6)),
        object,
        graph,
    )
}

/// The same as a line of N-Quads.
pub(crate) fn line(number: u32) -> String {
    let (subject, predicate, object, graph) = quad(number);
    let graph = graph.map_or(String::new(), |graph| format!(" {graph}"));
    format!("{subject} {predicate} {object}{graph} .\n")
}

/// The ids of quads within a transaction.
pub(crate) fn rows(
    transaction: &mut Transaction,
    numbers: impl IntoIterator<Item = u32>,
) -> Result<Vec<[TermId; 4]>> {
    numbers
        .into_iter()
        .map(|number| {
            let (subject, predicate, object, graph) = quad(number);
            Ok([
                transaction.intern(&subject)?,
                transaction.intern(&predicate)?,
                transaction.intern(&object)?,
                match graph {
                    Some(graph) => transaction.intern(&graph)?,
                    None => TermId::DEFAULT_GRAPH,
                },
            ])
        })
        .collect()
}

/// All quads of a snapshot, by number.
pub(crate) fn content(snapshot: &Arc<Snapshot>) -> Result<State> {
    let mut state = State::new();
    let view = ReadView::of_process(Arc::clone(snapshot));
    let texts = found_texts(&view)?;
    let mut quads = view.quads()?;
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            let owned: SmallQuad = (
                quad.subject.clone(),
                quad.predicate.clone(),
                quad.object.into_owned().into_owned(),
                quad.graph.cloned(),
            );
            if let Some(texts) = &texts
                && is_text(&owned.2)
            {
                let id = snapshot.term_id(&owned.2)?;
                let is_found = id.is_some_and(|id| texts.contains(&id));
                assert!(is_found, "a search does not find {:?}", owned.2);
            }
            let number = ALL.get(&owned);
            let number = number.unwrap_or_else(|| panic!("nobody wrote {owned:?}"));
            assert!(state.insert(*number), "{owned:?} is there twice");
        }
    }
    assert_eq!(state.len() as u64, view.quad_count());
    if let Some(table) = snapshot.tables().table(TABLE) {
        assert_eq!(table.rows(), row_numbers(table)?.len() as u64);
        state.extend(row_numbers(table)?.iter().map(|number| QUADS + number));
    }
    Ok(state)
}

fn is_text(term: &Term<'_>) -> bool {
    matches!(
        term,
        Term::Literal(Literal {
            kind: LiteralKind::String | LiteralKind::Language(_),
            ..
        })
    )
}

/// The literals that the index of texts finds, each once, in every third state; none while there is
/// no index, as before the first manifest that names one.
fn found_texts(view: &ReadView) -> Result<Option<BTreeSet<TermId>>> {
    if !view.snapshot().commit().is_multiple_of(3) {
        return Ok(None);
    }
    let Some(texts) = TextReader::new(view)? else {
        return Ok(None);
    };
    let query = Query::parse("text OR lon*").unwrap();
    let mut found = BTreeSet::new();
    texts.search(&query, &mut || true, &mut |id, _| {
        assert!(found.insert(id), "a literal is found twice");
    })?;
    Ok(Some(found))
}

/// A table of a number and a text, by the number, with an index by the text.
pub(crate) fn definition() -> TableDefinition {
    let column = |id: u32, name: &str, column_type| ColumnDefinition {
        id: ColumnId(id),
        name: name.to_owned(),
        column_type,
        is_nullable: false,
        default: None,
        initial: None,
    };
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    TableDefinition {
        id: TABLE,
        schema: DEFAULT_SCHEMA.to_owned(),
        name: "rows".to_owned(),
        columns: vec![
            column(1, "number", ColumnType::Integer),
            column(2, "text", text),
        ],
        next_column: 3,
        primary_key: Some(PrimaryKey {
            name: "rows_pkey".to_owned(),
            columns: vec![ColumnId(1)],
        }),
        indexes: vec![IndexDefinition {
            id: INDEX,
            name: "rows_text".to_owned(),
            columns: vec![ColumnId(2)],
            included: Vec::new(),
            is_unique: true,
            is_constraint: false,
        }],
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

fn text_of_row(number: u32) -> String {
    // In another order than the numbers.
    format!(
        "text {} {}",
        number % 7,
        "long ".repeat(number as usize % 9)
    ) + &number.to_string()
}

/// Rows of the table by their numbers, as a transaction takes them.
pub(crate) fn row_arrays(numbers: &[u32]) -> Vec<ArrayRef> {
    let keys = numbers.iter().map(|&number| number as i32);
    let texts = numbers.iter().map(|&number| Some(text_of_row(number)));
    vec![
        Arc::new(Int32Array::from_iter_values(keys)),
        Arc::new(texts.collect::<StringViewArray>()),
    ]
}

/// Where rows of the table are, which must be there; their numbers ascend.
pub(crate) fn places(table: &TableState, numbers: &[u32]) -> Result<Vec<RowPlace>> {
    let keys: ArrayRef = row_arrays(numbers).swap_remove(0);
    let mut encoded = KeyRows::default();
    let primary = table.primary();
    primary.keys().encode_rows(&[keys], &mut encoded)?;
    let places = primary.locate(&encoded)?;
    assert!(places.iter().all(Option::is_some), "a row is missing");
    Ok(places.into_iter().flatten().collect())
}

/// The numbers of the rows, if the index has the same.
fn row_numbers(table: &TableState) -> Result<Vec<u32>> {
    let mut of_each = Vec::new();
    for (projection, key) in table.projections().zip([0, 1]) {
        let columns = projection.read(projection.positions(), &[0, 1])?;
        let numbers = columns[key].as_primitive::<Int32Type>();
        let texts = columns[1 - key].as_string_view();
        let mut found = Vec::new();
        for (number, text) in numbers.values().iter().zip(texts.iter()) {
            let number = number.cast_unsigned();
            assert_eq!(text, Some(&*text_of_row(number)), "row {number}");
            found.push(number);
        }
        found.sort_unstable();
        of_each.push(found);
    }
    let of_index = of_each.pop().unwrap();
    let of_table = of_each.pop().unwrap();
    assert_eq!(of_table, of_index);
    Ok(of_table)
}

/// Opens the database for reading.
pub(crate) fn open(file_system: &Arc<dyn FileSystem>) -> Result<Arc<Database>> {
    let opened = Database::open_with(Arc::clone(file_system), Path::new(DIRECTORY));
    opened.map(Arc::new)
}

/// Goes on by a second with each look at it.
#[derive(Debug)]
struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed)
    }
}

/// A writer's settings that depend on nothing outside.
pub(crate) fn options() -> WriterOptions {
    WriterOptions {
        // Later than what the machine's clock says, and after all that was committed before.
        clock: Arc::new(SteppingClock(AtomicI64::new(1 << 52))),
        // So few that most workloads give up some.
        retention: Retention {
            commits_max: 12,
            ..Retention::default()
        },
        // Both ways of clearing a graph.
        whole_graph_quads: 12,
        ..WriterOptions::default()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence for the same seed, for ever.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Some quads near each other, so that insertions and deletions meet.
    pub(crate) fn numbers(&mut self, count_max: usize) -> Vec<u32> {
        let count = 1 + self.below(count_max);
        let start = self.below(QUADS as usize);
        let numbers = (0..count).map(|_| (start + self.below(40)) as u32 % QUADS);
        numbers.collect()
    }
}
