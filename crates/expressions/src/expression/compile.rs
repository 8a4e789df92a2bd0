//! The compiler from spargebra's expressions to evaluation trees.
//!
//! Besides translating, compilation resolves variables to columns and functions by name, evaluates
//! what is constant, compiles constant patterns, and puts [`Node::PerDistinct`] above the largest
//! parts that read one variable and cost more than a look at its ids.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::Schema;
use orrery_term::vocabulary::xsd;
use orrery_term::{Term, TermId};
use spargebra::algebra::{Expression, Function};

use crate::columns::calendar::CalendarPart;
use crate::columns::column::Constant;
use crate::columns::lexical_numbers::{NumberType, TextForm};
use crate::columns::membership::{CONSTANTS_MIN, Members};
use crate::columns::triple::TriplePart;
use crate::context::ExpressionContext;
use crate::error::{Error, Result};
use crate::expression::node::{Input, Node, NodeKind, RowNumbers};
use crate::functions::{self, Implementation, TextTest};
use crate::values::compare::Comparison;
use crate::values::of_terms::term_of_literal;
use crate::values::operator::Arithmetic;
use crate::values::value::Value;

/// Expressions nested deeper are refused, for each level is a level of recursion.
const DEPTH_MAX: usize = 500;
/// Operations in a row from which on they are computed one after the other.
const CHAIN_MIN: usize = 16;

/// What is compared with something else, where that is `LANG(...)`: a constant in lower case, as
/// tags are. So `LANG(?l) = "en-GB"` finds what it says, however the data write it.
fn tag_beside<'e>(part: &'e Expression, other: &Expression) -> Cow<'e, Expression> {
    match part {
        Expression::Literal(tag)
            if is_language(other) && tag.value().bytes().any(|byte| byte.is_ascii_uppercase()) =>
        {
            match tag.datatype() == oxrdf::vocab::xsd::STRING {
                true => Cow::Owned(Expression::Literal(oxrdf::Literal::new_simple_literal(
                    tag.value().to_ascii_lowercase(),
                ))),
                false => Cow::Borrowed(part),
            }
        }
        _ => Cow::Borrowed(part),
    }
}

fn is_language(expression: &Expression) -> bool {
    matches!(expression, Expression::FunctionCall(Function::Lang, _))
}

/// What compilation gives.
pub(crate) struct Compiled {
    pub(crate) root: Node,
    /// The columns of the input that the tree reads, in the order of its places.
    pub(crate) columns: Vec<usize>,
    /// Whether the same input may give other results the next time.
    pub(crate) is_volatile: bool,
}

/// Compiles an expression over the columns of a schema.
pub(crate) fn compile(
    expression: &Expression,
    schema: &Schema,
    context: &ExpressionContext,
) -> Result<Compiled> {
    let mut compiler = Compiler {
        schema,
        context,
        columns: Vec::new(),
        depth: 0,
    };
    let part = compiler.compile(expression)?;
    let is_volatile = part.is_volatile;
    Ok(Compiled {
        root: part.sealed(),
        columns: compiler.columns,
        is_volatile,
    })
}

struct Compiler<'a> {
    schema: &'a Schema,
    context: &'a ExpressionContext,
    columns: Vec<usize>,
    depth: usize,
}

/// Which variables a part reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    One(usize),
    Several,
}

impl Reads {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, reads) | (reads, Self::Nothing) => reads,
            (Self::One(a), Self::One(b)) if a == b => self,
            _ => Self::Several,
        }
    }
}

/// A compiled part, not yet wrapped.
struct CompiledPart {
    node: Node,
    reads: Reads,
    /// Whether it reads texts, so that doing it once per distinct term pays.
    is_costly: bool,
    is_volatile: bool,
}

impl CompiledPart {
    fn leaf(node: Node, reads: Reads) -> Self {
        Self {
            node,
            reads,
            is_costly: false,
            is_volatile: false,
        }
    }

    /// The node, evaluated per distinct id if that pays.
    fn sealed(self) -> Node {
        match self.reads {
            Reads::One(place) if self.is_costly && !self.is_volatile => {
                Node::PerDistinct(place, Box::new(self.node))
            }
            _ => self.node,
        }
    }
}

