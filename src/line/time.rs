//! Points in time as log lines carry them.

use serde::{Deserialize, Serialize};

/// Which clock a time was read from. Only times of the same kind (and, for monotonic ones, host) compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Date and time; microseconds since 1970-01-01 as if the text were UTC.
    Date,
    /// Month, day and time, no year; microseconds since January 1st.
    YearDay,
    /// Time of day only; microseconds since midnight.
    Day,
    /// Seconds since boot (kernel lines, ROCm runtime); microseconds.
    Boot,
}

/// A point in time with its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time {
    /// Kind of clock.
    pub clock: Clock,
    /// Microseconds on that clock.
    pub micros: i64,
}
