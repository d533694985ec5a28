//! A reader of lines for these tests, far simpler than that of the program (`tests/lines.rs`): words as shlex tells them,
//! commands between joints, and nothing plain about a line that holds anything else.

use tiller::domain::line::Joint;
use tiller::domain::line::Line;
use tiller::domain::line::Plain;
use tiller::domain::line::Segment;

/// Reads a line.
pub(crate) fn read(text: &str) -> Line {
    let joined = text.replace("&&", ";").replace("||", ";");
    let argvs = joined.split([';', '|']).map(|piece| shlex::split(piece).unwrap_or_default());
    let commands: Vec<Vec<String>> = argvs.filter(|argv| !argv.is_empty()).collect();
    let is_odd = joined.contains(['>', '<', '$', '`', '(', '{', '*', '?', '~', '\\', '&']) || commands.len() > 8;
    let segment = |(place, argv): (usize, &Vec<String>)| Segment {
        joint: if place == 0 { Joint::First } else { Joint::Then },
        argv: argv.clone(),
        redirects: Vec::new(),
    };
    let plain = if is_odd || commands.is_empty() {
        Err("it needs a shell".to_string())
    } else {
        Ok(Plain { segments: commands.iter().enumerate().map(segment).collect() })
    };
    Line { commands, plain }
}
