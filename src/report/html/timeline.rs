//! The timeline: a lane a rank (or a host, where there are many), marks for what happened, dashes for silence.

use super::super::ranges;
use super::super::view::{Moment, Story, StoryKind as Kind, clock_text, message, shorten, story};
use super::{picture, round, t};
use crate::job::Job;
use crate::rules::Analysis;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Up to this many ranks each has a lane.
const MAX_RANK_LANES: usize = 64;

/// Most lanes of hosts; more hosts share lanes.
const MAX_HOST_LANES: usize = 96;

/// Most marks in a lane.
const MAX_MARKS: usize = 60;

const LEFT: f64 = 150.0;
const ROOM: f64 = 720.0;
const ROW: f64 = 18.0;
const TOP: f64 = 28.0;

struct Lane<'a> {
    name: String,
    ranks: Vec<u32>,
    moments: Vec<&'a Moment<'a>>,
}

/// The section, if enough lines carry time.
pub fn section(analysis: &Analysis) -> Option<Markup> {
    let story = story(analysis)?;
    let start = story.moments.first()?.micros;
    let span = story.end.checked_sub(start)?.max(1) as f64;
    let lanes = lanes(&story, &analysis.job);
    let x = |micros: i64| LEFT + micros.saturating_sub(start) as f64 / span * ROOM;
    let height = TOP + lanes.len() as f64 * ROW + 8.0;
    let content = html! {
        (axis(&story, start, height))
        @for (index, lane) in lanes.iter().enumerate() { (draw(lane, &story, TOP + index as f64 * ROW, &x)) }
    };
    let kinds = [Kind::Start, Kind::Complete, Kind::Warning, Kind::Failure, Kind::End];
    let seen = |kind: Kind| lanes.iter().any(|l| l.moments.iter().any(|m| m.kind == kind));
    Some(html! {
        p { (clock_text(story.clock, start, true)) " to " (clock_text(story.clock, story.end, true)) " (" (length(story.end - start)) ")." }
        p .legend {
            @for kind in kinds.into_iter().filter(|k| seen(*k)) { span { i .(class(kind)) {} (kind.label()) } }
            span { i .silence {} "silence until the end of the logs" }
        }
        (picture("timeline", LEFT + ROOM + 24.0, height, "What happened when", &content))
        (failures(&story))
    })
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::First | Kind::Last => "line",
        Kind::Start => "start",
        Kind::Complete => "done",
        Kind::Warning => "waiting",
        Kind::Failure => "absent",
        Kind::End => "end",
    }
}

