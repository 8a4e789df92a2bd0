//! Spill files: batches beyond memory, written once and read several times.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, SpillFile};
use datafusion_physical_plan::EmptyRecordBatchStream;
use datafusion_physical_plan::spill::SpillManager;

/// A file that is being written. DataFusion does not give the type of one a name.
pub(crate) struct OpenFile(Box<AppendOrFinish>);

/// Takes a further batch, or ends the file.
type AppendOrFinish = dyn FnMut(Option<&RecordBatch>) -> Result<Written> + Send;

/// A file that has been written; none if that was nothing.
pub(crate) type Written = Option<Arc<dyn SpillFile>>;

impl OpenFile {
    pub(crate) fn create(manager: &SpillManager, what: &str) -> Result<Self> {
        let mut file = manager.create_in_progress_file(what)?;
        Ok(Self(Box::new(move |batch| match batch {
            Some(batch) => file.append_batch(batch).map(|_| None),
            None => file.finish(),
        })))
    }

    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        (self.0)(Some(batch)).map(|_| ())
    }

    pub(crate) fn finish(&mut self) -> Result<Written> {
        (self.0)(None)
    }
}

pub(crate) fn read(manager: &SpillManager, file: Written) -> Result<SendableRecordBatchStream> {
    match file {
        Some(file) => manager.read_spill_as_stream(file, None),
        None => Ok(Box::pin(EmptyRecordBatchStream::new(Arc::clone(
            manager.schema(),
        )))),
    }
}
