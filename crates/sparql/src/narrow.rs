//! The narrowing of a query to the variables and rows that its caller needs.
//!
//! A query that stands in another plan, such as a table of SQL, is asked for less than its text
//! says. That goes into the algebra before it is planned, so that it is planned as if the text had
//! said so: conditions beside the query's own filters, where its patterns are matched; fewer
//! variables, so that what is not needed is not decoded.

use oxrdf::{Literal, NamedNode, Variable};
use spargebra::Query;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{TermPattern, TriplePattern};

/// A function of a name that begins so is a cast to the datatype of that name.
const XML_SCHEMA: &str = "http://www.w3.org/2001/XMLSchema#";

/// Less than all solutions of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// The variables that are needed, of those that the query selects; all without a list.
    pub variables: Option<Vec<String>>,
    /// All must hold; they name selected variables.
    pub conditions: Vec<VariableCondition>,
    /// Solutions that are enough.
    pub limit: Option<usize>,
}

/// A condition on a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableCondition {
    /// Without `?`.
    pub variable: String,
    /// What must hold.
    pub test: VariableTest,
}

/// The kinds of conditions on a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableTest {
    /// It is one of these IRIs.
    IriIn(Vec<String>),
    /// `STR` of it is one of these texts.
    TextIn(Vec<String>),
    /// It compares so with a number, given as an `xsd:decimal`.
    Number(NumberComparison, String),
    /// It is bound.
    Bound,
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberComparison {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// Not `<`: `>=`, and NaN.
    NotLess,
}

impl Narrowing {
    /// Whether it leaves the query as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The query with less in it. What is no SELECT stays as it is.
    pub(crate) fn applied(&self, query: Query) -> Query {
        let Query::Select {
            dataset,
            pattern,
            base_iri,
        } = query
        else {
            return query;
        };
        Query::Select {
            dataset,
            pattern: self.applied_to(pattern),
            base_iri,
        }
    }

    fn applied_to(&self, pattern: GraphPattern) -> GraphPattern {
        let (mut pattern, selected) = match pattern {
            GraphPattern::Project { inner, variables } if is_plain(&inner) => (*inner, variables),
            // As a subquery: its groups, its order and its limits are made first.
            whole => {
                let selected = selected(&whole);
                (whole, selected)
            }
        };
        let conditions = self
            .conditions
            .iter()
            .filter_map(VariableCondition::expression);
        for expr in conditions {
            pattern = GraphPattern::Filter {
                expr,
                inner: Box::new(pattern),
            };
        }
        let variables = match &self.variables {
            None => selected,
            Some(wanted) => {
                let wanted = wanted
                    .iter()
                    .map(|name| Variable::new_unchecked(name.as_str()));
                wanted.collect()
            }
        };
        pattern = GraphPattern::Project {
            inner: Box::new(pattern),
            variables,
        };
        match self.limit {
            None => pattern,
            Some(limit) => GraphPattern::Slice {
                inner: Box::new(pattern),
                start: 0,
                length: Some(limit),
            },
        }
    }
}

impl VariableCondition {
    fn expression(&self) -> Option<Expression> {
        let variable = Variable::new_unchecked(self.variable.as_str());
        let operand = || Box::new(Expression::Variable(variable.clone()));
        let one_of = |operand: Box<Expression>, mut values: Vec<Expression>| match values.len() {
            1 => Some(Expression::Equal(operand, Box::new(values.pop()?))),
            _ => Some(Expression::In(operand, values)),
        };
        match &self.test {
            VariableTest::Bound => Some(Expression::Bound(variable)),
            VariableTest::IriIn(iris) => {
                let iris = iris
                    .iter()
                    .map(|iri| NamedNode::new_unchecked(iri.as_str()).into());
                one_of(operand(), iris.collect())
            }
            VariableTest::TextIn(texts) => {
                let text = Expression::FunctionCall(Function::Str, vec![*operand()]);
                let texts = texts
                    .iter()
                    .map(|text| Literal::new_simple_literal(text.as_str()).into());
                one_of(Box::new(text), texts.collect())
            }
            VariableTest::Number(comparison, number) => {
                let decimal = oxrdf::vocab::xsd::DECIMAL;
                let number = Literal::new_typed_literal(number.as_str(), decimal);
                let (one, other) = (operand(), Box::new(number.into()));
                Some(match comparison {
                    NumberComparison::Equal => Expression::Equal(one, other),
                    NumberComparison::Less => Expression::Less(one, other),
                    NumberComparison::LessOrEqual => Expression::LessOrEqual(one, other),
                    NumberComparison::Greater => Expression::Greater(one, other),
                    NumberComparison::GreaterOrEqual => Expression::GreaterOrEqual(one, other),
                    NumberComparison::NotLess => {
                        Expression::Not(Box::new(Expression::Less(one, other)))
                    }
                })
            }
        }
    }
}

