//! The comparison of our parser with spargebra's: the same verdict and algebra.
//!
//! Names that either makes up (of aggregates, of `[]`) are numbered in the order of their
//! appearance before the comparison, and columns of an outermost `SELECT *` are compared as a set,
//! for ours come in the order of the text. Where the two differ for a reason, it is named; anything
//! else is a finding.

use orrery_syntax::{ErrorKind, Keyword, Lexer, ParserOptions, SyntaxError, TokenKind};
use spargebra::SparqlParser;

/// What a comparison found.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Both read it, and the same.
    SameAlgebra,
    /// Both refuse it.
    BothRefuse,
    /// They differ, for this reason.
    Explained(&'static str),
    /// They differ.
    Different(String),
}

const BASE: &str = "http://base.example/dir/file";

/// Compares the readings of a text.
pub(super) fn compare(text: &str, is_update: bool) -> Verdict {
    let options = ParserOptions {
        base: Some(BASE),
        ..ParserOptions::default()
    };
    let parser = || SparqlParser::new().with_base_iri(BASE).ok();
    let Some(parser) = parser() else {
        return Verdict::Different("no base".to_owned());
    };
    let ours = match is_update {
        true => orrery_syntax::parse_update(text, &options).map(|(it, _)| format!("{it:?}")),
        false => orrery_syntax::parse_query(text, &options).map(|(it, _)| format!("{it:?}")),
    };
    let theirs = match is_update {
        true => parser.parse_update(text).map(|it| format!("{it:?}")),
        false => parser.parse_query(text).map(|it| format!("{it:?}")),
    }
    .map_err(|error| error.to_string());
    match (ours, theirs) {
        (Err(_), Err(_)) => Verdict::BothRefuse,
        (Ok(ours), Ok(theirs)) => {
            let (ours, theirs) = (normalised(text, &ours), normalised(text, &theirs));
            if ours == theirs
                || (is_star(text) && with_sorted_columns(&ours) == with_sorted_columns(&theirs))
            {
                return Verdict::SameAlgebra;
            }
            match other_algebra(text) {
                Some(reason) => Verdict::Explained(reason),
                None => Verdict::Different(first_difference(&ours, &theirs)),
            }
        }
        (Err(error), Ok(_)) => match refused_by_us(text, &error) {
            Some(reason) => Verdict::Explained(reason),
            None => Verdict::Different(format!("ours refuses: {error} {:?}", error.kind)),
        },
        (Ok(_), Err(error)) => match refused_by_them(text, &error) {
            Some(reason) => Verdict::Explained(reason),
            None => Verdict::Different(format!("spargebra refuses: {error}")),
        },
    }
}

fn first_difference(ours: &str, theirs: &str) -> String {
    let place = ours
        .bytes()
        .zip(theirs.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let from = (0..=place.saturating_sub(120))
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text[from..].chars().take(300).collect::<String>()
    };
    format!("ours   {}\ntheirs {}", around(ours), around(theirs))
}

/// Names that the text does not have, in the order of their appearance.
fn normalised(text: &str, debug: &str) -> String {
    let debug = &with_names_of_anonymous(debug);
    let mut names: Vec<&str> = Vec::new();
    let mut result = String::with_capacity(debug.len());
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = debug.as_bytes();
    let mut at = 0;
    let mut copied = 0;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        let word = &debug[start..at];
        let is_quoted = start > 0 && bytes[start - 1] == b'"' && bytes.get(at) == Some(&b'"');
        let is_hexadecimal = word.len() >= 24 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_ours = word.starts_with("_g")
            && word[2..]
                .trim_start_matches('_')
                .bytes()
                .all(|it| it.is_ascii_digit())
            && word.len() > 2;
        if is_quoted && (is_hexadecimal || is_ours) && !text.contains(word) {
            let number = names.iter().position(|it| *it == word).unwrap_or_else(|| {
                names.push(word);
                names.len() - 1
            });
            result.push_str(&debug[copied..start]);
            result.push_str(&format!("#{number}"));
            copied = at;
        }
    }
    result.push_str(&debug[copied..]);
    result
}

