//! The encoding of this crate's own nodes.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion_physical_plan::ExecutionPlan;
use orrery_expressions::codec::AlgebraText;
use orrery_storage::Permutation;
use serde::{Deserialize, Serialize};

use super::aggregates::{AggregationText, FunctionText};
use super::error::{CodecError, Result};
use super::inputs::{at_most_one, exactly, none, one, same_columns, with_column, wrong_inputs};
use super::searches::{AlgorithmText, SearchText};
use super::specifications::{JoinModeText, PatternText, PlacesText, ServiceText, SpreadText};
use super::texts::{
    GraphText, Names, Place, SlotText, allowed_bits, allowed_graphs, conditions, expressions,
    names, variables,
};
use crate::aggregate::{GroupExec, grouped};
use crate::algorithms::AlgorithmExec;
use crate::complement::{ComplementExec, ComplementInputs, can_be_complemented};
use crate::count::CountExec;
use crate::graph_names::GraphNamesExec;
use crate::join::{JoinSpecification, KeysExec, SolutionJoinExec};
use crate::nodes::{
    AppendExec, CandidatesExec, DistinctExec, FirstEnoughExec, LimitOfEachExec, NumberedExec,
    SharedExec,
};
use crate::path::{PathExec, PathSpecification};
use crate::pattern::PatternExec;
use crate::pattern::ordered::{FirstRows, OrderedExec};
use crate::places::PlacesJoinExec;
use crate::rows::RowsExec;
use crate::run_counts::{CountedRows, PATTERNS_MAX, RunCountsExec, RunSource};
use crate::search::{FrontierExec, SearchExec};
use crate::service::ServiceExec;
use crate::solutions::schema_variables;

type Plan = Arc<dyn ExecutionPlan>;

/// Which rows of runs count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CountedText {
    All,
    Triples,
    InGraph(u64),
    InNamedGraphs,
}

/// A node without its inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum OwnNode {
    Rows {
        variables: Names,
        rows: Vec<Vec<Option<u64>>>,
    },
    GraphNames {
        variable: String,
        allowed: Option<Vec<u64>>,
    },
    Count {
        text: String,
        count: u64,
        variable: String,
    },
    RunCounts {
        text: String,
        /// For each pattern the permutation, by its place among all, the constants that lead it,
        /// and which rows count.
        sources: Vec<(usize, Vec<u64>, CountedText)>,
        key: String,
        counts: Names,
    },
    Pattern(PatternText),
    Ordered {
        variable: String,
        is_descending: bool,
        rows: usize,
        /// The bits of the estimate.
        rows_in_all: u64,
        first_piece_rows: u64,
    },
    Path {
        subject: SlotText,
        path: AlgebraText,
        object: SlotText,
        graph: GraphText,
        is_set: bool,
        spread: Option<SpreadText>,
        output: Names,
    },
    Search(SearchText),
    Frontier(String),
    Algorithm(AlgorithmText),
    Service(ServiceText),
    SolutionJoin {
        mode: JoinModeText,
        filters: Vec<AlgebraText>,
        output: Names,
    },
    PlacesJoin {
        condition: PlacesText,
        output: Names,
    },
    Group(AggregationText),
    Complement {
        group: String,
        member: String,
        functions: Vec<FunctionText>,
    },
    Append,
    Candidates {
        column: usize,
        is_descending: bool,
        rows_asked: usize,
    },
    Distinct,
    /// The keys of a variable, and where they are published.
    Keys {
        variable: String,
        place: u32,
        keys_max: usize,
    },
    FirstEnough {
        rows: usize,
    },
    LimitOfEach {
        columns: Vec<usize>,
        offset: usize,
        limit: Option<usize>,
    },
    Numbered(String),
    Shared,
}

