//! Every rank as a square: exact where the ladder's columns hold many.

use super::super::stage;
use super::super::view::{Board, Standing};
use super::{block, picture, round, t};
use crate::job::Job;
use maud::{Markup, html};

/// Most squares with a name of their own.
const MAX_NAMED: usize = 512;

/// The picture. The script reads the geometry from its attributes to say which rank is under the pointer.
pub fn draw(board: &Board, job: &Job) -> Markup {
    let count = board.places.len();
    let columns = (((count * 2) as f64).sqrt().ceil() as usize).div_ceil(8).max(1) * 8;
    let cell = (864.0 / columns as f64).floor().clamp(3.0, 12.0);
    let at = |index: usize| ((index % columns) as f64 * cell, (index / columns) as f64 * cell);
    let size = cell - 1.0;
    let calm = |standing: Standing| {
        let mine = board.places.iter().enumerate().filter(|(_, p)| p.standing == standing);
        mine.map(|(i, _)| at(i)).map(|(x, y)| block(x, y, size, size)).collect::<String>()
    };
    let odd = board.places.iter().enumerate().filter(|(_, p)| p.standing.stands_out() || p.named).take(MAX_NAMED);
    let content = html! {
        @for standing in Standing::ALL {
            @let path = calm(standing);
            @if !path.is_empty() { path .(standing.class()) d=(path) {} }
        }
        @for (index, place) in odd {
            @let (x, y) = at(index);
            rect .odd .(place.standing.class()) x=(round(x - 0.5)) y=(round(y - 0.5)) width=(round(cell)) height=(round(cell)) data-r=(place.rank) {
                title {
                    "rank " (place.rank)
                    @if let Some(host) = place.host.and_then(|h| job.hosts.get(h)) { " on " (t(&host.name)) }
                    ": " (place.standing.label())
                    @if let Some(reached) = place.stage { ", reached " (stage(reached, &job.versions)) }
                }
            }
        }
    };
    let rows = count.div_ceil(columns);
    html! {
        div #squares data-columns=(columns) data-cell=(round(cell)) data-count=(count) {
            (picture("squares", columns as f64 * cell + 1.0, rows as f64 * cell + 1.0, "Every rank as a square, row by row", &content))
        }
    }
}
