//! The commands of `orrery bench`: generators, and measurements of the `orrery` program from
//! outside.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use orrery_bench::drivers::{
    Binary, ColdOptions, CompareOptions, EstimatesOptions, ExploreOptions, FloorOptions,
    GuardOptions, Peer, RelationalOptions, ServerProcess, SnbOptions, SoakOptions,
    SoakUpdatesOptions, SpbOptions, SpbValidateOptions, StoreOptions, Target, TpchOptions,
    UpdateBenchOptions, VectorsOptions, cold, compare, compare_duckdb, estimates, explore, floor,
    guard, relational, snb, soak, soak_updates, spb, store, tpch, update, validate, validate_spb,
    vectors,
};
use orrery_bench::report::with_section;
use orrery_bench::snb::generator::{self, SnbGenerateOptions};
use orrery_bench::spb::generator::{self as spb_generator, SpbGenerateOptions};
use orrery_bench::tpch::streams;
use orrery_bsbm::GenerateOptions;
use orrery_storage::ByteCount;
use orrery_units::ShowCount;

use crate::arguments::{
    BenchSuite, BsbmCommand, ColdArguments, CompareArguments, EstimatesArguments, ExploreArguments,
    FloorArguments, GenerateArguments, GuardArguments, RelationalArguments, ReportFormat,
    SnbArguments, SnbCommand, SoakArguments, SoakUpdatesArguments, SpbArguments, SpbCommand,
    StoreBenchArguments, TpchArguments, UpdateBenchArguments, VectorsArguments,
};
use crate::failure::Failure;
use crate::output::Output;

/// The peer of tables; others are of triples.
const DUCKDB: &str = "duckdb";

pub(crate) fn run(suite: BenchSuite) -> Result<(), Failure> {
    match suite {
        BenchSuite::Bsbm(BsbmCommand::Generate(arguments)) => generate(&arguments),
        BenchSuite::Bsbm(BsbmCommand::Explore(arguments)) => run_explore(arguments),
        BenchSuite::Store(arguments) => run_store(arguments),
        BenchSuite::Floor(arguments) => run_floor(arguments),
        BenchSuite::Guard(arguments) => run_guard(arguments),
        BenchSuite::Update(arguments) => run_update(arguments),
        BenchSuite::Soak(arguments) => run_soak(arguments),
        BenchSuite::SoakUpdates(arguments) => run_soak_updates(arguments),
        BenchSuite::Cold(arguments) => run_cold(arguments),
        BenchSuite::Compare(arguments) => run_compare(arguments),
        BenchSuite::Relational(arguments) => run_relational(arguments),
        BenchSuite::Estimates(arguments) => run_estimates(arguments),
        BenchSuite::Tpch(arguments) => run_tpch(arguments),
        BenchSuite::Snb(arguments) => run_snb(arguments),
        BenchSuite::Spb(arguments) => run_spb(arguments),
        BenchSuite::Vectors(arguments) => run_vectors(arguments),
    }
}

fn generate(arguments: &GenerateArguments) -> Result<(), Failure> {
    let options = GenerateOptions {
        products: arguments.products,
        seed: arguments
            .seed
            .unwrap_or_else(|| GenerateOptions::default().seed),
    };
    let mut output = Output::open(arguments.output.as_deref())?;
    let report = orrery_bsbm::generate(&options, output.sink());
    let report = report.map_err(|error| output.failure(error))?;
    output.finish()?;
    eprintln!(
        "{} triples, {} in {:.1} s",
        ShowCount(report.triples),
        ByteCount(report.bytes),
        report.seconds
    );
    Ok(())
}

fn run_explore(arguments: ExploreArguments) -> Result<(), Failure> {
    let options = ExploreOptions {
        warm_up_mixes: arguments.warm_up,
        mixes: arguments.mixes,
        seed: arguments.seed,
        ..ExploreOptions::new(arguments.endpoint)
    };
    show(&explore(&options)?, arguments.report)
}

