//! What is known of a route without its handler: paths and methods, who may, what counts, where it
//! is done.
//!
//! The edge looks routes up here: the methods of a path (OPTIONS, 405), its name in traces, whether
//! it needs credentials, and what a follower sends on. `route_table` adds the handlers.

use std::fmt;

use axum::http::Method;

/// The methods that a row may have, in the order of `Allow`; HEAD comes with GET, OPTIONS with all.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::POST,
    Method::DELETE,
    Method::PATCH,
];

/// Who may make a request, and from where. It is asked before the handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// Who.
    pub who: Who,
    /// Only from where changes are taken (see `edge::guard`).
    pub is_change: bool,
    /// Only those who may change all graphs.
    pub of_all_graphs: bool,
}

/// Who may make a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nobody is asked who they are: no credentials are looked at.
    Nobody,
    /// Everybody whom the rules of the database know; they decide over each row of the answer.
    Reader,
    /// Who has a right to change some graph; the change is held to it.
    Changer,
    /// Who has the token for the metrics, or administers the database.
    Scraper,
    /// A user, not somebody anonymous; what it is for, as a refusal says it.
    User(&'static str),
    /// Who administers the database; what it is for, as a refusal says it.
    Administrator(&'static str),
}

impl Right {
    /// Nobody is asked who they are.
    pub(crate) const NOBODY: Self = Self::of(Who::Nobody);
    /// What they may read decides over each row of the answer.
    pub(crate) const READER: Self = Self::of(Who::Reader);
    /// A change, which is held to the graphs that they may change.
    pub(crate) const CHANGER: Self = Self::of(Who::Changer).for_change();
    /// The token for the metrics, or an administrator.
    pub(crate) const SCRAPER: Self = Self::of(Who::Scraper);

    const fn of(who: Who) -> Self {
        Self {
            who,
            is_change: false,
            of_all_graphs: false,
        }
    }

    /// Those who administer the database, where it has users. `what`: as in "you may not ...".
    pub(crate) const fn administrator(what: &'static str) -> Self {
        Self::of(Who::Administrator(what))
    }

    /// Users of the database, by name. `what`: as in "you may not ...".
    pub(crate) const fn user(what: &'static str) -> Self {
        Self::of(Who::User(what))
    }

    /// And only from where changes are taken (see `edge::guard`).
    pub(crate) const fn for_change(mut self) -> Self {
        self.is_change = true;
        self
    }

    /// And only those who may change all graphs.
    pub(crate) const fn of_all_graphs(mut self) -> Self {
        self.of_all_graphs = true;
        self
    }
}

/// As the documentation says it.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.who {
            Who::Nobody => "everybody, unasked",
            Who::Reader => "everybody, what they may read",
            Who::Changer => "who may change the graph",
            Who::Scraper => "administrators, or the metrics token",
            Who::User(_) => "users, as the command allows",
            Who::Administrator(_) => "administrators",
        })?;
        if self.of_all_graphs {
            f.write_str(" who may change all graphs")?;
        }
        Ok(())
    }
}

/// Whether a request counts in the accounts of who sends it: requests, cost, rows, bytes, memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metering {
    /// It is bounded by what it is.
    Free,
    /// It counts, and ends where their budget does.
    Counted,
}

/// What a server that does not write does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// It is answered here.
    Here,
    /// It goes to the writer.
    Writer,
    /// Its media type tells, or else the handler once it has read the text.
    ByText,
}

/// One row of the table of routes, without its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRow {
    /// The paths, as axum writes them.
    pub paths: &'static [&'static str],
    /// The method; GET answers HEAD, too.
    pub method: Method,
    /// Who may.
    pub right: Right,
    /// Whether it counts in accounts.
    pub metering: Metering,
    /// What a server that does not write does with it.
    pub forwarding: Forwarding,
}

/// A resource: its paths and the methods that these have.
#[derive(Debug)]
pub(crate) struct Resource {
    paths: &'static [&'static str],
    methods: Vec<(Method, Forwarding)>,
    /// As `Allow` has them.
    allowed: String,
}

