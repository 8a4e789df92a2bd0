//! The `SERVICE` of edge weights, alone and as edges of a search.
//!
//! ```text
//! SERVICE <https://orrery-db.org/weight#read> { [] weight:name <w> ; weight:start ?a ; weight:end ?b ; weight:value ?w }
//! ```
//!
//! The definition takes the place of the service, as a subquery over what the query sees.

use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{GroundTerm, NamedNode, TermPattern, Variable};

use super::search::{Parts, Served};
use super::{Names, Normaliser, PatternPlace};
use crate::algebra::services::weight_name;
use crate::algebra::{Group, Item, KnownWeights, Values, Var, VarSet};
use crate::edge_weights::definition::{EdgeWeight, definition_in};
use crate::error::{QueryError, Result};

const WEIGHTS: Served = Served {
    what: "an edge weight",
    prefix: "weight",
    local_name: weight_name,
};

fn wrong(what: impl std::fmt::Display) -> QueryError {
    WEIGHTS.wrong(what)
}

/// What the service is to read.
#[derive(Default)]
struct Settings<'p> {
    name: Option<&'p NamedNode>,
    start: Option<&'p TermPattern>,
    end: Option<&'p TermPattern>,
    value: Option<&'p Variable>,
}

impl<'p> Settings<'p> {
    fn of(parts: &Parts<'p>) -> Result<Self> {
        let mut settings = Self::default();
        for &triple in &parts.settings {
            let value = &triple.object;
            match WEIGHTS.setting(triple)? {
                "name" => match value {
                    TermPattern::NamedNode(name) => settings.name = Some(name),
                    other => {
                        return Err(wrong(format_args!(
                            "weight:name takes the name of an edge weight, not {other}"
                        )));
                    }
                },
                "start" => settings.start = Some(value),
                "end" => settings.end = Some(value),
                setting @ "value" => settings.value = Some(WEIGHTS.variable(setting, value)?),
                other => {
                    return Err(wrong(format_args!(
                        "the setting weight:{other} is not known"
                    )));
                }
            }
        }
        Ok(settings)
    }
}

/// A definition as a pattern. What is no number is no weight, and what has one end is no pair.
pub(crate) fn weighed(weight: &EdgeWeight) -> GraphPattern {
    let [start, end, _] = weight.columns.each_ref();
    let is_bound = |end: &Variable| Box::new(Expression::Bound(end.clone()));
    let is_pair = Expression::And(is_bound(start), is_bound(end));
    let is_number = Expression::FunctionCall(
        Function::IsNumeric,
        vec![Expression::Variable(weight.columns[2].clone())],
    );
    GraphPattern::Filter {
        expr: Expression::And(Box::new(is_pair), Box::new(is_number)),
        inner: Box::new(weight.pattern.clone()),
    }
}

impl Normaliser<'_> {
    /// A `SERVICE` that [reads an edge weight](crate::algebra::services::reads_weights).
    pub(super) fn edge_weights(
        &mut self,
        pattern: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        WEIGHTS.check_place(place)?;
        let parts = Parts::of(pattern, WEIGHTS)?;
        if parts.path.is_some() || parts.edges.is_some() {
            return Err(wrong("there is something else than settings"));
        }
        let settings = Settings::of(&parts)?;
        let Some(name) = settings.name else {
            return Err(wrong("weight:name is missing"));
        };
        let weight = self.edge_weight(name)?;
        let (mut group, mut constants) = (Group::default(), Vec::new());
        let mut columns: Vec<Var> = Vec::with_capacity(3);
        for (setting, term) in [("start", settings.start), ("end", settings.end)] {
            columns.push(match term {
                Some(TermPattern::Variable(variable)) => self.variable(variable),
                Some(TermPattern::BlankNode(node)) => {
                    let name = format!("_:{}", node.as_str());
                    self.variable(&Variable::new_unchecked(name))
                }
                None => self.table.fresh(setting),
                Some(constant) => {
                    let var = self.table.fresh(setting);
                    let term = match constant {
                        TermPattern::NamedNode(node) => GroundTerm::from(node.clone()),
                        TermPattern::Literal(literal) => GroundTerm::from(literal.clone()),
                        other => {
                            return Err(wrong(format_args!(
                                "weight:{setting} takes a variable or a node, not {other}"
                            )));
                        }
                    };
                    constants.push((var, self.ground(&term)?));
                    var
                }
            });
        }
        columns.push(match settings.value {
            Some(variable) => self.variable(variable),
            None => self.table.fresh("weight"),
        });
        if columns[..2].contains(&columns[2]) {
            return Err(wrong("weight:value stands for two things"));
        }
        if !constants.is_empty() {
            group.push(Item::Values(Values {
                variables: constants.iter().map(|(var, _)| *var).collect(),
                rows: vec![constants.iter().map(|(_, id)| Some(*id)).collect()],
            }));
        }
        let defined = self.defined(&weight, &columns, place)?;
        Ok(group.join(defined, &self.table))
    }

    /// The definition of a name, as far as who asks sees it.
    fn edge_weight(&mut self, name: &NamedNode) -> Result<EdgeWeight> {
        if self.is_in_definition {
            return Err(wrong("its definition reads an edge weight"));
        }
        // The plan holds what is defined in this state.
        self.has_texts = true;
        match definition_in(self.context.view(), name.as_str())? {
            Some(definition) => EdgeWeight::read(name.as_str(), &definition.text),
            None => Err(QueryError::unsupported(format!(
                "there is no edge weight {name}; CREATE EDGE WEIGHT defines one"
            ))),
        }
    }

    /// The pairs and weights of a definition, bound to these variables.
    fn defined(
        &mut self,
        weight: &EdgeWeight,
        columns: &[Var],
        place: &PatternPlace,
    ) -> Result<Group> {
        if let Some(known) = self.known_weights
            && let Some(table) = known(weight, &place.scope)
            && let Ok(columns) = <[Var; 3]>::try_from(columns)
        {
            return Ok(Group::of(Item::Weights(Box::new(KnownWeights {
                name: format!("<{}>", weight.name).into(),
                table,
                columns,
            }))));
        }
        let pattern = weighed(weight);
        let names = weight.columns.iter().zip(columns);
        let names = names.map(|(name, var)| (name.as_str().to_owned(), *var));
        let outside = std::mem::replace(&mut self.names, Names(names.collect()));
        let was_root = std::mem::replace(&mut self.is_root, false);
        let inside = PatternPlace {
            outer: VarSet::default(),
            is_outermost: false,
            ..place.clone()
        };
        self.is_in_definition = true;
        let group = self.pattern(&pattern, &inside);
        self.is_in_definition = false;
        self.names = outside;
        self.is_root = was_root;
        group
    }
}
