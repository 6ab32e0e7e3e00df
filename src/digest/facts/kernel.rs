//! The kernel's command line and PCIe access control.

use super::Family;
use super::model::{Acs, Fact};
use super::nvidia::pci;
use super::reader::{Pci, Scene, clip};

/// `/proc/cmdline`.
pub const CMDLINE: Family = Family {
    commands: &["cat /proc/cmdline", "dmesg"],
    reads: "The kernel's command line: whether the IOMMU translates, passes through, or is off.",
    starts: &["Command", "Kernel"],
    read: cmdline,
};

/// Access control of bridges.
pub const LSPCI: Family =
    Family { commands: &["lspci -vvv"], reads: "Access control (ACS) of each PCIe device, and the buses below each bridge.", starts: &["ACSCtl:", "Bus:"], read: lspci };

fn cmdline(scene: &mut Scene<'_>) -> bool {
    let text = scene.text;
    let text = text.strip_prefix("/proc/cmdline:").unwrap_or(text);
    let told = text.strip_prefix("Kernel command line: ").or_else(|| text.strip_prefix("Command line: "));
    let asked = scene.memo.command.split(' ').any(|w| w == "/proc/cmdline") || scene.memo.paths.front().is_some_and(|p| p == "/proc/cmdline");
    let own = text.starts_with("BOOT_IMAGE=") || (asked && text.contains('='));
    let Some(line) = told.or(own.then_some(text)) else { return false };
    scene.host.cmdline = Some(Fact::new(clip(line, 1024).to_owned(), scene.at));
    true
}

fn lspci(scene: &mut Scene<'_>) -> bool {
    if let Some(address) = scene.words.first().filter(|w| pci(w)) {
        scene.memo.pci = Pci { address: (*address).to_owned(), bridge: scene.text.to_ascii_lowercase().contains("bridge"), below: None };
        return true;
    }
    if scene.text.starts_with("Bus: primary=") {
        let field = |name: &str| scene.text.split([' ', ',']).find_map(|w| w.strip_prefix(name)).and_then(|v| u8::from_str_radix(v, 16).ok());
        scene.memo.pci.below = field("secondary=").zip(field("subordinate="));
        return true;
    }
    let Some(flags) = scene.text.strip_prefix("ACSCtl:") else { return false };
    let redirects = flags.contains("SrcValid+") && flags.contains("ReqRedir+");
    let Pci { address, bridge, below } = scene.memo.pci.clone();
    scene.host.add_acs(Acs { device: address, bridge, below, redirects, at: scene.at.clone() });
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collapsed, one};

    #[test]
    fn the_command_line_from_file_and_kernel_log() {
        let line = "BOOT_IMAGE=/boot/vmlinuz-6.8.0-52-generic root=UUID=00000000-1111 ro amd_iommu=on quiet";
        for text in [
            format!("{line}\n"),
            format!("$ cat /proc/cmdline\n{line}\n"),
            format!("[    0.000000] Command line: {line}\n"),
            format!("### $ cat /proc/cmdline\n{}\n### exit 0\n", line.replace("BOOT_IMAGE=/boot/vmlinuz-6.8.0-52-generic ", "")),
        ] {
            assert!(one(&text).cmdline.is_some_and(|c| c.value.contains("amd_iommu=on")), "{text}");
        }
    }

    #[test]
    fn access_control_whole_and_filtered() {
        let whole = "40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge (prog-if 00 [Normal decode])\n\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0\n\tCapabilities: [2a0 v1] Access Control Services\n\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n41:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1) (prog-if 00 [VGA controller])\n";
        for text in [whole.to_owned(), collapsed(whole)] {
            let facts = one(&text);
            assert_eq!(facts.acs.iter().map(|a| (a.device.as_str(), a.bridge, a.below, a.redirects)).collect::<Vec<_>>(), [("40:01.1", true, Some((0x41, 0x41)), true)]);
        }
        let filtered = "$ sudo lspci -vvv | grep -i ACSCtl:\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n";
        assert_eq!(one(filtered).acs.iter().map(|a| a.redirects).collect::<Vec<_>>(), [false]);
    }
}
