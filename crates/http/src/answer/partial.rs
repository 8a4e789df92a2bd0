//! Notes in partial answers: a line that gives the reason, where the format has a place for one.

use orrery_formats::{GraphFormat, SolutionFormat, TableFormat, write_json_text};

/// Appends the reason why solutions are partial; false if the format has no place for it.
pub(crate) fn note_in_solutions(format: SolutionFormat, reason: &str, out: &mut Vec<u8>) -> bool {
    match format {
        // An extra member in the outermost object, which the format allows.
        SolutionFormat::Json if out.last() == Some(&b'}') => {
            out.pop();
            out.extend_from_slice(b",\"partial\":");
            write_json_text(out, reason);
            out.push(b'}');
        }
        SolutionFormat::Xml => xml_comment(reason, out),
        SolutionFormat::Json
        | SolutionFormat::Csv
        | SolutionFormat::Tsv
        | SolutionFormat::Arrow
        | SolutionFormat::Parquet
        | SolutionFormat::Table => return false,
    }
    true
}

/// Appends the reason why rows of SQL are partial; false if the format has no place for it.
pub(crate) fn note_in_table(format: TableFormat, reason: &str, out: &mut Vec<u8>) -> bool {
    let format = match format {
        TableFormat::Json | TableFormat::SparqlJson => SolutionFormat::Json,
        TableFormat::Xml => SolutionFormat::Xml,
        TableFormat::Csv
        | TableFormat::Tsv
        | TableFormat::Arrow
        | TableFormat::Parquet
        | TableFormat::Table => return false,
    };
    if out.last() == Some(&b'\n') {
        out.pop();
    }
    note_in_solutions(format, reason, out)
}

/// Appends the reason why triples are partial; false if the format has no place for it.
pub(crate) fn note_in_graph(format: GraphFormat, reason: &str, out: &mut Vec<u8>) -> bool {
    match format {
        GraphFormat::Turtle | GraphFormat::NTriples | GraphFormat::NQuads | GraphFormat::TriG => {
            out.extend_from_slice(format!("# partial: {reason}\n").as_bytes());
        }
        GraphFormat::RdfXml => xml_comment(reason, out),
        GraphFormat::JsonLd => return false,
    }
    true
}

/// Appends an XML comment behind the root element. Two hyphens would end it.
fn xml_comment(reason: &str, out: &mut Vec<u8>) {
    let reason = reason.replace("--", "- -");
    out.extend_from_slice(format!("<!-- partial: {reason} -->").as_bytes());
}
