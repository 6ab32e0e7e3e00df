//! The formats for bug reports and for other tools: snapshots, bounds, safety, and the structure that their readers
//! demand.

mod support;

use ncclog::analysis::{Options as Inputs, Silent, analyze, analyze_bytes};
use ncclog::report::{Format, FromFiles, MAX_CHARACTERS, Options, Template, write};
use ncclog::rules::{Analysis, Confidence, Finding, Severity, Verdict};
use serde_json::Value;
use support::{analysis, cluster, empty, evidence, healthy, tcp_fallback};

const ALL: [Format; 5] = [Format::Markdown, Format::Html, Format::Github, Format::Sarif, Format::Junit];

fn text(format: Format, analysis: &Analysis, options: &Options) -> String {
    let mut out = Vec::new();
    write(format, analysis, &mut out, options).expect("a vector takes all");
    String::from_utf8(out).expect("reports are UTF-8").replace(&format!("ncclog {}", env!("CARGO_PKG_VERSION")), "ncclog …")
}

fn plain(format: Format, analysis: &Analysis) -> String {
    text(format, analysis, &Options::default())
}

fn fixture(name: &str) -> Analysis {
    let outcome = analyze(&Inputs { inputs: vec![format!("fixtures/{name}/*.*")], ..Inputs::default() }, &Silent);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    outcome.analysis
}

/// Everything but style and script, which are files of their own.
fn body(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").expect("a style");
    let (_, rest) = rest.split_once("</style>").expect("its end");
    let (rest, tail) = rest.split_once("<script>").expect("a script");
    let (_, tail) = tail.split_once("</script>").expect("its end");
    format!("{head}{rest}{tail}").replace("><", ">\n<")
}

#[test]
fn markdown_of_fixtures() {
    for name in ["missing-rank-7-of-8-wait", "healthy-efa", "tcp-mixed-one-node-without-hca"] {
        insta::assert_snapshot!(format!("markdown_{name}"), plain(Format::Markdown, &fixture(name)));
    }
    insta::assert_snapshot!("markdown_nothing", plain(Format::Markdown, &empty()));
}

#[test]
fn html_of_fixtures() {
    for name in ["missing-rank-7-of-8-wait", "slow-intra-node-p2p-disabled-by-env"] {
        let page = text(Format::Html, &fixture(name), &Options { context: Some(&FromFiles), ..Options::default() });
        insta::assert_snapshot!(format!("html_{name}"), body(&page));
    }
}

#[test]
fn annotations_of_fixtures() {
    for name in ["missing-rank-7-of-8-wait", "healthy-efa"] {
        insta::assert_snapshot!(format!("github_{name}"), plain(Format::Github, &fixture(name)));
    }
    insta::assert_snapshot!("github_with_consequence", plain(Format::Github, &tcp_fallback()));
}

#[test]
fn junit_of_fixtures() {
    insta::assert_snapshot!("junit_with_consequence", plain(Format::Junit, &tcp_fallback()));
    insta::assert_snapshot!("junit_healthy", plain(Format::Junit, &healthy()));
    insta::assert_snapshot!("junit_nothing", plain(Format::Junit, &empty()));
}

#[test]
fn sarif_results() {
    let document: Value = serde_json::from_str(&plain(Format::Sarif, &tcp_fallback())).expect("JSON");
    insta::assert_snapshot!("sarif_results", serde_json::to_string_pretty(&document["runs"][0]["results"]).expect("JSON"));
}

#[test]
fn bug_forms_have_their_fields_in_order() {
    let fields = |template, names: &[&str]| {
        let form = text(Format::Markdown, &tcp_fallback(), &Options { template: Some(template), ..Options::default() });
        let headings: Vec<&str> = form.lines().filter_map(|l| l.strip_prefix("### ")).collect();
        assert_eq!(headings[0], "Title");
        assert_eq!(headings[1..], *names, "{form}");
        assert!(form.contains("Still to be run:\n```sh\n"));
        assert!(form.contains("`logs/rank0.log:12 (rank 0)`"), "{form}");
        form
    };
    let nccl = fields(
        Template::NcclIssue,
        &["How is this issue impacting you?", "Share Your Debug Logs", "Steps to Reproduce the Issue", "NCCL Version", "Your platform details", "Error Message & Behavior"],
    );
    assert!(nccl.contains("### NCCL Version\n\n2.27.3+cuda12.9\n") && nccl.contains("Application crash") && nccl.contains("nvidia-smi topo -m"));
    let rccl = fields(
        Template::RcclIssue,
        &[
            "Problem Description",
            "Operating System",
            "CPU",
            "GPU",
            "ROCm Version",
            "ROCm Component",
            "Steps to Reproduce",
            "(Optional for Linux users) Output of /opt/rocm/bin/rocminfo --support",
            "Additional Information",
        ],
    );
    assert!(rccl.contains("rocminfo"));
    let vllm = fields(Template::VllmIssue, &["Your current environment", "🐛 Describe the bug", "Before submitting a new issue..."]);
    assert!(vllm.contains("collect_env.py"));
}