fn run_snb(arguments: SnbArguments) -> Result<(), Failure> {
    match arguments.command {
        None => {
            let Some(data) = arguments.data else {
                return Err(Failure::Other("--data is needed".to_owned()));
            };
            let options = SnbOptions {
                data,
                scale: arguments.scale,
                clients: arguments.clients,
                seconds: arguments.seconds,
                rounds: arguments.rounds,
                endpoint: arguments.endpoint,
            };
            let report = snb(&Binary::beside()?, &options, &mut |next| {
                eprintln!("{next} ...");
            })?;
            show(&report, arguments.report)
        }
        Some(SnbCommand::Generate(arguments)) => {
            let options = SnbGenerateOptions {
                scale: arguments.scale,
                seed: arguments.seed,
            };
            let report = generator::generate(&options, &arguments.output)
                .map_err(|error| Failure::file(&arguments.output, error))?;
            eprintln!(
                "{} persons, {} friendships, {} triples, {} updates in {:.1} s",
                ShowCount(u64::from(report.persons)),
                ShowCount(report.friendships),
                ShowCount(report.triples),
                ShowCount(report.updates),
                report.seconds
            );
            Ok(())
        }
        Some(SnbCommand::Validate(arguments)) => {
            let target = target(arguments.directory, arguments.endpoint)?;
            let report = validate(&target, &arguments.file, arguments.edge_weight)?;
            show(&report, arguments.report)?;
            match report.operations - report.agree {
                0 => Ok(()),
                wrong => Err(Failure::Other(format!(
                    "{wrong} of {} results differ; see above",
                    report.operations
                ))),
            }
        }
    }
}

fn run_spb(arguments: SpbArguments) -> Result<(), Failure> {
    let mut progress = |next: &str| eprintln!("{next} ...");
    match arguments.command {
        None => {
            let options = SpbOptions {
                data: arguments.data,
                endpoint: arguments.endpoint,
                has_text_index: !arguments.no_text_index,
                editors: arguments.editors,
                aggregators: arguments.aggregators,
                warm_up_seconds: arguments.warm_up,
                seconds: arguments.seconds,
                seed: arguments.seed,
            };
            let report = spb(&Binary::beside()?, &options, &mut progress)?;
            show(&report, arguments.report)?;
            match report.failures {
                0 => Ok(()),
                failures => Err(Failure::Other(format!(
                    "{failures} operations failed; see above"
                ))),
            }
        }
        Some(SpbCommand::Generate(arguments)) => {
            let options = SpbGenerateOptions {
                quads: arguments.quads,
                seed: arguments.seed,
                reference: arguments.reference,
            };
            let report = spb_generator::generate(&options, &arguments.out)
                .map_err(|error| Failure::Other(error.to_string()))?;
            eprintln!(
                "{} quads, {} works, {} entities and places in {:.1} s",
                ShowCount(report.quads),
                ShowCount(report.works),
                ShowCount(report.entities as u64),
                report.seconds
            );
            Ok(())
        }
        Some(SpbCommand::Validate(arguments)) => {
            let target = match (&arguments.directory, &arguments.endpoint) {
                (None, None) => None,
                _ => Some(target(arguments.directory, arguments.endpoint)?),
            };
            let options = SpbValidateOptions {
                data: arguments.data,
                target,
                has_text_index: !arguments.no_text_index,
                rounds: arguments.rounds,
                seed: arguments.seed,
            };
            let report = validate_spb(&Binary::beside()?, &options, &mut progress)?;
            show(&report, arguments.report)?;
            match report.operations - report.agree {
                0 => Ok(()),
                wrong => Err(Failure::Other(format!(
                    "{wrong} of {} results differ; see above",
                    report.operations
                ))),
            }
        }
    }
}

/// The directory of a database that is measured, which is on this machine.
fn local(directory: PathBuf) -> Result<PathBuf, Failure> {
    match directory.to_str().filter(|text| text.contains("://")) {
        None => Ok(directory),
        Some(address) => Err(Failure::Other(format!(
            "`orrery bench` takes a directory of this machine, not {address}"
        ))),
    }
}

fn target(directory: Option<PathBuf>, endpoint: Option<String>) -> Result<Target, Failure> {
    match (directory, endpoint) {
        (Some(directory), _) => Ok(Target::Database {
            binary: Binary::beside()?,
            directory: local(directory)?,
        }),
        (None, Some(endpoint)) => Ok(Target::Endpoint(endpoint)),
        (None, None) => Err(Failure::Other("--db or --endpoint is needed".to_owned())),
    }
}

fn run_store(arguments: StoreBenchArguments) -> Result<(), Failure> {
    let cache = arguments.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let mut options = StoreOptions::new(cache);
    options.data.products = arguments.products;
    let report = store(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)
}

