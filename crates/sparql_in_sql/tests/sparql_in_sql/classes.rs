//! Tests of classes of entities as views, over data of BSBM's shape.

// Tests may unwrap; the lint spares `#[test]` functions only, not their fixtures.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fmt::Write;

use crate::common::{House, house};

const VOCABULARY: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";

/// Twenty products, two offers of each.
fn shop() -> House {
    let mut data = format!(
        "PREFIX v: <{VOCABULARY}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> \
         PREFIX dc: <http://purl.org/dc/elements/1.1/> PREFIX i: <http://e/> INSERT DATA {{ "
    );
    for n in 0..20 {
        write!(
            data,
            "i:product{n} a v:Product ; rdfs:label \"product {n}\" ; v:producer i:producer{} ; v:productFeature i:f1, i:f2 ; \
             v:productPropertyNumeric1 {} ; dc:date \"2008-01-{:02}\"^^xsd:date . ",
            n % 3,
            n * 10,
            n + 1
        )
        .unwrap();
        // Some have it; of one it is a text.
        if n % 2 == 0 {
            write!(data, "i:product{n} v:productPropertyNumeric2 {n}.5 . ").unwrap();
        }
        if n == 7 {
            write!(data, "i:product{n} v:rare 1 . ").unwrap();
        }
        for offer in 0..2 {
            write!(
                data,
                "i:offer{n}_{offer} a v:Offer ; v:product i:product{n} ; v:price \"{}.25\"^^v:USD ; v:deliveryDays {} ; \
                 v:validFrom \"2008-05-01T00:00:00\"^^xsd:dateTime . ",
                n * 100 + offer,
                offer + 1
            )
            .unwrap();
        }
    }
    data.push('}');
    house(&data)
}

#[test]
fn a_view_of_a_class_has_its_common_single_valued_properties_as_columns() {
    let house = shop();
    house
        .rows(&format!(
            "create view product from class <{VOCABULARY}Product>; create view offer from class <{VOCABULARY}Offer>"
        ))
        .unwrap();
    house.check(
        "select definition from orrery_catalog.relations where name = 'offer'",
        &[&format!(
            "SELECT * FROM class('{VOCABULARY}Offer', '\"deliverydays\" bigint <{VOCABULARY}deliveryDays>, \"price\" text <{VOCABULARY}price>, \
             \"product\" iri <{VOCABULARY}product>, \"validfrom\" timestamp with time zone <{VOCABULARY}validFrom>')"
        )],
    );
    // What some have twice, and what one of twenty has, is no column.
    house.check(
        "select definition from orrery_catalog.relations where name = 'product'",
        &[&format!(
            "SELECT * FROM class('{VOCABULARY}Product', '\"date\" date <http://purl.org/dc/elements/1.1/date>, \
             \"label\" text <http://www.w3.org/2000/01/rdf-schema#label>, \"producer\" iri <{VOCABULARY}producer>, \
             \"productpropertynumeric1\" bigint <{VOCABULARY}productPropertyNumeric1>, \
             \"productpropertynumeric2\" numeric(38,10) <{VOCABULARY}productPropertyNumeric2>')"
        )],
    );
    house.check(
        "select iri, label, productpropertynumeric2 from product where productpropertynumeric1 between 30 and 40 order by iri",
        &[
            "http://e/product3|product 3|",
            "http://e/product4|product 4|4.5000000000",
        ],
    );
    house.check(
        "select count(*), count(productpropertynumeric2), sum(productpropertynumeric1), max(\"date\") from product",
        &["20|10|1900|2008-01-20"],
    );
    house.check(
        "select p.label, count(*), min(o.deliverydays) from offer o join product p on p.iri = o.product \
         where p.producer = 'http://e/producer1' and o.deliverydays > 1 group by p.label order by p.label limit 2",
        &["product 1|1|2", "product 10|1|2"],
    );
}

