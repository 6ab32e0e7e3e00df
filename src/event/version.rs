//! The library's version lines. Sources: `src/init.cc` (`NCCL version %d.%d.%d%s+cuda%d.%d`, bare up to 2.21.5 and at level VERSION,
//! behind an INFO header otherwise), RCCL (`RCCL version 2.20.5+hip6.2 …` up to ROCm 6.2, `RCCL version : 2.22.3-HEAD:…` from 6.3).

/// Which library printed the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Library {
    /// NVIDIA NCCL
    Nccl,
    /// AMD RCCL
    Rccl,
}

/// A version line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// Library.
    pub library: Library,
    /// As printed, without the words: `2.27.3+cuda12.9`, `2.22.3-HEAD:271856d`.
    pub text: &'a [u8],
}

/// Reads a version message.
pub fn parse(msg: &[u8]) -> Option<Version<'_>> {
    let (library, rest) = if let Some(rest) = msg.strip_prefix(b"NCCL version ") {
        (Library::Nccl, rest)
    } else if let Some(rest) = msg.strip_prefix(b"RCCL version ") {
        (Library::Rccl, rest.strip_prefix(b": ").unwrap_or(rest))
    } else {
        return None;
    };
    let text = rest.split(|b| b.is_ascii_whitespace() || *b == b',').next()?;
    (text.first()?.is_ascii_digit() && text.contains(&b'.')).then_some(Version { library, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_libraries() {
        assert_eq!(parse(b"NCCL version 2.18.1+cuda12.1"), Some(Version { library: Library::Nccl, text: b"2.18.1+cuda12.1" }));
        assert_eq!(parse(b"RCCL version : 2.21.5-HEAD:9a0e6a1"), Some(Version { library: Library::Rccl, text: b"2.21.5-HEAD:9a0e6a1" }));
        assert_eq!(parse(b"RCCL version 2.17.1+hip5.7 HEAD:cbbb3d8"), Some(Version { library: Library::Rccl, text: b"2.17.1+hip5.7" }));
        assert_eq!(parse(b"RCCL version : 2.30.4-HEAD:2b22ab0"), Some(Version { library: Library::Rccl, text: b"2.30.4-HEAD:2b22ab0" }));
        assert_eq!(parse(b"NCCL version mismatch with remote peer"), None);
    }
}
