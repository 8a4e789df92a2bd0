//! Tests of `orrery bench snb`: every operation on a network made by insertions alone, and
//! PostgreSQL's results on the data set of scale 0.1.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{check_failure, fail, run, succeed, text};

/// Data that insertions cannot make: places, an organization of each kind, a tag of a class below
/// another.
const STATIC_DATA: &str = r#"
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX : <http://example.org/>
:Land a dbo:Place , dbo:Country ; foaf:name "Land" ; snvoc:id "0"^^xsd:int .
:Sea a dbo:Place , dbo:Country ; foaf:name "Sea" ; snvoc:id "1"^^xsd:int .
:Isle a dbo:Place , dbo:Country ; foaf:name "Isle" ; snvoc:id "2"^^xsd:int .
:Town a dbo:Place , dbo:City ; foaf:name "Town" ; snvoc:id "7"^^xsd:int ; snvoc:isPartOf :Land .
:School a dbo:University ; foaf:name "School" ; snvoc:id "7"^^xsd:int ; snvoc:isLocatedIn :Town .
:Works a dbo:Company ; foaf:name "Works" ; snvoc:id "8"^^xsd:int ; snvoc:isLocatedIn :Land .
_:thing a snvoc:TagClass ; rdfs:label "Thing" ; snvoc:id "0"^^xsd:int .
_:fruit a snvoc:TagClass ; rdfs:label "Fruit" ; snvoc:id "1"^^xsd:int ; rdfs:subClassOf _:thing .
:Pear a _:fruit ; foaf:name "Pear" ; snvoc:id "7"^^xsd:int .
:Plum a _:fruit ; foaf:name "Plum" ; snvoc:id "9"^^xsd:int .
"#;

/// Lines of a validation file.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, operation: &Value, result: &Value) {
        writeln!(self.0, "{operation}|{result}").unwrap();
    }

    fn insert(&mut self, operation: &Value) {
        self.add(operation, &json!("-1"));
    }
}

fn person(number: u64) -> Value {
    json!({
        "personId": number, "personFirstName": format!("F{number}"), "personLastName": "L", "gender": "female",
        "birthday": 1_728_000_000, "creationDate": 1_000, "locationIp": "1.2.3.4", "browserUsed": "Firefox",
        "cityId": 7, "languages": ["en"], "emails": ["a@x", "b@x"], "tagIds": [7],
        "studyAt": [{ "organizationId": 7, "year": 2001 }], "workAt": [{ "organizationId": 8, "year": 2002 }],
    })
}

fn comment(number: u64, author: u64, to_post: i64, to_comment: i64, time: i64) -> Value {
    json!({
        "commentId": number, "creationDate": time, "locationIp": "1.2.3.4", "browserUsed": "Firefox",
        "content": format!("c{number}"), "length": 2, "countryId": 1, "replyToPostId": to_post, "tagIds": [],
        "authorPersonId": author, "replyToCommentId": to_comment,
    })
}

fn post(number: u64, author: u64, image: &str, country: u64, time: i64) -> Value {
    json!({
        "postId": number, "imageFile": image, "creationDate": time, "locationIp": "1.2.3.4",
        "browserUsed": "Firefox", "language": "en", "content": "50 % \"off\"", "length": 10,
        "authorPersonId": author, "forumId": 50, "countryId": country, "tagIds": [7, 9],
    })
}

/// A chain 1-2-3-4-5-6 and 9 by itself; 2 posts, 3 and 1 reply, 1 likes.
fn network() -> Lines {
    let mut lines = Lines::default();
    for number in [1, 2, 3, 4, 5, 6, 9] {
        lines.insert(&person(number));
    }
    for number in 1..6 {
        let (low, high) = (number, number + 1);
        // Either may be the first.
        let (one, other) = if number % 2 == 0 {
            (low, high)
        } else {
            (high, low)
        };
        lines.insert(
            &json!({ "person1Id": one, "person2Id": other, "creationDate": 2_000 + number }),
        );
    }
    lines.insert(&json!({ "forumId": 50, "forumTitle": "Fruit", "creationDate": 3_000, "moderatorPersonId": 9,
                          "tagIds": [7] }));
    lines.insert(&json!({ "forumId": 50, "personId": 2, "joinDate": 3_001 }));
    lines.insert(&post(60, 2, "", 1, 4_000));
    lines.insert(&post(61, 2, "a.jpg", 2, 5_000));
    lines.insert(&comment(70, 3, 60, -1, 6_000));
    lines.insert(&comment(71, 1, -1, 70, 7_000));
    lines.insert(&json!({ "personId": 1, "postId": 61, "creationDate": 130_000 }));
    lines.insert(&json!({ "personId": 3, "commentId": 71, "creationDate": 9_000 }));
    lines
}