impl OwnNode {
    /// The description of a node, if it is one of ours. `has_shares`: rows that partitions take
    /// from a queue are to be dealt as shares.
    pub(super) fn of(plan: &dyn ExecutionPlan, has_shares: bool) -> Result<Option<Self>> {
        if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
            return Ok(Some(Self::Pattern(PatternText::of(pattern, has_shares)?)));
        }
        if let Some(join) = plan.downcast_ref::<SolutionJoinExec>() {
            return Ok(Some(of_join(join.specification())?));
        }
        if let Some(join) = plan.downcast_ref::<PlacesJoinExec>() {
            return Ok(Some(Self::PlacesJoin {
                condition: PlacesText::of(join.condition()),
                output: names(&schema_variables(&join.schema())),
            }));
        }
        if let Some(path) = plan.downcast_ref::<PathExec>() {
            return Ok(Some(of_path(path, has_shares)?));
        }
        if let Some(search) = plan.downcast_ref::<SearchExec>() {
            return Ok(Some(Self::Search(SearchText::of(search))));
        }
        if let Some(algorithm) = plan.downcast_ref::<AlgorithmExec>() {
            return Ok(Some(Self::Algorithm(AlgorithmText::of(algorithm))));
        }
        if let Some(service) = plan.downcast_ref::<ServiceExec>() {
            let text = ServiceText::of(service.specification())?;
            return Ok(Some(Self::Service(text)));
        }
        if let Some(group) = plan.downcast_ref::<GroupExec>() {
            return Ok(Some(Self::Group(AggregationText::of(group.aggregate())?)));
        }
        if let Some(complement) = plan.downcast_ref::<ComplementExec>() {
            let functions = complement.aggregates.iter();
            return Ok(Some(Self::Complement {
                group: complement.group.to_string(),
                member: complement.member.to_string(),
                functions: functions
                    .map(|function| FunctionText::of(function))
                    .collect::<Result<_>>()?,
            }));
        }
        Ok(of_leaf(plan).or_else(|| of_plain(plan)))
    }

    /// The node over its inputs.
    pub(super) fn build(&self, inputs: Vec<Plan>, place: &Place<'_>) -> Result<Plan> {
        // A group may read states, and looks at its columns itself.
        let is_group = matches!(self, Self::Group(_));
        for input in inputs.iter().filter(|_| !is_group) {
            let schema = input.schema();
            let mut fields = schema.fields().iter();
            if let Some(other) = fields.find(|field| *field.data_type() != DataType::UInt64) {
                return Err(CodecError::damaged(format!(
                    "the column {} that a node reads is none of ids",
                    other.name()
                )));
            }
        }
        let context = Arc::clone(place.context);
        let check = place.check;
        Ok(match self {
            Self::Rows { .. }
            | Self::Frontier(_)
            | Self::GraphNames { .. }
            | Self::Count { .. }
            | Self::RunCounts { .. } => {
                none(inputs)?;
                self.build_leaf(place)?
            }
            Self::Pattern(text) => text.build(at_most_one(inputs)?, place)?,
            Self::Ordered {
                variable,
                is_descending,
                rows,
                rows_in_all,
                first_piece_rows,
            } => {
                let wanted = FirstRows {
                    variable: Arc::from(variable.as_str()),
                    is_descending: *is_descending,
                    rows: *rows,
                    rows_in_all: f64::from_bits(*rows_in_all),
                };
                let input = one(inputs)?;
                Arc::new(OrderedExec::over(input, wanted, *first_piece_rows)?)
            }
            Self::Path {
                subject,
                path,
                object,
                graph,
                is_set,
                spread,
                output,
            } => {
                let specification = PathSpecification {
                    subject: subject.build(check)?,
                    path: path.to_path()?,
                    object: object.build(check)?,
                    graph: graph.build(check)?,
                    is_set: *is_set,
                    output: variables(output),
                };
                let node = PathExec::try_new(context, at_most_one(inputs)?, specification)?;
                match (spread, node.downcast_ref::<PathExec>()) {
                    (Some(spread), Some(path)) => path.spread(spread.build()?)?,
                    _ => node,
                }
            }
            Self::Search(text) => text.build(inputs, place)?,
            Self::Algorithm(text) => text.build(one(inputs)?, place)?,
            Self::Service(text) => text.build(at_most_one(inputs)?, place)?,
            Self::SolutionJoin {
                mode,
                filters,
                output,
            } => {
                let specification = JoinSpecification {
                    mode: mode.build(),
                    filters: expressions(filters)?,
                    output: variables(output),
                };
                let [left, right] = exactly(inputs)?;
                SolutionJoinExec::try_new(context, left, right, specification)?
            }
            Self::PlacesJoin { condition, output } => {
                let [left, right] = exactly(inputs)?;
                let condition = condition.build()?;
                PlacesJoinExec::try_new(context, left, right, condition, &variables(output))?
            }
            Self::Group(text) => {
                let group = grouped(text.build(one(inputs)?, &context)?);
                match group.is::<GroupExec>() {
                    true => group,
                    false => {
                        return Err(CodecError::damaged(
                            "a group by something that is no column",
                        ));
                    }
                }
            }
            Self::Complement {
                group,
                member,
                functions,
            } => {
                let [groups, members, matches] = exactly(inputs)?;
                let schema = members.schema();
                let functions = functions.iter();
                let functions: Vec<_> = functions
                    .map(|function| function.build(&schema, &context))
                    .collect::<Result<_>>()?;
                if !functions
                    .iter()
                    .all(|function| can_be_complemented(function))
                {
                    return Err(CodecError::damaged("an aggregate over a complement"));
                }
                let inputs = ComplementInputs {
                    groups,
                    members,
                    matches,
                };
                let variables = (&Arc::from(group.as_str()), &Arc::from(member.as_str()));
                ComplementExec::try_new(inputs, variables, functions)?
            }
            Self::Append => {
                same_columns(&inputs)?;
                let mut inputs = inputs.into_iter();
                let first = inputs.next().ok_or_else(wrong_inputs)?;
                Arc::new(AppendExec::new(first, inputs))
            }
            Self::Candidates {
                column,
                is_descending,
                rows_asked,
            } => {
                let input = with_column(one(inputs)?, *column)?;
                Arc::new(CandidatesExec::new(
                    input,
                    *column,
                    *is_descending,
                    *rows_asked,
                ))
            }
            Self::Keys {
                variable,
                place: number,
                keys_max,
            } => {
                let input = one(inputs)?;
                if input.schema().index_of(variable).is_err() {
                    return Err(CodecError::damaged("keys of no column"));
                }
                let found = place.found_ids(variable, *number)?;
                KeysExec::try_new(input, found, *keys_max)?
            }
            Self::Distinct => Arc::new(DistinctExec::new(one(inputs)?)),
            Self::FirstEnough { rows } => {
                let mut inputs = inputs;
                same_columns(&inputs)?;
                let last = inputs.pop().ok_or_else(wrong_inputs)?;
                Arc::new(FirstEnoughExec::new(inputs, last, *rows))
            }
            Self::LimitOfEach {
                columns,
                offset,
                limit,
            } => {
                let mut input = one(inputs)?;
                for column in columns {
                    input = with_column(input, *column)?;
                }
                Arc::new(LimitOfEachExec::new(
                    input,
                    columns.clone(),
                    *offset,
                    *limit,
                ))
            }
            Self::Numbered(name) => Arc::new(NumberedExec::new(one(inputs)?, name)),
            Self::Shared => Arc::new(SharedExec::new(one(inputs)?)),
        })
    }

    fn build_leaf(&self, place: &Place<'_>) -> Result<Plan> {
        let context = Arc::clone(place.context);
        let check = place.check;
        Ok(match self {
            Self::Rows {
                variables: columns,
                rows,
            } => {
                if rows.iter().any(|row| row.len() != columns.len()) {
                    return Err(CodecError::damaged("a row is too long or short"));
                }
                let id = |id: &Option<u64>| id.map(|bits| check.id(bits)).transpose();
                let rows = rows.iter();
                let rows = rows.map(|row| row.iter().map(id).collect::<Result<Vec<_>>>());
                let rows = rows.collect::<Result<Vec<_>>>()?;
                RowsExec::try_new(&variables(columns), &rows)?
            }
            Self::Frontier(variable) => FrontierExec::leaf(&Arc::from(variable.as_str())),
            Self::GraphNames { variable, allowed } => {
                let allowed = allowed_graphs(allowed.as_deref(), check)?;
                GraphNamesExec::try_new(context, Arc::from(variable.as_str()), allowed)?
            }
            Self::Count {
                text,
                count,
                variable,
            } => {
                let variable = Arc::from(variable.as_str());
                Arc::new(CountExec::of(text.clone(), check.id(*count)?, &variable))
            }
            Self::RunCounts {
                text,
                sources,
                key,
                counts,
            } => {
                if sources.is_empty() {
                    return Err(CodecError::damaged("counts of no pattern"));
                }
                if sources.len() > PATTERNS_MAX {
                    return Err(CodecError::damaged("too many patterns that are counted"));
                }
                let source = |(permutation, prefix, counted): &(usize, Vec<u64>, CountedText)| {
                    let permutation = Permutation::ALL.get(*permutation).copied();
                    let index = permutation.and_then(|it| context.view().index(it));
                    let index = index
                        .ok_or_else(|| CodecError::damaged("a permutation that is not there"))?;
                    let prefix = prefix.iter().map(|bits| check.id(*bits));
                    let prefix = prefix.collect::<Result<Vec<_>>>()?;
                    let is_by_graph = index.permutation() == Permutation::Gspo;
                    if prefix.len() > 3 || is_by_graph && !prefix.is_empty() {
                        return Err(CodecError::damaged("a prefix leaves no column to count"));
                    }
                    let counted = match counted {
                        CountedText::All => CountedRows::All,
                        CountedText::Triples => CountedRows::Triples,
                        CountedText::InGraph(graph) => CountedRows::InGraph(check.id(*graph)?),
                        CountedText::InNamedGraphs => CountedRows::InNamedGraphs,
                    };
                    let has_graph_last = !is_by_graph && prefix.len() < 3;
                    if counted != CountedRows::All && !has_graph_last {
                        return Err(CodecError::damaged("a graph where no column has it"));
                    }
                    Ok(RunSource {
                        index,
                        prefix,
                        counted,
                    })
                };
                let sources = sources.iter().map(source).collect::<Result<Vec<_>>>()?;
                let key = Arc::from(key.as_str());
                let names = (&key, variables(counts));
                let node =
                    RunCountsExec::over(&context, text.clone(), sources, (names.0, &names.1));
                Arc::new(node)
            }
            other => {
                return Err(CodecError::damaged(format!("{other:?} reads other nodes")));
            }
        })
    }
}

