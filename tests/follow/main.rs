//! `follow`: faults under the reader, the gate, pipes, terminals, and the launch scripts of `examples/`.

mod examples;
mod faults;
mod gate;
mod live;
mod logs;
mod terminal;
