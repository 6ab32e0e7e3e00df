//! Redacts what was analysed: all text that came from the logs, before anything writes it, so that every format escapes
//! pseudonyms as it escapes names.

use super::walk::{Kind, Walk};
use crate::digest::{Digest, template};
use crate::redact::{Class, Found, Redactor};
use crate::report::{Context, Surroundings, surroundings};
use crate::rules::{Analysis, Evidence};
use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Redacts an analysis with what `redactor` knows and what it learns from it.
pub fn redact_analysis(analysis: &mut Analysis, redactor: &mut Redactor) {
    redact(redactor, |mut walk| walk.analysis(analysis));
}

/// Redacts a digest with what `redactor` knows and what it learns from it.
pub fn redact_digest(digest: &mut Digest, redactor: &mut Redactor) {
    redact(redactor, |mut walk| walk.digest(digest));
}

/// Two rounds over the same text: the first learns, the second replaces.
fn redact(redactor: &mut Redactor, mut go: impl FnMut(Walk<'_>)) {
    let mut found = Found::default();
    go(Walk::new(&mut |text, kind| learn(text, kind, redactor, &mut found)));
    redactor.join([found]);
    let masks = Masks::new(redactor);
    go(Walk::new(&mut |text, kind| *text = replaced(text, kind, redactor, &masks)));
}

/// Fields that hold a host or its address.
fn names_host(field: &str) -> bool {
    matches!(field, "host" | "peer_host" | "node" | "hostname" | "node_name")
}

/// A value that is a host if its field says so.
fn is_name(value: &str) -> bool {
    let word = value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    word && value.bytes().any(|b| b.is_ascii_alphabetic()) && value.parse::<IpAddr>().is_err()
}

/// `gpu-01 (10.0.0.1)`: two hosts of one name are told apart by an address.
fn host_and_rest(text: &str) -> (&str, &str) {
    text.split_at(text.find(' ').unwrap_or(text.len()))
}

fn learn(text: &str, kind: Kind<'_>, redactor: &Redactor, found: &mut Found) {
    match kind {
        Kind::Path => redactor.learn_path(text, found),
        Kind::Host => {
            let (host, rest) = host_and_rest(text);
            if is_name(host) && host != "localhost" {
                found.add(host, Class::Host);
            }
            found.read(rest.as_bytes(), redactor);
        }
        Kind::MaybeHost if is_name(text) && Redactor::may_be_host(text) => found.add(text, Class::Host),
        Kind::Field(name) if names_host(name) && is_name(text) && Redactor::may_be_host(text) => found.add(text, Class::Host),
        Kind::Setting(name) => found.read(format!("{name}={text}").as_bytes(), redactor),
        Kind::Text | Kind::MaybeHost | Kind::Field(_) => found.read(text.as_bytes(), redactor),
        Kind::Template | Kind::Words => {}
    }
}

fn replaced(text: &str, kind: Kind<'_>, redactor: &Redactor, masks: &Masks) -> String {
    match kind {
        Kind::Words => redactor.words(text).into_owned(),
        Kind::Path => redactor.path(text),
        Kind::Host => {
            let (host, rest) = host_and_rest(text);
            let host = if is_name(host) && host != "localhost" { redactor.name(host, Class::Host) } else { redactor.text(host).into_owned() };
            host + &redactor.text(rest)
        }
        Kind::MaybeHost if is_name(text) && Redactor::may_be_host(text) => redactor.name(text, Class::Host),
        Kind::Field(name) if names_host(name) && is_name(text) && Redactor::may_be_host(text) => redactor.name(text, Class::Host),
        Kind::Setting(name) => {
            let whole = redactor.text(&format!("{name}={text}")).into_owned();
            whole.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or(whole)
        }
        Kind::Text | Kind::MaybeHost | Kind::Field(_) => redactor.text(text).into_owned(),
        Kind::Template => masks.replace(&redactor.text(text)),
    }
}

/// Identities in templates, where digits are masked.
struct Masks {
    finder: Option<AhoCorasick>,
    to: Vec<String>,
}

impl Masks {
    fn new(redactor: &Redactor) -> Self {
        let mask = |t: &[u8]| template(t);
        let mut pairs: Vec<(String, String)> = redactor.pairs().map(|(from, to)| (mask(from), mask(to.as_bytes()))).collect();
        pairs.retain(|(from, _)| from.len() >= 3 && from.bytes().filter(u8::is_ascii_alphabetic).count() >= 2);
        pairs.sort();
        pairs.dedup_by(|a, b| a.0 == b.0);
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(pairs.iter().map(|(from, _)| from)).ok();
        Self { finder, to: pairs.into_iter().map(|(_, to)| to).collect() }
    }

    fn replace(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return text.to_owned() };
        let inside = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'#');
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for found in finder.find_iter(text) {
            let bytes = text.as_bytes();
            if inside(found.start().checked_sub(1).and_then(|i| bytes.get(i))) || inside(bytes.get(found.end())) {
                continue;
            }
            out.push_str(&text[done..found.start()]);
            out.push_str(&self.to[found.pattern().as_usize()]);
            done = found.end();
        }
        out + &text[done..]
    }
}

/// The lines around evidence of a redacted analysis: read by the true paths, shown redacted.
#[derive(Debug)]
pub struct RedactedContext<'r> {
    redactor: &'r Redactor,
    /// True evidence by its redacted place.
    places: BTreeMap<(String, u64), Evidence>,
}

/// The evidence of all findings, in order.
pub fn all_evidence(analysis: &Analysis) -> impl Iterator<Item = &Evidence> {
    analysis.findings.iter().flat_map(|f| &f.evidence)
}

impl<'r> RedactedContext<'r> {
    /// `before`: the evidence of all findings in order, as it was before `after` was redacted.
    pub fn new(redactor: &'r Redactor, before: Vec<Evidence>, after: &Analysis) -> Self {
        let places = all_evidence(after).map(|e| (e.file.clone(), e.line)).zip(before).collect();
        Self { redactor, places }
    }
}

impl Context for RedactedContext<'_> {
    fn around(&self, evidence: &Evidence) -> Result<Surroundings, &'static str> {
        let place = self.places.get(&(evidence.file.clone(), evidence.line)).ok_or("its place is not known")?;
        surroundings(place, &|line| self.redactor.seen(line))
    }
}
