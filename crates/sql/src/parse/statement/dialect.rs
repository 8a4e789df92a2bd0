//! The PostgreSQL dialect of the parser, without backtracking.
//!
//! The parser of the library tries a way, and where that fails goes back and tries another. Where
//! one way is within the other, each level of a text doubles the work: forty calls within each
//! other took years. Of that which is asked for most often, the argument of a function, there is
//! one way here: a name before `=>` is a word. For the rest there are [`Steps`]: each expression,
//! alias and list of columns that is begun is one, however often it is begun. Who has none left
//! gets errors, whatever is tried next, so that the parser ends. So does who is not waited for any
//! more.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

use crate::execute::stopping::require_somebody_here;

/// So many steps are there whatever the length of a text: some 200 ms.
const STEPS_MIN: usize = 100_000;

/// Tokens that the parser puts back in a row, at most: it puts back what it has just taken.
const PUT_BACK_MAX: usize = 100;

const OF_LIBRARY: PostgreSqlDialect = PostgreSqlDialect {};

/// See the module. For one text.
#[derive(Debug)]
pub(super) struct Steps {
    left: Cell<usize>,
}

impl Steps {
    /// For a text of so many tokens: each begins an expression once, where the parser does not go
    /// back.
    pub(super) fn for_tokens(tokens: usize) -> Self {
        Self {
            left: Cell::new(tokens.saturating_add(STEPS_MIN)),
        }
    }

    /// Whether none is left: what was parsed is no statement then, even if it is no error.
    pub(super) fn are_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether there was one.
    fn take(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        !self.are_spent()
    }

    /// Takes one for an alias; without any the parser is left without tokens.
    fn take_of(&self, parser: &mut Parser<'_>) -> bool {
        let has_some = self.take();
        if !has_some {
            *parser = Parser::new(&OF_LIBRARY);
            // Who has taken a token may put it back.
            (0..PUT_BACK_MAX).for_each(|_| drop(parser.next_token()));
        }
        has_some
    }
}

/// Methods that are those of the library.
macro_rules! as_library {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            OF_LIBRARY.$method()
        })*
    };
}

impl Dialect for Steps {
    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.take() && require_somebody_here().is_ok() {
            true => None,
            false => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    /// A name is a word, which is not parsed as an expression first.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    /// Asked for each SELECT. What has no columns is begun as an expression without steps.
    fn supports_empty_projections(&self) -> bool {
        self.take() && OF_LIBRARY.supports_empty_projections()
    }

    fn is_select_item_alias(
        &self,
        explicit: bool,
        word: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        self.take_of(parser) && OF_LIBRARY.is_select_item_alias(explicit, word, parser)
    }

    fn is_table_factor_alias(
        &self,
        explicit: bool,
        word: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        self.take_of(parser) && OF_LIBRARY.is_table_factor_alias(explicit, word, parser)
    }

    fn dialect(&self) -> TypeId {
        OF_LIBRARY.dialect()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        OF_LIBRARY.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        OF_LIBRARY.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        OF_LIBRARY.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        OF_LIBRARY.is_identifier_part(letter)
    }

    fn is_custom_operator_part(&self, letter: char) -> bool {
        OF_LIBRARY.is_custom_operator_part(letter)
    }

    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        OF_LIBRARY.is_reserved_for_identifier(word)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        OF_LIBRARY.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        OF_LIBRARY.prec_value(precedence)
    }

    as_library!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );
}
