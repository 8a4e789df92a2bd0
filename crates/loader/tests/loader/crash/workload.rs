//! A random workload of all kinds of writes, with the expected state after each commit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use orrery_loader::{
    CompactOptions, LoadError, LoadOptions, Progress, SilentProgress, Source, Stage, compact,
    load_into,
};
use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::table::DefinitionChange;
use orrery_storage::text::TextRules;
use orrery_storage::{
    At, CommitOptions, Database, Durability, Error, GraphSet, PendingCommit, Result, Transaction,
    Writer,
};

use crate::crash::world::{
    DIRECTORY, QUADS, ROWS, Random, State, TABLE, content, definition, line, open, options, places,
    row_arrays, rows,
};

/// Something that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A transaction, waited for.
    Commit,
    /// Three transactions that share a sync.
    Group,
    /// A transaction that is not waited for.
    Relaxed,
    /// Relaxed transactions between durable ones that nobody has waited for yet.
    Mixed,
    /// A transaction that is given up.
    Rollback,
    /// All quads of a graph, of all named ones or of all go.
    Clear,
    Checkpoint,
    Compact,
    /// A compaction, and transactions that come while it is under way.
    CompactBeside,
    /// Changes of the table are brought into its files.
    CompactTable,
    /// A bulk load into the open database.
    Load,
    /// The index of texts is given up, made, or made anew, in a workload that has one.
    Texts,
    Reopen,
}

impl Step {
    pub(crate) fn random(random: &mut Random) -> Self {
        match random.below(27) {
            0..6 => Self::Commit,
            6..8 => Self::Mixed,
            8..10 => Self::Group,
            10..12 => Self::Relaxed,
            12 => Self::Rollback,
            13..15 => Self::Clear,
            15..18 => Self::Checkpoint,
            18 => Self::Compact,
            19 => Self::CompactBeside,
            20 => Self::Load,
            21..23 => Self::CompactTable,
            23 => Self::Texts,
            _ => Self::Reopen,
        }
    }
}

const LOAD_MEMORY_BYTES: u64 = 64 << 20;

fn compact_options() -> CompactOptions {
    CompactOptions {
        memory_bytes: LOAD_MEMORY_BYTES,
        threads: 1,
    }
}

/// The only way in which a load may fail here.
fn storage_error(error: LoadError) -> Error {
    match error {
        LoadError::Storage(error) => error,
        LoadError::Input { name, source } => Error::from_io(Path::new(&name), "read", source),
        other => panic!("{other}"),
    }
}

/// A database that is written, and what it should hold.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) file_system: Arc<dyn FileSystem>,
    random: Random,
    pub(crate) session: Option<Session>,
    has_texts: bool,
    /// By commit number: what the database holds after it. Also of commits whose fate is not known.
    pub(crate) states: BTreeMap<u64, State>,
    /// The last commit that was acknowledged as durable.
    pub(crate) acknowledged: u64,
    /// The disk, if it counts operations.
    pub(crate) disk: Option<RecordingFileSystem>,
    /// How many operations there were when commits within a step were acknowledged, and their
    /// numbers.
    pub(crate) acknowledged_within: Vec<(usize, u64)>,
}

/// Commits whenever the compaction has come a stage further.
struct Meanwhile<'w>(Mutex<Committing<'w>>);

struct Committing<'w> {
    workload: &'w mut Workload,
    outcome: Result<()>,
}

impl Progress for Meanwhile<'_> {
    fn begin(&self, _stage: Stage, _total: Option<u64>) {
        let mut committing = self.0.lock().unwrap();
        if committing.outcome.is_ok() {
            committing.outcome = committing.workload.commit_within();
        }
    }
}

/// An open database with its writer.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) writer: Writer,
    pub(crate) database: Arc<Database>,
}

impl Session {
    pub(crate) fn open(file_system: &Arc<dyn FileSystem>) -> Result<Self> {
        let database = open(file_system)?;
        let writer = database.open_writer(options())?;
        Ok(Self { writer, database })
    }
}