/// What is then read, with what must come.
fn reads(lines: &mut Lines) {
    let name = |number: u64| format!("F{number}");
    lines.add(
        &json!({ "personIdQ1": 1, "firstName": "F3", "limit": 20 }),
        &json!([{
            "friendId": 3, "friendLastName": "L", "distanceFromPerson": 2, "friendBirthday": 1_728_000_000,
            "friendCreationDate": 1_000, "friendGender": "female", "friendBrowserUsed": "Firefox",
            "friendLocationIp": "1.2.3.4", "friendEmails": ["b@x", "a@x"], "friendLanguages": ["en"],
            "friendCityName": "Town",
            "friendUniversities": [{ "organizationName": "School", "year": 2001, "placeName": "Town" }],
            "friendCompanies": [{ "organizationName": "Works", "year": 2002, "placeName": "Land" }],
        }]),
    );
    let message = |author: u64, number: u64, content: &str, time: i64| {
        json!({ "personId": author, "personFirstName": name(author), "personLastName": "L", "messageId": number,
                "messageContent": content, "messageCreationDate": time })
    };
    let off = "50 % \"off\"";
    lines.add(
        &json!({ "personIdQ2": 1, "maxDate": 5_000, "limit": 20 }),
        &json!([message(2, 61, "a.jpg", 5_000), message(2, 60, off, 4_000)]),
    );
    lines.add(
        &json!({ "personIdQ9": 1, "maxDate": 6_001, "limit": 2 }),
        &json!([message(3, 70, "c70", 6_000), message(2, 61, "a.jpg", 5_000)]),
    );
    lines.add(
        &json!({ "personIdQ3": 3, "countryXName": "Sea", "countryYName": "Isle", "startDate": 0, "durationDays": 1,
                 "limit": 20 }),
        &json!([{ "personId": 2, "personFirstName": "F2", "personLastName": "L", "xCount": 1, "yCount": 1,
                  "count": 2 }]),
    );
    lines.add(
        &json!({ "personIdQ4": 1, "startDate": 0, "durationDays": 1, "limit": 10 }),
        &json!([{ "tagName": "Pear", "postCount": 2 }, { "tagName": "Plum", "postCount": 2 }]),
    );
    lines.add(
        &json!({ "personIdQ4": 1, "startDate": 4_500, "durationDays": 1, "limit": 10 }),
        &json!([]),
    );
    lines.add(
        &json!({ "personIdQ5": 1, "minDate": 3_000, "limit": 20 }),
        &json!([{ "forumTitle": "Fruit", "postCount": 2 }]),
    );
    lines.add(
        &json!({ "personIdQ6": 4, "tagName": "Plum", "limit": 10 }),
        &json!([{ "tagName": "Pear", "postCount": 2 }]),
    );
    lines.add(
        &json!({ "personIdQ7": 2, "limit": 20 }),
        &json!([{ "personId": 1, "personFirstName": "F1", "personLastName": "L", "likeCreationDate": 130_000,
                  "messageId": 61, "messageContent": "a.jpg", "minutesLatency": 2, "isNew": false }]),
    );
    lines.add(
        &json!({ "personIdQ7": 1, "limit": 20 }),
        &json!([{ "personId": 3, "personFirstName": "F3", "personLastName": "L", "likeCreationDate": 9_000,
                  "messageId": 71, "messageContent": "c71", "minutesLatency": 0, "isNew": true }]),
    );
    lines.add(
        &json!({ "personIdQ8": 2, "limit": 20 }),
        &json!([{ "personId": 3, "personFirstName": "F3", "personLastName": "L", "commentCreationDate": 6_000,
                  "commentId": 70, "commentContent": "c70" }]),
    );
    lines.add(
        &json!({ "personIdQ10": 4, "month": 1, "limit": 10 }),
        &json!([
            { "personId": 2, "personFirstName": "F2", "personLastName": "L", "commonInterestScore": 2,
              "personGender": "female", "personCityName": "Town" },
            { "personId": 6, "personFirstName": "F6", "personLastName": "L", "commonInterestScore": 0,
              "personGender": "female", "personCityName": "Town" },
        ]),
    );
    let works = |number: u64| {
        json!({ "personId": number, "personFirstName": name(number), "personLastName": "L",
                "organizationName": "Works", "organizationWorkFromYear": 2002 })
    };
    lines.add(
        &json!({ "personIdQ11": 1, "countryName": "Land", "workFromYear": 2003, "limit": 10 }),
        &json!([works(2), works(3)]),
    );
    lines.add(
        &json!({ "personIdQ12": 4, "tagClassName": "Thing", "limit": 20 }),
        &json!([{ "personId": 3, "personFirstName": "F3", "personLastName": "L", "tagNames": ["Plum", "Pear"],
                  "replyCount": 1 }]),
    );
    for (from, to, length) in [
        (1, 1, 0),
        (1, 2, 1),
        (4, 1, 3),
        (1, 5, 4),
        (6, 1, 5),
        (1, 9, -1),
    ] {
        lines.add(
            &json!({ "person1IdQ13StartNode": from, "person2IdQ13EndNode": to }),
            &json!({ "shortestPathLength": length }),
        );
    }
    let way =
        |from: u64, to: u64| json!({ "person1IdQ14StartNode": from, "person2IdQ14EndNode": to });
    lines.add(
        &way(1, 3),
        &json!([{ "personIdsInPath": [1, 2, 3], "pathWeight": 1.0 }]),
    );
    lines.add(
        &way(6, 1),
        &json!([{ "personIdsInPath": [6, 5, 4, 3, 2, 1], "pathWeight": 1.0 }]),
    );
    lines.add(&way(1, 9), &json!([]));
    short_reads(lines);
}

