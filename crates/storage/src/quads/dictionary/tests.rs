use std::collections::BTreeSet;

use proptest::prelude::*;

use super::page::LARGE_KEY_BYTES;
use super::*;
use crate::files::io::LocalFileSystem;

/// A key in memory as a source.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl KeySource for Bytes {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn open(&self) -> Result<Box<dyn std::io::Read + Send + '_>> {
        Ok(Box::new(self.0.as_slice()))
    }
}

/// A dictionary of these keys. Of the large ones every second is pushed as a stream.
fn build(keys: &BTreeSet<Vec<u8>>) -> (tempfile::TempDir, Dictionary) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer =
        DictionaryWriter::create_with_threads(&LocalFileSystem, directory.path(), 2).unwrap();
    let is_streamed =
        |rank: usize, key: &[u8]| key.len() > LARGE_KEY_BYTES && rank.is_multiple_of(2);
    for (rank, key) in keys.iter().enumerate() {
        let given = match is_streamed(rank, key) {
            true => writer.push_streamed(key, Arc::new(Bytes(key.clone()))),
            false => writer.push(key),
        };
        assert_eq!(given.unwrap(), rank as u64);
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.terms, keys.len() as u64);
    let dictionary = Dictionary::open(&LocalFileSystem, directory.path()).unwrap();
    let mut cursor = dictionary.iter(0);
    for (rank, key) in keys.iter().enumerate() {
        let streamed = cursor.streamed(rank as u64).unwrap();
        assert_eq!(streamed.is_some(), is_streamed(rank, key));
        if let Some(streamed) = streamed {
            let mut copy = Vec::new();
            std::io::Read::read_to_end(&mut streamed.open().unwrap(), &mut copy).unwrap();
            assert_eq!((&copy, streamed.whole().unwrap()), (key, key.as_slice()));
        }
    }
    drop(cursor);
    (directory, dictionary)
}

/// Everything that the dictionary answers agrees with the sorted set, for keys in it and others.
fn check(keys: &BTreeSet<Vec<u8>>, others: &[Vec<u8>]) {
    let (_directory, dictionary) = build(keys);
    let sorted: Vec<&Vec<u8>> = keys.iter().collect();
    assert_eq!(dictionary.len(), keys.len() as u64);
    let iris = keys.iter().filter(|key| key.first() == Some(&b'I'));
    if keys
        .iter()
        .is_sorted_by_key(|key| key.first() != Some(&b'I'))
    {
        assert_eq!(dictionary.iri_count(), iris.count() as u64);
    }
    let mut out = Vec::new();
    for (rank, key) in sorted.iter().enumerate() {
        dictionary.key(rank as u64, &mut out).unwrap();
        assert_eq!(&&out, key);
    }
    let mut cursor = dictionary.iter(0);
    for key in &sorted {
        assert_eq!(cursor.next().unwrap(), Some(key.as_slice()));
    }
    assert_eq!(cursor.next().unwrap(), None);
    let mut ranks: Vec<u64> = (0..keys.len() as u64).flat_map(|r| [r, r]).collect();
    ranks.extend((0..keys.len() as u64).rev());
    // Of groups of 16, these ask for few keys, in all places.
    for stride in [2, 3, 5, 7, 15, 16, 17, 31] {
        ranks.extend((stride / 2..keys.len() as u64).step_by(stride as usize));
    }
    let mut calls = 0;
    dictionary
        .keys(&ranks, |place, key| {
            assert_eq!(key, sorted[ranks[place] as usize].as_slice());
            calls += 1;
        })
        .unwrap();
    assert_eq!(calls, ranks.len());
    let mut probes: Vec<Vec<u8>> = keys.iter().cloned().collect();
    probes.extend(others.iter().cloned());
    for key in keys {
        probes.push([key.as_slice(), b"\0"].concat());
        probes.push(key[..key.len() / 2].to_vec());
        probes.push(key[..key.len().saturating_sub(1)].to_vec());
    }
    for probe in probes {
        let bound = sorted.partition_point(|key| **key < probe) as u64;
        assert_eq!(dictionary.lower_bound(&probe).unwrap(), bound);
        let expected = keys.contains(&probe).then_some(bound);
        assert_eq!(dictionary.find(&probe).unwrap(), expected);
    }
    assert!(dictionary.key(keys.len() as u64, &mut out).is_err());
    assert!(dictionary.terms.verify_all().is_empty());
}