impl Compiler<'_> {
    fn compile(&mut self, expression: &Expression) -> Result<CompiledPart> {
        if self.depth == DEPTH_MAX {
            return Err(Error::Unsupported(format!(
                "an expression nested deeper than {DEPTH_MAX} levels"
            )));
        }
        self.depth += 1;
        let part = self.compile_node(expression);
        self.depth -= 1;
        part
    }

    fn compile_node(&mut self, expression: &Expression) -> Result<CompiledPart> {
        match expression {
            Expression::NamedNode(iri) => self.constant(&Term::iri(iri.as_str())),
            Expression::Literal(literal) => self.constant(&term_of_literal(literal)),
            Expression::Variable(variable) => Ok(match self.place(variable.as_str()) {
                Some(place) => CompiledPart::leaf(Node::Variable(place), Reads::One(place)),
                None => CompiledPart::leaf(Node::Error, Reads::Nothing),
            }),
            Expression::Bound(variable) => match self.place(variable.as_str()) {
                Some(place) => Ok(CompiledPart::leaf(Node::Bound(place), Reads::One(place))),
                None => self.constant_value(Value::Boolean(false)),
            },
            Expression::Or(_, _) => {
                let mut parts = Vec::new();
                flatten(expression, &mut parts, &|expression| match expression {
                    Expression::Or(left, right) => Some((left, right)),
                    _ => None,
                });
                self.combine(&parts, false, Node::Or)
            }
            Expression::And(_, _) => {
                let mut parts = Vec::new();
                flatten(expression, &mut parts, &|expression| match expression {
                    Expression::And(left, right) => Some((left, right)),
                    _ => None,
                });
                self.combine(&parts, false, Node::And)
            }
            Expression::Not(part) => self.unary(part, Node::Not),
            Expression::Equal(left, right) if is_language(left) || is_language(right) => {
                self.tags(left, right, Node::Equal)
            }
            Expression::SameTerm(left, right) if is_language(left) || is_language(right) => {
                self.tags(left, right, Node::SameTerm)
            }
            Expression::Equal(left, right) => self.binary(left, right, Node::Equal),
            Expression::SameTerm(left, right) => self.binary(left, right, Node::SameTerm),
            Expression::Greater(left, right) => self.compare(Comparison::Greater, left, right),
            Expression::GreaterOrEqual(left, right) => {
                self.compare(Comparison::GreaterOrEqual, left, right)
            }
            Expression::Less(left, right) => self.compare(Comparison::Less, left, right),
            Expression::LessOrEqual(left, right) => {
                self.compare(Comparison::LessOrEqual, left, right)
            }
            Expression::In(needle, list) if is_language(needle) => self.tag_among(needle, list),
            Expression::In(needle, list) => self.membership(needle, list),
            Expression::Add(..)
            | Expression::Subtract(..)
            | Expression::Multiply(..)
            | Expression::Divide(..) => self.arithmetic(expression),
            Expression::UnaryPlus(part) => self.unary(part, Node::Plus),
            Expression::UnaryMinus(part) => self.unary(part, Node::Negate),
            Expression::If(condition, then, otherwise) => {
                self.combine(&[condition, then, otherwise], false, |nodes| {
                    match <[Node; 3]>::try_from(nodes) {
                        Ok([condition, then, otherwise]) => {
                            Node::If(Box::new(condition), Box::new(then), Box::new(otherwise))
                        }
                        Err(_) => Node::Error,
                    }
                })
            }
            Expression::Coalesce(parts) => {
                let parts: Vec<&Expression> = parts.iter().collect();
                self.combine(&parts, false, Node::Coalesce)
            }
            Expression::FunctionCall(function, arguments) => self.call(function, arguments),
            Expression::Exists(_) => Err(Error::Unsupported(
                "EXISTS inside an expression that the planner has not taken apart".to_owned(),
            )),
        }
    }

    /// The place of a variable in the input, if the schema has it.
    fn place(&mut self, variable: &str) -> Option<usize> {
        let column = self.schema.index_of(variable).ok()?;
        let place = self.columns.iter().position(|&known| known == column);
        Some(place.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        }))
    }

    fn constant(&self, term: &Term<'_>) -> Result<CompiledPart> {
        let constant = Constant {
            id: self.context.intern(term)?,
            value: Value::from_term(term),
            written: Value::written(term),
        };
        Ok(CompiledPart::leaf(
            Node::Constant(Arc::new(constant)),
            Reads::Nothing,
        ))
    }

    fn constant_value(&self, value: Value) -> Result<CompiledPart> {
        self.constant(&value.to_term())
    }

    fn unary(
        &mut self,
        part: &Expression,
        make: impl FnOnce(Box<Node>) -> Node,
    ) -> Result<CompiledPart> {
        self.combine(&[part], false, |mut nodes| match nodes.pop() {
            Some(node) => make(Box::new(node)),
            None => Node::Error,
        })
    }

    fn binary(
        &mut self,
        left: &Expression,
        right: &Expression,
        make: impl FnOnce(Box<Node>, Box<Node>) -> Node,
    ) -> Result<CompiledPart> {
        self.combine(&[left, right], false, |mut nodes| {
            match (nodes.pop(), nodes.pop()) {
                (Some(right), Some(left)) => make(Box::new(left), Box::new(right)),
                _ => Node::Error,
            }
        })
    }

    /// A comparison of which one side is `LANG(...)`.
    #[inline(never)]
    fn tags(
        &mut self,
        left: &Expression,
        right: &Expression,
        make: fn(Box<Node>, Box<Node>) -> Node,
    ) -> Result<CompiledPart> {
        let (left, right) = (tag_beside(left, right), tag_beside(right, left));
        self.binary(&left, &right, make)
    }

    #[inline(never)]
    fn tag_among(&mut self, needle: &Expression, list: &[Expression]) -> Result<CompiledPart> {
        let tags = list.iter().map(|tag| tag_beside(tag, needle).into_owned());
        self.membership(needle, &tags.collect::<Vec<_>>())
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
    ) -> Result<CompiledPart> {
        self.binary(left, right, |left, right| {
            Node::Compare(comparison, left, right)
        })
    }

    // Apart, so that a level of recursion stays small; so is what follows.
    #[inline(never)]
    fn membership(&mut self, needle: &Expression, list: &[Expression]) -> Result<CompiledPart> {
        let all: Vec<&Expression> = std::iter::once(needle).chain(list).collect();
        self.combine(&all, false, |mut nodes| {
            let needle = nodes.remove(0);
            in_list(needle, nodes)
        })
    }

    #[inline(never)]
    fn arithmetic(&mut self, expression: &Expression) -> Result<CompiledPart> {
        let (first, others) = arithmetic_chain(expression);
        if let [(operator, right)] = others[..] {
            return self.binary(first, right, |left, right| {
                Node::Arithmetic(operator, left, right)
            });
        }
        let operators = others.iter().map(|(operator, _)| *operator);
        let all = std::iter::once(first).chain(others.iter().map(|(_, right)| *right));
        self.combine(&all.collect::<Vec<_>>(), false, |nodes| {
            let mut nodes = nodes.into_iter();
            match nodes.next() {
                Some(first) => {
                    Node::ArithmeticChain(Box::new(first), operators.zip(nodes).collect())
                }
                None => Node::Error,
            }
        })
    }

    fn call(&mut self, function: &Function, arguments: &[Expression]) -> Result<CompiledPart> {
        if let Some(part) = self.triple_function(function, arguments)? {
            return Ok(part);
        }
        let scalar = functions::resolve(function, arguments.len())?;
        if let (Some(kind), [Expression::Variable(variable)]) = (kind_asked(function), arguments)
            && let Some(place) = self.place(variable.as_str())
        {
            return Ok(CompiledPart::leaf(
                Node::IsKind(kind, place),
                Reads::One(place),
            ));
        }
        if let Some((number_type, form, variable)) = number_of_text(function, arguments)
            && let Some(place) = self.place(variable)
        {
            let node = Node::NumberOfText(number_type, form, place);
            return Ok(CompiledPart::leaf(node, Reads::One(place)));
        }
        if let (Some(part), [Expression::Variable(variable)]) = (calendar_part(function), arguments)
            && let Some(place) = self.place(variable.as_str())
        {
            let call = Node::Call(scalar, vec![Node::Variable(place)]);
            let general = Box::new(Node::PerDistinct(place, Box::new(call)));
            let node = Node::CalendarPart(part, place, general);
            return Ok(CompiledPart::leaf(node, Reads::One(place)));
        }
        if let (Some(number_type), Implementation::Pure(cast), [argument]) =
            (cast_to_number(function), scalar.implementation, arguments)
        {
            return self.unary(argument, |part| Node::Cast(number_type, cast, part));
        }
        let is_volatile = matches!(scalar.implementation, Implementation::Volatile(_));
        let mut arguments: Vec<&Expression> = arguments.iter().collect();
        if *function == Function::Regex
            && let Some((pattern, flags)) = constant_pattern(&arguments)
        {
            let regex = self.context.regexes().get(pattern, flags)?;
            arguments.truncate(1);
            let mut part = self.combine(&arguments, false, |mut nodes| {
                match (regex, nodes.pop()) {
                    (Some(regex), Some(text)) => {
                        Node::TextTest(Box::new(TextTest::matches(regex)), Box::new(text))
                    }
                    // A wrong pattern is an error in every row.
                    _ => Node::Error,
                }
            })?;
            part.is_costly = true;
            return Ok(part);
        }
        let mut part = self.combine(&arguments, is_volatile, |nodes| {
            text_test(function, nodes).unwrap_or_else(|nodes| Node::Call(scalar, nodes))
        })?;
        part.is_costly = true;
        Ok(part)
    }

    /// A function that makes a triple term or takes one apart.
    fn triple_function(
        &mut self,
        function: &Function,
        arguments: &[Expression],
    ) -> Result<Option<CompiledPart>> {
        let part_of = |part: TriplePart| move |triple| Node::PartOfTriple(part, triple);
        let mut part = match (function, arguments) {
            (Function::Triple, [subject, predicate, object]) => {
                self.combine(&[subject, predicate, object], false, |nodes| {
                    match <[Node; 3]>::try_from(nodes) {
                        Ok(parts) => Node::Triple(Box::new(parts)),
                        Err(_) => Node::Error,
                    }
                })?
            }
            (Function::Subject, [triple]) => self.unary(triple, part_of(TriplePart::Subject))?,
            (Function::Predicate, [triple]) => {
                self.unary(triple, part_of(TriplePart::Predicate))?
            }
            (Function::Object, [triple]) => self.unary(triple, part_of(TriplePart::Object))?,
            _ => return Ok(None),
        };
        part.is_costly = true;
        Ok(Some(part))
    }

    /// Compiles parts and makes one node of them. Parts that read the same variable are left bare,
    /// to be wrapped together further up; parts that read different ones are wrapped here.
    fn combine(
        &mut self,
        expressions: &[&Expression],
        is_volatile: bool,
        make: impl FnOnce(Vec<Node>) -> Node,
    ) -> Result<CompiledPart> {
        let parts = expressions
            .iter()
            .map(|expression| self.compile(expression))
            .collect::<Result<Vec<_>>>()?;
        let mut combined = CompiledPart {
            node: Node::Error,
            reads: parts
                .iter()
                .fold(Reads::Nothing, |reads, part| reads.and(part.reads)),
            is_costly: parts.iter().any(|part| part.is_costly),
            is_volatile: is_volatile || parts.iter().any(|part| part.is_volatile),
        };
        let seals = combined.reads == Reads::Several || combined.is_volatile;
        combined.node = make(
            parts
                .into_iter()
                .map(|part| if seals { part.sealed() } else { part.node })
                .collect(),
        );
        if combined.reads == Reads::Nothing && !combined.is_volatile {
            return self.folded(&combined.node);
        }
        Ok(combined)
    }

    /// The constant that a part without variables is.
    fn folded(&self, node: &Node) -> Result<CompiledPart> {
        let input = Input {
            columns: Vec::new(),
            rows: 1,
            numbers: RowNumbers::From(0),
        };
        let column = node.evaluate(&input, self.context)?;
        let ids = column.into_ids(1, self.context)?;
        match ids.iter().next().flatten().map(TermId::from_bits) {
            Some(id) => self.constant(&self.context.term(id)?),
            None => Ok(CompiledPart::leaf(Node::Error, Reads::Nothing)),
        }
    }
}

