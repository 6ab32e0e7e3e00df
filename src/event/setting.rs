//! Variables with the value in force. Sources: `src/misc/param.cc` (`%s set by environment to %lld.`, with a dot),
//! string parameters (`NCCL_SOCKET_IFNAME set by environment to %s`, `NCCL_IB_HCA set to %s`, no dot), `Comm config X set to …`
//! (2.17.1+), plugin names (`Plugin name set by env to %s`, 2.11 … 2.27), and `export NAME=value` lines of launch scripts.

use memchr::memmem::Finder;
use std::sync::LazyLock;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<'a> {
    /// Variable or parameter.
    pub name: &'a [u8],
    /// Value without the closing dot.
    pub value: &'a [u8],
    /// The library itself printed that it uses it; otherwise it only stands in a script or a dump.
    pub in_force: bool,
}

fn is_name(text: &[u8]) -> bool {
    text.len() > 4 && text.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_') && text.contains(&b'_')
}

/// What stands between a name and its value.
static MIDDLES: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| [Finder::new(" set by environment to "), Finder::new(" set to "), Finder::new(" set by env to ")]);

/// Reads a library message.
pub fn parse(msg: &[u8]) -> Option<Setting<'_>> {
    let in_force = true;
    for middle in &*MIDDLES {
        if let Some(at) = middle.find(&msg[..msg.len().min(120)]) {
            let value = msg[at + middle.needle().len()..].trim_ascii();
            let name = msg[..at].trim_ascii();
            if name.ends_with(b"Plugin name") {
                let name: &[u8] = if name.starts_with(b"TUNER") {
                    b"NCCL_TUNER_PLUGIN"
                } else if name.starts_with(b"PROFILER") {
                    b"NCCL_PROFILER_PLUGIN"
                } else {
                    b"NCCL_NET_PLUGIN"
                };
                return Some(Setting { name, value, in_force });
            }
            if let Some(config) = name.strip_prefix(b"Comm config ") {
                return Some(Setting { name: config, value, in_force });
            }
            if is_name(name) {
                return Some(Setting { name, value: without_dot(value), in_force });
            }
        }
    }
    None
}

/// A numeric parameter's line ends with a dot; an address or a file name may hold dots of its own.
fn without_dot(value: &[u8]) -> &[u8] {
    match value.strip_suffix(b".") {
        Some(v) if !v.is_empty() && v.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') => v,
        _ => value,
    }
}

/// Prefixes of variables that matter when they stand in a script or an environment dump.
const EXPORTED: [&[u8]; 9] = [b"NCCL_", b"RCCL_", b"HSA_", b"GLOO_", b"VLLM_HOST_IP", b"HIP_", b"CUDA_VISIBLE", b"UCX_", b"FI_"];

/// Reads `[export ]NAME=value` at the start of a record without a header.
pub fn parse_export(msg: &[u8]) -> Option<Setting<'_>> {
    let text = msg.trim_ascii_start();
    let text = text.strip_prefix(b"export ").unwrap_or(text);
    if !EXPORTED.iter().any(|p| text.starts_with(p)) {
        return None;
    }
    let at = memchr::memchr(b'=', text)?;
    let name = &text[..at];
    let value = text[at + 1..].split(u8::is_ascii_whitespace).next()?;
    let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
    (is_name(name) && !value.is_empty()).then_some(Setting { name, value, in_force: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        parse(text.as_bytes()).map(|s| (String::from_utf8_lossy(s.name).into(), String::from_utf8_lossy(s.value).into()))
    }

    #[test]
    fn names_and_values() {
        let want = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(read("NCCL_IB_DISABLE set by environment to 1."), want("NCCL_IB_DISABLE", "1"));
        assert_eq!(read("NCCL_SOCKET_IFNAME set by environment to eth0"), want("NCCL_SOCKET_IFNAME", "eth0"));
        assert_eq!(read("NCCL_IB_HCA set to =mlx5_0,mlx5_1"), want("NCCL_IB_HCA", "=mlx5_0,mlx5_1"));
        assert_eq!(read("NCCL_P2P_LEVEL set by environment to LOC"), want("NCCL_P2P_LEVEL", "LOC"));
        assert_eq!(read("NET/Plugin: Plugin name set by env to aws-ofi"), want("NCCL_NET_PLUGIN", "aws-ofi"));
        assert_eq!(read("P2P Chunksize set to 131072"), None);
        assert_eq!(read("NCCL_COMM_ID set by environment to 10.0.0.1:2345"), want("NCCL_COMM_ID", "10.0.0.1:2345"));
    }
}
