//! What is no identity: words that stay, and the names of fields whose values are identities.

/// Words of logs that a short host or user name may equal: such a name is replaced only where its place says that it is
/// one.
const COMMON: [&str; 131] = [
    "admin",
    "agent",
    "all",
    "amd",
    "app",
    "array",
    "async",
    "auto",
    "base",
    "bash",
    "batch",
    "bench",
    "bootstrap",
    "build",
    "cache",
    "call",
    "channel",
    "chief",
    "client",
    "cluster",
    "code",
    "coll",
    "collnet",
    "comm",
    "compute",
    "conda",
    "conn",
    "container",
    "core",
    "cuda",
    "data",
    "default",
    "demo",
    "dev",
    "device",
    "devices",
    "direct",
    "docker",
    "driver",
    "engine",
    "env",
    "error",
    "eth",
    "exec",
    "fabric",
    "file",
    "float",
    "gdr",
    "global",
    "gpu",
    "gpus",
    "graph",
    "group",
    "guest",
    "half",
    "head",
    "home",
    "host",
    "hosts",
    "info",
    "init",
    "ipc",
    "job",
    "kernel",
    "kube",
    "label",
    "launcher",
    "leader",
    "lib",
    "linux",
    "local",
    "log",
    "logs",
    "main",
    "master",
    "memory",
    "mesh",
    "model",
    "models",
    "mpi",
    "nccl",
    "net",
    "network",
    "node",
    "nodes",
    "none",
    "null",
    "nvidia",
    "parent",
    "peer",
    "plugin",
    "pod",
    "port",
    "proc",
    "process",
    "project",
    "proxy",
    "pytorch",
    "queue",
    "rank",
    "ranks",
    "ray",
    "rccl",
    "recv",
    "ring",
    "rocm",
    "root",
    "run",
    "send",
    "server",
    "shared",
    "size",
    "slurm",
    "socket",
    "srun",
    "stage",
    "system",
    "task",
    "test",
    "thread",
    "torch",
    "train",
    "trainer",
    "tree",
    "ubuntu",
    "user",
    "users",
    "worker",
    "workers",
    "workspace",
    "world",
];

/// The same for words that are never an identity, wherever they stand.
const NEVER: [&str; 24] = [
    "localhost",
    "none",
    "null",
    "true",
    "false",
    "unknown",
    "localhost.localdomain",
    "ip6-localhost",
    "nan",
    "undefined",
    "unset",
    "empty",
    "host",
    "node",
    "name",
    "error",
    "info",
    "warn",
    "nccl",
    "rccl",
    "stdout",
    "stderr",
    "kernel",
    "string",
];

/// Users that every machine has.
const SYSTEM_USERS: [&str; 9] = ["root", "nobody", "git", "daemon", "docker", "slurm", "munge", "systemd", "specified"];

/// Endings of files whose names are evidence.
const FILES: [&str; 44] = [
    "py", "pyc", "so", "cc", "c", "h", "cu", "cuh", "cpp", "cxx", "hpp", "inc", "rs", "go", "js", "ts", "java", "scala", "sh", "bash", "log", "txt", "out", "err", "json", "jsonl",
    "xml", "yaml", "yml", "toml", "conf", "cfg", "ini", "gz", "zst", "xz", "bz2", "lz4", "tar", "tgz", "pt", "bin", "md", "html",
];

/// Source files: `net_ib.cc:123` is no host with a number.
const SOURCES: [&str; 17] = ["py", "cc", "c", "h", "cu", "cuh", "cpp", "cxx", "hpp", "inc", "rs", "go", "js", "ts", "java", "scala", "sh"];

/// Endings of names that belong to a network.
const TLDS: [&str; 44] = [
    "local",
    "internal",
    "lan",
    "corp",
    "intra",
    "intranet",
    "localdomain",
    "private",
    "home",
    "cluster",
    "hpc",
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "mil",
    "io",
    "ai",
    "dev",
    "cloud",
    "de",
    "uk",
    "fr",
    "ch",
    "nl",
    "se",
    "no",
    "fi",
    "it",
    "es",
    "jp",
    "cn",
    "kr",
    "tw",
    "in",
    "au",
    "ca",
    "eu",
    "us",
    "pl",
    "cz",
    "example",
    "test",
];

/// Domains whose pages logs point to.
const PUBLIC: [&str; 17] = [
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
    "pytorch.org",
    "python.org",
    "nvidia.com",
    "amd.com",
    "kernel.org",
    "huggingface.co",
    "pypi.org",
    "readthedocs.io",
    "ray.io",
    "vllm.ai",
    "open-mpi.org",
    "docker.io",
    "nvcr.io",
    "wikipedia.org",
];

