//! `COPY` in a session: its form, and the source or target of its bytes.
//!
//! What a client sends is kept until it has sent all of it, and only then the turn of the writers
//! is taken. A block in which a `COPY` does not come to its end has failed, also where nobody waits
//! for that end any more.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::sql::sqlparser::ast::{self, CopySource, CopyTarget};

use parking_lot::Mutex;

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::copy::{CopyFrom, CopyIn, CopyOut, CopyTo, Pieces, Source, Spool, write_file};
use crate::session::client::{Session, first_word};
use crate::transactions::block::{AtWork, Block, BlockNumber, watch};
use crate::{Error, Result, SqlState};

impl Session {
    /// `COPY`, from and to files and the client.
    pub(crate) async fn copy(&self, statement: &ast::Statement) -> Result<Outcome> {
        let ast::Statement::Copy {
            source,
            to,
            target,
            options,
            ..
        } = statement
        else {
            return Err(Error::unsupported(first_word(statement)));
        };
        match (source, to) {
            (
                CopySource::Table {
                    table_name,
                    columns,
                },
                false,
            ) => {
                let copy = CopyFrom::new(table_name, columns, options)?;
                self.copy_from(copy, target).await
            }
            (source, _) => {
                let copy = CopyTo::new(source, options)?;
                self.copy_to(&copy, target).await
            }
        }
    }

    async fn copy_from(&self, copy: CopyFrom, target: &CopyTarget) -> Result<Outcome> {
        let environment = self.state.runtime_env();
        match target {
            CopyTarget::File { filename } => {
                let location = self.options.files.open(filename, environment)?;
                let files = location.files(|_| true).await?;
                let count = self.copy_rows(&copy, Source::Files(files)).await?;
                Ok(Outcome::Done(Tag::Copy(count)))
            }
            CopyTarget::Stdin => {
                if copy.is_parquet() {
                    return Err(Error::unsupported(
                        "COPY FROM STDIN with the format parquet",
                    ));
                }
                self.may_change(|| "COPY FROM".to_owned())?;
                let snapshot = self.looked_at()?;
                let seen = self.tables_in(&snapshot);
                if let Some(sight) = &self.sight {
                    // Before the client sends anything.
                    copy.require_rows(sight, snapshot.tables(), &seen)?;
                }
                let columns = copy.given(&seen)?.len();
                let session = self.clone();
                let unfinished = Unfinished::new(&self.block);
                Ok(Outcome::CopyIn(CopyIn::begin(
                    columns,
                    |pieces| async move {
                        let done = session.copy_sent(&copy, pieces, unfinished).await;
                        watch(&session.block, session.idle_max());
                        done.map(Tag::Copy)
                    },
                )))
            }
            CopyTarget::Stdout | CopyTarget::Program { .. } => {
                Err(Error::unsupported(format!("COPY FROM {target}")))
            }
        }
    }

    /// Waits for all that the client sends; then it is inserted.
    async fn copy_sent(
        &self,
        copy: &CopyFrom,
        pieces: Pieces,
        unfinished: Unfinished,
    ) -> Result<u64> {
        let memory = MemoryConsumer::new("what a client sends for COPY").register(self.pool());
        let disk = Arc::clone(&self.state.runtime_env().disk_manager);
        let mut spool = Spool::new(memory, disk);
        {
            // Whoever sends is there; whoever does not is told by the spool, where others wait for
            // the block.
            let _at_work = AtWork::new(&self.block);
            let holds_turn = self.block.lock().holds_turn();
            let idle_max = holds_turn.then_some(self.options.idle_max);
            spool.receive(pieces, idle_max).await?;
        }
        if self.block.lock().number() != unfinished.number {
            return Err(Error::new(
                SqlState::QueryCanceled,
                "the transaction of COPY FROM STDIN is over",
            ));
        }
        let source = Source::Client(spool.into_bytes()?);
        let count = self.copy_rows(copy, source).await?;
        unfinished.end();
        Ok(count)
    }

    async fn copy_rows(&self, copy: &CopyFrom, source: Source) -> Result<u64> {
        let mut change = self.begin_change(|| "COPY FROM".to_owned()).await?;
        let savepoint = change.savepoint()?;
        let done = copy.run(&mut change, source).await;
        self.end_change(change, &savepoint, done, |rows| *rows)
            .await
    }

    async fn copy_to(&self, copy: &CopyTo, target: &CopyTarget) -> Result<Outcome> {
        let location = match target {
            CopyTarget::Stdout if copy.is_parquet() => {
                return Err(Error::unsupported("COPY TO STDOUT with the format parquet"));
            }
            CopyTarget::Stdout => None,
            CopyTarget::File { filename } => {
                let environment = self.state.runtime_env();
                Some(self.options.files.open(filename, environment)?)
            }
            CopyTarget::Stdin | CopyTarget::Program { .. } => {
                return Err(Error::unsupported(format!("COPY TO {target}")));
            }
        };
        let planner = self.planner(&self.seen()?);
        let plan = planner.query(copy.query.clone(), "").await?;
        let rows = planner.stream(&plan, "").await?;
        let rows = match location {
            None => self.answer(rows),
            Some(_) => self.failing(rows),
        };
        let columns = rows.schema().fields().len();
        let memory = MemoryConsumer::new("rows of a COPY").register(self.pool());
        let chunks = copy.chunks(rows, memory)?;
        Ok(match location {
            None => Outcome::CopyOut(CopyOut::new(columns, chunks)),
            Some(location) => {
                let count = write_file(&location, chunks).await?;
                self.note_touches(|| count);
                Outcome::Done(Tag::Copy(count))
            }
        })
    }
}

/// A `COPY` that has not come to its end: if it does not, its block has failed.
pub(crate) struct Unfinished {
    block: Arc<Mutex<Block>>,
    number: Option<BlockNumber>,
    is_done: bool,
}

impl Unfinished {
    pub(crate) fn new(block: &Arc<Mutex<Block>>) -> Self {
        Self {
            block: Arc::clone(block),
            number: block.lock().number(),
            is_done: false,
        }
    }

    pub(crate) fn end(mut self) {
        self.is_done = true;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_done {
            self.block.lock().fail_statement(self.number);
        }
    }
}
