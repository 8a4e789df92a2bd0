//! The mappings of an engine: the table reader, and a cache of compiled mappings.

use std::sync::{Arc, OnceLock};

use orrery_runtime::Runtime;
use orrery_sql::{ForeignAccess, TableReader};

use crate::compiled::Compiled;

/// Mappings over the tables of an engine's databases.
#[derive(Debug)]
pub struct TableMappings {
    runtime: Arc<Runtime>,
    foreign: ForeignAccess,
    /// Made when it is needed: that takes a millisecond.
    reader: OnceLock<TableReader>,
    pub(crate) compiled: Compiled,
}

impl TableMappings {
    /// The mappings on a runtime's memory, over tables of this database and readable ones of other
    /// servers.
    pub fn new(runtime: &Arc<Runtime>, foreign: &ForeignAccess) -> Self {
        Self {
            runtime: Arc::clone(runtime),
            foreign: foreign.clone(),
            reader: OnceLock::new(),
            compiled: Compiled::default(),
        }
    }

    pub(crate) fn reader(&self) -> &TableReader {
        self.reader
            .get_or_init(|| TableReader::new(&self.runtime, &self.foreign))
    }
}
