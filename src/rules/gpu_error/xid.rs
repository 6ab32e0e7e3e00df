//! NVIDIA's Xid numbers that matter to a job, after NVIDIA's "Xid Errors" page.

/// What a number means and what to do.
pub struct Xid {
    /// The number.
    pub number: i64,
    /// What happened.
    pub meaning: &'static str,
    /// It is the GPU, its memory, link or board, rather than the program.
    pub hardware: bool,
}

const fn xid(number: i64, meaning: &'static str, hardware: bool) -> Xid {
    Xid { number, meaning, hardware }
}

/// The table.
const XIDS: &[Xid] = &[
    xid(13, "a kernel raised an exception (bad address, bad instruction): mostly the program, also overclocked or bad memory", false),
    xid(31, "a kernel touched an address that is not mapped (illegal memory access): mostly the program", false),
    xid(32, "the command stream was corrupted (driver, PCIe or memory)", true),
    xid(38, "the driver's firmware failed", true),
    xid(43, "the GPU stopped processing this program's work after its own fault", false),
    xid(45, "the channel was torn down after an earlier fault or a kill: a consequence", false),
    xid(48, "a double bit ECC error: the memory cell is bad", true),
    xid(61, "an internal micro-controller halted", true),
    xid(62, "an internal micro-controller halted", true),
    xid(63, "a memory page or row was retired or remapped after an ECC error", true),
    xid(64, "retiring or remapping a bad memory page or row failed", true),
    xid(68, "the video processor raised an exception", false),
    xid(69, "the graphics engine raised an exception", false),
    xid(74, "an NVLink error: link, cable, bridge or switch", true),
    xid(79, "the GPU has fallen off the bus (power, heat, PCIe)", true),
    xid(92, "corrected ECC errors came at a high rate", true),
    xid(94, "a contained uncorrectable ECC error: only the programs on this GPU are hit", true),
    xid(95, "an uncontained uncorrectable ECC error: the GPU must be reset", true),
    xid(109, "a context switch timed out", false),
    xid(110, "a security fault", true),
    xid(119, "the GPU's system processor (GSP) does not answer: driver or firmware", true),
    xid(120, "the GPU's system processor (GSP) raised an error", true),
    xid(121, "a corrected error on the chip-to-chip link", true),
    xid(137, "an NVLink address or privilege fault (a peer's memory was gone or never mapped)", false),
    xid(140, "an unrecovered ECC error", true),
    xid(143, "the GPU's boot or power controller failed", true),
    xid(144, "an NVLink SAW error", true),
    xid(145, "an NVLink RLW error: a remote access over NVLink failed", true),
    xid(146, "an NVLink TLW error", true),
    xid(147, "an NVLink TREX error", true),
    xid(148, "an NVLink NVLPW controller error", true),
    xid(149, "an NVLink NETIR error: the link itself", true),
    xid(150, "an NVLink MSE error", true),
    xid(154, "the driver asks for a recovery action (reset of the GPU or the node)", true),
    xid(155, "an NVLink SW-defined error", true),
    xid(156, "a resource was retired", true),
];

/// Looks a number up.
pub fn lookup(number: i64) -> Option<&'static Xid> {
    XIDS.iter().find(|x| x.number == number)
}

/// The earlier Xid that a `caused by previous Xid N` text names.
pub fn caused_by(text: &str) -> Option<i64> {
    let (_, rest) = text.split_once("caused by previous Xid ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_known() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(XIDS.iter().all(|x| seen.insert(x.number)));
        assert!(lookup(79).is_some_and(|x| x.hardware));
        assert!(lookup(9999).is_none());
        assert_eq!(caused_by("pid=1, name=python3, Ch 00000003 caused by previous Xid 145"), Some(145));
        assert_eq!(caused_by("Ch 00000003"), None);
    }
}