/// What a search of keys that are stored finds is what is there.
fn check_search(dictionary: &Dictionary, keys: &BTreeSet<Vec<u8>>, needle: &[u8]) {
    let ranks: Vec<u64> = (0..keys.len() as u64).collect();
    for ignores_case in [false, true] {
        let in_case = |bytes: &[u8]| match ignores_case {
            true => bytes.to_ascii_lowercase(),
            false => bytes.to_vec(),
        };
        let Some(search) = dictionary.key_search(needle, ignores_case) else {
            assert!(needle.is_empty() || needle.len() > 100);
            continue;
        };
        let wanted = in_case(needle);
        for text in [KeyText::AfterFirstByte, KeyText::AfterFirstZero] {
            let expected: Vec<bool> = keys
                .iter()
                .map(|key| {
                    let start = match text {
                        KeyText::AfterFirstByte => 1,
                        KeyText::AfterFirstZero => match key.iter().position(|&byte| byte == 0) {
                            Some(zero) => zero + 1,
                            None => key.len(),
                        },
                    };
                    let bytes = in_case(key.get(start..).unwrap_or_default());
                    bytes.windows(wanted.len()).any(|part| part == wanted)
                })
                .collect();
            for stride in [1, 5, 17] {
                let asked: Vec<u64> = ranks.iter().copied().step_by(stride).collect();
                let mut answers = Vec::new();
                dictionary
                    .keys_containing(&asked, &search, text, |place, is_found| {
                        assert_eq!(place, answers.len());
                        answers.push(is_found);
                    })
                    .unwrap();
                let expected: Vec<bool> = expected.iter().copied().step_by(stride).collect();
                assert_eq!(answers, expected, "{needle:?} {ignores_case} {text:?}");
            }
        }
    }
}

