//! What can be said on the command line of `orrery bench`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use orrery_bench::tpch::Scale;
use orrery_units::{Bytes, Seconds};

/// Generate data and measure
#[derive(Parser)]
#[command(
    name = "orrery-bench",
    bin_name = "orrery bench",
    version,
    propagate_version = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) suite: BenchSuite,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(crate) enum BenchSuite {
    /// Berlin SPARQL Benchmark: data, queries, driver
    #[command(subcommand)]
    Bsbm(BsbmCommand),
    /// Load, size, open, point query, explore queries and count, against their bars
    Store(StoreBenchArguments),
    /// The least that a request costs: point queries over one kept connection
    Floor(FloorArguments),
    /// What users, rules and limits cost, and what short queries wait for beside long ones, against their bars
    Guard(GuardArguments),
    /// Transactions over HTTP, updates beside queries, opening after a kill, against their bars
    Update(UpdateBenchArguments),
    /// Clients of every kind, with users, rules and limits, for as long as one likes: no fault, no wrong answer, flat memory
    Soak(SoakArguments),
    /// Readers and writers while checkpoints, compactions and bulk loads run: no failure, no wrong answer
    SoakUpdates(SoakUpdatesArguments),
    /// The first queries when nothing of a database with BSBM data is in memory, against the same warm
    Cold(ColdArguments),
    /// Ours and another store, side by side on the same data, answers compared
    Compare(CompareArguments),
    /// The same data as triples and as DuckDB's tables, asked the same in SPARQL and SQL, answers compared
    Relational(RelationalArguments),
    /// How far the planner's estimates are from what its plans find
    Estimates(EstimatesArguments),
    /// TPC-H on tables: load, answers, power test, throughput test
    Tpch(TpchArguments),
    /// LDBC Social Network Benchmark, Interactive v1
    Snb(SnbArguments),
    /// LDBC Semantic Publishing Benchmark 2.0, basic set: editors and readers side by side
    Spb(SpbArguments),
    /// The lab of physical designs: TPC-H Q9 on five layouts of the data, as columns and as rows, with vectors of three sizes
    Vectors(VectorsArguments),
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SnbArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SnbCommand>,
    /// The data set: social_network_*.ttl, updateStream_*.csv (.gz too), substitution_parameters
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) data: Option<PathBuf>,
    /// Scale factor, by which the specification says how often complex reads come
    #[arg(long, value_name = "N", default_value_t = 0.1, value_parser = snb_scale)]
    pub(crate) scale: f64,
    /// Clients of the mix
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) clients: u32,
    /// Length of each run of the mix
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Runs of each complex read with each of its parameters, by itself
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// An endpoint, for queries and updates, that has the data set; without one it is loaded and served
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Subcommand)]
pub(crate) enum SnbCommand {
    /// Run the operations of a validation file in their order, insertions too, and compare each result
    Validate(SnbValidateArguments),
    /// Write a data set of the benchmark's schema, with update streams and parameters
    Generate(SnbGenerateArguments),
}

#[derive(Args)]
pub(crate) struct SnbGenerateArguments {
    /// Scale factor: 0.1 has some 1,700 persons, 1 some 11,000
    #[arg(long, value_name = "N", value_parser = snb_scale)]
    pub(crate) scale: f64,
    /// The same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The directory to write into
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// A scale factor of the Social Network Benchmark.
fn snb_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.0..=10_000.0).contains(&scale) {
        Ok(scale)
    } else {
        Err("a scale factor is between 0 and 10000".to_owned())
    }
}

#[derive(Args)]
pub(crate) struct SnbValidateArguments {
    /// The file, in the form of the official driver's validation_params.csv; .gz too
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The database's directory, with the data set in it; a server is started on it
    #[arg(long = "db", value_name = "DIR", required_unless_present = "endpoint")]
    pub(crate) directory: Option<PathBuf>,
    /// An endpoint instead, for queries and updates
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) endpoint: Option<String>,
    /// Complex read 14 goes by an edge weight, which is defined in the database first
    #[arg(long)]
    pub(crate) edge_weight: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SpbArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SpbCommand>,
    /// Files and directories with .nq, .nt and .ttl (.gz too); they are loaded and served. May be repeated
    #[arg(long, value_name = "PATH", required_unless_present = "endpoint")]
    pub(crate) data: Vec<PathBuf>,
    /// An endpoint instead, for queries and updates, that has data; its default graph has to be the union of all graphs. The
    /// editors change it
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) endpoint: Option<String>,
    /// Length of the measurement
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) seconds: u32,
    /// What runs so many seconds before it does not count
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub(crate) warm_up: u32,
    /// Agents that insert, update and delete works
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) editors: u32,
    /// Agents that run the aggregation queries
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) aggregators: u32,
    /// The same seed draws the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Make no index of texts of what is loaded: query 8 then reads all of them
    #[arg(long)]
    pub(crate) no_text_index: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Subcommand)]
pub(crate) enum SpbCommand {
    /// Compare the answers of each query with an evaluation of our own over the same data, and what editing does
    Validate(SpbValidateArguments),
    /// Write data of the benchmark's schema, as N-Quads
    Generate(SpbGenerateArguments),
}

