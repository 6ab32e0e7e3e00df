//! What findings of all causes share, in Simplified Chinese.

use crate::lang::catalogue::Table;

/// Its texts.
pub const TABLE: Table = Table {
    texts: &[("The program finished its work all the same.", "尽管如此，程序还是做完了它的工作。")],
    phrases: &[
        ("rank {one}", "rank {one}"),
        ("ranks {}", "rank {0}"),
        ("a process", "某个进程"),
        ("the machine", "这台机器"),
        ("{a} and {b}", "{a} 和 {b}"),
        ("{a}, {b} and {} more", "{a}、{b} 和另外 {0} 个"),
        (" and ", " 和 "),
        ("the host of {file}", "{file} 所属的主机"),
        ("a host", "某台主机"),
    ],
};
