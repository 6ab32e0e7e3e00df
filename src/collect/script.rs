//! The same as a POSIX shell script, for hosts without ncclog.

use super::run::shown;
use super::table::{Call, PROBES, Probe};
use super::{MAGIC, MORE_PATH, MOST_BYTES, MOST_INTERFACES};
use std::fmt::Write;
use std::time::Duration;

/// The frame; the commands come from the table.
const FRAME: &str = include_str!("collect.sh");

/// The script. Each command may take `limit`.
pub fn script(limit: Duration) -> String {
    let mut commands = String::new();
    for (index, probe) in PROBES.iter().enumerate() {
        let more = PROBES.get(index + 1).is_some_and(|p| p.otherwise);
        lines(&mut commands, probe, more);
    }
    FRAME
        .replace("@timeout@", &limit.as_secs().to_string())
        .replace("@most@", &MOST_BYTES.to_string())
        .replace("@path@", MORE_PATH)
        .replace("@magic@", MAGIC)
        .replace("@commands@\n", &commands)
}

fn lines(text: &mut String, probe: &Probe, more: bool) {
    let tail = if more { " ||" } else { "" };
    let indent = if probe.otherwise { "    " } else { "  " };
    let _ = match probe.call {
        Call::Program(argv) => writeln!(text, "{indent}run {} {}{tail}", quoted(&shown(argv)), shown(argv)),
        Call::Builtin(command) => writeln!(text, "{indent}run {} sh -c {}{tail}", quoted(command), quoted(command)),
        Call::Interfaces(argv) => writeln!(
            text,
            "  seen=0
  for interface in /sys/class/net/*; do
    name=${{interface##*/}}
    case $name in -*) continue ;; esac
    if [ -e \"$interface/device\" ] || [ -d \"$interface/bonding\" ]; then
      seen=$((seen + 1))
      [ \"$seen\" -gt {MOST_INTERFACES} ] && break
      run \"{0} $name\" {0} \"$name\"
    fi
  done",
            argv.join(" ")
        ),
    };
}

/// A word in single quotes.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_in_it() {
        let text = script(Duration::from_secs(7));
        assert!(text.contains("limit=${NCCLOG_TIMEOUT:-7}\n"));
        for probe in PROBES {
            let wanted = match probe.call {
                Call::Program(argv) => shown(argv),
                Call::Builtin(command) => command.to_owned(),
                Call::Interfaces(argv) => format!("{} \"$name\"", argv.join(" ")),
            };
            assert!(text.contains(&wanted), "{wanted}");
        }
        assert!(text.contains("  run 'dmesg -T' dmesg -T ||\n    run 'dmesg' dmesg ||\n    run 'journalctl"), "{text}");
        assert!(text.ends_with("main\n"));
    }

    #[test]
    fn quotes_within_quotes() {
        assert_eq!(quoted("grep '^0$'"), r"'grep '\''^0$'\'''");
    }
}
