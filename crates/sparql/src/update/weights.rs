//! `CREATE EDGE WEIGHT` and `DROP EDGE WEIGHT`, stored as quads.

use orrery_storage::Transaction;
use orrery_syntax::WeightStatement;
use orrery_term::Term;

use super::UpdateOptions;
use crate::edge_weights::definition::{DEFINITION, DEFINITIONS, EdgeWeight, definition_in};
use crate::error::QueryError;

/// The statement, if its definition can be kept.
pub(super) fn checked(statement: WeightStatement) -> Result<WeightStatement, QueryError> {
    if let WeightStatement::Create {
        name, definition, ..
    } = &statement
    {
        EdgeWeight::read(name.as_str(), definition)?;
    }
    Ok(statement)
}

/// Brings a statement into the transaction.
pub(super) fn apply(
    statement: &WeightStatement,
    options: &UpdateOptions,
    transaction: &mut Transaction,
) -> Result<(), QueryError> {
    let (name, new) = match statement {
        WeightStatement::Create {
            name, definition, ..
        } => (name, Some(definition)),
        WeightStatement::Drop { name, .. } => (name, None),
    };
    let view = options.query.view_of(transaction.snapshot()?)?;
    let known = definition_in(&view, name.as_str())?;
    let [subject, predicate, graph] = [name.as_str(), DEFINITION, DEFINITIONS]
        .map(|iri| transaction.intern(&Term::iri(iri.to_owned())));
    let (subject, predicate, graph) = (subject?, predicate?, graph?);
    match (statement, &known) {
        (
            WeightStatement::Create {
                replaces: false,
                is_silent,
                ..
            },
            Some(_),
        ) => {
            return match is_silent {
                true => Ok(()),
                false => Err(QueryError::update_failed(format!(
                    "there is an edge weight {name} already; CREATE SILENT lets it be, CREATE OR REPLACE defines it anew"
                ))),
            };
        }
        (WeightStatement::Drop { is_silent, .. }, None) => {
            return match is_silent {
                true => Ok(()),
                false => Err(QueryError::update_failed(format!(
                    "there is no edge weight {name}; DROP SILENT does not mind"
                ))),
            };
        }
        _ => {}
    }
    // There may be several where somebody put them there by hand.
    let mut rest = known;
    while let Some(definition) = rest {
        transaction.delete(&mut vec![[subject, predicate, definition.id, graph]])?;
        let view = options.query.view_of(transaction.snapshot()?)?;
        rest = definition_in(&view, name.as_str())?;
    }
    if let Some(definition) = new {
        let definition = transaction.intern(&Term::string(definition.clone()))?;
        transaction.insert(&mut vec![[subject, predicate, definition, graph]])?;
    }
    Ok(())
}
