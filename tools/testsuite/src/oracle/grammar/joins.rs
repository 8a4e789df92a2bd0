//! Random aggregates over joins: counts, totals and distinct values, grouped by few variables.

use super::queries::{Aggregation, clause};
use super::{
    CLEAN_VALUE, DEPTH, Grammar, LINKS, NODE_VARIABLES, Sort, Tree, VALUE_VARIABLES, VALUES,
};

/// Patterns of a tree.
const TREE_PATTERNS_MAX: usize = 5;

impl Grammar<'_> {
    /// An aggregation of a tree of patterns, and what may stand beside it.
    pub(super) fn counted_tree(&mut self) -> Aggregation {
        let (mut select, keys, grouping) = self.grouped_variables();
        let mut projected = keys.clone();
        for _ in 0..=self.random.below(2) {
            let name = self.fresh("?n");
            let counted = Tree::leaf(Sort::Clause, format!("(COUNT(*) AS {name}) "));
            select = select.child(match self.random.chance(40) {
                true => counted.droppable(),
                false => self.projected_aggregate(&keys, &name),
            });
            projected.push(name);
        }
        let group = self.tree_group();
        let end = self.grouping(grouping, &projected, true);
        Aggregation { select, group, end }
    }

    /// `SELECT DISTINCT`, `ASK` over a tree.
    pub(super) fn distinct_tree(&mut self) -> Tree {
        let query = Tree::new(Sort::Query);
        if self.random.chance(20) {
            return query.text("ASK ").child(self.tree_group());
        }
        let mut query = query.text("SELECT DISTINCT ");
        for _ in 0..=self.random.below(2) {
            let name = self.variable();
            query = query.child(clause(format!("{name} ")));
        }
        let name = self.variable();
        query.text(format!("{name} ")).child(self.tree_group())
    }

    /// A tree with conditions, optional parts, unions beside it, a second tree beside it or in
    /// another branch; in a graph, maybe.
    fn tree_group(&mut self) -> Tree {
        let mut group = self.tree(Tree::new(Sort::Group).text("{ "));
        if self.random.chance(12) {
            let branches = Tree::new(Sort::Element).child(group.text("} "));
            let other = self.tree(Tree::new(Sort::Group).text("{ ")).text("} ");
            let other = Tree::new(Sort::Clause).text("UNION ").child(other);
            group = Tree::new(Sort::Group)
                .text("{ ")
                .child(branches.child(other.droppable()).droppable());
        }
        for _ in 0..self.random.below(3) {
            group = match self.random.below(14) {
                0..=2 => group.child(self.filter(1)),
                3..=5 => group.child(self.optional_pattern()),
                6 => group.child(self.values()),
                7 => group.child(self.element(DEPTH - 1)),
                8..=10 => group.child(self.union_of_patterns()),
                _ => group.child(self.existing_pattern()),
            };
        }
        let group = group.text("} ");
        if !self.has_graphs || self.random.chance(75) {
            return group;
        }
        let graph = self.random.pick(&["?g", ":g1", ":g2"]);
        let inside = Tree::new(Sort::Element)
            .text(format!("GRAPH {graph} "))
            .child(group);
        Tree::new(Sort::Group).text("{ ").child(inside).text("} ")
    }

    /// Patterns from one variable, of which a solution has one.
    fn union_of_patterns(&mut self) -> Tree {
        if !self.takes(1) {
            return self.values();
        }
        let from = self.variable().to_owned();
        let mut union = Tree::new(Sort::Element);
        for number in 0..2 + self.random.below(2) {
            let mut known = vec![from.clone()];
            let mut branch = Tree::new(Sort::Group).text("{ ");
            for _ in 0..=self.random.below(2) {
                let start = known[self.random.below(known.len())].clone();
                let text = self.edge(&start, &mut known);
                branch = branch.child(Tree::leaf(Sort::Element, text).droppable());
            }
            let branch = branch.text("} ");
            union = match number {
                0 => union.child(branch),
                _ => {
                    let branch = Tree::new(Sort::Clause).text("UNION ").child(branch);
                    union.child(branch.droppable())
                }
            };
        }
        union.droppable()
    }

    /// A condition that some patterns around a variable or two have a match, or none.
    fn existing_pattern(&mut self) -> Tree {
        let keyword = (self.random).pick(&["FILTER EXISTS ", "FILTER NOT EXISTS ", "MINUS "]);
        let from = self.variable().to_owned();
        let mut known = vec![from];
        let mut group = Tree::new(Sort::Group).text("{ ");
        for _ in 0..=self.random.below(2) {
            let start = known[self.random.below(known.len())].clone();
            let text = self.edge(&start, &mut known);
            group = group.child(Tree::leaf(Sort::Element, text).droppable());
        }
        Tree::new(Sort::Element)
            .text(keyword)
            .child(group.text("} "))
            .droppable()
    }

    /// Patterns each of which has one variable in common with those before, most of the time.
    fn tree(&mut self, mut group: Tree) -> Tree {
        let mut known: Vec<String> = vec![self.random.pick(&NODE_VARIABLES).to_owned()];
        for _ in 0..2 + self.random.below(TREE_PATTERNS_MAX - 1) {
            if !self.takes(1) {
                break;
            }
            let from = known[self.random.below(known.len())].clone();
            let text = self.edge(&from, &mut known);
            group = group.child(Tree::leaf(Sort::Element, text).droppable());
        }
        group
    }

    /// A pattern from a variable to a new one, or to one that may be known.
    fn edge(&mut self, from: &str, known: &mut Vec<String>) -> String {
        match self.random.below(10) {
            0 | 1 => {
                let to = self.random.pick(&VALUE_VARIABLES);
                format!("{from} :{} {to} . ", self.random.pick(&VALUES))
            }
            2 => format!("{from} :{CLEAN_VALUE} ?k . "),
            3 => format!("{from} :{} {} . ", self.random.pick(&LINKS), self.node()),
            4 => {
                let (a, b) = (self.fresh("?f"), self.fresh("?f"));
                format!("{a} :{} {b} . ", self.random.pick(&LINKS))
            }
            _ => {
                let to = match self.random.chance(40) {
                    true => self.random.pick(&NODE_VARIABLES).to_owned(),
                    false => self.fresh("?f"),
                };
                let link = self.random.pick(&LINKS);
                let text = match self.random.chance(50) {
                    true => format!("{from} :{link} {to} . "),
                    false => format!("{to} :{link} {from} . "),
                };
                if !known.contains(&to) {
                    known.push(to);
                }
                text
            }
        }
    }

    fn optional_pattern(&mut self) -> Tree {
        if !self.takes(1) {
            return self.values();
        }
        let from = self.variable().to_owned();
        let text = self.edge(&from, &mut vec![from.clone()]);
        let group = Tree::new(Sort::Group).text("{ ").text(text).text("} ");
        Tree::new(Sort::Element)
            .text("OPTIONAL ")
            .child(group)
            .droppable()
    }
}
