//! The rights of an asker on graphs and tables, summed over all rules.
//!
//! ```text
//! rules about the user, the groups, everybody -> with this right or more -> graphs by name, by how their names begin; schemas, tables
//! ```

use orrery_storage::GraphNames;
use orrery_storage::table::TableNames;
use orrery_term::Term;

use crate::graph_query::texts_for;
use crate::{Catalog, Right, Target, UserId};

/// Tables and views.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TableRights {
    all: bool,
    names: TableNames,
}

/// A rule about graphs that a query finds, for somebody.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GraphQuery {
    /// What they may do.
    pub right: Right,
    /// The query as the rule has it.
    pub text: String,
    /// The queries to run, over all graphs. What they select together is what the rule is about;
    /// IRIs alone count.
    pub texts: Vec<String>,
}

impl Catalog {
    /// The graphs that somebody has a right to, but for those that queries find; `None` if it is
    /// all graphs, also those to come, as an administrator has.
    pub fn graphs_of(&self, user: Option<UserId>, right: Right) -> Option<GraphNames> {
        if self.administers(user) {
            return None;
        }
        let mut graphs = GraphNames::default();
        for target in self.targets(user, right) {
            match target {
                Target::AllGraphs => return None,
                Target::DefaultGraph => graphs.has_default = true,
                Target::Graph(iri) => {
                    graphs.named.insert(Term::iri(iri.clone()));
                }
                Target::GraphsBelow(beginning) => graphs.below.insert(beginning.clone()),
                // Found when it is known what there is: `graph_queries`.
                Target::GraphsOf(_) => {}
                Target::AllTables | Target::Schema(_) | Target::Table { .. } => {}
            }
        }
        Some(graphs)
    }

    /// The rules about somebody that name graphs by queries, but for those that add nothing, as to
    /// an administrator.
    pub fn graph_queries(&self, user: Option<UserId>) -> Vec<GraphQuery> {
        let needed = match (
            self.graphs_of(user, Right::Read),
            self.graphs_of(user, Right::Write),
        ) {
            (_, None) => return Vec::new(),
            (None, Some(_)) => Right::Write,
            (Some(_), Some(_)) => Right::Read,
        };
        let known = user.and_then(|id| self.user(id));
        let rules = self.rules_of(user).filter(|rule| rule.right >= needed);
        let queries = rules.filter_map(|rule| match &rule.target {
            Target::GraphsOf(text) => Some(GraphQuery {
                right: rule.right,
                text: text.clone(),
                texts: texts_for(text, known),
            }),
            _ => None,
        });
        queries.filter(|query| !query.texts.is_empty()).collect()
    }

    /// The tables that somebody has a right to: an administrator to all.
    pub fn tables_of(&self, user: Option<UserId>, right: Right) -> TableRights {
        let mut rights = TableRights {
            all: self.administers(user),
            ..TableRights::default()
        };
        for target in self.targets(user, right) {
            match target {
                Target::AllTables => rights.all = true,
                Target::Schema(schema) => {
                    rights.names.schemas.insert(schema.clone());
                }
                Target::Table { schema, name } => {
                    rights.names.insert(schema.clone(), name.clone());
                }
                Target::AllGraphs
                | Target::DefaultGraph
                | Target::Graph(_)
                | Target::GraphsBelow(_)
                | Target::GraphsOf(_) => {}
            }
        }
        rights
    }

    /// Whether somebody administers the database.
    pub fn administers(&self, user: Option<UserId>) -> bool {
        let known = user.and_then(|id| self.user(id));
        known.is_some_and(|user| user.is_administrator && !user.is_locked)
    }

    /// Whether a user has the right to administer all that a target is about.
    pub fn administers_target(&self, user: UserId, target: &Target) -> bool {
        let mut targets = self.targets(Some(user), Right::Administer);
        self.administers(Some(user)) || targets.any(|mine| mine.covers(target))
    }

    fn targets(&self, user: Option<UserId>, right: Right) -> impl Iterator<Item = &Target> {
        let rules = self.rules_of(user).filter(move |rule| rule.right >= right);
        rules.map(|rule| &rule.target)
    }
}

impl TableRights {
    /// Whether all tables are among them, also those to come.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Whether a table or a view is.
    pub fn has(&self, schema: &str, name: &str) -> bool {
        self.all || self.names.contains(schema, name)
    }

    /// The names; `None` if it is all tables.
    pub fn into_names(self) -> Option<TableNames> {
        (!self.all).then_some(self.names)
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::tests::with_users;
    use crate::{Change, GroupId, Rule, Subject};

    use super::*;

    #[test]
    fn rules_of_user_groups_and_everybody_are_one_right() {
        let (root, ann, group) = (UserId(1), UserId(3), GroupId(2));
        let rule = |subject, right, target| Rule {
            subject,
            right,
            target,
        };
        let table = |name: &str| Target::Table {
            schema: "public".to_owned(),
            name: name.to_owned(),
        };
        let rules = [
            rule(Subject::Anyone, Right::Read, Target::DefaultGraph),
            rule(
                Subject::User(ann),
                Right::Write,
                Target::Graph("x:a".to_owned()),
            ),
            rule(
                Subject::Group(group),
                Right::Read,
                Target::GraphsBelow("x:b/".to_owned()),
            ),
            rule(
                Subject::Authenticated,
                Right::Read,
                Target::Graph("y:known".to_owned()),
            ),
            rule(Subject::Group(group), Right::Administer, table("t")),
            rule(
                Subject::User(ann),
                Right::Read,
                Target::Schema("s".to_owned()),
            ),
        ];
        let catalog = rules
            .into_iter()
            .zip(100..)
            .fold(with_users(), |catalog, (rule, number)| {
                catalog.after(Change::PutRule(number, rule)).unwrap()
            });
        let seen = |user| catalog.graphs_of(user, Right::Read);
        let written = |user| catalog.graphs_of(user, Right::Write);
        assert!(seen(Some(root)).is_none() && written(Some(root)).is_none());
        assert!(catalog.tables_of(Some(root), Right::Administer).is_all());

        let nobody = seen(None).unwrap();
        assert!(nobody.contains(None) && !nobody.contains(Some(&Term::iri("x:a"))));

        let ann_sees = seen(Some(ann)).unwrap();
        for (iri, is_seen) in [
            ("x:a", true),
            ("x:b/c", true),
            ("x:b", false),
            ("y:known", true),
            ("y:", false),
        ] {
            assert_eq!(ann_sees.contains(Some(&Term::iri(iri))), is_seen, "{iri}");
        }
        let ann_writes = written(Some(ann)).unwrap();
        assert!(!ann_writes.contains(None) && ann_writes.contains(Some(&Term::iri("x:a"))));

        let tables = catalog.tables_of(Some(ann), Right::Read);
        assert!(tables.has("public", "t") && tables.has("s", "any") && !tables.has("public", "u"));
        let tables = catalog.tables_of(Some(ann), Right::Write);
        assert!(tables.has("public", "t") && !tables.has("s", "any"));
        let names = tables.into_names().unwrap();
        assert!(names.contains("public", "t") && !names.contains("public", "u"));
        let of_root = catalog.tables_of(Some(root), Right::Write);
        assert!(of_root.into_names().is_none());
        assert!(!catalog.tables_of(None, Right::Read).has("public", "t"));
    }
}