impl Workload {
    /// Creates an empty database and begins to write. One with an index of texts takes some ten
    /// times as long, so most are without.
    pub(crate) fn create(
        file_system: Arc<dyn FileSystem>,
        seed: u64,
        has_texts: bool,
    ) -> Result<Self> {
        let database =
            Database::create_or_open_with(Arc::clone(&file_system), Path::new(DIRECTORY))?;
        if has_texts {
            let texts = database.set_text_rules(Some(TextRules::default()), Some(1 << 20))?;
            assert!(texts.text_rules().is_some());
        }
        let mut workload = Self {
            file_system,
            random: Random(seed),
            session: None,
            has_texts,
            states: BTreeMap::new(),
            acknowledged: 0,
            disk: None,
            acknowledged_within: Vec::new(),
        };
        let session = Session::open(&workload.file_system)?;
        let first = session.database.snapshot().commit();
        workload.states.insert(first, State::new());
        let mut transaction = session.writer.begin()?;
        transaction.define(DefinitionChange::CreateTable(definition()))?;
        workload.states.insert(first + 1, State::new());
        workload.acknowledged = transaction.commit(CommitOptions::default())?.wait()?;
        workload.session = Some(session);
        Ok(workload)
    }

    /// Goes on with a database that is there, after its last commit.
    pub(crate) fn continued(
        file_system: Arc<dyn FileSystem>,
        session: Session,
        last_commit: u64,
    ) -> Self {
        let has_texts = session.database.snapshot().text_rules().is_some();
        Self {
            file_system,
            random: Random(last_commit),
            session: Some(session),
            has_texts,
            states: BTreeMap::new(),
            acknowledged: last_commit,
            disk: None,
            acknowledged_within: Vec::new(),
        }
    }