/// Blank nodes that oxrdf names by a number, as it writes them.
fn with_names_of_anonymous(debug: &str) -> String {
    const OPENING: &str = "Anonymous { id: [";
    let mut result = String::with_capacity(debug.len());
    let mut rest = debug;
    while let Some((before, behind)) = rest.split_once(OPENING) {
        let Some((id, behind)) = behind.split_once(']') else {
            break;
        };
        let name: String = id
            .split(", ")
            .filter_map(|it| it.parse::<u8>().ok())
            .map(|it| format!("{it:02x}"))
            .collect();
        result.push_str(before);
        result.push_str(&format!("Named(\"{name}\")"));
        rest = behind.split_once("]) }").map_or(behind, |(_, rest)| rest);
    }
    result.push_str(rest);
    result
}

fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(|| {
        let token = lexer.next_token();
        (token.kind != TokenKind::End).then(|| (token.kind, token.text(text)))
    });
    tokens.collect()
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

fn is_star(text: &str) -> bool {
    let tokens = tokens(text);
    let place = tokens
        .iter()
        .position(|(_, it)| it.eq_ignore_ascii_case("SELECT"));
    let behind = place.map_or(&[][..], |place| &tokens[place + 1..]);
    behind
        .iter()
        .take(2)
        .any(|(kind, _)| *kind == TokenKind::Star)
}

/// The algebra with the outermost columns sorted, which come last in its text.
fn with_sorted_columns(debug: &str) -> String {
    const OPENING: &str = "variables: [";
    let Some(start) = debug.rfind(OPENING).map(|start| start + OPENING.len()) else {
        return debug.to_owned();
    };
    let end = debug[start..]
        .find(']')
        .map_or(debug.len(), |length| start + length);
    let mut columns: Vec<&str> = debug[start..end].split(", ").collect();
    columns.sort_unstable();
    format!("{}{}{}", &debug[..start], columns.join(", "), &debug[end..])
}

/// Whether a sign and its number have something between them, which spargebra takes for a part of
/// the number.
fn has_loose_sign(text: &str) -> bool {
    let tokens = tokens(text);
    tokens.windows(2).any(|pair| {
        let is_number = matches!(
            pair[1].0,
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Double
        );
        matches!(pair[0].0, TokenKind::Plus | TokenKind::Minus)
            && is_number
            && !touch(pair[0].1, pair[1].1)
    })
}

/// Whether a token follows another at once.
fn touch(first: &str, second: &str) -> bool {
    first.as_ptr() as usize + first.len() == second.as_ptr() as usize
}

/// Whether a word that the grammar does not know begins with one that it knows.
fn has_words_run_together(text: &str) -> bool {
    tokens(text).iter().any(|(kind, word)| {
        let begins_with_keyword = (1..word.len()).any(|length| {
            let beginning = word.get(..length).unwrap_or_default();
            matches!(
                tokens(beginning).first(),
                Some((TokenKind::Keyword(_) | TokenKind::BuiltIn(_), _))
            )
        });
        *kind == TokenKind::Word && begins_with_keyword
    })
}

/// Whether a query may give a name to what it groups by.
fn has_named_group(text: &str) -> bool {
    let tokens = tokens(text);
    let has = |word: &str| tokens.iter().any(|(_, it)| it.eq_ignore_ascii_case(word));
    has("GROUP") && has("AS")
}

/// Whether a number with its sign stands where spargebra takes the sign for a path's.
fn has_signed_object(text: &str) -> bool {
    let tokens = tokens(text);
    tokens.windows(3).any(|three| {
        let is_path = matches!(
            three[0].0,
            TokenKind::Iri
                | TokenKind::PrefixedName
                | TokenKind::RightParen
                | TokenKind::Keyword(Keyword::A)
        );
        let is_number = matches!(
            three[2].0,
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Double
        );
        let is_signed = three[1].0 == TokenKind::Plus && touch(three[1].1, three[2].1);
        is_path && is_signed && is_number
    })
}

/// Whether a query that is no `SELECT` may have groups.
fn has_groups_without_select(text: &str) -> bool {
    let tokens = tokens(text);
    let is_there = |word: Keyword| {
        let kind = TokenKind::Keyword(word);
        tokens.iter().any(|(it, _)| *it == kind)
    };
    [Keyword::Ask, Keyword::Construct, Keyword::Describe]
        .into_iter()
        .any(is_there)
        && [Keyword::Group, Keyword::Having, Keyword::Order]
            .into_iter()
            .any(is_there)
}

