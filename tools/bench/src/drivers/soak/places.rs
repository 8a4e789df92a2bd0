//! The rings' places, and the rights of each client.

use super::model::{Member, Members};

/// What the names of all graphs begin with; an `a` or a `b` and the number of the ring follow.
pub(super) const GRAPHS: &str = "http://soak.example/graph/";
/// What the names of members begin with; numbers of ring and member follow.
const ITEMS: &str = "http://soak.example/item/";
/// Before each query and update.
pub(super) const PREFIXES: &str = "PREFIX soak: <http://soak.example/> \
    PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/> \
    PREFIX rev: <http://purl.org/stuff/rev#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> ";
/// The table of the rings that are no graphs.
pub(super) const TABLE: &str = "soak_member";
pub(super) const CREATE_TABLE: &str = "CREATE TABLE soak_member (ring integer, number integer, value bigint NOT NULL, \
    product integer NOT NULL, PRIMARY KEY (ring, number))";

/// Who a client is; by its number, so that each eight clients have all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Sees and changes all graphs and tables of the soak, with a password.
    Editor,
    /// The same, with a key.
    KeyEditor,
    /// Sees the default graph and the graphs `a`, and changes these; no table.
    Half,
    /// Sees all graphs, with limits that it comes to.
    Limited,
    /// Administers.
    Administrator,
    /// Nobody known: the default graph, with a limit of its own.
    Anonymous,
}

impl Role {
    pub(super) fn of(client: usize) -> Self {
        match client % 8 {
            0 | 2 | 3 => Self::Editor,
            1 => Self::KeyEditor,
            4 => Self::Half,
            5 => Self::Limited,
            6 => Self::Administrator,
            _ => Self::Anonymous,
        }
    }

    /// The name of the user.
    pub(super) fn user(self) -> &'static str {
        match self {
            Self::Editor | Self::KeyEditor => "editor",
            Self::Half => "half",
            Self::Limited => "limited",
            Self::Administrator => "root",
            Self::Anonymous => "nobody",
        }
    }

    /// Changes tables, and sees them.
    pub(super) fn changes_tables(self) -> bool {
        matches!(self, Self::Editor | Self::KeyEditor | Self::Administrator)
    }

    /// Comes to limits, and changes nothing.
    pub(super) fn has_limits(self) -> bool {
        matches!(self, Self::Limited | Self::Anonymous)
    }

    pub(super) fn sees(self, place: Place) -> bool {
        match place {
            Place::Default(_) => true,
            Place::Graph(_, family) => match self {
                Self::Half => family == 'a',
                Self::Anonymous => false,
                Self::Editor | Self::KeyEditor | Self::Limited | Self::Administrator => true,
            },
        }
    }
}

/// Where the ring of a client is that is a graph or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the default graph, its members marked with the number of the ring.
    Default(usize),
    /// A graph of its own, of the family `a` or `b`.
    Graph(usize, char),
}

impl Place {
    pub(super) fn of(client: usize) -> Self {
        match client % 8 {
            3 => Self::Default(client),
            even if even % 2 == 0 && even != 2 => Self::Graph(client, 'a'),
            _ => Self::Graph(client, 'b'),
        }
    }

    pub(super) fn ring(self) -> usize {
        match self {
            Self::Default(ring) | Self::Graph(ring, _) => ring,
        }
    }

    /// The name of the graph.
    pub(super) fn graph(self) -> Option<String> {
        match self {
            Self::Default(_) => None,
            Self::Graph(ring, family) => Some(format!("{GRAPHS}{family}/{ring}")),
        }
    }

    /// Triples or patterns, in the graph of the ring.
    pub(super) fn within(self, text: &str) -> String {
        match self.graph() {
            Some(graph) => format!("GRAPH <{graph}> {{ {text} }}"),
            None => text.to_owned(),
        }
    }

    /// A pattern of its members `?i`, with more that is said of them.
    pub(super) fn members(self, more: &str) -> String {
        match self {
            Self::Default(ring) => format!("?i soak:ring {ring} ; {more}"),
            Self::Graph(..) => self.within(&format!("?i {more}")),
        }
    }

    /// The triples of a member, in N-Triples.
    pub(super) fn triples(self, number: u32, member: Member, products: &[Product]) -> Vec<String> {
        let integer =
            |value: i64| format!("\"{value}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
        let item = self.item(number);
        let product = products
            .get(member.product)
            .map_or("<urn:none>", |product| &product.iri);
        let mut triples = vec![
            format!("{item} <http://soak.example/about> {product} ."),
            format!(
                "{item} <http://soak.example/value> {} .",
                integer(member.value)
            ),
        ];
        if let Self::Default(ring) = self {
            triples.push(format!(
                "{item} <http://soak.example/ring> {} .",
                integer(ring as i64)
            ));
        }
        triples
    }

    pub(super) fn item(self, number: u32) -> String {
        format!("<{ITEMS}{}/{number}>", self.ring())
    }

    /// The triples of all members.
    pub(super) fn document(self, members: &Members, products: &[Product]) -> Vec<String> {
        let of_member = |(&number, &member)| self.triples(number, member, products);
        members.iter().flat_map(of_member).collect()
    }
}

/// A product of the static data.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// In angle brackets.
    pub(super) iri: String,
    pub(super) features: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_roles_are_played_and_each_changes_what_it_may() {
        let mut roles = Vec::new();
        for client in 0..64 {
            let (role, place) = (Role::of(client), Place::of(client));
            assert!(role.has_limits() || role.sees(place), "{client}");
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        assert_eq!(roles.len(), 6);
        let hidden = |client: &usize| !Role::Half.sees(Place::of(*client));
        assert_eq!((0..8).filter(hidden).count(), 4);
        assert!((0..8).any(|client| Place::of(client) == Place::Default(client)));
    }
}
