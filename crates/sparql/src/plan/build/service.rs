//! Plans of `SERVICE`, alone or per row of the input.

use orrery_operators::service::{Endpoint, ServiceExec, ServiceSpecification, ServiceVariable};
use std::sync::Arc;

use crate::algebra::{Service, ServiceEndpoint, Var, VarSet};
use crate::error::QueryError;
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

impl Planner<'_> {
    /// `Join(current, Service)`.
    pub(in crate::plan) fn service(
        &mut self,
        current: Option<Relation>,
        service: &Service,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        if self.service.is_none() {
            return self.unasked(current, service);
        }
        let Some(left) = current else {
            return self.asked(None, service, later, rows);
        };
        let shared = left.variables().intersection(&service.visible());
        let is_by_key = service.is_repeatable && !shared.is_empty();
        if is_by_key || service.endpoint_variable().is_some() {
            return self.asked(Some(left), service, later, rows);
        }
        let right = self.asked(None, service, &later.union(&shared), service.rows)?;
        self.join(left, right, later, Some(rows))
    }

    /// Nobody is asked: an error, or the one solution of a failure that is forgiven.
    fn unasked(&mut self, current: Option<Relation>, service: &Service) -> Result<Relation> {
        if service.is_silent {
            return match current {
                Some(relation) => Ok(relation),
                None => self.unit(),
            };
        }
        let endpoint = match &service.endpoint {
            ServiceEndpoint::Iri(iri) => format!("<{iri}>"),
            ServiceEndpoint::Variable(var) => format!("?{}", self.table.name(*var)),
        };
        Err(QueryError::unsupported(format!(
            "SERVICE {endpoint}: no other endpoint is asked unless it is allowed with --service-allow"
        )))
    }

    fn asked(
        &mut self,
        input: Option<Relation>,
        service: &Service,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let Some(options) = self.service.clone() else {
            return self.unasked(input, service);
        };
        let of_input = input.as_ref().map(Relation::variables).unwrap_or_default();
        let mut variables = Vec::new();
        for (name, var, is_certain) in &service.variables {
            if later.contains(*var) || of_input.contains(*var) {
                variables.push(ServiceVariable {
                    name: name.clone(),
                    column: Arc::clone(self.table.name(*var)),
                    is_certain: *is_certain,
                });
            }
        }
        let bound = of_input.union(&service.visible());
        let columns: Vec<Var> = bound.intersection(later).iter().collect();
        let mut certain = input
            .as_ref()
            .map(|i| i.certain.clone())
            .unwrap_or_default();
        certain.extend(&service.certain());
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let specification = ServiceSpecification {
            endpoint: match &service.endpoint {
                ServiceEndpoint::Iri(iri) => Endpoint::Iri(Arc::clone(iri)),
                ServiceEndpoint::Variable(var) => {
                    Endpoint::Variable(Arc::clone(self.table.name(*var)))
                }
            },
            pattern: service.pattern.as_ref().clone(),
            is_silent: service.is_silent,
            sends_keys: service.is_repeatable,
            variables,
            output: self.names(&columns),
        };
        let input = input.map(|input| input.plan);
        let plan = ServiceExec::try_new(Arc::clone(&self.context), options, input, specification)?;
        self.relation(plan, columns, certain, rows)
    }
}