/// Many findings with everything at its longest.
fn flood() -> Analysis {
    let long = "😀 wörter <b>&`|* ".repeat(400);
    let finding = |index: u32| {
        let mut finding = tcp_fallback().findings.remove(0);
        finding.title = format!("{index} {long}");
        finding.why.clone_from(&long);
        finding.evidence = (0..20).map(|l| evidence(&long, l, &long)).collect();
        finding.fixes[0].commands = vec![long.clone(); 30];
        finding.avoid = vec![long.clone(); 20];
        finding
    };
    let mut flood = analysis(Verdict::Failed, (0..200).map(finding).collect());
    flood.job = cluster(4096).job;
    flood.notes = vec![long.clone(); 50];
    flood
}

#[test]
fn markdown_fits_github_whatever_was_found() {
    let flood = flood();
    for template in [None, Some(Template::NcclIssue), Some(Template::RcclIssue), Some(Template::VllmIssue)] {
        let report = text(Format::Markdown, &flood, &Options { template, ..Options::default() });
        assert!(report.encode_utf16().count() <= MAX_CHARACTERS, "{template:?}: {}", report.encode_utf16().count());
        assert!(report.contains("**Cut to fit:** "), "{template:?}");
        assert!(report.contains("**Proof:**") && report.contains("#### 1. 0 "), "the most important stays");
        assert!(report.matches("```").count().is_multiple_of(2), "no block of code is cut open");
    }
    let whole = plain(Format::Markdown, &cluster(4096));
    assert!(whole.len() < 4000 && !whole.contains("Cut to fit"), "{whole}");
}

#[test]
fn four_thousand_ranks_are_a_page_under_two_megabytes() {
    let page = plain(Format::Html, &cluster(4096));
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("class=\"squares\"") && page.contains("class=\"matrix\"") && page.contains("class=\"ladder\""));
    assert!(page.contains("id=\"r1365\"") && page.contains("rank 1365 on node170: stopped before the others, reached connecting channels"));
}

#[test]
fn missing_and_stuck_ranks_stand_out() {
    let page = plain(Format::Html, &cluster(64));
    assert!(page.contains("<b>1 rank: no line in these logs</b> (63)"), "{}", body(&page));
    assert!(page.contains("<b>1 rank: stopped before the others</b> (21)"));
    let small = plain(Format::Html, &healthy());
    assert!(!small.contains("class=\"absent\"") && small.contains("All 8 ranks completed the initialisation; 8 ran collectives."));
    assert!(small.contains("Inside nodes data goes over P2P/CUMEM (6 connections)."));
}

const SCRIPT: &str = "<script>document.title='pwned'</script><img src=x onerror=alert(1)>\"'><svg onload=alert(1)>";

/// A log that tries everything: markup, script, ends of blocks, mentions, commands, escapes, bidi.
fn hostile() -> Analysis {
    let evil = format!("{SCRIPT} </pre></style>]]>--> ``` ~~~ @octocat #1 [x](javascript:alert(1)) %0A::error::x ##[error]x \u{1b}[2J\u{202e}txet\u{9b}0m");
    let log = format!(
        "node1:10:11 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\n\
         node1:10:11 [0] NCCL INFO NCCL_IB_HCA set by environment to {evil}\n\
         node1:10:11 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x2 - Init START\n\
         node1:10:11 [0] misc/socket.cc:50 NCCL WARN {evil}\n\
         {evil}\n\
         node1:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/{evil}\n\
         RuntimeError: {evil}\n"
    );
    let mut result = analyze_bytes(&[(&*format!("{SCRIPT}.log"), log.as_bytes()), ("rank1.log", b"")]);
    let mut finding = Finding::new("tcp-fallback", Severity::Error, Confidence::Likely, evil.clone());
    finding.why = format!("\n::error::x\n# {evil}");
    finding.hosts = vec![evil.clone()];
    finding.ranks = vec![0];
    finding.evidence = vec![evidence(&evil, 4, &evil)];
    finding.fixes = tcp_fallback().findings[0].fixes.clone();
    finding.fixes[0].commands.push(evil.clone());
    finding.avoid = vec![evil.clone()];
    finding.verify = vec![evil.clone()];
    result.findings.insert(0, finding);
    result.notes.push(evil.clone());
    result.job.streams[0].problem = Some(evil.clone());
    for row in &mut result.job.ranks {
        row.host = Some(evil.clone());
        row.net = Some(evil.clone());
    }
    result
}

