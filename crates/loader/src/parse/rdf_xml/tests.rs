use super::*;
use crate::damage_tests::Random;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEAD: &str =
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'";

fn read(text: &str, skips: bool) -> (Vec<Quad>, Vec<Fault>) {
    let reading = Reading {
        base_iri: Some("http://b/dir/file"),
        iris: Iris::Right,
        skips_within_bytes: skips.then_some(1 << 20),
    };
    let mut reader = RdfXmlReader::new(text.as_bytes(), reading).unwrap();
    let (mut quads, mut faults) = (Vec::new(), Vec::new());
    while let Some(next) = reader.next() {
        match next {
            Ok(quad) => quads.push(quad),
            Err(Problem::Fault(fault)) => faults.push(fault),
            Err(Problem::Input(error)) => panic!("{error}"),
        }
    }
    (quads, faults)
}

/// The statements of a document with these elements, as lines.
fn lines(rest_of_head: &str, elements: &str) -> BTreeSet<String> {
    let text = format!("{HEAD}{rest_of_head}>{elements}</rdf:RDF>");
    let (quads, faults) = read(&text, false);
    assert_eq!(faults, [], "{text}");
    quads.iter().map(ToString::to_string).collect()
}

fn one(rest_of_head: &str, elements: &str) -> String {
    let lines = lines(rest_of_head, elements);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn an_empty_language_ends_the_one_around() {
    let text = "<rdf:Description rdf:about='http://e/a' xml:lang='en'><e:p>x</e:p><e:q xml:lang=''>y</e:q>\
                <e:r><rdf:Description rdf:about='http://e/b' e:s='z' xml:lang=''/></e:r></rdf:Description>";
    let lines = lines(" xml:lang='de'", text);
    for expected in [
        "<http://e/a> <http://e/p> \"x\"@en",
        "<http://e/a> <http://e/q> \"y\"",
        "<http://e/a> <http://e/r> <http://e/b>",
        "<http://e/b> <http://e/s> \"z\"",
    ] {
        assert!(lines.contains(expected), "{lines:?}");
    }
}

#[test]
fn a_text_in_pieces_is_one_text() {
    for (text, expected) in [
        ("x<!-- c -->y", "xy"),
        ("a<![CDATA[<b>&]]>c", "a<b>&c"),
        ("a<?pi x?>b", "ab"),
        ("<!-- c --> a <!-- d -->", " a "),
        ("<![CDATA[]]>", ""),
        ("a&#x20;<!-- c -->&amp;\r\nb\rc", "a &\\nb\\nc"),
    ] {
        let elements =
            format!("<rdf:Description rdf:about='http://e/a'><e:p>{text}</e:p></rdf:Description>");
        let expected = format!("<http://e/a> <http://e/p> \"{expected}\"");
        assert_eq!(one("", &elements), expected, "{text}");
    }
}

#[test]
fn a_base_is_resolved_against_the_one_around() {
    let about = |base: &str, about: &str| {
        let elements = format!("<rdf:Description {base} rdf:about='{about}' e:p='1'/>");
        let line = one(" xml:base=''", &elements);
        line.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(about("", "#i"), "<http://b/dir/file#i>");
    assert_eq!(about("", ""), "<http://b/dir/file>");
    assert_eq!(about("xml:base='sub/d'", "k"), "<http://b/dir/sub/k>");
    assert_eq!(about("xml:base='../x/#f'", ""), "<http://b/x/>");
    assert_eq!(about("xml:base='http://c/#f'", "k"), "<http://c/k>");
}

#[test]
fn what_the_grammar_does_not_allow_is_an_error_at_its_place() {
    for (elements, at, message) in [
        (
            "<rdf:Description><e:p rdf:parseType='Literal' rdf:datatype='http://e/d'>x</e:p></rdf:Description>",
            "rdf:datatype",
            "stands beside rdf:parseType",
        ),
        (
            "<rdf:Description><e:p rdf:resource='http://e/a' rdf:nodeID='a'/></rdf:Description>",
            "rdf:nodeID",
            "two values",
        ),
        (
            "<rdf:Description rdf:about='http://e/a' rdf:ID='a'/>",
            "rdf:about",
            "two names",
        ),
        (
            "<rdf:Description rdf:resource='http://e/a'/>",
            "rdf:resource",
            "does not belong here",
        ),
        (
            "<rdf:Description><e:p rdf:about='http://e/a'/></rdf:Description>",
            "rdf:about",
            "does not belong here",
        ),
        (
            "<rdf:Description about='http://e/a'/>",
            "about",
            "has no namespace",
        ),
        (
            "<rdf:Description><e:p rdf:resource='http://e/a'>x</e:p></rdf:Description>",
            "x</e:p>",
            "a text stands between elements",
        ),
        (
            "<rdf:Description><e:p><e:T/><e:T/></e:p></rdf:Description>",
            "e:T/></e:p>",
            "a second node",
        ),
        (
            "<rdf:Description><e:p>x<e:T/></e:p></rdf:Description>",
            "e:T",
            "whose value is a text",
        ),
        (
            "<rdf:Description><e:p rdf:resource='http://e/a b'/></rdf:Description>",
            " b'",
            "a space stands in an IRI",
        ),
        (
            "<rdf:Description><e:p xml:lang='no_NO'/></rdf:Description>",
            "no_NO",
            "is no language tag",
        ),
        (
            "<rdf:Description><e:p>a &eacute; b</e:p></rdf:Description>",
            "&eacute;",
            "there is no entity",
        ),
        (
            "<rdf:Description><e:p a='1' a='2'/></rdf:Description>",
            "a='2'",
            "stands twice",
        ),
        (
            "<rdf:Description rdf:about='http://e/a\n<e:p/>'/>",
            "<e:p/>",
            "stands in the value",
        ),
    ] {
        let text = format!("{HEAD}>\n{elements}</rdf:RDF>");
        let (_, faults) = read(&text, false);
        let fault = faults.first().unwrap_or_else(|| panic!("{text}"));
        assert!(
            fault.said.message.contains(message),
            "{elements}: {fault:?}"
        );
        let place = text.find(at).unwrap() as u64;
        let lines = text[..place as usize].matches('\n').count() as u64;
        let last_line = text[..place as usize].rsplit('\n').next().unwrap();
        let start = fault.place.start;
        let column = last_line.chars().count() as u64;
        assert_eq!(
            (start.offset, start.line, start.column),
            (place, lines, column),
            "{elements}: {fault:?}"
        );
    }
}

#[test]
fn what_is_skipped_is_a_whole_property_or_node() {
    for (elements, expected) in [
        (
            "<rdf:Description rdf:about='http://e/a'><e:p>1</e:p><e:q rdf:resource='http://e/x y'/><e:r>3</e:r></rdf:Description>",
            2,
        ),
        (
            "<rdf:Description rdf:about='http://e/x y'><e:p>1</e:p><e:q/></rdf:Description>",
            0,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><e:p><e:T><e:q>1</e:q><e:r xml:lang='a_b'/></e:T></e:p></rdf:Description>",
            3,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><e:p><e:T rdf:about='a b'><e:q>1</e:q></e:T></e:p><e:r/></rdf:Description>",
            1,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><e:p rdf:parseType='Collection'><e:T/><e:T rdf:about='a b'/></e:p></rdf:Description>",
            0,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><e:p><e:T/><e:T/></e:p><e:r/></rdf:Description>",
            1,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><rdf:li>1</rdf:li><rdf:li xml:lang='a_b'/><rdf:li>3</rdf:li></rdf:Description>",
            2,
        ),
        (
            "<rdf:Description rdf:about='http://e/a'><e:q>1</e:q>text<e:r/></rdf:Description>",
            0,
        ),
    ] {
        let right = "<rdf:Description rdf:about='http://e/z'><e:p>1</e:p></rdf:Description>";
        let text = format!("{HEAD}>{elements}{right}</rdf:RDF>");
        let (quads, faults) = read(&text, true);
        assert_eq!(quads.len(), expected + 1, "{elements}: {quads:#?}");
        assert_eq!(faults.len(), 1, "{elements}: {faults:?}");
    }
    let (quads, faults) = read(
        &format!("{HEAD}><e:T rdf:about='a'/><e:T rdf:about='b'><e:p>1</e:q></e:T></rdf:RDF>"),
        true,
    );
    assert_eq!(
        (quads.len(), faults.len()),
        (2, 1),
        "the property goes, and nothing is read behind it"
    );
    assert!(faults[0].ends_reading);
}

/// Documents whose statements their writer knows.
struct Writer {
    random: Random,
    out: String,
    expected: BTreeSet<String>,
    /// Whether `oxrdfxml` reads such texts rightly.
    is_plain: bool,
}

impl Writer {
    fn text(&mut self, value: &str) {
        if self.is_plain {
            let escaped = value.replace('&', "&amp;").replace('<', "&lt;");
            self.out.push_str(&escaped);
            return;
        }
        for character in value.chars() {
            match self.random.below(6) {
                0 => drop(write!(self.out, "<![CDATA[{character}]]>")),
                1 => drop(write!(self.out, "&#{};", u32::from(character))),
                2 => drop(write!(self.out, "&#x{:x};", u32::from(character))),
                3 => self.out.push_str("<!-- <e:p> & -->"),
                4 => self.out.push_str("<?x y?>"),
                _ => {}
            }
            let is_written = self.out.ends_with("]]>") || self.out.ends_with(';');
            match character {
                _ if is_written => {}
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&small;"),
                other => self.out.push(other),
            }
            // So that what ends so is told apart.
            self.out.push_str("<!--.-->");
        }
    }

    fn node(&mut self, depth: usize, base: &str, language: &str) -> String {
        let number = self.random.below(1 << 30);
        let (mut base, mut language) = (base.to_owned(), language.to_owned());
        let mut attributes = String::new();
        if self.random.is(4) {
            let (written, resolved) = match (self.is_plain, self.random.below(3)) {
                (true, _) => ("http://c.example/x/y", "http://c.example/x/y".to_owned()),
                (false, 0) => ("", base.clone()),
                (false, 1) => ("/p/q", "http://b/p/q".to_owned()),
                (false, _) => ("http://b/r/s", "http://b/r/s".to_owned()),
            };
            let _ = write!(attributes, " xml:base='{written}'");
            base = resolved;
        }
        if !self.is_plain && base.starts_with("http://c") {
            base = "http://b/r/s".to_owned();
        }
        if self.random.is(4) {
            let tag = match self.is_plain {
                true => "fr",
                false => self.random.of(&["", "en", "de-AT"]),
            };
            let _ = write!(attributes, " xml:lang=\"{tag}\"");
            language = tag.to_lowercase();
        }
        let directory = &base[..=base.rfind('/').unwrap()];
        let (about, subject) = match self.random.below(3) {
            0 => (
                format!("rdf:about='n{number}'"),
                format!("{directory}n{number}"),
            ),
            1 => (
                format!("rdf:about='#n{number}'"),
                format!("{base}#n{number}"),
            ),
            _ => (format!("rdf:ID='n{number}'"), format!("{base}#n{number}")),
        };
        let _ = write!(self.out, "<rdf:Description{attributes} {about}>");
        for _ in 0..self.random.below(4) {
            let property = self.random.of(&["p", "q", "r"]);
            let predicate = NamedNode::new_unchecked(format!("http://e/{property}"));
            let _ = write!(self.out, "<e:{property}");
            if depth < 3 && self.random.is(3) {
                self.out.push('>');
                let object = self.node(depth + 1, &base, &language);
                let _ = write!(self.out, "</e:{property}>");
                self.expect(
                    &subject,
                    &predicate,
                    NamedNode::new_unchecked(object).into(),
                );
                continue;
            }
            let mut tag = language.clone();
            if self.random.is(4) {
                let written = if self.is_plain {
                    "it"
                } else {
                    self.random.of(&["", "it"])
                };
                let _ = write!(self.out, " xml:lang='{written}'");
                written.clone_into(&mut tag);
            }
            self.out.push('>');
            let value = self
                .random
                .of(&["", "x", "a<b & c", "é€𝄞 z", "]] >", " a "]);
            self.text(value);
            let _ = write!(self.out, "</e:{property}>");
            let object = match tag.is_empty() {
                true => Literal::new_simple_literal(value),
                false => Literal::new_language_tagged_literal_unchecked(value, tag),
            };
            self.expect(&subject, &predicate, object.into());
        }
        self.out.push_str("</rdf:Description>");
        subject
    }

    fn expect(&mut self, subject: &str, predicate: &NamedNode, object: Term) {
        let subject = NamedOrBlankNode::from(NamedNode::new_unchecked(subject));
        let graph = oxrdf::GraphName::DefaultGraph;
        let quad = Quad::new(subject, predicate.clone(), object, graph);
        self.expected.insert(quad.to_string());
    }
}

#[test]
fn documents_in_all_styles_say_what_their_writer_meant() {
    for seed in 1..=1_000_u64 {
        let mut writer = Writer {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            out: format!(
                "<?xml version='1.0'?>\n<!DOCTYPE rdf:RDF [<!ENTITY small \"&#60;\">]>\n{HEAD}>"
            ),
            expected: BTreeSet::new(),
            is_plain: seed % 2 == 0,
        };
        for _ in 0..3 {
            writer.node(0, "http://b/dir/file", "");
        }
        let text = writer.out + "</rdf:RDF>";
        let (quads, faults) = read(&text, false);
        assert_eq!(faults, [], "{text}");
        let found: BTreeSet<String> = quads.iter().map(ToString::to_string).collect();
        assert_eq!(found, writer.expected, "{text}");
        if writer.is_plain {
            let parser = oxrdfio::RdfParser::from_format(oxrdfio::RdfFormat::RdfXml);
            let parser = parser.with_base_iri("http://b/dir/file").unwrap();
            let theirs = parser.for_slice(text.as_bytes());
            let theirs: BTreeSet<String> = theirs.map(|quad| quad.unwrap().to_string()).collect();
            assert_eq!(found, theirs, "{text}");
        }
        let (skipping, faults) = read(&text, true);
        assert_eq!((skipping.len(), faults.len()), (quads.len(), 0), "{text}");
    }
}

/// What an XML literal becomes.
fn xml_literal(content: &str) -> String {
    let elements = format!(
        "<rdf:Description rdf:about='http://e/a'><e:p rdf:parseType='Literal'>{content}</e:p></rdf:Description>"
    );
    let text = format!("{HEAD} xmlns:u='urn:u' xmlns:h='urn:h'>{elements}</rdf:RDF>");
    let (quads, faults) = read(&text, false);
    assert_eq!(faults, [], "{text}");
    match &quads[0].object {
        Term::Literal(literal) => literal.value().to_owned(),
        other => panic!("{other}"),
    }
}

#[test]
fn an_xml_literal_declares_a_namespace_where_it_is_used_first() {
    for (content, expected) in [
        ("a <br xmlns:r='urn:r'/> b", "a <br></br> b"),
        (
            "<h:h1 xmlns='urn:x' xmlns:r='urn:r'><b r:c='&quot;' xml:lang='en'>x<b/></b><h:i/></h:h1><!-- <a> --><?p <a>?>",
            "<h:h1 xmlns:h=\"urn:h\"><b xmlns=\"urn:x\" xmlns:r=\"urn:r\" r:c=\"&quot;\" xml:lang=\"en\">x<b></b></b>\
             <h:i></h:i></h:h1><!-- <a> --><?p <a>?>",
        ),
        (
            "<a xmlns='urn:x'><b xmlns=''><c/></b></a><a/>",
            "<a xmlns=\"urn:x\"><b xmlns=\"\"><c></c></b></a><a></a>",
        ),
        (
            "<h:a xmlns:h='urn:g'><h:b xmlns:h='urn:h'/><h:c/></h:a><h:d/>",
            "<h:a xmlns:h=\"urn:g\"><h:b xmlns:h=\"urn:h\"></h:b><h:c></h:c></h:a><h:d xmlns:h=\"urn:h\"></h:d>",
        ),
    ] {
        assert_eq!(xml_literal(content), expected, "{content}");
    }
}

/// Each text takes as long as its bytes, not as their square: a server read 400 KB for minutes.
#[test]
fn many_attributes_and_namespaces_take_time_as_their_bytes() {
    const MANY: usize = 100_000;
    let each = |text: fn(usize) -> String| (0..MANY).map(text).collect::<String>();
    let node = |attributes: &str, content: &str| {
        format!(
            "{HEAD}><rdf:Description rdf:about='http://e/a'{attributes}>{content}</rdf:Description></rdf:RDF>"
        )
    };
    let properties = each(|it| format!(" e:p{it}='x'"));
    let namespaces = each(|it| format!(" xmlns:n{it}='http://n/'"));
    let prefixed = each(|it| format!(" n{it}:p{it}='x'"));
    let elements = each(|_| "<n0:p/>".to_owned());
    let in_literal = format!("<n0:p rdf:parseType='Literal'>{elements}</n0:p>");
    let deep = format!("{}{elements}{}", "<d>".repeat(1_500), "</d>".repeat(1_500));
    let in_deep_literal = format!("<n0:p rdf:parseType='Literal'>{deep}</n0:p>");
    for (text, statements) in [
        (node(&properties, ""), MANY),
        (node(&namespaces, ""), 0),
        (node(&format!("{namespaces}{prefixed}"), ""), MANY),
        (node(&namespaces, &elements), MANY),
        (node(&namespaces, &in_literal), 1),
        (node(" xmlns:n0='http://n/'", &in_deep_literal), 1),
    ] {
        let start = std::time::Instant::now();
        let (quads, faults) = read(&text, false);
        assert_eq!((quads.len(), faults.len()), (statements, 0));
        let taken = start.elapsed();
        assert!(taken < std::time::Duration::from_secs(8), "{taken:?}");
        eprintln!("{taken:?} for {} bytes", text.len());
    }
}

#[test]
fn an_attribute_that_stands_twice_is_found_among_many() {
    for (count, other) in [(1, 0), (15, 7), (16, 0), (16, 15), (17, 16), (500, 250)] {
        let attributes: String = (0..count).map(|it| format!(" e:p{it}='x'")).collect();
        let text = format!("{HEAD}><rdf:Description{attributes} e:p{other}='y'/></rdf:RDF>");
        let (_, faults) = read(&text, false);
        let [fault] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert_eq!(
            fault.said.message,
            format!("the attribute `e:p{other}` stands twice in one tag")
        );
        let place = text.rfind(&format!("e:p{other}=")).unwrap();
        assert_eq!(fault.place.start.offset, place as u64);
    }
}