/// Whether a `SELECT` or `DESCRIBE` names a variable again.
fn has_repeated_column(text: &str) -> bool {
    let tokens = tokens(text);
    let begins = |kind: TokenKind| {
        [Keyword::Select, Keyword::Describe]
            .map(TokenKind::Keyword)
            .contains(&kind)
    };
    let starts = (0..tokens.len()).filter(|at| begins(tokens[*at].0));
    let mut clauses = starts.map(|at| &tokens[at + 1..]);
    clauses.any(|clause| {
        let (mut seen, mut depth, mut before) = (Vec::new(), 0_usize, TokenKind::End);
        for (kind, token) in clause {
            match kind {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth = depth.saturating_sub(1),
                TokenKind::LeftBrace | TokenKind::Keyword(Keyword::Where | Keyword::From) => break,
                TokenKind::Variable if depth == 0 || before == TokenKind::Keyword(Keyword::As) => {
                    let name = &token[1..];
                    if depth == 0 && seen.contains(&name) {
                        return true;
                    }
                    seen.push(name);
                }
                _ => {}
            }
            before = *kind;
        }
        false
    })
}

fn has_exists(text: &str) -> bool {
    let tokens = tokens(text);
    tokens
        .iter()
        .any(|(kind, _)| *kind == TokenKind::Keyword(Keyword::Exists))
}

/// Why both read it, and differently.
fn other_algebra(text: &str) -> Option<&'static str> {
    let is_point_first = |(kind, token): &(TokenKind, &str)| {
        matches!(kind, TokenKind::Decimal | TokenKind::Double) && token.starts_with('.')
    };
    if tokens(text).iter().any(is_point_first) {
        return Some("the longest token wins: `.5` is a number, and no dot before one");
    }
    if has_signed_object(text) {
        return Some("the longest token wins: the sign of `:p +1` is the number's");
    }
    if has_named_group(text) {
        return Some("GROUP BY (?x AS ?y) binds ?y; spargebra forgets the name");
    }
    if has_loose_sign(text) {
        return Some("blanks between a sign and a number are no part of the number");
    }
    None
}

/// Why we refuse what spargebra reads.
fn refused_by_us(text: &str, error: &SyntaxError) -> Option<&'static str> {
    match &error.kind {
        ErrorKind::MisplacedAggregate => {
            return Some(
                "aggregates stand in SELECT, HAVING and ORDER BY only (SPARQL 1.1, 19.8, note 12)",
            );
        }
        ErrorKind::MissingDot => return Some("a dot stands between the triples of a template"),
        ErrorKind::VariableInData => {
            return Some("DATA holds no variables, nor as a graph without triples");
        }
        // Without groups spargebra refuses them, too.
        ErrorKind::AlreadyBound { .. } => {
            return Some("AS gives no value to what has one in the rows that are grouped");
        }
        ErrorKind::NestedAggregate => {
            return Some("an aggregate inside another (SPARQL 1.2, 11.3)");
        }
        ErrorKind::InvalidSubject => {
            return Some("the subject of a triple term in an expression is an IRI or a variable");
        }
        _ => {}
    }
    let here = text.get(error.span.start..)?;
    let mut lexer = Lexer::new(here);
    let token = lexer.next_token();
    let word = token.text(here);
    if has_loose_sign(text) {
        return Some("blanks between a sign and a number are no part of the number");
    }
    if has_words_run_together(text) {
        return Some("words run together: a word ends where no letter follows");
    }
    if has_named_group(text) {
        return Some("GROUP BY (?x AS ?y) binds ?y; spargebra forgets the name");
    }
    match token.kind {
        TokenKind::Word
        | TokenKind::PrefixedName
        | TokenKind::Keyword(_)
        | TokenKind::BuiltIn(_)
            if word.len() > 1 =>
        {
            Some("words run together: a word ends where no letter follows")
        }
        TokenKind::Decimal | TokenKind::Double if word.starts_with('.') => {
            Some("the longest token wins: `.5` is a number")
        }
        TokenKind::Iri | TokenKind::LeftTriple | TokenKind::LeftTripleTerm => {
            Some("the longest token wins: `<` begins an IRI where one ends, `<<` a triple")
        }
        TokenKind::Semicolon
            if tokens(text)
                .first()
                .is_some_and(|it| it.0 == TokenKind::Semicolon) =>
        {
            Some("`;` stands behind an operation")
        }
        TokenKind::Dot => Some("a template is no dot alone"),
        TokenKind::UnclosedString => Some("three quotation marks begin a long string"),
        _ => None,
    }
}

