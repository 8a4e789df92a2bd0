//! Encoding of a vector by its plan.

use crate::piece::PiecePlan;
use crate::plan::{DictionaryPlan, GroupsPlan, ListPlan, Plan, RunsPlan, deltas};
use crate::{Codec, VECTOR_ROWS};

/// Appends the vector in the codec that takes the fewest bytes, and says which it was.
///
/// # Panics
///
/// If there are no values, or more than [`VECTOR_ROWS`].
pub fn encode(values: &[u64], out: &mut Vec<u8>) -> Codec {
    assert!((1..=VECTOR_ROWS).contains(&values.len()));
    let plan = Plan::choose(values);
    let codec = match &plan {
        Plan::Constant => Codec::Constant,
        Plan::Frame(_) => Codec::Frame,
        Plan::Delta(_) => Codec::Delta,
        Plan::Runs(_) => Codec::Runs,
        Plan::Dictionary(_) => Codec::Dictionary,
        Plan::Groups(_) => Codec::Groups,
    };
    out.push(codec as u8);
    write_count(values.len(), out);
    match plan {
        Plan::Constant => out.extend_from_slice(&values[0].to_le_bytes()),
        Plan::Frame(piece) => piece.write(values.iter().copied(), out),
        Plan::Delta(piece) => write_delta(values, &piece, out),
        Plan::Runs(plan) => write_runs(&plan, out),
        Plan::Dictionary(plan) => write_dictionary(&plan, out),
        Plan::Groups(plan) => write_groups(&plan, out),
    }
    codec
}

/// A count of at least one, stored minus one.
fn write_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u16 - 1).to_le_bytes());
}

fn write_delta(values: &[u64], piece: &PiecePlan, out: &mut Vec<u8>) {
    out.extend_from_slice(&values[0].to_le_bytes());
    piece.write(deltas(values), out);
}

fn write_list(values: &[u64], plan: &ListPlan, out: &mut Vec<u8>) {
    out.push(u8::from(plan.is_delta));
    if plan.is_delta {
        write_delta(values, &plan.piece, out);
    } else {
        plan.piece.write(values.iter().copied(), out);
    }
}

fn write_runs(plan: &RunsPlan, out: &mut Vec<u8>) {
    write_count(plan.values.len(), out);
    write_list(&plan.values, &plan.values_plan, out);
    plan.lengths_plan.write(plan.lengths.iter().copied(), out);
}

fn write_dictionary(plan: &DictionaryPlan, out: &mut Vec<u8>) {
    out.push((plan.entries.len() - 1) as u8);
    plan.entries_plan.write(plan.entries.iter().copied(), out);
    let codes = plan.codes.iter().map(|&code| u64::from(code));
    plan.codes_plan.write(codes, out);
}

fn write_groups(plan: &GroupsPlan, out: &mut Vec<u8>) {
    out.push((plan.groups.len() - 1) as u8);
    for &(rows, _) in &plan.groups {
        write_count(rows, out);
    }
    let numbers = plan.numbers.iter().map(|&number| u64::from(number));
    plan.numbers_plan.write(numbers, out);
    let mut rest = &plan.values[..];
    for (rows, piece) in &plan.groups {
        let (group, after) = rest.split_at(*rows);
        rest = after;
        piece.write(group.iter().copied(), out);
    }
}
