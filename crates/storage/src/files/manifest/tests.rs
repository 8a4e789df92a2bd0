//! Tests of the manifest: it reads back, and unknown parts are preserved or refused by name.

use super::*;
use crate::files::components::FileEntry;
use crate::files::io::LocalFileSystem;

fn example() -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        generation: 3,
        identity: None,
        features: BTreeMap::from([(LANGUAGE_TAGS.to_owned(), Need::Optional)]),
        bases: vec![BaseEntry {
            commit: 2,
            time_us: 1_000,
            quad_count: 17,
            term_count: 9,
            next_blank_node: 2,
            loaded: Some(Loaded {
                added: 17,
                removed: 0,
            }),
            generation: 3,
            segment: DirectoryComponents::of_files(
                "segment-000003".to_owned(),
                vec![FileEntry::new("psog.col".to_owned(), 400, 5)],
            ),
            deltas: Vec::new(),
            logs: vec![LogEntry {
                name: "000003.log".to_owned(),
                first_commit: 3,
                tables: Vec::new(),
                further: BTreeMap::new(),
            }],
            tables: None,
            text: None,
            further: BTreeMap::new(),
        }],
        language_tags: vec!["de".to_owned(), "en-GB".to_owned()],
        text: None,
        prefixes: Vec::new(),
        further: BTreeMap::new(),
    }
}

#[test]
fn the_manifest_of_version_1_is_read_as_a_base_without_changes() {
    let mut bytes = br#"{"format_version": 1, "generation": 3, "quad_count": 17, "term_count": 9,
            "next_blank_node": 2, "segment": {"name": "segment-000003", "files": []}}"#
        .to_vec();
    let line = checksum_line(&bytes);
    bytes.extend_from_slice(line.as_bytes());
    let manifest = Manifest::parse(&bytes, Path::new("MANIFEST")).unwrap();
    let base = manifest.present();
    assert_eq!((manifest.generation, base.commit), (3, 2));
    assert_eq!((base.quad_count, base.term_count), (17, 9));
    assert_eq!(manifest.identity, None);
    assert!(base.deltas.is_empty() && base.logs.is_empty());
}

/// A change of these bytes needs a new format version.
#[test]
fn the_text_of_a_manifest_is_this() {
    let bytes = example().to_bytes(Path::new("MANIFEST")).unwrap();
    let expected = r#"{
  "format_version": 4,
  "generation": 3,
  "features": {
    "language-tags": "optional"
  },
  "bases": [
    {
      "commit": 2,
      "time_us": 1000,
      "quad_count": 17,
      "term_count": 9,
      "next_blank_node": 2,
      "loaded": {
        "added": 17,
        "removed": 0
      },
      "generation": 3,
      "segment": {
        "name": "segment-000003",
        "components": [
          {
            "kind": "permutation",
            "order": "psog",
            "version": 1,
            "need": "required",
            "files": [
              {
                "name": "psog.col",
                "bytes": 400,
                "crc32c": 5
              }
            ]
          }
        ]
      },
      "deltas": [],
      "logs": [
        {
          "name": "000003.log",
          "first_commit": 3
        }
      ]
    }
  ],
  "language_tags": [
    "de",
    "en-GB"
  ]
}
"#;
    let text = String::from_utf8(bytes).unwrap();
    let (json, _) = text.rsplit_once("crc32c ").unwrap();
    assert_eq!(json, expected);
}

