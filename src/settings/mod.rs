//! Ready lines for the environment of a job: what to set to get a log that can be diagnosed, what pins each node to its
//! own names, and what mends the findings. Nothing is run.

mod debug;
mod flavour;
mod pins;
mod plan;

pub use debug::{Situation, debug};
pub use flavour::{Flavour, env_file, write};
pub use pins::pins;
pub use plan::{Wanted, chosen, nodes, plan};

/// What becomes of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// It gets this value.
    Set(String),
    /// It is taken out.
    Unset,
    /// It needs a value that only the node itself can tell; the rule that finds it.
    Open(String),
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub value: Value,
    /// Why, since which version.
    pub note: String,
    /// The value comes from the facts of the node: no text of a log says it better.
    pub from_facts: bool,
}

impl Line {
    /// A variable with a value.
    pub fn set(name: &str, value: impl Into<String>, note: &str) -> Self {
        Self { name: name.to_owned(), value: Value::Set(value.into()), note: note.to_owned(), from_facts: false }
    }

    /// A variable that is taken out.
    pub fn unset(name: &str, note: &str) -> Self {
        Self { value: Value::Unset, ..Self::set(name, "", note) }
    }

    /// A variable whose value has to be found by a rule.
    pub fn open(name: &str, rule: impl Into<String>, note: &str) -> Self {
        Self { value: Value::Open(rule.into()), ..Self::set(name, "", note) }
    }
}

/// The lines of one node, or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The node; `None` where all nodes get the same.
    pub host: Option<String>,
    /// Its address on the fabric, if known.
    pub address: Option<String>,
    /// Remarks before the lines.
    pub notes: Vec<String>,
    /// The variables.
    pub lines: Vec<Line>,
    /// Remarks behind them: commands to run by hand, how to take it back.
    pub after: Vec<String>,
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    /// Remarks at the top.
    pub head: Vec<String>,
    /// One block a node.
    pub blocks: Vec<Block>,
    /// Remarks at the end.
    pub tail: Vec<String>,
}

impl Sheet {
    /// Names of variables that do not have the same value on all nodes.
    pub fn differing(&self) -> Vec<&str> {
        let Some((first, rest)) = self.blocks.split_first() else { return Vec::new() };
        let differs = |line: &Line| rest.iter().any(|b| b.lines.iter().find(|l| l.name == line.name).is_none_or(|l| l.value != line.value));
        let mut names: Vec<&str> = first.lines.iter().filter(|l| differs(l)).map(|l| l.name.as_str()).collect();
        for line in rest.iter().flat_map(|b| &b.lines) {
            if !first.lines.iter().any(|l| l.name == line.name) && !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        names
    }
}

/// The first label of a host's name.
pub fn short(host: &str) -> &str {
    host.split(['.', ' ']).next().unwrap_or(host)
}
