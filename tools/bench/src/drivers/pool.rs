//! The parameter pool fetched from an endpoint by SPARQL.

use serde_json::Value;

use super::{BenchError, RESULTS_JSON};
use crate::http_client::HttpClient;
use orrery_bsbm::VOCABULARY;
use orrery_bsbm::parameters::LeafType;
use orrery_bsbm::parameters::ParameterPool;

/// The leaves under so many product types are looked at, evenly from all.
const PARENTS_MAX: usize = 24;
/// The offers and reviews of so many products, evenly from those of the types.
const PRODUCTS_MAX: usize = 200;
const SUBCLASS_OF: &str = "http://www.w3.org/2000/01/rdf-schema#subClassOf";

/// Asks the endpoint for types, features, products, offers and reviews. The same
/// data give the same pool, for everything is sorted before a part is taken.
///
/// # Errors
/// When the endpoint does not answer, or has no BSBM data.
pub fn parameter_pool(client: &mut HttpClient) -> Result<ParameterPool, BenchError> {
    let mut leaf_types = Vec::new();
    let mut products = Vec::new();
    for (product_type, parent) in leaves(client)? {
        let features = format!(
            "SELECT DISTINCT ?x {{ ?p a {product_type} ; <{VOCABULARY}productFeature> ?x }}"
        );
        products.extend(iris(
            client,
            &format!("SELECT ?x {{ ?x a {product_type} }}"),
        )?);
        leaf_types.push(LeafType {
            features: iris(client, &features)?,
            product_type,
            parent,
        });
    }
    products.sort_unstable();
    products.dedup();
    let mut offers = Vec::new();
    let mut reviews = Vec::new();
    for product in evenly(products.clone(), PRODUCTS_MAX) {
        offers.extend(iris(
            client,
            &format!("SELECT ?x {{ ?x <{VOCABULARY}product> {product} }}"),
        )?);
        reviews.extend(iris(
            client,
            &format!("SELECT ?x {{ ?x <{VOCABULARY}reviewFor> {product} }}"),
        )?);
    }
    Ok(ParameterPool::new(leaf_types, products, offers, reviews)?)
}

/// Types that have no subtypes, with the type above each: all those of some parents.
fn leaves(client: &mut HttpClient) -> Result<Vec<(String, String)>, BenchError> {
    let mut inner = iris(
        client,
        &format!("SELECT DISTINCT ?x {{ ?type <{SUBCLASS_OF}> ?x }}"),
    )?;
    inner.sort_unstable();
    let is_inner = |name: &String| inner.binary_search(name).is_ok();
    let mut families = Vec::new();
    for parent in &inner {
        let children = iris(
            client,
            &format!("SELECT ?x {{ ?x <{SUBCLASS_OF}> {parent} }}"),
        )?;
        if !children.iter().any(is_inner) {
            families.push((parent.clone(), children));
        }
    }
    let mut leaves = Vec::new();
    for (parent, mut children) in evenly(families, PARENTS_MAX) {
        children.sort_unstable();
        leaves.extend(children.into_iter().map(|child| (child, parent.clone())));
    }
    Ok(leaves)
}

/// At most `maximum` of the items, at equal distances.
fn evenly<T>(items: Vec<T>, maximum: usize) -> Vec<T> {
    let step = items.len().div_ceil(maximum).max(1);
    items.into_iter().step_by(step).collect()
}

/// The IRIs of the variable `x`, in angle brackets.
fn iris(client: &mut HttpClient, query: &str) -> Result<Vec<String>, BenchError> {
    let values = select(client, query, "x")?;
    Ok(values.into_iter().map(|iri| format!("<{iri}>")).collect())
}

/// The values of one variable of a SELECT query, as plain text.
pub(super) fn select(
    client: &mut HttpClient,
    query: &str,
    variable: &str,
) -> Result<Vec<String>, BenchError> {
    let mut body = Vec::new();
    client
        .query(query, RESULTS_JSON, &mut body)
        .map_err(|source| BenchError::Query {
            what: query.to_owned(),
            source,
        })?;
    values_of(&body, variable).ok_or_else(|| BenchError::Result {
        what: query.to_owned(),
    })
}

/// Reads SPARQL 1.1 results in JSON.
fn values_of(body: &[u8], variable: &str) -> Option<Vec<String>> {
    let result: Value = serde_json::from_slice(body).ok()?;
    let bindings = result.get("results")?.get("bindings")?.as_array()?;
    bindings
        .iter()
        .filter_map(|binding| binding.get(variable))
        .map(|term| term.get("value")?.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_results() {
        let body = br#"{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"a:b"}},{}]}}"#;
        assert_eq!(values_of(body, "x").unwrap(), ["a:b"]);
        assert!(values_of(b"{}", "x").is_none());
    }

    #[test]
    fn a_part_is_taken_evenly() {
        let items: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(evenly(items.clone(), 5), ["0", "2", "4", "6", "8"]);
        assert_eq!(evenly(items.clone(), 100), items);
    }
}
