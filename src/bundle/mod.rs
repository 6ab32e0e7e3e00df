//! Bundles: one small file that stands for the logs of a job, however large they are. A tar archive under zstd, of which
//! `analyze` reads the digest and people the rest.

mod excerpt;

pub use excerpt::{Excerpts, Neighbours};

use crate::digest::{Digest, disk};
use serde::Serialize;
use std::io::{self, Write};

/// Format of the manifest.
pub const SCHEMA: &str = "ncclog.bundle/1";

/// The member that `analyze` reads. All others have endings that it leaves alone.
pub const DIGEST: &str = "job.digest";

/// What a bundle says of itself.
#[derive(Debug, Serialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Who made it.
    pub tool: String,
    /// Names, addresses and secrets are pseudonyms.
    pub redacted: bool,
    /// The logs that it stands for.
    pub inputs: Vec<Input>,
    /// Inputs that could not be read.
    pub problems: Vec<String>,
    /// What each member is.
    pub members: Vec<Member>,
    /// What is not in it.
    pub left_out: LeftOut,
}

/// A log.
#[derive(Debug, Default, Serialize)]
pub struct Input {
    /// Its path, as in the reports.
    pub path: String,
    /// Decoded bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// XXH3 of the file as it lay there, 128 bits; null for pipes and what came by a digest.
    pub xxh3: Option<String>,
}

/// A member.
#[derive(Debug, Serialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub what: &'static str,
}

/// What is not in a bundle.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct LeftOut {
    /// Lines of the logs that are in no excerpt.
    pub lines: u64,
    /// Lines that an excerpt would hold, but for its bound.
    pub over_bound: u64,
}

/// Everything that goes into a bundle.
pub struct Bundle<'a> {
    /// What it says of itself; its members are filled in.
    pub manifest: Manifest,
    /// The digest.
    pub digest: &'a Digest,
    /// The JSON report.
    pub json: Vec<u8>,
    /// The Markdown report.
    pub markdown: Vec<u8>,
    /// Lines of the logs.
    pub excerpts: Excerpts,
}

impl Bundle<'_> {
    /// Writes the archive.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut digest = Vec::new();
        disk::write(self.digest, &mut digest)?;
        let mut members = vec![
            ("report.md".to_owned(), "the report, for people", self.markdown),
            ("analysis.json".to_owned(), "the report, for programs (ncclog.analysis/1)", self.json),
            (DIGEST.to_owned(), "what `ncclog analyze` reads (ncclog.digest/1)", digest),
        ];
        members.extend(self.excerpts.files().into_iter().map(|(name, text)| (name, "lines of a log with their numbers", text.into_bytes())));
        self.manifest.members = members.iter().map(|(name, what, _)| Member { name: name.clone(), what }).collect();
        let mut manifest = serde_json::to_vec_pretty(&self.manifest)?;
        manifest.push(b'\n');
        members.insert(0, ("manifest.json".to_owned(), "", manifest));

        let mut archive = tar::Builder::new(zstd::stream::write::Encoder::new(out, 12)?);
        for (name, _, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            // No time and no owner: the same logs give the same bundle.
            header.set_mtime(0);
            archive.append_data(&mut header, &name, bytes.as_slice())?;
        }
        archive.into_inner()?.finish()?.flush()
    }
}