/// The example with another text in place of one.
fn parsed_with(from: &str, to: &str) -> Result<Manifest> {
    let bytes = example().to_bytes(Path::new("MANIFEST")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (json, _) = text.rsplit_once("crc32c ").unwrap();
    assert!(json.contains(from));
    let mut changed = json.replace(from, to).into_bytes();
    let line = checksum_line(&changed);
    changed.extend_from_slice(line.as_bytes());
    Manifest::parse(&changed, Path::new("MANIFEST"))
}

#[test]
fn what_must_be_understood_and_is_not_refuses_the_database_by_name() {
    for (from, to, named) in [
        (
            "\"permutation\"",
            "\"pages\"",
            "the component 'pages' of version 1 in segment-000003",
        ),
        (
            "\"version\": 1",
            "\"version\": 2",
            "the component 'permutation' of version 2",
        ),
        (
            "\"psog\"",
            "\"opgs\"",
            "the component 'permutation' of version 1",
        ),
        (
            "\"language-tags\": \"optional\"",
            "\"shards\": \"required\"",
            "the feature 'shards'",
        ),
    ] {
        let error = parsed_with(from, to).unwrap_err();
        assert!(matches!(error, Error::UnknownPart { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(named), "{message}");
        assert!(message.contains("use the program that wrote it, or a newer one"));
    }
}

#[test]
fn what_may_be_passed_over_is_kept_as_it_is() {
    let added = r#""components": [
            { "kind": "text", "version": 3, "need": "optional", "stemmer": "en",
              "files": [{ "name": "text.idx", "bytes": 5, "crc32c": 7 }] },"#;
    let read = parsed_with("\"components\": [", added).unwrap();
    assert_eq!(read.present().segment.known().count(), 1);
    assert_eq!(read.present().segment.bytes(), 405);
    let bytes = read.to_bytes(Path::new("MANIFEST")).unwrap();
    let again = Manifest::parse(&bytes, Path::new("MANIFEST")).unwrap();
    assert_eq!(again, read);
    assert!(
        String::from_utf8(bytes)
            .unwrap()
            .contains("\"stemmer\": \"en\"")
    );
    let read = parsed_with("\"language-tags\"", "\"hints\"").unwrap();
    let bytes = read.to_bytes(Path::new("MANIFEST")).unwrap();
    let again = Manifest::parse(&bytes, Path::new("MANIFEST")).unwrap();
    assert_eq!(again.features.get("hints"), Some(&Need::Optional));
}

#[test]
fn unknown_fields_are_kept_wherever_they_stand() {
    let delta = r#""deltas": [{ "commit": 3, "time_us": 1, "quad_count": 17, "term_count": 0, "next_blank_node": 2,
            "has_named_graphs": false, "in-delta": [1],
            "delta": { "name": "delta-000004", "components": [], "in-delta-directory": {} } }]"#;
    for (from, to, field) in [
        (
            "\"generation\": 3,\n  \"features\"",
            "\"in-manifest\": { \"a\": 1 }, \"generation\": 3, \"features\"",
            "in-manifest",
        ),
        (
            "\"commit\": 2",
            "\"in-base\": \"x\", \"commit\": 2",
            "in-base",
        ),
        (
            "\"name\": \"segment-000003\"",
            "\"in-directory\": 1.5, \"name\": \"segment-000003\"",
            "in-directory",
        ),
        (
            "\"bytes\": 400",
            "\"in-file\": null, \"bytes\": 400",
            "in-file",
        ),
        (
            "\"first_commit\": 3",
            "\"in-log\": true, \"first_commit\": 3",
            "in-log",
        ),
        ("\"deltas\": []", delta, "in-delta"),
        ("\"deltas\": []", delta, "in-delta-directory"),
    ] {
        let read = parsed_with(from, to).unwrap();
        let bytes = read.to_bytes(Path::new("MANIFEST")).unwrap();
        let again = Manifest::parse(&bytes, Path::new("MANIFEST")).unwrap();
        assert_eq!(again, read);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(&format!("\"{field}\":")), "{field}: {text}");
    }
}

#[test]
fn an_unknown_required_feature_is_named_whatever_else_it_changes() {
    let to =
        "\"features\": { \"shards\": \"required\" }, \"bases\": { \"rows\": 7 }, \"old_bases\"";
    let features = "\"features\": {\n    \"language-tags\": \"optional\"\n  },\n  \"bases\"";
    let error = parsed_with(features, to).unwrap_err();
    assert!(matches!(error, Error::UnknownPart { .. }), "{error}");
    assert!(
        error.to_string().contains("the feature 'shards'"),
        "{error}"
    );
    let optional = to.replace("required", "optional");
    let error = parsed_with(features, &optional).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn directories_of_before_are_lists_of_files_whose_names_say_what_they_are() {
    let from = r#""components": [
          {
            "kind": "permutation",
            "order": "psog",
            "version": 1,
            "need": "required",
            "files": [
              {
                "name": "psog.col",
                "bytes": 400,
                "crc32c": 5
              }
            ]
          }
        ]"#;
    let files = r#""files": [{ "name": "psog.col", "bytes": 400, "crc32c": 5 }]"#;
    let read = parsed_with(from, files).unwrap();
    assert_eq!(read.bases, example().bases);
    let stranger = files.replace("psog.col", "psog.new");
    let error = parsed_with(from, &stranger).unwrap_err().to_string();
    assert!(error.contains("'psog.new'"), "{error}");
}

#[test]
fn a_published_manifest_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let written = example();
    written.publish(&LocalFileSystem, directory.path()).unwrap();
    let read = Manifest::read(&LocalFileSystem, directory.path()).unwrap();
    assert_eq!(read, written);
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let path = Path::new("MANIFEST");
    let bytes = example().to_bytes(path).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(
            Manifest::parse(&damaged, path),
            Err(Error::Corrupt { .. })
        ));
    }
    for length in 0..bytes.len() {
        assert!(Manifest::parse(&bytes[..length], path).is_err());
    }
}

#[test]
fn another_version_is_told_as_such() {
    let mut json = b"{\"format_version\": 5, \"shape\": \"unknown\"}\n".to_vec();
    let line = checksum_line(&json);
    json.extend_from_slice(line.as_bytes());
    assert!(matches!(
        Manifest::parse(&json, Path::new("MANIFEST")),
        Err(Error::FormatVersion { found: 5, .. })
    ));
}

#[test]
fn what_is_no_database_is_said_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let read = |path: &Path| {
        Manifest::read(&LocalFileSystem, path)
            .unwrap_err()
            .to_string()
    };
    assert!(read(directory.path()).contains("the directory is empty"));
    let file = directory.path().join("notes.txt");
    std::fs::write(&file, "x").unwrap();
    assert!(read(directory.path()).contains("there is no MANIFEST in it"));
    assert!(read(&file).contains("is a file, not a directory"));
    assert!(read(&directory.path().join("none")).contains("no such file or directory"));
}