/// Takes apart a chain of the same connective, without recursion on its left side.
fn flatten<'a>(
    expression: &'a Expression,
    parts: &mut Vec<&'a Expression>,
    split: &dyn Fn(&'a Expression) -> Option<(&'a Expression, &'a Expression)>,
) {
    let mut pending = vec![expression];
    while let Some(expression) = pending.pop() {
        match split(expression) {
            Some((left, right)) => {
                pending.push(right);
                pending.push(left);
            }
            None => parts.push(expression),
        }
    }
}

/// The leftmost operand of a long chain of operations and the others with their operators; of a
/// short one the two sides.
fn arithmetic_chain(expression: &Expression) -> (&Expression, Vec<(Arithmetic, &Expression)>) {
    let mut others = Vec::new();
    let mut first = expression;
    while let Some((operator, left, right)) = as_arithmetic(first) {
        others.push((operator, right));
        first = left;
    }
    if others.len() < CHAIN_MIN
        && let Some((operator, left, right)) = as_arithmetic(expression)
    {
        return (left, vec![(operator, right)]);
    }
    others.reverse();
    (first, others)
}

fn as_arithmetic(expression: &Expression) -> Option<(Arithmetic, &Expression, &Expression)> {
    match expression {
        Expression::Add(left, right) => Some((Arithmetic::Add, left, right)),
        Expression::Subtract(left, right) => Some((Arithmetic::Subtract, left, right)),
        Expression::Multiply(left, right) => Some((Arithmetic::Multiply, left, right)),
        Expression::Divide(left, right) => Some((Arithmetic::Divide, left, right)),
        _ => None,
    }
}

