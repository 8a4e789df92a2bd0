//! Helpers for syntax trees: names, calls, the SELECTs of a query.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, OrderBy, Query, Select, SetExpr, Value,
};

/// The parts of a name, folded to lower case unless they are quoted.
pub(crate) fn parts(name: &ObjectName) -> Vec<String> {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    parts.map(folded).collect()
}

/// A name in lower case unless it is quoted.
pub(crate) fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// A call of a function.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// An expression that is moved to another place.
pub(crate) fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

/// Visits each `SELECT` of a query, also those of its set operations, and not those of subqueries.
/// One that is the whole query comes with its order.
pub(crate) fn each_select<B>(
    query: &mut Query,
    mut visit: impl FnMut(&mut Select, Option<&mut OrderBy>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let is_one = matches!(*query.body, SetExpr::Select(_));
    let mut order = query.order_by.as_mut().filter(|_| is_one);
    let mut rest = vec![&mut *query.body];
    while let Some(set) = rest.pop() {
        match set {
            SetExpr::Select(select) => visit(select, order.take())?,
            SetExpr::SetOperation { left, right, .. } => {
                rest.push(left.as_mut());
                rest.push(right.as_mut());
            }
            _ => {}
        }
    }
    ControlFlow::Continue(())
}
