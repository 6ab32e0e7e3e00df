//! What to do about it, in the order in which a good engineer would.

use super::super::facts;
use super::super::finding::{Finding, Fix};
use super::super::query::Ask;
use super::super::remedy::{fix, lines, sh};
use super::facts::Block;

/// Adds fixes, what only hides it, and the checks.
pub(super) fn give(ask: Ask<'_>, finding: &mut Finding) {
    let vllm = ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.kind.starts_with("vllm.")));
    let mut prove = vec!["export NCCL_P2P_DISABLE=1", "export NCCL_SHM_DISABLE=0"];
    if vllm {
        prove.push("# vLLM's own all-reduce uses P2P too: add --disable-custom-all-reduce to the command");
    }
    finding.fixes = vec![
        fix(
            "Prove it without a reboot: run once over shared memory instead of P2P",
            "First, on the same job. If it then runs, the P2P path is the cause.",
            &prove,
            "nothing",
            "about 8 to 12 % of throughput on PCIe 5 as reported; more on older links",
            "unset NCCL_P2P_DISABLE as soon as P2P works",
        ),
        fix(
            "Let the IOMMU pass transfers through",
            "The IOMMU is on and /proc/cmdline lacks iommu=pt (bare metal).",
            &[
                "# AMD:   add `amd_iommu=on iommu=pt` to GRUB_CMDLINE_LINUX in /etc/default/grub",
                "# Intel: add `intel_iommu=on iommu=pt`",
                "sudo update-grub   # or: sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
                "sudo reboot",
            ],
            "reboot",
            "none for the GPUs; devices are no longer isolated from each other",
            "take the words out again, update grub, reboot",
        ),
        fix(
            "Switch ACS off on the bridges above the GPUs",
            "`lspci -vvv` shows `ACSCtl: SrcValid+ … ReqRedir+` on a bridge above a GPU. In the BIOS it lasts, with setpci it is lost at reboot.",
            &["for b in $(lspci -d '*:*:0604' -n | cut -d' ' -f1); do sudo setpci -s \"$b\" ECAP_ACS+0x6.w=0000 2>/dev/null; done"],
            "root",
            "devices below one bridge are no longer isolated; do not do it on a host that passes them to virtual machines",
            "reboot, or switch it on again in the BIOS",
        ),
        fix(
            "Take a driver that does not offer P2P on these cards, or one that has it right",
            "GeForce and workstation cards whose driver claims P2P (early or patched drivers). NCCL then chooses shared memory by itself.",
            &["nvidia-smi --query-gpu=name,driver_version --format=csv"],
            "root",
            "shared memory instead of P2P",
            "install the former driver",
        ),
    ];
    finding.avoid = lines(&[
        "Raising time-outs: the transfer never arrives, the job only waits longer.",
        "Keeping NCCL_P2P_DISABLE=1 for ever: it hides the fault and costs speed.",
        "In a virtual machine ACS cannot be switched off from inside: ask for ATS on the host, or leave P2P off.",
    ]);
    finding.verify = lines(&[
        "cat /proc/cmdline   # iommu=pt is there",
        "sudo lspci -vvv | grep ACSCtl   # SrcValid- … ReqRedir- on the bridges above the GPUs",
        "nvidia-smi topo -p2p r   # OK for every pair; it can say OK and still hang, so run a P2P copy test too",
        "sudo dmesg | grep -i -e AMD-Vi -e DMAR   # no new fault after a run",
    ]);
    name_bridges(ask, finding);
}

/// Most bridges that are named in a command.
const MOST_BRIDGES: usize = 32;

/// Names the bridges between the GPUs where the host told of them: of a few, not of all, ACS has to go.
fn name_bridges(ask: Ask<'_>, finding: &mut Finding) {
    let Some(between) = facts::between(ask).filter(|b| (1..=MOST_BRIDGES).contains(&b.bridges.len())) else { return };
    let list = between.bridges.iter().map(|b| sh(&b.device)).collect::<Vec<_>>().join(" ");
    if let Some(fix) = finding.fixes.iter_mut().find(|f| f.title.starts_with("Switch ACS off")) {
        fix.commands = lines(&[&format!("for b in {list}; do sudo setpci -s \"$b\" ECAP_ACS+0x6.w=0000; done   # the bridges between these GPUs")]);
    }
    if let Some(check) = finding.verify.iter_mut().find(|v| v.starts_with("sudo lspci")) {
        *check = format!("for b in {list}; do sudo lspci -vvv -s \"$b\" | grep ACSCtl; done   # SrcValid- … ReqRedir- on each that has it");
    }
}

/// Puts the fixes for what the host's facts show in front, in this host's own names.
pub(super) fn by_facts(block: &Block, finding: &mut Finding) {
    let place = |fixes: &[Fix], start: &str| fixes.iter().position(|f| f.title.starts_with(start));
    if let Some(at) = place(&finding.fixes, "Let the IOMMU") {
        let mut fix = finding.fixes.remove(at);
        if let Some(word) = &block.iommu {
            if !word.is_empty() {
                fix.commands.splice(0..2, [format!("# this host has `{word}`: add `iommu=pt` beside it to GRUB_CMDLINE_LINUX in /etc/default/grub")]);
            }
            finding.fixes.insert(1, fix);
        } else {
            finding.fixes.push(fix);
        }
    }
    if !block.bridges.is_empty()
        && let Some(at) = place(&finding.fixes, "Switch ACS off")
    {
        let mut fix = finding.fixes.remove(at);
        fix.commands = block.bridges.iter().map(|b| format!("sudo setpci -s {} ECAP_ACS+0x6.w=0000", sh(b))).collect();
        finding.fixes.insert(1, fix);
    }
}
