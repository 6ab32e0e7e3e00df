//! The same lines for a shell, Docker, Slurm, Kubernetes, Ray and vLLM.

use super::{Block, Line, Sheet, Value, short};
use crate::report::clean;
use clap::ValueEnum;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::io::{self, Write};

/// Where the lines are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Flavour {
    /// A shell: `export` lines.
    #[default]
    Shell,
    /// Docker or Podman: an `--env-file`.
    Docker,
    /// Slurm: a file that each task reads.
    Slurm,
    /// Kubernetes: the `env` of a container.
    K8s,
    /// Ray: a runtime environment, or lines before `ray start`.
    Ray,
    /// vLLM, alone or on Ray.
    Vllm,
}

/// Writes a sheet.
pub fn write(sheet: &Sheet, flavour: Flavour, out: &mut dyn Write) -> io::Result<()> {
    comments(out, "", &sheet.head)?;
    comments(out, "", &usage(sheet, flavour))?;
    match flavour {
        Flavour::Slurm if sheet.blocks.iter().any(|b| b.host.is_some()) => slurm(sheet, out)?,
        _ => {
            for block in &sheet.blocks {
                block_alone(block, flavour, out)?;
            }
        }
    }
    comments(out, "", &sheet.tail)
}

/// What to do with the lines.
fn usage(sheet: &Sheet, flavour: Flavour) -> Vec<String> {
    let per_node = sheet.blocks.iter().any(|b| b.host.is_some());
    let differing = if sheet.blocks.len() > 1 { sheet.differing() } else { Vec::new() };
    let mut list = Vec::new();
    if !sheet.blocks.is_empty() {
        list.extend(place(flavour, per_node).map(str::to_owned));
    }
    let copied: Vec<String> = differing.iter().filter(|n| n.starts_with("NCCL_") || n.starts_with("VLLM_")).map(|n| format!("\"{n}\"")).collect();
    if matches!(flavour, Flavour::Ray | Flavour::Vllm) && !copied.is_empty() {
        list.push("vLLM on Ray copies the head's NCCL_* and VLLM_* over those of the workers. These differ, so keep it from that, on the head:".to_owned());
        list.push(format!("  mkdir -p ~/.config/vllm && echo '[{}]' > ~/.config/vllm/ray_non_carry_over_env_vars.json", copied.join(", ")));
    }
    list
}

/// Where the lines belong.
fn place(flavour: Flavour, per_node: bool) -> Option<&'static str> {
    Some(match (flavour, per_node) {
        (Flavour::Shell, true) => "on each node, in the shell or script that starts its ranks; not in one place for all",
        (Flavour::Shell, false) => return None,
        (Flavour::Docker, _) => "docker run --env-file FILE --network=host --ipc=host --device=/dev/infiniband --ulimit memlock=-1 …; logs under /tmp need -v DIR:/tmp",
        (Flavour::Slurm, true) => "save as node-env.sh; every task reads it: srun sh -c '. ./node-env.sh; exec \"$@\"' - PROGRAM ARGUMENTS",
        (Flavour::Slurm, false) => "in the batch script before srun, which hands the environment on unless --export says otherwise; srun --label --output=job.%j.log",
        (Flavour::K8s, true) => "in the container's spec of the pod on each node; one template for all pods cannot hold values that differ",
        (Flavour::K8s, false) => "in the container's spec; the log files: kubectl cp POD:/tmp/ logs/POD/",
        (Flavour::Ray, true) => "on each node before its `ray start`; a runtime environment is the same everywhere",
        (Flavour::Ray, false) => "as a runtime environment: ray job submit --runtime-env-json '…' -- python train.py, or ray.init(runtime_env=…)",
        (Flavour::Vllm, true) => "on each node before vllm serve, or before its `ray start`",
        (Flavour::Vllm, false) => "before vllm serve; with Ray on every node before `ray start`",
    })
}

fn block_alone(block: &Block, flavour: Flavour, out: &mut dyn Write) -> io::Result<()> {
    if let Some(host) = &block.host {
        writeln!(out)?;
        comments(out, "", &[format!("== {host} ==")])?;
    }
    comments(out, "", &block.notes)?;
    match flavour {
        Flavour::Shell | Flavour::Slurm | Flavour::Vllm => exports(&block.lines, "", out)?,
        Flavour::Docker => env_file(&block.lines, out)?,
        Flavour::K8s => kubernetes(&block.lines, out)?,
        Flavour::Ray if block.host.is_none() => ray(&block.lines, out)?,
        Flavour::Ray => {
            exports(&block.lines, "", out)?;
            let address = block.address.as_deref().unwrap_or("ADDRESS_ON_THE_FABRIC");
            comments(out, "", &[format!("then on this node: ray start --node-ip-address={address} …")])?;
        }
    }
    comments(out, "", &block.after)
}

