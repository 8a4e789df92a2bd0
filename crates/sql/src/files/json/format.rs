//! DataFusion's JSON format with a memory-counting reader.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, apply_expression_roots};
use futures::FutureExt;
use object_store::{ObjectMeta, ObjectStore};

use super::super::bytes::READING_BYTES;
use super::super::location::FoundFile;
use super::super::paying::pool_of;
use super::infer::inferred;
use super::read::batches;

/// Records that columns are looked for in.
const RECORDS_LOOKED_AT: usize = 1_000;

/// JSON within the memory of who asks.
#[derive(Debug, Default)]
pub(in crate::files) struct CountedJson {
    of_engine: JsonFormat,
}

fn reading(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("reading of a file of JSON").register(pool)
}

#[async_trait]
impl FileFormat for CountedJson {
    fn get_ext(&self) -> String {
        self.of_engine.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.of_engine.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.of_engine.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let pool = pool_of(state);
        let mut schemas = Vec::new();
        let mut left = RECORDS_LOOKED_AT;
        for object in objects {
            if left == 0 {
                break;
            }
            let memory = reading(&pool);
            memory.try_grow(READING_BYTES)?;
            let file = FoundFile::of_store(store, object.clone());
            let (schema, count) = inferred(&file, left, memory).await?;
            schemas.push(schema);
            left -= count.min(left);
        }
        Ok(Arc::new(Schema::try_merge(schemas)?))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.of_engine
            .infer_stats(state, store, schema, object)
            .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config.file_source().downcast_ref::<CountedSource>();
        let mut source = source
            .cloned()
            .ok_or_else(|| internal_datafusion_err!("a scan of JSON reads no JSON"))?;
        source.pool = Some(pool_of(state));
        let config = FileScanConfigBuilder::from(config).with_source(Arc::new(source));
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(CountedSource {
            projection: SplitProjection::unprojected(&schema),
            schema,
            batch_rows: None,
            metrics: ExecutionPlanMetricsSet::new(),
            pool: None,
        })
    }
}

/// Opens files of JSON as `JsonSource` does.
#[derive(Clone)]
struct CountedSource {
    schema: TableSchema,
    batch_rows: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
    projection: SplitProjection,
    /// Of who asks, from when it is planned.
    pool: Option<Arc<dyn MemoryPool>>,
}

impl FileSource for CountedSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let of_file = self.schema.file_schema();
        let (Some(pool), Some(batch_rows)) = (&self.pool, self.batch_rows) else {
            return Err(internal_datafusion_err!("a scan of JSON was not planned"));
        };
        let opener = CountedOpener {
            store,
            schema: Arc::new(of_file.project(&self.projection.file_indices)?),
            batch_rows,
            pool: Arc::clone(pool),
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), of_file)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        Arc::new(Self {
            batch_rows: Some(batch_rows),
            ..self.clone()
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(Self {
            projection: SplitProjection::new(self.schema.file_schema(), &merged),
            ..self.clone()
        })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "json"
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

struct CountedOpener {
    store: Arc<dyn ObjectStore>,
    schema: SchemaRef,
    batch_rows: usize,
    pool: Arc<dyn MemoryPool>,
}

impl FileOpener for CountedOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let part = file.range.as_ref().map(|range| {
            let [start, end] = [range.start, range.end].map(|at| u64::try_from(at).unwrap_or(0));
            start..end
        });
        let file = FoundFile::of_store(&self.store, file.object_meta);
        let (schema, memory) = (Arc::clone(&self.schema), reading(&self.pool));
        let batches = batches(file, part, schema, self.batch_rows, memory);
        Ok(async move { batches }.boxed())
    }
}
