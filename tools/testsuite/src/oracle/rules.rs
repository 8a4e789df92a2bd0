//! Random users, groups and rules, with a model of what they permit.
//!
//! ```text
//! seed -> rules, lists --guard's catalog--> scopes of the engine; rules by query are run by it over all quads
//!                   '----this model-------> quads that the reference has; in all other graphs are quads that the engine alone has
//! ```
//!
//! The lists of who reads what are quads of a graph of their own, which rules may hide as any
//! other.

use std::collections::BTreeSet;

use orrery_access::{
    Catalog, Change, Group, GroupId, Identity, Name, Right, Rule, Subject, Target, User, UserId,
};
use orrery_sparql::{WriteScope, term_to_oxrdf};
use orrery_storage::{Asker, GraphNames, ReadScope, SmallQuad};
use orrery_term::Term;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad};

use super::derived::{hidden_place, hidden_text, text_predicate};
use super::random::Random;
use super::weights;
use crate::Error;

/// That of the data.
const NAMESPACE: &str = "http://example.org/";
/// Names of graphs: those that queries name, and others before, between and behind them.
const GRAPHS: [&str; 8] = ["g1", "g2", "a", "0", "g", "g1/x", "g10", "z"];
/// How names of some of them begin, and of none.
const BEGINNINGS: [&str; 6] = ["", "g", "g1", "g1/", "a", "x"];
const RULES_MAX: usize = 7;
/// Quads that are hidden where there are to be many: more than two vectors of rows have.
const CROWD: usize = 2_500;
const ADMINISTRATOR: UserId = UserId(1);
/// The graph with the lists.
const LISTS: &str = "http://example.org/lists";
/// Rules by query. In the lists a graph has readers, some who are barred, and may be public.
const QUERIES: [&str; 5] = [
    "PREFIX ex: <http://example.org/> SELECT ?g { GRAPH ex:lists { ?g ex:reader ?user } }",
    "PREFIX ex: <http://example.org/> SELECT DISTINCT ?g { GRAPH ex:lists { ?g ex:reader ?who } FILTER(?who = $user) }",
    "PREFIX ex: <http://example.org/> SELECT ?g { GRAPH ex:lists { ?g ex:reader ?somebody MINUS { ?g ex:barred ?user } } }",
    "SELECT ?g { GRAPH <http://example.org/lists> { ?g <http://example.org/public> 1 } }",
    "PREFIX ex: <http://example.org/> SELECT ?g { GRAPH ex:lists { ?g (ex:reader|ex:barred)/^ex:barred ?h . ?h ex:reader ?user } }",
];
const READER: usize = 0;
const BARRED: usize = 1;
const GROUPS: [GroupId; 2] = [GroupId(10), GroupId(11)];
const USERS: [UserId; 3] = [UserId(2), UserId(3), UserId(4)];

/// Rules, and who asks.
#[derive(Debug)]
pub(super) struct Rules {
    users: Vec<User>,
    rules: Vec<Rule>,
    asker: Option<UserId>,
    /// Of graphs: readers, and who is barred.
    lists: BTreeSet<(&'static str, usize, Term<'static>)>,
    public: BTreeSet<&'static str>,
    /// Whether an old state is asked.
    pub(super) is_about_old_state: bool,
}

/// What is hidden from an asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    /// The triples of the graphs that are seen, wrong ones, and terms of their own.
    Like,
    /// As much as that makes no difference to who does not see it: nothing, something else, or very
    /// much, by the seed.
    Other,
}

