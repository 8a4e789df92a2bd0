//! Nothing that is hidden shows where what is derived from all data meets who sees a part of it: indices of texts, of trigrams and of places; and where a change names what is hidden.
//! Two servers differ in hidden quads alone, and tell who does not see these the same: answers, costs, statuses.

use super::access::{PASSWORD, basic};
use super::client::post;
use super::hidden::{UPDATE, server_with, told};

/// Unrelated to all that is asked for.
const FEW: [&str; 2] = [
    "INSERT DATA { GRAPH <http://example.com/other> { <http://example.com/a> <http://example.com/b> 1 } }",
    "INSERT DATA { GRAPH <http://example.com/other> { <http://example.com/a> <http://example.com/b> 2 } }",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_change_a_graph_is_asked_before_a_term_is_looked_up() {
    let few = server_with(FEW).await;
    let many = server_with([
        "INSERT DATA { GRAPH <http://example.com/hidden> { <x:secret> <x:p> \"a secret that is long\" } }",
        "INSERT DATA { GRAPH <http://example.com/hidden> { <x:secret> <x:p> 5 } }",
    ])
    .await;
    let ann = basic("ann", PASSWORD);
    let mut statuses = Vec::new();
    for (graph, term) in [
        ("http://example.com/hidden", "<x:known>"),
        ("http://example.com/hidden", "<x:secret>"),
        ("http://example.com/nowhere", "<x:secret>"),
        ("http://example.com/secret", "\"a secret that is long\""),
        ("http://example.com/g1", "<x:secret>"),
        ("http://example.com/g2", "<x:secret>"),
    ] {
        for template in [
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s {term} }} }} WHERE {{ VALUES (?g ?s) {{ (<{graph}> <x:p>) }} }}"
            ),
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s ?t }} }} WHERE {{ BIND(IRI(\"{graph}\") AS ?g) BIND(IRI(\"x:p\") AS ?s) BIND({term} AS ?t) }}"
            ),
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s ?t }} }} INSERT {{ GRAPH <http://example.com/g2> {{ ?s ?s 1 }} }} WHERE {{ VALUES (?g ?s ?t) {{ (<{graph}> <x:p> {term}) }} }}"
            ),
            format!(
                "DELETE {{ GRAPH <{graph}> {{ ?s ?s {term} }} }} WHERE {{ VALUES ?s {{ <x:p> }} }}"
            ),
            format!("DELETE DATA {{ GRAPH <{graph}> {{ <x:p> <x:p> {term} }} }}"),
        ] {
            let [one, other] = [&few, &many].map(|server| server.address);
            let one = post(one, "/sparql", &[&ann, UPDATE], template.as_bytes()).await;
            let other = post(other, "/sparql", &[&ann, UPDATE], template.as_bytes()).await;
            assert_eq!(told(&one), told(&other), "{template}");
            statuses.push(one.status);
        }
    }
    assert_eq!(statuses[..15], [403; 15]);
    assert_eq!(statuses[25..], [200; 5]);
}
