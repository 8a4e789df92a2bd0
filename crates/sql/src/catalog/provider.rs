//! DataFusion's catalog provider over a snapshot: schemas, and tables by name.
//!
//! Nothing is copied: a provider is made when a statement names its table, over the state that the
//! snapshot has of it. Views are not here: whoever plans a statement puts their queries in the
//! place of their names.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use orrery_storage::table::Tables;

use orrery_table_scan::StoredTable;

/// The schemas and tables of a snapshot, or of a transaction.
pub fn catalog(tables: &Arc<Tables>) -> Arc<dyn CatalogProvider> {
    Arc::new(StoredCatalog {
        tables: Arc::clone(tables),
    })
}

struct StoredCatalog {
    tables: Arc<Tables>,
}

struct StoredSchema {
    name: String,
    tables: Arc<Tables>,
}

impl fmt::Debug for StoredCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCatalog").finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSchema")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl CatalogProvider for StoredCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.tables.schemas().map(str::to_owned).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.tables.has_schema(name).then(|| {
            Arc::new(StoredSchema {
                name: name.to_owned(),
                tables: Arc::clone(&self.tables),
            }) as Arc<dyn SchemaProvider>
        })
    }
}

#[async_trait]
impl SchemaProvider for StoredSchema {
    fn table_names(&self) -> Vec<String> {
        let tables = self.tables.tables().map(|table| table.definition());
        let within = tables.filter(|definition| definition.schema == self.name);
        within.map(|definition| definition.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let table = self.tables.table_named(&self.name, name);
        Ok(table.map(|table| Arc::new(StoredTable::among(table.clone(), &self.tables)) as _))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_named(&self.name, name).is_some()
    }
}