fn exports(lines: &[Line], indent: &str, out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        let note = if line.note.is_empty() { String::new() } else { format!("   # {}", one_line(&line.note)) };
        match &line.value {
            Value::Set(value) if !shows(value) => hidden(line, value, indent, out)?,
            Value::Set(value) => writeln!(out, "{indent}export {}={}{note}", line.name, quoted(value))?,
            Value::Unset => writeln!(out, "{indent}unset {}{note}", line.name)?,
            Value::Open(rule) => comments(out, indent, &[format!("{}: {rule}", line.name)])?,
        }
    }
    Ok(())
}

/// Lines that Docker's `--env-file` and a shell's `.` read alike. A value that would need quotes cannot be both.
pub fn env_file(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        if !line.note.is_empty() {
            comments(out, "", std::slice::from_ref(&line.note))?;
        }
        match &line.value {
            Value::Set(value) if is_plain(value) => writeln!(out, "{}={value}", line.name)?,
            Value::Set(value) => comments(out, "", &[format!("{}: its value needs quotes and cannot stand here: {}", line.name, quoted(value))])?,
            Value::Unset => comments(out, "", &[format!("take {} out of the image, the -e options and the scripts", line.name)])?,
            Value::Open(rule) => comments(out, "", &[format!("{}: {rule}", line.name)])?,
        }
    }
    Ok(())
}

fn kubernetes(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "env:")?;
    for line in lines {
        match &line.value {
            Value::Set(value) if !shows(value) => hidden(line, value, "  ", out)?,
            Value::Set(value) => {
                writeln!(out, "  - name: {}", line.name)?;
                let note = if line.note.is_empty() { String::new() } else { format!("   # {}", one_line(&line.note)) };
                writeln!(out, "    value: {}{note}", Json::from(value.as_str()))?;
            }
            Value::Unset => comments(out, "  ", &[format!("remove {}", line.name)])?,
            Value::Open(rule) => comments(out, "  ", &[format!("{}: {rule}", line.name)])?,
        }
    }
    Ok(())
}

fn ray(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    let mut variables = Map::new();
    for line in lines {
        match &line.value {
            Value::Set(value) if !shows(value) => hidden(line, value, "", out)?,
            Value::Set(value) => {
                variables.insert(line.name.clone(), Json::from(value.as_str()));
            }
            Value::Unset => comments(out, "", &[format!("take {} out", line.name)])?,
            Value::Open(rule) => comments(out, "", &[format!("{}: {rule}", line.name)])?,
        }
    }
    let mut whole = Map::new();
    whole.insert("env_vars".to_owned(), Json::Object(variables));
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

/// One file for all tasks.
fn slurm(sheet: &Sheet, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "case \"$(hostname -s)\" in")?;
    for block in &sheet.blocks {
        match &block.host {
            Some(host) => writeln!(out, "  {})", quoted(&clean(short(host))))?,
            None => writeln!(out, "  *)")?,
        }
        comments(out, "    ", &block.notes)?;
        exports(&block.lines, "    ", out)?;
        comments(out, "    ", &block.after)?;
        writeln!(out, "    ;;")?;
    }
    writeln!(out, "esac")
}

fn comments(out: &mut dyn Write, indent: &str, texts: &[String]) -> io::Result<()> {
    for text in texts {
        if text.is_empty() {
            writeln!(out)?;
        } else {
            writeln!(out, "{indent}# {}", one_line(text))?;
        }
    }
    Ok(())
}

/// No quotes keep a terminal from obeying what stands between them.
fn shows(value: &str) -> bool {
    clean(value) == value
}

fn hidden(line: &Line, value: &str, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    comments(out, indent, &[format!("{}: its value holds characters that do not show and cannot stand here: {value}", line.name)])
}

/// Text of a log must not leave its comment.
fn one_line(text: &str) -> Cow<'_, str> {
    clean(text)
}

