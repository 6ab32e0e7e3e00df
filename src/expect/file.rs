//! The table `[expect]` of `ncclog.toml`.

use super::{Expectations, Key};
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::{Table, Value};

/// Reads `[expect]` and `[expect.host.NAME]`; other tables are somebody else's. The error says what is wrong.
pub fn parse(text: &str) -> Result<Expectations, String> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned())?;
    let mut out = Expectations::default();
    match table.get("expect") {
        None => {}
        Some(Value::Table(expect)) => {
            out.all = keys(expect)?;
            match expect.get("host") {
                None => {}
                Some(Value::Table(hosts)) => {
                    for (host, of) in hosts {
                        let Value::Table(of) = of else { return Err(format!("[expect.host.{host}] must be a table of expectations")) };
                        out.hosts.push((host.clone(), keys(of)?));
                    }
                }
                Some(_) => return Err("[expect.host] must hold one table a host, as in [expect.host.node1]".to_owned()),
            }
        }
        Some(_) => return Err("[expect] must be a table".to_owned()),
    }
    Ok(out)
}

fn keys(table: &Table) -> Result<BTreeMap<Key, Vec<String>>, String> {
    let mut out = BTreeMap::new();
    for (name, value) in table.iter().filter(|(name, _)| *name != "host") {
        let key: Key = name.parse().map_err(|e| format!("[expect] {e}"))?;
        let values = values(key, value).ok_or_else(|| format!("[expect] {name}: a text, a number, true, false or a list of texts was wanted"))?;
        key.check(&values).map_err(|e| format!("[expect] {e}"))?;
        out.insert(key, values);
    }
    Ok(out)
}

fn values(key: Key, value: &Value) -> Option<Vec<String>> {
    Some(match value {
        Value::String(text) => text.split(',').map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()).collect(),
        Value::Integer(number) => vec![number.to_string()],
        Value::Boolean(on) if key == Key::Gdr => vec![if *on { "on" } else { "off" }.to_owned()],
        Value::Array(list) => list.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        _ => return None,
    })
}

/// Writes what a good run let expect as the table `[expect]`.
pub fn write(learnt: &Expectations) -> String {
    let mut out = String::from("# What a good start of this job looks like, learnt from its logs. `ncclog analyze` and `ncclog follow` hold others to it.\n\n[expect]\n");
    for (key, values) in &learnt.all {
        line(&mut out, *key, values);
    }
    for (host, of) in &learnt.hosts {
        let _ = write!(out, "\n[expect.host.{}]\n", quoted(host));
        for (key, values) in of {
            line(&mut out, *key, values);
        }
    }
    out
}

fn line(out: &mut String, key: Key, values: &[String]) {
    let text = match (key, values) {
        (Key::Nranks | Key::Nnodes, [one]) => one.clone(),
        (_, [one]) => quoted(one),
        _ => format!("[{}]", values.iter().map(|v| quoted(v)).collect::<Vec<_>>().join(", ")),
    };
    let _ = writeln!(out, "{} = {text}", key.name());
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        assert!(parse("[expect]\nnett = \"IB\"").unwrap_err().contains("did you mean net?"));
        assert!(parse("[expect]\nnet = 1.5").unwrap_err().contains("net: a text"));
        assert!(parse("expect = 3").is_err() && parse("[expect").is_err() && parse("[expect.host]\na = 1").is_err());
        assert!(parse("[rules]\nanything = 1").unwrap().is_empty());
        assert_eq!(parse("[expect]\ngdr = true\nno-interface = [\"docker0\", \"wlan*\"]").unwrap().on(Key::NoInterface, ""), ["docker0", "wlan*"]);
    }
}
