//! The store benchmark: generate, load, serve, and measure six figures against their goals.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{
    BenchError, Binary, ExploreOptions, ExploreReport, LoadOptions, LoadReport, OpenOptions, count,
    explore, load, open,
};
use crate::report::{Table, Times, with_thousands};
use orrery_bsbm::GenerateOptions;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::{Catalog, generate};

pub(super) const LOAD_MEMORY: &str = "4G";
/// The products of the ten million triples that absolute bars are for.
pub(super) const TEN_MILLION_PRODUCTS: u32 = 28_482;
const OPEN_RUNS: usize = 21;
const COUNT_RUNS: usize = 100;

/// What to measure.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The data set: 28,482 products are the ten million triples of the bars.
    pub data: GenerateOptions,
    /// Where data and database are kept. Data of an earlier run serve again.
    pub cache: PathBuf,
    /// Mixes of the explore queries.
    pub mixes: u32,
}

impl StoreOptions {
    /// Ten million triples, 50 mixes.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            data: GenerateOptions {
                products: TEN_MILLION_PRODUCTS,
                ..GenerateOptions::default()
            },
            cache: cache.into(),
            mixes: 50,
        }
    }
}

/// One figure and what it is held to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// What was measured.
    pub what: String,
    /// The unit.
    pub unit: &'static str,
    /// What came out.
    pub figure: f64,
    /// The bar.
    pub bar: f64,
    /// Whether the bar is a least value (a rate) or a greatest (time, size).
    pub is_minimum: bool,
    /// Whether the figure passes.
    pub is_met: bool,
}

impl Bar {
    pub(super) fn at_least(
        what: impl Into<String>,
        unit: &'static str,
        figure: f64,
        bar: f64,
    ) -> Self {
        Self {
            what: what.into(),
            unit,
            figure,
            bar,
            is_minimum: true,
            is_met: figure >= bar,
        }
    }

    pub(super) fn at_most(
        what: impl Into<String>,
        unit: &'static str,
        figure: f64,
        bar: f64,
    ) -> Self {
        Self {
            what: what.into(),
            unit,
            figure,
            bar,
            is_minimum: false,
            is_met: figure <= bar,
        }
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreReport {
    /// Triples in the database.
    pub triples: u64,
    /// The six figures and their bars.
    pub bars: Vec<Bar>,
    /// The load.
    pub load: LoadReport,
    /// Opening and a point query, process by process.
    pub open: Times,
    /// The explore queries.
    pub explore: ExploreReport,
    /// The count of all triples.
    pub count: Times,
}

/// Generates, loads, serves and measures. `progress` is told what comes next.
///
/// # Errors
/// When any of it fails.
pub fn store(
    binary: &Binary,
    options: &StoreOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<StoreReport, BenchError> {
    let name = format!("bsbm-{}-{}", options.data.products, options.data.seed);
    let data = options.cache.join(format!("{name}.nt"));
    let database = options.cache.join(format!("{name}.db"));
    progress("generating the data");
    write_data(&options.data, &data)?;
    progress("loading");
    let load = load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    let catalog = Catalog::new(&options.data);
    progress("opening the database, again and again");
    let open = open(
        binary,
        &OpenOptions {
            query: format!(
                "SELECT * {{ <{}> ?p ?o }}",
                catalog.offer(catalog.offer_count() / 2 + 1)
            ),
            database: database.clone(),
            runs: OPEN_RUNS,
        },
    )?;
    progress("serving the explore queries");
    let server = binary.serve(&database)?;
    let explore = explore(&ExploreOptions {
        mixes: options.mixes,
        pool: Some(ParameterPool::from_catalog(&catalog)?),
        ..ExploreOptions::new(server.endpoint())
    })?;
    progress("counting");
    let count = count(server.endpoint(), COUNT_RUNS)?;
    Ok(StoreReport {
        triples: count.triples,
        bars: bars(&load, &open.times, &explore, &count.times),
        load,
        open: open.times,
        explore,
        count: count.times,
    })
}

/// The bars for ten million triples on two cores.
fn bars(load: &LoadReport, open: &Times, explore: &ExploreReport, count: &Times) -> Vec<Bar> {
    let mut bars = vec![
        Bar::at_least("bulk load", "triples/s", load.triples_per_second, 600_000.0),
        Bar::at_most(
            format!("peak memory of the load, --memory {LOAD_MEMORY}"),
            "GB",
            load.peak_memory_bytes as f64 / 1e9,
            4.5,
        ),
        Bar::at_most("database size", "bytes/triple", load.bytes_per_triple, 60.0),
        Bar::at_most(
            "open and answer a point query, median",
            "ms",
            open.median_ms,
            50.0,
        ),
    ];
    if let Some(slowest) = explore.slowest() {
        bars.push(Bar::at_most(
            format!("slowest explore query (Q{}), median", slowest.query),
            "ms",
            slowest.times.median_ms,
            3.0,
        ));
    }
    bars.push(Bar::at_most(
        "count of all triples, median",
        "ms",
        count.median_ms,
        5.0,
    ));
    bars
}

/// Writes the data unless they are there. A file under its final name is whole.
pub(super) fn write_data(options: &GenerateOptions, path: &Path) -> Result<(), BenchError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| BenchError::File { path, source }
    };
    if path.is_file() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    let partial = path.with_extension("partial");
    let mut file = File::create(&partial).map_err(at(&partial))?;
    generate(options, &mut file).map_err(at(&partial))?;
    fs::rename(&partial, path).map_err(at(path))
}

impl fmt::Display for StoreReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} triples", with_thousands(self.triples))?;
        table_of(&self.bars).fmt(formatter)?;
        writeln!(formatter)?;
        self.explore.fmt(formatter)
    }
}

/// The figures beside their bars.
pub(super) fn table_of(bars: &[Bar]) -> Table {
    let mut table = Table::new(["what", "figure", "bar", "unit", ""]);
    for bar in bars {
        table.row([
            bar.what.clone(),
            shown(bar.figure),
            format!(
                "{} {}",
                if bar.is_minimum { ">=" } else { "<=" },
                shown(bar.bar)
            ),
            bar.unit.to_owned(),
            if bar.is_met { "met" } else { "MISSED" }.to_owned(),
        ]);
    }
    table
}

/// Rates as whole numbers, the others with two decimals.
fn shown(figure: f64) -> String {
    if figure >= 1_000.0 {
        return with_thousands(figure.round() as u64);
    }
    format!("{figure:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_know_their_direction() {
        assert!(Bar::at_least("rate", "1/s", 2.0, 1.0).is_met);
        assert!(!Bar::at_most("time", "ms", 2.0, 1.0).is_met);
    }

    #[test]
    fn data_are_written_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/data.nt");
        let options = GenerateOptions {
            products: 1,
            seed: 1,
        };
        write_data(&options, &path).unwrap();
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        write_data(&options, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
        assert!(fs::read(&path).unwrap().ends_with(b" .\n"));
    }
}
