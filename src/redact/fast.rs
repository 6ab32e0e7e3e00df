//! The line that logs hold by the million: a collective call behind a header whose host is known. Nothing in it but the
//! host is an identity, and its grammar is so narrow that a torn or glued line never passes.

/// Is `line` a call of the host that it starts with (`host` and its colon)?
pub fn call(line: &[u8], host: &[u8]) -> bool {
    line.strip_prefix(host).and_then(behind_host).is_some()
}

fn behind_host(text: &[u8]) -> Option<()> {
    let text = decimal(text.strip_prefix(b":")?)?;
    let text = decimal(text.strip_prefix(b":")?)?;
    let text = decimal(text.strip_prefix(b" [")?)?;
    let text = text.strip_prefix(b"] NCCL INFO ")?;
    let name = text.iter().take(24).take_while(|b| b.is_ascii_alphabetic()).count();
    if name == 0 {
        return None;
    }
    let text = hex(text[name..].strip_prefix(b": opCount ")?)?;
    let text = pointer(text.strip_prefix(b" sendbuff ")?)?;
    let text = pointer(text.strip_prefix(b" recvbuff ")?)?;
    let text = text.strip_prefix(b" acc ").map_or(Some(text), pointer)?;
    let text = decimal(text.strip_prefix(b" count ")?)?;
    let text = decimal(text.strip_prefix(b" datatype ")?)?;
    let text = decimal(text.strip_prefix(b" op ")?)?;
    let text = decimal(text.strip_prefix(b" root ")?)?;
    let text = hex(text.strip_prefix(b" comm 0x")?)?;
    let text = decimal(text.strip_prefix(b" [nranks=")?)?;
    let text = pointer(text.strip_prefix(b"] stream ")?)?;
    let text = match text.strip_prefix(b" task ") {
        Some(rest) => decimal(decimal(rest)?.strip_prefix(b" globalrank ")?)?,
        None => text,
    };
    matches!(text, b"" | b"\r").then_some(())
}

fn decimal(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().take(20).take_while(|b| b.is_ascii_digit()).count();
    (len > 0).then(|| &text[len..])
}

fn pointer(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(nil)").or_else(|| hex(text.strip_prefix(b"0x")?))
}

fn hex(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().take(16).take_while(|b| b.is_ascii_hexdigit()).count();
    (len > 0).then(|| &text[len..])
}

#[cfg(test)]
mod tests {
    use super::call;

    const LINE: &str = "gpu01:7:9 [0] NCCL INFO AllReduce: opCount 4f sendbuff 0x7f00 recvbuff 0x7f01 count 16 datatype 9 op 0 root 0 comm 0x55 [nranks=2] stream 0x5f";

    #[test]
    fn only_a_whole_call_passes() {
        assert!(call(LINE.as_bytes(), b"gpu01"));
        assert!(!call(LINE.as_bytes(), b"gpu02"));
        let rccl = LINE.replace(" count", " acc (nil) count").replace("stream 0x5f", "stream (nil) task 0 globalrank 1");
        assert!(call(rccl.as_bytes(), b"gpu01"));
        assert!(!call(rccl.replace("(nil) task", "(nil)gpu02 task").as_bytes(), b"gpu01"));
        for end in 5..LINE.len() {
            // A number may be shorter and still be one; anything else is torn.
            let whole = LINE[..end].contains("stream 0x5");
            assert_eq!(call(&LINE.as_bytes()[..end], b"gpu01"), whole, "{}", &LINE[..end]);
            assert!(!call(format!("{}gpu02:7:9 [0] NCCL INFO x", &LINE[..end]).as_bytes(), b"gpu01"));
        }
    }
}