/// Whether `GRAPH` stands in the first braces behind a `CONSTRUCT`.
fn has_graphs_in_template(text: &str) -> bool {
    let mut depth = 0_usize;
    let tokens = tokens(text).into_iter().map(|(kind, _)| kind);
    let behind = tokens.skip_while(|kind| *kind != TokenKind::Keyword(Keyword::Construct));
    for kind in behind.skip_while(|kind| *kind != TokenKind::LeftBrace) {
        match kind {
            TokenKind::LeftBrace => depth += 1,
            TokenKind::RightBrace => depth = depth.saturating_sub(1),
            TokenKind::Keyword(Keyword::Graph) => return true,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    false
}

/// Why spargebra refuses what we read.
fn refused_by_them(text: &str, error: &str) -> Option<&'static str> {
    if error.contains("an expression with a variable that is unbound") {
        return Some("columns may use those before them (SPARQL 1.2, 18.2.4.4)");
    }
    if error.contains("cannot be shared by multiple blocks") && has_exists(text) {
        return Some("a filter with EXISTS does not end a basic graph pattern (SPARQL 1.1, 5.1)");
    }
    if has_groups_without_select(text) {
        return Some("ASK, CONSTRUCT and DESCRIBE may have groups and aggregates");
    }
    if has_signed_object(text) {
        return Some("the longest token wins: the sign of `:p +1` is the number's");
    }
    if has_repeated_column(text) {
        return Some("a variable may be selected twice (SPARQL 1.1, 18.2.4.4: a set)");
    }
    if has_graphs_in_template(text) {
        return Some("templates of CONSTRUCT may have graphs, as Jena's");
    }
    let tokens = tokens(text);
    let is_empty_set = |three: &[(TokenKind, &str)]| {
        let kinds = [TokenKind::Not, TokenKind::LeftParen, TokenKind::RightParen];
        three.iter().map(|it| it.0).eq(kinds)
    };
    if tokens.windows(3).any(is_empty_set) {
        return Some("`!()` is any step (SPARQL 1.1, 19.8, rule 95)");
    }
    for (kind, token) in &tokens {
        let local = token.split_once(':').map_or("", |(_, local)| local);
        let parts = local.split('.').filter(|part| !part.is_empty()).count();
        if *kind == TokenKind::PrefixedName && parts > 2 {
            return Some("a local name may have several dots");
        }
        if is_one_of(token, &["true", "false"]) && token.bytes().any(|it| it.is_ascii_uppercase()) {
            return Some("keywords are of any case, TRUE and FALSE too");
        }
        if token.chars().any(|it| it > '\u{ffff}') {
            return Some("names hold characters beyond U+FFFF");
        }
    }
    for pair in tokens.windows(2) {
        let [(first, before), (second, after)] = pair else {
            continue;
        };
        if *second == TokenKind::LeftParen
            && is_one_of(before, &["CONCAT", "COALESCE", "BNODE"])
            && !touch(before, after)
        {
            return Some("a blank before the bracket of CONCAT, COALESCE, BNODE");
        }
        if *first == TokenKind::Semicolon && is_one_of(after, &["PREFIX", "BASE", "VERSION"]) {
            return Some("each operation of an update may have a prologue");
        }
        let is_empty = matches!((*before, *after), ("(", ")") | ("[", "]"));
        if is_empty && !touch(before, after) {
            return Some("comments are blanks inside of () and [], too");
        }
    }
    if tokens
        .iter()
        .any(|(_, it)| it.eq_ignore_ascii_case("GROUP"))
    {
        return Some("GROUP BY (?x AS ?y) binds ?y; spargebra forgets the name");
    }
    None
}
