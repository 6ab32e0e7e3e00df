//! What to set to get a log that can be diagnosed.

use super::{Block, Flavour, Line, Sheet};
use clap::ValueEnum;

/// What the log is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Situation {
    /// Any trouble: who is who, which network, how far each rank came.
    Debug,
    /// Ranks that stand still inside a collective: every call, and PyTorch's own record of them.
    Hang,
}

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// NCCL or RCCL, and what every Python program reads.
    All,
    /// PyTorch.
    Torch,
    /// vLLM.
    Vllm,
}

/// A variable of the table. `{dir}` in the value is the folder of the logs.
struct Row {
    name: &'static str,
    value: &'static str,
    note: &'static str,
    reader: Reader,
    only_hang: bool,
}

const fn row(name: &'static str, value: &'static str, note: &'static str) -> Row {
    Row { name, value, note, reader: Reader::All, only_hang: false }
}

const fn torch(name: &'static str, value: &'static str, note: &'static str, only_hang: bool) -> Row {
    Row { name, value, note, reader: Reader::Torch, only_hang }
}

/// Checked against the sources of NCCL 2.3 to 2.30 and PyTorch 2.1 to 2.9.
const ROWS: &[Row] = &[
    row("NCCL_DEBUG", "INFO", "RCCL reads the same variables"),
    // All of these names are known from 2.21.5 on, where BOOTSTRAP came last; before it unknown ones are skipped.
    row("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,GRAPH", "NET shows queue pairs and GIDs; NCCL before 2.21.5 skips the names that it does not know"),
    row("NCCL_DEBUG_FILE", "{dir}nccl.%h.%p.log", "a file a process (%h host, %p pid), whole even if it is killed; an existing folder, no ~"),
    row("NCCL_DEBUG_TIMESTAMP_LEVELS", "ALL", "from NCCL 2.26.2: the time on every line tells who failed first"),
    row("PYTHONUNBUFFERED", "1", "the program's own last lines are not lost in a pipe"),
    torch("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", "from PyTorch 2.2: the stack of the collective that failed (2.9 calls it TORCH_FR_BUFFER_SIZE and reads both)", false),
    torch("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", "from PyTorch 2.2: every rank's last calls, written when the watchdog fires", true),
    torch("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "{dir}torch_trace_rank_", "from PyTorch 2.2: where to; read them with torchfrtrace", true),
    torch("TORCH_NCCL_DESYNC_DEBUG", "1", "from PyTorch 2.2: the watchdog names the rank that is out of step", true),
    torch("TORCH_CPP_LOG_LEVEL", "INFO", "process groups and their ranks", true),
    Row { name: "VLLM_LOGGING_LEVEL", value: "DEBUG", note: "vLLM's own steps of the start", reader: Reader::Vllm, only_hang: false },
];

/// The sheet for a situation. `folder` is where the logs go.
pub fn debug(situation: Situation, flavour: Flavour, folder: Option<&str>) -> Sheet {
    let folder = match folder {
        Some(dir) => format!("{}/", dir.trim_end_matches('/')),
        // In the others the working directory goes away or belongs to somebody else.
        None if matches!(flavour, Flavour::Shell | Flavour::Slurm) => String::new(),
        None => "/tmp/".to_owned(),
    };
    let wanted = |r: &&Row| (!r.only_hang || situation == Situation::Hang) && (r.reader != Reader::Vllm || flavour == Flavour::Vllm);
    let mut lines: Vec<Line> = ROWS.iter().filter(wanted).map(|r| Line::set(r.name, r.value.replace("{dir}", &folder), r.note)).collect();
    if situation == Situation::Hang {
        for line in lines.iter_mut().filter(|l| l.name == "NCCL_DEBUG_SUBSYS") {
            *line = Line::set(&line.name, "INIT,BOOTSTRAP,ENV,NET,GRAPH,COLL", "COLL prints every call of every rank, so that the calls can be compared; for one run only");
        }
    }
    let names = lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(" ");
    let after = vec![format!("afterwards: unset {names}")];
    let mut tail = vec![
        "set it on every rank and give all files: ncclog analyze nccl.*.log, with the program's own output beside them".to_owned(),
        "for GPUs under suspicion the kernel's messages, too: dmesg -T > dmesg.log; for facts of a host: ncclog collect".to_owned(),
    ];
    if situation == Situation::Hang {
        tail.push("live: ncclog follow 'nccl.*.log'".to_owned());
    }
    Sheet { head: Vec::new(), blocks: vec![Block { lines, after, ..Block::default() }], tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Value;

    fn value<'a>(sheet: &'a Sheet, name: &str) -> Option<&'a str> {
        let line = sheet.blocks[0].lines.iter().find(|l| l.name == name)?;
        if let Value::Set(text) = &line.value { Some(text) } else { None }
    }

    #[test]
    fn the_folder_and_the_situation_show() {
        let plain = debug(Situation::Debug, Flavour::Shell, None);
        assert_eq!(value(&plain, "NCCL_DEBUG_FILE"), Some("nccl.%h.%p.log"));
        assert_eq!(value(&plain, "TORCH_NCCL_DUMP_ON_TIMEOUT"), None);
        assert_eq!(value(&plain, "VLLM_LOGGING_LEVEL"), None);
        assert!(!value(&plain, "NCCL_DEBUG_SUBSYS").unwrap().contains("COLL"));
        let hang = debug(Situation::Hang, Flavour::Vllm, Some("/shared/logs/"));
        assert_eq!(value(&hang, "NCCL_DEBUG_FILE"), Some("/shared/logs/nccl.%h.%p.log"));
        assert!(value(&hang, "NCCL_DEBUG_SUBSYS").unwrap().ends_with(",COLL"));
        assert_eq!(value(&hang, "VLLM_LOGGING_LEVEL"), Some("DEBUG"));
        assert_eq!(value(&debug(Situation::Debug, Flavour::Docker, None), "NCCL_DEBUG_FILE"), Some("/tmp/nccl.%h.%p.log"));
    }
}
