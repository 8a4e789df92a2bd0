//! Rewrites of PostgreSQL clients' catalog queries to forms that the planner knows. Nothing else
//! rewrites for clients.
//!
//! | written | planned as |
//! | --- | --- |
//! | `pg_catalog.f(x)` | `f(x)` |
//! | `x OPERATOR(pg_catalog.~) y` | `x ~ y` |
//! | `x COLLATE pg_catalog.default`, `COLLATE "C"` | `x` |
//! | `'t'::regclass`, `x::regclass::oid` | the relation's number: `regclass_number(x)` |
//! | `x::regclass`, `x::regtype` of a number | its name: `regclass_name(x)`, `format_type(x)` |
//! | `(f(x)).n` | `get_field(f(x), 'n')` |
//! | `x LIKE y ESCAPE '/'` | `x LIKE replace(y, ...)`, for the planner knows the backslash alone |
//! | `x::pg_catalog.text`, `::name`, `::"char"`, `::oid` | a cast to the type that these are here |
//! | `current_user`, `current_schema` and others without brackets | `current_user()` |
//! | `ARRAY(SELECT x ...)` | `(SELECT array_agg(x) ...)` |
//! | `(SELECT x ... )` as a value, in a query of the catalog | `(SELECT max(x) ...)`, and more in `subqueries` |
//! | `generate_subscripts(a, 1)`, `information_schema._pg_expandarray(a)` | `unnest(generate_subscripts(a, 1))`, `unnest(pg_expandarray(a))` |

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, Select, Statement, TableFactor,
    TimezoneInfo, Value, ValueWithSpan, Visitor, VisitorMut,
};

use super::columns::{SCHEMAS, has};
use super::{functions, subqueries};
use crate::parse::visit::{visit, visit_mut};
use crate::parse::words::{call, folded, parts, taken};

/// What a statement needs.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Needs {
    /// Tables or functions of the catalog.
    pub(crate) catalog: bool,
    /// Among them those that have columns.
    pub(crate) columns: bool,
    /// Functions of the session.
    functions: bool,
    /// Other words.
    words: bool,
}

impl Needs {
    /// Whether the planner needs more than it has for every statement.
    pub(crate) fn is_anything(self) -> bool {
        self.catalog || self.functions
    }
}

/// Functions that a name alone stands for.
const WITHOUT_BRACKETS: [&str; 6] = [
    "current_catalog",
    "current_role",
    "current_schema",
    "current_user",
    "session_user",
    "user",
];

/// Looks what a statement needs, and puts it into other words if it does.
pub(crate) fn rewrite(statement: &mut Parsed) -> Needs {
    let mut inner = statement;
    while let Parsed::Explain(explain) = inner {
        inner = &mut explain.statement;
    }
    let Parsed::Statement(statement) = inner else {
        return Needs::default();
    };
    let mut needs = Needs::default();
    let _: ControlFlow<()> = visit(&**statement, &mut Looking(&mut needs));
    if needs.catalog || needs.words {
        let _: ControlFlow<()> = visit_mut(&mut **statement, &mut Rewriting(needs.catalog));
    }
    needs
}

struct Looking<'n>(&'n mut Needs);

/// Whether a name of a table is one of the catalog's.
fn is_of_catalog(name: &ObjectName) -> bool {
    match parts(name).as_slice() {
        [name] => has("pg_catalog", name),
        [.., schema, _] => SCHEMAS.contains(&schema.as_str()),
        [] => false,
    }
}

