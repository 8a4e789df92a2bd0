//! What is written is read back by the parsers of `sparesults` and `oxrdfio`.

use super::*;
use orrery_term::{Direction, Term, Triple};
use oxrdf::{BlankNode, NamedNode};
use oxrdfio::{RdfFormat, RdfParser};
use proptest::prelude::*;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};

type Row = Vec<Option<Term<'static>>>;

fn write(format: SolutionFormat, variables: &[&str], rows: &[Row]) -> Vec<u8> {
    let variables: Vec<String> = variables.iter().map(|&name| name.to_owned()).collect();
    let mut out = Vec::new();
    let mut serializer = SolutionSerializer::start(format, &variables, &mut out);
    for row in rows {
        serializer
            .row(row.iter().map(Option::as_ref), &mut out)
            .unwrap();
    }
    assert!(serializer.finish(&mut out).unwrap());
    out
}

fn text(format: SolutionFormat, variables: &[&str], rows: &[Row]) -> String {
    String::from_utf8(write(format, variables, rows)).unwrap()
}

fn oxrdf_term(term: &Term<'_>) -> oxrdf::Term {
    orrery_sparql::term_to_oxrdf(term)
}

fn read_back(format: QueryResultsFormat, bytes: &[u8]) -> Vec<Vec<Option<oxrdf::Term>>> {
    match QueryResultsParser::from_format(format)
        .for_slice(bytes)
        .unwrap()
    {
        SliceQueryResultsParserOutput::Solutions(solutions) => solutions
            .map(|solution| solution.unwrap().values().to_vec())
            .collect(),
        SliceQueryResultsParserOutput::Boolean(_) => panic!("a boolean"),
    }
}

fn odd_rows() -> Vec<Row> {
    vec![
        vec![
            Some(Term::iri("http://example.com/ä?a=1,2&b=\u{1F600}")),
            Some(Term::BlankNode(u64::MAX)),
            Some(Term::string("")),
        ],
        vec![
            Some(Term::string("tab\t line\n return\r quote\" back\\ <&>'")),
            None,
            Some(Term::language("grüß", "de-at")),
        ],
        vec![
            None,
            Some(Term::typed(
                "01",
                "http://www.w3.org/2001/XMLSchema#integer",
            )),
            Some(Term::typed(
                "-1.5E-3",
                "http://www.w3.org/2001/XMLSchema#double",
            )),
        ],
        vec![None, None, None],
    ]
}

#[test]
fn json_xml_and_tsv_are_read_back_the_same() {
    let rows = odd_rows();
    let expected: Vec<Vec<Option<oxrdf::Term>>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|term| term.as_ref().map(oxrdf_term))
                .collect()
        })
        .collect();
    for (ours, theirs) in [
        (SolutionFormat::Json, QueryResultsFormat::Json),
        (SolutionFormat::Xml, QueryResultsFormat::Xml),
        (SolutionFormat::Tsv, QueryResultsFormat::Tsv),
    ] {
        let bytes = write(ours, &["a", "b", "c"], &rows);
        assert_eq!(read_back(theirs, &bytes), expected, "{}", ours.name());
    }
}

#[test]
fn json_is_to_the_letter_what_sparesults_writes() {
    let rows = odd_rows();
    let variables = ["a", "b", "c"].map(|name| oxrdf::Variable::new(name).unwrap());
    let serializer = sparesults::QueryResultsSerializer::from_format(QueryResultsFormat::Json);
    let mut writer = serializer
        .serialize_solutions_to_writer(Vec::new(), variables.to_vec())
        .unwrap();
    for row in &rows {
        let terms: Vec<_> = row
            .iter()
            .map(|term| term.as_ref().map(oxrdf_term))
            .collect();
        let bound = variables.iter().zip(&terms);
        let bound = bound.filter_map(|(variable, term)| Some((variable, term.as_ref()?)));
        writer.serialize(bound).unwrap();
    }
    let theirs = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(text(SolutionFormat::Json, &["a", "b", "c"], &rows), theirs);
}