/// The kind that a function asks for, if ids alone can answer it.
fn kind_asked(function: &Function) -> Option<NodeKind> {
    match function {
        Function::IsIri => Some(NodeKind::Iri),
        Function::IsBlank => Some(NodeKind::BlankNode),
        Function::IsLiteral => Some(NodeKind::Literal),
        Function::IsTriple => Some(NodeKind::TripleTerm),
        _ => None,
    }
}

/// The part of a date that a function asks for, if it is one that stands in the day.
fn calendar_part(function: &Function) -> Option<CalendarPart> {
    match function {
        Function::Year => Some(CalendarPart::Year),
        Function::Month => Some(CalendarPart::Month),
        Function::Day => Some(CalendarPart::Day),
        _ => None,
    }
}

/// The type that a function casts to, if it is a float or a double.
fn cast_to_number(function: &Function) -> Option<NumberType> {
    match function {
        Function::Custom(iri) if iri.as_str() == xsd::FLOAT => Some(NumberType::Float),
        Function::Custom(iri) if iri.as_str() == xsd::DOUBLE => Some(NumberType::Double),
        _ => None,
    }
}

/// The cast of a variable's text to a float or double, if that is what a call is.
fn number_of_text<'a>(
    function: &Function,
    arguments: &'a [Expression],
) -> Option<(NumberType, TextForm, &'a str)> {
    let number_type = cast_to_number(function)?;
    let [Expression::FunctionCall(inner, inner_arguments)] = arguments else {
        return None;
    };
    let form = if *inner == Function::Str {
        TextForm::Written
    } else if matches!(inner, Function::Custom(iri) if iri.as_str() == xsd::STRING) {
        TextForm::Canonical
    } else {
        return None;
    };
    match inner_arguments.as_slice() {
        [Expression::Variable(variable)] => Some((number_type, form, variable.as_str())),
        _ => None,
    }
}

