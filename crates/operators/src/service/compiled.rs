//! A compiled `SERVICE`: the columns that are sent, and those that come back.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use spargebra::term::Variable;

use super::endpoints::ServiceOptions;
use super::specification::{Endpoint, ServiceSpecification};
use crate::context::QueryContext;
use crate::error::Error;
use crate::solutions::solution_schema;

/// A variable that both the input and the pattern have.
#[derive(Clone, Debug)]
pub(super) struct SharedColumn {
    /// Its column in the input.
    pub(super) input: usize,
    /// Its place among the variables of the answer.
    pub(super) answer: usize,
    /// Its name in the pattern.
    pub(super) name: Variable,
}

/// Where an output variable comes from: the input, or where that leaves it unbound, the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputColumn {
    pub(super) input: Option<usize>,
    pub(super) answer: Option<usize>,
}

/// A compiled specification.
#[derive(Debug)]
pub(super) struct CompiledService {
    pub(super) context: Arc<QueryContext>,
    pub(super) options: ServiceOptions,
    pub(super) specification: ServiceSpecification,
    pub(super) schema: SchemaRef,
    pub(super) shared: Vec<SharedColumn>,
    /// The column of the endpoint's variable.
    pub(super) endpoint_column: Option<usize>,
    pub(super) output: Vec<OutputColumn>,
}

impl CompiledService {
    pub(super) fn new(
        context: Arc<QueryContext>,
        options: ServiceOptions,
        input: &[Arc<str>],
        specification: ServiceSpecification,
    ) -> Result<Self, Error> {
        let place = |name: &Arc<str>| input.iter().position(|column| column == name);
        let endpoint_column = match &specification.endpoint {
            Endpoint::Iri(_) => None,
            Endpoint::Variable(name) => Some(place(name).ok_or_else(|| {
                Error::Unsupported(format!("SERVICE ?{name}: nothing before it binds ?{name}"))
            })?),
        };
        let variables = specification.variables.iter().enumerate();
        let shared = variables
            .filter_map(|(answer, variable)| {
                Some(SharedColumn {
                    input: place(&variable.column)?,
                    answer,
                    name: variable.name.clone(),
                })
            })
            .collect();
        let output = specification.output.iter().map(|name| {
            let mut variables = specification.variables.iter();
            OutputColumn {
                input: place(name),
                answer: variables.position(|variable| variable.column == *name),
            }
        });
        Ok(Self {
            output: output.collect(),
            schema: solution_schema(&specification.output),
            shared,
            endpoint_column,
            context,
            options,
            specification,
        })
    }

    /// The columns of the input that make one request differ from another.
    pub(super) fn key_columns(&self) -> Vec<usize> {
        let shared = self.shared.iter().map(|shared| shared.input);
        let sent = shared.filter(|_| self.specification.sends_keys);
        sent.chain(self.endpoint_column).collect()
    }
}