/// What is asked of the graphs, one query a line.
fn asked(house: &House, text: &str) -> Vec<String> {
    let plan = house.plan(text);
    let nodes = plan
        .lines()
        .filter_map(|line| line.split_once("GraphExec: "));
    nodes.map(|(_, node)| node.to_owned()).collect()
}

#[test]
fn a_view_of_a_class_is_read_as_one_star_of_what_is_needed() {
    let house = shop();
    house
        .rows(&format!(
            "create view product from class <{VOCABULARY}Product>"
        ))
        .unwrap();
    let of = format!("?iri a <{VOCABULARY}Product>");
    let label = "<http://www.w3.org/2000/01/rdf-schema#label> ?c1";
    let number = format!("<{VOCABULARY}productPropertyNumeric1> ?c3");
    // A filter needs the property; what is only shown may be missing; what is not asked for is not
    // read.
    let filtered = asked(
        &house,
        "select label from product where productpropertynumeric1 > 30 limit 5",
    );
    let expected = format!(
        "query=\"SELECT ?c1 ?c3 {{ {of} ; {number} . OPTIONAL {{ ?iri {label} }} }}\", variables=[c1, c3], conditions=?c3 >= "
    );
    assert!(filtered[0].starts_with(&expected), "{filtered:?}");
    assert_eq!(
        asked(&house, "select count(*) from product"),
        [format!("query=\"SELECT ?iri {{ {of} . }}\", variables=[]")]
    );
    assert_eq!(
        asked(
            &house,
            "select label from product where iri = 'http://e/product1' limit 1"
        ),
        [format!(
            "query=\"SELECT ?iri ?c1 {{ {of} . OPTIONAL {{ ?iri {label} }} }}\", variables=[c1], \
             conditions=?iri IN (\"http://e/product1\"), limit=1"
        )]
    );
    // Keys of a join go into it.
    house
        .rows("create table sold (product text primary key); insert into sold values ('http://e/product5')")
        .unwrap();
    let joined = "select label from sold join product on iri = sold.product";
    house.check(joined, &["product 5"]);
    let analyzed = house.plan(&format!("analyze {joined}"));
    let node = analyzed.lines().find(|line| line.contains("GraphExec"));
    let node = node.unwrap();
    assert!(
        node.contains("hints=") && node.contains("output_rows=1"),
        "{analyzed}"
    );
}

#[test]
fn what_classes_there_are_can_be_asked() {
    let house = shop();
    house.check(
        "select * from classes() order by entities desc",
        &[
            &format!("{VOCABULARY}Offer|40"),
            &format!("{VOCABULARY}Product|20"),
        ],
    );
    house.check(
        &format!(
            "select property, entities, \"values\" from class_properties('{VOCABULARY}Product') where \"values\" <> 20 order by property"
        ),
        &[
            &format!("{VOCABULARY}productFeature|20|40"),
            &format!("{VOCABULARY}productPropertyNumeric2|10|10"),
            &format!("{VOCABULARY}rare|1|1"),
        ],
    );
}

#[test]
fn a_view_is_made_of_a_class_that_there_is() {
    let house = shop();
    for (text, code) in [
        ("create view v from class <http://e/Nothing>", "42704"),
        ("create view v from class <nothing>", "22023"),
        ("select * from class('http://e/C')", "42883"),
        ("select * from class('http://e/C', 'a text')", "42601"),
        ("select * from class('http://e/C', 'a text <b>')", "22023"),
        ("select * from class_properties('> {')", "22023"),
    ] {
        let error = house.rows(text).unwrap_err();
        assert_eq!(error.state.code(), code, "{text}: {error}");
    }
    // The columns are those of then; new values are seen.
    house
        .rows(&format!("create view o from class <{VOCABULARY}Offer>"))
        .unwrap();
    house.update(&format!(
        "INSERT DATA {{ <http://e/new> a <{VOCABULARY}Offer> ; <{VOCABULARY}deliveryDays> 9 ; <http://e/other> 1 }}"
    ));
    house.check(
        "select * from o where deliverydays = 9",
        &["http://e/new|9|||"],
    );
    house.rows("drop view o").unwrap();
}