/// What somebody may read and write.
pub(super) struct Scopes {
    pub(super) reads: ReadScope,
    pub(super) writes: WriteScope,
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
            if random.chance(60) {
                let identity = format!("{NAMESPACE}people/{}#me", user.name.as_str());
                let identity = Identity::new(&identity);
                user.identities
                    .insert(identity.map_err(|error| refused(error.into()))?);
            }
            users.push(user);
        }
        let rules = 0..random.below(RULES_MAX + 1);
        // Beside the others, which are what they would be without.
        let mut beside = Random::new(seed, 1);
        let of_weights = beside.chance(75).then(|| Rule {
            subject: Subject::Anyone,
            right: beside.pick(&[Right::Read, Right::Write]),
            target: Target::Graph(weights::DEFINITIONS.to_owned()),
        });
        let (mut lists, mut public) = (BTreeSet::new(), BTreeSet::new());
        for graph in GRAPHS {
            if random.chance(20) {
                public.insert(graph);
            }
            for list in [READER, BARRED] {
                for user in &users {
                    let names = names_of(user);
                    if random.chance([30, 15][list]) {
                        lists.insert((graph, list, names[random.below(names.len())].clone()));
                    }
                }
            }
        }
        Ok(Self {
            lists,
            public,
            is_about_old_state: random.chance(25),
            rules: rules.map(|_| rule(&mut random)).chain(of_weights).collect(),
            asker: match random.below(20) {
                0 => Some(ADMINISTRATOR),
                1..=4 => None,
                _ => Some(random.pick(&USERS)),
            },
            users,
        })
    }

    /// What the guard makes of them; `find` runs a query over all quads.
    pub(super) fn scopes(
        &self,
        find: impl Fn(&str) -> Result<Vec<Term<'static>>, Error>,
    ) -> Result<Scopes, Error> {
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
        let (mut reads, mut writes) = (GraphNames::default(), GraphNames::default());
        for query in catalog.graph_queries(self.asker) {
            for text in &query.texts {
                let found = find(text)?.into_iter();
                let found = found.filter(|term| matches!(term, Term::Iri(_)));
                for graph in found {
                    if query.right >= Right::Write {
                        writes.named.insert(graph.clone());
                    }
                    reads.named.insert(graph);
                }
            }
        }
        let with = |right: Right, found: GraphNames| {
            let mut graphs = catalog.graphs_of(self.asker, right)?;
            graphs.extend(found);
            Some(graphs)
        };
        Ok(Scopes {
            reads: match with(Right::Read, reads) {
                None => ReadScope::all_graphs(asker),
                Some(graphs) => ReadScope::only(asker, graphs),
            },
            writes: match with(Right::Write, writes) {
                None => WriteScope::all_graphs(),
                Some(graphs) => WriteScope::only(graphs),
            },
        })
    }

    /// The lists, as quads.
    pub(super) fn list_quads(&self) -> Vec<SmallQuad> {
        let iri = |name: &str| Term::iri(format!("{NAMESPACE}{name}"));
        let lists = self.lists.iter().map(|(graph, list, who)| {
            let list = iri(["reader", "barred"][*list]);
            (iri(graph), list, who.clone(), Some(Term::iri(LISTS)))
        });
        let integer = "http://www.w3.org/2001/XMLSchema#integer";
        let public = self.public.iter().map(|graph| {
            let is_public = Term::typed("1", integer);
            (iri(graph), iri("public"), is_public, Some(Term::iri(LISTS)))
        });
        lists.chain(public).collect()
    }

    /// Whether a quad is one of the graph of the lists.
    pub(super) fn is_of_lists(&self, quad: &SmallQuad) -> bool {
        quad.3.as_ref() == Some(&Term::iri(LISTS))
    }

    /// Whether the lists are among what the asker reads.
    pub(super) fn show_lists(&self) -> bool {
        self.permit(Some(LISTS))
    }

    /// Whether the definitions of edge weights are among what the asker reads.
    pub(super) fn show_weights(&self) -> bool {
        self.permit(Some(weights::DEFINITIONS))
    }

    /// Whether a query finds a graph for somebody.
    fn find(&self, query: &str, graph: &str, asker: Option<&User>) -> bool {
        let Some(graph) = graph.strip_prefix(NAMESPACE) else {
            return false;
        };
        let names = asker.map(names_of).unwrap_or_default();
        let has = |graph: &str, list: usize, who: &Term<'static>| {
            let mut entries = self.lists.iter();
            entries.any(|(of, is, name)| *of == graph && *is == list && name == who)
        };
        let on = |list: usize| -> Vec<&Term<'static>> {
            let of_graph = self
                .lists
                .iter()
                .filter(|(of, is, _)| *of == graph && *is == list);
            of_graph.map(|(.., who)| who).collect()
        };
        match QUERIES.iter().position(|known| *known == query) {
            Some(0 | 1) => names.iter().any(|name| has(graph, READER, name)),
            Some(2) => !on(READER).is_empty() && names.iter().any(|name| !has(graph, BARRED, name)),
            Some(3) => self.public.contains(graph),
            Some(_) => {
                let people = [on(READER), on(BARRED)].concat();
                GRAPHS.iter().any(|other| {
                    names.iter().any(|name| has(other, READER, name))
                        && people.iter().any(|who| has(other, BARRED, who))
                })
            }
            None => false,
        }
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
                (Target::GraphsOf(query), Some(graph)) => self.find(query, graph, asker),
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
        let all = all.chain([Some(weights::DEFINITIONS.to_owned())]);
        all.filter(|graph| !self.permit(graph.as_deref()))
    }

    /// How much is hidden: as much as is seen, or of three amounts one.
    pub(super) fn amount(&self, secrets: Secrets) -> Option<usize> {
        match secrets {
            Secrets::Like => None,
            Secrets::Other => Some(self.public.len() % 3),
        }
    }

    /// In each graph that the asker may not read: the triples of the others, given ones, and one of
    /// terms that stand nowhere else; beside the lists, if they are hidden.
    pub(super) fn hidden_quads(
        &self,
        (quads, others): (&[SmallQuad], &[SmallQuad]),
        secrets: Secrets,
    ) -> Vec<SmallQuad> {
        let mut hidden = match self.show_lists() {
            true => Vec::new(),
            false => self.list_quads(),
        };
        let amount = self.amount(secrets);
        if amount.is_none() && !self.show_weights() {
            hidden.extend(weights::hidden());
        }
        for (number, graph) in self.hidden_graphs().enumerate() {
            let name = graph.map(Term::iri);
            match amount {
                Some(0) => break,
                Some(1) => {
                    let other =
                        |(s, p, o, _): &SmallQuad| (s.clone(), p.clone(), o.clone(), name.clone());
                    hidden.extend(others.iter().step_by(2).map(other));
                    continue;
                }
                Some(_) => hidden.extend(crowd(number, quads, name.as_ref())),
                None => {}
            }
            let of_graph =
                |(s, p, o, _): &SmallQuad| (s.clone(), p.clone(), o.clone(), name.clone());
            hidden.extend(quads.iter().chain(others).map(of_graph));
            let secret = || Term::iri(format!("{NAMESPACE}secret{number}"));
            hidden.push((secret(), secret(), Term::string("secret"), name.clone()));
            let text = Term::string(hidden_text(number));
            hidden.push((secret(), Term::iri(text_predicate()), text, name.clone()));
            let (predicate, place, datatype) = hidden_place(number);
            let place = Term::typed(place, datatype);
            hidden.push((secret(), Term::iri(predicate), place, name.clone()));
            let link = Term::iri(format!("{NAMESPACE}p"));
            hidden.push((Term::iri(format!("{NAMESPACE}a")), link, secret(), name));
        }
        let mut seen = BTreeSet::new();
        hidden.retain(|quad| seen.insert(format!("{quad:?}")));
        hidden
    }
}

