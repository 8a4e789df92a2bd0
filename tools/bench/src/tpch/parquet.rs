//! Tables and refresh sets as Parquet files, as other databases load them too.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::{Scale, TpchError, TpchTable};

/// Rows in one row group, which readers take in parallel.
const ROW_GROUP_ROWS: usize = 122_880;
const BATCH_ROWS: usize = 8_192;

/// Writes a table; returns its rows.
///
/// # Errors
/// When the file cannot be written.
pub fn write_parquet(table: TpchTable, scale: Scale, path: &Path) -> Result<u64, TpchError> {
    let batches = table.batches(scale, BATCH_ROWS);
    let schema = batches.schema();
    write_batches(&schema, batches, path)
}

/// Writes what a refresh set inserts into a table.
///
/// # Errors
/// When the file cannot be written.
pub fn write_refresh(
    table: TpchTable,
    scale: Scale,
    batches: &[RecordBatch],
    path: &Path,
) -> Result<u64, TpchError> {
    let schema = table.batches(scale, 1).schema();
    write_batches(&schema, batches.iter().cloned().map(Ok), path)
}

/// Writes keys as the one column `name`.
///
/// # Errors
/// When the file cannot be written.
pub fn write_keys(name: &str, keys: &[i64], path: &Path) -> Result<u64, TpchError> {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.iter().copied()));
    let batch = RecordBatch::try_from_iter([(name, column)])?;
    write_batches(&batch.schema(), [Ok(batch)], path)
}

/// Under another name until it is whole, for files are kept from run to run.
fn write_batches(
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    path: &Path,
) -> Result<u64, TpchError> {
    let of_file = |source: io::Error| TpchError::File {
        path: path.to_owned(),
        source,
    };
    let of_parquet = |source| TpchError::Parquet {
        path: path.to_owned(),
        source,
    };
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let unfinished = path.with_extension("unfinished");
    let file = BufWriter::new(File::create(&unfinished).map_err(of_file)?);
    let mut writer =
        ArrowWriter::try_new(file, Arc::clone(schema), Some(properties)).map_err(of_parquet)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(of_parquet)?;
    }
    let mut file = writer.into_inner().map_err(of_parquet)?;
    file.flush().map_err(of_file)?;
    std::fs::rename(&unfinished, path).map_err(of_file)?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use arrow::compute::concat_batches;

    use super::*;

    #[test]
    fn a_written_table_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("orders.parquet");
        let scale = Scale::new(0.002).unwrap();
        assert_eq!(
            write_parquet(TpchTable::Orders, scale, &path).unwrap(),
            3_000
        );
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let read: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        let made: Vec<_> = TpchTable::Orders
            .batches(scale, 100)
            .map(Result::unwrap)
            .collect();
        let schema = made[0].schema();
        assert_eq!(
            concat_batches(&schema, &read).unwrap(),
            concat_batches(&schema, &made).unwrap()
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write_parquet(
            TpchTable::Region,
            Scale::new(1.0).unwrap(),
            Path::new("/nowhere/at/all/region.parquet"),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .starts_with("/nowhere/at/all/region.parquet: ")
        );
    }
}
