//! Tests of the drivers against stand-ins: an endpoint by `spareval`, and a script for `orrery`.

#![allow(clippy::expect_used)] // A stand-in that fails has failed the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use orrery_bench::drivers::{
    BenchError, Binary, ExploreOptions, FloorOptions, LoadOptions, OpenOptions, count, explore,
    explore_clients, floor, load, open, parameter_pool,
};
use orrery_bench::http_client::HttpClient;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::{GenerateOptions, generate};
use oxrdf::{Dataset, GraphName, Term};
use oxttl::NTriplesParser;
use serde_json::{Map, Value, json};
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;

fn data() -> Vec<u8> {
    let mut data = Vec::new();
    let options = GenerateOptions {
        products: 40,
        seed: 16,
    };
    generate(&options, &mut data).expect("memory");
    data
}

/// Queries in the order in which they came.
type Asked = Arc<Mutex<Vec<String>>>;

/// Answers queries over the data on a free port, connection by connection.
fn serve(data: &[u8]) -> String {
    serve_noting(data, Asked::default())
}

/// The same, and notes each query.
fn serve_noting(data: &[u8], asked: Asked) -> String {
    let dataset: Dataset = NTriplesParser::new()
        .for_slice(data)
        .map(|triple| triple.expect("N-Triples").in_graph(GraphName::DefaultGraph))
        .collect();
    let dataset = Arc::new(dataset);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (dataset, asked) = (Arc::clone(&dataset), Arc::clone(&asked));
            std::thread::spawn(move || answer_all(stream.expect("a connection"), &dataset, &asked));
        }
    });
    format!("http://{address}/sparql")
}

fn answer_all(stream: TcpStream, dataset: &Dataset, asked: &Asked) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).expect("a request") == 0 {
                return;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut query = vec![0; length];
        reader.read_exact(&mut query).expect("a query");
        let query = String::from_utf8(query).expect("UTF-8");
        let body = evaluate(dataset, &query);
        asked.lock().expect("no panic").push(query);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        reader
            .get_mut()
            .write_all(head.as_bytes())
            .expect("a client");
        reader
            .get_mut()
            .write_all(body.as_bytes())
            .expect("a client");
    }
}

fn evaluate(dataset: &Dataset, text: &str) -> String {
    let query = SparqlParser::new()
        .parse_query(text)
        .expect("a valid query");
    match QueryEvaluator::new()
        .prepare(&query)
        .execute(dataset)
        .expect("an answer")
    {
        QueryResults::Solutions(solutions) => {
            let bindings: Vec<Value> = solutions
                .map(|solution| {
                    let solution = solution.expect("a solution");
                    let cells = solution
                        .iter()
                        .map(|(name, term)| (name.as_str().to_owned(), cell(term)));
                    Value::Object(cells.collect::<Map<_, _>>())
                })
                .collect();
            json!({ "results": { "bindings": bindings } }).to_string()
        }
        QueryResults::Graph(triples) => triples
            .map(|triple| format!("{} .\n", triple.expect("a triple")))
            .collect(),
        QueryResults::Boolean(value) => json!({ "boolean": value }).to_string(),
    }
}

fn cell(term: &Term) -> Value {
    match term {
        Term::NamedNode(iri) => json!({ "type": "uri", "value": iri.as_str() }),
        Term::BlankNode(node) => json!({ "type": "bnode", "value": node.as_str() }),
        Term::Literal(literal) => json!({ "type": "literal", "value": literal.value() }),
        Term::Triple(triple) => panic!("no benchmark has a triple term: {triple}"),
    }
}

#[test]
fn an_endpoint_gives_the_pool_that_a_scan_gives() {
    let data = data();
    let endpoint = serve(&data);
    let mut client = HttpClient::new(&endpoint).expect("an address");
    let fetched = parameter_pool(&mut client).expect("a pool");
    let scanned = ParameterPool::from_ntriples(data.as_slice()).expect("a pool");
    assert_eq!(fetched, scanned);
}

#[test]
fn explore_and_count_measure_an_endpoint() {
    let data = data();
    let endpoint = serve(&data);
    let report = explore(&ExploreOptions {
        warm_up_mixes: 0,
        mixes: 2,
        ..ExploreOptions::new(&endpoint)
    })
    .expect("answers");
    assert_eq!(report.queries.len(), 11);
    assert_eq!(
        report
            .queries
            .iter()
            .map(|query| query.times.runs)
            .sum::<usize>(),
        50
    );
    assert!(report.query_mixes_per_hour > 0.0);
    let counted = count(&endpoint, 2).expect("a count");
    let lines = data.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(counted.triples, lines as u64);
}

#[test]
fn what_warmed_up_is_not_asked_again() {
    let data = data();
    let asked = Asked::default();
    let options = ExploreOptions {
        warm_up_mixes: 1,
        mixes: 1,
        pool: Some(ParameterPool::from_ntriples(data.as_slice()).expect("a pool")),
        ..ExploreOptions::new(serve_noting(&data, Arc::clone(&asked)))
    };
    assert!(explore_clients(&options, 1).expect("answers") > 0.0);
    let asked = asked.lock().expect("no panic");
    let (warm_up, measured) = asked.split_at(25);
    assert_eq!(measured.len(), 25);
    assert_ne!(warm_up, measured);
}

#[test]
fn an_endpoint_without_benchmark_data_is_told() {
    let endpoint = serve(b"<http://a> <http://b> <http://c> .\n");
    let error = explore(&ExploreOptions::new(&endpoint)).expect_err("no parameters");
    assert!(matches!(error, BenchError::Parameters(_)), "{error}");
}

#[cfg(unix)]
#[test]
fn load_and_open_measure_a_program() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("orrery");
    let text = "#!/bin/sh\n\
        # load --db DIR ...: a database of 1,000 bytes from 100 statements\n\
        if [ \"$1\" = load ]; then mkdir -p \"$3\"; head -c 1000 /dev/zero > \"$3/column\"\n\
        echo '{\"quads_read\": 100, \"quads_added\": 50, \"peak_memory_bytes\": 7000000000}'; fi\n";
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let binary = Binary::new(script);
    let report = load(
        &binary,
        &LoadOptions {
            database: folder.path().join("db"),
            files: vec![folder.path().join("data.nt")],
            memory: "4G".to_owned(),
        },
    )
    .expect("a report");
    assert_eq!((report.triples, report.database_bytes), (50, 1_000));
    assert_eq!(report.bytes_per_triple, 20.0);
    assert_eq!(report.peak_memory_bytes, 7_000_000_000);
    let report = open(
        &binary,
        &OpenOptions {
            database: folder.path().join("db"),
            query: "ASK {}".to_owned(),
            runs: 3,
        },
    )
    .expect("times");
    assert_eq!(report.times.runs, 3);
}

#[test]
fn the_floor_is_measured_on_the_products_of_the_endpoint() {
    let options = FloorOptions {
        endpoint: serve(&data()),
        requests: 20,
        heavy: 0,
        process: Some(std::process::id()),
    };
    let report = floor(&options).expect("answers");
    assert_eq!(report.request.runs, 20);
    // This endpoint does not tell its times.
    assert!(report.parts.is_empty());
    assert!(report.processor_us.is_none_or(|micros| micros > 0.0));

    let no_data = FloorOptions {
        endpoint: serve(b""),
        ..options
    };
    let error = floor(&no_data).expect_err("there are no products");
    assert!(matches!(error, BenchError::Result { .. }), "{error}");
}