/// A word for a shell. What begins with `=` is quoted for zsh, which takes it for the path of a command.
pub fn quoted(value: &str) -> Cow<'_, str> {
    if is_plain(value) && !value.is_empty() && !value.starts_with('=') {
        return Cow::Borrowed(value);
    }
    // A NUL cannot stand in a variable at all.
    shlex::try_quote(value).unwrap_or(Cow::Borrowed("''"))
}

/// Means the same to a shell and to Docker.
fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "_=:.,/%+@-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Line> {
        vec![Line::set("NCCL_IB_HCA", "=mlx5_0:1", "exact name"), Line::unset("NCCL_NET", ""), Line::open("NCCL_IB_GID_INDEX", "show_gids", ""), Line::set("X", "a b'$(c)", "")]
    }

    fn shown(flavour: Flavour, hosts: &[Option<&str>]) -> String {
        let blocks = hosts.iter().map(|h| Block { host: h.map(str::to_owned), lines: lines(), ..Block::default() }).collect();
        let mut out = Vec::new();
        write(&Sheet { blocks, ..Sheet::default() }, flavour, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_that_a_terminal_would_obey_stays_in_a_comment() {
        for flavour in [Flavour::Shell, Flavour::Slurm, Flavour::Vllm, Flavour::Docker, Flavour::K8s, Flavour::Ray] {
            let block = Block { host: Some("n\u{7f}1".to_owned()), lines: vec![Line::set("NCCL_IB_HCA", "mlx5\u{9b}\u{8}_0", "")], ..Block::default() };
            let mut out = Vec::new();
            write(&Sheet { blocks: vec![block], ..Sheet::default() }, flavour, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{flavour:?}: {text:?}");
        }
    }

    #[test]
    fn shells_get_quotes_and_comments() {
        assert_eq!(
            shown(Flavour::Shell, &[None]),
            "export NCCL_IB_HCA='=mlx5_0:1'   # exact name\nunset NCCL_NET\n# NCCL_IB_GID_INDEX: show_gids\nexport X=\"a b'\\$(c)\"\n"
                .replace("\"a b'\\$(c)\"", &quoted("a b'$(c)"))
        );
    }

    #[test]
    fn env_files_hold_plain_values_only() {
        let text = shown(Flavour::Docker, &[Some("n1")]);
        assert!(text.contains("# exact name\nNCCL_IB_HCA==mlx5_0:1\n# take NCCL_NET out"), "{text}");
        assert!(!text.contains("\nX="), "{text}");
    }

    #[test]
    fn kubernetes_and_ray_get_strings() {
        let text = shown(Flavour::K8s, &[None]);
        assert!(text.contains("env:\n  - name: NCCL_IB_HCA\n    value: \"=mlx5_0:1\"   # exact name\n  # remove NCCL_NET\n"), "{text}");
        let text = shown(Flavour::Ray, &[None]);
        let json: Json = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        assert_eq!(json["env_vars"]["X"], "a b'$(c)");
    }

    #[test]
    fn slurm_chooses_by_host() {
        let text = shown(Flavour::Slurm, &[Some("n1.example.org"), Some("n2")]);
        assert!(text.contains("case \"$(hostname -s)\" in\n  n1)\n    export NCCL_IB_HCA="), "{text}");
        assert!(text.ends_with("    ;;\nesac\n"), "{text}");
    }

    #[test]
    fn text_of_a_log_stays_in_its_comment() {
        let block = Block { notes: vec!["a\nrm -rf x\u{1b}[2J".to_owned()], ..Block::default() };
        let mut out = Vec::new();
        write(&Sheet { blocks: vec![block], ..Sheet::default() }, Flavour::Shell, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_differs_between_nodes_is_kept_from_vllm() {
        let block = |host: &str, gid: &str| Block {
            host: Some(host.to_owned()),
            lines: vec![Line::set("NCCL_NET", "IB", ""), Line::set("NCCL_IB_GID_INDEX", gid, "")],
            ..Block::default()
        };
        let sheet = Sheet { blocks: vec![block("n1", "3"), block("n2", "5")], ..Sheet::default() };
        assert_eq!(sheet.differing(), ["NCCL_IB_GID_INDEX"]);
        let mut out = Vec::new();
        write(&sheet, Flavour::Vllm, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("echo '[\"NCCL_IB_GID_INDEX\"]' > ~/.config/vllm/ray_non_carry_over_env_vars.json"));
    }
}
