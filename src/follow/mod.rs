//! Follow: the same analysis, fed as the lines appear.
//!
//! Every name is one [`Stream`]: bytes are cut into whole lines, parsed by [`crate::digest::map`] and folded, through
//! rotation, truncation, deletion and re-creation of the file behind the name. A look clones the folds, adds lines
//! whose end has not been written yet, and asks job and rules, so that a finding is computed in one way only.

mod changes;
mod file;
mod follower;
mod gate;
mod lines;
mod pace;
mod progress;
mod stream;
mod targets;
mod watch;

pub use changes::Changes;
pub use file::Tail;
pub use follower::{Follower, Look};
pub use gate::{Gate, Passed, Until};
pub use lines::Lines;
pub use pace::Pace;
pub use progress::Progress;
pub use stream::{Extra, Observed, Observer, Stream};
pub use targets::{Scan, Targets};
pub use watch::{Pipe, Wake, Watch};
