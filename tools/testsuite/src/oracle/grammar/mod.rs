//! The generator of random queries: SPARQL's productions with weights.
//!
//! What a query asks is limited by a budget of patterns, so that the plainest evaluation of it
//! stays small. Not everything that comes out is a query (a variable may be bound twice): the
//! parser decides.
//!
//! What the reference does not answer as the specification has it is marked with
//! [`Tree::ours_only`]; the reason stands at each place and in `docs/oracle.md`.

mod expressions;
mod joins;
mod paths;
mod queries;

use super::data::{CLEAN_LINK, CLEAN_VALUE, GRAPHS, Kind, LINKS, NODES, VALUES, literal};
use super::random::Random;
use super::tree::{Sort, Tree};

pub(crate) use queries::SEPARATOR;

/// Prefixes of all queries.
pub(crate) const PREFIXES: &str = "PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
";

/// The variables that patterns share.
const VARIABLES: [&str; 5] = ["?v", "?w", "?x", "?y", "?z"];
/// Those that most often stand for nodes, and for values.
const NODE_VARIABLES: [&str; 3] = ["?v", "?w", "?x"];
const VALUE_VARIABLES: [&str; 3] = ["?y", "?z", "?x"];
/// Triple patterns of a query; a path and a variable predicate count double.
const PATTERNS_MAX: usize = 6;
/// How deep groups stand in groups.
const DEPTH: usize = 3;
/// Elements of a group.
const ELEMENTS_MAX: usize = 4;

/// Makes the queries of one data set.
struct Grammar<'r> {
    random: &'r mut Random,
    kind: Kind,
    has_graphs: bool,
    patterns_left: usize,
    /// Names given out so far.
    fresh: usize,
    exists_depth: usize,
    lateral_depth: usize,
}

/// A random query over data of a kind.
pub(crate) fn query(random: &mut Random, kind: Kind, has_graphs: bool) -> Tree {
    Grammar {
        random,
        kind,
        has_graphs,
        patterns_left: PATTERNS_MAX,
        fresh: 0,
        exists_depth: 0,
        lateral_depth: 0,
    }
    .query()
}

