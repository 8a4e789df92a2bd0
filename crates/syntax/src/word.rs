//! The words of the grammar: keywords, functions and aggregates, in any case.
//!
//! A word of at most sixteen letters is one number in upper case, and the table of known ones is
//! searched by halves: seven comparisons, whatever the word.

use spargebra::algebra::{AggregateFunction, Function};

macro_rules! keywords {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Keywords of SPARQL.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Keyword {
            $(
                #[doc = $text]
                $name
            ),*
        }

        impl Keyword {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Keyword] = &[$(Keyword::$name),*];

            /// How it is written.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Keyword::$name => $text),*
                }
            }
        }
    };
}

keywords! {
    A = "a", Add = "ADD", All = "ALL", As = "AS", Asc = "ASC", Ask = "ASK", Base = "BASE", Bind = "BIND", By = "BY",
    Clear = "CLEAR", Construct = "CONSTRUCT", Copy = "COPY", Create = "CREATE", Data = "DATA", Default = "DEFAULT",
    Delete = "DELETE", Desc = "DESC", Describe = "DESCRIBE", Distinct = "DISTINCT", Drop = "DROP", Exists = "EXISTS",
    False = "false", Filter = "FILTER", From = "FROM", Graph = "GRAPH", Group = "GROUP", Having = "HAVING", In = "IN",
    Insert = "INSERT", Into = "INTO", Lateral = "LATERAL", Limit = "LIMIT", Load = "LOAD", Minus = "MINUS", Move = "MOVE", Named = "NAMED",
    Not = "NOT", Offset = "OFFSET", Optional = "OPTIONAL", Order = "ORDER", Prefix = "PREFIX", Reduced = "REDUCED",
    Select = "SELECT", Separator = "SEPARATOR", Service = "SERVICE", Silent = "SILENT", To = "TO", True = "true",
    Undef = "UNDEF", Union = "UNION", Using = "USING", Values = "VALUES", Version = "VERSION", Where = "WHERE",
    With = "WITH",
}

impl Keyword {
    /// With which queries begin.
    pub(crate) const QUERIES: [Keyword; 4] = [
        Keyword::Select,
        Keyword::Construct,
        Keyword::Describe,
        Keyword::Ask,
    ];
    /// With which operations of updates begin.
    pub(crate) const OPERATIONS: [Keyword; 10] = [
        Keyword::Insert,
        Keyword::Delete,
        Keyword::With,
        Keyword::Load,
        Keyword::Clear,
        Keyword::Drop,
        Keyword::Create,
        Keyword::Add,
        Keyword::Move,
        Keyword::Copy,
    ];
    /// With which declarations begin, before either.
    pub(crate) const DECLARATIONS: [Keyword; 3] =
        [Keyword::Prefix, Keyword::Base, Keyword::Version];
}

/// What a call of a built-in function becomes.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Function(Function),
    Bound,
    Coalesce,
    If,
    SameTerm,
    /// `COUNT(*)`, or of an expression.
    Count,
    GroupConcat,
    Aggregate(AggregateFunction),
}

/// A row of the table of built-in functions.
#[derive(Debug)]
pub(crate) struct BuiltInRow {
    pub(crate) name: &'static str,
    pub(crate) call: Call,
    /// The fewest and most arguments.
    pub(crate) arguments: (usize, usize),
}

const ANY: usize = usize::MAX;

const fn function(name: &'static str, function: Function, least: usize, most: usize) -> BuiltInRow {
    BuiltInRow {
        name,
        call: Call::Function(function),
        arguments: (least, most),
    }
}

const fn special(name: &'static str, call: Call, least: usize, most: usize) -> BuiltInRow {
    BuiltInRow {
        name,
        call,
        arguments: (least, most),
    }
}

/// A built-in function or aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn(u8);

impl BuiltIn {
    /// All of them.
    pub fn all() -> impl Iterator<Item = BuiltIn> {
        (0..BUILT_INS.len() as u8).map(BuiltIn)
    }

