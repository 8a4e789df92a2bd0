//! The `SERVICE` of path search: its settings and edge pattern.
//!
//! ```text
//! SERVICE <https://orrery-db.org/path#search> {          or <http://www.ontotext.com/path#search>, with the same names
//!   [] path:findPath path:shortestPath ; path:sourceNode ?a ; path:destinationNode ?b ; ... .      settings
//!   SERVICE <urn:path> { ?start ?p ?end }                                                           the edges
//! }
//! SERVICE <https://orrery-db.org/path#search> { ?a foaf:knows+ ?b . [] path:length ?n }             the length of a property path
//! ```

use orrery_operators::search::{PathKind, SearchColumn};
use orrery_syntax::weights_between;
use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::term::{
    BlankNode, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

use super::{Normaliser, PatternPlace, union_of};
use crate::algebra::services::local_name;
use crate::algebra::{Group, Item, PathSearch, Slot, Var, VarSet};
use crate::error::{QueryError, Result};

/// A service that is answered here, as its settings are read and its messages name it.
#[derive(Clone, Copy)]
pub(super) struct Served {
    pub(super) what: &'static str,
    /// What its settings begin with in messages.
    pub(super) prefix: &'static str,
    /// The name of a setting without what it begins with.
    pub(super) local_name: fn(&str) -> Option<&str>,
}

const SEARCH: Served = Served {
    what: "a search for paths",
    prefix: "path",
    local_name,
};

impl Served {
    pub(super) fn wrong(self, what: impl std::fmt::Display) -> QueryError {
        QueryError::unsupported(format!("in {}, {what}", self.what))
    }

    /// Refuses it where nothing says which graph it is over.
    pub(super) fn check_place(self, place: &PatternPlace) -> Result<()> {
        match place.scope.variable() {
            None => Ok(()),
            Some(_) => Err(QueryError::unsupported(format!(
                "{} inside of GRAPH ?variable: name the graph, or put GRAPH into the pattern of the edges",
                self.what
            ))),
        }
    }

    /// The setting that a triple is.
    pub(super) fn setting(self, triple: &TriplePattern) -> Result<&str> {
        let name = match &triple.predicate {
            NamedNodePattern::NamedNode(node) => (self.local_name)(node.as_str()),
            NamedNodePattern::Variable(_) => None,
        };
        name.ok_or_else(|| {
            self.wrong(format_args!(
                "{} is no setting; the pattern of the edges stands in a SERVICE <urn:edges> {{ .. }} of its own",
                triple.predicate
            ))
        })
    }

    /// Refuses a setting that is given a second time: none of the two would be the one that counts.
    pub(super) fn once<'p>(self, name: &'p str, seen: &mut Vec<&'p str>) -> Result<()> {
        let names_same = match name {
            "distance" | "distanceBinding" => "length",
            other => other,
        };
        if seen.contains(&names_same) {
            return Err(self.wrong(format_args!("{}:{name} is given twice", self.prefix)));
        }
        if !matches!(name, "exportBinding" | "exportBindings") {
            seen.push(names_same);
        }
        Ok(())
    }

    pub(super) fn variable<'p>(self, name: &str, value: &'p TermPattern) -> Result<&'p Variable> {
        match value {
            TermPattern::Variable(variable) => Ok(variable),
            other => Err(self.wrong(format_args!(
                "{}:{name} takes a variable, not {other}",
                self.prefix
            ))),
        }
    }

    pub(super) fn literal<'p>(
        self,
        name: &str,
        what: &str,
        value: &'p TermPattern,
    ) -> Result<&'p Literal> {
        match value {
            TermPattern::Literal(literal) => Ok(literal),
            other => Err(self.wrong(format_args!(
                "{}:{name} takes {what}, not {other}",
                self.prefix
            ))),
        }
    }

    pub(super) fn number(self, name: &str, value: &TermPattern) -> Result<u64> {
        let what = "a whole number";
        let literal = self.literal(name, what, value)?;
        let number = literal.value().parse();
        number.map_err(|_| {
            self.wrong(format_args!(
                "{}:{name} takes {what}, not {literal}",
                self.prefix
            ))
        })
    }
}

fn wrong(what: impl std::fmt::Display) -> QueryError {
    SEARCH.wrong(what)
}