impl Grammar<'_> {
    /// Whether no row around reaches this place.
    fn is_outside(&self) -> bool {
        self.exists_depth == 0 && self.lateral_depth == 0
    }

    fn variable(&mut self) -> &'static str {
        self.random.pick(&VARIABLES)
    }

    /// A variable or label that no other place of the query has.
    fn fresh(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    fn node(&mut self) -> String {
        format!(":{}", self.random.pick(&NODES))
    }

    /// A constant in SPARQL's syntax.
    fn constant(&mut self) -> String {
        if self.random.chance(25) {
            return self.node();
        }
        if self.kind == Kind::Canonical && self.random.chance(5) {
            let (subject, object) = (self.node(), self.node());
            return format!("<<( {subject} :{} {object} )>>", self.random.pick(&LINKS));
        }
        literal(self.random, self.kind).to_string()
    }

    /// A triple term with variables in it.
    fn triple_pattern(&mut self) -> String {
        let object = if self.random.chance(15) {
            self.triple_pattern()
        } else {
            self.object()
        };
        let subject = self.subject();
        let predicate = match self.random.below(4) {
            0 => self.variable().to_owned(),
            _ => format!(":{}", self.random.pick(&LINKS)),
        };
        format!("<<( {subject} {predicate} {object} )>>")
    }

    /// Takes patterns from the budget, if there are as many.
    fn takes(&mut self, patterns: usize) -> bool {
        match self.patterns_left.checked_sub(patterns) {
            Some(left) => {
                self.patterns_left = left;
                true
            }
            None => false,
        }
    }

    /// `{ ... }`
    fn group(&mut self, depth: usize) -> Tree {
        let mut group = Tree::new(Sort::Group).text("{ ");
        if self.random.chance(85) {
            group = group.child(self.triples());
        }
        for _ in 0..self.random.below(ELEMENTS_MAX) {
            group = group.child(self.element(depth));
        }
        group.text("} ")
    }

    fn element(&mut self, depth: usize) -> Tree {
        let nested = usize::from(depth > 0);
        let weights = [
            6,
            3,
            3,
            2,
            1,
            nested * 5,
            nested * 3,
            nested * 3,
            nested,
            nested * 3,
            nested * if self.has_graphs { 3 } else { 1 },
            nested * 2,
        ];
        match self.random.weighted(&weights) {
            0 => self.triples(),
            1 => self.path_pattern(),
            2 => self.filter(depth),
            3 => self.bind(),
            4 => self.values(),
            5 => self.around("OPTIONAL ", depth),
            6 => self.union(depth),
            7 => self.minus(depth),
            8 => self.around("", depth),
            9 => self.subquery(depth),
            10 => self.graph(depth),
            _ => self.lateral(depth),
        }
    }

    fn around(&mut self, keyword: &'static str, depth: usize) -> Tree {
        Tree::new(Sort::Element)
            .text(keyword)
            .child(self.group(depth - 1))
            .droppable()
    }

    fn union(&mut self, depth: usize) -> Tree {
        let mut union = Tree::new(Sort::Element).child(self.group(depth - 1));
        for _ in 0..=self.random.below(2) {
            let branch = Tree::new(Sort::Clause)
                .text("UNION ")
                .child(self.group(depth - 1));
            union = union.child(branch.droppable());
        }
        union.droppable()
    }

    /// A group for each solution before it: a subquery, most often one whose limit has one answer,
    /// or any.
    fn lateral(&mut self, depth: usize) -> Tree {
        let lateral = Tree::new(Sort::Element).text("LATERAL ");
        self.lateral_depth += 1;
        let group = match self.random.below(10) {
            0..=2 if self.takes(2) => self.limited_subquery(),
            0..=5 => self.subquery(depth),
            6 => Tree::new(Sort::Group)
                .text("{ ")
                .child(self.around("OPTIONAL ", depth))
                .text("} "),
            _ => self.group(depth - 1),
        };
        self.lateral_depth -= 1;
        lateral.child(group).droppable()
    }

    /// In `EXISTS`, the reference counts the variables of the outer row as shared; by the
    /// specification they were replaced by terms before (18.6, substitute). In `LATERAL` it counts
    /// all of the row's variables, whether a side mentions them or not.
    fn minus(&mut self, depth: usize) -> Tree {
        let minus = self.around("MINUS ", depth);
        if self.exists_depth > 0 || self.lateral_depth > 0 {
            return minus.ours_only();
        }
        minus
    }

    fn graph(&mut self, depth: usize) -> Tree {
        let name = match self.random.below(3) {
            0 => format!(":{}", self.random.pick(&GRAPHS)),
            1 => "?g".to_owned(),
            _ => self.variable().to_owned(),
        };
        Tree::new(Sort::Element)
            .text(format!("GRAPH {name} "))
            .child(self.group(depth - 1))
            .droppable()
    }

    fn filter(&mut self, depth: usize) -> Tree {
        Tree::new(Sort::Element)
            .text("FILTER(")
            .child(self.truth(2, depth))
            .text(") ")
            .droppable()
    }

    fn bind(&mut self) -> Tree {
        // In EXISTS, the reference would give an outer variable the new value.
        let name = if self.exists_depth == 0 && self.random.chance(50) {
            self.variable().to_owned()
        } else {
            self.fresh("?e")
        };
        Tree::new(Sort::Element)
            .text("BIND(")
            .child(self.value(2))
            .text(format!(" AS {name}) "))
            .droppable()
    }

    fn values(&mut self) -> Tree {
        let (a, b) = (self.variable(), self.variable());
        let names = if a == b { vec![a] } else { vec![a, b] };
        let mut values = Tree::new(Sort::Element).text(format!("VALUES ({}) {{ ", names.join(" ")));
        for _ in 0..self.random.below(4) {
            let mut row = "(".to_owned();
            for _ in &names {
                let cell = if self.random.chance(20) {
                    "UNDEF".to_owned()
                } else {
                    self.constant()
                };
                row.push_str(&cell);
                row.push(' ');
            }
            row.push_str(") ");
            values = values.child(Tree::leaf(Sort::Clause, row).droppable());
        }
        values.text("} ").droppable()
    }

    fn triples(&mut self) -> Tree {
        if !self.takes(1) {
            return self.values();
        }
        let text = match self.random.below(22) {
            20 | 21 if self.takes(2) => self.cycle(),
            0 if self.takes(1) => {
                let (s, o) = (self.subject(), self.object());
                format!("{s} {} {o} . ", self.variable())
            }
            1 if self.takes(1) => {
                let label = self.fresh("_:n");
                let (s, o) = (self.subject(), self.object());
                let link = self.random.pick(&LINKS);
                format!("{s} :{link} {label} . {label} :{} {o} . ", self.predicate())
            }
            2 => format!("[] :{} {} . ", self.predicate(), self.object()),
            // In EXISTS and LATERAL, the reference takes a literal that cannot be a subject for no
            // value.
            3 if self.kind == Kind::Canonical && self.is_outside() && self.takes(1) => {
                let (s, o) = (self.subject(), self.triple_pattern());
                format!("{s} :{} {o} . ", self.random.pick(&VALUES))
            }
            // Bound by a clean predicate only, for MIN and MAX.
            3 | 4 => format!("{} :{CLEAN_VALUE} ?k . ", self.subject()),
            // As data may have it: from nodes to nodes, from nodes to values.
            5..=12 => {
                let (s, o) = (
                    self.random.pick(&NODE_VARIABLES),
                    self.random.pick(&NODE_VARIABLES),
                );
                format!("{s} :{} {o} . ", self.random.pick(&LINKS))
            }
            13..=15 => {
                let (s, o) = (
                    self.random.pick(&NODE_VARIABLES),
                    self.random.pick(&VALUE_VARIABLES),
                );
                format!("{s} :{} {o} . ", self.random.pick(&VALUES))
            }
            _ => {
                let (s, o) = (self.subject(), self.object());
                format!("{s} :{} {o} . ", self.predicate())
            }
        };
        Tree::leaf(Sort::Element, text).droppable()
    }

    /// A triangle between nodes, each edge in one direction or the other.
    fn cycle(&mut self) -> String {
        let [a, b, c] = NODE_VARIABLES;
        let mut text = String::new();
        for (from, to) in [(a, b), (b, c), (c, a)] {
            let (from, to) = match self.random.chance(50) {
                true => (from, to),
                false => (to, from),
            };
            text += &format!("{from} :{} {to} . ", self.random.pick(&LINKS));
        }
        text
    }

    fn subject(&mut self) -> String {
        if self.random.chance(12) {
            return self.node();
        }
        self.variable().to_owned()
    }

    fn object(&mut self) -> String {
        if self.random.chance(12) {
            return self.constant();
        }
        self.variable().to_owned()
    }

    fn predicate(&mut self) -> &'static str {
        match self.random.below(10) {
            0..=5 => self.random.pick(&LINKS),
            6 => CLEAN_VALUE,
            _ => self.random.pick(&VALUES),
        }
    }

    /// A subquery whose `LIMIT` has one answer only: over data in which nothing is tied that
    /// is not the same.
    fn limited_subquery(&mut self) -> Tree {
        let (a, b) = (self.variable(), self.variable());
        let optional = if self.random.chance(50) {
            format!("OPTIONAL {{ {b} :{CLEAN_VALUE} ?k }} ")
        } else {
            format!("{b} :{CLEAN_VALUE} ?k . ")
        };
        let mut keys = [a, b, "?k"];
        let first = self.random.below(3);
        keys.swap(0, first);
        let directions = ["ASC", "DESC", "ASC"];
        let order = keys.map(|key| format!("{}({key}) ", self.random.pick(&directions)));
        let (limit, offset) = (self.random.below(4), self.random.below(3));
        let distinct = self.random.pick(&["", "DISTINCT "]);
        Tree::new(Sort::Element)
            .text(format!(
                "{{ SELECT {distinct}{a} {} ?k {{ {a} :{CLEAN_LINK} {b} . ",
                if a == b { "" } else { b }
            ))
            .child(Tree::leaf(Sort::Clause, optional).droppable())
            .text(format!("}} ORDER BY {}", order.concat()))
            .child(Tree::leaf(Sort::Clause, format!("LIMIT {limit} ")).droppable())
            .child(Tree::leaf(Sort::Clause, format!("OFFSET {offset} ")).droppable())
            .text("} ")
            .droppable()
    }
}