/// A quad whose subject, predicate and graph are IRIs or blank nodes, as they are in data.
pub(super) fn quad_of((subject, predicate, object, graph): &SmallQuad) -> Quad {
    let iri = |term: &Term<'static>| match term {
        Term::Iri(iri) => NamedNode::new_unchecked(iri.to_string()),
        other => NamedNode::new_unchecked(other.to_string()),
    };
    let subject = match term_to_oxrdf(subject) {
        oxrdf::Term::BlankNode(node) => NamedOrBlankNode::from(node),
        _ => iri(subject).into(),
    };
    let graph = graph
        .as_ref()
        .map_or(GraphName::DefaultGraph, |name| iri(name).into());
    Quad::new(subject, iri(predicate), term_to_oxrdf(object), graph)
}

/// Whether a quad of a data set is one of the lists.
pub(super) fn is_of_lists(quad: &Quad) -> bool {
    matches!(&quad.graph_name, GraphName::NamedNode(name) if name.as_str() == LISTS)
}

/// Very many quads of a graph: of each predicate that is seen, with subjects that nobody sees, and
/// of subjects that are seen.
fn crowd<'q>(
    number: usize,
    quads: &'q [SmallQuad],
    graph: Option<&'q Term<'static>>,
) -> impl Iterator<Item = SmallQuad> + 'q {
    let each = CROWD / quads.len().max(1);
    let crowd = quads.iter().flat_map(move |(s, p, o, _)| {
        (0..each).map(move |nobody| {
            let unseen = Term::iri(format!("{NAMESPACE}b{number}-{nobody}"));
            match nobody % 3 {
                0 => (s.clone(), p.clone(), unseen, graph.cloned()),
                _ => (unseen, p.clone(), o.clone(), graph.cloned()),
            }
        })
    });
    crowd.filter(move |_| number == 0)
}

/// What a query may find a user as.
fn names_of(user: &User) -> Vec<Term<'static>> {
    let identities = user.identities.iter();
    let identities = identities.map(|it| Term::iri(it.as_str().to_owned()));
    identities
        .chain([Term::string(user.name.as_str().to_owned())])
        .collect()
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

fn refused(error: orrery_access::Error) -> Error {
    Error::Reference(error.to_string())
}

fn rule(random: &mut Random) -> Rule {
    let subject = match random.below(10) {
        0 | 1 => Subject::Anyone,
        2 | 3 => Subject::Authenticated,
        4..=6 => Subject::User(random.pick(&USERS)),
        _ => Subject::Group(random.pick(&GROUPS)),
    };
    let target = match random.below(27) {
        20.. => Target::GraphsOf(random.pick(&QUERIES).to_owned()),
        0 => Target::AllGraphs,
        1..=5 => Target::DefaultGraph,
        6 => Target::AllTables,
        7..=11 => Target::GraphsBelow(format!("{NAMESPACE}{}", random.pick(&BEGINNINGS))),
        12 => Target::Graph(format!("{NAMESPACE}none")),
        _ => Target::Graph(format!("{NAMESPACE}{}", random.pick(&GRAPHS))),
    };
    Rule {
        subject,
        right: match target {
            Target::GraphsOf(_) => random.pick(&[Right::Read, Right::Write]),
            _ => random.pick(&[Right::Read, Right::Read, Right::Write, Right::Administer]),
        },
        target,
    }
}
