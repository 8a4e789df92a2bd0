//! Random users, groups and rules, and who among them asks; and what they permit, by a model that only walks over the list of rules.
//!
//! ```text
//! seed -> rules --guard's catalog--> scope of the engine
//!            '----this model-------> quads that the reference has; in all other graphs are quads that the engine alone has
//! ```

use std::collections::BTreeSet;

use orrery_guard::{
    Catalog, Change, Group, GroupId, Name, Right, Rule, Subject, Target, User, UserId,
};
use orrery_storage::{Asker, ReadScope, SmallQuad};
use orrery_term::Term;

use super::random::Random;
use crate::Error;

/// That of the data.
const NAMESPACE: &str = "http://example.org/";
/// Names of graphs: those that queries name, and others before, between and behind them.
const GRAPHS: [&str; 8] = ["g1", "g2", "a", "0", "g", "g1/x", "g10", "z"];
/// How names of some of them begin, and of none.
const BEGINNINGS: [&str; 6] = ["", "g", "g1", "g1/", "a", "x"];
const RULES_MAX: usize = 7;
const ADMINISTRATOR: UserId = UserId(1);
const GROUPS: [GroupId; 2] = [GroupId(10), GroupId(11)];
const USERS: [UserId; 3] = [UserId(2), UserId(3), UserId(4)];

/// Rules, and who asks.
#[derive(Debug)]
pub(super) struct Rules {
    users: Vec<User>,
    rules: Vec<Rule>,
    asker: Option<UserId>,
}

impl Rules {
    /// The same seed draws the same.
    pub(super) fn of(seed: u64) -> Result<Self, Error> {
        let mut random = Random::new(seed, 0);
        let mut users = vec![user(ADMINISTRATOR, "root", true)?];
        for (id, name) in USERS.iter().zip(["ann", "bob", "cid"]) {
            let mut user = user(*id, name, false)?;
            user.groups = GROUPS
                .into_iter()
                .filter(|_| random.chance(50))
                .collect::<BTreeSet<_>>();
            user.is_locked = random.chance(10);
            users.push(user);
        }
        let rules = 0..random.below(RULES_MAX + 1);
        Ok(Self {
            rules: rules.map(|_| rule(&mut random)).collect(),
            asker: match random.below(20) {
                0 => Some(ADMINISTRATOR),
                1..=4 => None,
                _ => Some(random.pick(&USERS)),
            },
            users,
        })
    }

    /// What the guard makes of them.
    pub(super) fn scope(&self) -> Result<ReadScope, Error> {
        let mut catalog = Catalog::default();
        let groups = GROUPS.iter().zip(["editors", "readers"]);
        let groups = groups.map(|(id, group)| {
            let name = name(group)?;
            Ok::<Change, Error>(Change::PutGroup(Group {
                id: *id,
                name,
                identities: BTreeSet::new(),
            }))
        });
        let users = self.users.iter().cloned().map(Change::PutUser).map(Ok);
        let rules = self.rules.iter().cloned().zip(100..);
        let rules = rules.map(|(rule, number)| Ok(Change::PutRule(number, rule)));
        for change in groups.chain(users).chain(rules) {
            catalog = catalog.after(change?).map_err(refused)?;
        }
        let asker = self.asker.map_or(Asker::Anonymous, |id| Asker::User(id.0));
        Ok(match catalog.graphs_of(self.asker, Right::Read) {
            None => ReadScope::all_graphs(asker),
            Some(graphs) => ReadScope::only(asker, graphs),
        })
    }

    /// Whether the asker may read a graph; the default graph has no name.
    pub(super) fn permit(&self, graph: Option<&str>) -> bool {
        let asker = self
            .asker
            .and_then(|id| self.users.iter().find(|user| user.id == id));
        if asker.is_some_and(|user| user.is_locked) {
            return false;
        }
        if asker.is_some_and(|user| user.is_administrator) {
            return true;
        }
        // Each right has that to read with it.
        self.rules.iter().any(|rule| {
            let is_about = match rule.subject {
                Subject::Anyone => true,
                Subject::Authenticated => asker.is_some(),
                Subject::User(id) => asker.is_some_and(|user| user.id == id),
                Subject::Group(id) => asker.is_some_and(|user| user.groups.contains(&id)),
            };
            let is_of = match (&rule.target, graph) {
                (Target::AllGraphs, _) | (Target::DefaultGraph, None) => true,
                (Target::Graph(name), Some(graph)) => name == graph,
                (Target::GraphsBelow(beginning), Some(graph)) => graph.starts_with(beginning),
                _ => false,
            };
            is_about && is_of
        })
    }

    /// Whether some graph is hidden.
    pub(super) fn hide_some(&self) -> bool {
        self.hidden_graphs().next().is_some()
    }

    fn hidden_graphs(&self) -> impl Iterator<Item = Option<String>> {
        let named = GRAPHS.iter().map(|name| Some(format!("{NAMESPACE}{name}")));
        let all = std::iter::once(None).chain(named);
        all.filter(|graph| !self.permit(graph.as_deref()))
    }

    /// In each graph that the asker may not read: the triples of the others, given ones, and one of terms that stand nowhere else.
    pub(super) fn hidden_quads(&self, quads: &[SmallQuad], others: &[SmallQuad]) -> Vec<SmallQuad> {
        let mut hidden = Vec::new();
        for (number, graph) in self.hidden_graphs().enumerate() {
            let name = graph.map(Term::iri);
            let of_graph =
                |(s, p, o, _): &SmallQuad| (s.clone(), p.clone(), o.clone(), name.clone());
            hidden.extend(quads.iter().chain(others).map(of_graph));
            let secret = || Term::iri(format!("{NAMESPACE}secret{number}"));
            hidden.push((secret(), secret(), Term::string("secret"), name.clone()));
            let link = Term::iri(format!("{NAMESPACE}p"));
            hidden.push((Term::iri(format!("{NAMESPACE}a")), link, secret(), name));
        }
        let mut seen = BTreeSet::new();
        hidden.retain(|quad| seen.insert(format!("{quad:?}")));
        hidden
    }
}

fn user(id: UserId, text: &str, is_administrator: bool) -> Result<User, Error> {
    Ok(User {
        id,
        name: name(text)?,
        password: None,
        is_administrator,
        is_locked: false,
        identities: BTreeSet::new(),
        groups: BTreeSet::new(),
    })
}

fn name(text: &str) -> Result<Name, Error> {
    Name::new(text).map_err(|error| refused(error.into()))
}

fn refused(error: orrery_guard::Error) -> Error {
    Error::Reference(error.to_string())
}

fn rule(random: &mut Random) -> Rule {
    let subject = match random.below(10) {
        0 | 1 => Subject::Anyone,
        2 | 3 => Subject::Authenticated,
        4..=6 => Subject::User(random.pick(&USERS)),
        _ => Subject::Group(random.pick(&GROUPS)),
    };
    let target = match random.below(20) {
        0 => Target::AllGraphs,
        1..=5 => Target::DefaultGraph,
        6 => Target::AllTables,
        7..=11 => Target::GraphsBelow(format!("{NAMESPACE}{}", random.pick(&BEGINNINGS))),
        12 => Target::Graph(format!("{NAMESPACE}none")),
        _ => Target::Graph(format!("{NAMESPACE}{}", random.pick(&GRAPHS))),
    };
    Rule {
        subject,
        right: random.pick(&[Right::Read, Right::Read, Right::Write, Right::Administer]),
        target,
    }
}
