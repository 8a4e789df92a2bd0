//! `COPY` as a session runs it: which of its forms it is, and where its bytes come from or go to.

use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::sql::sqlparser::ast::{self, CopySource, CopyTarget};

use crate::copy::{CopyFrom, CopyIn, CopyOut, CopyTo, Source, write_file};
use crate::outcome::Outcome;
use crate::session::{Session, first_word};
use crate::tag::Tag;
use crate::transaction::watch;
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
                let columns = copy.given(self.looked_at()?.tables())?.len();
                let session = self.clone();
                // The block may be over before the task begins.
                let block = self.block.lock().number();
                Ok(Outcome::CopyIn(CopyIn::begin(
                    columns,
                    |pieces| async move {
                        if session.block.lock().number() != block {
                            return Err(Error::new(
                                SqlState::QueryCanceled,
                                "the transaction of COPY FROM STDIN is over",
                            ));
                        }
                        let source = Source::Client(pieces, session.options.idle_max);
                        let done = session.copy_rows(&copy, source).await;
                        watch(&session.block, session.options.idle_max);
                        done.map(Tag::Copy)
                    },
                )))
            }
            CopyTarget::Stdout | CopyTarget::Program { .. } => {
                Err(Error::unsupported(format!("COPY FROM {target}")))
            }
        }
    }

    async fn copy_rows(&self, copy: &CopyFrom, source: Source) -> Result<u64> {
        let mut change = self.begin_change(|| "COPY FROM".to_owned()).await?;
        let savepoint = change.savepoint()?;
        let done = copy.run(&mut change, source).await;
        self.end_change(change, &savepoint, done).await
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
        let rows = self.failing(planner.stream(&plan, "").await?);
        let columns = rows.schema().fields().len();
        let memory = MemoryConsumer::new("rows of a COPY").register(self.pool());
        let chunks = copy.chunks(rows, memory)?;
        Ok(match location {
            None => Outcome::CopyOut(CopyOut::new(columns, chunks)),
            Some(location) => Outcome::Done(Tag::Copy(write_file(&location, chunks).await?)),
        })
    }
}
