//! Collective records: one training iteration, repeated.

use super::mix;

/// Layers of the made-up model.
const LAYERS: u64 = 24;
/// Communicators by their place among a rank's groups.
const WORLD: usize = 0;
const TENSOR: usize = 1;
const DATA: usize = 2;
/// NCCL's numbers of the data types used.
const BF16: u8 = 9;
const F32: u8 = 7;

/// The operations of one training step, the same on all ranks.
pub struct Iteration {
    pub operations: Vec<Operation>,
}

/// One operation with all that does not differ between ranks already in text.
pub struct Operation {
    /// Which of the rank's communicators.
    pub group: usize,
    function: &'static [u8],
    /// What a diverging rank calls in its place.
    other: &'static [u8],
    /// ` count … root …`
    middle: Vec<u8>,
    /// Distance of its buffers from the rank's own base.
    offset: u64,
}

impl Iteration {
    /// A step of a sharded model: gather weights, reduce activations, scatter gradients, then the global checks.
    pub fn new(seed: u64) -> Self {
        let mut operations = Vec::new();
        let mut add = |group, function: &'static [u8], count: u64, datatype: u8, op: u8| {
            let offset = 0x200_0000 * (operations.len() as u64 + 1);
            operations.push(Operation::new(group, function, count, datatype, op, offset));
        };
        let hidden = 4096 * (1 + mix(seed, 7) % 4);
        let shard = |layer: u64| hidden * (1024 + 128 * (mix(seed, layer) % 5));
        for layer in 0..LAYERS {
            add(DATA, b"AllGather", shard(layer), BF16, 0);
            add(TENSOR, b"AllReduce", hidden * 2048, BF16, 0);
            add(TENSOR, b"AllReduce", hidden * 2048, BF16, 0);
        }
        for layer in (0..LAYERS).rev() {
            add(DATA, b"AllGather", shard(layer), BF16, 0);
            add(TENSOR, b"AllReduce", hidden * 2048, BF16, 0);
            add(TENSOR, b"AllReduce", hidden * 2048, BF16, 0);
            add(DATA, b"ReduceScatter", shard(layer), F32, 0);
        }
        add(WORLD, b"AllReduce", 1, F32, 0);
        add(WORLD, b"AllReduce", 1, F32, 2);
        add(WORLD, b"Broadcast", 512, F32, 0);
        Self { operations }
    }
}

impl Operation {
    fn new(group: usize, function: &'static [u8], count: u64, datatype: u8, op: u8, offset: u64) -> Self {
        let other: &[u8] = if function == b"AllReduce" { b"ReduceScatter" } else { b"AllReduce" };
        let middle = format!(" count {count} datatype {datatype} op {op} root 0").into_bytes();
        Self { group, function, other, middle, offset }
    }

    /// Appends the record as the `count`-th operation of its communicator.
    pub fn render(&self, odd: bool, header: &[u8], count: u64, (base, third): (u64, &[u8]), tail: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        out.extend_from_slice(if odd { self.other } else { self.function });
        out.extend_from_slice(b": opCount ");
        hex(count, out);
        out.extend_from_slice(b" sendbuff 0x7");
        hex(base.wrapping_add(self.offset), out);
        out.extend_from_slice(b" recvbuff 0x7");
        hex(base.wrapping_add(self.offset + 0x100_0000), out);
        out.extend_from_slice(third);
        out.extend_from_slice(&self.middle);
        out.extend_from_slice(tail);
    }
}

/// Appends `value` in lower-case hex; `format!` would be most of the generator's time.
fn hex(value: u64, out: &mut Vec<u8>) {
    let digits = (64 - (value | 1).leading_zeros()).div_ceil(4);
    out.extend((0..digits).rev().map(|i| b"0123456789abcdef"[(value >> (4 * i) & 15) as usize]));
}