#[test]
fn csv_quotes_what_needs_it() {
    let expected = "a,b,c\r\n\
                    \"http://example.com/ä?a=1,2&b=\u{1F600}\",_:b18446744073709551615,\r\n\
                    \"tab\t line\n return\r quote\"\" back\\ <&>'\",,grüß\r\n\
                    ,01,-1.5E-3\r\n\
                    ,,\r\n";
    assert_eq!(
        text(SolutionFormat::Csv, &["a", "b", "c"], &odd_rows()),
        expected
    );
}

#[test]
fn tsv_writes_numbers_bare_only_where_turtle_reads_them_the_same() {
    let xsd = |name: &str| format!("http://www.w3.org/2001/XMLSchema#{name}");
    let written = |lexical: &str, datatype: &str| {
        let row = vec![Some(Term::typed(lexical.to_owned(), xsd(datatype)))];
        let text = text(SolutionFormat::Tsv, &["x"], &[row]);
        text.lines().nth(1).unwrap().to_owned()
    };
    for (lexical, datatype) in [
        ("42", "integer"),
        ("-007", "integer"),
        ("+1.50", "decimal"),
        (".5", "decimal"),
        ("1e6", "double"),
        ("1.E+6", "double"),
        ("true", "boolean"),
    ] {
        assert_eq!(written(lexical, datatype), lexical);
    }
    for (lexical, datatype) in [
        ("", "integer"),
        ("1.", "decimal"),
        ("1", "decimal"),
        ("NaN", "double"),
        ("1.5", "double"),
        (".e1", "double"),
        ("1", "boolean"),
        ("5", "int"),
    ] {
        assert_eq!(
            written(lexical, datatype),
            format!("\"{lexical}\"^^<{}>", xsd(datatype))
        );
    }
}

#[test]
fn control_characters_are_escaped_or_replaced_never_raw() {
    let rows = [vec![Some(Term::string("\u{1b}[31m\u{0}\u{7f}"))]];
    assert!(text(SolutionFormat::Json, &["x"], &rows).contains("\\u001B[31m\\u0000"));
    assert!(text(SolutionFormat::Xml, &["x"], &rows).contains("\u{FFFD}[31m\u{FFFD}"));
    assert!(text(SolutionFormat::Tsv, &["x"], &rows).contains("\\u001B[31m\\u0000\\u007F"));
    assert!(text(SolutionFormat::Table, &["x"], &rows).contains("\\u001B[31m\\u0000\\u007F"));
}

#[test]
fn booleans_in_every_format() {
    let boolean = |format| {
        let mut out = Vec::new();
        SolutionSerializer::boolean(format, true, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        boolean(SolutionFormat::Json),
        r#"{"head":{},"boolean":true}"#
    );
    assert!(boolean(SolutionFormat::Xml).ends_with("<boolean>true</boolean></sparql>"));
    assert_eq!(boolean(SolutionFormat::Csv), "true");
    for format in [QueryResultsFormat::Json, QueryResultsFormat::Xml] {
        let ours = SolutionFormat::from_name(format.file_extension()).unwrap();
        let bytes = boolean(ours).into_bytes();
        let parsed = QueryResultsParser::from_format(format)
            .for_slice(&bytes)
            .unwrap();
        assert!(matches!(
            parsed,
            SliceQueryResultsParserOutput::Boolean(true)
        ));
    }
}

#[test]
fn answers_without_rows_or_variables_are_complete_documents() {
    assert_eq!(
        text(SolutionFormat::Json, &[], &[vec![]]),
        r#"{"head":{"vars":[]},"results":{"bindings":[{}]}}"#
    );
    assert_eq!(text(SolutionFormat::Csv, &["x"], &[]), "x\r\n");
    assert_eq!(text(SolutionFormat::Tsv, &["x", "y"], &[]), "?x\t?y\n");
    assert!(
        read_back(
            QueryResultsFormat::Xml,
            &write(SolutionFormat::Xml, &["x"], &[])
        )
        .is_empty()
    );
    assert_eq!(text(SolutionFormat::Table, &["x"], &[]), "x\n─\n0 rows\n");
}

#[test]
fn table_aligns_columns_and_cuts_long_cells() {
    let rows = [
        vec![
            Some(Term::iri("http://e/a")),
            Some(Term::typed("7", "http://www.w3.org/2001/XMLSchema#integer")),
        ],
        vec![Some(Term::string("two\nlines")), None],
    ];
    assert_eq!(
        text(SolutionFormat::Table, &["thing", "n"], &rows),
        "thing         n\n\
         ────────────  ─\n\
         <http://e/a>  7\n\
         two\\nlines    \n\
         2 rows\n"
    );
    let long = [vec![Some(Term::string("x".repeat(200)))]];
    let table = text(SolutionFormat::Table, &["x"], &long);
    assert_eq!(
        table.lines().nth(2).unwrap(),
        format!("{}…", "x".repeat(79))
    );
    let fitting = [vec![Some(Term::string("x".repeat(80)))]];
    assert!(text(SolutionFormat::Table, &["x"], &fitting).contains(&"x".repeat(80)));
}

#[test]
fn long_tables_stream() {
    let row = [Some(Term::string("x"))];
    let mut out = Vec::new();
    let mut serializer =
        SolutionSerializer::start(SolutionFormat::Table, &["v".to_owned()], &mut out);
    for _ in 0..1000 {
        serializer
            .row(row.iter().map(Option::as_ref), &mut out)
            .unwrap();
    }
    assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1002);
    assert!(serializer.finish(&mut out).unwrap());
    assert!(out.ends_with(b"1000 rows\n"));
}

