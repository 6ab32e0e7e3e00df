//! The stage ladder: ranks side by side, stages upwards. A rank that stopped early is a short bar, one without a line
//! a hatched one.

use super::super::view::{Board, Standing};
use super::super::{plural, ranges, stage};
use super::squares;
use super::{block, picture, round, t};
use crate::event::Stage;
use crate::job::Job;
use crate::rules::Analysis;
use maud::{Markup, html};

/// Most columns; more ranks share columns.
const MAX_COLUMNS: usize = 128;

const LEFT: f64 = 196.0;
const TOP: f64 = 18.0;
const ROW: f64 = 20.0;
const ROOM: f64 = 720.0;

type Place = super::super::view::Place;

/// Ranks that share a column.
struct Column<'a> {
    places: &'a [Place],
    x: f64,
    width: f64,
}

/// The section, if any rank is known.
pub fn section(analysis: &Analysis, board: &Board) -> Option<Markup> {
    if board.places.is_empty() {
        return None;
    }
    let job = &analysis.job;
    let stages = board.stages();
    let columns = columns(board, job);
    let width = LEFT + columns.last().map_or(0.0, |c| c.x + c.width) + 8.0;
    let bottom = TOP + stages.len() as f64 * ROW;
    let content = html! {
        defs { pattern #hatch width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" { path d="M0 0v6" class="hatch" {} } }
        @for (row, one) in stages.iter().rev().enumerate() {
            @let y = TOP + row as f64 * ROW;
            text .stage x=(round(LEFT - 10.0)) y=(round(y + 14.0)) text-anchor="end" { (stage(*one, &job.versions)) }
            path .rung d=(block(LEFT, y, width - LEFT - 8.0, ROW - 2.0)) {}
        }
        @for column in &columns { (draw(column, &stages, job)) }
        (rank_labels(&columns, bottom))
        (host_labels(&columns, job, bottom))
    };
    Some(html! {
        p { (summary(board)) }
        (legend(board))
        (picture("ladder", width, bottom + 44.0, "Ranks side by side, stages upwards", &content))
        @if columns.iter().any(|c| c.places.len() > 1) {
            p .quiet { "A column stands for " (plural(columns[0].places.len() as u64, "rank")) "; the darker, the more of them reached the stage. Below, every rank is a square of its own." }
            (squares::draw(board, job))
        }
    })
}

fn summary(board: &Board) -> Markup {
    let part = |standing: Standing| {
        let ranks = board.ranks(standing);
        (!ranks.is_empty()).then_some((standing, ranks))
    };
    html! {
        @for (i, (standing, ranks)) in Standing::ALL.into_iter().filter_map(part).enumerate() {
            @if i > 0 { "; " }
            @if standing.stands_out() { b { (plural(ranks.len() as u64, "rank")) ": " (standing.label()) } " (" (ranges(&ranks, Some(60))) ")" }
            @else { (plural(ranks.len() as u64, "rank")) ": " (standing.label()) }
        }
        "."
    }
}

fn legend(board: &Board) -> Markup {
    html! {
        p .legend {
            @for standing in Standing::ALL.into_iter().filter(|s| board.count(*s) > 0) { span { i .(standing.class()) {} (standing.label()) } }
            span { i .pass {} "passed, no line of its own" }
            @if board.places.iter().any(|p| p.named) { span { i .named {} "named by a finding" } }
        }
    }
}

fn columns<'a>(board: &'a Board, job: &Job) -> Vec<Column<'a>> {
    let mut per = board.places.len().div_ceil(MAX_COLUMNS).max(1);
    let per_host = job.hosts.iter().map(|h| h.ranks.len()).max().unwrap_or(1).max(1);
    if per > 1 && per_host <= per {
        per = per.div_ceil(per_host) * per_host;
    }
    let count = board.places.len().div_ceil(per);
    let width = (ROOM / count as f64).clamp(5.5, 52.0);
    board.places.chunks(per).enumerate().map(|(i, places)| Column { places, x: i as f64 * width, width }).collect()
}

fn draw(column: &Column<'_>, stages: &[Stage], job: &Job) -> Markup {
    let ranks: Vec<u32> = column.places.iter().map(|p| p.rank).collect();
    let worst = column.places.iter().map(|p| p.standing).min().unwrap_or(Standing::Absent);
    let top = TOP + stages.len() as f64 * ROW;
    let (x, width) = (LEFT + column.x, (column.width - 1.5).max(3.0));
    html! {
        g data-r=(ranges(&ranks, None)) {
            title { (tooltip(column, job)) }
            @if worst == Standing::Absent && column.places.len() == 1 {
                path .absent d=(block(x, TOP, width, top - TOP - 2.0)) {}
            } @else if let [one] = column.places {
                (bar(*one, stages, x, width))
            } @else {
                (shades(column.places, stages, x, width))
            }
            @if worst.stands_out() { circle .(worst.class()) cx=(round(x + width / 2.0)) cy="8" r=(round((width / 2.0).clamp(2.5, 5.0))) {} }
            @if column.places.iter().any(|p| p.named) { path .named d=(format!("M{} {}l5 8h-10z", round(x + width / 2.0), round(top + 1.0))) {} }
        }
    }
}

