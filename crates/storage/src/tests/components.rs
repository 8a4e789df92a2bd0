//! Tests of files from newer programs: unknown parts are preserved, or refused by name.

use super::*;
use crate::database::backup::StateFiles;
use crate::files::io::LocalFileSystem;
use crate::files::manifest::Manifest;
use crate::writer::Durability;

/// Replaces text in the manifest, whose checksum is made anew.
fn edit_manifest(directory: &Path, from: &str, to: &str) {
    let path = directory.join("MANIFEST");
    let text = std::fs::read_to_string(&path).unwrap();
    let (json, _) = text.rsplit_once("crc32c ").unwrap();
    let edited = json.replacen(from, to, 1);
    assert_ne!(edited, json, "{json}");
    let checksum = crc32c::crc32c(edited.as_bytes());
    std::fs::write(&path, format!("{edited}crc32c {checksum:08x}\n")).unwrap();
}

/// A text index beside the permutations of the base.
fn add_component(directory: &Path, need: &str) -> PathBuf {
    let database = Database::open(directory).unwrap();
    let snapshot = database.snapshot();
    let file = snapshot.directory().join("text.idx");
    std::fs::write(&file, "words").unwrap();
    let component = format!(
        r#""components": [{{ "kind": "text", "version": 3, "need": "{need}", "stemmer": "en",
            "files": [{{ "name": "text.idx", "bytes": 5, "crc32c": 7 }}] }},"#
    );
    edit_manifest(directory, "\"components\": [", &component);
    file
}

fn insert(database: &Arc<Database>) {
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    let [s, p, o] = ["s-new", "p-new", "o-new"].map(|name| transaction.intern(&iri(name)).unwrap());
    transaction
        .insert(&mut vec![[s, p, o, TermId::DEFAULT_GRAPH]])
        .unwrap();
    let options = CommitOptions {
        durability: Durability::Durable,
        ..CommitOptions::default()
    };
    transaction.commit(options).unwrap().wait().unwrap();
    assert!(writer.checkpoint().unwrap());
}

#[test]
fn an_optional_component_of_a_newer_program_is_passed_over_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let quads = some_quads(true);
    build_small(path, &quads).unwrap();
    let file = add_component(path, "optional");
    edit_manifest(
        path,
        "\"generation\"",
        "\"further-of-database\": [1], \"generation\"",
    );
    edit_manifest(path, "\"segment\"", "\"further-of-base\": 2, \"segment\"");
    let database = Arc::new(Database::open(path).unwrap());
    insert(&database);
    drop(database);
    let manifest = Manifest::read(&LocalFileSystem, path).unwrap();
    let text = String::from_utf8(manifest.to_bytes(path).unwrap()).unwrap();
    for kept in [
        "\"stemmer\": \"en\"",
        "\"further-of-database\"",
        "\"further-of-base\": 2",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"words");
    let held = StateFiles::hold(
        &LocalFileSystem,
        path,
        &ReadScope::all_graphs(Asker::Process),
    )
    .unwrap();
    assert!(
        held.files
            .iter()
            .any(|held| held.name.ends_with("/text.idx"))
    );
    // What is not known is not checked, and not counted.
    let (mut last, mut bytes_total) = (0, 0);
    let found = verify(path, |progress| {
        (last, bytes_total) = (progress.bytes_done, progress.bytes_total);
    });
    assert!(found.unwrap().is_empty());
    let segment = &manifest.present().segment;
    assert_eq!(bytes_total, segment.bytes() - 5);
    let (_, checked_last) = segment.known_files().last().unwrap();
    assert_eq!(last + checked_last.bytes, bytes_total);
    let reopened = Database::open(path).unwrap();
    assert_eq!(
        reopened.snapshot().quad_count(),
        quads.iter().collect::<BTreeSet<_>>().len() as u64 + 1
    );
}

#[test]
fn a_required_one_refuses_the_database_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    build_small(directory.path(), &some_quads(false)).unwrap();
    add_component(directory.path(), "required");
    let error = Database::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::UnknownPart { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("the component 'text' of version 3 in segment-"),
        "{message}"
    );
}

#[test]
fn a_database_of_format_3_is_read_and_goes_on_as_one_of_this_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    build_small(path, &some_quads(true)).unwrap();
    let expected = dump(&Database::open(path).unwrap().snapshot()).unwrap();
    let manifest = Manifest::read(&LocalFileSystem, path).unwrap();
    let files: Vec<String> = manifest
        .present()
        .segment
        .files()
        .map(|file| serde_json::to_string(file).unwrap())
        .collect();
    let text = std::fs::read_to_string(path.join("MANIFEST")).unwrap();
    let start = text.find("\"components\": [").unwrap();
    let end = text.find("\"deltas\"").unwrap();
    let end = start + text[start..end].rfind('}').unwrap();
    let list = format!("\"files\": [{}]\n", files.join(","));
    edit_manifest(path, &text[start..end], &list);
    edit_manifest(path, "\"format_version\": 4", "\"format_version\": 3");
    let database = Arc::new(Database::open(path).unwrap());
    assert_eq!(dump(&database.snapshot()).unwrap(), expected);
    insert(&database);
    drop(database);
    let text = std::fs::read_to_string(path.join("MANIFEST")).unwrap();
    assert!(text.contains("\"format_version\": 4"));
    assert_eq!(
        Manifest::read(&LocalFileSystem, path)
            .unwrap()
            .present()
            .segment,
        manifest.present().segment
    );
    assert!(is_whole(path));
}