/// First directories that hold the system or the installed software, not the user's work.
const SYSTEM_ROOTS: [&str; 13] = ["sys", "proc", "dev", "usr", "lib", "lib32", "lib64", "bin", "sbin", "etc", "run", "boot", "__w"];

/// Software below /opt that is evidence.
const OPT: [&str; 14] = ["rocm", "nvidia", "amazon", "mellanox", "conda", "hpcx", "intel", "cray", "pytorch", "venv", "python", "ompi", "openmpi", "ucx"];

/// Directories whose names say nothing of their owner.
const PLAIN_DIRS: [&str; 82] = [
    "home",
    "users",
    "mnt",
    "data",
    "scratch",
    "workspace",
    "work",
    "lustre",
    "gpfs",
    "fsx",
    "nfs",
    "shared",
    "share",
    "project",
    "projects",
    "opt",
    "var",
    "srv",
    "app",
    "apps",
    "storage",
    "efs",
    "tmp",
    "root",
    "media",
    "global",
    "vol",
    "volume",
    "volumes",
    "export",
    "mount",
    "ckpt",
    "checkpoints",
    "src",
    "bin",
    "include",
    "envs",
    "env",
    "venv",
    ".venv",
    ".local",
    ".cache",
    ".conda",
    "miniconda3",
    "anaconda3",
    "conda",
    "log",
    "logs",
    "lib",
    "lib64",
    "lib32",
    "site-packages",
    "dist-packages",
    "build",
    "dist",
    "scripts",
    "tests",
    "examples",
    "configs",
    "config",
    "code",
    "output",
    "outputs",
    "results",
    "models",
    "datasets",
    "hub",
    "torch",
    "vllm",
    "deepspeed",
    "megatron",
    "nccl",
    "rccl",
    "cuda",
    "csrc",
    "distributed",
    "c10d",
    "elastic",
    "multiprocessing",
    "transport",
    "misc",
    "collectives",
];

fn is_in(list: &[&str], word: &[u8]) -> bool {
    list.iter().any(|w| w.as_bytes().eq_ignore_ascii_case(word))
}

/// May a host or user of this name be replaced wherever it stands as a whole word?
pub fn distinctive(name: &[u8]) -> bool {
    let short = name.len() == 2 && name[0].is_ascii_alphabetic() && name[1].is_ascii_digit();
    (short || name.len() >= 3) && !is_in(&COMMON, name) && !is_in(&NEVER, name) && !is_in(&PLAIN_DIRS, name) && !evidence(name) && !name.iter().all(u8::is_ascii_digit)
}

/// Never an identity.
pub fn never(word: &[u8]) -> bool {
    is_in(&NEVER, word)
}

/// A user that every machine has.
pub fn system_user(name: &[u8]) -> bool {
    is_in(&SYSTEM_USERS, name) || never(name)
}

/// Names of devices, interfaces and ranks: they are evidence and stay.
pub fn evidence(name: &[u8]) -> bool {
    const STEMS: [&str; 40] = [
        "mlx4_",
        "mlx5_",
        "bnxt_re",
        "irdma",
        "rdmap",
        "efa_",
        "hfi1_",
        "qedr",
        "rocep",
        "ibp",
        "eth",
        "ib",
        "en",
        "eno",
        "ens",
        "enp",
        "bond",
        "wlan",
        "docker",
        "br",
        "lo",
        "veth",
        "cuda",
        "nccl",
        "rccl",
        "rank",
        "gpu",
        "dev",
        "ranks",
        "tp",
        "pp",
        "dp",
        "ep",
        "default",
        "local_rank",
        "cpu",
        "sm_",
        "gfx",
        "numa",
        "net",
    ];
    let stem = name.iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |p| p + 1);
    let (stem, digits) = name.split_at(stem);
    // `gpu001` is a host, `gpu7` a device.
    digits.len() <= 2 && is_in(&STEMS, stem) || name.starts_with(b"enp") && name.get(3).is_some_and(u8::is_ascii_digit) || name.starts_with(b"mlx5_") || name.starts_with(b"rocep")
}

/// `rank3`, `default0`, `Worker_TP2`, `worker1`: a rank's mark, not a name.
pub fn role(name: &[u8]) -> bool {
    const ROLES: [&str; 12] = ["rank", "default", "trainer", "worker", "local", "head", "tp", "pp", "dp", "ep", "task", "stage"];
    let stem = name.iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |p| p + 1);
    is_in(&ROLES, name[..stem].strip_suffix(b"_").unwrap_or(&name[..stem]))
}