/// The pattern and flags of a `REGEX` call, if both are plain strings in the query.
fn constant_pattern<'a>(arguments: &[&'a Expression]) -> Option<(&'a str, &'a str)> {
    let text = |expression: &'a Expression| match expression {
        Expression::Literal(literal) if literal.datatype().as_str() == xsd::STRING => {
            Some(literal.value())
        }
        _ => None,
    };
    let flags = match arguments.get(2) {
        Some(flags) => text(flags)?,
        None => "",
    };
    Some((text(arguments.get(1)?)?, flags))
}

/// A function of a text and a constant as a test of the text, if it is one; else the arguments
/// again.
fn text_test(function: &Function, arguments: Vec<Node>) -> std::result::Result<Node, Vec<Node>> {
    let [text, argument] = <[Node; 2]>::try_from(arguments)?;
    let test = match &argument {
        Node::Constant(constant) => TextTest::of_function(function, &constant.value),
        _ => None,
    };
    match test {
        Some(test) => Ok(Node::TextTest(Box::new(test), Box::new(text))),
        None => Err(vec![text, argument]),
    }
}

/// `IN`: many constants are looked up, everything else is compared one by one.
fn in_list(needle: Node, list: Vec<Node>) -> Node {
    let is_constant = |node: &Node| matches!(node, Node::Constant(_));
    if matches!(needle, Node::Constant(_))
        || list.iter().filter(|node| is_constant(node)).count() < CONSTANTS_MIN
    {
        return Node::In(Box::new(needle), None, list);
    }
    let (mut constants, mut others) = (Vec::new(), Vec::new());
    for node in list {
        match node {
            Node::Constant(constant) => constants.push(constant),
            other => others.push(other),
        }
    }
    let members = Box::new(Members::new(constants));
    Node::In(Box::new(needle), Some(members), others)
}