fn length(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        0 => format!("{} ms", micros / 1000),
        1..=119 => format!("{}.{} s", seconds, micros % 1_000_000 / 100_000),
        120..=7199 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn lanes<'a>(story: &'a Story<'a>, job: &Job) -> Vec<Lane<'a>> {
    let by_rank = job.ranks.len() <= MAX_RANK_LANES;
    let per = job.hosts.len().div_ceil(MAX_HOST_LANES).max(1);
    let host_of: BTreeMap<u32, usize> = job.hosts.iter().enumerate().flat_map(|(i, h)| h.ranks.iter().map(move |r| (*r, i))).collect();
    let mut lanes: BTreeMap<(bool, usize), Lane<'a>> = BTreeMap::new();
    for moment in &story.moments {
        let (key, name) = match moment.rank {
            Some(rank) if by_rank => ((false, rank as usize), format!("rank {rank}")),
            Some(rank) if host_of.contains_key(&rank) => {
                let row = host_of[&rank] / per;
                ((false, row), row_name(job, row, per))
            }
            _ => ((true, 0), "others".to_owned()),
        };
        let lane = lanes.entry(key).or_insert_with(|| Lane { name, ranks: Vec::new(), moments: Vec::new() });
        lane.moments.push(moment);
        lane.ranks.extend(moment.rank);
    }
    let mut lanes: Vec<Lane<'a>> = lanes.into_values().collect();
    for lane in &mut lanes {
        lane.ranks.sort_unstable();
        lane.ranks.dedup();
    }
    lanes
}

fn row_name(job: &Job, row: usize, per: usize) -> String {
    let first = job.hosts.get(row * per).map_or("", |h| h.name.as_str());
    if per == 1 { first.to_owned() } else { format!("{first} …") }
}

fn axis(story: &Story<'_>, start: i64, height: f64) -> Markup {
    const TICKS: i64 = 4;
    html! {
        @for tick in 0..=TICKS {
            @let at = LEFT + ROOM * tick as f64 / TICKS as f64;
            @let micros = start + ((story.end - start) as f64 * tick as f64 / TICKS as f64) as i64;
            path .grid d=(format!("M{} {}v{}", round(at), round(TOP - 6.0), round(height - TOP))) {}
            text .num x=(round(at)) y="14" text-anchor=(match tick { 0 => "start", TICKS => "end", _ => "middle" }) { (clock_text(story.clock, micros, false)) }
        }
    }
}

fn draw(lane: &Lane<'_>, story: &Story<'_>, y: f64, x: &impl Fn(i64) -> f64) -> Markup {
    let (from, to) = (lane.moments.first().map_or(story.end, |m| m.micros), lane.moments.last().map_or(story.end, |m| m.micros));
    let middle = y + ROW / 2.0;
    let silent = x(story.end) - x(to) > 6.0;
    html! {
        g data-r=[(!lane.ranks.is_empty()).then(|| ranges(&lane.ranks, None))] {
            text .stage x=(round(LEFT - 10.0)) y=(round(middle + 4.0)) text-anchor="end" { (t(&shorten(&lane.name, 18))) }
            path .life d=(format!("M{} {}H{}", round(x(from)), round(middle), round(x(to).max(x(from) + 1.0)))) {}
            @if silent { path .silence d=(format!("M{} {}H{}", round(x(to)), round(middle), round(x(story.end)))) {} }
            @for moment in marks(lane, x) { (mark(moment, story, x(moment.micros), middle)) }
        }
    }
}

/// What is seen of a lane's moments: one mark a kind and place, the worst kinds last and so on top.
fn marks<'a>(lane: &Lane<'a>, x: &impl Fn(i64) -> f64) -> Vec<&'a Moment<'a>> {
    let mut at: BTreeMap<(u8, i64), &Moment<'_>> = BTreeMap::new();
    for moment in lane.moments.iter().filter(|m| !matches!(m.kind, Kind::First | Kind::Last)) {
        let weight = match moment.kind {
            Kind::Failure => 3,
            Kind::Warning => 2,
            Kind::Complete => 1,
            _ => 0,
        };
        at.entry((weight, (x(moment.micros) / 3.0) as i64)).or_insert(moment);
    }
    let skip = at.len().saturating_sub(MAX_MARKS);
    at.into_values().skip(skip).collect()
}

fn mark(moment: &Moment<'_>, story: &Story<'_>, x: f64, y: f64) -> Markup {
    let shape = match moment.kind {
        Kind::Failure => format!("M{} {}l5.5 5.5-5.5 5.5-5.5-5.5z", round(x), round(y - 5.5)),
        Kind::Warning => format!("M{} {}l4 4-4 4-4-4z", round(x), round(y - 4.0)),
        Kind::End => format!("M{} {}h2.5v10h-2.5z", round(x - 1.0), round(y - 5.0)),
        _ => format!("M{} {}h3v8h-3z", round(x - 1.5), round(y - 4.0)),
    };
    html! {
        path .(class(moment.kind)) d=(shape) {
            title { (clock_text(story.clock, moment.micros, false)) " " (moment.kind.label()) ": " (t(&shorten(message(moment.text), 160))) }
        }
    }
}

/// The failures in words, for those who read.
fn failures(story: &Story<'_>) -> Markup {
    const MOST: usize = 20;
    let list: Vec<&Moment<'_>> = story.moments.iter().filter(|m| matches!(m.kind, Kind::Failure | Kind::Warning)).collect();
    html! {
        @if !list.is_empty() {
            details {
                summary { "Warnings and errors in order of time (" (list.len()) ")" }
                table .wide { tbody {
                    @for m in list.iter().take(MOST) { tr data-r=[m.rank] { td .nowrap { (clock_text(story.clock, m.micros, false)) } td .nowrap { @if let Some(r) = m.rank { "rank " (r) } @else { (t(m.host)) } } td { code { (t(&shorten(message(m.text), 200))) } } } }
                } }
                @if list.len() > MOST { p .quiet { "… " (list.len() - MOST) " more" } }
            }
        }
    }
}