    /// How SPARQL's recommendation writes it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is an aggregate.
    pub fn is_aggregate(self) -> bool {
        matches!(
            self.row().call,
            Call::Count | Call::GroupConcat | Call::Aggregate(_)
        )
    }

    pub(crate) fn row(self) -> &'static BuiltInRow {
        &BUILT_INS[usize::from(self.0)]
    }
}

const BUILT_IN_COUNT: usize = 68;
static BUILT_INS: [BuiltInRow; BUILT_IN_COUNT] = [
    function("STR", Function::Str, 1, 1),
    function("LANG", Function::Lang, 1, 1),
    function("LANGMATCHES", Function::LangMatches, 2, 2),
    function("LANGDIR", Function::LangDir, 1, 1),
    function("DATATYPE", Function::Datatype, 1, 1),
    special("BOUND", Call::Bound, 1, 1),
    function("IRI", Function::Iri, 1, 1),
    function("URI", Function::Iri, 1, 1),
    function("BNODE", Function::BNode, 0, 1),
    function("RAND", Function::Rand, 0, 0),
    function("ABS", Function::Abs, 1, 1),
    function("CEIL", Function::Ceil, 1, 1),
    function("FLOOR", Function::Floor, 1, 1),
    function("ROUND", Function::Round, 1, 1),
    function("CONCAT", Function::Concat, 0, ANY),
    function("SUBSTR", Function::SubStr, 2, 3),
    function("STRLEN", Function::StrLen, 1, 1),
    function("REPLACE", Function::Replace, 3, 4),
    function("UCASE", Function::UCase, 1, 1),
    function("LCASE", Function::LCase, 1, 1),
    function("ENCODE_FOR_URI", Function::EncodeForUri, 1, 1),
    function("CONTAINS", Function::Contains, 2, 2),
    function("STRSTARTS", Function::StrStarts, 2, 2),
    function("STRENDS", Function::StrEnds, 2, 2),
    function("STRBEFORE", Function::StrBefore, 2, 2),
    function("STRAFTER", Function::StrAfter, 2, 2),
    function("YEAR", Function::Year, 1, 1),
    function("MONTH", Function::Month, 1, 1),
    function("DAY", Function::Day, 1, 1),
    function("HOURS", Function::Hours, 1, 1),
    function("MINUTES", Function::Minutes, 1, 1),
    function("SECONDS", Function::Seconds, 1, 1),
    function("TIMEZONE", Function::Timezone, 1, 1),
    function("TZ", Function::Tz, 1, 1),
    function("NOW", Function::Now, 0, 0),
    function("UUID", Function::Uuid, 0, 0),
    function("STRUUID", Function::StrUuid, 0, 0),
    function("MD5", Function::Md5, 1, 1),
    function("SHA1", Function::Sha1, 1, 1),
    function("SHA256", Function::Sha256, 1, 1),
    function("SHA384", Function::Sha384, 1, 1),
    function("SHA512", Function::Sha512, 1, 1),
    special("COALESCE", Call::Coalesce, 0, ANY),
    special("IF", Call::If, 3, 3),
    function("STRLANG", Function::StrLang, 2, 2),
    function("STRLANGDIR", Function::StrLangDir, 3, 3),
    function("STRDT", Function::StrDt, 2, 2),
    special("sameTerm", Call::SameTerm, 2, 2),
    function("isIRI", Function::IsIri, 1, 1),
    function("isURI", Function::IsIri, 1, 1),
    function("isBLANK", Function::IsBlank, 1, 1),
    function("isLITERAL", Function::IsLiteral, 1, 1),
    function("isNUMERIC", Function::IsNumeric, 1, 1),
    function("hasLANG", Function::HasLang, 1, 1),
    function("hasLANGDIR", Function::HasLangDir, 1, 1),
    function("REGEX", Function::Regex, 2, 3),
    function("TRIPLE", Function::Triple, 3, 3),
    function("SUBJECT", Function::Subject, 1, 1),
    function("PREDICATE", Function::Predicate, 1, 1),
    function("OBJECT", Function::Object, 1, 1),
    function("isTRIPLE", Function::IsTriple, 1, 1),
    special("COUNT", Call::Count, 1, 1),
    special("SUM", Call::Aggregate(AggregateFunction::Sum), 1, 1),
    special("MIN", Call::Aggregate(AggregateFunction::Min), 1, 1),
    special("MAX", Call::Aggregate(AggregateFunction::Max), 1, 1),
    special("AVG", Call::Aggregate(AggregateFunction::Avg), 1, 1),
    special("SAMPLE", Call::Aggregate(AggregateFunction::Sample), 1, 1),
    special("GROUP_CONCAT", Call::GroupConcat, 1, 1),
];

