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
    /// Berlin SPARQL Benchmark (BSBM): generate data, run explore queries
    #[command(subcommand)]
    Bsbm(BsbmCommand),
    /// Measure load, size, opening, point, explore and count queries
    Store(StoreBenchArguments),
    /// Measure the minimal cost of a request: point queries over one connection
    Floor(FloorArguments),
    /// Measure the cost of users, rules and limits, and waits beside long queries
    Guard(GuardArguments),
    /// Measure transactions over HTTP, updates beside queries, opening after a kill
    Update(UpdateBenchArguments),
    /// Run clients of every kind against a server for hours; check answers and memory
    Soak(SoakArguments),
    /// Run readers and writers beside checkpoints, compactions and loads; check answers
    SoakUpdates(SoakUpdatesArguments),
    /// Measure first queries on a cold database against a warm one
    Cold(ColdArguments),
    /// Compare with another store on the same data
    Compare(CompareArguments),
    /// Compare SPARQL on triples with DuckDB's SQL on the same data
    Relational(RelationalArguments),
    /// Measure the errors of the planner's estimates
    Estimates(EstimatesArguments),
    /// Run TPC-H on tables: load, answers, power test, throughput test
    Tpch(TpchArguments),
    /// Run the LDBC Social Network Benchmark, Interactive v1
    Snb(SnbArguments),
    /// Run the LDBC Semantic Publishing Benchmark 2.0, basic set
    Spb(SpbArguments),
    /// Measure TPC-H Q9 on five data layouts, by column and row, with three vector sizes
    Vectors(VectorsArguments),
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SnbArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SnbCommand>,
    /// Directory of the data set: social_network_*.ttl, updateStream_*.csv (.gz too),
    /// substitution_parameters
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) data: Option<PathBuf>,
    /// Scale factor; it decides the frequencies of complex reads
    #[arg(long, value_name = "N", default_value_t = 0.1, value_parser = snb_scale)]
    pub(crate) scale: f64,
    /// Number of clients of the mix
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) clients: u32,
    /// Length of each run of the mix in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Runs of each complex read with each of its parameters
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Endpoint that has the data set; if not given, the data set is loaded and served
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Subcommand)]
pub(crate) enum SnbCommand {
    /// Run the operations of a validation file in order, and compare results
    Validate(SnbValidateArguments),
    /// Generate a data set with update streams and parameters
    Generate(SnbGenerateArguments),
}

#[derive(Args)]
pub(crate) struct SnbGenerateArguments {
    /// Scale factor: 0.1 has some 1,700 persons, 1 some 11,000
    #[arg(long, value_name = "N", value_parser = snb_scale)]
    pub(crate) scale: f64,
    /// Random seed; the same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output directory
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
    /// Validation file, as the official driver's validation_params.csv; also .gz
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Directory of a database with the data set, which is served
    #[arg(long = "db", value_name = "DIR", required_unless_present = "endpoint")]
    pub(crate) directory: Option<PathBuf>,
    /// Endpoint for queries and updates instead
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) endpoint: Option<String>,
    /// Run complex read 14 with an edge weight, which is defined first
    #[arg(long)]
    pub(crate) edge_weight: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SpbArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SpbCommand>,
    /// File or directory to load and serve: .nq, .nt, .ttl (.gz too); may be repeated
    #[arg(long, value_name = "PATH", required_unless_present = "endpoint")]
    pub(crate) data: Vec<PathBuf>,
    /// Endpoint with data instead; its default graph must be the union of all graphs. Editors
    /// change its data
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) endpoint: Option<String>,
    /// Length of the measurement in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) seconds: u32,
    /// Seconds of warm-up before the measurement
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub(crate) warm_up: u32,
    /// Number of agents that insert, update and delete works
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) editors: u32,
    /// Number of agents that run the aggregation queries
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) aggregators: u32,
    /// Random seed; the same seed draws the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Load without a full-text index; query 8 then reads all literals
    #[arg(long)]
    pub(crate) no_text_index: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Subcommand)]
pub(crate) enum SpbCommand {
    /// Compare the answers of each query and edit with a reference evaluation
    Validate(SpbValidateArguments),
    /// Generate data as N-Quads
    Generate(SpbGenerateArguments),
}