#[derive(Args)]
pub(crate) struct SpbGenerateArguments {
    /// Quads in all, to the end of the last work
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000_000))]
    pub(crate) quads: u64,
    /// The same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The file to write, compressed if its name ends in .gz
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Reference data that works are about, in place of stand-ins: load it beside. May be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) reference: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SpbValidateArguments {
    /// The data, in files and directories. May be repeated
    #[arg(long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// The database's directory, with the same data in it; without one they are loaded
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// An endpoint instead, for queries and updates, whose default graph is the union of all graphs
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) endpoint: Option<String>,
    /// Parameters of each query
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// The same seed draws the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Make no index of texts of what is loaded
    #[arg(long)]
    pub(crate) no_text_index: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct VectorsArguments {
    /// Scale factor: 1 stands for about 1 GB of text, and takes 6 GB of memory
    #[arg(long, value_name = "N", default_value = "0.1")]
    pub(crate) scale: Scale,
    /// Folder with the right answers, of which q09.csv is read; without it SQL's answer alone is believed
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Threads of each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// How often each cell is run; the quickest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// The time of a cell, all its runs together; where none of them ends within it, the table says so
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) cell_limit: Seconds,
    /// Memory of the engine that answers as SQL
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Where files and database are made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
    /// Also write the table into this document, between `<!-- vectors SCALE -->` and
    /// `<!-- end of vectors SCALE -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TpchArguments {
    /// Scale factor: 1 stands for about 1 GB of text
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// Folder with the right answers, q01.csv to q22.csv; without it they are not looked at
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Streams of the throughput test; as many as the specification asks for if not given, 0 leaves the test out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) streams: Option<u32>,
    /// Threads of the engine
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Memory of the engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Where files and database are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct EstimatesArguments {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The database has the BSBM data set of so many products: ask its queries too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: Option<u32>,
    /// Sets of parameters of each BSBM query
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) sets: u32,
    /// Graph patterns drawn from the data by random walks
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) patterns: u32,
    /// The same seed draws the same parameters and patterns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Queries that take longer are left out
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) timeout: Seconds,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct ColdArguments {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// How often each way to begin is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: u32,
    /// The same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Another build of this program, measured in turn with this one
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// The other store: a script of this name in the folder of peers sets it up; `duckdb` for TPC-H on tables
    #[arg(long, value_name = "NAME", default_value = "virtuoso")]
    pub(crate) peer: String,
    /// Folder with the peers' scripts
    #[arg(long, value_name = "DIR", default_value = "bench/peers")]
    pub(crate) peers: PathBuf,
    /// Query mixes of the explore queries
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// With duckdb: TPC-H's scale factor
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// With duckdb: how often each query is asked of both; the quickest run counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// With duckdb: threads, at both
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// With duckdb: memory of our engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Also write the table into this document, between `<!-- compare NAME -->` and
    /// `<!-- end of compare NAME -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Args)]
pub(crate) struct RelationalArguments {
    /// The script that runs DuckDB
    #[arg(long, value_name = "FILE", default_value = "bench/peers/relational.py")]
    pub(crate) script: PathBuf,
    /// How often each question is asked; the quickest run counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Threads of one query, at both
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Also write the table into this document, between `<!-- relational -->` and
    /// `<!-- end of relational -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Subcommand)]
pub(crate) enum BsbmCommand {
    /// Write the data set as N-Triples
    Generate(GenerateArguments),
    /// Run the explore queries against an endpoint
    Explore(ExploreArguments),
}

#[derive(Args)]
pub(crate) struct GenerateArguments {
    /// Number of products: 2,785 give a million triples, 28,482 ten million
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// The same seed gives the same data
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ExploreArguments {
    /// Address of the SPARQL endpoint
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:7878/sparql"
    )]
    pub(crate) endpoint: String,
    /// Query mixes to run
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Query mixes to run first, unmeasured
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) warm_up: u32,
    /// The same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct FloorArguments {
    /// Directory of a database of BSBM data, which is served for the measurement
    #[arg(
        long = "db",
        value_name = "DIR",
        required_unless_present = "endpoint",
        conflicts_with = "endpoint"
    )]
    pub(crate) directory: Option<PathBuf>,
    /// Address of a SPARQL endpoint with BSBM data
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Requests to measure
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) requests: u32,
    /// Endless queries that run beside them meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) heavy: u32,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct GuardArguments {
    /// Number of products of the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Turns of each asker
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: u32,
    /// Long queries beside the short ones
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) heavy: u32,
    /// Where data and databases are made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct UpdateBenchArguments {
    /// Number of products of the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Seconds that each rate is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Query mixes to run with and without updates
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Measure only this part, or several such parts; all if not given
    #[arg(long = "part", value_enum, value_name = "PART")]
    pub(crate) parts: Vec<UpdateBenchPart>,
    /// Where data and databases are made: what is measured is the disk below
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct SoakArguments {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) seconds: u64,
    /// The same in minutes
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) minutes: Option<u64>,
    /// Clients; of each eight one is of each kind
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) clients: u32,
    /// Of them, those that ask nothing but queries that need more memory than there is
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=512))]
    pub(crate) heavy: u32,
    /// Number of products of the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(10..=200_000_000))]
    pub(crate) products: u32,
    /// Memory of the server
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub(crate) memory: Bytes,
    /// Where data are kept and the database is made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct SoakUpdatesArguments {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Clients that query
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) readers: u32,
    /// Clients that transfer
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) writers: u32,
    /// Where the database is made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UpdateBenchPart {
    /// Rates and times of transactions, and opening after a kill
    Transactions,
    /// The explore queries beside updates
    Mix,
    /// Queries over changes that are not compacted yet
    Reading,
}

impl From<UpdateBenchPart> for orrery_bench::drivers::UpdatePart {
    fn from(part: UpdateBenchPart) -> Self {
        match part {
            UpdateBenchPart::Transactions => Self::Transactions,
            UpdateBenchPart::Mix => Self::Mix,
            UpdateBenchPart::Reading => Self::Reading,
        }
    }
}

#[derive(Args)]
pub(crate) struct StoreBenchArguments {
    /// Number of products
    #[arg(long, value_name = "N", default_value_t = 28_482, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Where data and database are kept between runs
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}