fn short_reads(lines: &mut Lines) {
    lines.add(
        &json!({ "personIdSQ1": 2 }),
        &json!({ "firstName": "F2", "lastName": "L", "birthday": 1_728_000_000, "locationIp": "1.2.3.4",
                 "browserUsed": "Firefox", "cityId": 7, "gender": "female", "creationDate": 1_000 }),
    );
    lines.add(
        &json!({ "personIdSQ2": 1, "limit": 10 }),
        &json!([{ "messageId": 71, "messageContent": "c71", "messageCreationDate": 7_000, "originalPostId": 60,
                  "originalPostAuthorId": 2, "originalPostAuthorFirstName": "F2",
                  "originalPostAuthorLastName": "L" }]),
    );
    lines.add(
        &json!({ "personIdSQ3": 2 }),
        &json!([
            { "personId": 3, "firstName": "F3", "lastName": "L", "friendshipCreationDate": 2_002 },
            { "personId": 1, "firstName": "F1", "lastName": "L", "friendshipCreationDate": 2_001 },
        ]),
    );
    lines.add(
        &json!({ "messageIdContent": 61 }),
        &json!({ "messageContent": "a.jpg", "messageCreationDate": 5_000 }),
    );
    lines.add(
        &json!({ "messageIdCreator": 71 }),
        &json!({ "personId": 1, "firstName": "F1", "lastName": "L" }),
    );
    lines.add(
        &json!({ "messageForumId": 71 }),
        &json!({ "forumId": 50, "forumTitle": "Fruit", "moderatorId": 9, "moderatorFirstName": "F9",
                 "moderatorLastName": "L" }),
    );
    lines.add(
        &json!({ "messageRepliesId": 60 }),
        &json!([{ "commentId": 70, "commentContent": "c70", "commentCreationDate": 6_000, "replyAuthorId": 3,
                  "replyAuthorFirstName": "F3", "replyAuthorLastName": "L",
                  "isReplyAuthorKnowsOriginalMessageAuthor": true }]),
    );
    lines.add(
        &json!({ "messageRepliesId": 70 }),
        &json!([{ "commentId": 71, "commentContent": "c71", "commentCreationDate": 7_000, "replyAuthorId": 1,
                  "replyAuthorFirstName": "F1", "replyAuthorLastName": "L",
                  "isReplyAuthorKnowsOriginalMessageAuthor": false }]),
    );
}

