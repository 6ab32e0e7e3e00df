//! The kernel's command line.

use super::Family;
use super::model::Fact;
use super::reader::{Scene, clip};

/// `/proc/cmdline`.
pub const CMDLINE: Family = Family {
    commands: &["cat /proc/cmdline", "dmesg"],
    reads: "The kernel's command line: whether the IOMMU translates, passes through, or is off.",
    starts: &["Command", "Kernel"],
    read: cmdline,
};

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

#[cfg(test)]
mod tests {
    use super::super::tests::one;

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
}
