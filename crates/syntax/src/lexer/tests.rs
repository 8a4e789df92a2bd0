use super::*;
use crate::word::Keyword;

fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(|| {
        let token = lexer.next_token();
        (token.kind != TokenKind::End).then(|| (token.kind, token.text(text)))
    });
    tokens.collect()
}

fn texts(text: &str) -> Vec<&str> {
    kinds(text).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn the_longest_token_is_taken() {
    assert_eq!(
        texts("?a<?b&&?c>?d ?a < ?b <= 5<<(x)>>{|~|}^^^||!=!"),
        [
            "?a", "<?b&&?c>", "?d", "?a", "<", "?b", "<=", "5", "<<(", "x", ")>>", "{|", "~", "|}",
            "^^", "^", "||", "!=", "!"
        ]
    );
    assert_eq!(
        texts("1.5 1. 1.e3 .5 1e5 1e 12.a:b 1.5.5"),
        [
            "1.5", "1", ".", "1.e3", ".5", "1e5", "1", "e", "12", ".", "a:b", "1.5", ".5"
        ]
    );
}

#[test]
fn names_hold_dots_but_do_not_end_with_them() {
    assert_eq!(
        texts("ex:a.b.c. a.b:c.d .. _:l.x. WHERE. a-b:c a-b :x :"),
        [
            "ex:a.b.c", ".", "a.b:c.d", ".", ".", "_:l.x", ".", "WHERE", ".", "a-b:c", "a", "-",
            "b", ":x", ":"
        ]
    );
    assert_eq!(
        texts(r"e:%41\,b\ e:\~ é:ü·"),
        [r"e:%41\,b", r"\", r"e:\~", "é:ü·"]
    );
}

#[test]
fn strings_end_where_they_do() {
    assert_eq!(
        kinds("'a' \"b\\\"c\" '''d'e''f''' \"\""),
        ["'a'", "\"b\\\"c\"", "'''d'e''f'''", "\"\""].map(|text| (TokenKind::String, text))
    );
    for text in ["'a", "'a\nb'", "'''a''", "\"a\\", "'"] {
        assert_eq!(kinds(text)[0].0, TokenKind::UnclosedString, "{text}");
    }
}

#[test]
fn words_comments_and_tags() {
    assert_eq!(
        kinds("select # x\n@en-GB--ltr $x ? a")
            .into_iter()
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>(),
        [
            TokenKind::Keyword(Keyword::Select),
            TokenKind::LanguageTag,
            TokenKind::Variable,
            TokenKind::QuestionMark,
            TokenKind::Keyword(Keyword::A),
        ]
    );
}

#[test]
fn every_text_is_taken_apart_to_its_end() {
    for text in [
        "é",
        "\u{b7}a",
        "\u{0}",
        "\\",
        "@",
        "_:",
        "$",
        "&",
        "\u{10ffff}",
        "<é> <\u{1}>",
        "%",
        "'\\é",
    ] {
        let mut lexer = Lexer::new(text);
        let mut end = 0;
        for _ in 0..20 {
            let token = lexer.next_token();
            assert!(
                token.start as usize >= end && text.is_char_boundary(token.end as usize),
                "{text}"
            );
            end = token.end as usize;
        }
        assert_eq!(end, text.len(), "{text}");
    }
}
