//! The transport map: who sends to whom over what; ranks up to 256, nodes above.

use super::super::view::{Board, Carrier, carrier, lanes, message, shorten};
use super::super::{plural, ranges};
use super::{block, picture, round, t};
use crate::job::{Job, Transport};
use crate::rules::Analysis;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Up to this many ranks each has a row.
const MAX_RANKS: usize = 256;

/// Up to this many nodes each has a row; more nodes share rows.
const MAX_NODES: usize = 128;

/// Up to this many cells say on hovering what they are.
const MAX_NAMED: usize = 3000;

/// Most lines of rings and trees.
const MAX_LINES: usize = 64;

const MARGIN: f64 = 40.0;

/// One field of the matrix: what it is drawn as, and what it says.
struct Cell {
    carrier: Carrier,
    odd: bool,
    text: String,
    label: String,
    ranks: Vec<u32>,
}

struct Matrix {
    /// Names of the rows.
    names: Vec<String>,
    cells: BTreeMap<(usize, usize), Cell>,
    /// Rows after which a host ends.
    edges: Vec<usize>,
    what: &'static str,
}

/// The section, if a channel line was seen.
pub fn section(analysis: &Analysis, board: &Board) -> Option<Markup> {
    let job = &analysis.job;
    if job.transports.is_empty() {
        return None;
    }
    let matrix = if board.places.len() <= MAX_RANKS { by_rank(job, board) } else { by_node(job, board) };
    let kinds: BTreeSet<Carrier> = job.transports.iter().map(|t| carrier(&t.via)).collect();
    let odd = matrix.cells.values().filter(|c| c.odd).count();
    Some(html! {
        ul .lanes { @for lane in lanes(job).iter().take(12) { li { b { (lane.pairs) } " × " (t(&lane.name)) span .quiet { " " (plural(lane.channels, "channel")) } } } }
        p .legend {
            @for kind in Carrier::ALL.into_iter().filter(|k| kinds.contains(k)) { span { i .(kind.class()) {} (kind.label()) } }
            @if odd > 0 { span { i .odd {} "network inside one node" } }
        }
        (draw(&matrix))
        p .quiet { "Row: the sending " (matrix.what) "; column: the receiving one. Connections that NCCL makes on first use show up once they are used." }
        (orders(job))
    })
}

fn by_rank(job: &Job, board: &Board) -> Matrix {
    let index: BTreeMap<u32, usize> = board.places.iter().enumerate().map(|(i, p)| (p.rank, i)).collect();
    let host = |i: usize| board.places.get(i).and_then(|p| p.host);
    let mut cells: BTreeMap<(usize, usize), Vec<&Transport>> = BTreeMap::new();
    for transport in &job.transports {
        if let (Some(from), Some(to)) = (index.get(&transport.from), index.get(&transport.to)) {
            cells.entry((*from, *to)).or_default().push(transport);
        }
    }
    let cell = |((from, to), list): ((usize, usize), Vec<&Transport>)| {
        let main = list.iter().max_by_key(|t| t.channels).map_or(Carrier::Other, |t| carrier(&t.via));
        let odd = main.leaves() && host(from).is_some() && host(from) == host(to);
        let via: Vec<String> = list.iter().take(4).map(|t| format!("{}, {}", t.via, plural(t.channels.into(), "channel"))).collect();
        let (a, b) = (board.places[from].rank, board.places[to].rank);
        ((from, to), Cell { carrier: main, odd, text: format!("{a} → {b}: {}", via.join("; ")), label: String::new(), ranks: vec![a.min(b), a.max(b)] })
    };
    let names = board.places.iter().map(|p| p.rank.to_string()).collect();
    let edges = (1..board.places.len()).filter(|i| host(*i) != host(i - 1)).collect();
    Matrix { names, cells: cells.into_iter().map(cell).collect(), edges, what: "rank" }
}

/// Nodes that share a row where there are too many.
fn by_node(job: &Job, board: &Board) -> Matrix {
    let per = job.hosts.len().div_ceil(MAX_NODES).max(1);
    let rows: Vec<&[crate::job::HostRow]> = job.hosts.chunks(per).collect();
    let row_of: BTreeMap<u32, usize> = board.places.iter().filter_map(|p| Some((p.rank, p.host? / per))).collect();
    let mut cells: BTreeMap<(usize, usize), BTreeMap<Carrier, (u64, u64)>> = BTreeMap::new();
    for transport in &job.transports {
        if let (Some(from), Some(to)) = (row_of.get(&transport.from), row_of.get(&transport.to)) {
            let (pairs, channels) = cells.entry((*from, *to)).or_default().entry(carrier(&transport.via)).or_default();
            *pairs += 1;
            *channels += u64::from(transport.channels);
        }
    }
    let names: Vec<String> = rows
        .iter()
        .map(|r| match r {
            [one] => one.name.clone(),
            [first, .., last] => format!("{} … {}", first.name, last.name),
            [] => String::new(),
        })
        .collect();
    let ranks = |row: usize| rows.get(row).into_iter().flat_map(|r| r.iter()).flat_map(|h| h.ranks.iter().copied());
    let cell = |((from, to), kinds): ((usize, usize), BTreeMap<Carrier, (u64, u64)>)| {
        let main = kinds.iter().max_by_key(|(_, (pairs, _))| *pairs).map_or(Carrier::Other, |(k, _)| *k);
        let odd = per == 1 && from == to && kinds.keys().any(|k| k.leaves());
        let parts: Vec<String> = kinds.iter().map(|(k, (pairs, channels))| format!("{pairs} × {} ({})", k.label(), plural(*channels, "channel"))).collect();
        let total: u64 = kinds.values().map(|(pairs, _)| pairs).sum();
        let mut both: Vec<u32> = ranks(from).chain(ranks(to)).collect();
        both.sort_unstable();
        ((from, to), Cell { carrier: main, odd, text: format!("{} → {}: {}", names[from], names[to], parts.join(", ")), label: total.to_string(), ranks: both })
    };
    let cells = cells.into_iter().map(cell).collect();
    Matrix { names, cells, edges: Vec::new(), what: "node" }
}

