//! Sibling queries: the same shape with other constants.
//!
//! An engine keeps the plan of a query for later ones of its shape
//! ([`Variant::KEPT`](super::Variant::KEPT)). So that one is kept when a query comes, its siblings
//! are prepared before: its text with other nodes, whole numbers and texts.

use orrery_syntax::{Keyword, Lexer, Token, TokenKind};

/// Nodes that stand for each other. A shape takes IRIs out that are written in full.
const NODES: [(&str, &str); 4] = [
    (":a", "<http://example.org/a>"),
    (":b", "<http://example.org/b>"),
    (":c", "<http://example.org/c>"),
    (":d", "<http://example.org/d>"),
];
/// Texts that stand for each other.
const TEXTS: [&str; 4] = ["a", "ab", "b", "a longer string"];

/// The query with its nodes written in full, and `count` siblings of it.
pub(super) fn siblings(text: &str, count: usize) -> (String, Vec<String>) {
    let others = (1..=count).map(|shift| shifted(text, shift)).collect();
    (shifted(text, 0), others)
}

/// The text with some of its constants replaced: each third one by a bit of the number, so that
/// those that must stay for a plan to be taken again mostly do.
fn shifted(text: &str, shift: usize) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut copied = 0;
    let mut lexer = Lexer::new(text);
    let mut last: Option<Token> = None;
    // Constants do not all move alike, or those that are equal to each other would always be.
    let mut place = 0;
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End {
            break;
        }
        let is_moved = shift >> (place % 3) & 1 == 1;
        let by = if is_moved { shift * (place + 1) } else { 0 };
        let new = match token.kind {
            TokenKind::PrefixedName => {
                let name = token.text(text);
                let at = NODES.iter().position(|(short, _)| *short == name);
                at.map(|at| NODES[(at + by) % NODES.len()].1.to_owned())
            }
            TokenKind::Integer if shift > 0 && is_term(last) => {
                let number = token.text(text).parse::<u64>().ok();
                number.map(|number| (number + by as u64 % 4).to_string())
            }
            TokenKind::String if shift > 0 => {
                let quoted = token.text(text);
                let inner = quoted.get(1..quoted.len().saturating_sub(1));
                let at = TEXTS.iter().position(|text| Some(*text) == inner);
                let mark = quoted.chars().next().unwrap_or('"');
                at.map(|at| format!("{mark}{}{mark}", TEXTS[(at + by) % TEXTS.len()]))
            }
            _ => None,
        };
        if let Some(new) = new {
            out.push_str(text.get(copied..token.start as usize).unwrap_or_default());
            out.push_str(&new);
            copied = token.end as usize;
            place += 1;
        }
        last = Some(token);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

/// Whether a number after this token is a term, and no bound of rows.
fn is_term(last: Option<Token>) -> bool {
    last.is_none_or(|last| {
        !matches!(
            last.kind,
            TokenKind::Keyword(Keyword::Limit | Keyword::Offset)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_have_other_constants_and_the_same_rest() {
        let text = "SELECT * { :a :p ?x FILTER(?x > 5 || ?x = 'a') } LIMIT 2";
        let (own, others) = siblings(text, 3);
        assert_eq!(
            own,
            "SELECT * { <http://example.org/a> :p ?x FILTER(?x > 5 || ?x = 'a') } LIMIT 2"
        );
        assert_eq!(
            others,
            [
                "SELECT * { <http://example.org/b> :p ?x FILTER(?x > 5 || ?x = 'a') } LIMIT 2",
                "SELECT * { <http://example.org/a> :p ?x FILTER(?x > 5 || ?x = 'a') } LIMIT 2",
                "SELECT * { <http://example.org/d> :p ?x FILTER(?x > 7 || ?x = 'a') } LIMIT 2",
            ]
        );
    }
}
