//! Tests of the replicated state: conditions, sessions, files.

use std::collections::BTreeSet;

use bytes::Bytes;
use openraft::{BasicNode, CommittedLeaderId, EntryPayload, Membership};

use super::*;
use crate::types::Batch;

/// A state of three voters with one session.
struct Bed {
    state: State,
    index: u64,
    number: u64,
    session: u64,
    dropped: Vec<String>,
}

impl Bed {
    fn new() -> Self {
        let mut bed = Self {
            state: State::default(),
            index: 0,
            number: 0,
            session: 0,
            dropped: Vec::new(),
        };
        let voters: BTreeSet<u64> = [1, 2, 3].into();
        let nodes: BTreeMap<u64, BasicNode> = voters
            .iter()
            .map(|&id| (id, BasicNode::default()))
            .collect();
        bed.apply(
            EntryPayload::Membership(Membership::new(vec![voters], nodes)),
            0,
        );
        bed.session = bed.open();
        bed
    }

    fn apply(&mut self, payload: EntryPayload<crate::types::TypeConfig>, _now: u64) -> Vec<Answer> {
        let log_id = LogId::new(CommittedLeaderId::new(1, 1), self.index);
        self.index += 1;
        let mut effects = Effects::default();
        let answers = self.state.apply(Entry { log_id, payload }, &mut effects);
        self.dropped.extend(effects.dropped);
        answers
    }

    fn send(&mut self, request: Request, now_us: u64) -> Answer {
        self.apply(
            EntryPayload::Normal(Batch {
                now_us,
                commands: vec![request],
            }),
            now_us,
        )
        .remove(0)
    }

    fn open(&mut self) -> u64 {
        let request = Request {
            session: 0,
            number: 0,
            floor: 0,
            command: Command::Open,
        };
        match self.send(request, 0) {
            Answer::Opened(session) => session,
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self, command: Command) -> Answer {
        self.number += 1;
        self.send(
            Request {
                session: self.session,
                number: self.number,
                floor: self.number,
                command,
            },
            0,
        )
    }

    fn put(&mut self, path: &str, mode: Mode, content: Content) -> Answer {
        self.run(Command::Put {
            path: path.to_owned(),
            mode,
            content,
        })
    }
}

fn bytes(text: &'static str) -> Content {
    Content::Inline(Bytes::from_static(text.as_bytes()))
}

fn file(id: &str, copies: &[u64]) -> Content {
    Content::File(File {
        id: id.to_owned(),
        bytes: 1,
        crc: 0,
        copies: copies.iter().copied().collect(),
    })
}

fn tag(answer: Answer) -> u64 {
    match answer {
        Answer::Put(tag) => tag,
        other => panic!("{other:?}"),
    }
}

#[test]
fn conditions_of_puts_hold() {
    let mut bed = Bed::new();
    assert_eq!(
        bed.put("a", Mode::Update(1), bytes("x")),
        Answer::Precondition
    );
    let first = tag(bed.put("a", Mode::Create, bytes("x")));
    assert_eq!(
        bed.put("a", Mode::Create, bytes("y")),
        Answer::AlreadyExists
    );
    let second = tag(bed.put("a", Mode::Update(first), bytes("y")));
    assert_eq!(
        bed.put("a", Mode::Update(first), bytes("z")),
        Answer::Precondition
    );
    assert!(second > first);
    assert_eq!(bed.state.objects["a"].content, bytes("y"));
    assert_eq!(
        bed.run(Command::Copy {
            from: "b".to_owned(),
            to: "c".to_owned(),
            create: false
        }),
        Answer::NotFound
    );
}

#[test]
fn a_command_that_is_sent_twice_is_done_once_and_has_its_first_answer() {
    let mut bed = Bed::new();
    let create = Command::Put {
        path: "a".to_owned(),
        mode: Mode::Create,
        content: bytes("x"),
    };
    let request = Request {
        session: bed.session,
        number: 5,
        floor: 5,
        command: create,
    };
    let first = bed.send(request.clone(), 0);
    assert_eq!(bed.send(request.clone(), 0), first);
    bed.put("b", Mode::Overwrite, bytes("y"));
    bed.number = 6;
    bed.put("b", Mode::Overwrite, bytes("y"));
    assert_eq!(
        bed.send(request, 0),
        Answer::Forgotten,
        "its client has said that it will not be sent again"
    );
}

#[test]
fn a_command_of_a_session_that_was_forgotten_is_not_done() {
    let mut bed = Bed::new();
    for _ in 0..SESSIONS_MAX {
        bed.open();
    }
    assert_eq!(bed.put("a", Mode::Overwrite, bytes("x")), Answer::Forgotten);
    assert!(bed.state.objects.is_empty());
}

#[test]
fn times_never_go_back() {
    let mut bed = Bed::new();
    let put = |number, path: &str| Request {
        session: 0,
        number,
        floor: 0,
        command: Command::Put {
            path: path.to_owned(),
            mode: Mode::Overwrite,
            content: bytes("x"),
        },
    };
    let session = bed.session;
    bed.send(
        Request {
            session,
            ..put(1, "a")
        },
        900,
    );
    bed.send(
        Request {
            session,
            ..put(2, "b")
        },
        300,
    );
    assert_eq!(bed.state.objects["b"].modified_us, 900);
}

#[test]
fn a_file_goes_with_the_last_object_that_has_it() {
    let mut bed = Bed::new();
    tag(bed.put("a", Mode::Create, file("f", &[1, 2])));
    tag(bed.run(Command::Copy {
        from: "a".to_owned(),
        to: "b".to_owned(),
        create: true,
    }));
    tag(bed.put("a", Mode::Overwrite, bytes("x")));
    assert!(bed.dropped.is_empty());
    assert_eq!(
        bed.run(Command::Delete {
            paths: vec!["b".to_owned(), "none".to_owned()]
        }),
        Answer::Deleted
    );
    assert_eq!(bed.dropped, ["f"]);
    assert_eq!(
        bed.put("c", Mode::Update(3), file("g", &[1, 2])),
        Answer::Precondition
    );
    assert_eq!(
        bed.dropped,
        ["f", "g"],
        "a put that was refused leaves no file"
    );
}

#[test]
fn a_file_that_is_on_no_majority_is_refused() {
    let mut bed = Bed::new();
    assert_eq!(
        bed.put("a", Mode::Create, file("f", &[1])),
        Answer::TooFewCopies
    );
    assert_eq!(
        bed.put("a", Mode::Create, file("f", &[1, 7])),
        Answer::TooFewCopies,
        "7 does not vote"
    );
    assert!(bed.dropped.is_empty(), "it may be copied further");
    tag(bed.put("a", Mode::Create, file("f", &[1, 3])));
}