fn of_leaf(plan: &dyn ExecutionPlan) -> Option<OwnNode> {
    let column_names = || -> Names {
        let schema = plan.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    };
    if let Some(rows) = plan.downcast_ref::<RowsExec>() {
        let columns = rows.batch.columns().iter();
        let columns: Vec<_> = columns.map(|it| it.as_primitive::<UInt64Type>()).collect();
        let row = |row: usize| {
            let ids = columns.iter();
            let ids = ids.map(|ids| ids.is_valid(row).then(|| ids.value(row)));
            ids.collect()
        };
        return Some(OwnNode::Rows {
            variables: column_names(),
            rows: (0..rows.batch.num_rows()).map(row).collect(),
        });
    }
    if plan.is::<FrontierExec>() {
        return Some(OwnNode::Frontier(column_names().concat()));
    }
    if let Some(graphs) = plan.downcast_ref::<GraphNamesExec>() {
        return Some(OwnNode::GraphNames {
            variable: graphs.variable.to_string(),
            allowed: allowed_bits(graphs.allowed.as_deref()),
        });
    }
    if let Some(count) = plan.downcast_ref::<CountExec>() {
        return Some(OwnNode::Count {
            text: count.text.clone(),
            count: count.count.bits(),
            variable: column_names().concat(),
        });
    }
    let runs = plan.downcast_ref::<RunCountsExec>()?;
    let mut columns = column_names();
    let counts = columns.split_off(1);
    let source = |source: &RunSource| {
        let mut all = Permutation::ALL.iter();
        let permutation = all.position(|it| *it == source.index.permutation())?;
        let prefix = source.prefix.iter().map(|id| id.bits());
        let counted = match source.counted {
            CountedRows::All => CountedText::All,
            CountedRows::Triples => CountedText::Triples,
            CountedRows::InGraph(graph) => CountedText::InGraph(graph.bits()),
            CountedRows::InNamedGraphs => CountedText::InNamedGraphs,
        };
        Some((permutation, prefix.collect(), counted))
    };
    let sources = runs
        .sources
        .iter()
        .map(source)
        .collect::<Option<Vec<_>>>()?;
    Some(OwnNode::RunCounts {
        text: runs.text.clone(),
        sources,
        key: columns.concat(),
        counts,
    })
}