impl Visitor for Looking<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.0.catalog |= is_of_catalog(name);
        let last = parts(name).pop().unwrap_or_default();
        self.0.columns |= matches!(last.as_str(), "pg_attribute" | "columns");
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        // They become queries of the catalog.
        let columns = matches!(statement, Statement::ShowColumns { .. });
        self.0.columns |= columns;
        self.0.catalog |= columns || matches!(statement, Statement::ShowTables { .. });
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                let parts = parts(&function.name);
                let name = parts.last().map_or("", String::as_str);
                self.0.catalog |= name.starts_with("pg_") || name == "to_regclass";
                self.0.functions |= functions::is_known(name);
                self.0.words |= parts.len() > 1
                    || name == "generate_subscripts"
                    || matches!(
                        function.args,
                        FunctionArguments::None | FunctionArguments::Subquery(_)
                    );
            }
            Expr::Cast { data_type, .. }
            | Expr::TypedString(datafusion::sql::sqlparser::ast::TypedString {
                data_type, ..
            }) => {
                let word = word_of(data_type);
                self.0.words |= word.is_some();
                self.0.functions |= word.as_ref().is_some_and(|word| word.starts_with("reg"));
                self.0.catalog |= word.is_some_and(|word| word.starts_with("reg"));
            }
            Expr::Identifier(name) if is_function(name) => {
                self.0.words = true;
                self.0.functions = true;
            }
            Expr::Collate { .. }
            | Expr::CompoundFieldAccess { .. }
            | Expr::Like {
                escape_char: Some(_),
                ..
            }
            | Expr::ILike {
                escape_char: Some(_),
                ..
            } => self.0.words = true,
            Expr::BinaryOp {
                op: BinaryOperator::PGCustomBinaryOperator(_),
                ..
            } => self.0.words = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_function(name: &Ident) -> bool {
    let lower = name.value.to_lowercase();
    name.quote_style.is_none() && WITHOUT_BRACKETS.contains(&lower.as_str())
}

/// The name of a type that the planner has no word for.
fn word_of(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => parts(name).pop(),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            word_of(element).map(|element| format!("{element}[]"))
        }
        _ => None,
    }
}

/// The type that stands for a type's name of the catalog.
fn type_of(word: &str) -> Option<DataType> {
    if let Some(element) = word.strip_suffix("[]") {
        let element = type_of(element)?;
        return Some(DataType::Array(ArrayElemTypeDef::SquareBracket(
            Box::new(element),
            None,
        )));
    }
    Some(match word {
        "text" | "name" | "char" | "varchar" | "bpchar" | "regproc" | "regprocedure"
        | "regrole" | "cstring" | "pg_node_tree" => DataType::Text,
        "oid" | "int8" | "xid" | "cid" | "regclass" => DataType::BigInt(None),
        "int4" => DataType::Integer(None),
        "int2" => DataType::SmallInt(None),
        "bool" => DataType::Boolean,
        "float8" => DataType::DoublePrecision,
        "float4" => DataType::Real,
        "timestamptz" => DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        "timestamp" => DataType::Timestamp(None, TimezoneInfo::None),
        "date" => DataType::Date,
        "bytea" => DataType::Bytea,
        "numeric" => DataType::Numeric(ExactNumberInfo::None),
        _ => return None,
    })
}

/// Whether it tells of the catalog.
struct Rewriting(bool);

/// Whether it is a text or a parameter, and not a number out of the catalog.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Number(..)),
        Expr::Nested(inner) => is_literal(inner),
        Expr::Cast {
            expr, data_type, ..
        } => is_literal(expr) && word_of(data_type).is_none_or(|it| it == "text"),
        Expr::BinaryOp {
            op: BinaryOperator::StringConcat,
            ..
        } => true,
        _ => false,
    }
}