#[derive(Args)]
pub(crate) struct SpbGenerateArguments {
    /// Number of quads; the last work is completed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000_000))]
    pub(crate) quads: u64,
    /// Random seed; the same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output file, compressed if its name ends in .gz
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// File with reference data that works refer to, loaded separately; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) reference: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SpbValidateArguments {
    /// File or directory with the data; may be repeated
    #[arg(long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// Directory of a database with the data; if not given, the data are loaded
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Endpoint instead, whose default graph is the union of all graphs
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) endpoint: Option<String>,
    /// Number of parameters of each query
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Random seed; the same seed draws the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Load without a full-text index
    #[arg(long)]
    pub(crate) no_text_index: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct VectorsArguments {
    /// Scale factor; 1 is about 1 GB of text, and takes 6 GB of memory
    #[arg(long, value_name = "N", default_value = "0.1")]
    pub(crate) scale: Scale,
    /// Directory with the expected answer, q09.csv; if not given, answers are compared with SQL's
    /// alone
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Number of threads of each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Runs of each cell, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Time limit of a cell, all its runs together
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) cell_limit: Seconds,
    /// Memory limit of the SQL engine
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Directory for files and the database; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
    /// Document to write the table into, between `<!-- vectors SCALE -->` and `<!-- end of vectors
    /// SCALE -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TpchArguments {
    /// Scale factor; 1 is about 1 GB of text
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// Directory with the expected answers, q01.csv to q22.csv; if not given, answers are not
    /// checked
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Streams of the throughput test; as many as the specification asks for if not given. 0 skips
    /// the test
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) streams: Option<u32>,
    /// Number of threads of the engine
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Memory limit of the engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Directory for files and the database; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct EstimatesArguments {
    /// Directory of the database
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Products of the BSBM data set in the database; if given, its queries run too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: Option<u32>,
    /// Parameter sets of each BSBM query
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) sets: u32,
    /// Number of graph patterns drawn from the data by random walks
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) patterns: u32,
    /// Random seed; the same seed draws the same parameters and patterns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timeout of a query; slower ones are left out
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) timeout: Seconds,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct ColdArguments {
    /// Directory of the database
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Measurements of each way to begin
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Random seed; the same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Another build of this program to compare with, measured in turn
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Other store, set up by the script of this name in --peers; `duckdb` for TPC-H on tables
    #[arg(long, value_name = "NAME", default_value = "virtuoso")]
    pub(crate) peer: String,
    /// Directory with the scripts of other stores
    #[arg(long, value_name = "DIR", default_value = "bench/peers")]
    pub(crate) peers: PathBuf,
    /// Number of query mixes of the explore queries
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// With duckdb: scale factor of TPC-H
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// With duckdb: runs of each query, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// With duckdb: number of threads of both engines
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// With duckdb: memory limit of our engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Document to write the table into, between `<!-- compare NAME -->` and `<!-- end of compare
    /// NAME -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Args)]
pub(crate) struct RelationalArguments {
    /// Script that runs DuckDB
    #[arg(long, value_name = "FILE", default_value = "bench/peers/relational.py")]
    pub(crate) script: PathBuf,
    /// Runs of each query, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Number of threads of one query in both engines
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Document to write the table into, between `<!-- relational -->` and `<!-- end of relational
    /// -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Subcommand)]
pub(crate) enum BsbmCommand {
    /// Generate the data set as N-Triples
    Generate(GenerateArguments),
    /// Run the explore queries against an endpoint
    Explore(ExploreArguments),
}

#[derive(Args)]
pub(crate) struct GenerateArguments {
    /// Number of products; 2,785 give a million triples, 28,482 ten million
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Random seed; the same seed gives the same data
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Output file; standard output if not given
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
    /// Number of query mixes to measure
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Number of query mixes of warm-up
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) warm_up: u32,
    /// Random seed; the same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct FloorArguments {
    /// Directory of a database with BSBM data, which is served
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
    /// Number of requests to measure
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) requests: u32,
    /// Number of endless queries that run meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) heavy: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct GuardArguments {
    /// Number of products in the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Number of turns of each asker
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: u32,
    /// Number of long queries beside the short ones
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) heavy: u32,
    /// Directory for data and databases; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct UpdateBenchArguments {
    /// Number of products in the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Length of each measurement in seconds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Number of query mixes with and without updates
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Part to measure; may be repeated. All if not given
    #[arg(long = "part", value_enum, value_name = "PART")]
    pub(crate) parts: Vec<UpdateBenchPart>,
    /// Directory for data and databases, whose disk is measured; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct SoakArguments {
    /// Length of the run in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) seconds: u64,
    /// Length of the run in minutes
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) minutes: Option<u64>,
    /// Number of clients; each eight have one of each kind
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) clients: u32,
    /// Number of these clients that only run queries beyond the memory limit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=512))]
    pub(crate) heavy: u32,
    /// Number of products in the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(10..=200_000_000))]
    pub(crate) products: u32,
    /// Memory limit of the server
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub(crate) memory: Bytes,
    /// Directory for data and the database; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct SoakUpdatesArguments {
    /// Length of the run in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Number of clients that query
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) readers: u32,
    /// Number of clients that update
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) writers: u32,
    /// Directory for the database; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UpdateBenchPart {
    /// Rates and times of transactions, and opening after a kill
    Transactions,
    /// The explore queries beside updates
    Mix,
    /// Queries over changes that are not compacted
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
    /// Number of products in the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 28_482, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Directory that holds data and database between runs; ~/.cache/orrery/bench if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}