fn run_floor(arguments: FloorArguments) -> Result<(), Failure> {
    // Held to the end: the server stops with it.
    let server = match arguments.directory {
        Some(directory) => Some(Binary::beside()?.serve_read_only(&local(directory)?)?),
        None => None,
    };
    let endpoint = match &server {
        Some(server) => Some(server.endpoint().to_owned()),
        None => arguments.endpoint,
    };
    let Some(endpoint) = endpoint else {
        return Err(Failure::Other("--db or --endpoint is needed".to_owned()));
    };
    let options = FloorOptions {
        endpoint,
        requests: arguments.requests,
        heavy: arguments.heavy,
        process: server.as_ref().map(ServerProcess::process),
    };
    show(&floor(&options)?, arguments.report)
}

fn run_guard(arguments: GuardArguments) -> Result<(), Failure> {
    let options = GuardOptions {
        cache: arguments.cache.unwrap_or_else(default_cache),
        data: GenerateOptions {
            products: arguments.products,
            ..GenerateOptions::default()
        },
        rounds: arguments.rounds,
        heavy: arguments.heavy,
    };
    let report = guard(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)
}

fn run_cold(arguments: ColdArguments) -> Result<(), Failure> {
    let options = ColdOptions {
        database: local(arguments.directory)?,
        rounds: arguments.rounds,
        seed: arguments.seed,
        against: arguments.against.map(Binary::new),
    };
    show(&cold(&Binary::beside()?, &options)?, arguments.report)
}

fn run_compare(arguments: CompareArguments) -> Result<(), Failure> {
    let section = format!("compare {}", arguments.peer);
    if let Some(path) = &arguments.document {
        // Before a quarter of an hour is spent on what cannot be written.
        document_with_section(path, &section, "")?;
    }
    let cache = arguments.store.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    if arguments.peer == DUCKDB {
        orrery_allocator::for_load(arguments.memory.0);
        let options = TpchOptions {
            scale: arguments.scale,
            cache,
            answers: None,
            streams: 0,
            threads: arguments.threads,
            memory_bytes: arguments.memory.0,
            runs: arguments.runs,
        };
        let script = arguments.peers.join("relational.py");
        let report = compare_duckdb(&options, script, &mut |next| eprintln!("{next} ..."))?;
        show(&report, arguments.store.report)?;
        if let Some(path) = &arguments.document {
            write_section(path, &section, &report.to_string())?;
        }
        return differing(report.differences.len(), report.pairs.len(), "DuckDB's");
    }
    let options = CompareOptions {
        data: GenerateOptions {
            products: arguments.store.products,
            ..GenerateOptions::default()
        },
        cache,
        mixes: arguments.mixes,
        peer: Peer::new(&arguments.peers, &arguments.peer),
    };
    let report = compare(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.store.report)?;
    if let Some(path) = &arguments.document {
        write_section(path, &section, &report.to_string())?;
    }
    let differences = report.differences.len();
    differing(differences, report.answers_compared, "the peer's")
}

fn differing(count: usize, compared: usize, whose: &str) -> Result<(), Failure> {
    match count {
        0 => Ok(()),
        count => Err(Failure::Other(format!(
            "{count} of {compared} answers differ from {whose}"
        ))),
    }
}

fn run_tpch(arguments: TpchArguments) -> Result<(), Failure> {
    orrery_allocator::for_load(arguments.memory.0);
    let cache = arguments.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let streams = match arguments.streams {
        Some(streams) => streams as usize,
        None => streams(arguments.scale),
    };
    let options = TpchOptions {
        scale: arguments.scale,
        cache,
        answers: arguments.answers,
        streams,
        threads: arguments.threads,
        memory_bytes: arguments.memory.0,
        runs: 1,
    };
    let report = tpch(&options, &mut |next| eprintln!("{next} ..."))?;
    show(&report, arguments.report)?;
    match report.mistakes.len() {
        0 => Ok(()),
        _ => Err(Failure::Other(
            "an answer or a table is wrong; see above".to_owned(),
        )),
    }
}

fn run_vectors(arguments: VectorsArguments) -> Result<(), Failure> {
    let section = format!("vectors {}", arguments.scale);
    if let Some(path) = &arguments.document {
        document_with_section(path, &section, "")?;
    }
    let cache = arguments.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let options = VectorsOptions {
        scale: arguments.scale,
        cache,
        answers: arguments.answers,
        threads: arguments.threads as usize,
        memory_bytes: arguments.memory.0,
        runs: arguments.runs,
        cell_limit: arguments.cell_limit.0,
    };
    let report = vectors(&options, &mut |next| eprintln!("{next} ..."))?;
    show(&report, arguments.report)?;
    if let Some(path) = &arguments.document {
        write_section(path, &section, &report.to_string())?;
    }
    match report.mistakes.len() {
        0 => Ok(()),
        _ => Err(Failure::Other("an answer is wrong; see above".to_owned())),
    }
}

