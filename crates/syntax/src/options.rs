//! The options of parsing.

/// Looks up a prefix that a text does not declare; gives the IRI that it stands for.
pub type AssumedPrefixes<'o> = &'o (dyn Fn(&str) -> Option<String> + 'o);

/// Tells whether nobody waits any more for what is read.
pub type Abandoned<'o> = &'o (dyn Fn() -> bool + 'o);

/// What a reader of a text knows beside it. The default is SPARQL's way: no base, no prefixes.
#[derive(Clone, Copy, Default)]
pub struct ParserOptions<'o> {
    /// What relative IRIs are resolved against, until the text has a `BASE` of its own. Absolute.
    pub base: Option<&'o str>,
    /// Prefixes that need no declaration; those that are declared win.
    pub prefixes: Option<AssumedPrefixes<'o>>,
    /// Whether what the recommendation forbids by a test of its suite is refused: `GRAPH` in the
    /// short form of `CONSTRUCT`.
    pub is_standard: bool,
    /// Bounds.
    pub limits: Limits,
    /// Asked now and then; once it returns true, the text ends at the reader's position, which
    /// mostly is an error. Never if `None`.
    pub abandoned: Option<Abandoned<'o>>,
}

impl std::fmt::Debug for ParserOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParserOptions")
            .field("base", &self.base)
            .field("assumes_prefixes", &self.prefixes.is_some())
            .field("is_standard", &self.is_standard)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Bounds of what is read. The algebra is a tree, whose depth is at most their sum; whoever walks
/// it recursively (as dropping it does) needs stack for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Brackets that may stand inside each other.
    pub nesting_max: usize,
    /// Operators, groups and other parts that each put what came before them one level deeper; in
    /// each operation of an update.
    pub operators_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nesting_max: 128,
            operators_max: 20_000,
        }
    }
}

/// How large a text turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Brackets that stand inside each other.
    pub nesting: usize,
    /// Operators, groups and other parts that deepen the tree; of an update, those of the operation
    /// with the most.
    pub operators: usize,
}