fn example_quads() -> Vec<[Option<Term<'static>>; 4]> {
    let node = |name: &str| Some(Term::iri(format!("http://example.com/{name}")));
    let graph = node("g");
    vec![
        [
            node("s"),
            node("p"),
            Some(Term::string("a \"quoted\"\n\ttext\r\\")),
            None,
        ],
        [
            node("s"),
            node("p"),
            Some(Term::language("hallo", "de")),
            None,
        ],
        [node("s"), node("q"), Some(Term::BlankNode(3)), None],
        [
            Some(Term::BlankNode(3)),
            node("q"),
            Some(Term::typed("1", "http://www.w3.org/2001/XMLSchema#integer")),
            graph,
        ],
        [node("s"), node("q"), node("o"), Some(Term::BlankNode(9))],
    ]
}

fn serialize_graph(
    format: GraphFormat,
    quads: &[[Option<Term<'static>>; 4]],
) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    let mut serializer = GraphSerializer::start(format);
    for [subject, predicate, object, graph] in quads {
        serializer.quad(
            subject.as_ref().unwrap(),
            predicate.as_ref().unwrap(),
            object.as_ref().unwrap(),
            graph.as_ref(),
            &mut out,
        )?;
    }
    serializer.finish(&mut out)?;
    Ok(out)
}

#[test]
fn graph_formats_are_read_back_the_same() {
    let quads = example_quads();
    for format in GraphFormat::ALL {
        let quads = if format.has_named_graphs() {
            &quads[..]
        } else {
            &quads[..3]
        };
        let bytes = serialize_graph(format, quads).unwrap();
        let parser =
            RdfParser::from_format(RdfFormat::from_extension(format.file_extension()).unwrap());
        let read: oxrdf::Dataset = parser.for_slice(&bytes).map(|quad| quad.unwrap()).collect();
        let expected: oxrdf::Dataset = quads.iter().map(oxrdf_quad).collect();
        let mut read = read;
        let mut expected = expected;
        read.canonicalize(oxrdf::dataset::CanonicalizationAlgorithm::Unstable);
        expected.canonicalize(oxrdf::dataset::CanonicalizationAlgorithm::Unstable);
        assert_eq!(read, expected, "{}", format.name());
    }
}

fn oxrdf_quad(quad: &[Option<Term<'static>>; 4]) -> oxrdf::Quad {
    let node = |term: &Term<'_>| -> oxrdf::NamedOrBlankNode {
        match term {
            Term::Iri(iri) => NamedNode::new(iri.as_ref()).unwrap().into(),
            Term::BlankNode(number) => BlankNode::new(format!("b{number}")).unwrap().into(),
            Term::Literal(_) | Term::Triple(_) => panic!("{term} as a node"),
        }
    };
    let [subject, predicate, object, graph] = quad;
    oxrdf::Quad {
        subject: node(subject.as_ref().unwrap()),
        predicate: NamedNode::new(match predicate.as_ref().unwrap() {
            Term::Iri(iri) => iri.as_ref(),
            _ => panic!("a predicate is an IRI"),
        })
        .unwrap(),
        object: oxrdf_term(object.as_ref().unwrap()),
        graph_name: graph
            .as_ref()
            .map_or(oxrdf::GraphName::DefaultGraph, |name| node(name).into()),
    }
}

#[test]
fn what_a_format_cannot_express_is_an_error_that_names_it() {
    for format in [
        GraphFormat::Turtle,
        GraphFormat::NTriples,
        GraphFormat::RdfXml,
    ] {
        let error = serialize_graph(format, &example_quads()).unwrap_err();
        assert!(error.to_string().starts_with(format.name()), "{error}");
    }
    let no_xml_name = [[
        Some(Term::iri("http://example.com/s")),
        Some(Term::iri("http://example.com/1/")),
        Some(Term::string("x")),
        None,
    ]];
    assert!(serialize_graph(GraphFormat::RdfXml, &no_xml_name).is_err());
}

#[test]
fn names_extensions_and_media_types_lead_back_to_their_format() {
    for format in SolutionFormat::ALL {
        assert_eq!(SolutionFormat::from_name(format.name()), Some(format));
        assert_eq!(
            SolutionFormat::from_name(format.file_extension()),
            Some(format)
        );
    }
    for format in GraphFormat::ALL {
        assert_eq!(
            GraphFormat::from_name(&format.name().to_uppercase()),
            Some(format)
        );
        assert_eq!(
            GraphFormat::from_name(format.file_extension()),
            Some(format)
        );
    }
    assert_eq!(GraphFormat::from_name("json"), Some(GraphFormat::JsonLd));
    assert_eq!(
        solution_format_names(),
        "json, xml, csv, tsv, arrow, parquet, table"
    );
}

fn any_term() -> impl Strategy<Value = Term<'static>> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Term::BlankNode),
        "[a-zA-Z0-9/,;=&äß]{0,20}".prop_map(|tail| Term::iri(format!("http://example.com/{tail}"))),
        ".*".prop_map(Term::string),
        "[ -~\t\r\n]{0,30}".prop_map(Term::string),
        (".*", "[a-z]{2}(-[a-z]{2})?").prop_map(|(text, tag)| Term::language(text, tag)),
        "[0-9.eE+-]{0,8}"
            .prop_map(|text| Term::typed(text, "http://www.w3.org/2001/XMLSchema#double")),
        (".*", "[a-z]{2}", any::<bool>()).prop_map(|(text, tag, is_ltr)| {
            let direction = match is_ltr {
                true => Direction::LeftToRight,
                false => Direction::RightToLeft,
            };
            Term::directional(text, tag, direction)
        }),
    ];
    leaf.prop_recursive(2, 3, 1, |object| {
        ("[a-z]{0,3}", "[a-z:]{1,3}", object).prop_map(|(subject, predicate, object)| {
            let iri = |tail| Term::iri(format!("http://example.com/{tail}"));
            let triple = Triple::new(iri(subject), iri(predicate), object);
            triple.unwrap().into()
        })
    })
}