/// Nodes that hold nothing but some figures.
fn of_plain(plan: &dyn ExecutionPlan) -> Option<OwnNode> {
    if let Some(ordered) = plan.downcast_ref::<OrderedExec>() {
        let (wanted, first_piece_rows) = ordered.wanted();
        return Some(OwnNode::Ordered {
            variable: wanted.variable.to_string(),
            is_descending: wanted.is_descending,
            rows: wanted.rows,
            rows_in_all: wanted.rows_in_all.to_bits(),
            first_piece_rows,
        });
    }
    if let Some(candidates) = plan.downcast_ref::<CandidatesExec>() {
        return Some(OwnNode::Candidates {
            column: candidates.column,
            is_descending: candidates.is_descending,
            rows_asked: candidates.rows_asked,
        });
    }
    if let Some(keys) = plan.downcast_ref::<KeysExec>() {
        return Some(OwnNode::Keys {
            variable: keys.found().variable().to_string(),
            place: keys.found().number(),
            keys_max: keys.keys_max(),
        });
    }
    if let Some(ways) = plan.downcast_ref::<FirstEnoughExec>() {
        return Some(OwnNode::FirstEnough { rows: ways.rows });
    }
    if let Some(limit) = plan.downcast_ref::<LimitOfEachExec>() {
        return Some(OwnNode::LimitOfEach {
            columns: limit.columns.clone(),
            offset: limit.offset,
            limit: limit.limit,
        });
    }
    if plan.is::<NumberedExec>() {
        let schema = plan.schema();
        let name = schema.fields().last()?.name();
        return Some(OwnNode::Numbered(name.clone()));
    }
    if plan.is::<AppendExec>() {
        return Some(OwnNode::Append);
    }
    if plan.is::<DistinctExec>() {
        return Some(OwnNode::Distinct);
    }
    plan.is::<SharedExec>().then_some(OwnNode::Shared)
}

fn of_path(path: &PathExec, has_shares: bool) -> Result<OwnNode> {
    let specification = path.specification();
    let spread = path.spread_over();
    Ok(OwnNode::Path {
        subject: (&specification.subject).into(),
        path: AlgebraText::of_path(&specification.path)?,
        object: (&specification.object).into(),
        graph: (&specification.graph).into(),
        is_set: specification.is_set,
        spread: spread.map(|spread| SpreadText::of(spread, has_shares)),
        output: names(&specification.output),
    })
}

fn of_join(specification: &JoinSpecification) -> Result<OwnNode> {
    Ok(OwnNode::SolutionJoin {
        mode: JoinModeText::of(&specification.mode),
        filters: conditions(&specification.filters)?,
        output: names(&specification.output),
    })
}
