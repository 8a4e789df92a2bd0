//! The operators of encoded algebra, without operands.

use oxrdf::NamedNode;
use serde::{Deserialize, Serialize};
use spargebra::algebra::Function;

use crate::codec::terms::TermText;

/// One operator, without its operands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Operator {
    // Expressions.
    Term(TermText),
    Or,
    And,
    Equal,
    SameTerm,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The needle, then so many others.
    In(usize),
    Add,
    Subtract,
    Multiply,
    Divide,
    UnaryPlus,
    UnaryMinus,
    Not,
    Exists,
    Bound(String),
    If,
    Coalesce(usize),
    Call(FunctionName, usize),
    // Property paths.
    PathPredicate(String),
    PathReverse,
    PathSequence,
    PathAlternative,
    PathZeroOrMore,
    PathOneOrMore,
    PathZeroOrOne,
    PathNegated(Vec<String>),
    // Graph patterns.
    Triples(Vec<[TermText; 3]>),
    /// A path between two ends.
    Path(TermText, TermText),
    Join,
    /// Whether it has a condition, which comes last.
    LeftJoin(bool),
    /// The pattern, then the condition.
    Filter,
    Union,
    Graph(TermText),
    Extend(String),
    Minus,
    Values(Vec<String>, Vec<Vec<Option<TermText>>>),
    /// The pattern, then a key for each entry, which says whether it descends.
    OrderBy(Vec<bool>),
    Project(Vec<String>),
    Distinct,
    Reduced,
    Slice(usize, Option<usize>),
    /// The pattern, then an argument for each aggregate that has one.
    Group(Vec<String>, Vec<AggregateName>),
    Service(TermText, bool),
    Lateral,
}

/// An aggregate without its argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AggregateName {
    pub(super) variable: String,
    pub(super) is_distinct: bool,
    pub(super) function: AggregateFunctionName,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum AggregateFunctionName {
    /// `COUNT(*)`.
    Solutions,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Sample,
    GroupConcat(Option<String>),
    Custom(String),
}

/// The names of functions, and both ways between them and spargebra's.
macro_rules! function_names {
    ($($name:ident)*) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub(super) enum FunctionName {
            $($name,)*
            Custom(String),
        }

        impl From<&Function> for FunctionName {
            fn from(function: &Function) -> Self {
                match function {
                    $(Function::$name => Self::$name,)*
                    Function::Custom(iri) => Self::Custom(iri.as_str().to_owned()),
                }
            }
        }

        impl From<FunctionName> for Function {
            fn from(name: FunctionName) -> Self {
                match name {
                    $(FunctionName::$name => Self::$name,)*
                    FunctionName::Custom(iri) => Self::Custom(NamedNode::new_unchecked(iri)),
                }
            }
        }

        #[cfg(test)]
        pub(in crate::codec) const FUNCTIONS: &[Function] = &[$(Function::$name,)*];
    };
}

function_names! {
    Str Lang LangMatches Datatype Iri BNode Rand Abs Ceil Floor Round Concat SubStr StrLen Replace UCase LCase EncodeForUri Contains
    StrStarts StrEnds StrBefore StrAfter Year Month Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512
    StrLang StrDt IsIri IsBlank IsLiteral IsNumeric Regex Triple Subject Predicate Object IsTriple LangDir HasLang HasLangDir StrLangDir
}
