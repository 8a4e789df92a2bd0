//! A table as a Parquet file, as other databases load it too.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;

use super::{Scale, TpchError, TpchTable};

/// Rows in one row group, which readers take in parallel.
const ROW_GROUP_ROWS: usize = 122_880;
const BATCH_ROWS: usize = 8_192;

/// Writes a table; returns its rows.
///
/// # Errors
/// When the file cannot be written.
pub fn write_parquet(table: TpchTable, scale: Scale, path: &Path) -> Result<u64, TpchError> {
    let of_file = |source: io::Error| TpchError::File {
        path: path.to_owned(),
        source,
    };
    let of_parquet = |source| TpchError::Parquet {
        path: path.to_owned(),
        source,
    };
    let batches = table.batches(scale, BATCH_ROWS);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let file = BufWriter::new(File::create(path).map_err(of_file)?);
    let mut writer =
        ArrowWriter::try_new(file, batches.schema(), Some(properties)).map_err(of_parquet)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(of_parquet)?;
    }
    let mut file = writer.into_inner().map_err(of_parquet)?;
    file.flush().map_err(of_file)?;
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
