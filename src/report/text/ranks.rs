//! The table of ranks. Ranks that say the same share a row, so that 4,096 of them fit on a screen.

use super::page::{Page, paint};
use super::wrap::{columns, shorten};
use crate::event::Stage;
use crate::job::{Job, RankRow};
use crate::report::{clean, plural, ranges, stage};
use std::collections::BTreeMap;
use std::io;

/// Most rows.
const MAX_ROWS: usize = 12;

/// Fewest columns in which a last line still says something.
const MIN_LAST: usize = 20;

/// Titles of the columns; the last one takes what is left.
const TITLES: [&str; 6] = ["rank", "host", "dev", "stage reached", "net", "last line"];

/// What stands for last lines that do not say the same.
const DIFFERS: &str = "(differs)";

/// Columns that hold words of ours; a host's or network's name may look like one.
const OUR_WORDS: [usize; 1] = [3];

/// Most columns of each but the last.
const MAX_COLUMNS: [usize; 5] = [20, 16, 8, 29, 12];

/// What must be equal for ranks to share a row; the finest that gives few enough rows is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Host,
    LastLine,
    Network,
    Stage,
}

struct Row {
    cells: [String; 6],
    absent: bool,
}

/// Writes the section.
pub fn write(page: &mut Page, job: &Job) -> io::Result<()> {
    if job.ranks.is_empty() {
        return Ok(());
    }
    let absent = job.absent_ranks();
    page.heading("Ranks")?;
    let mut rows = rows(job);
    for row in &mut rows {
        for at in OUR_WORDS {
            row.cells[at] = page.word(&row.cells[at]).into_owned();
        }
        if row.cells[5] == DIFFERS {
            row.cells[5] = page.word(DIFFERS).into_owned();
        }
    }
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    if !absent.is_empty() {
        let cell = |text: &str| text.to_owned();
        let cells = [ranges(&absent, Some(MAX_COLUMNS[0])), cell("?"), cell("?"), page.word("not in these logs").into_owned(), cell("?"), String::new()];
        rows.push(Row { cells, absent: true });
    }
    table(page, &rows)?;
    if more > 0 {
        page.raw(0, &page.word(&format!("… {} in --format json", plural(more as u64, "more row"))))?;
    }
    Ok(())
}

fn rows(job: &Job) -> Vec<Row> {
    let mut groups = Vec::new();
    for detail in [Detail::Host, Detail::LastLine, Detail::Network, Detail::Stage] {
        groups = group(job, detail);
        if groups.len() <= MAX_ROWS {
            break;
        }
    }
    groups.iter().map(|ranks| row(job, ranks)).collect()
}

/// Groups in the order of their lowest rank.
fn group(job: &Job, detail: Detail) -> Vec<Vec<&RankRow>> {
    let mut index = BTreeMap::new();
    let mut groups: Vec<Vec<&RankRow>> = Vec::new();
    for rank in &job.ranks {
        let host = (detail == Detail::Host).then_some(rank.host.as_deref());
        let last = matches!(detail, Detail::Host | Detail::LastLine).then(|| pattern(message(&rank.last.text)));
        let net = (detail != Detail::Stage).then_some(rank.net.as_deref());
        let at = *index.entry((reached(job, rank), host, net, last)).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push(rank);
    }
    groups
}

fn row(job: &Job, ranks: &[&RankRow]) -> Row {
    let numbers: Vec<u32> = ranks.iter().map(|r| r.rank).collect();
    let mut devices: Vec<u32> = ranks.iter().filter_map(|r| r.device).collect();
    devices.sort_unstable();
    devices.dedup();
    let last = ranks.first().map_or("", |r| message(&r.last.text));
    let same = ranks.iter().all(|r| pattern(message(&r.last.text)) == pattern(last));
    let cells = [
        ranges(&numbers, Some(MAX_COLUMNS[0])),
        common(ranks.iter().map(|r| r.host.as_deref()), "host"),
        if devices.is_empty() { "?".to_owned() } else { ranges(&devices, Some(MAX_COLUMNS[2])) },
        ranks.first().map_or("", |r| reached(job, r)).to_owned(),
        common(ranks.iter().map(|r| r.net.as_deref()), "net"),
        if same { clean(last).into_owned() } else { DIFFERS.to_owned() },
    ];
    Row { cells, absent: false }
}

/// The stage in words. A rank that only its framework speaks of has none.
fn reached(job: &Job, rank: &RankRow) -> &'static str {
    let silent = job.procs.get(rank.proc).is_some_and(|p| !p.nccl);
    if silent && rank.stage == Stage::Loaded { "no line of the library" } else { stage(rank.stage, &job.versions) }
}

/// The one value, or how many there are.
fn common<'a>(values: impl Iterator<Item = Option<&'a str>>, what: &str) -> String {
    let mut distinct: Vec<&str> = values.map(|v| v.unwrap_or("?")).collect();
    distinct.sort_unstable();
    distinct.dedup();
    match distinct.as_slice() {
        [one] => clean(one).into_owned(),
        many => plural(many.len() as u64, what),
    }
}

/// A record without wrappers and header, as far as they are easy to tell.
fn message(text: &str) -> &str {
    let cut = [" NCCL INFO ", " NCCL WARN "].iter().find_map(|mark| text.split_once(mark));
    cut.map_or(text, |(_, message)| message).trim()
}

/// The text with every word that holds a digit replaced, so that ranks which say the same are seen to.
fn pattern(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
    parts.filter(|w| !w.is_empty() && !w.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

fn table(page: &mut Page, rows: &[Row]) -> io::Result<()> {
    let titles = TITLES.map(|t| page.word(t).into_owned());
    let mut widths: Vec<usize> = Vec::new();
    for (column, most) in MAX_COLUMNS.iter().enumerate() {
        let widest = rows.iter().map(|r| columns(&r.cells[column])).max().unwrap_or(0);
        widths.push(widest.min(*most).max(columns(&titles[column])));
    }
    let taken: usize = widths.iter().map(|w| w + 2).sum();
    let room = page.width.saturating_sub(taken);
    let titles = line(&titles, &widths, (room >= MIN_LAST).then_some(room));
    let dim = page.palette.dim;
    page.raw(0, &paint(dim, &shorten(titles.trim_end(), page.width)))?;
    for row in rows {
        let text = line(&row.cells, &widths, (room >= MIN_LAST).then_some(room));
        let style = if row.absent { page.palette.warning } else { page.palette.plain };
        page.raw(0, &paint(style, &shorten(text.trim_end(), page.width)))?;
        if room < MIN_LAST && !row.cells[5].is_empty() {
            let last = shorten(&format!("{}{}", page.label("last: "), row.cells[5]), page.width - 4);
            page.raw(4, &paint(dim, &last))?;
        }
    }
    Ok(())
}

/// One line of the table; the last cell only if there is room for it.
fn line(cells: &[String; 6], widths: &[usize], room: Option<usize>) -> String {
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = shorten(cell, *width);
        out.push_str(&cell);
        out.push_str(&" ".repeat(width.saturating_sub(columns(&cell)) + 2));
    }
    if let Some(room) = room {
        out.push_str(&shorten(&cells[5], room));
    }
    out
}
