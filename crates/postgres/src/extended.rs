//! The extended query protocol: Parse, Bind, Describe and Execute, with rows whole or in portions.
//!
//! ```text
//!   Parse -> statement    Bind statement, values -> portal
//!   Execute portal, at most n rows -> rows, then CommandComplete or PortalSuspended
//! ```
//!
//! Changes between two Syncs are one transaction, as in PostgreSQL. One that Sync follows at once
//! is committed by itself.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::BufMut;
use futures::future::BoxFuture;
use orrery_sql::{
    CopyIn, HeldRows, Kept, Outcome, Paused, Prepared, Rows, ScalarValue, Session, Tag,
};

use crate::connection::Connection;
use crate::encode::{is_binary, put_columns};
use crate::frontend::{Bind, Frontend, Target};
use crate::message::put_message;
use crate::parameters;
use crate::portal::{Answer, Portal, PortalState, Suspended};
use crate::refusal::{Refusal, Stopped};
use crate::types::{TEXT, oid_of, told};

/// A statement that the client has prepared, by Parse or by PREPARE.
struct Known {
    /// None for an empty text.
    prepared: Option<Arc<Prepared>>,
    /// The types of its parameters, as reported to the client.
    types: Arc<[u32]>,
}

/// The result of a statement's begin.
enum Begun {
    /// Rows to be sent.
    Rows(Box<Answer>),
    /// A COPY that waits for the client's data.
    CopyIn(CopyIn),
    /// CommandComplete was sent.
    Done,
}

/// Where a portal's rows continue.
enum SentFrom<'a> {
    /// At the first row: the statement and its values, should it have to run anew.
    Start(&'a Prepared, &'a [ScalarValue]),
    /// In the middle: the paused account, and the memory of what waited.
    Middle(Option<Paused>, HeldRows),
}

impl Begun {
    fn rows(answer: Answer) -> Self {
        Self::Rows(Box::new(answer))
    }
}

/// Most portals of a client.
const PORTALS_MAX: usize = 1_000;
/// Most suspended portals of a client: those that have sent some rows.
const SUSPENDED_MAX: usize = 100;

