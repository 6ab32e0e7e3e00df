//! Tables: what differs between ranks, attempts, notes, all ranks, settings, inputs.

use super::super::view::{Board, Compared, attempts, common_settings, compare, message, shorten};
use super::super::{plural, ranges, stage};
use super::{prose, t};
use crate::job::Job;
use crate::rules::Analysis;
use maud::{Markup, html};

/// Most differing facts.
const MAX_FACTS: usize = 60;

/// Most values of one fact.
const MAX_VALUES: usize = 6;

/// Most ranks with a row; the rest is counted.
const MAX_RANKS: usize = 4096;

/// Most inputs with a row.
const MAX_INPUTS: usize = 256;

/// Up to this many ranks the table is open from the start.
const OPEN_RANKS: usize = 32;

/// Facts that are not the same on all ranks.
pub fn differences(job: &Job) -> Option<Markup> {
    let list = compare(job);
    if list.is_empty() {
        return None;
    }
    Some(html! {
        div .scroll { table .wide {
            thead { tr { th { "fact" } th { "most ranks" } th { "others" } } }
            tbody { @for fact in list.iter().take(MAX_FACTS) { (difference(fact)) } }
        } }
        @if list.len() > MAX_FACTS { p .quiet { "… " (plural((list.len() - MAX_FACTS) as u64, "more fact")) } }
    })
}

fn difference(fact: &Compared) -> Markup {
    let value =
        |value: &str, who: &[u32]| html! { code { (t(&shorten(value, 120))) } span .quiet { " " @if who.len() == 1 { "rank " } @else { "ranks " } (ranges(who, Some(40))) } };
    let (most, others) = fact.values.split_first().map_or((None, &[][..]), |(m, o)| (Some(m), o));
    html! {
        tr data-q {
            td .nowrap { code { (t(&fact.name)) } }
            td { @if let Some((v, who)) = most { (value(v, who)) } }
            td { @for (v, who) in others.iter().take(MAX_VALUES) { div .differs { (value(v, who)) } } @if others.len() > MAX_VALUES { "… " (others.len() - MAX_VALUES) " more values" } }
        }
    }
}

/// Attempts, if there are several.
pub fn attempt_list(job: &Job) -> Option<Markup> {
    let list = attempts(job);
    (!list.is_empty()).then(|| {
        html! {
            p { "The findings are those of the last attempt." }
            div .scroll { table .wide {
                thead { tr { th { "attempt" } th { "begins" } th { "ranks" } th { "Init COMPLETE" } th { "first warning" } } }
                tbody { @for a in list.iter().take(100) { tr {
                    td { (a.number) } td .place { (t(&a.place)) } td { (a.ranks) } td { (a.complete) }
                    td { @if let Some((place, text)) = &a.warning { span .place { (t(place)) } " " code { (t(&shorten(message(text), 160))) } } @else { span .quiet { "none" } } }
                } } }
            } }
        }
    })
}

/// Notes that the head has not used up.
pub fn notes(analysis: &Analysis, used: usize) -> Option<Markup> {
    let notes = analysis.notes.get(used..).unwrap_or_default();
    (!notes.is_empty()).then(|| html! { ul { @for note in notes { li { (prose(note)) } } } })
}

/// A row a rank. The script finds a rank's facts here.
pub fn ranks(analysis: &Analysis, board: &Board) -> Option<Markup> {
    let job = &analysis.job;
    if board.places.is_empty() {
        return None;
    }
    let shown = board.places.len().min(MAX_RANKS);
    let last = if board.places.len() > 512 { 56 } else { 160 };
    let row = |rank: u32| job.ranks.binary_search_by_key(&rank, |r| r.rank).ok().and_then(|i| job.ranks.get(i));
    let table = html! {
        div .scroll { table .wide .ranks {
            thead { tr { th { "rank" } th { "host" } th { "dev" } th { "bus" } th { "stage reached" } th { "net" } th { "last line" } } }
            tbody { @for place in &board.places[..shown] {
                tr id=(format!("r{}", place.rank)) data-r=(place.rank) data-q .(place.standing.class()) {
                    td { (place.rank) }
                    @if let Some(r) = row(place.rank) {
                        td { (t(r.host.as_deref().unwrap_or("?"))) } td { @if let Some(d) = r.device { (d) } } td { (t(r.bus_id.as_deref().unwrap_or(""))) }
                        td { (stage(r.stage, &job.versions)) } td { (t(r.net.as_deref().unwrap_or(""))) } td { (t(&shorten(message(&r.last.text), last))) }
                    } @else { td colspan="6" { (place.standing.label()) } }
                }
            } }
        } }
        @if board.places.len() > shown { p .quiet { "… " (plural((board.places.len() - shown) as u64, "more rank")) " in --format json" } }
    };
    Some(html! { details open[shown <= OPEN_RANKS] { summary { (plural(board.places.len() as u64, "rank")) } (table) } })
}

/// Variables that all ranks agree on.
pub fn settings(job: &Job) -> Option<Markup> {
    let list = common_settings(job);
    (!list.is_empty()).then(|| {
        html! { details { summary { (plural(list.len() as u64, "variable")) " with one value everywhere" }
            div .scroll { table .wide { tbody { @for (name, value) in list.iter().take(200) { tr data-q { td .nowrap { code { (t(name)) } } td { code { (t(&shorten(value, 200))) } } } } } } }
        } }
    })
}

/// What was read.
pub fn inputs(job: &Job) -> Option<Markup> {
    let list = &job.streams;
    let troubled = list.iter().any(|s| s.problem.is_some());
    (!list.is_empty()).then(|| {
        html! { details open[troubled] { summary { (plural(list.len() as u64, "file")) }
            div .scroll { table .wide {
                thead { tr { th { "file" } th { "lines" } th { "of the library" } th { "problem" } } }
                tbody { @for s in list.iter().take(MAX_INPUTS) { tr { td .place { (t(&s.path)) } td { (s.lines) } td { (s.nccl_lines) } td { @if let Some(p) = &s.problem { (t(p)) } } } } }
            } }
            @if list.len() > MAX_INPUTS { p .quiet { "… " (list.len() - MAX_INPUTS) " more" } }
        } }
    })
}