/// A word that the grammar knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownWord {
    Keyword(Keyword),
    BuiltIn(BuiltIn),
}

/// Longest word that the grammar knows.
const WORD_BYTES_MAX: usize = 16;

#[derive(Clone, Copy)]
struct Known {
    key: u128,
    word: KnownWord,
}

/// The word as a number, in upper case; bytes of a word that is no longer than the longest.
const fn key(word: &[u8]) -> u128 {
    let mut key = 0;
    let mut at = 0;
    while at < word.len() {
        key = (key << 8) | word[at].to_ascii_uppercase() as u128;
        at += 1;
    }
    key
}

const KNOWN_COUNT: usize = Keyword::ALL.len() + BUILT_IN_COUNT;
static KNOWN: [Known; KNOWN_COUNT] = sorted();

const fn sorted() -> [Known; KNOWN_COUNT] {
    let mut known = [Known {
        key: 0,
        word: KnownWord::Keyword(Keyword::A),
    }; KNOWN_COUNT];
    let mut count = 0;
    while count < KNOWN_COUNT {
        let next = if count < Keyword::ALL.len() {
            let keyword = Keyword::ALL[count];
            Known {
                key: key(keyword.text().as_bytes()),
                word: KnownWord::Keyword(keyword),
            }
        } else {
            let number = count - Keyword::ALL.len();
            Known {
                key: key(NAMES[number].as_bytes()),
                word: KnownWord::BuiltIn(BuiltIn(number as u8)),
            }
        };
        // Each is put into its place among those before it.
        let mut at = count;
        while at > 0 && known[at - 1].key > next.key {
            known[at] = known[at - 1];
            at -= 1;
        }
        known[at] = next;
        count += 1;
    }
    known
}

const NAMES: [&str; BUILT_IN_COUNT] = {
    let rows = &BUILT_INS;
    let mut names = [""; BUILT_IN_COUNT];
    let mut at = 0;
    while at < BUILT_IN_COUNT {
        names[at] = rows[at].name;
        at += 1;
    }
    names
};

/// What a word is, if the grammar knows it. `a` is a keyword in lower case only.
pub(crate) fn known(word: &str) -> Option<KnownWord> {
    if word.len() > WORD_BYTES_MAX || word == "A" {
        return None;
    }
    let key = key(word.as_bytes());
    let place = KNOWN.binary_search_by_key(&key, |known| known.key).ok()?;
    Some(KNOWN[place].word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case() {
        for &keyword in Keyword::ALL {
            if keyword != Keyword::A {
                for word in [keyword.text().to_lowercase(), keyword.text().to_uppercase()] {
                    assert_eq!(known(&word), Some(KnownWord::Keyword(keyword)), "{word}");
                }
            }
        }
        assert_eq!(known("a"), Some(KnownWord::Keyword(Keyword::A)));
        for word in ["A", "", "SELECTS", "SELEC", "ENCODE_FOR_URI_OF_ALL"] {
            assert_eq!(known(word), None, "{word}");
        }
        for function in BuiltIn::all() {
            let word = function.name().to_lowercase();
            assert_eq!(known(&word), Some(KnownWord::BuiltIn(function)), "{word}");
        }
    }
}