/// Gives all blank nodes of a term the same label.
fn anonymise(term: &mut oxrdf::Term) {
    match term {
        oxrdf::Term::BlankNode(node) => *node = BlankNode::new_unchecked("x"),
        oxrdf::Term::Triple(triple) => anonymise(&mut triple.object),
        oxrdf::Term::NamedNode(_) | oxrdf::Term::Literal(_) => {}
    }
}

#[test]
fn terms_of_rdf_1_2_are_read_back_from_every_format() {
    let iri = || Term::iri("http://example.com/a");
    let inner = Triple::new(Term::BlankNode(1), iri(), Term::string("a\"b\n<&"));
    let outer = Triple::new(iri(), iri(), inner.unwrap().into());
    let terms = [
        Term::directional("שלום", "he", Direction::RightToLeft),
        Term::directional("hello", "en-gb", Direction::LeftToRight),
        outer.unwrap().into(),
    ];
    let rows: Vec<Row> = terms.iter().map(|term| vec![Some(term.clone())]).collect();
    let expected: Vec<_> = terms
        .iter()
        .map(|term| vec![Some(oxrdf_term(term))])
        .collect();
    for (ours, theirs) in [
        (SolutionFormat::Json, QueryResultsFormat::Json),
        (SolutionFormat::Xml, QueryResultsFormat::Xml),
        (SolutionFormat::Tsv, QueryResultsFormat::Tsv),
    ] {
        let bytes = write(ours, &["a"], &rows);
        assert_eq!(read_back(theirs, &bytes), expected, "{}", ours.name());
    }
    let csv = write(SolutionFormat::Csv, &["a"], &rows);
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("a\r\nשלום\r\nhello\r\n\"<<( "), "{csv}");

    for format in [
        GraphFormat::NTriples,
        GraphFormat::NQuads,
        GraphFormat::Turtle,
        GraphFormat::TriG,
        GraphFormat::RdfXml,
    ] {
        let quads: Vec<_> = terms
            .iter()
            .map(|term| [Some(iri()), Some(iri()), Some(term.clone()), None])
            .collect();
        let bytes = serialize_graph(format, &quads).unwrap();
        let read: Vec<oxrdf::Quad> =
            RdfParser::from_format(RdfFormat::from_extension(format.file_extension()).unwrap())
                .for_slice(&bytes)
                .collect::<Result<_, _>>()
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)));
        for (read, expected) in read.into_iter().zip(&terms) {
            let (mut read, mut expected) = (read.object, oxrdf_term(expected));
            if let (oxrdf::Term::Triple(read), oxrdf::Term::Triple(expected)) =
                (&mut read, &mut expected)
                && let (oxrdf::Term::Triple(read), oxrdf::Term::Triple(expected)) =
                    (&mut read.object, &mut expected.object)
            {
                assert!(read.subject.is_blank_node(), "{}", format.name());
                expected.subject = read.subject.clone();
            }
            assert_eq!(read, expected, "{}", format.name());
        }
    }
    // JSON-LD 1.1 has no triple terms.
    let quad = [Some(iri()), Some(iri()), Some(terms[2].clone()), None];
    let refused = serialize_graph(GraphFormat::JsonLd, &[quad]);
    assert!(refused.is_err(), "{refused:?}");
}

