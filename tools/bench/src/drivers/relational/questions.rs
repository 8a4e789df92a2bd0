//! The questions in SPARQL and in SQL, and the tables' derivation from the triples.
//!
//! The texts stand in `queries/relational`: `tables` has a query for each CSV file from which
//! `schema.sql` makes the tables, `questions/sparql` and `questions/sql` the questions in both
//! languages, under one name.

/// A CSV file and the query over the triples that it is the answer of.
pub(super) struct TableQuery {
    /// The file's name, without `.csv`.
    pub(super) name: &'static str,
    pub(super) sparql: &'static str,
}

/// One question in two languages. Both answers have the same columns, in the same order; rows have
/// no order.
pub(super) struct Question {
    pub(super) name: &'static str,
    pub(super) sparql: &'static str,
    pub(super) sql: &'static str,
    /// Large answers are timed as CSV at both, which no client has to take apart.
    pub(super) is_exported: bool,
}

/// Makes the tables from the CSV files.
pub(super) const SCHEMA: &str = include_str!("../../../queries/relational/schema.sql");

macro_rules! tables {
    ($($name:literal)*) => {
        [$(TableQuery {
            name: $name,
            sparql: include_str!(concat!("../../../queries/relational/tables/", $name, ".rq")),
        }),*]
    };
}

macro_rules! questions {
    ($($name:literal $is_exported:literal)*) => {
        [$(Question {
            name: $name,
            sparql: include_str!(concat!("../../../queries/relational/questions/sparql/", $name, ".rq")),
            sql: include_str!(concat!("../../../queries/relational/questions/sql/", $name, ".sql")),
            is_exported: $is_exported,
        }),*]
    };
}

/// The CSV files.
pub(super) const TABLES: [TableQuery; 10] = tables! {
    "product_type" "feature" "producer" "vendor" "person" "product" "product_feature" "product_in_type" "offer" "review"
};

/// The questions.
pub(super) const QUESTIONS: [Question; 21] = questions! {
    "joined_count" false
    "reviews_by_country" false
    "top_offers" false
    "top_products" false
    "product_star" true
    "offer_star" true
    "optional_star" true
    "least_and_greatest" false
    "least_price" true
    "distinct_by_group" false
    "distinct_count" false
    "distinct_pairs" true
    "text_contains" false
    "text_rare" true
    "self_join" false
    "average_by_type" false
    "without_review" false
    "by_month" false
    "range_count" false
    "busy_reviewers" false
    "label_regex" false
};
