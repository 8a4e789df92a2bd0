//! The printing of statements' results on standard output.

use std::time::Instant;

use futures::StreamExt as _;

use super::answer::Answer;
use super::format::{Format, Printer};
use crate::commands::output::Output;
use crate::failure::Failure;

/// The settings and the output of results.
pub(super) struct Writing {
    pub(super) format: Format,
    pub(super) has_timing: bool,
    pub(super) output: Output,
}

impl Writing {
    /// Prints the result of a statement that was started at `start`.
    pub(super) async fn write(&mut self, answer: Answer, start: Instant) -> Result<(), Failure> {
        let mut printer = Printer::new(self.format);
        if let Some(rows) = answer.rows {
            printer.rows(rows, &mut self.output).await?;
        }
        if let Some(mut copy) = answer.copy {
            while let Some(rows) = copy.next().await {
                self.output.drain(&mut rows?.bytes().to_vec())?;
            }
        }
        if let Some(tag) = &answer.tag {
            printer.done(tag, &mut self.output)?;
        }
        self.tell_time(start);
        Ok(())
    }

    /// The same under a title, if there are rows; returns their number.
    pub(super) async fn write_under(
        &mut self,
        title: &str,
        answer: Answer,
    ) -> Result<u64, Failure> {
        let Some(mut rows) = answer.rows else {
            return Ok(0);
        };
        // The first batch with a row shows that there are rows.
        let mut first = None;
        while let Some(batch) = rows.batches.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                first = Some(Ok(batch));
                break;
            }
        }
        let Some(first) = first else {
            return Ok(0);
        };
        rows.batches = futures::stream::iter([first]).chain(rows.batches).boxed();
        self.output.drain(&mut format!("{title}\n").into_bytes())?;
        Printer::new(self.format).rows(rows, &mut self.output).await
    }

    fn tell_time(&self, start: Instant) {
        if self.has_timing {
            eprintln!("Time: {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
        }
    }
}
