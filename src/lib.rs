//! ncclog names the root cause of a hanging, crashing or slow multi-GPU job from its NCCL or RCCL logs.
//!
//! One straight corridor; each stage knows only the ones before it:
//! [`input`] → [`line`] → [`event`] → [`digest`] → [`job`] → [`rules`] → [`report`].
//! [`analysis`] wires the first four together over many files in parallel.

pub mod analysis;
pub mod cli;
pub mod collect;
pub mod config;
pub mod digest;
pub mod event;
pub mod events;
pub mod expect;
pub mod follow;
pub mod input;
pub mod job;
pub mod line;
pub mod report;
pub mod rules;