/// What stands inside of the service.
#[derive(Default)]
pub(super) struct Parts<'p> {
    pub(super) settings: Vec<&'p TriplePattern>,
    pub(super) edges: Option<&'p GraphPattern>,
    pub(super) path: Option<(&'p TermPattern, &'p PropertyPathExpression, &'p TermPattern)>,
}

impl<'p> Parts<'p> {
    pub(super) fn of(pattern: &'p GraphPattern, served: Served) -> Result<Self> {
        let mut parts = Self::default();
        let mut waiting = vec![pattern];
        while let Some(pattern) = waiting.pop() {
            match pattern {
                GraphPattern::Join { left, right } => waiting.extend([&**right, &**left]),
                GraphPattern::Bgp { patterns } => parts.settings.extend(patterns),
                GraphPattern::Service { inner, .. } if parts.edges.is_none() => {
                    parts.edges = Some(inner);
                }
                GraphPattern::Service { .. } => {
                    return Err(served.wrong(
                        "a second SERVICE stands inside: one holds the pattern of the edges",
                    ));
                }
                GraphPattern::Path {
                    subject,
                    path,
                    object,
                } if parts.path.is_none() => parts.path = Some((subject, path, object)),
                _ => {
                    return Err(served.wrong(
                        "there is something else than settings and one SERVICE <urn:edges> { .. } with the pattern of the edges",
                    ));
                }
            }
        }
        Ok(parts)
    }
}

/// The settings.
#[derive(Default)]
pub(super) struct Settings<'p> {
    search: Option<&'p str>,
    source: Option<&'p TermPattern>,
    destination: Option<&'p TermPattern>,
    pub(super) start: Option<&'p Variable>,
    pub(super) end: Option<&'p Variable>,
    weight: Option<&'p Variable>,
    /// The name of the edge weight that weighs the edges.
    weighed_by: Option<&'p NamedNode>,
    property: Option<&'p Variable>,
    exported: Vec<&'p Variable>,
    triple: Option<&'p Variable>,
    path_index: Option<&'p Variable>,
    edge_index: Option<&'p Variable>,
    length: Option<&'p Variable>,
    cost: Option<&'p Variable>,
    length_min: Option<u64>,
    length_max: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
    count: Option<u64>,
    is_bidirectional: bool,
    is_by_path: bool,
}

impl<'p> Settings<'p> {
    fn of(triples: &[&'p TriplePattern]) -> Result<Self> {
        let mut settings = Self::default();
        let mut seen = Vec::with_capacity(triples.len());
        for &triple in triples {
            let name = SEARCH.setting(triple)?;
            SEARCH.once(name, &mut seen)?;
            settings.take(name, &triple.object)?;
        }
        Ok(settings)
    }

    fn take(&mut self, name: &'p str, value: &'p TermPattern) -> Result<()> {
        match name {
            "findPath" => self.search = Some(search_of(value)?),
            "sourceNode" => self.source = Some(value),
            "destinationNode" => self.destination = Some(value),
            "startNode" => self.start = Some(SEARCH.variable(name, value)?),
            "endNode" => self.end = Some(SEARCH.variable(name, value)?),
            "weight" => match value {
                TermPattern::NamedNode(weight) => self.weighed_by = Some(weight),
                _ => self.weight = Some(SEARCH.variable(name, value)?),
            },
            "propertyBinding" => self.property = Some(SEARCH.variable(name, value)?),
            "exportBinding" | "exportBindings" => self.exported.push(SEARCH.variable(name, value)?),
            "resultBinding" => self.triple = Some(SEARCH.variable(name, value)?),
            "pathIndex" => self.path_index = Some(SEARCH.variable(name, value)?),
            "resultBindingIndex" => self.edge_index = Some(SEARCH.variable(name, value)?),
            "length" | "distance" | "distanceBinding" => {
                self.length = Some(SEARCH.variable(name, value)?);
            }
            "cost" => self.cost = Some(SEARCH.variable(name, value)?),
            "minPathLength" => self.length_min = Some(SEARCH.number(name, value)?),
            "maxPathLength" => self.length_max = Some(SEARCH.number(name, value)?),
            "offset" => self.offset = Some(SEARCH.number(name, value)?),
            "limit" => self.limit = Some(SEARCH.number(name, value)?),
            "count" => self.count = Some(SEARCH.number(name, value)?),
            "bidirectional" => self.is_bidirectional = truth(name, value)?,
            "byPath" => self.is_by_path = truth(name, value)?,
            // How much memory a search may use is the database's setting.
            "poolSize" => {}
            _ => return Err(wrong(format_args!("the setting path:{name} is not known"))),
        }
        Ok(())
    }
}

fn search_of(value: &TermPattern) -> Result<&str> {
    const SEARCHES: &str = "path:shortestPath, path:oneShortestPath, path:firstPaths, path:allPaths, path:cycle, path:shortestCycle, path:oneShortestCycle, path:firstCycles, path:distance";
    let name = match value {
        TermPattern::NamedNode(node) => local_name(node.as_str()),
        _ => None,
    };
    name.ok_or_else(|| wrong(format_args!("path:findPath {value} is none of {SEARCHES}")))
}

fn first_of(settings: &Settings<'_>) -> Result<PathKind> {
    let count = settings.count.ok_or_else(|| {
        wrong("path:firstPaths and path:firstCycles need path:count, how many there are to be between two ends")
    })?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(PathKind::First(count.max(1)))
}

fn truth(name: &str, value: &TermPattern) -> Result<bool> {
    let what = "true or false";
    match SEARCH.literal(name, what, value)?.value() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(wrong(format_args!(
            "path:{name} takes {what}, not {other:?}"
        ))),
    }
}

