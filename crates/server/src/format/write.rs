//! A whole answer into a writer, for the command line.

use super::{FormatError, GraphFormat, GraphSerializer, SolutionFormat, SolutionSerializer};
use orrery_sparql::{QueryError, QueryResults};
use std::io::{self, Write};

/// Bytes collected before a write.
const BUFFER_BYTES: usize = 64 * 1024;

/// Why an answer was not written to its end.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The format cannot express the answer.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The output could not be written; a closed pipe is of this kind too.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// Writes an answer as it comes, in the first format if it is one of solutions or a
/// boolean, in the second if it is a graph; returns the number of rows or triples.
pub async fn write_results(
    results: QueryResults,
    solution_format: SolutionFormat,
    graph_format: GraphFormat,
    output: &mut impl Write,
) -> Result<u64, WriteError> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES * 2);
    let mut rows = 0;
    match results {
        QueryResults::Boolean(value) => {
            SolutionSerializer::boolean(solution_format, value, &mut buffer);
            rows = 1;
        }
        QueryResults::Solutions(mut stream) => {
            let variables = stream.variables().to_vec();
            let mut serializer =
                SolutionSerializer::start(solution_format, &variables, &mut buffer);
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for row in 0..batch.rows() {
                    let terms = (0..variables.len()).map(|column| batch.term(row, column));
                    serializer.row(terms, &mut buffer);
                    write_if_full(&mut buffer, output)?;
                }
                rows += batch.rows() as u64;
            }
            serializer.finish(&mut buffer);
        }
        QueryResults::Triples(mut stream) => {
            let mut serializer = GraphSerializer::start(graph_format);
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for (subject, predicate, object) in batch.iter() {
                    serializer.triple(subject, predicate, object, &mut buffer)?;
                    write_if_full(&mut buffer, output)?;
                }
                rows += batch.len() as u64;
            }
            serializer.finish(&mut buffer)?;
        }
    }
    output.write_all(&buffer)?;
    output.flush()?;
    Ok(rows)
}

fn write_if_full(buffer: &mut Vec<u8>, output: &mut impl Write) -> io::Result<()> {
    if buffer.len() >= BUFFER_BYTES {
        output.write_all(buffer)?;
        buffer.clear();
    }
    Ok(())
}