/// One rank: full where the log shows the stage, pale where it must have been passed.
fn bar(place: Place, stages: &[Stage], x: f64, width: f64) -> Markup {
    let Some(reached) = place.stage else { return html! { g .(place.standing.class()) { path .pass d=(block(x, TOP, width, stages.len() as f64 * ROW - 2.0)) {} } } };
    let (mut seen, mut passed) = (String::new(), String::new());
    for (row, stage) in stages.iter().rev().enumerate().filter(|(_, s)| **s <= reached) {
        let into = if place.seen & (1 << *stage as u32) != 0 { &mut seen } else { &mut passed };
        into.push_str(&block(x, TOP + row as f64 * ROW, width, ROW - 2.0));
    }
    html! {
        g .(place.standing.class()) {
            @if !passed.is_empty() { path .pass d=(passed) {} }
            @if !seen.is_empty() { path d=(seen) {} }
        }
    }
}

/// Many ranks: the darker, the more of them came so far.
fn shades(places: &[Place], stages: &[Stage], x: f64, width: f64) -> Markup {
    let class = usual(places).class();
    let share = |stage: Stage| places.iter().filter(|p| p.stage.is_some_and(|s| s >= stage)).count() as f64 / places.len() as f64;
    html! {
        g .(class) {
            @for (row, stage) in stages.iter().rev().enumerate() {
                @let share = share(*stage);
                @if share > 0.0 { path d=(block(x, TOP + row as f64 * ROW, width, ROW - 2.0)) fill-opacity=(format!("{:.2}", 0.25 + 0.75 * share)) {} }
            }
        }
    }
}

fn usual(places: &[Place]) -> Standing {
    let mut all: Vec<Standing> = places.iter().map(|p| p.standing).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(Standing::Absent)
}

fn tooltip(column: &Column<'_>, job: &Job) -> Markup {
    html! {
        @if let [one] = column.places {
            "rank " (one.rank)
            @if let Some(host) = one.host.and_then(|h| job.hosts.get(h)) { " on " (t(&host.name)) }
            ": " @if let Some(reached) = one.stage { (stage(reached, &job.versions)) } @else { (one.standing.label()) }
        } @else {
            @let ranks: Vec<u32> = column.places.iter().map(|p| p.rank).collect();
            "ranks " (ranges(&ranks, Some(40)))
            @for standing in Standing::ALL {
                @let there: Vec<u32> = column.places.iter().filter(|p| p.standing == standing).map(|p| p.rank).collect();
                @if !there.is_empty() { "\n" (standing.label()) ": " (ranges(&there, Some(40))) }
            }
        }
    }
}

fn rank_labels(columns: &[Column<'_>], bottom: f64) -> Markup {
    let width = columns.first().map_or(1.0, |c| c.width);
    let step = (34.0 / width).ceil().max(1.0) as usize;
    let step = if width >= 18.0 { 1 } else { step };
    html! {
        @for column in columns.iter().step_by(step) {
            @if let Some(first) = column.places.first() { text .num x=(round(LEFT + column.x + column.width / 2.0)) y=(round(bottom + 20.0)) text-anchor="middle" { (first.rank) } }
        }
    }
}

/// A bracket under the columns of each host, with its name where there is room.
fn host_labels(columns: &[Column<'_>], job: &Job, bottom: f64) -> Markup {
    let mut spans: Vec<(usize, f64, f64)> = Vec::new();
    for column in columns.iter().filter(|c| c.places.len() == 1) {
        let Some(host) = column.places.first().and_then(|p| p.host) else { continue };
        let end = column.x + column.width;
        match spans.last_mut() {
            Some(last) if last.0 == host && (last.2 - column.x).abs() < 0.01 => last.2 = end,
            _ => spans.push((host, column.x, end)),
        }
    }
    html! {
        @for (host, from, to) in &spans {
            path .bracket d=(format!("M{} {}h{}", round(LEFT + from + 1.0), round(bottom + 27.0), round(to - from - 3.0))) {}
            @let letters = ((to - from) / 7.0) as usize;
            @if letters >= 4 && let Some(row) = job.hosts.get(*host) {
                text .num x=(round(LEFT + f64::midpoint(*from, *to))) y=(round(bottom + 40.0)) text-anchor="middle" { (t(&super::super::view::shorten(&row.name, letters))) }
            }
        }
    }
}