proptest! {
    #[test]
    fn rdf_xml_reads_back_or_refuses(object in any_term(), name in "[a-z0-9/.:-]{0,6}") {
        let subject = Some(Term::iri("http://example.com/s"));
        let predicate = Some(Term::iri(format!("http://example.com/{name}")));
        let quads = [[subject, predicate, Some(object), None]];
        if let Ok(bytes) = serialize_graph(GraphFormat::RdfXml, &quads) {
            let mut parser = RdfParser::from_format(RdfFormat::RdfXml).for_slice(&bytes);
            let mut read = parser.next().unwrap().unwrap();
            let mut expected = oxrdf_quad(&quads[0]);
            // Labels are the parser's to choose.
            anonymise(&mut read.object);
            anonymise(&mut expected.object);
            prop_assert_eq!(read, expected);
            prop_assert!(parser.next().is_none());
        }
    }

    #[test]
    fn any_solutions_are_read_back_from_json_and_tsv(
        rows in prop::collection::vec(prop::collection::vec(prop::option::of(any_term()), 2), 0..8),
    ) {
        let expected: Vec<Vec<Option<oxrdf::Term>>> = rows
            .iter()
            .map(|row| row.iter().map(|term| term.as_ref().map(oxrdf_term)).collect())
            .collect();
        let json = write(SolutionFormat::Json, &["a", "b"], &rows);
        prop_assert_eq!(&read_back(QueryResultsFormat::Json, &json), &expected);
        let tsv = write(SolutionFormat::Tsv, &["a", "b"], &rows);
        prop_assert_eq!(&read_back(QueryResultsFormat::Tsv, &tsv), &expected);
    }

    #[test]
    fn any_literal_is_read_back_from_ntriples(object in any_term()) {
        let node = || Some(Term::iri("http://example.com/s"));
        let quads = [[node(), node(), Some(object), None]];
        let bytes = serialize_graph(GraphFormat::NTriples, &quads).unwrap();
        let mut parser = RdfParser::from_format(RdfFormat::NTriples).for_slice(&bytes);
        let quad = parser.next().unwrap().unwrap();
        prop_assert_eq!(quad, oxrdf_quad(&quads[0]));
        prop_assert!(parser.next().is_none());
    }
}
