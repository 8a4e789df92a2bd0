//! Fuzz targets: SQL texts, and `COPY` data.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use orrery_sql::{Outcome, StatementKind, split};

use super::house::house;

/// A text: where its statements end, what they are, and the first one's plan. Nothing is run.
pub(crate) fn sql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let cut = split(text);
    for statement in &cut.statements {
        assert!(
            text.get(statement.clone()).is_some(),
            "a statement ends within a letter"
        );
    }
    assert!(text.get(cut.rest).is_some());
    let house = house();
    let session = house.session.another();
    let _ = session.statements(text);
    house.wait(async {
        // Bound to the tables that there are, with parameters.
        let _ = session.prepare_told(text, &[]).await;
        let _ = session.plan(text).await;
    });
}

/// What the statements of a text may take together: some have no end.
const RUN_MAX: Duration = Duration::from_millis(500);

/// A text whose statements are run, within a transaction that is undone. Those about transactions
/// are left out, for they would keep what was changed.
pub(crate) fn sql_run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let house = house();
    let session = house.session.another();
    let Ok(statements) = session.statements(text) else {
        return;
    };
    house.wait(async {
        session.begin_block();
        let run = async {
            for statement in &statements {
                if statement.kind() == StatementKind::Transaction {
                    continue;
                }
                let rows = match session.execute(statement).await {
                    Ok(Outcome::Query(rows) | Outcome::Returned(rows, _)) => rows,
                    // An error is an answer; the block has failed with it.
                    Ok(_) | Err(_) => continue,
                };
                let _ = rows.try_for_each(|_| std::future::ready(Ok(()))).await;
            }
        };
        // What is beyond it is dropped, as when a client goes away.
        let _ = tokio::time::timeout(RUN_MAX, run).await;
        let _ = session.end_block(false).await;
    });
}

/// The options of `COPY`.
const FORMS: [&str; 6] = [
    "",
    "WITH (FORMAT csv)",
    "WITH (FORMAT csv, HEADER)",
    "WITH (FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\', NULL 'n')",
    "WITH (FORMAT csv, FORCE_NULL (name), FORCE_NOT_NULL (data))",
    "WITH (DELIMITER '|', NULL '')",
];

/// The data of `COPY item FROM STDIN`, in two pieces. The first byte says with which options, the
/// second one where they are cut; what comes of it is undone.
pub(crate) fn copy(bytes: &[u8]) {
    let [form, cut, data @ ..] = bytes else {
        return;
    };
    let form = FORMS[usize::from(*form) % FORMS.len()];
    let (first, second) = data.split_at(usize::from(*cut).min(data.len()));
    let house = house();
    let session = house.session.another();
    house.wait(async {
        session.begin_block();
        let Ok(statements) = session.statements(&format!("COPY item FROM STDIN {form}")) else {
            panic!("the statement is none");
        };
        for statement in &statements {
            if let Ok(Outcome::CopyIn(mut copy)) = session.execute(statement).await {
                let mut is_taken = true;
                for piece in [first, second] {
                    is_taken = is_taken && copy.send(Bytes::copy_from_slice(piece)).await.is_ok();
                }
                if is_taken {
                    let _ = copy.finish().await;
                }
            }
        }
        let _ = session.end_block(false).await;
    });
}
