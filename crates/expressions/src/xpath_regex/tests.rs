//! Tests of patterns by table: examples of the specifications, and differences from other dialects.

use super::*;

/// Whether a pattern with flags matches a text; `None` if it is wrong.
fn matched(text: &str, pattern: &str, flags: &str) -> Option<bool> {
    let regex = RegexCache::default().get(pattern, flags).unwrap();
    regex.map(|regex| regex.is_match(text))
}

const POEM: &str = "Kaum hat dies der Hahn gesehen,\n\
                    Fängt er auch schon an zu krähen:\n\
                    Kikeriki! Kikikerikih!!\n\
                    Tak, tak, tak! - da kommen sie.\n";

#[test]
fn the_examples_of_fn_matches() {
    for (text, pattern, flags, expected) in [
        ("abracadabra", "bra", "", true),
        ("abracadabra", "^a.*a$", "", true),
        ("abracadabra", "^bra", "", false),
        (POEM, "Kaum.*krähen", "", false),
        (POEM, "Kaum.*krähen", "s", true),
        (POEM, "^Kaum.*gesehen,$", "m", true),
        (POEM, "^Kaum.*gesehen,$", "", false),
        (POEM, "kiki", "i", true),
        ("helloworld", "hello world", "x", true),
        ("helloworld", "hello[ ]world", "x", false),
        ("hello world", "hello\\ sworld", "x", true),
        ("hello world", "hello world", "x", false),
        ("abcd", ".*", "q", false),
        ("Mr. B. Obama", "B. OBAMA", "iq", true),
    ] {
        assert_eq!(
            matched(text, pattern, flags),
            Some(expected),
            "{pattern} {flags}"
        );
    }
}

#[test]
fn classes_and_escapes_are_those_of_xml_schema() {
    for (pattern, flags, yes, no) in [
        (r"^[a-z-[aeiou]]$", "", "bz", "aeB-"),
        (r"^[A-Z-[OI]]$", "i", "AaZ", "OoIi1"),
        (r"^[^a-z-[1]]$", "", "A2", "a1z"),
        (r"^[\i-[:]]$", "", "A_é", "1:-"),
        (r"^[\w-[\d]]$", "", "aé", "1 -"),
        (r"^[a-z-[a-y-[b-d]]]$", "", "bcdz", "aey"),
        (r"^\i$", "", "A_:é", "1-. "),
        (r"^\c$", "", "A_:1-.·", " /("),
        (r"^\I$", "", "1-", "A_"),
        (r"^\C$", "", " /", "A-"),
        (r"^\d$", "", "0٣", "a½"),
        (r"^\D$", "", "a½", "0"),
        (r"^\w$", "", "aé1$+", "._- "),
        (r"^\W$", "", "._- ", "a$"),
        (r"^\s$", "", " \t\n\r", "\u{a0}\u{b}\u{2003}"),
        (r"^\S$", "", "\u{a0}a", " \t"),
        (r"^\p{Lu}$", "", "AÉ", "aé1"),
        (r"^\p{Lu}$", "i", "AÉ", "aé1"),
        (r"^[\p{Lu}b]$", "i", "AbB", "ac"),
        (r"^[^\p{Lu}b]$", "i", "ac", "AbB"),
        (r"^\P{L}$", "", "1-", "aA"),
        (r"^\p{IsBasicLatin}$", "", "a~", "é"),
        (r"^\P{IsBasicLatin}$", "", "é", "a~"),
        (r"^\p{IsGreek}$", "", "α", "a"),
        (r"^\p{IsLatin-1Supplement}$", "", "é", "eα"),
        (r"^[\p{IsHebrew}x]$", "", "אx", "y"),
        (r"^[a\-z]$", "", "a-z", "b"),
        (r"^[-a]$", "", "-a", "b"),
        (r"^[a-]$", "", "-a", "b"),
        (r"^[a-c-]$", "", "abc-", "d"),
        (r"^[a.$(){}*+?|]$", "", "a.$(){}*+?|", "b"),
        (r"^[\^a]$", "", "^a", "b"),
        (r"^[a^]$", "", "^a", "b"),
        (r"^[\n\t\[\]\\]$", "", "\n\t[]\\", "nt"),
        (r"^[&&~~-]$", "", "&~-", "a"),
        (r"^.$", "", "a\u{85}\u{2028}", "\n\r"),
        (r"^.$", "s", "a\n\r", ""),
        (r"^\$$", "", "$", "\\"),
        (r"^#$", "x", "#", "a"),
    ] {
        for (texts, expected) in [(yes, true), (no, false)] {
            for text in texts.chars() {
                let found = matched(text.encode_utf8(&mut [0; 4]), pattern, flags);
                assert_eq!(found, Some(expected), "{pattern} on {text:?} {flags}");
            }
        }
    }
}