    /// One random step.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let step = Step::random(&mut self.random);
        self.run(step)?;
        Ok(step)
    }

    pub(crate) fn run(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Commit => {
                let pending = self.commit(Durability::Durable)?;
                self.acknowledged = pending.wait()?;
            }
            Step::Group => {
                let commits = (0..3).map(|_| self.commit(Durability::Durable));
                let pending = commits.collect::<Result<Vec<_>>>()?;
                // Whoever waits for the last one has all of them.
                for pending in pending.into_iter().rev() {
                    self.acknowledged = self.acknowledged.max(pending.wait()?);
                }
            }
            Step::Relaxed => {
                self.commit(Durability::Relaxed)?.wait()?;
            }
            Step::Mixed => self.mixed()?,
            Step::Rollback => {
                let numbers = self.random.numbers(30);
                let mut transaction = self.writer()?.begin()?;
                let mut rows = rows(&mut transaction, numbers)?;
                transaction.insert(&mut rows)?;
            }
            Step::Clear => self.clear()?,
            Step::Checkpoint => {
                self.writer()?.checkpoint()?;
            }
            Step::Compact => {
                compact(&self.writer()?, &compact_options(), &SilentProgress)
                    .map_err(storage_error)?;
            }
            Step::CompactBeside => {
                let writer = self.writer()?;
                let meanwhile = Meanwhile(Mutex::new(Committing {
                    workload: self,
                    outcome: Ok(()),
                }));
                let compacted = compact(&writer, &compact_options(), &meanwhile);
                meanwhile.0.into_inner().unwrap().outcome?;
                compacted.map_err(storage_error)?;
            }
            Step::CompactTable => self.compact_table()?,
            Step::Load => self.load()?,
            Step::Texts => self.change_texts()?,
            Step::Reopen => self.reopen()?,
        }
        Ok(())
    }

    /// Durable and relaxed commits in a row. Whatever durable one a reader has seen is as good as
    /// acknowledged.
    fn mixed(&mut self) -> Result<()> {
        let mut durable = Vec::new();
        for is_durable in [true, false, true, false, false] {
            let durability = match is_durable {
                true => Durability::Durable,
                false => Durability::Relaxed,
            };
            let pending = self.commit(durability)?;
            match is_durable {
                true => durable.push(pending),
                false => drop(pending.wait()?),
            }
            let session = self.session.as_ref().expect("a session is open");
            let seen = session.database.snapshot().commit();
            // One that changed nothing has the number of another, which may be a relaxed one.
            let made = durable
                .iter()
                .filter(|made| made.added() + made.removed() > 0);
            let seen = made
                .map(PendingCommit::number)
                .filter(|&number| number <= seen);
            if let Some(number) = seen.max() {
                self.acknowledge_now(number);
            }
        }
        for pending in durable {
            let number = pending.wait()?;
            self.acknowledge_now(number);
        }
        Ok(())
    }

    /// Notes a commit, and after how many operations it had to be on the disk.
    fn acknowledge_now(&mut self, number: u64) {
        self.acknowledged = self.acknowledged.max(number);
        if let Some(disk) = &self.disk {
            let operations = disk.operations();
            self.acknowledged_within
                .push((operations, self.acknowledged));
        }
    }

    /// A commit while another step is under way.
    fn commit_within(&mut self) -> Result<()> {
        let pending = self.commit(Durability::Durable)?;
        let number = pending.wait()?;
        self.acknowledge_now(number);
        Ok(())
    }

    /// Random deletions, then random insertions; perhaps they change nothing.
    fn commit(&mut self, durability: Durability) -> Result<PendingCommit> {
        let deleted = self.random.numbers(10);
        let inserted = self.random.numbers(20);
        let rows_of_table = self.random.below(3) == 0;
        let (row_start, row_count) = (self.random.below(ROWS as usize), self.random.below(20));
        let is_rewritten = self.random.below(4) == 0;
        let mut transaction = self.writer()?.begin()?;
        let before = &self.states[&transaction.begins_after()];
        let mut state = before.clone();
        let mut expected = [0, 0];
        for number in &deleted {
            expected[0] += u64::from(state.remove(number));
        }
        for &number in &inserted {
            expected[1] += u64::from(state.insert(number));
        }
        let changes = (
            state.difference(before).count(),
            before.difference(&state).count(),
        );
        let mut deleted = rows(&mut transaction, deleted)?;
        assert_eq!(transaction.delete(&mut deleted)?, expected[0]);
        let mut inserted = rows(&mut transaction, inserted)?;
        assert_eq!(transaction.insert(&mut inserted)?, expected[1]);
        // A database whose power went before the table was made has none.
        if rows_of_table && transaction.tables().table(TABLE).is_some() {
            let rows = row_start..ROWS.min((row_start + row_count) as u32) as usize;
            change_rows(&mut transaction, &mut state, rows, is_rewritten)?;
        }
        let number = transaction.begins_after() + 1;
        if state != self.states[&transaction.begins_after()] {
            // From here on nobody knows, unless it is acknowledged or refused.
            self.states.insert(number, state);
        }
        let committed = transaction.commit(CommitOptions {
            durability,
            ..CommitOptions::default()
        });
        if let Err(Error::NoSpace { .. }) = &committed {
            self.states.remove(&number);
        }
        let pending = committed?;
        let told = (pending.added() as usize, pending.removed() as usize);
        assert_eq!(told, changes);
        Ok(pending)
    }

    /// An index of texts is made, made anew or given up: no commit.
    fn change_texts(&mut self) -> Result<()> {
        if !self.has_texts {
            return Ok(());
        }
        let writer = self.writer()?;
        let is_there = writer.database().snapshot().text_rules().is_some();
        let is_made = !is_there || self.random.below(3) > 0;
        let rules = is_made.then(TextRules::default);
        let after = writer.set_text_rules(rules, Some(1 << 20))?;
        assert_eq!(after.text_rules().is_some(), is_made);
        Ok(())
    }

    fn compact_table(&mut self) -> Result<()> {
        let writer = self.writer()?;
        let before = writer.begin()?.begins_after();
        let state = self.states[&before].clone();
        self.states.insert(before + 1, state);
        let is_done = writer.compact_table(TABLE);
        if matches!(is_done, Ok(false) | Err(Error::NoSpace { .. })) {
            self.states.remove(&(before + 1));
        }
        if is_done? {
            self.acknowledged = before + 1;
        }
        Ok(())
    }

    /// Clears a graph, all named ones or all, as a whole where they have quads enough; then inserts
    /// a few quads again.
    fn clear(&mut self) -> Result<()> {
        let any = self.random.numbers(1)[0];
        let which = self.random.below(4);
        let inserted = match self.random.below(2) {
            0 => Vec::new(),
            _ => self.random.numbers(20),
        };
        let mut transaction = self.writer()?.begin()?;
        let graphs = match which {
            0 => GraphSet::all(),
            1 => GraphSet::named(),
            _ => GraphSet::one(rows(&mut transaction, [any])?[0][3]),
        };
        let is_in = |number: u32| match which {
            _ if number >= QUADS => false,
            0 => true,
            1 => crate::crash::world::quad(number).3.is_some(),
            _ => crate::crash::world::quad(number).3 == crate::crash::world::quad(any).3,
        };
        let before = &self.states[&transaction.begins_after()];
        let mut state = before.clone();
        state.retain(|&number| !is_in(number));
        let count = (before.len() - state.len()) as u64;
        assert_eq!(transaction.clear(&graphs)?, count);
        state.extend(&inserted);
        let mut inserted = rows(&mut transaction, inserted)?;
        transaction.insert(&mut inserted)?;
        let changes = (
            state.difference(before).count(),
            before.difference(&state).count(),
        );
        let number = transaction.begins_after() + 1;
        if changes != (0, 0) {
            self.states.insert(number, state);
        }
        let committed = transaction.commit(CommitOptions::default());
        if let Err(Error::NoSpace { .. }) = &committed {
            self.states.remove(&number);
        }
        let pending = committed?;
        let told = (pending.added() as usize, pending.removed() as usize);
        assert_eq!(told, changes);
        self.acknowledged = pending.wait()?;
        Ok(())
    }

    fn load(&mut self) -> Result<()> {
        let numbers = self.random.numbers(40);
        // On the same disk, so that reading it may fail, too.
        let path = Path::new("/source.nq");
        let mut file = self.file_system.create(path)?;
        for &number in &numbers {
            file.append(line(number).as_bytes())?;
        }
        file.flush()?;
        let options = LoadOptions {
            memory_bytes: LOAD_MEMORY_BYTES,
            threads: 1,
            // Some texts are longer: they pass through files of their own.
            literal_bytes_max: 4096,
            ..LoadOptions::default()
        };
        let writer = self.writer()?;
        let before = writer.begin()?.begins_after();
        let mut state = self.states[&before].clone();
        state.extend(numbers);
        // What brings nothing new is no commit.
        let after = before + u64::from(state != self.states[&before]);
        self.states.insert(after, state);
        let sources = [Source::File(path.to_path_buf())];
        load_into(&writer, &sources, &options, &SilentProgress).map_err(storage_error)?;
        self.acknowledged = writer.database().snapshot().commit();
        assert_eq!(self.acknowledged, after);
        Ok(())
    }

    /// Ends the session and begins another; finds out which commits there are.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        self.session = None;
        let session = Session::open(&self.file_system)?;
        let snapshot = session.database.snapshot();
        let last = snapshot.commit();
        assert!(last >= self.acknowledged, "{last} of {}", self.acknowledged);
        assert_eq!(content(&snapshot)?, self.states[&last]);
        self.states.split_off(&(last + 1));
        self.acknowledged = last;
        self.session = Some(session);
        Ok(())
    }

    fn writer(&self) -> Result<Writer> {
        let session = self.session.as_ref();
        Ok(session.expect("a session is open").writer.clone())
    }

    /// Compares an older state, if it is one that can still be read.
    pub(crate) fn check_older(&self, database: &Database, older: u64) -> Result<()> {
        match database.snapshot_at(At::Commit(older)) {
            Ok(old) => assert_eq!(content(&old)?, self.states[&older]),
            Err(Error::NoSuchCommit { .. }) => {
                let mut kept = database.commits()?.into_iter();
                assert!(
                    kept.all(|kept| kept.number != older),
                    "{older} is in the list"
                );
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// What the database should hold now.
    pub(crate) fn state(&self) -> &State {
        self.states.last_key_value().expect("at least the first").1
    }
}

/// Of the rows of the table with these numbers those that are there go, and the others come; then
/// perhaps all are written to other files.
fn change_rows(
    transaction: &mut Transaction,
    state: &mut State,
    numbers: Range<usize>,
    is_rewritten: bool,
) -> Result<()> {
    let numbers = numbers.map(|number| number as u32);
    let is_there = |number: &u32| state.contains(&(QUADS + number));
    let (gone, come): (Vec<u32>, Vec<u32>) = numbers.partition(is_there);
    let table = |transaction: &Transaction| {
        let table = transaction.tables().table(TABLE);
        table.expect("the table is there").clone()
    };
    let places = places(&table(transaction), &gone)?;
    assert_eq!(transaction.delete_rows(TABLE, places)?, gone.len() as u64);
    let arrays = row_arrays(&come);
    assert_eq!(transaction.insert_rows(TABLE, &arrays)?, come.len() as u64);
    if is_rewritten && !(gone.is_empty() && come.is_empty()) {
        let rows = table(transaction);
        let mut rewrite = transaction.rewrite_table(TABLE)?;
        rewrite.write_state(&rows, &|| false)?;
        transaction.put_rewritten(rewrite, rows.next_row_number())?;
    }
    state.retain(|number| *number < QUADS || !gone.contains(&(number - QUADS)));
    state.extend(come.iter().map(|number| QUADS + number));
    Ok(())
}