fn is_active(c: char) -> bool {
    c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{feff}'))
}

#[test]
fn a_hostile_log_stays_text() {
    let hostile = hostile();
    for format in ALL {
        let report = plain(format, &hostile);
        assert_eq!(report.chars().find(|c| is_active(*c)), None, "{format:?}");
        assert!(report.contains("octocat"), "{format:?}");
    }
    let page = plain(Format::Html, &hostile);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<img") && !page.contains("<svg onload") && !page.contains("\"'>"), "{}", body(&page));
    for line in plain(Format::Github, &hostile).lines() {
        assert!(["::error ", "::warning ", "::notice "].iter().any(|c| line.starts_with(c)), "{line}");
        assert!(!line.contains("%0A::error::x ##"), "{line}");
    }
}

/// The only lines of Markdown that hold raw text of a log are inside a block of code.
#[test]
fn markdown_of_a_hostile_log_has_no_markup() {
    let report = plain(Format::Markdown, &hostile());
    let mut fence: Option<String> = None;
    let mut outside = String::new();
    for line in report.lines() {
        let ticks: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if line.trim_start() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => outside += &(line.to_owned() + "\n"),
        }
    }
    assert_eq!(fence, None, "a block of code is open at the end");
    let without_code: String = {
        // Inline code: runs of ticks of one length.
        let outside = outside.replace("\\`", "'");
        let mut rest = outside.as_str();
        let mut kept = String::new();
        while let Some(at) = rest.find('`') {
            kept.push_str(&rest[..at]);
            let ticks: String = rest[at..].chars().take_while(|c| *c == '`').collect();
            let after = &rest[at + ticks.len()..];
            let end = after.match_indices(ticks.as_str()).find(|(i, t)| !after[i + t.len()..].starts_with('`') && !after[..*i].ends_with('`'));
            rest = end.map_or("", |(i, t)| &after[i + t.len()..]);
        }
        kept + rest
    };
    for forbidden in ["<script", "<img", "<svg", "@octocat", " #1", "[x]("] {
        assert!(!without_code.replace("\\<", "&lt;").replace("\\[", "&#91;").contains(forbidden), "{forbidden} in {without_code}");
    }
}

#[test]
fn sarif_is_valid_by_the_official_schema() {
    // A stray bracket makes the pattern of languages none for strict readers.
    let schema = include_str!("schemas/sarif-2.1.0.json").replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::draft7::options().should_validate_formats(true).build(&schema).expect("a schema");
    assert!(!schema.is_valid(&serde_json::json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x", "nonsense": 1}}}]})), "it refuses what is wrong");
    let unknown = analysis(Verdict::Failed, vec![Finding::new("some-cause", Severity::Info, Confidence::Possible, "no evidence, no known cause")]);
    for analysis in [tcp_fallback(), healthy(), empty(), cluster(64), hostile(), unknown, fixture("roce-modify-qp-110-srun")] {
        let document: Value = serde_json::from_str(&plain(Format::Sarif, &analysis)).expect("JSON");
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let run = &document["runs"][0];
        for result in run["results"].as_array().expect("results") {
            let index = result["ruleIndex"].as_u64().expect("every result has its rule") as usize;
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
    }
}

#[test]
fn junit_is_xml_and_its_counts_are_true() {
    for analysis in [tcp_fallback(), healthy(), empty(), cluster(64), hostile(), fixture("roce-modify-qp-110-srun")] {
        let text = plain(Format::Junit, &analysis);
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites");
        let suite = root.first_element_child().expect("a suite");
        let count = |name: &str| suite.children().filter(|n| n.has_tag_name("testcase")).filter(|c| c.children().any(|n| n.has_tag_name(name))).count();
        let told = |name: &str| suite.attribute(name).and_then(|v| v.parse::<usize>().ok()).expect("a number");
        assert_eq!(told("tests"), analysis.findings.len() + 1);
        assert_eq!(told("tests"), suite.children().filter(|n| n.has_tag_name("testcase")).count());
        assert_eq!((told("failures"), told("skipped"), told("errors")), (count("failure"), count("skipped"), 0), "{text}");
        assert!(suite.children().filter(roxmltree::Node::is_element).all(|c| c.attribute("name").is_some() && c.attribute("classname").is_some()));
    }
}
