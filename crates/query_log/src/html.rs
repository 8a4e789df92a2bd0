//! A report as one self-contained HTML page.
//!
//! Texts of the log are hostile: whoever asks chooses the query, the agent and the IRIs. All of
//! them are escaped, and the page's own policy allows no script, no connection and no style but its
//! own.

use std::fmt::Write as _;

use crate::counts::{DistinctCount, TopNames};
use crate::figures::{DayFigures, Report};
use crate::plot::{self, Column};
use crate::shown::{count, escape};

/// The style of the page.
pub(crate) const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}\
h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #ccc}\
table{border-collapse:collapse;width:100%;table-layout:auto}th,td{text-align:left;padding:.2rem .6rem .2rem 0;vertical-align:top;border-bottom:1px solid #eee}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td.t{overflow-wrap:anywhere}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font-size:.8rem;max-height:12rem;overflow:auto}\
svg{width:100%;height:auto}svg rect{fill:#2b6cb0}svg text{font-size:11px;fill:#444}svg .axis{stroke:#888;fill:none}\
.note{color:#555;font-size:.9rem}";
/// Of [`STYLE`], in base64: no other style is taken.
pub(crate) const STYLE_SHA256: &str = "WNsi2LZQU99F2rwj7bntZ1mSH9tltj1xPXqld2W4Ghk=";

/// Writes the page.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::new();
    _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_SHA256}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Usage</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Usage</h1>\n"
    );
    match (report.first_day, report.last_day) {
        (Some(first), Some(last)) => _ = writeln!(page, "<p>{first} to {last}, days of UTC.</p>"),
        _ => page.push_str("<p>Nothing was asked.</p>\n"),
    }
    overview(&mut page, report);
    days(&mut page, report);
    kinds(&mut page, report);
    durations(&mut page, report);
    let names = [
        ("Predicates", "predicate", &report.predicates),
        ("Classes", "class", &report.classes),
        ("Agents", "agent", &report.agents),
        ("Users", "user", &report.users),
    ];
    for (title, what, names) in names {
        top(&mut page, title, what, names);
    }
    reading(&mut page, report);
    slowest(&mut page, report);
    log(&mut page, report);
    page.push_str("</body>\n</html>\n");
    page
}

fn overview(page: &mut String, report: &Report) {
    let durations = &report.durations;
    let rows = [
        (
            "Queries, updates and requests of SQL",
            count(report.queries),
        ),
        ("of which failed", count(report.failed)),
        ("Different texts", distinct(report.texts)),
        (
            "Different shapes (texts without their literals)",
            distinct(report.shapes),
        ),
        ("Client addresses", distinct(report.clients)),
        ("Rows", count(report.rows)),
        ("Bytes", count(report.bytes)),
        ("Median duration", milliseconds(durations.median_ms)),
        ("90th percentile", milliseconds(durations.p90_ms)),
        ("99th percentile", milliseconds(durations.p99_ms)),
        ("Longest", milliseconds(durations.max_ms)),
    ];
    page.push_str("<table>\n");
    for (name, value) in rows {
        _ = writeln!(page, "<tr><td>{name}</td><td class=\"n\">{value}</td></tr>");
    }
    page.push_str("</table>\n");
}

/// A figure of a day.
type OfDay = fn(&DayFigures) -> u64;

fn days(page: &mut String, report: &Report) {
    let plots: [(&str, OfDay); 4] = [
        ("Queries a day", |day| day.queries),
        ("Failed a day", |day| day.failed),
        ("Rows a day", |day| day.rows),
        ("Bytes a day", |day| day.bytes),
    ];
    for (title, figure) in plots {
        _ = writeln!(page, "<h2>{title}</h2>");
        page.push_str(&plot::columns(title, &each_day(&report.days, figure)));
    }
}