impl Connection {
    /// Answers any message but a simple query.
    pub(crate) async fn extended(&mut self, message: Frontend) -> Stopped<()> {
        match message {
            Frontend::Parse { name, text, types } => {
                let parsed = self.parse(&name, &text, &types).await;
                if parsed.is_err() {
                    // A prepared statement appears in the list when it runs.
                    self.watch(&text);
                }
                parsed
            }
            Frontend::Bind(bind) => Ok(self.bind(bind)?),
            Frontend::Describe(target) => Ok(self.describe(&target)?),
            Frontend::Execute { portal, rows_max } => self.execute(&portal, rows_max).await,
            Frontend::Close(target) => {
                self.close(&target);
                Ok(())
            }
            Frontend::Flush => Ok(self.wire.flush().await?),
            // Data of a COPY that has failed already.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Password(_) => {
                Err(Refusal::fatal("08P01", "a password was not asked for").into())
            }
            Frontend::Query(_) | Frontend::Sync | Frontend::Terminate | Frontend::Skipped => {
                Err(Refusal::fatal("XX000", "a message went the wrong way").into())
            }
        }
    }

    async fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Stopped<()> {
        if name.is_empty() {
            self.forget_unnamed();
        } else if self.session.kept_statement(name).is_some() {
            return Err(Refusal::new(
                "42P05",
                format!("prepared statement \"{name}\" already exists"),
            )
            .into());
        }
        let told = types.iter().map(|oid| {
            told(*oid).ok_or_else(|| {
                Refusal::new(
                    "0A000",
                    format!("parameters of the type {oid} are not supported"),
                )
            })
        });
        let told: Vec<_> = told.collect::<Result<_, _>>()?;
        let _turn = self.begin_statement().await?;
        let prepared = self.session.prepare_told(text, &told);
        let prepared = self.guard.run(&mut self.wire, prepared).await?;
        let prepared = prepared.map(Arc::new);
        let kept = Kept {
            types: Some(types_of(prepared.as_deref(), types)),
            prepared,
        };
        self.session.keep(name, kept)?;
        put_message(&mut self.wire.output, b'1', |_| {});
        Ok(())
    }

    fn require(&self, name: &str) -> Result<Known, Refusal> {
        let kept = self.session.kept_statement(name);
        let known = kept.map(|kept| Known {
            types: (kept.types).unwrap_or_else(|| types_of(kept.prepared.as_deref(), &[])),
            prepared: kept.prepared,
        });
        known.ok_or_else(|| match name {
            "" => Refusal::new("26000", "unnamed prepared statement does not exist"),
            name => Refusal::new(
                "26000",
                format!("prepared statement \"{name}\" does not exist"),
            ),
        })
    }

    /// Forgets the unnamed statement, where the next one without a name comes.
    pub(crate) fn forget_unnamed(&mut self) {
        self.session.forget("");
    }

    fn bind(&mut self, bind: Bind) -> Result<(), Refusal> {
        let known = self.require(&bind.statement)?;
        if bind.values.len() != known.types.len() {
            return Err(Refusal::new(
                "08P01",
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                    bind.values.len(),
                    bind.statement,
                    known.types.len()
                ),
            ));
        }
        if bind.formats.len() > 1 && bind.formats.len() != bind.values.len() {
            return Err(Refusal::new(
                "08P01",
                format!(
                    "bind message has {} parameter formats but {} parameters",
                    bind.formats.len(),
                    bind.values.len()
                ),
            ));
        }
        let formats = bind.formats.iter().chain(&bind.result_formats);
        if let Some(format) = formats.copied().find(|format| !matches!(format, 0 | 1)) {
            return Err(Refusal::new(
                "22023",
                format!("unsupported format code: {format}"),
            ));
        }
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(Refusal::new(
                "42P03",
                format!("cursor \"{}\" already exists", bind.portal),
            ));
        }
        if self.portals.len() >= PORTALS_MAX {
            return Err(Refusal::new(
                "54000",
                format!("there are {PORTALS_MAX} portals already"),
            ));
        }
        let values = bind.values.iter().zip(known.types.iter()).enumerate();
        let values = values.map(|(place, (bytes, oid))| {
            parameters::value(*oid, is_binary(&bind.formats, place), bytes.as_ref())
        });
        let values: Vec<ScalarValue> = values.collect::<Result<_, _>>()?;
        let portal = Portal {
            prepared: known.prepared,
            formats: bind.result_formats,
            _held: self.session.hold_values(&values)?,
            state: PortalState::Bound(values),
        };
        self.portals.insert(bind.portal, portal);
        put_message(&mut self.wire.output, b'2', |_| {});
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> Result<(), Refusal> {
        let (prepared, formats) = match target {
            Target::Statement(name) => {
                let known = self.require(name)?;
                put_message(&mut self.wire.output, b't', |body| {
                    body.put_u16(u16::try_from(known.types.len()).unwrap_or(u16::MAX));
                    known.types.iter().for_each(|oid| body.put_u32(*oid));
                });
                (known.prepared, Vec::new())
            }
            Target::Portal(name) => {
                let Some(portal) = self.portals.get(name) else {
                    // A cursor is a portal that SQL has made.
                    let columns = self.session.cursor_columns(name);
                    let columns = columns.ok_or_else(|| no_portal(name))?;
                    put_columns(&mut self.wire.output, &columns, &[]);
                    return Ok(());
                };
                (portal.prepared.clone(), portal.formats.clone())
            }
        };
        match prepared.as_ref().and_then(|prepared| prepared.columns()) {
            Some(columns) => put_columns(&mut self.wire.output, columns, &formats),
            None => put_message(&mut self.wire.output, b'n', |_| {}),
        }
        Ok(())
    }

    fn close(&mut self, target: &Target) {
        match target {
            Target::Statement(name) => {
                self.session.forget(name);
            }
            Target::Portal(name) => {
                self.portals.remove(name);
            }
        }
        put_message(&mut self.wire.output, b'3', |_| {});
    }

    async fn execute(&mut self, name: &str, rows_max: usize) -> Stopped<()> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let Some(prepared) = portal.prepared.clone() else {
            put_message(&mut self.wire.output, b'I', |_| {});
            return Ok(());
        };
        let formats = portal.formats.clone();
        if portal.is_suspended() {
            // The block stays failed: going back to a savepoint ends the failure.
            self.session.go_on()?;
        }
        // A failure on the way leaves the portal done.
        let Suspended {
            answer,
            began,
            watched,
            paused,
            held,
        } = match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Bound(values) => {
                self.watch(prepared.text());
                let turn = self.begin_statement().await?;
                return match self.begin(&prepared, &values).await? {
                    Begun::Rows(answer) => {
                        let from = SentFrom::Start(&prepared, &values);
                        self.send(name, *answer, &formats, rows_max, from).await
                    }
                    Begun::Done => Ok(()),
                    Begun::CopyIn(copy) => {
                        // Others compute while the client sends.
                        drop(turn);
                        let tag = self.copy_in(copy).await?;
                        self.put_complete(tag);
                        Ok(())
                    }
                };
            }
            PortalState::Suspended(suspended) => *suspended,
            PortalState::Done => {
                return Err(
                    Refusal::new("55000", format!("portal \"{name}\" cannot be run")).into(),
                );
            }
        };
        self.go_on_watching(watched);
        let _turn = self.begin_statement().await?;
        self.session.require_scope(began.as_ref())?;
        // The query's cost counts where it began; this statement pays for its own work.
        let _resumed = self.session.resume(paused.as_ref());
        let from = SentFrom::Middle(paused, held);
        self.send(name, answer, &formats, rows_max, from).await
    }

    /// Begins to run a statement.
    async fn begin(&mut self, prepared: &Arc<Prepared>, values: &[ScalarValue]) -> Stopped<Begun> {
        let before = self.session.transaction_status();
        let statement = prepared.statement();
        // Rows of a change are sent before it is committed, as nothing may fail behind the commit.
        if self.session.does_change_with_rows(statement)
            || self.session.does_change(statement) && self.wire.next_kind() != Some(b'S')
        {
            self.begin_implicit();
        }
        let outcome = self.session.run(prepared, values);
        let outcome = self.guard.run(&mut self.wire, outcome).await?;
        let columns = prepared.columns().cloned();
        Ok(match outcome {
            Outcome::Done(tag) => {
                self.note_control(tag, before);
                self.put_complete(tag);
                Begun::Done
            }
            Outcome::Query(rows) => Begun::rows(answer_as_told(rows, columns, None)?),
            Outcome::Returned(rows, tag) => Begun::rows(answer_as_told(rows, columns, Some(tag))?),
            Outcome::CopyIn(copy) => Begun::CopyIn(copy),
            Outcome::CopyOut(copy) => {
                let tag = self.copy_out(copy).await?;
                self.put_complete(tag);
                Begun::Done
            }
        })
    }

    async fn send(
        &mut self,
        name: &str,
        mut answer: Answer,
        formats: &[i16],
        rows_max: usize,
        from: SentFrom<'_>,
    ) -> Stopped<()> {
        // Zero means all rows.
        let rows_max = if rows_max == 0 { usize::MAX } else { rows_max };
        let (is_over, paused) = match from {
            SentFrom::Start(prepared, values) => {
                let again = |session: Session| -> BoxFuture<'_, _> {
                    Box::pin(async move { session.run(prepared, values).await })
                };
                let sent = self.send_rows(&mut answer, rows_max, formats, again);
                (sent.await?, None)
            }
            SentFrom::Middle(paused, held) => {
                let (wire, guard) = (&mut self.wire, &mut self.guard);
                let is_over = answer.send(rows_max, formats, wire, guard).await?;
                // Its former memory is released first.
                drop(held);
                (is_over, paused)
            }
        };
        if is_over {
            self.put_complete(answer.tag());
            return Ok(());
        }
        let suspended = self.portals.values().filter(|it| it.is_suspended());
        if suspended.count() >= SUSPENDED_MAX {
            let message =
                format!("there are {SUSPENDED_MAX} portals already of which rows are to come");
            return Err(Refusal::new("54000", message).into());
        }
        let held = self.session.hold_waiting(answer.waiting())?;
        put_message(&mut self.wire.output, b's', |_| {});
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Suspended(Box::new(Suspended {
                answer,
                began: self.session.scope().cloned(),
                watched: self.watching.pause(&mut self.guard, &self.wire),
                paused: match paused {
                    Some(paused) => Some(paused.again()),
                    None => self.session.pause(),
                },
                held,
            }));
        }
        Ok(())
    }
}

/// The rows of an answer, if they have as many columns as the client was told.
fn answer_as_told(
    rows: Rows,
    told: Option<SchemaRef>,
    tag: Option<Tag>,
) -> Result<Answer, Refusal> {
    let told = told.filter(|told| told.fields().len() == rows.schema().fields().len());
    match told {
        Some(told) => Ok(Answer::new(rows, Some(told), tag)),
        None => Err(Refusal::new(
            "0A000",
            "cached plan must not change result type",
        )),
    }
}

fn no_portal(name: &str) -> Refusal {
    Refusal::new("34000", format!("portal \"{name}\" does not exist"))
}

/// The types of a statement's parameters: as the client set them, else as inferred, else text.
fn types_of(prepared: Option<&Prepared>, told: &[u32]) -> Arc<[u32]> {
    let found = prepared.map_or(&[][..], Prepared::parameters);
    let types = found.iter().enumerate().map(|(place, found)| {
        let told = told.get(place).copied();
        let told = told.filter(|oid| *oid != 0 && *oid != crate::types::UNKNOWN);
        told.unwrap_or_else(|| found.as_ref().map_or(TEXT, oid_of))
    });
    types.collect()
}
