//! Random query forms, subqueries, aggregates, modifiers.

use super::{DEPTH, GRAPHS, Grammar, Kind, Sort, Tree, VARIABLES};

/// The separator of `GROUP_CONCAT`, which no text of the data has: the parts are compared in any
/// order.
pub(crate) const SEPARATOR: char = '|';

pub(super) fn clause(text: impl Into<std::borrow::Cow<'static, str>>) -> Tree {
    Tree::leaf(Sort::Clause, text).droppable()
}

/// What an aggregation consists of: what stands before its group, the group, and what stands after.
pub(super) struct Aggregation {
    pub(super) select: Tree,
    pub(super) group: Tree,
    pub(super) end: Tree,
}

impl Grammar<'_> {
    pub(super) fn query(&mut self) -> Tree {
        let query = Tree::new(Sort::Query);
        match self.random.below(20) {
            0 | 1 => {
                let query = self.dataset(query.text("ASK "));
                query.child(self.group(DEPTH))
            }
            2 | 3 => self.construct(),
            4 => self.describe(),
            5..=8 => {
                let Aggregation { select, group, end } = match self.random.chance(40) {
                    true => self.counted_tree(),
                    false => self.aggregation(DEPTH, true),
                };
                let query = self.dataset(query.child(select));
                self.slice(query.child(group).child(end))
            }
            9 if self.random.chance(50) => self.distinct_tree(),
            _ => {
                let select = self.select_clause();
                let (projection, keys) = self.projection();
                let query = self.dataset(query.child(select).child(projection));
                let query = query.child(self.group(DEPTH));
                let query = self.order(query, &keys);
                self.slice(query)
            }
        }
    }

    fn select_clause(&mut self) -> Tree {
        let duplicates = self.random.pick(&["", "", "DISTINCT ", "REDUCED "]);
        Tree::new(Sort::Clause)
            .text("SELECT ")
            .child(clause(duplicates))
    }

    /// `FROM` and `FROM NAMED`
    fn dataset(&mut self, mut query: Tree) -> Tree {
        if !self.has_graphs || self.random.chance(80) {
            return query;
        }
        for _ in 0..=self.random.below(3) {
            let keyword = self.random.pick(&["FROM ", "FROM NAMED "]);
            let graph = self.random.pick(&GRAPHS);
            query = query.child(clause(format!("{keyword}:{graph} ")));
        }
        query
    }

    /// What is projected, and the variables by which it may be ordered.
    fn projection(&mut self) -> (Tree, Vec<String>) {
        if self.random.chance(45) {
            let keys = VARIABLES.iter().map(|&name| name.to_owned()).collect();
            return (Tree::leaf(Sort::Clause, "* "), keys);
        }
        let mut keys: Vec<String> = Vec::new();
        let mut projection = Tree::new(Sort::Clause);
        for _ in 0..=self.random.below(3) {
            let name = self.variable();
            if !keys.iter().any(|known| known == name) {
                keys.push(name.to_owned());
                projection = projection.child(clause(format!("{name} ")));
            }
        }
        for _ in 0..self.random.below(3) {
            let name = self.fresh("?e");
            let value = if self.random.chance(70) {
                self.value(2)
            } else {
                self.truth(1, 1)
            };
            let computed = Tree::new(Sort::Clause)
                .text("(")
                .child(value)
                .text(format!(" AS {name}) "));
            projection = projection.child(computed.droppable());
            keys.push(name);
        }
        (projection, keys)
    }

    fn order(&mut self, query: Tree, keys: &[String]) -> Tree {
        if keys.is_empty() || self.random.chance(55) {
            return query;
        }
        let mut order = Tree::new(Sort::Clause).text("ORDER BY ");
        for _ in 0..=self.random.below(3) {
            let direction = self.random.pick(&["ASC", "DESC", "ASC"]);
            let name = &keys[self.random.below(keys.len())];
            let key = match self.random.below(6) {
                0 if self.kind == Kind::Canonical => format!("{direction}(STR({name})) "),
                1 => format!("{direction}(-{name}) "),
                2 => format!("{direction}(bound({name})) "),
                _ => format!("{direction}({name}) "),
            };
            order = order.child(self.of_calendar(clause(key)));
        }
        query.child(order.droppable())
    }

    fn slice(&mut self, mut query: Tree) -> Tree {
        if self.random.chance(25) {
            let limit = self.random.below(6);
            query = query.child(clause(format!("LIMIT {limit} ")));
        }
        if self.random.chance(15) {
            let offset = self.random.below(4);
            query = query.child(clause(format!("OFFSET {offset} ")));
        }
        query
    }

    fn construct(&mut self) -> Tree {
        let mut template = Tree::new(Sort::Clause).text("{ ");
        for _ in 0..=self.random.below(3) {
            let subject = match self.random.below(5) {
                0 => "_:t".to_owned(),
                1 => self.node(),
                _ => self.variable().to_owned(),
            };
            let predicate = match self.random.below(4) {
                0 => self.variable().to_owned(),
                _ => format!(":{}", self.predicate()),
            };
            let object = match self.random.below(6) {
                0 => "_:t".to_owned(),
                1 => self.constant(),
                _ => self.variable().to_owned(),
            };
            template = template.child(clause(format!("{subject} {predicate} {object} . ")));
        }
        let query = Tree::new(Sort::Query)
            .text("CONSTRUCT ")
            .child(template.text("} "));
        self.dataset(query).text("WHERE ").child(self.group(DEPTH))
    }

    fn describe(&mut self) -> Tree {
        let query = Tree::new(Sort::Query).text("DESCRIBE ");
        if self.random.chance(30) {
            let node = self.node();
            return self.dataset(query.text(format!("{node} ")));
        }
        let query = query.text(format!("{} ", self.variable()));
        self.dataset(query).text("WHERE ").child(self.group(DEPTH))
    }

    /// A subquery. In `EXISTS`, the reference hands the outer row to what a subquery projects
    /// before its modifiers work; we join what comes out.
    pub(super) fn subquery(&mut self, depth: usize) -> Tree {
        let kind = self.random.below(10);
        let element = if kind < 2 && self.takes(2) {
            self.limited_subquery()
        } else {
            let subquery = match kind {
                0..=4 => {
                    let Aggregation { select, group, end } = self.aggregation(depth - 1, false);
                    Tree::new(Sort::Clause)
                        .child(select)
                        .child(group)
                        .child(end)
                }
                5 => self.counted(depth),
                _ => self.plain_subquery(depth),
            };
            Tree::new(Sort::Element)
                .text("{ ")
                .child(subquery)
                .text("} ")
                .droppable()
        };
        if self.exists_depth > 0 {
            return element.ours_only();
        }
        element
    }

    fn plain_subquery(&mut self, depth: usize) -> Tree {
        let select = self.select_clause();
        let (projection, keys) = self.projection();
        let query = Tree::new(Sort::Clause)
            .child(select)
            .child(projection)
            .child(self.group(depth - 1));
        let query = if self.random.chance(20) {
            self.order(query, &keys)
        } else {
            query
        };
        // Limits that leave no choice.
        let slices = ["", "", "", "LIMIT 0 ", "LIMIT 1000 ", "OFFSET 1000 "];
        query.child(clause(self.random.pick(&slices)))
    }

    /// How many rows a limit leaves does not depend on which they are.
    fn counted(&mut self, depth: usize) -> Tree {
        let name = self.fresh("?n");
        let inner = Tree::new(Sort::Clause)
            .text("SELECT ")
            .child(clause(self.random.pick(&["", "DISTINCT "])))
            .text(format!("{} ", self.variable()))
            .child(self.group(depth - 1));
        let inner = self.slice(inner);
        Tree::new(Sort::Clause)
            .text(format!("SELECT (COUNT(*) AS {name}) {{ {{ "))
            .child(inner)
            .text("} } ")
    }

    /// The beginning of a SELECT with up to two variables to group by: their names, and how GROUP
    /// BY writes them.
    pub(super) fn grouped_variables(&mut self) -> (Tree, Vec<String>, Vec<Tree>) {
        let mut select = Tree::new(Sort::Clause).text("SELECT ");
        let (mut keys, mut grouping): (Vec<String>, Vec<Tree>) = (Vec::new(), Vec::new());
        for _ in 0..self.random.below(3) {
            let name = self.variable().to_owned();
            if !keys.contains(&name) {
                select = select.child(clause(format!("{name} ")));
                grouping.push(clause(format!("{name} ")));
                keys.push(name);
            }
        }
        (select, keys, grouping)
    }

    fn aggregation(&mut self, depth: usize, is_outermost: bool) -> Aggregation {
        let (mut select, mut keys, mut grouping) = self.grouped_variables();
        if self.random.chance(15) {
            let name = self.fresh("?e");
            select = select.child(clause(format!("{name} ")));
            let key = Tree::new(Sort::Clause)
                .text("(")
                .child(self.value(1))
                .text(format!(" AS {name}) "));
            grouping.push(key);
            keys.push(name);
        }
        let mut projected = keys.clone();
        for _ in 0..=self.random.below(3) {
            let name = self.fresh("?n");
            select = select.child(self.projected_aggregate(&keys, &name));
            projected.push(name);
        }
        let group = self.group(depth);
        let end = self.grouping(grouping, &projected, is_outermost);
        Aggregation { select, group, end }
    }

    /// `GROUP BY`, `HAVING`, `ORDER BY`
    pub(super) fn grouping(
        &mut self,
        keys: Vec<Tree>,
        projected: &[String],
        is_outermost: bool,
    ) -> Tree {
        let mut end = Tree::new(Sort::Clause);
        if !keys.is_empty() {
            end = end.text("GROUP BY ");
        }
        for key in keys {
            end = end.child(key);
        }
        if self.random.chance(25) {
            let comparison = self.random.pick(&[">", "<", "=", "!="]);
            let number = self.random.below(4);
            let having = Tree::new(Sort::Clause)
                .text("HAVING(")
                .child(self.aggregate(&[]))
                .text(format!(" {comparison} {number}) "));
            end = end.child(having.droppable());
        }
        if is_outermost {
            end = self.order(end, projected);
        }
        end
    }

    pub(super) fn projected_aggregate(&mut self, keys: &[String], name: &str) -> Tree {
        let aggregate = self.aggregate(keys);
        let projected = Tree::new(Sort::Clause).text("(").child(aggregate);
        let projected = match self.random.below(5) {
            0 if self.kind == Kind::Canonical => projected.child(clause(" + 1")),
            _ => projected,
        };
        projected.text(format!(" AS {name}) ")).droppable()
    }

    fn aggregate(&mut self, keys: &[String]) -> Tree {
        let distinct = self.random.pick(&["", "DISTINCT "]);
        let name = self.variable();
        let tree = Tree::new(Sort::Clause);
        match self.random.below(12) {
            0 | 1 => tree.text("COUNT(*)"),
            // COUNT of an expression: one error makes the reference's count unbound, and the
            // specification leaves errors out (18.5.1.2).
            2 | 3 => tree.text(format!("COUNT({distinct}{name})")),
            4 | 5 => self.of_numbers("SUM", distinct),
            6 => self.of_numbers("AVG", distinct),
            // What MIN and MAX give among equal or incomparable terms is not said.
            7 => {
                let function = self.random.pick(&["MIN", "MAX"]);
                tree.text(format!("{function}({distinct}?k)"))
            }
            8 if self.kind == Kind::Canonical => {
                let function = self.random.pick(&["MIN", "MAX"]);
                let conversion = self.random.pick(&["STR", "xsd:integer", "xsd:double"]);
                tree.text(format!("{function}({conversion}({name}))"))
            }
            9 if !keys.is_empty() && self.kind != Kind::Odd => {
                let key = &keys[self.random.below(keys.len())];
                tree.text(format!("SAMPLE({key})"))
            }
            10 if self.kind == Kind::Canonical => {
                // `DISTINCT` means the terms, or their texts.
                let argument = match distinct.is_empty() && self.random.chance(50) {
                    true => name.to_owned(),
                    false => format!("STR({name})"),
                };
                tree.text(format!(
                    "GROUP_CONCAT({distinct}{argument}; SEPARATOR=\"{SEPARATOR}\")"
                ))
            }
            11 => tree.text("COUNT(DISTINCT *)"),
            _ => tree.text(format!("COUNT({name})")),
        }
    }

    fn of_numbers(&mut self, function: &'static str, distinct: &'static str) -> Tree {
        let argument = match self.random.below(4) {
            0 | 1 => Tree::leaf(Sort::Value, "?k"),
            2 => Tree::leaf(Sort::Value, self.variable()),
            _ => self.value(1),
        };
        let aggregate = Tree::new(Sort::Clause)
            .text(format!("{function}({distinct}"))
            .child(argument)
            .text(")");
        self.of_calendar(aggregate)
    }
}