/// Whether filters and projections of a pattern may stand beside its own.
fn is_plain(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Join { .. }
        | GraphPattern::Lateral { .. }
        | GraphPattern::LeftJoin { .. }
        | GraphPattern::Union { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Minus { .. }
        | GraphPattern::Values { .. } => true,
        GraphPattern::Filter { inner, .. } | GraphPattern::Extend { inner, .. } => is_plain(inner),
        _ => false,
    }
}

/// What a whole query selects.
fn selected(pattern: &GraphPattern) -> Vec<Variable> {
    match pattern {
        GraphPattern::Project { variables, .. } => variables.clone(),
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Slice { inner, .. } => selected(inner),
        _ => Vec::new(),
    }
}

/// The properties of a selected variable, from the text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedVariable {
    /// Without `?`.
    pub name: String,
    /// The datatype of all its values, where a cast or an aggregate says it.
    pub datatype: Option<String>,
    /// Whether it is an IRI or a blank node wherever it is bound: the subject, the predicate or the
    /// graph of a pattern that is always matched.
    pub is_resource: bool,
}

/// The variables that a query selects, in their order; none for other forms.
pub(crate) fn selected_variables(query: &Query) -> Option<Vec<SelectedVariable>> {
    let Query::Select { pattern, .. } = query else {
        return None;
    };
    let variables = selected(pattern).into_iter();
    Some(
        variables
            .map(|variable| SelectedVariable {
                datatype: datatype(pattern, &variable).map(str::to_owned),
                is_resource: is_resource(pattern, &variable),
                name: variable.into_string(),
            })
            .collect(),
    )
}

/// The datatype that the text gives to a variable.
fn datatype<'p>(pattern: &'p GraphPattern, of: &Variable) -> Option<&'p str> {
    match pattern {
        GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Filter { inner, .. } => datatype(inner, of),
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => match variable == of {
            true => datatype_of(expression, inner),
            false => datatype(inner, of),
        },
        GraphPattern::Group { aggregates, .. } => {
            let (_, aggregate) = aggregates.iter().find(|(variable, _)| variable == of)?;
            counts(aggregate).then(|| oxrdf::vocab::xsd::INTEGER.as_str())
        }
        _ => None,
    }
}

fn datatype_of<'p>(expression: &'p Expression, inner: &'p GraphPattern) -> Option<&'p str> {
    use oxrdf::vocab::xsd;
    match expression {
        // What an aggregate is called within.
        Expression::Variable(variable) => datatype(inner, variable),
        Expression::Literal(literal) => Some(literal.datatype().as_str()),
        Expression::FunctionCall(Function::Custom(name), _) => {
            let is_cast = name.as_str().starts_with(XML_SCHEMA);
            is_cast.then_some(name.as_str())
        }
        Expression::FunctionCall(
            Function::StrLen | Function::Year | Function::Month | Function::Day,
            _,
        ) => Some(xsd::INTEGER.as_str()),
        Expression::Or(..)
        | Expression::And(..)
        | Expression::Not(_)
        | Expression::Equal(..)
        | Expression::Less(..)
        | Expression::LessOrEqual(..)
        | Expression::Greater(..)
        | Expression::GreaterOrEqual(..)
        | Expression::In(..)
        | Expression::Bound(_)
        | Expression::Exists(_) => Some(xsd::BOOLEAN.as_str()),
        _ => None,
    }
}

fn counts(aggregate: &spargebra::algebra::AggregateExpression) -> bool {
    use spargebra::algebra::{AggregateExpression, AggregateFunction};
    match aggregate {
        AggregateExpression::CountSolutions { .. } => true,
        AggregateExpression::FunctionCall { name, .. } => *name == AggregateFunction::Count,
    }
}

/// Whether a variable stands where no literal can, in a pattern that each solution matches.
fn is_resource(pattern: &GraphPattern, of: &Variable) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.iter().any(|pattern| stands_first(pattern, of)),
        GraphPattern::Join { left, right } | GraphPattern::Lateral { left, right } => {
            is_resource(left, of) || is_resource(right, of)
        }
        GraphPattern::Union { left, right } => is_resource(left, of) && is_resource(right, of),
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => {
            is_resource(left, of)
        }
        GraphPattern::Graph { name, inner } => {
            matches!(name, spargebra::term::NamedNodePattern::Variable(variable) if variable == of)
                || is_resource(inner, of)
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Extend { inner, .. } => is_resource(inner, of),
        GraphPattern::Project { inner, variables } => {
            variables.contains(of) && is_resource(inner, of)
        }
        GraphPattern::Group {
            inner, variables, ..
        } => variables.contains(of) && is_resource(inner, of),
        _ => false,
    }
}

fn stands_first(pattern: &TriplePattern, of: &Variable) -> bool {
    use spargebra::term::NamedNodePattern;
    matches!(&pattern.subject, TermPattern::Variable(variable) if variable == of)
        || matches!(&pattern.predicate, NamedNodePattern::Variable(variable) if variable == of)
}
