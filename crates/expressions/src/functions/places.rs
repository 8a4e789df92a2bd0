//! GeoSPARQL's functions: conversion of literals to geometries, and of results to values.
//!
//! A shape is read once for each value of a column and not for each row, which pays where rows are
//! pairs of few values.

use orrery_geo::{Answer, Argument, Function, Notation, Parameter, Shape, from_text};
use orrery_term::vocabulary::xsd;

use crate::columns::column::{Operand, ReadOperand, Values};
use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::exact;
use crate::values::value::Value;

/// An argument as it was read.
enum Given {
    Shape(Box<Shape>),
    Number(f64),
    Text(Box<str>),
}

/// How many arguments a function takes, in words.
pub(super) fn arity(function: &Function) -> &'static str {
    match function.parameters.len() {
        1 => "1",
        2 => "2",
        3 => "3",
        _ => "4",
    }
}

/// The results of a function by row, with an operand for each of its parameters.
pub(crate) fn call(
    function: &Function,
    operands: &[Operand],
    rows: usize,
    context: &ExpressionContext,
) -> Result<Values> {
    let read = operands.iter().zip(function.parameters);
    let read: Vec<ReadOperand<'_, Given>> = read
        .map(|(operand, parameter)| operand.read(|value| given(value, *parameter)))
        .collect();
    let mut arguments = Vec::with_capacity(read.len());
    let mut call = |row| {
        arguments.clear();
        for operand in &read {
            arguments.push(match operand.get(row)? {
                Given::Shape(shape) => Argument::Shape(shape),
                Given::Number(number) => Argument::Number(*number),
                Given::Text(text) => Argument::Text(text),
            });
        }
        function.call(&arguments).map(value_of)
    };
    let mut counted = context.count_rows(rows);
    let mut results = Vec::with_capacity(rows);
    for row in 0..rows {
        let given = operands.iter().filter_map(|operand| operand.get(row));
        counted.begin(given.map(Value::heap_bytes).sum())?;
        let result = call(row);
        if let Some(result) = &result {
            counted.add(result)?;
        }
        results.push(result);
    }
    Ok(Values::counted(results, counted))
}

fn given(value: &Value, parameter: Parameter) -> Option<Given> {
    Some(match (parameter, value) {
        (Parameter::Shape, Value::Other { lexical, datatype }) => {
            let shape = from_text(lexical, Notation::of_datatype(datatype)?)?;
            Given::Shape(Box::new(shape))
        }
        (Parameter::Number, number) => Given::Number(exact::to_double(number)?),
        (Parameter::Iri | Parameter::Name, Value::Iri(iri)) => Given::Text(iri.clone()),
        (Parameter::Iri | Parameter::Name, Value::Other { lexical, datatype })
            if **datatype == *xsd::ANY_URI =>
        {
            Given::Text(lexical.clone())
        }
        (Parameter::Text | Parameter::Name, Value::String(text)) => Given::Text(text.clone()),
        _ => return None,
    })
}

fn value_of(answer: Answer) -> Value {
    let other = |lexical: String, datatype: &str| Value::Other {
        lexical: lexical.into(),
        datatype: datatype.into(),
    };
    match answer {
        Answer::Boolean(is) => Value::Boolean(is),
        Answer::Integer(number) => Value::integer(number),
        Answer::Number(number) => Value::Double(number.into()),
        Answer::Iri(iri) => other(iri, xsd::ANY_URI),
        Answer::Literal(text, notation) => other(text, notation.datatype()),
    }
}