/// A database with the static data, and a validation file.
fn prepared(folder: &Path, lines: &str) -> (PathBuf, PathBuf) {
    let (database, data, file) = (
        folder.join("db"),
        folder.join("static.ttl"),
        folder.join("validation.csv"),
    );
    std::fs::write(&data, STATIC_DATA).unwrap();
    std::fs::write(&file, lines).unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    (database, file)
}

fn validate<'a>(file: &'a Path, database: &'a Path) -> [&'a str; 6] {
    [
        "bench",
        "snb",
        "validate",
        text(file),
        "--db",
        text(database),
    ]
}

#[test]
fn every_operation_of_snb_does_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = network();
    reads(&mut lines);
    let (database, file) = prepared(folder.path(), &lines.0);
    let output = run(&validate(&file, &database));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    // 29 kinds in all.
    let kinds = shown.lines().filter(|line| line.starts_with('I')).count();
    assert_eq!(kinds, 29, "{shown}");
}

#[test]
fn a_difference_is_shown_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = network();
    lines.add(
        &json!({ "messageIdCreator": 71 }),
        &json!({ "personId": 2, "firstName": "F1", "lastName": "L" }),
    );
    let (database, file) = prepared(folder.path(), &lines.0);
    let output = run(&validate(&file, &database));
    check_failure(&output, &["1 of 21 results differ"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("line 21, IS5"), "{shown}");
    assert!(
        shown.contains(r#""personId":2"#) && shown.contains(r#""personId":1"#),
        "{shown}"
    );
}

#[test]
fn a_broken_line_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lines = format!("{}|\"-1\"\n{{\"personIdQ99\":1}}|[]\n", person(1));
    let (database, file) = prepared(folder.path(), &lines);
    let before = crate::common::quads(&database);
    fail(
        &validate(&file, &database),
        &["line 2", "no operation has these parameters: personIdQ99"],
    );
    assert_eq!(crate::common::quads(&database), before);
}

#[test]
fn results_are_those_of_postgresql() {
    let shared = std::env::var_os("ORRERY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let snb = shared.join("snb");
    let file = snb.join("validation_params-sf0.1-first300.csv.gz");
    if !file.is_file() {
        eprintln!("skipped: there is no {}", file.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    let parts = ["static", "person", "activity"]
        .map(|part| snb.join(format!("sf0.1-ttl/social_network_{part}_0_0.ttl.gz")));
    let mut load = vec!["load", "--db", text(&database)];
    load.extend(parts.iter().map(|part| text(part)));
    succeed(&load);
    // The insertions among the operations change the database.
    let second = folder.path().join("second");
    let backups = folder.path().join("backups");
    succeed(&["backup", "--db", text(&database), "--to", text(&backups)]);
    succeed(&["restore", "--from", text(&backups), "--db", text(&second)]);
    for (database, option) in [(&database, None), (&second, Some("--edge-weight"))] {
        let mut arguments = validate(&file, database).to_vec();
        arguments.extend(["--report", "json"]);
        arguments.extend(option);
        let output = run(&arguments);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["agree"], 300, "{option:?} {report:#}");
        assert!(output.status.success());
    }
}

#[test]
fn the_mix_runs_on_generated_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    succeed(&[
        "bench",
        "snb",
        "generate",
        "--scale",
        "0.003",
        "-o",
        text(&data),
    ]);
    let report = succeed(&[
        "bench",
        "snb",
        "--data",
        text(&data),
        "--clients",
        "2",
        "--seconds",
        "1",
        "--rounds",
        "1",
        "--report",
        "json",
    ]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let kinds = |of: &Value| of.as_array().unwrap().len();
    assert_eq!(kinds(&report["alone"]), 21, "{report:#}");
    assert!(kinds(&report["full_speed"]["kinds"]) > 15, "{report:#}");
    assert!(
        !report["rates"].as_array().unwrap().is_empty(),
        "{report:#}"
    );
}

#[test]
fn a_mix_without_its_parameter_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "snb", "--data", text(folder.path())];
    fail(&arguments, &["interactive_1_param.txt"]);
}
