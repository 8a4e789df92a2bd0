//! DataFusion's Parquet format with memory-counting readers.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileMeta};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use super::super::paying::pool_of;
use super::footer::Footers;
use super::reader::CountedReaders;

/// What the values of one batch should have: fewer rows are read at once where they are long.
const BATCH_BYTES: u64 = 4 << 20;
/// Files of a table whose rows are looked at for that.
const FILES_LOOKED_AT: usize = 16;
/// Footers that are read at once.
const FOOTERS_AT_ONCE: usize = 8;

/// Parquet within the memory of who asks.
#[derive(Debug, Default)]
pub(in crate::files) struct CountedParquet {
    of_engine: ParquetFormat,
}

impl CountedParquet {
    async fn look(&self, footers: &Footers, objects: &[ObjectMeta]) -> Result<()> {
        stream::iter(objects)
            .map(|object| async move { footers.of(object).await.map(|_| ()) })
            .boxed()
            .buffer_unordered(FOOTERS_AT_ONCE)
            .try_collect()
            .await
    }

    /// Rows of a batch of these files.
    async fn batch_rows(
        &self,
        footers: &Footers,
        config: &FileScanConfig,
        most: usize,
    ) -> Result<usize> {
        let columns = config.projected_schema()?;
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        let mut rows = most;
        for file in files.take(FILES_LOOKED_AT) {
            let footer = footers.of(&file.object_meta).await?;
            let fits = BATCH_BYTES / bytes_of_row(&footer, &columns).max(1);
            rows = rows.min(usize::try_from(fits).unwrap_or(usize::MAX));
        }
        Ok(rows.max(1))
    }
}

/// What stands above a scan that gives few rows at once: a filter gives as few, and threads do not
/// deal its rows out, whose queues hold many batches. Any other node as it is.
pub(crate) fn short_batches(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(dealt) = node.downcast_ref::<RepartitionExec>()
        && matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_))
        && rows_of_scan(dealt.input()).is_some()
    {
        return Ok(Transformed::yes(Arc::clone(dealt.input())));
    }
    let Some(filter) = node.downcast_ref::<FilterExec>() else {
        return Ok(Transformed::no(node));
    };
    match rows_of_scan(filter.input()) {
        Some(rows) if rows < filter.batch_size() => Ok(Transformed::yes(Arc::new(
            FilterExecBuilder::from(filter)
                .with_batch_size(rows)
                .build()?,
        ))),
        _ => Ok(Transformed::no(node)),
    }
}

/// The rows of a batch of the scan that rows come from, if it was told to give few.
fn rows_of_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let (config, _) = scan.downcast_to_file_source::<ParquetSource>()?;
        return config.batch_size;
    }
    let is_by_row = plan.is::<FilterExec>() || plan.is::<ProjectionExec>();
    match plan.children().as_slice() {
        [input] if is_by_row || plan.is::<CooperativeExec>() => rows_of_scan(input),
        _ => None,
    }
}

/// What a row has of these columns, in the row group where it has most.
fn bytes_of_row(footer: &ParquetMetaData, columns: &SchemaRef) -> u64 {
    let groups = footer.row_groups().iter().map(|group| {
        let read = group.columns().iter().filter(|column| {
            let path = column.column_path().parts();
            path.first()
                .is_some_and(|name| columns.column_with_name(name).is_some())
        });
        let sizes = read.map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(0));
        let bytes = sizes.fold(0, u64::saturating_add);
        bytes / u64::try_from(group.num_rows()).unwrap_or(0).max(1)
    });
    groups.max().unwrap_or(0)
}

/// The footers of a store's files, on the memory of who asks.
fn footers(state: &dyn Session, store: &Arc<dyn ObjectStore>) -> Footers {
    let environment = state.runtime_env();
    Footers {
        store: Arc::clone(store),
        cache: environment.cache_manager.get_file_metadata_cache(),
        pool: pool_of(state),
    }
}

#[async_trait]
impl FileFormat for CountedParquet {
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
        self.look(&footers(state, store), objects).await?;
        self.of_engine.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        footers(state, store).of(object).await?;
        self.of_engine
            .infer_stats(state, store, schema, object)
            .await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        footers(state, store).of(object).await?;
        self.of_engine
            .infer_ordering(state, store, schema, object)
            .await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        footers(state, store).of(object).await?;
        self.of_engine
            .infer_stats_and_ordering(state, store, schema, object)
            .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.of_engine.create_physical_plan(state, config).await?;
        let scan = plan.downcast_ref::<DataSourceExec>();
        let scan = scan.and_then(DataSourceExec::downcast_to_file_source::<ParquetSource>);
        let (config, source) =
            scan.ok_or_else(|| internal_datafusion_err!("a scan of Parquet reads no Parquet"))?;
        let store = state.runtime_env().object_store(&config.object_store_url)?;
        let footers = footers(state, &store);
        let told = config.batch_size;
        let most = told.unwrap_or_else(|| state.config().batch_size());
        let batch_rows = self.batch_rows(&footers, config, most).await?;
        let readers = Arc::new(CountedReaders::new(footers, batch_rows));
        let source = source.clone().with_parquet_file_reader_factory(readers);
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .with_batch_size((batch_rows < most).then_some(batch_rows).or(told));
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.of_engine.file_source(schema)
    }
}
