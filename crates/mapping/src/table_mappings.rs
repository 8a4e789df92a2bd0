//! What an engine's mappings share: the reader of tables, and what was compiled last.

use std::sync::{Arc, OnceLock};

use orrery_runtime::Runtime;
use orrery_sql::TableReader;

use crate::compiled::Compiled;

/// Mappings over the tables of an engine's databases.
#[derive(Debug)]
pub struct TableMappings {
    runtime: Arc<Runtime>,
    /// Made when it is needed: that takes a millisecond.
    reader: OnceLock<TableReader>,
    pub(crate) compiled: Compiled,
}

impl TableMappings {
    /// On the memory of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: Arc::clone(runtime),
            reader: OnceLock::new(),
            compiled: Compiled::default(),
        }
    }

    pub(crate) fn reader(&self) -> &TableReader {
        self.reader.get_or_init(|| TableReader::new(&self.runtime))
    }
}
