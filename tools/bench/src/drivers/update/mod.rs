//! What changes cost: small and large transactions over HTTP, opening after a kill, the explore
//! queries beside updates, and reading what was changed. Each figure beside its bar.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::store::{table_of, write_data};
use super::{Bar, BenchError, Binary, LoadOptions, load};
use crate::report::{Table, with_thousands};

mod failures;
mod mix;
mod options;
mod reading;
mod transactions;

pub use mix::MixReport;
pub use options::{UpdateBenchOptions, UpdatePart};
pub use reading::{ReadingReport, ReadingTimes};
pub use transactions::TransactionReport;

use failures::at;

const LOAD_MEMORY: &str = "4G";

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpdateReport {
    /// Products of the BSBM data set.
    pub products: u32,
    /// The figures and their bars.
    pub bars: Vec<Bar>,
    /// Transactions alone.
    pub transactions: Option<TransactionReport>,
    /// The explore queries beside updates.
    pub mix: Option<MixReport>,
    /// Queries over changes.
    pub reading: Option<ReadingReport>,
}

/// Measures. `progress` is told what comes next.
///
/// # Errors
/// When any of it fails.
pub fn update(
    binary: &Binary,
    options: &UpdateBenchOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<UpdateReport, BenchError> {
    let home = tempfile::tempdir_in(&options.cache).map_err(at(&options.cache))?;
    let has = |part| options.parts.is_empty() || options.parts.contains(&part);
    let mut report = UpdateReport {
        products: options.data.products,
        bars: Vec::new(),
        transactions: None,
        mix: None,
        reading: None,
    };
    if has(UpdatePart::Transactions) {
        let seconds = Duration::from_secs(options.seconds);
        let transactions = transactions::transactions(binary, home.path(), seconds, progress)?;
        report.bars.extend(transactions.bars());
        report.transactions = Some(transactions);
    }
    if has(UpdatePart::Mix) || has(UpdatePart::Reading) {
        progress("loading the BSBM data");
        let loaded = home.path().join("loaded.db");
        load_data(binary, options, &loaded)?;
        let copies = [1, 2].map(|number| home.path().join(format!("copy-{number}.db")));
        if has(UpdatePart::Mix) {
            progress("BSBM explore, alone and beside updates");
            copy(&loaded, &copies[0])?;
            let mix = mix::mix(binary, options, &loaded, &copies[0])?;
            remove(&copies[0])?;
            report.bars.push(Bar::at_least(
                "BSBM with updates, against without",
                "",
                mix.share(),
                0.8,
            ));
            report.mix = Some(mix);
        }
        if has(UpdatePart::Reading) {
            progress("reading with changes");
            for each in &copies {
                copy(&loaded, each)?;
            }
            let databases = [&loaded, &copies[0], &copies[1]].map(PathBuf::as_path);
            let reading = reading::reading(binary, options, databases)?;
            report.bars.extend(reading.bars());
            report.reading = Some(reading);
        }
    }
    Ok(report)
}

fn load_data(
    binary: &Binary,
    options: &UpdateBenchOptions,
    database: &Path,
) -> Result<(), BenchError> {
    let name = format!("bsbm-{}-{}.nt", options.data.products, options.data.seed);
    let data = options.cache.join(name);
    write_data(&options.data, &data)?;
    let options = LoadOptions {
        database: database.to_owned(),
        files: vec![data],
        memory: LOAD_MEMORY.to_owned(),
    };
    load(binary, &options).map(drop)
}

/// Copies a database that nobody writes.
fn copy(from: &Path, to: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(to).map_err(at(to))?;
    for entry in std::fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).map_err(at(&path))?;
        }
    }
    Ok(())
}

fn remove(database: &Path) -> Result<(), BenchError> {
    std::fs::remove_dir_all(database).map_err(at(database))
}

impl fmt::Display for UpdateReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table_of(&self.bars).fmt(formatter)?;
        if let Some(transactions) = &self.transactions {
            writeln!(
                formatter,
                "one client {:.2} ms (median), fdatasync alone {:.2} ms",
                transactions.one_client.median_ms, transactions.sync.median_ms,
            )?;
        }
        if let Some(mix) = &self.mix {
            writeln!(
                formatter,
                "BSBM with {} products: {} mixes an hour alone, {} with updates; the queries of a mix {:.2} ms alone, \
                 {:.2} ms beside updates, an insertion {:.2} ms, a deletion {:.2} ms (means; medians {:.2}, {:.2}, {:.2}, {:.2})",
                with_thousands(u64::from(self.products)),
                with_thousands(mix.alone_per_hour.round() as u64),
                with_thousands(mix.beside_per_hour.round() as u64),
                mix.alone.mean_ms,
                mix.beside.mean_ms,
                mix.insert.mean_ms,
                mix.delete.mean_ms,
                mix.alone.median_ms,
                mix.beside.median_ms,
                mix.insert.median_ms,
                mix.delete.median_ms,
            )?;
        }
        if let Some(reading) = &self.reading {
            writeln!(
                formatter,
                "reading with {:.2} % of the quads changed, best of the runs, ms:",
                reading.share * 100.0
            )?;
            let mut table = Table::new(["query", "unchanged", "changed", "factor", "compacted"]);
            for (changed, compacted) in reading.with_delta.iter().zip(&reading.after_compaction) {
                table.row([
                    changed.query.clone(),
                    format!("{:.2}", changed.unchanged_ms),
                    format!("{:.2}", changed.changed_ms),
                    format!("{:.2}", changed.factor()),
                    format!("{:.2}", compacted.factor()),
                ]);
            }
            let tenth = &reading.tenth_of_predicate;
            table.row([
                format!("{}, a tenth of them replaced", tenth.query),
                format!("{:.2}", tenth.unchanged_ms),
                format!("{:.2}", tenth.changed_ms),
                format!("{:.2}", tenth.factor()),
                String::new(),
            ]);
            table.fmt(formatter)?;
        }
        Ok(())
    }
}