/// A column for each day, also for those without queries.
fn each_day(days: &[DayFigures], figure: OfDay) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut next = days.first().map(|day| day.day);
    for day in days {
        while let Some(empty) = next.filter(|next| *next < day.day) {
            columns.push(Column {
                name: empty.to_string(),
                value: 0,
            });
            next = Some(empty.next());
        }
        columns.push(Column {
            name: day.day.to_string(),
            value: figure(day),
        });
        next = Some(day.day.next());
    }
    columns
}

fn kinds(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>Kinds and outcomes</h2>\n<table>\n<tr><th>kind</th><th>outcome</th><th class=\"n\">queries</th></tr>\n",
    );
    for figures in &report.kinds {
        let (kind, outcome) = (figures.kind.name(), figures.outcome.name());
        let queries = count(figures.queries);
        _ = writeln!(
            page,
            "<tr><td>{kind}</td><td>{outcome}</td><td class=\"n\">{queries}</td></tr>"
        );
    }
    page.push_str("</table>\n");
}

fn durations(page: &mut String, report: &Report) {
    let histogram = &report.durations.histogram;
    let names = histogram.iter().map(|column| match column.below_ms {
        Some(ms) if ms < 1000 => format!("< {ms} ms"),
        Some(ms) => format!("< {} s", ms / 1000),
        None => "longer".to_owned(),
    });
    let columns: Vec<Column> = names
        .zip(histogram)
        .map(|(name, column)| Column {
            name,
            value: column.queries,
        })
        .collect();
    page.push_str("<h2>Durations</h2>\n");
    page.push_str(&plot::columns("Queries by their duration", &columns));
}

fn top(page: &mut String, title: &str, what: &str, names: &TopNames) {
    if names.top.is_empty() {
        return;
    }
    _ = writeln!(
        page,
        "<h2>{title}</h2>\n<table>\n<tr><th>{what}</th><th class=\"n\">queries</th></tr>"
    );
    for name in &names.top {
        _ = writeln!(
            page,
            "<tr><td class=\"t\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&name.name),
            count(name.queries)
        );
    }
    page.push_str("</table>\n");
    if names.missed_max > 0 {
        let missed = count(names.missed_max);
        _ = writeln!(
            page,
            "<p class=\"note\">There were more than could be counted; each count may be too small by up to {missed}.</p>"
        );
    }
}

fn reading(page: &mut String, report: &Report) {
    let reading = report.reading;
    _ = writeln!(
        page,
        "<p class=\"note\">Predicates and classes are those of {} queries and updates that could be read; {} could not, and {} are cut in the log. \
         {} requests came without the name of an agent.</p>",
        count(reading.parsed),
        count(reading.not_parsed),
        count(reading.cut),
        count(report.without_agent)
    );
}

fn slowest(page: &mut String, report: &Report) {
    if report.slowest.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Slowest queries</h2>\n<p class=\"note\">The slowest of each shape.</p>\n<table>\n\
         <tr><th class=\"n\">duration</th><th>kind</th><th>outcome</th><th>time</th><th>text</th></tr>\n",
    );
    for slow in &report.slowest {
        _ = writeln!(
            page,
            "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"t\"><pre>{}</pre></td></tr>",
            milliseconds(slow.ms),
            slow.kind.name(),
            slow.outcome.name(),
            slow.time,
            escape(&slow.text)
        );
    }
    page.push_str("</table>\n");
}

fn log(page: &mut String, report: &Report) {
    let log = report.log;
    _ = writeln!(
        page,
        "<h2>The log</h2>\n<p>{} files were read. {} entries were lost where the server had no room for them, and {} lines are damaged.</p>",
        count(log.files),
        count(log.dropped),
        count(log.damaged_lines)
    );
}

fn distinct(found: DistinctCount) -> String {
    let at_least = if found.is_exact { "" } else { "at least " };
    format!("{at_least}{}", count(found.count))
}

/// `1.25 ms`, `3.5 s`
fn milliseconds(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        ..1000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};

    #[test]
    fn the_policy_of_the_page_names_its_style() {
        let hash = Sha256::digest(STYLE.as_bytes());
        let hash = base64::engine::general_purpose::STANDARD.encode(hash);
        assert_eq!(STYLE_SHA256, hash);
    }
}