/// Whether it is what a cast to `regclass` has become, which a cast to `oid` makes a number of.
fn regclass_of(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => regclass_of(inner),
        Expr::Function(function) if parts(&function.name) == ["regclass_name"] => {
            let FunctionArguments::List(list) = &mut function.args else {
                return None;
            };
            match list.args.pop() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) => Some(argument),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Rewriting {
    fn cast(expr: &mut Expr) {
        let (inner, data_type) = match expr {
            Expr::Cast {
                expr, data_type, ..
            } => (&mut **expr, data_type),
            Expr::TypedString(typed) => {
                if let Some(word) = word_of(&typed.data_type) {
                    let mut value = Expr::Value(typed.value.clone());
                    *expr = Self::named(&word, &mut value).unwrap_or(value);
                }
                return;
            }
            _ => return,
        };
        let is_number = matches!(
            data_type,
            DataType::BigInt(_) | DataType::Int8(_) | DataType::Integer(_) | DataType::Int4(_)
        );
        let word = word_of(data_type);
        if (is_number || word.as_deref() == Some("oid"))
            && let Some(inner) = regclass_of(inner)
        {
            *expr = call("regclass_number", vec![inner]);
            return;
        }
        let Some(word) = word else {
            return;
        };
        if let Some(other) = Self::named(&word, inner) {
            *expr = other;
            return;
        }
        match type_of(&word) {
            Some(found) => *data_type = found,
            // Vectors of numbers are arrays already.
            None if word.ends_with("vector") || word.starts_with("any") => *expr = taken(inner),
            None => {}
        }
    }

    /// A cast to a type whose values are numbers with names.
    fn named(word: &str, inner: &mut Expr) -> Option<Expr> {
        let is_literal = is_literal(inner);
        Some(match (word, is_literal) {
            ("regclass", true) => call("regclass_number", vec![taken(inner)]),
            ("regclass", false) => call("regclass_name", vec![taken(inner)]),
            ("regtype", true) => call("regtype_number", vec![taken(inner)]),
            ("regtype", false) => call("format_type", vec![taken(inner), Expr::value(Value::Null)]),
            ("regnamespace", false) => call("regnamespace_name", vec![taken(inner)]),
            _ => return None,
        })
    }

    /// A pattern with an escape of its own, as one whose escape is the backslash.
    fn escape(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) {
        let own = escape.take().map(|escape| escape.value);
        let Some(own) = own.and_then(Value::into_string).filter(|own| own != "\\") else {
            return;
        };
        let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
        let twice = format!("{own}{own}");
        let once = format!("\\{own}");
        // An escape that is escaped is neither, until the others are changed.
        let mut steps = vec![("\\", "\\\\")];
        if !own.is_empty() {
            steps.extend([
                (twice.as_str(), "\u{1}"),
                (own.as_str(), "\\"),
                ("\u{1}", once.as_str()),
            ]);
        }
        for (from, to) in steps {
            *pattern = call("replace", vec![taken(pattern), text(from), text(to)]);
        }
    }

    fn operator(op: &mut BinaryOperator) {
        let BinaryOperator::PGCustomBinaryOperator(words) = op else {
            return;
        };
        *op = match words.last().map_or("", String::as_str) {
            "~" => BinaryOperator::PGRegexMatch,
            "~*" => BinaryOperator::PGRegexIMatch,
            "!~" => BinaryOperator::PGRegexNotMatch,
            "!~*" => BinaryOperator::PGRegexNotIMatch,
            "~~" => BinaryOperator::PGLikeMatch,
            "!~~" => BinaryOperator::PGNotLikeMatch,
            "=" => BinaryOperator::Eq,
            "<>" => BinaryOperator::NotEq,
            "<" => BinaryOperator::Lt,
            "<=" => BinaryOperator::LtEq,
            ">" => BinaryOperator::Gt,
            ">=" => BinaryOperator::GtEq,
            "+" => BinaryOperator::Plus,
            "-" => BinaryOperator::Minus,
            "*" => BinaryOperator::Multiply,
            "||" => BinaryOperator::StringConcat,
            _ => return,
        };
    }
}

/// Texts are compared by their bytes: what these collations say.
fn is_own_collation(name: &ObjectName) -> bool {
    let last = parts(name).pop().unwrap_or_default();
    matches!(
        last.as_str(),
        "default" | "C" | "POSIX" | "c" | "posix" | "ucs_basic"
    )
}

impl VisitorMut for Rewriting {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if self.0 {
            subqueries::selected(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        // Functions have no schema here.
        if let TableFactor::Table {
            name,
            args: Some(_),
            ..
        }
        | TableFactor::Function { name, .. } = table
            && let [schema, function] = parts(name).as_slice()
            && SCHEMAS.contains(&schema.as_str())
        {
            *name = ObjectName::from(vec![Ident::new(function.clone())]);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { .. } | Expr::TypedString(_) => Self::cast(expr),
            Expr::Collate {
                expr: inner,
                collation,
            } if is_own_collation(collation) => *expr = taken(inner),
            Expr::Like {
                pattern,
                escape_char,
                ..
            }
            | Expr::ILike {
                pattern,
                escape_char,
                ..
            } => Self::escape(pattern, escape_char),
            // `(f(x)).n`
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let [AccessExpr::Dot(Expr::Identifier(name))] = access_chain.as_slice() {
                    let name = Value::SingleQuotedString(folded(name));
                    *expr = call("get_field", vec![taken(root), Expr::value(name)]);
                }
            }
            Expr::BinaryOp { op, .. } => Self::operator(op),
            Expr::Identifier(name) if is_function(name) => {
                *expr = call(&name.value.to_lowercase(), Vec::new());
            }
            Expr::Function(function) => {
                let parts = parts(&function.name);
                if let [schema, name] = parts.as_slice()
                    && SCHEMAS.contains(&schema.as_str())
                {
                    function.name = ObjectName::from(vec![Ident::new(name.clone())]);
                }
                let name = parts.last().map_or("", String::as_str);
                match (&mut function.args, name) {
                    (FunctionArguments::Subquery(query), "array") => {
                        if let Some(planned) = subqueries::array(query) {
                            *expr = planned;
                        }
                    }
                    (FunctionArguments::None, _) => *expr = call(name, Vec::new()),
                    (_, "generate_subscripts") => *expr = call("unnest", vec![taken(expr)]),
                    (_, "_pg_expandarray") => {
                        function.name = ObjectName::from(vec![Ident::new("pg_expandarray")]);
                        *expr = call("unnest", vec![taken(expr)]);
                    }
                    _ => {}
                }
            }
            Expr::Exists { subquery, .. } if self.0 => subqueries::let_all(subquery),
            Expr::Subquery(query) if self.0 => {
                if let Some(planned) = subqueries::value(query) {
                    *expr = planned;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_one;

    #[track_caller]
    fn check(written: &str, planned: &str) {
        let mut statement = parse_one(written).unwrap();
        rewrite(&mut statement);
        assert_eq!(statement.to_string(), planned);
    }

    #[test]
    fn clients_words_become_the_planners() {
        check("SELECT pg_catalog.version()", "SELECT version()");
        check(
            "SELECT a OPERATOR(pg_catalog.~) '^b' COLLATE pg_catalog.default",
            "SELECT a ~ '^b'",
        );
        check(
            "SELECT a COLLATE \"de_DE\" FROM t",
            "SELECT a COLLATE \"de_DE\" FROM t",
        );
        check(
            "SELECT (information_schema._pg_expandarray(a)).n, generate_subscripts(a, 1)",
            "SELECT get_field((unnest(pg_expandarray(a))), 'n'), unnest(generate_subscripts(a, 1))",
        );
        check(
            "SELECT a LIKE b ESCAPE ''",
            "SELECT a LIKE replace(b, '\\', '\\\\')",
        );
        check("SELECT 't'::regclass", "SELECT regclass_number('t')");
        check(
            "SELECT 't'::pg_catalog.regclass::oid",
            "SELECT regclass_number('t')::BIGINT",
        );
        check("SELECT a::regclass", "SELECT regclass_name(a)");
        check(
            "SELECT a::pg_catalog.regclass::pg_catalog.text",
            "SELECT regclass_name(a)::TEXT",
        );
        check("SELECT (a::regclass)::oid", "SELECT regclass_number(a)");
        check(
            "SELECT a::pg_catalog.regtype",
            "SELECT format_type(a, NULL)",
        );
        check(
            "SELECT current_user, CURRENT_SCHEMA",
            "SELECT current_user(), current_schema()",
        );
        check(
            "SELECT a ~ 'b', max(c) FROM t",
            "SELECT a ~ 'b', max(c) FROM t",
        );
        check(
            "SELECT (SELECT n.nspname FROM pg_namespace n WHERE n.oid = c.x) FROM pg_class c",
            "SELECT (SELECT max(n.nspname) FROM pg_namespace n WHERE n.oid = c.x) FROM pg_class c",
        );
        check(
            "SELECT (SELECT b FROM u WHERE u.a = t.a) FROM t",
            "SELECT (SELECT b FROM u WHERE u.a = t.a) FROM t",
        );
    }

    #[test]
    fn subqueries_as_values_become_what_the_planner_can_join() {
        let of_class = |value: &str, planned: &str| {
            check(
                &format!("SELECT {value} FROM pg_class c"),
                &format!("SELECT {planned} FROM pg_class c"),
            );
        };
        of_class(
            "(SELECT d.adbin FROM pg_attrdef d WHERE d.adrelid = c.oid AND c.x)",
            "CASE WHEN c.x THEN (SELECT max(d.adbin) FROM pg_attrdef d WHERE d.adrelid = c.oid) END",
        );
        of_class(
            "(SELECT l.collname FROM pg_collation l, pg_type t WHERE l.oid = c.a AND t.oid = c.b AND c.a <> t.d)",
            "(SELECT max(l.collname) FROM pg_collation l, pg_type t WHERE l.oid = c.a AND t.oid = c.b AND l.oid <> t.d)",
        );
        of_class(
            "ARRAY(SELECT r.rolname FROM pg_roles r WHERE r.oid = c.o ORDER BY 1)",
            "(SELECT array_agg(r.rolname ORDER BY r.rolname) FROM pg_roles r WHERE r.oid = c.o)",
        );
        // Of tables that are always empty.
        of_class("(SELECT s.seqtypid FROM pg_sequence s)", "NULL");
        of_class(
            "(SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid LIMIT 1)",
            "(0)",
        );
        check(
            "SELECT p.polname, (SELECT 1) FROM pg_policy p",
            "SELECT p.polname, CAST(NULL AS TEXT) FROM pg_policy p",
        );
        of_class(
            "EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid LIMIT 1)",
            "((SELECT count(1) FROM pg_index i WHERE i.indrelid = c.oid) > 0)",
        );
        of_class(
            "(SELECT oid FROM pg_catalog.pg_class WHERE relname = 'x')",
            "to_regclass('x')",
        );
        // What is limited otherwise, or counted, stays.
        of_class(
            "(SELECT i.a FROM pg_index i ORDER BY i.a LIMIT 1)",
            "(SELECT i.a FROM pg_index i ORDER BY i.a LIMIT 1)",
        );
        of_class(
            "(SELECT count(*) FROM pg_index i WHERE c.x)",
            "(SELECT count(*) FROM pg_index i WHERE c.x)",
        );
    }

    #[test]
    fn what_a_statement_needs_is_seen() {
        let needs = |text: &str| rewrite(&mut parse_one(text).unwrap());
        assert_eq!(
            needs("SELECT * FROM t WHERE a = 1 AND b LIKE 'x' AND EXISTS (SELECT 1)"),
            Needs::default()
        );
        assert!(needs("SELECT * FROM pg_class").catalog);
        assert!(needs("SELECT * FROM information_schema.tables").catalog);
        assert!(needs("SELECT pg_get_viewdef(1)").catalog);
        assert!(!needs("SELECT current_schema()").catalog);
    }
}
