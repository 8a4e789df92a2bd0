//! `orrery dump`: writes every quad, in SPOG order; named graphs as N-Quads, TriG or JSON-LD.
use orrery_formats::{GraphFormat, GraphSerializer, graph_format_names};
use orrery_storage::{ByteCount, QuadRef, ReadView};
use orrery_term::{Literal, Term};

use crate::arguments::DumpArguments;
use crate::commands::output::Output;
use crate::failure::Failure;

/// Bytes gathered before they are written to the output.
const CHUNK_BYTES: usize = 1 << 16;

/// Length from which literals are written in pieces, ...
const WHOLE_TEXT_BYTES_MAX: usize = 1 << 20;
/// ... or, if the format does not allow that, up to which they are held in memory.
const TEXT_BYTES_MAX: usize = 1 << 28;

pub(crate) fn run(arguments: DumpArguments) -> Result<(), Failure> {
    let format = GraphFormat::from_name(&arguments.format).ok_or_else(|| {
        Failure::Other(format!(
            "cannot dump as '{}'; there are: {}",
            arguments.format,
            graph_format_names()
        ))
    })?;
    if arguments.canonical && !matches!(format, GraphFormat::NQuads | GraphFormat::NTriples) {
        return Err(Failure::Other(format!(
            "'{}' has no canonical form; use nq or nt with --canonical",
            arguments.format
        )));
    }
    let database = arguments.database.place()?.open()?;
    if database.view_of_process().has_named_graphs() && !format.has_named_graphs() {
        return Err(Failure::Other(format!(
            "cannot dump as '{}', for there are named graphs; use nq, trig or jsonld",
            arguments.format
        )));
    }
    let snapshot = match arguments.at {
        Some(at) => database.snapshot_at(at)?,
        None => database.snapshot(),
    };
    let mut output = match &arguments.output {
        Some(path) if !arguments.force => Output::create_new(path)?,
        path => Output::open(path.as_deref())?,
    };
    let prefixes = snapshot.prefixes().shortener();
    let mut serializer = GraphSerializer::with_prefixes(format, prefixes);
    let mut buffer = Vec::with_capacity(2 * CHUNK_BYTES);
    let mut quads = ReadView::of_process(snapshot).quads()?;
    if arguments.canonical {
        quads = quads.canonical();
    }
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            write_quad(&quad, &mut serializer, &mut buffer, &mut output)?;
            if buffer.len() >= CHUNK_BYTES {
                output.drain(&mut buffer)?;
            }
        }
    }
    serializer.finish(&mut buffer)?;
    output.drain(&mut buffer)?;
    output.finish()
}

fn write_quad(
    quad: &QuadRef<'_>,
    serializer: &mut GraphSerializer,
    buffer: &mut Vec<u8>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (subject, predicate) = (quad.subject, quad.predicate);
    match &*quad.object {
        Term::Literal(literal) if literal.lexical.len() > WHOLE_TEXT_BYTES_MAX => {
            if serializer.begin_text(subject, predicate, buffer) {
                for piece in pieces(&literal.lexical) {
                    serializer.text(piece, buffer);
                    output.drain(buffer)?;
                }
                serializer.end_text(literal, quad.graph, buffer);
                return Ok(());
            }
            check_length(literal)?;
        }
        _ => {}
    }
    serializer.quad(subject, predicate, &quad.object, quad.graph, buffer)?;
    Ok(())
}

fn check_length(literal: &Literal<'_>) -> Result<(), Failure> {
    match literal.lexical.len() {
        0..=TEXT_BYTES_MAX => Ok(()),
        length => Err(Failure::Other(format!(
            "a literal of {} is too long for this format, in which it has to stand in memory; use nt or nq",
            ByteCount(length as u64)
        ))),
    }
}

/// Splits a text into pieces of about [`CHUNK_BYTES`].
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        for text in ["", "x", &"é中😀a".repeat(50_000)] {
            assert_eq!(pieces(text).collect::<String>(), text);
            assert!(pieces(text).all(|piece| piece.len() <= CHUNK_BYTES));
        }
    }
}