/// A file whose name is evidence. Digits behind the ending are a version (`libnccl.so.2.27`).
pub fn file(name: &[u8]) -> bool {
    let mut labels = name.rsplit(|b| *b == b'.').peekable();
    while let Some(label) = labels.next() {
        // The first label is the name, not its ending.
        if labels.peek().is_none() {
            return false;
        }
        if !label.iter().all(u8::is_ascii_digit) || label.is_empty() {
            return is_in(&FILES, label);
        }
    }
    false
}

/// A file of source code.
pub fn source_file(name: &[u8]) -> bool {
    memchr::memrchr(b'.', name).is_some_and(|dot| dot > 0 && is_in(&SOURCES, &name[dot + 1..]))
}

/// Ends like a name of a network.
pub fn has_tld(name: &[u8]) -> bool {
    let labels = name.split(|b| *b == b'.').count();
    memchr::memrchr(b'.', name).is_some_and(|dot| labels >= 3 && is_in(&TLDS, &name[dot + 1..]))
}

/// A place that everybody may know.
pub fn public(domain: &[u8]) -> bool {
    PUBLIC.iter().any(|p| {
        let at = domain.len().checked_sub(p.len());
        at.is_some_and(|at| domain[at..].eq_ignore_ascii_case(p.as_bytes()) && (at == 0 || domain[at - 1] == b'.'))
    })
}

/// The system's own directories.
pub fn system_root(first: &[u8], second: &[u8]) -> bool {
    is_in(&SYSTEM_ROOTS, first) || first == b"opt" && OPT.iter().any(|o| second.starts_with(o.as_bytes())) || first == b"var" && matches!(second, b"run" | b"lib")
}

/// A directory whose name says nothing of its owner.
pub fn plain_dir(name: &[u8]) -> bool {
    is_in(&PLAIN_DIRS, name) || name.starts_with(b"python3") || name.starts_with(b"cuda-") || name.starts_with(b"rocm-") || name.iter().all(u8::is_ascii_digit)
}

/// Directories whose children are named for users.
pub fn homes(name: &[u8]) -> bool {
    is_in(&["home", "users"], name)
}

/// What a field's name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A host.
    Host,
    /// Hosts, perhaps folded (`gpu[01-04]`).
    Hosts,
    /// A user.
    User,
    /// A number of a device.
    Guid,
    /// A secret, whatever it looks like.
    Secret,
    /// A secret if it looks like one.
    Token,
}

/// Looks a field's name up.
pub fn key(name: &[u8]) -> Option<Key> {
    if !(3..=48).contains(&name.len()) {
        return None;
    }
    let mut lower = [0; 48];
    let lower = &mut lower[..name.len()];
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower.iter_mut().filter(|b| **b == b'-').for_each(|b| *b = b'_');
    let plain = lower.strip_prefix(b"_").unwrap_or(lower);
    Some(match plain {
        b"host" | b"hostname" | b"nodename" | b"node_name" | b"node" | b"master_addr" | b"main_process_ip" | b"rdzv_endpoint" | b"head_node" | b"pod" | b"pod_name"
        | b"podname" | b"peer_host" | b"peer_hostname" | b"slurmd_nodename" | b"slurm_submit_host" | b"nccl_hostid" | b"fqdn" | b"local_host" | b"remote_host" | b"hostip"
        | b"node_id" | b"batchhost" | b"batch_host" | b"nodeid" => Key::Host,
        b"nodelist" | b"slurm_nodelist" | b"slurm_job_nodelist" | b"slurm_step_nodelist" | b"hosts" | b"nodes" | b"reqnodelist" | b"lsb_hosts" => Key::Hosts,
        b"user" | b"username" | b"logname" | b"sudo_user" | b"slurm_job_user" | b"owner" | b"userid" | b"user_name" | b"login" => Key::User,
        _ if plain.ends_with(b"guid") => Key::Guid,
        _ => return secret(name, plain),
    })
}

fn secret(name: &[u8], lower: &[u8]) -> Option<Key> {
    const ALWAYS: [&[u8]; 14] = [
        b"password",
        b"passwd",
        b"passphrase",
        b"secret",
        b"api_key",
        b"apikey",
        b"access_key",
        b"secret_key",
        b"access_key_id",
        b"auth_token",
        b"access_token",
        b"private_key",
        b"credentials",
        b"hf_token",
    ];
    if ALWAYS.iter().any(|s| lower.ends_with(s)) {
        return Some(Key::Secret);
    }
    let shouted = !name.iter().any(u8::is_ascii_lowercase);
    if shouted && [&b"_TOKEN"[..], b"_KEY", b"_PASS", b"_PWD", b"_AUTH", b"_SAS", b"_COOKIE"].iter().any(|s| name.ends_with(s)) {
        return Some(Key::Secret);
    }
    (lower.ends_with(b"token") || lower.ends_with(b"signature") || lower.ends_with(b"_key")).then_some(Key::Token)
}
