//! `ncclog explain`: the causes and their explanations.

use super::args::ExplainArgs;
use super::output::{terminal_width, to_stdout, use_color};
use super::{complain, exit, explain_line, nearest};
use crate::lang::{self, Lang};
use crate::report::{self, DEFAULT_WIDTH, PROSE_WIDTH, wrap};
use crate::rules::{Cause, causes};
use anstyle::{AnsiColor, Style};
use anyhow::{Result, bail};
use std::io::{self, Read, Write};

/// Most bytes of `--line -` that are read.
const MAX_INPUT: u64 = 1 << 20;

/// Prints what was asked for.
pub fn run(args: &ExplainArgs) -> Result<u8> {
    let color = use_color(args.color.color);
    if let Some(line) = &args.line {
        let mut text = line.clone().into_bytes();
        if line == "-" {
            text.clear();
            io::stdin().lock().take(MAX_INPUT).read_to_end(&mut text)?;
        }
        to_stdout(color, |out| explain_line::write(&text, out, color))?;
        return Ok(exit::OK);
    }
    let width = terminal_width().unwrap_or(DEFAULT_WIDTH).min(PROSE_WIDTH);
    if args.tree {
        to_stdout(color, |out| report::tree(out, width, color, args.lang.get()))?;
        return Ok(exit::OK);
    }
    let causes: Vec<&'static Cause> = causes().collect();
    match &args.cause {
        None => {
            to_stdout(color, |out| list(&causes, out, width, color, args.lang.get()))?;
        }
        Some(name) => {
            let cause = find_in(&causes, name)?;
            let lang = args.lang.get();
            let translated = lang::explanation(lang, cause.id);
            if translated.is_none() && args.lang.lang == Some(Lang::Zh) {
                complain(&format!("{} 还没有中文说明，以下为英文", cause.id));
            }
            to_stdout(color, |out| markdown(translated.unwrap_or(cause.explanation), out, color))?;
        }
    }
    Ok(exit::OK)
}

/// The cause with this name or former name; the error suggests one.
pub fn find(name: &str) -> Result<&'static Cause> {
    find_in(&causes().collect::<Vec<_>>(), name)
}

fn find_in(causes: &[&'static Cause], name: &str) -> Result<&'static Cause> {
    if let Some(cause) = causes.iter().find(|c| c.id == name || c.aliases.contains(&name)) {
        return Ok(cause);
    }
    let names = causes.iter().flat_map(|c| std::iter::once(c.id).chain(c.aliases.iter().copied()));
    match nearest(name, names) {
        Some(meant) => bail!("there is no cause `{name}`; did you mean `{meant}`?"),
        None => bail!("there is no cause `{name}`; `ncclog explain` lists them"),
    }
}

fn list(causes: &[&Cause], out: &mut dyn Write, width: usize, color: bool, lang: Lang) -> io::Result<()> {
    let bold = if color { Style::new().bold() } else { Style::new() };
    let column = causes.iter().map(|c| c.id.len()).max().unwrap_or(0) + 2;
    for cause in causes {
        let lines = wrap(lang::summary(lang, cause.id).unwrap_or(cause.summary), width.saturating_sub(column).max(20));
        for (index, line) in lines.iter().enumerate() {
            let id = if index == 0 { cause.id } else { "" };
            writeln!(out, "{bold}{id}{bold:#}{:pad$}{line}", "", pad = column - id.len())?;
        }
    }
    Ok(())
}

/// Markdown as it is; on a terminal headings and code stand out.
fn markdown(text: &str, out: &mut dyn Write, color: bool) -> io::Result<()> {
    let (bold, code) = if color { (Style::new().bold(), AnsiColor::Cyan.on_default()) } else { (Style::new(), Style::new()) };
    let mut fenced = false;
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let style = match line {
            _ if fenced || fence || line.starts_with("    ") => code,
            _ if line.starts_with('#') => bold,
            _ => Style::new(),
        };
        writeln!(out, "{style}{line}{style:#}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: Cause = Cause {
        id: "tcp-fallback",
        aliases: &["socket-fallback"],
        summary: "the data goes over TCP although there is something faster in these nodes",
        explanation: "# tcp-fallback\n\nText.\n\n```\nibv_devinfo\n```\n",
    };
    const GDR: Cause = Cause { id: "gdr-disabled", aliases: &[], summary: "no GPUDirect RDMA", explanation: "# gdr-disabled\n" };

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn finds_by_name_and_former_name_and_suggests() {
        let causes = [&NET, &GDR];
        assert_eq!(find_in(&causes, "tcp-fallback").unwrap().id, "tcp-fallback");
        assert_eq!(find_in(&causes, "socket-fallback").unwrap().id, "tcp-fallback");
        assert!(find_in(&causes, "tcp-falback").unwrap_err().to_string().contains("did you mean `tcp-fallback`?"));
        assert!(find_in(&causes, "zzz").unwrap_err().to_string().contains("lists them"));
    }

    #[test]
    fn lists_in_columns() {
        let shown = text(|out| list(&[&NET, &GDR], out, 50, false, Lang::En));
        assert_eq!(
            shown,
            "tcp-fallback  the data goes over TCP although\n              there is something faster in these\n              nodes\ngdr-disabled  no GPUDirect RDMA\n"
        );
    }

    #[test]
    fn markdown_is_plain_on_a_pipe() {
        assert_eq!(text(|out| markdown(NET.explanation, out, false)), NET.explanation);
        let colored = text(|out| markdown(NET.explanation, out, true));
        assert!(colored.contains("\x1b[1m# tcp-fallback\x1b[0m") && colored.contains("\x1b[36mibv_devinfo\x1b[0m"), "{colored:?}");
    }
}