fn run_relational(arguments: RelationalArguments) -> Result<(), Failure> {
    const SECTION: &str = "relational";
    if let Some(path) = &arguments.document {
        document_with_section(path, SECTION, "")?;
    }
    let cache = arguments.store.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let options = RelationalOptions {
        data: GenerateOptions {
            products: arguments.store.products,
            ..GenerateOptions::default()
        },
        cache,
        script: arguments.script,
        runs: arguments.runs,
        threads: arguments.threads,
    };
    let report = relational(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.store.report)?;
    if let Some(path) = &arguments.document {
        write_section(path, SECTION, &report.to_string())?;
    }
    let differences = report.differences.len();
    differing(differences, report.questions.len(), "the tables'")
}

/// Replaces a section of a document on disk.
fn write_section(path: &Path, section: &str, content: &str) -> Result<(), Failure> {
    let document = document_with_section(path, section, content)?;
    std::fs::write(path, document).map_err(|error| Failure::file(path, error))
}

fn document_with_section(path: &Path, section: &str, content: &str) -> Result<String, Failure> {
    let document = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
    with_section(&document, section, content).ok_or_else(|| {
        Failure::Other(format!(
            "{}: no lines `<!-- {section} -->` and `<!-- end of {section} -->` to write between",
            path.display()
        ))
    })
}

fn run_estimates(arguments: EstimatesArguments) -> Result<(), Failure> {
    let options = EstimatesOptions {
        database: local(arguments.directory)?,
        data: arguments.products.map(|products| GenerateOptions {
            products,
            ..GenerateOptions::default()
        }),
        sets: arguments.sets,
        patterns: arguments.patterns,
        seed: arguments.seed,
        timeout: arguments.timeout.0,
    };
    let report = estimates(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)
}

fn run_update(arguments: UpdateBenchArguments) -> Result<(), Failure> {
    let cache = arguments.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let options = UpdateBenchOptions {
        data: GenerateOptions {
            products: arguments.products,
            ..GenerateOptions::default()
        },
        cache,
        seconds: arguments.seconds,
        mixes: arguments.mixes,
        parts: arguments.parts.iter().map(|&part| part.into()).collect(),
    };
    let report = update(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)
}

fn run_soak(arguments: SoakArguments) -> Result<(), Failure> {
    let options = SoakOptions {
        cache: arguments.cache.unwrap_or_else(default_cache),
        data: GenerateOptions {
            products: arguments.products,
            ..GenerateOptions::default()
        },
        seconds: arguments
            .minutes
            .map_or(arguments.seconds, |minutes| minutes * 60),
        clients: arguments.clients as usize,
        heavy: arguments.heavy as usize,
        memory_bytes: arguments.memory.0,
    };
    let report = soak(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)?;
    clean(report.is_clean())
}

fn run_soak_updates(arguments: SoakUpdatesArguments) -> Result<(), Failure> {
    let cache = arguments.cache.unwrap_or_else(default_cache);
    std::fs::create_dir_all(&cache).map_err(|error| Failure::file(&cache, error))?;
    let options = SoakUpdatesOptions {
        cache,
        seconds: arguments.seconds,
        readers: arguments.readers,
        writers: arguments.writers,
    };
    let report = soak_updates(&Binary::beside()?, &options, &mut |next| {
        eprintln!("{next} ...");
    })?;
    show(&report, arguments.report)?;
    clean(report.is_clean())
}

fn clean(is_clean: bool) -> Result<(), Failure> {
    match is_clean {
        true => Ok(()),
        false => Err(Failure::Other(
            "something failed or was wrong; see above".to_owned(),
        )),
    }
}

/// Data sets are large and worth keeping: the user's cache, not the system's temporary directory.
fn default_cache() -> PathBuf {
    match std::env::var_os("HOME") {
        Some(home) => PathBuf::from(home).join(".cache/orrery/bench"),
        None => std::env::temp_dir().join("orrery-bench"),
    }
}

fn show<R: Display + serde::Serialize>(report: &R, format: ReportFormat) -> Result<(), Failure> {
    let mut text = match format {
        ReportFormat::Text => report.to_string(),
        ReportFormat::Json => serde_json::to_string_pretty(report)
            .map_err(|error| Failure::Other(format!("cannot write the report: {error}")))?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut output = Output::open(None)?;
    output.write(text.as_bytes())?;
    output.finish()
}
