//! From what the file says to rules and silences.

use super::{Error, File, Rule, Silence, Source};
use crate::event::{FormatError, MAX_PATTERNS, Pattern, UserPatterns};
use crate::rules::{self, Confidence, Fix, User, UserRule};
use toml::Spanned;

/// Checks everything and compiles the patterns.
pub(super) fn user(source: &Source<'_>, file: File) -> Result<User, Error> {
    if let Some(one) = file.rule.get(MAX_PATTERNS) {
        return Err(source.wrong(one.id.span().start, format!("more than {MAX_PATTERNS} rules")));
    }
    let mut rules: Vec<UserRule> = Vec::new();
    let mut patterns = Vec::new();
    for one in file.rule {
        let (built, pattern) = rule(source, one, &rules)?;
        rules.push(built);
        patterns.push(pattern);
    }
    let silences = file.silence.into_iter().map(|s| silence(source, s, &rules)).collect::<Result<_, _>>()?;
    Ok(User { path: source.path.to_owned(), patterns: UserPatterns::new(patterns), rules, silences })
}

fn rule(source: &Source<'_>, rule: Rule, known: &[UserRule]) -> Result<(UserRule, Pattern), Error> {
    let id = rule.id.get_ref().as_str();
    let at = rule.id.span().start;
    if !is_name(id) {
        return Err(source.wrong(at, format!("`{id}` is no name for a rule; use small letters, digits and hyphens, as in `lost-carrier`")));
    }
    if rules::cause(id).is_some() || known.iter().any(|r| r.id == id) {
        return Err(source.wrong(at, format!("`{id}` is taken; choose another id")));
    }
    if rule.title.get_ref().trim().is_empty() {
        return Err(source.wrong(rule.title.span().start, "the title is empty; say in one line what is wrong"));
    }
    let pattern = pattern(source, &format!("user.{id}"), rule.pattern.as_ref(), rule.contains.as_ref())?;
    let pattern = pattern.ok_or_else(|| source.wrong(at, format!("the rule `{id}` has neither `pattern` nor `contains`; one of them says which lines it means")))?;
    let fixes = fixes(&rule);
    let built = UserRule {
        // The pattern's kind lives as long as the process; so does the id in it.
        id: pattern.kind().strip_prefix("user.").unwrap_or_default(),
        kind: pattern.kind(),
        severity: rule.severity,
        confidence: rule.confidence.unwrap_or(Confidence::Likely),
        title: rule.title.into_inner(),
        text: rule.text,
        fixes,
        verify: rule.verify,
    };
    Ok((built, pattern))
}

fn fixes(rule: &Rule) -> Vec<Fix> {
    let title = rule.fix.clone().or_else(|| (!rule.commands.is_empty()).then(|| "Run this".to_owned()));
    title.map(|title| Fix { title, commands: rule.commands.clone(), ..Fix::default() }).into_iter().collect()
}

fn silence(source: &Source<'_>, table: Spanned<Silence>, known: &[UserRule]) -> Result<rules::Silence, Error> {
    let at = table.span().start;
    let silence = table.into_inner();
    if silence.reason.get_ref().trim().is_empty() {
        return Err(source.wrong(silence.reason.span().start, "the reason is empty; the report shows it, so that nobody wonders later"));
    }
    let cause = silence.cause.as_ref().map(|name| cause(source, name, known)).transpose()?;
    let pattern = pattern(source, "silence.pattern", silence.pattern.as_ref(), silence.contains.as_ref())?;
    if cause.is_none() && pattern.is_none() {
        return Err(source.wrong(at, "a silence needs a `cause`, a `pattern` or a `contains`; it would silence everything"));
    }
    Ok(rules::Silence { cause, pattern, reason: silence.reason.into_inner() })
}

fn cause(source: &Source<'_>, name: &Spanned<String>, known: &[UserRule]) -> Result<&'static str, Error> {
    let word = name.get_ref().as_str();
    if let Some(id) = rules::cause(word).map(|c| c.id).or_else(|| known.iter().find(|r| r.id == word).map(|r| r.id)) {
        return Ok(id);
    }
    let names = rules::causes().map(|c| c.id).chain(known.iter().map(|r| r.id));
    let meant = names.map(|n| (strsim::jaro_winkler(word, n), n)).filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = meant.map_or_else(|| "`ncclog explain` lists the causes".to_owned(), |(_, n)| format!("did you mean `{n}`?"));
    Err(source.wrong(name.span().start, format!("there is no cause `{word}`; {hint}")))
}

/// The pattern of a table, if it has one.
fn pattern(source: &Source<'_>, kind: &str, format: Option<&Spanned<String>>, literal: Option<&Spanned<String>>) -> Result<Option<Pattern>, Error> {
    let wrong = |value: &Spanned<String>, error: &FormatError| source.wrong(source.inside(value, error.at), format!("this pattern cannot work: {error}"));
    match (format, literal) {
        (None, None) => Ok(None),
        (Some(_), Some(second)) => Err(source.wrong(second.span().start, "`pattern` and `contains` exclude each other; keep one")),
        (Some(value), None) => Pattern::parse(kind, value.get_ref()).map(Some).map_err(|e| wrong(value, &e)),
        (None, Some(value)) => Pattern::literal(kind, value.get_ref()).map(Some).map_err(|e| wrong(value, &e)),
    }
}

fn is_name(id: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    plain && id.starts_with(|c: char| c.is_ascii_lowercase()) && !id.ends_with('-') && id.len() <= 60
}