#[test]
fn anchors_are_those_of_the_text_or_of_its_lines() {
    for (text, pattern, flags, expected) in [
        ("a\n", "a$", "", false),
        ("a\nb", "^b", "", false),
        ("a\nb", "^b", "m", true),
        ("a\nb", "a$", "m", true),
        ("a\nb", "b$", "m", true),
        // A newline that ends the text has no line behind it, and the text's end is then no line's
        // end.
        ("a\n", "a$", "m", true),
        ("a\n", "^$", "m", false),
        ("a\n", "\\n^", "m", false),
        ("a\n", "\\n$", "m", false),
        ("a\n\n", "^$", "m", true),
        ("a\n\n", "\\n^\\n", "m", true),
        ("a\n\n", "\\n\\n$", "m", false),
        ("a\n\n", "a\\n$\\n", "m", true),
        ("a\nb\n", "^b$", "m", true),
        ("a\n-\n", "^-", "m", true),
        ("a\né\n", "^é$", "m", true),
        ("\n", "^$", "m", true),
        ("\n", "^\\n$", "m", false),
        ("\n", "\\n", "m", true),
        ("a\n", "a.", "ms", true),
        ("a\n", "a$\\s", "m", true),
        ("a\n", "A$", "mi", true),
        ("a$\n", "$", "mq", true),
        ("", "^$", "m", true),
        ("a\r\nb", "a$", "m", false),
        ("a", "a^*$+", "", true),
        ("", "^$", "", true),
        ("ab", "(^a|^b)b$", "", true),
    ] {
        assert_eq!(
            matched(text, pattern, flags),
            Some(expected),
            "{pattern} on {text:?}"
        );
    }
}

#[test]
fn wrong_patterns_and_flags_are_errors() {
    for (pattern, flags) in [
        ("(", ""),
        (")", ""),
        ("a)", ""),
        ("[", ""),
        ("[]", ""),
        ("[]a]", ""),
        ("[^]", ""),
        ("[a", ""),
        ("[a[b]]", ""),
        ("[z-a]", ""),
        ("[a-\\d]", ""),
        ("[a-c-e]", ""),
        ("[\\w-a]", ""),
        ("[a-[b]c]", ""),
        ("[-[a]]", ""),
        ("[\\1]", ""),
        ("]", ""),
        ("}", ""),
        ("{", ""),
        ("a{", ""),
        ("a{}", ""),
        ("a{,2}", ""),
        ("a{2,1}", ""),
        ("a{x}", ""),
        ("a{+1}", ""),
        ("*a", ""),
        ("a|*", ""),
        ("(*)", ""),
        ("a**", ""),
        ("a++", ""),
        ("a{1}{2}", ""),
        ("a???", ""),
        ("(?=a)", ""),
        ("(?!a)", ""),
        ("(?<=a)", ""),
        ("(?<name>a)", ""),
        ("(?P<name>a)", ""),
        ("(?i)a", ""),
        ("(?i:a)", ""),
        ("\\b", ""),
        ("\\A", ""),
        ("\\z", ""),
        ("\\x41", ""),
        ("\\u0041", ""),
        ("\\0", ""),
        ("\\/", ""),
        ("\\", ""),
        ("[[:alpha:]]", ""),
        ("\\pL", ""),
        ("\\p{Latin}", ""),
        ("\\p{Cs}", ""),
        ("\\p{IsKlingon}", ""),
        ("\\p{IsBasic Latin}", ""),
        ("\\p{Lu", ""),
        ("a", "k"),
        ("a", "iu"),
    ] {
        assert_eq!(matched("a", pattern, flags), None, "{pattern} {flags}");
    }
    for pattern in [
        "", "()", "a|", "|", "(?:)", "a{0}", "a{2}", "a{1,}?", "a??", "(a|b)+?",
    ] {
        assert!(matched("a", pattern, "").is_some(), "{pattern}");
    }
}