impl Resource {
    fn of(paths: &'static [&'static str], rows: &[&RouteRow]) -> Self {
        let methods = rows.iter().map(|row| (row.method.clone(), row.forwarding));
        Self {
            paths,
            methods: methods.collect(),
            allowed: allowed(rows.iter().map(|row| &row.method)),
        }
    }

    /// The methods, as `Allow` writes them.
    pub(crate) fn allowed(&self) -> &str {
        &self.allowed
    }

    /// Whether there is a method.
    pub(crate) fn has(&self, method: &Method) -> bool {
        self.methods.iter().any(|(other, _)| other == method)
    }

    /// What a server that does not write does with a request of a method; those that are not there
    /// are refused here.
    pub(crate) fn forwarding(&self, method: &Method) -> Forwarding {
        let found = self.methods.iter().find(|(other, _)| other == method);
        found.map_or(Forwarding::Here, |&(_, forwarding)| forwarding)
    }
}

/// Methods in the order of [`METHODS`], with those that come with them.
fn allowed<'a>(methods: impl Iterator<Item = &'a Method> + Clone) -> String {
    let has = |method: &Method| {
        let named = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        methods.clone().any(|other| other == named)
    };
    let known = METHODS.iter().filter(|method| has(method));
    let mut names: Vec<_> = known.map(Method::as_str).collect();
    names.push(Method::OPTIONS.as_str());
    names.join(", ")
}

/// The resources of one listener.
#[derive(Debug)]
pub(crate) struct Resources {
    resources: Vec<Resource>,
    /// The server as a whole, for `OPTIONS *`.
    all: Resource,
    /// Paths that need no credentials.
    open: Vec<&'static str>,
    /// Paths at which a token for the metrics is good.
    scraped: Vec<&'static str>,
}

impl Resources {
    /// Those of rows; rows of one resource follow each other.
    pub(crate) fn of(rows: &[RouteRow]) -> Self {
        let paths_of = |who: Who| {
            let those = rows.iter().filter(|row| row.right.who == who);
            those.flat_map(|row| row.paths).copied().collect()
        };
        let resources = rows.chunk_by(|one, other| one.paths == other.paths);
        let resources = resources.map(|rows| {
            let rows: Vec<_> = rows.iter().collect();
            Resource::of(rows[0].paths, &rows)
        });
        Self {
            resources: resources.collect(),
            all: Resource::of(&["*"], &rows.iter().collect::<Vec<_>>()),
            open: paths_of(Who::Nobody),
            scraped: paths_of(Who::Scraper),
        }
    }

    /// The resource of a path, and the path as its row writes it; None where there is nothing.
    pub(crate) fn find(&self, path: &str) -> Option<(&Resource, &'static str)> {
        if path == "*" {
            return Some((&self.all, "*"));
        }
        self.resources.iter().find_map(|resource| {
            let mut paths = resource.paths.iter();
            let found = paths.find(|pattern| matches(pattern, path))?;
            Some((resource, *found))
        })
    }

    /// Whether a path needs no credentials.
    pub(crate) fn asks_nobody(&self, path: &str) -> bool {
        self.open.contains(&path)
    }

    /// Whether a token for the metrics is good at a path.
    pub(crate) fn is_scraped(&self, path: &str) -> bool {
        self.scraped.contains(&path)
    }
}

/// Whether a path is one of those that a row names.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('{') {
        None => pattern == path,
        Some((start, name)) => path
            .strip_prefix(start)
            .is_some_and(|rest| !rest.is_empty() && (name.starts_with('*') || !rest.contains('/'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_their_paths_and_no_others() {
        for (pattern, path, expected) in [
            ("/sparql", "/sparql", true),
            ("/sparql", "/sparql/", false),
            ("/graphs/{*graph}", "/graphs/a/b", true),
            ("/graphs/{*graph}", "/graphs/", false),
            ("/graphs/{*graph}", "/graphs", false),
            ("/queries/{id}", "/queries/17", true),
            ("/queries/{id}", "/queries/", false),
            ("/queries/{id}", "/queries/17/x", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn methods_are_told_in_one_order_with_those_that_come_with_them() {
        let told = |methods: &[Method]| allowed(methods.iter());
        assert_eq!(told(&[Method::POST]), "POST, OPTIONS");
        assert_eq!(
            told(&[Method::DELETE, Method::GET]),
            "GET, HEAD, DELETE, OPTIONS"
        );
    }
}