fn odd_key() -> impl Strategy<Value = Vec<u8>> {
    let long = |byte: u8, length: usize, end: Vec<u8>| {
        let mut key = vec![b'S'];
        key.resize(length, byte);
        key.extend(end);
        key
    };
    prop_oneof![
        4 => any::<Vec<u8>>(),
        2 => Just(Vec::new()),
        4 => proptest::collection::vec(0u8..2, 0..12),
        4 => "I(http://example.org/(a|b|item)/[0-9]{1,4})".prop_map(String::into_bytes),
        4 => "S((alpha|beta|gamma|delta)[ ,.]{1,2}){0,8}".prop_map(String::into_bytes),
        2 => "T(http://example.org/t)\0[0-9.]{1,6}".prop_map(String::into_bytes),
        3 => (0u8..2, 250usize..262, any::<Vec<u8>>()).prop_map(move |(b, l, e)| long(b, l, e)),
        3 => (0u8..2, 4090usize..4100, any::<Vec<u8>>()).prop_map(move |(b, l, e)| long(b, l, e)),
        1 => (0u8..2, 30_000usize..70_000, any::<Vec<u8>>()).prop_map(move |(b, l, e)| long(b, l, e)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_set_of_keys_is_found_again(
        keys in proptest::collection::btree_set(odd_key(), 0..120),
        others in proptest::collection::vec(odd_key(), 0..20),
    ) {
        check(&keys, &others);
    }

    #[test]
    fn any_bytes_are_found_in_the_keys_that_have_them(
        keys in proptest::collection::btree_set(odd_key(), 1..120),
        from in any::<proptest::sample::Index>(),
        part in any::<(proptest::sample::Index, proptest::sample::Index)>(),
        other in odd_key(),
    ) {
        let (_directory, dictionary) = build(&keys);
        let key = keys.iter().nth(from.index(keys.len())).unwrap();
        let (start, end) = (part.0.index(key.len() + 1), part.1.index(key.len() + 1));
        let needle = &key[start.min(end)..start.max(end)];
        check_search(&dictionary, &keys, needle);
        check_search(&dictionary, &keys, &needle[..needle.len().min(3)]);
        check_search(&dictionary, &keys, &other);
    }
}

#[test]
fn words_are_searched_as_they_are_encoded() {
    let mut keys = BTreeSet::new();
    for number in 0..4_000 {
        keys.insert(format!("S{}", prose(number, 20, 3000)).into_bytes());
        keys.insert(format!("Len\0{}", prose(number + 7_000, 30, 3000)).into_bytes());
        // Unknown words and gaps, where runs of symbols stand between codes.
        let odd = format!(
            "Lfr\0{} - {number}x{} .",
            prose(number, 3, 3000),
            word(9_999_999 + number)
        );
        keys.insert(odd.into_bytes());
    }
    for number in 0..20 {
        keys.insert(format!("S{}", prose(number, 900, 3000)).into_bytes());
    }
    let (_directory, dictionary) = build(&keys);
    let (first, second) = (word(scramble(0) % 3000), word(scramble(1) % 3000));
    let across = format!("{} {}", &first[1..], &second[..2]);
    for needle in [
        first.as_str(),
        &first[1..],
        &first[..first.len() - 1],
        &across,
        &format!(" {second}"),
        &format!("{second} "),
        " ",
        "e",
        "en",
        "  ",
        " - 1",
        "x",
        "\0",
        "aa",
        &prose(0, 12, 3000),
        &prose(0, 30, 3000),
    ] {
        check_search(&dictionary, &keys, needle.as_bytes());
        check_search(&dictionary, &keys, needle.to_uppercase().as_bytes());
    }
}

/// Numbers that look random but are the same in every run.
fn scramble(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

fn word(number: u64) -> String {
    let letters = |n: u64| char::from(b'a' + (n % 26) as u8);
    let length = 4 + number % 7;
    (0..length)
        .map(|i| letters(scramble(number * 11 + i)))
        .collect()
}

fn prose(number: u64, words: u64, vocabulary: u64) -> String {
    let words: Vec<String> = (0..words)
        .map(|i| word(scramble(number * 1000 + i) % vocabulary))
        .collect();
    words.join(" ")
}

#[test]
fn many_pages_with_a_vocabulary_round_trip() {
    let mut keys = BTreeSet::new();
    for number in 0..20_000 {
        keys.insert(
            format!(
                "Ihttp://example.org/instances/dataFrom{}/Offer{number}",
                number % 7
            )
            .into_bytes(),
        );
    }
    for number in 0..6_000 {
        keys.insert(format!("S{}", prose(number, 20, 3000)).into_bytes());
        keys.insert(format!("Len\0{}", prose(number + 7_000, 3, 3000)).into_bytes());
    }
    for number in 0..20 {
        keys.insert(format!("S{}", prose(number, 900, 3000)).into_bytes());
    }
    // Most probes come from the keys themselves, so check only some of them at full length.
    check(&keys, &[b"Smissing".to_vec(), b"Z".to_vec()]);
    let plain: usize = keys.iter().map(Vec::len).sum();
    let (_directory, dictionary) = build(&keys);
    let stored = dictionary.terms.summary().bytes + dictionary.large.summary().bytes;
    assert!(stored * 2 < plain as u64, "{stored} of {plain}");
}

#[test]
fn a_change_of_language_makes_it_learn_again() {
    let mut keys = BTreeSet::new();
    for number in 0..12_000 {
        keys.insert(format!("Len\0{}", prose(number, 14, 900)).into_bytes());
        // Other words: the seed of the second language's words is far away.
        let words = (0..14).map(|i| word(1_000_000 + scramble(number * 99 + i) % 900));
        keys.insert(format!("Lfr\0{}", words.collect::<Vec<_>>().join(" ")).into_bytes());
    }
    let directory = tempfile::tempdir().unwrap();
    let mut writer = DictionaryWriter::create(&LocalFileSystem, directory.path()).unwrap();
    for key in &keys {
        writer.push(key).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.vocabularies, 2, "{summary:?}");
    assert!(summary.file_bytes * 2 < summary.plain_bytes, "{summary:?}");
    let dictionary = Dictionary::open(&LocalFileSystem, directory.path()).unwrap();
    let mut cursor = dictionary.iter(0);
    for key in &keys {
        assert_eq!(cursor.next().unwrap(), Some(key.as_slice()));
    }
}

#[test]
fn keys_that_differ_only_far_behind_the_separators_are_told_apart() {
    // Neighbouring pages of keys that share more than a separator holds, so that searches must
    // compare whole keys.
    let keys: BTreeSet<Vec<u8>> = (0..400u32)
        .map(|number| {
            let mut key = vec![b'S'; if number % 2 == 0 { 3000 } else { 5000 }];
            key.extend(number.to_be_bytes());
            key
        })
        .collect();
    check(&keys, &[vec![b'S'; 2999], vec![b'S'; 6000]]);
}

#[test]
fn keys_must_ascend() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = DictionaryWriter::create(&LocalFileSystem, directory.path()).unwrap();
    writer.push(b"b").unwrap();
    for key in [b"b", b"a"] {
        assert!(matches!(writer.push(key), Err(Error::InvalidInput { .. })));
    }
}

#[test]
fn a_flipped_bit_never_gives_another_key() {
    let keys: BTreeSet<Vec<u8>> = (0..300)
        .map(|number| format!("S{}", prose(number, 12, 200)).into_bytes())
        .chain([vec![b'S'; 9000]])
        .collect();
    let (directory, dictionary) = build(&keys);
    drop(dictionary);
    let sorted: Vec<&Vec<u8>> = keys.iter().collect();
    for name in [TERMS_FILE, LARGE_FILE] {
        let path = directory.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        for step in 0..400 {
            let bit = scramble(step) as usize % (whole.len() * 8);
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            let Ok(dictionary) = Dictionary::open(&LocalFileSystem, directory.path()) else {
                continue;
            };
            let mut out = Vec::new();
            for (rank, key) in sorted.iter().enumerate() {
                if dictionary.key(rank as u64, &mut out).is_ok() {
                    assert_eq!(&&out, key);
                }
                if let Ok(found) = dictionary.find(key) {
                    assert_eq!(found, Some(rank as u64));
                }
            }
        }
        std::fs::write(&path, &whole).unwrap();
    }
}
