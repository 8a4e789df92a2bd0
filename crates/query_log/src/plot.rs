//! Column plots as inline SVG.

use std::fmt::Write as _;

use crate::shown::{count, escape};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 160.0;
/// Above the columns, for the largest value; below, for names.
const MARGIN: f64 = 18.0;
/// More columns are drawn as one for several.
const COLUMNS_MAX: usize = 360;

/// A column.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) value: u64,
}

/// Draws columns; names stand below all of them where they are few, else below the first and the
/// last.
pub(crate) fn columns(title: &str, columns: &[Column]) -> String {
    let together = columns.len().div_ceil(COLUMNS_MAX).max(1);
    let drawn: Vec<(String, u64)> = columns
        .chunks(together)
        .map(|several| {
            let sum = several
                .iter()
                .map(|it| it.value)
                .fold(0, u64::saturating_add);
            (name_of(several), sum)
        })
        .collect();
    let largest = drawn
        .iter()
        .map(|(_, value)| *value)
        .max()
        .unwrap_or_default();
    let step = WIDTH / drawn.len().max(1) as f64;
    let bottom = MARGIN + HEIGHT;
    let mut svg = String::new();
    _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n<text x=\"0\" y=\"12\">{}{}</text>\n\
         <path class=\"axis\" d=\"M0 {bottom}H{WIDTH}\"/>\n",
        bottom + MARGIN,
        escape(title),
        count(largest),
        match together {
            1 => String::new(),
            days => format!(" in {days} days"),
        },
    );
    for (place, (name, value)) in drawn.iter().enumerate() {
        let height = match largest {
            0 => 0.0,
            largest => HEIGHT * *value as f64 / largest as f64,
        };
        // A gap between columns, as far as there is room for one.
        let width = (step * 0.9).max(step - 4.0);
        _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"><title>{}: {}</title></rect>",
            place as f64 * step,
            bottom - height,
            escape(name),
            count(*value),
        );
    }
    let are_few = drawn.len() <= 14;
    for (place, (name, _)) in drawn.iter().enumerate() {
        let (x, anchor) = match place {
            _ if are_few => ((place as f64 + 0.45) * step, "middle"),
            0 => (0.0, "start"),
            last if last + 1 == drawn.len() => (WIDTH, "end"),
            _ => continue,
        };
        _ = writeln!(
            svg,
            "<text x=\"{x:.2}\" y=\"{:.2}\" text-anchor=\"{anchor}\">{}</text>",
            bottom + 14.0,
            escape(name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn name_of(columns: &[Column]) -> String {
    match columns {
        [] => String::new(),
        [one] => one.name.clone(),
        [first, .., last] => format!("{} to {}", first.name, last.name),
    }
}