fn draw(matrix: &Matrix) -> Markup {
    let count = matrix.names.len().max(1);
    let size = (640.0 / count as f64).clamp(2.5, 28.0);
    let side = size * count as f64;
    let gap = if size >= 6.0 { 1.0 } else { 0.0 };
    let place = |index: usize| MARGIN + index as f64 * size;
    let content = html! {
        path .rung d=(block(MARGIN, MARGIN, side, side)) {}
        @if matrix.cells.len() <= MAX_NAMED {
            @for ((from, to), cell) in &matrix.cells { (named(cell, place(*to), place(*from), size, gap)) }
        } @else {
            @for kind in Carrier::ALL {
                @let path: String = runs(matrix, kind).into_iter().map(|(row, from, to)| block(place(from), place(row), (to - from) as f64 * size - gap, size - gap)).collect();
                @if !path.is_empty() { path .(kind.class()) d=(path) {} }
            }
        }
        @for edge in &matrix.edges {
            path .edge d=(format!("M{} {}v{}M{} {}h{}", round(place(*edge) - gap / 2.0), round(MARGIN), round(side), round(MARGIN), round(place(*edge) - gap / 2.0), round(side))) {}
        }
        (labels(matrix, size))
    };
    picture("matrix", MARGIN + side + 8.0, MARGIN + side + 8.0, "Matrix of connections", &content)
}

fn named(cell: &Cell, x: f64, y: f64, size: f64, gap: f64) -> Markup {
    html! {
        g data-r=(ranges(&cell.ranks, Some(80)).split(",…").next().unwrap_or_default()) {
            rect .(cell.carrier.class()) .odd[cell.odd] x=(round(x)) y=(round(y)) width=(round(size - gap)) height=(round(size - gap)) { title { (t(&cell.text)) } }
            @if size >= 20.0 && !cell.label.is_empty() { text .count x=(round(x + size / 2.0)) y=(round(y + size / 2.0 + 4.0)) text-anchor="middle" { (cell.label) } }
        }
    }
}

/// Cells of one kind that touch in a row: row, first, one past the last.
fn runs(matrix: &Matrix, kind: Carrier) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for ((from, to), _) in matrix.cells.iter().filter(|(_, c)| c.carrier == kind) {
        match runs.last_mut() {
            Some(last) if last.0 == *from && last.2 == *to => last.2 += 1,
            _ => runs.push((*from, *to, to + 1)),
        }
    }
    runs
}

fn labels(matrix: &Matrix, size: f64) -> Markup {
    let step = (24.0 / size).ceil().max(1.0) as usize;
    let numbers = matrix.what == "rank";
    html! {
        @for (index, name) in matrix.names.iter().enumerate().step_by(step) {
            @let middle = MARGIN + index as f64 * size + size / 2.0;
            @let text = if numbers { name.clone() } else { index.to_string() };
            text .num x=(round(middle)) y=(round(MARGIN - 8.0)) text-anchor="middle" { title { (t(name)) } (t(&text)) }
            text .num x=(round(MARGIN - 8.0)) y=(round(middle + 4.0)) text-anchor="end" { title { (t(name)) } (t(&text)) }
        }
    }
}

/// Rings and trees as printed, on demand.
fn orders(job: &Job) -> Markup {
    let last = job.last_run();
    let entries = |kind: &'static str| job.procs.iter().filter(move |p| p.run == last).flat_map(move |p| p.log.ledger.of(kind));
    let lines = |kind| {
        let mut seen = BTreeSet::new();
        let all = entries(kind).flat_map(|e| &e.samples).map(|s| shorten(message(&s.text), 400));
        all.filter(|l| seen.insert(l.clone())).take(MAX_LINES).collect::<Vec<String>>()
    };
    let (rings, trees) = (lines("init.ring_order"), lines("init.trees"));
    let total: u64 = ["init.ring_order", "init.trees"].into_iter().flat_map(entries).map(|e| e.count).sum();
    let shown = rings.len() + trees.len();
    html! {
        @if shown > 0 {
            details {
                summary { "Rings and trees" }
                pre { @for line in rings.iter().chain(&trees) { (t(line)) "\n" } }
                @if total > shown as u64 { p .quiet { (plural(total, "line")) " of them in the logs, " (shown) " shown" } }
            }
        }
    }
}