/// The edges of a search, with variables of their own.
pub(super) struct Edges {
    pub(super) group: Group,
    pub(super) ends: [Var; 2],
    exported: Vec<Var>,
    weight: Option<Var>,
}

impl Normaliser<'_> {
    /// A `SERVICE` that [finds paths](finds_paths).
    pub(super) fn path_search(
        &mut self,
        pattern: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        SEARCH.check_place(place)?;
        let parts = Parts::of(pattern, SEARCH)?;
        let settings = Settings::of(&parts.settings)?;
        match parts.path {
            Some(path) => self.length_of_path(path, &parts, &settings, place),
            None => self.paths(&parts, &settings, place),
        }
    }

    /// Paths between two ends over edges of any pattern.
    fn paths(
        &mut self,
        parts: &Parts<'_>,
        settings: &Settings<'_>,
        place: &PatternPlace,
    ) -> Result<Group> {
        let all = PathKind::Shortest { is_all: true };
        let one = PathKind::Shortest { is_all: false };
        let (kind, is_cyclic) = match settings.search {
            Some("shortestPath") => (all, false),
            Some("oneShortestPath" | "distance") => (one, false),
            Some("allPaths") => (PathKind::All, false),
            Some("firstPaths") => (first_of(settings)?, false),
            Some("cycle") => (PathKind::All, true),
            Some("shortestCycle") => (all, true),
            Some("oneShortestCycle") => (one, true),
            Some("firstCycles") => (first_of(settings)?, true),
            Some(other) => {
                return Err(wrong(format_args!(
                    "path:findPath path:{other} is not known"
                )));
            }
            None => return Err(wrong("path:findPath is missing, such as path:shortestPath")),
        };
        let edges = self.edges(SEARCH, parts, settings, place)?;
        let is_distance = settings.search == Some("distance");
        let mut output = Vec::new();
        if !is_distance {
            self.of_edges(settings, &edges, &mut output)?;
        }
        let mut put = |column, variable: Option<&Variable>| {
            if let Some(variable) = variable {
                output.push((self.variable(variable), column));
            }
        };
        put(SearchColumn::PathIndex, settings.path_index);
        put(SearchColumn::Length, settings.length);
        put(SearchColumn::Cost, settings.cost);
        let source = self.end("sourceNode", settings.source)?;
        let destination = self.end("destinationNode", settings.destination)?;
        let search = PathSearch {
            kind,
            is_cyclic,
            is_bidirectional: settings.is_bidirectional,
            allows_empty: false,
            is_by_path: is_distance || settings.is_by_path,
            length_min: length(settings.length_min)?.unwrap_or(0),
            length_max: length(settings.length_max)?,
            offset: settings.offset.unwrap_or(0),
            limit: settings.limit,
            edges: edges.group,
            ends: edges.ends,
            exported: edges.exported,
            weight: edges.weight,
            source,
            destination,
            output,
        };
        check(&search, self)?;
        Ok(Group::of(Item::Search(Box::new(search))))
    }

    /// An end of the paths. What is not said is any node.
    fn end(&mut self, name: &str, term: Option<&TermPattern>) -> Result<Slot> {
        let Some(term) = term else {
            return Ok(Slot::Variable(self.table.fresh("end")));
        };
        let mut taken_apart = Vec::new();
        let slot = self.path_end(term, &mut taken_apart)?;
        match taken_apart.is_empty() {
            true => Ok(slot),
            false => Err(wrong(format_args!(
                "path:{name} is a triple with variables"
            ))),
        }
    }

    /// What is given out of each edge.
    fn of_edges(
        &mut self,
        settings: &Settings<'_>,
        edges: &Edges,
        output: &mut Vec<(Var, SearchColumn)>,
    ) -> Result<()> {
        for (variable, column) in [
            (settings.start, SearchColumn::Start),
            (settings.end, SearchColumn::End),
            (settings.edge_index, SearchColumn::EdgeIndex),
        ] {
            if let Some(variable) = variable {
                output.push((self.variable(variable), column));
            }
        }
        let property = settings.property.into_iter();
        let exported = property.chain(settings.exported.iter().copied());
        let count = exported.clone().count();
        for (at, variable) in exported.enumerate() {
            output.push((self.variable(variable), SearchColumn::Exported(at)));
        }
        if let Some(triple) = settings.triple {
            // The predicate is the last of what the edges give.
            if edges.exported.len() == count && settings.property.is_none() {
                return Err(wrong("path:resultBinding needs path:propertyBinding"));
            }
            let predicate = match settings.property {
                Some(_) => 0,
                None => edges.exported.len() - 1,
            };
            output.push((self.variable(triple), SearchColumn::Triple(predicate)));
        }
        Ok(())
    }

    /// The pattern of the edges; triples of any predicate where there is none.
    pub(super) fn edges(
        &mut self,
        served: Served,
        parts: &Parts<'_>,
        settings: &Settings<'_>,
        place: &PatternPlace,
    ) -> Result<Edges> {
        let names = [("start", settings.start), ("end", settings.end)];
        let [start, end] = names.map(|(hint, given)| {
            let made_up = || Variable::new_unchecked(format!(".{hint}"));
            given.cloned().unwrap_or_else(made_up)
        });
        let property = settings.property.cloned();
        let property = property.unwrap_or_else(|| Variable::new_unchecked(".property"));
        let anything;
        let pattern = match parts.edges {
            Some(pattern) => {
                if settings.start.is_none() || settings.end.is_none() {
                    let prefix = served.prefix;
                    return Err(served.wrong(format_args!(
                        "{prefix}:startNode and {prefix}:endNode are missing: the variables of the pattern that an edge leads from and to",
                    )));
                }
                pattern
            }
            None => {
                anything = GraphPattern::Bgp {
                    patterns: vec![TriplePattern {
                        subject: start.clone().into(),
                        predicate: property.clone().into(),
                        object: end.clone().into(),
                    }],
                };
                &anything
            }
        };
        let of_edges = Variable::new_unchecked(".weight");
        let (weight, weighed);
        let pattern = match settings.weighed_by {
            None => {
                weight = settings.weight;
                pattern
            }
            Some(name) => {
                weight = Some(&of_edges);
                let node = BlankNode::new_unchecked("weight");
                let weights = weights_between(node, name.clone(), [&start, &end], &of_edges);
                // Without a pattern the pairs that have a weight are the edges.
                weighed = match parts.edges {
                    Some(pattern) => GraphPattern::Join {
                        left: Box::new(pattern.clone()),
                        right: Box::new(weights),
                    },
                    None => weights,
                };
                &weighed
            }
        };
        let mut exported: Vec<&Variable> = settings.property.into_iter().collect();
        exported.extend(&settings.exported);
        if parts.edges.is_none() && settings.property.is_none() && settings.triple.is_some() {
            exported.push(&property);
        }
        let outside = std::mem::take(&mut self.names);
        let was_root = std::mem::replace(&mut self.is_root, false);
        let inside = PatternPlace {
            outer: VarSet::default(),
            is_outermost: false,
            ..place.clone()
        };
        let group = self.pattern(pattern, &inside);
        let ends = [&start, &end].map(|variable| self.variable(variable));
        let exported_vars: Vec<Var> = exported.iter().map(|it| self.variable(it)).collect();
        let weight_var = weight.map(|variable| self.variable(variable));
        self.names = outside;
        self.is_root = was_root;
        let group = group?;
        let all = ends.iter().zip([&start, &end]);
        let all = all.chain(exported_vars.iter().zip(exported.iter().copied()));
        let all = all.chain(weight_var.iter().zip(weight));
        for (var, variable) in all {
            if !group.visible.contains(*var) {
                return Err(served.wrong(format_args!(
                    "the pattern of the edges does not bind {variable}"
                )));
            }
        }
        Ok(Edges {
            group,
            ends,
            exported: exported_vars,
            weight: weight_var,
        })
    }

    /// The length of the shortest way along `+` or `*`.
    fn length_of_path(
        &mut self,
        (subject, path, object): (&TermPattern, &PropertyPathExpression, &TermPattern),
        parts: &Parts<'_>,
        settings: &Settings<'_>,
        place: &PatternPlace,
    ) -> Result<Group> {
        let (step, allows_empty) = match path {
            PropertyPathExpression::OneOrMore(step) => (step, false),
            PropertyPathExpression::ZeroOrMore(step) => (step, true),
            _ => {
                return Err(wrong(format_args!(
                    "the property path {path} has no length: it is + or * that has one, as in ?a foaf:knows+ ?b"
                )));
            }
        };
        let Some(length_variable) = settings.length else {
            return Err(wrong(
                "path:length ?n is missing, the variable for the length of the property path",
            ));
        };
        if parts.edges.is_some() || parts.settings.len() > 1 {
            let others = parts.settings.len() - 1 - usize::from(settings.length_max.is_some());
            if parts.edges.is_some() || others > 0 {
                return Err(wrong(
                    "beside a property path only path:length and path:maxPathLength can stand",
                ));
            }
        }
        let ends = ["start", "end"].map(|hint| self.table.fresh(hint));
        let inside = PatternPlace {
            outer: VarSet::default(),
            is_outermost: false,
            ..place.clone()
        };
        let [start, end] = ends.map(Slot::Variable);
        let edges = self.path(start, step, end, &inside)?;
        let source = self.end("sourceNode", Some(subject))?;
        let destination = self.end("destinationNode", Some(object))?;
        let search = PathSearch {
            kind: PathKind::Shortest { is_all: false },
            is_cyclic: false,
            is_bidirectional: false,
            allows_empty,
            is_by_path: true,
            length_min: 0,
            length_max: length(settings.length_max)?,
            offset: 0,
            limit: None,
            edges,
            ends,
            exported: Vec::new(),
            weight: None,
            source,
            destination,
            output: vec![(self.variable(length_variable), SearchColumn::Length)],
        };
        check(&search, self)?;
        if allows_empty {
            return Ok(Group::of(Item::Search(Box::new(search))));
        }
        // `+` also leads from a node back to itself.
        let back = PathSearch {
            is_cyclic: true,
            ..search.clone()
        };
        let ways = [search, back].map(|it| Group::of(Item::Search(Box::new(it))));
        Ok(union_of(ways.into()))
    }
}

fn length(length: Option<u64>) -> Result<Option<u32>> {
    let length = length.map(u32::try_from).transpose();
    length.map_err(|_| wrong("a length is larger than 4 billion edges"))
}

/// Refuses a variable with two meanings, and settings that do not go together.
fn check(search: &PathSearch, normaliser: &Normaliser<'_>) -> Result<()> {
    if search.ends[0] == search.ends[1] {
        return Err(wrong(
            "path:startNode and path:endNode are one variable: an edge leads from one node to another",
        ));
    }
    let mut seen = search.bindable();
    for (var, _) in &search.output {
        if seen.contains(*var) {
            return Err(wrong(format_args!(
                "?{} stands for two things",
                normaliser.table.name(*var)
            )));
        }
        seen.insert(*var);
    }
    let is_costed = search.output.iter().any(|it| it.1 == SearchColumn::Cost);
    if is_costed && search.weight.is_none() {
        return Err(wrong("path:cost needs path:weight"));
    }
    if search.is_cyclic && search.weight.is_some() && search.kind != PathKind::All {
        return Err(wrong(
            "cycles are found by their length, not by a weight: all of them can be found and ordered by their cost",
        ));
    }
    Ok(())
}