#[test]
fn what_cannot_be_run_ends_the_query_and_says_why() {
    let huge = "a".repeat(PATTERN_BYTES_MAX + 1);
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    let deep_class = format!("{}[a]{}", "[a-".repeat(1000), "]".repeat(1000));
    for (pattern, expected) in [
        (r"(a)\1", "back-reference \\1"),
        ("(((a{100}){100}){100}){100}", "when compiled"),
        ("a{99999999999}", "repeats 99999999999 times"),
        (&deep, "deeper than 100"),
        (&deep_class, "deeper than 100"),
        (&huge, "100001 bytes"),
    ] {
        match RegexCache::default().get(pattern, "") {
            Err(Error::Unsupported(what)) => assert!(what.contains(expected), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_cache_is_bounded() {
    let cache = RegexCache::default();
    for number in 0..2 * CACHED_PATTERNS_MAX {
        assert!(cache.get(&format!("a{number}"), "").unwrap().is_some());
    }
    assert!(cache.patterns.lock().len() <= CACHED_PATTERNS_MAX);
}

#[test]
fn a_replacement_is_taken_apart() {
    let text = |text: &str| ReplacementPiece::Text(text.to_owned());
    let group = ReplacementPiece::Group;
    for (xpath, groups, expected) in [
        ("plain", 0, Some(vec![text("plain")])),
        ("", 0, Some(vec![])),
        ("$1a", 1, Some(vec![group(1), text("a")])),
        ("$12", 1, Some(vec![group(1), text("2")])),
        ("$12", 12, Some(vec![group(12)])),
        ("$0", 0, Some(vec![group(0)])),
        ("\\$1", 1, Some(vec![text("$1")])),
        ("a\\\\b", 0, Some(vec![text("a\\b")])),
        ("$", 0, None),
        ("$x", 0, None),
        ("\\n", 0, None),
    ] {
        assert_eq!(pieces(xpath, groups), expected, "{xpath}");
    }
}

#[test]
fn matches_are_replaced() {
    let context = crate::testing::context(&[]);
    for (text, pattern, flags, replacement, expected) in [
        ("abracadabra", "bra", "", "*", "a*cada*"),
        ("abracadabra", "a.*a", "", "*", "*"),
        ("abracadabra", "a.*?a", "", "*", "*c*bra"),
        ("abracadabra", "a(.)", "", "a$1$1", "abbraccaddabbra"),
        ("AAAA", "A+?", "", "b", "bbbb"),
        ("darted", "^(.*?)d(.*)$", "", "$1c$2", "carted"),
        ("ab", "(a)|(b)", "", "[$1|$2]", "[a|][|b]"),
        ("a", "a", "", "[$3]", "[]"),
        ("a\nb\n", "^.", "m", "<$0>", "<a>\n<b>\n"),
        ("a\nb\n", "\\n$", "m", "!", "a\nb\n"),
        ("é\né\n", "(.)$", "m", "$1$1", "éé\néé\n"),
        ("none", "x", "", "y", "none"),
    ] {
        let compiled = RegexCache::default().get(pattern, flags).unwrap().unwrap();
        let pieces = pieces(replacement, compiled.regex.captures_len() - 1).unwrap();
        let found = compiled
            .replace(text, &pieces, context.count_all())
            .unwrap();
        assert_eq!(found, expected, "{pattern} on {text:?}");
    }
}

#[test]
fn what_grows_beyond_measure_ends_the_query_and_says_why() {
    let context = crate::testing::context(&[]);
    let compiled = RegexCache::default().get("a", "").unwrap().unwrap();
    let text = "a".repeat(100_000);
    let long = [ReplacementPiece::Text("b".repeat(1_000))];
    match compiled.replace(&text, &long, context.count_all()) {
        Err(Error::Unsupported(what)) => {
            assert_eq!(
                what,
                "REPLACE that makes more than 67108864 bytes of a text of 100000"
            );
        }
        other => panic!("{:?}", other.map(|text| text.len())),
    }
    let short = [ReplacementPiece::Text("b".repeat(600))];
    assert_eq!(
        compiled
            .replace(&text, &short, context.count_all())
            .unwrap()
            .len(),
        60_000_000
    );
}

#[test]
fn replacements_of_one_text_have_a_time() {
    let context = crate::testing::context(&[]);
    let pattern = ".*[^A-Z]|[A-Z]";
    let compiled = RegexCache::default().get(pattern, "").unwrap().unwrap();
    let text = "A".repeat(1_000);
    let piece = [ReplacementPiece::Text("b".to_owned())];
    match compiled.replace_within(&text, &piece, context.count_all(), Duration::ZERO) {
        Err(Error::Unsupported(what)) => {
            assert_eq!(
                what,
                "REPLACE that takes more than 0ns for a text of 1000 bytes"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        compiled
            .replace(&text, &piece, context.count_all())
            .unwrap(),
        "b".repeat(1_000)
    );
}
