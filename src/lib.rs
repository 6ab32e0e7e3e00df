//! ncclog names the root cause of a hanging, crashing or slow multi-GPU job from its NCCL or RCCL logs.
//!
//! ```no_run
//! use ncclog::Analysis;
//! use ncclog::report::{Format, Options, write};
//!
//! let analysis = Analysis::from_paths(["logs/", "dmesg.log"])?;
//! println!("{:?}: {} findings", analysis.verdict, analysis.findings.len());
//! write(Format::Json, &analysis, &mut std::io::stdout(), &Options::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | want | take |
//! |---|---|
//! | findings of files, directories, globs | [`Analysis::from_paths`], or [`analyze`] with [`Options`] and [`Progress`] |
//! | findings of logs in memory | [`Analysis::from_bytes`] |
//! | a report as text, JSON, Markdown, HTML, SARIF, JUnit | [`report::write`] |
//! | what single lines say | [`Log::events`], [`Event`] |
//! | the causes and their explanations | [`causes`], [`cause`] |
//!
//! # What is stable
//!
//! The items above and what they are made of, by semantic versioning; the names of causes and kinds of events; the JSON
//! of [`report::Format::Json`]. [`job`] shows what is known of ranks, communicators and transports: it may change in any
//! minor release. Modules that the documentation does not list are for the binary, its tests and its fuzzers only.
//!
//! # How it works
//!
//! One straight corridor; each stage knows only the ones before it: `input` → [`mod@line`] → [`event`] → `digest` → [`job`] →
//! [`rules`] → [`report`]. [`analysis`] wires them together over many files in parallel.

pub mod analysis;
#[doc(hidden)]
pub mod bundle;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod collect;
pub mod config;
#[doc(hidden)]
pub mod diff;
pub mod digest;
pub mod event;
#[doc(hidden)]
pub mod events;
pub mod expect;
#[doc(hidden)]
pub mod follow;
#[doc(hidden)]
pub mod input;
pub mod job;
#[doc(hidden)]
pub mod lang;
pub mod line;
mod log;
#[doc(hidden)]
pub mod redact;
pub mod report;
pub mod rules;
#[doc(hidden)]
pub mod settings;

pub use analysis::{Incomplete, Options, Outcome, Problem, Progress, Silent, analyze};
pub use event::Event;
pub use log::{Events, Log, Occurrence};
pub use rules::{Analysis, Cause, Confidence, Evidence, Finding, Fix, Severity, Verdict, cause, causes};
