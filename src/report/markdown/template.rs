//! The fields of the bug forms of NCCL, RCCL (ROCm) and vLLM, filled as far as the logs know them, with the commands
//! for the rest.

use super::blocks;
use super::escape::{fenced, prose};
use super::fit::Block;
use crate::lang::Lang;
use crate::report::view::{Board, facts, first_warning, message, shorten};
use crate::report::{uncoloured, words};
use crate::rules::{Analysis, Verdict};

/// A project whose bug form is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// NVIDIA/nccl
    NcclIssue,
    /// ROCm/rccl
    RcclIssue,
    /// vllm-project/vllm
    VllmIssue,
}

const REPRODUCE: &str = "_How do you start the job? Does it fail every time? Did it work with another version or on other nodes?_\n";

/// All fields in the form's order.
pub fn fill(template: Template, analysis: &Analysis) -> Vec<Block> {
    let mut blocks = vec![title(analysis)];
    match template {
        Template::NcclIssue => nccl(&mut blocks, analysis),
        Template::RcclIssue => rccl(&mut blocks, analysis),
        Template::VllmIssue => vllm(&mut blocks, analysis),
    }
    blocks
}

fn title(analysis: &Analysis) -> Block {
    let text = prose(&shorten(words::headline(analysis).0, 200));
    Block::new("title", 0, format!("<!-- Copy each part into the field of that name. -->\n\n### Title\n\n{text}\n"))
}

fn field(name: &str, body: &str) -> Block {
    Block::new(name, 0, format!("\n### {name}\n\n{body}"))
}

/// Commands that are still to be run.
fn commands(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    format!("Still to be run:\n{}", fenced("sh", &lines))
}

fn fact(analysis: &Analysis, name: &str) -> Option<String> {
    facts(&analysis.job, &Board::new(analysis)).into_iter().find(|(n, _)| *n == name).map(|(_, v)| v)
}

/// The report's own parts as one field.
fn diagnosis(blocks: &mut Vec<Block>, analysis: &Analysis) {
    let lower = |mut block: Block| {
        // The form's fields are the headings; the report's own go one level down.
        block.text = block.text.replace("\n### ", "\n#### ").replace("\n#### Job", "\n**Job**");
        block
    };
    blocks.extend(blocks::report(analysis, Lang::En).into_iter().filter(|b| b.name != "signature").map(|mut b| {
        if b.name == "verdict" {
            b.text = b.text.replacen("## ", "**", 1).replacen("\n\n", "**\n\n", 1);
        }
        lower(b)
    }));
}

fn impact(analysis: &Analysis) -> &'static str {
    match analysis.verdict {
        Verdict::Stalled => "Application hang\n",
        Verdict::Failed
            if analysis.findings.iter().any(|f| f.is_root() && matches!(f.id, "collective-timeout" | "missing-rank" | "p2p-iommu-acs-hang" | "collective-mismatch")) =>
        {
            "Application hang\n"
        }
        Verdict::Failed => "Application crash\n",
        Verdict::Degraded => "Lower performance than expected\n",
        Verdict::Healthy | Verdict::Inconclusive => "_Choose one: the logs do not tell._\n",
    }
}

fn nccl(blocks: &mut Vec<Block>, analysis: &Analysis) {
    blocks.push(field("How is this issue impacting you?", impact(analysis)));
    let logs = "Attach the logs (`ncclog redact` or `ncclog bundle` makes them fit to be shown), and the topology:\n";
    blocks.push(field(
        "Share Your Debug Logs",
        &format!("{logs}{}", commands(&["NCCL_DEBUG=INFO NCCL_DEBUG_FILE=ncclDebug.%h.%p NCCL_TOPO_DUMP_FILE=ncclSystem.txt  # set for one more run"])),
    ));
    blocks.push(field("Steps to Reproduce the Issue", REPRODUCE));
    let version = if analysis.job.versions.is_empty() {
        commands(&["strings libnccl.so | grep -m1 'NCCL version'", "python -c 'import torch; print(torch.cuda.nccl.version())'"])
    } else {
        format!("{}\n", prose(&analysis.job.versions.join(", ")))
    };
    blocks.push(field("NCCL Version", &version));
    let board = Board::new(analysis);
    let known = blocks::facts_table(analysis, &board, Lang::En).replace("\n### Job\n", "");
    blocks.push(field("Your platform details", &format!("{known}\n{}", commands(&["nvidia-smi", "nvidia-smi topo -m", "ibstatus", "uname -a"]))));
    blocks.push(field("Error Message & Behavior", &first(analysis)));
    diagnosis(blocks, analysis);
}

/// The first warning, as forms ask for it.
fn first(analysis: &Analysis) -> String {
    first_warning(analysis).map_or_else(
        || "There is no warning of the library in these logs.\n\n".to_owned(),
        |(e, _)| format!("The first warning:\n{}\n", fenced("text", &[shorten(message(&uncoloured(&e.text)), 400)])),
    )
}

fn rccl(blocks: &mut Vec<Block>, analysis: &Analysis) {
    blocks.push(field("Problem Description", &first(analysis)));
    diagnosis(blocks, analysis);
    blocks.push(field("Operating System", &commands(&["grep -E '^(NAME|VERSION)=' /etc/os-release"])));
    blocks.push(field("CPU", &commands(&["grep 'model name' /proc/cpuinfo | sort --unique"])));
    let gpu = fact(analysis, "GPUs").map_or_else(|| commands(&["/opt/rocm/bin/rocminfo | grep -E '^\\s*(Name|Marketing Name)'"]), |g| format!("{}\n", prose(&g)));
    blocks.push(field("GPU", &gpu));
    let rocm = fact(analysis, "ROCm").map_or_else(|| commands(&["cat /opt/rocm/.info/version"]), |r| format!("{}\n", prose(&r)));
    blocks.push(field("ROCm Version", &rocm));
    blocks.push(field("ROCm Component", "rccl\n"));
    blocks.push(field("Steps to Reproduce", REPRODUCE));
    blocks.push(field("(Optional for Linux users) Output of /opt/rocm/bin/rocminfo --support", &commands(&["/opt/rocm/bin/rocminfo --support"])));
    let more = commands(&["dmesg -T | grep -iE 'amdgpu|iommu|pcie'", "rocm-smi --showtopo", "cat /proc/cmdline"]);
    blocks.push(field("Additional Information", &more));
}

fn vllm(blocks: &mut Vec<Block>, analysis: &Analysis) {
    let collect = ["wget https://raw.githubusercontent.com/vllm-project/vllm/main/vllm/collect_env.py", "python collect_env.py"];
    let known = blocks::facts_table(analysis, &Board::new(analysis), Lang::En).replace("\n### Job\n", "");
    blocks.push(field("Your current environment", &format!("From the logs:\n{known}\n{}", commands(&collect))));
    let again = ["export VLLM_LOGGING_LEVEL=DEBUG NCCL_DEBUG=INFO  # for one more run, with the full traceback", "export VLLM_TRACE_FUNCTION=1  # if it hangs or crashes"];
    blocks.push(field("🐛 Describe the bug", &first(analysis)));
    diagnosis(blocks, analysis);
    blocks.push(Block::new("more logs", 0, format!("\n{}", commands(&again))));
    blocks.push(field("Before submitting a new issue...", "- [ ] Make sure you already searched for relevant issues, and asked the chatbot living at the bottom right corner of the [documentation page](https://docs.vllm.ai/en/latest/), which can answer lots of frequently asked questions.\n"));
}
