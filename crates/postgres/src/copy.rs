//! COPY between a table and a client: data messages within a simple query or an Execute.
//!
//! ```text
//!   FROM STDIN  CopyInResponse  ->  CopyData ... CopyDone | CopyFail  <-  then the statement runs
//!   TO STDOUT   CopyOutResponse, CopyData for each row, CopyDone  ->
//! ```
//!
//! While a client sends, it holds neither an admission permit nor the writing thread, and its time
//! does not run: it may take as long as an idle client. Only in a block that has changed something
//! before, a minute without a message is too long.

use bytes::{BufMut, BytesMut};
use orrery_sql::{CopyIn, CopyOut, Tag};

use crate::connection::Connection;
use crate::frontend::Frontend;
use crate::message::put_message;
use crate::refusal::{Refusal, Stopped};

impl Connection {
    /// Receives the client's data, and runs the statement on them.
    pub(crate) async fn copy_in(&mut self, mut copy: CopyIn) -> Stopped<Tag> {
        put_response(&mut self.wire.output, b'G', copy.columns());
        let began = self.session.scope().cloned();
        let paused = self.session.pause();
        self.guard.begin_without_end();
        self.guard.send(&mut self.wire).await?;
        loop {
            let message = self.guard.message(&mut self.wire).await?;
            match message {
                Frontend::CopyData(bytes) => {
                    // Buffered, in a file if it is large.
                    self.guard.run(&mut self.wire, copy.send(bytes)).await?;
                }
                Frontend::CopyDone => break,
                Frontend::CopyFail(reason) => return Err(copy.fail(&reason).await.into()),
                // Clients send them behind Execute, before they know that data are wanted.
                Frontend::Flush | Frontend::Sync => {}
                Frontend::Terminate => {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
                _ => {
                    drop(copy);
                    return Err(
                        Refusal::new("08P01", "unexpected message during COPY from stdin").into(),
                    );
                }
            }
        }
        let _turn = self.begin_statement().await?;
        // The statement runs with the rights that it began with, so the present ones must be the
        // same.
        self.session.require_scope(began.as_ref())?;
        // Its cost counts for the statement that began it.
        let _resumed = self.session.resume(paused.as_ref());
        self.guard.run(&mut self.wire, copy.finish()).await
    }

    /// Sends all rows of a statement.
    pub(crate) async fn copy_out(&mut self, mut copy: CopyOut) -> Stopped<Tag> {
        put_response(&mut self.wire.output, b'H', copy.columns());
        loop {
            let next = async { copy.next().await.transpose() };
            let Some(rows) = self.guard.run(&mut self.wire, next).await? else {
                break;
            };
            if let Some(watched) = &self.guard.watched {
                watched.add(rows.rows(), 0);
            }
            for row in rows.each() {
                put_message(&mut self.wire.output, b'd', |body| body.put_slice(&row));
                if self.wire.is_full() {
                    self.guard.send(&mut self.wire).await?;
                }
            }
        }
        put_message(&mut self.wire.output, b'c', |_| {});
        Ok(copy.tag())
    }
}

/// Writes CopyInResponse or CopyOutResponse: text format, and the number of columns.
fn put_response(output: &mut BytesMut, kind: u8, columns: usize) {
    put_message(output, kind, |body| {
        body.put_u8(0);
        body.put_u16(u16::try_from(columns).unwrap_or(u16::MAX));
        (0..columns).for_each(|_| body.put_u16(0));
    });
}
