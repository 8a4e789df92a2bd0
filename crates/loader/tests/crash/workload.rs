//! A random sequence of everything that writes, with what must be there after each commit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use orrery_storage::io::FileSystem;
use orrery_storage::{CommitOptions, Database, Durability, Error, PendingCommit, Result, Writer};

use crate::world::{DIRECTORY, Random, State, content, open, options, rows};

/// Something that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A transaction, waited for.
    Commit,
    /// Three transactions that share a sync.
    Group,
    /// A transaction that is not waited for.
    Relaxed,
    /// A transaction that is given up.
    Rollback,
    /// All quads of a graph go.
    Clear,
    Checkpoint,
    Reopen,
}

impl Step {
    pub(crate) fn random(random: &mut Random) -> Self {
        match random.below(20) {
            0..8 => Self::Commit,
            8..10 => Self::Group,
            10..12 => Self::Relaxed,
            12 => Self::Rollback,
            13 => Self::Clear,
            14..18 => Self::Checkpoint,
            _ => Self::Reopen,
        }
    }
}

/// A database that is written, and what it should hold.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) file_system: Arc<dyn FileSystem>,
    random: Random,
    pub(crate) session: Option<Session>,
    /// By commit number: what the database holds after it. Also of commits whose fate is not known.
    pub(crate) states: BTreeMap<u64, State>,
    /// The last commit that was acknowledged as durable.
    pub(crate) acknowledged: u64,
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
    /// Creates an empty database and begins to write.
    pub(crate) fn create(file_system: Arc<dyn FileSystem>, seed: u64) -> Result<Self> {
        Database::create_or_open_with(Arc::clone(&file_system), Path::new(DIRECTORY))?;
        let mut workload = Self {
            file_system,
            random: Random(seed),
            session: None,
            states: BTreeMap::new(),
            acknowledged: 0,
        };
        let session = Session::open(&workload.file_system)?;
        let first = session.database.snapshot().commit();
        workload.states.insert(first, State::new());
        workload.acknowledged = first;
        workload.session = Some(session);
        Ok(workload)
    }

    /// Goes on with a database that is there, after its last commit.
    pub(crate) fn continued(
        file_system: Arc<dyn FileSystem>,
        session: Session,
        last_commit: u64,
    ) -> Self {
        Self {
            file_system,
            random: Random(last_commit),
            session: Some(session),
            states: BTreeMap::new(),
            acknowledged: last_commit,
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
            Step::Reopen => self.reopen()?,
        }
        Ok(())
    }

    /// Random deletions, then random insertions; perhaps they change nothing.
    fn commit(&mut self, durability: Durability) -> Result<PendingCommit> {
        let deleted = self.random.numbers(10);
        let inserted = self.random.numbers(20);
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
        let number = transaction.begins_after() + 1;
        if changes != (0, 0) {
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

    fn clear(&mut self) -> Result<()> {
        let any = self.random.numbers(1)[0];
        let mut transaction = self.writer()?.begin()?;
        let graph = rows(&mut transaction, [any])?[0][3];
        let before = &self.states[&transaction.begins_after()];
        let mut state = before.clone();
        state.retain(|&number| crate::world::quad(number).3 != crate::world::quad(any).3);
        let count = (before.len() - state.len()) as u64;
        assert_eq!(transaction.clear_graph(graph)?, count);
        let number = transaction.begins_after() + 1;
        if count > 0 {
            self.states.insert(number, state);
        }
        let committed = transaction.commit(CommitOptions::default());
        if let Err(Error::NoSpace { .. }) = &committed {
            self.states.remove(&number);
        }
        self.acknowledged = committed?.wait()?;
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

    /// What the database should hold now.
    pub(crate) fn state(&self) -> &State {
        self.states.last_key_value().expect("at least the first").1
    }
}
