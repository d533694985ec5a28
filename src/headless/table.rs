//! All runs as text. Pure: how wide it may be is handed in.
//!
//! On a terminal nothing is wider than it is: a table where all columns have room, else a few short lines for each run.
//! Into a pipe or a file goes the table, one line for each run, with nothing cut or wrapped.

use crate::domain::budget::Axis;
use crate::domain::cells::cells;
use crate::domain::cells::fit;
use crate::domain::cells::pad;
use crate::domain::cells::wrap;
use crate::domain::summary::Listed;
use crate::domain::summary::Summary;
use crate::domain::text::of_kind;
use crate::domain::time::Timestamp;
use crate::headless::lines::limit_phrase;
use crate::headless::text::ago;
use crate::headless::text::title;

/// The columns of the table; the last one has what room is left.
const HEADINGS: [&str; 7] = ["RUN", "STATUS", "WHEN", "SPENT", "ITERATIONS", "WAITING", "GOAL"];
/// Cells between two columns.
const GAP: usize = 2;
/// Fewest cells of a goal in the table.
const GOAL_CELLS_LEAST: usize = 24;
/// Cells before a line that belongs to the run above.
const INDENT: usize = 8;

/// All runs in the order given, at most `width` cells wide where that is known.
pub fn runs(all: &[Listed], now: Timestamp, width: Option<usize>) -> String {
    if all.is_empty() {
        return "there are no runs; `tiller \"GOAL\"` starts one\n".to_string();
    }
    let rows: Vec<Row> = all.iter().map(|one| Row::of(one, now)).collect();
    let heading = Row { cells: HEADINGS.map(String::from), is_damaged: false };
    let table: Vec<&Row> = std::iter::once(&heading).chain(&rows).collect();
    let widest = |column: usize| table.iter().map(|row| cells(row.cell(column))).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len() - 1).map(widest).collect();
    let before_goal: usize = widths.iter().map(|width| width + GAP).sum();
    match width {
        Some(width) if width < before_goal + GOAL_CELLS_LEAST => rows.iter().map(|row| row.lines(width)).collect(),
        _ => {
            let room = width.map(|width| width - before_goal);
            table.iter().map(|row| row.line(&widths, room)).collect()
        }
    }
}

/// What is told of a run.
struct Row {
    cells: [String; 7],
    is_damaged: bool,
}

impl Row {
    fn of(listed: &Listed, now: Timestamp) -> Row {
        match listed {
            Listed::Run { summary, held_by } => Row { cells: told(summary, *held_by, now), is_damaged: false },
            Listed::Damaged { id, why } => {
                let none = String::new;
                let cells = [id.short().to_string(), "damaged".to_string(), none(), none(), none(), none(), title(why)];
                Row { cells, is_damaged: true }
            }
        }
    }

    fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map(String::as_str).unwrap_or_default()
    }

    /// The run as a line of the table. The goal is cut where it must be; what is wrong with a run goes on below.
    fn line(&self, widths: &[usize], room: Option<usize>) -> String {
        let before: String = widths
            .iter()
            .enumerate()
            .map(|(column, width)| pad(self.cell(column), *width) + &" ".repeat(GAP))
            .collect();
        let last = self.cell(widths.len());
        let rows = match room {
            Some(room) if self.is_damaged => wrap(last, room),
            Some(room) => vec![fit(last, room)],
            None => vec![last.to_string()],
        };
        let indent = " ".repeat(cells(&before));
        rows.iter().enumerate().map(|(place, row)| ended(if place == 0 { &before } else { &indent }, row)).collect()
    }

    /// The run in a few lines: its goal, then all the rest, parted where a part has no room any more.
    fn lines(&self, width: usize) -> String {
        let room = width.saturating_sub(INDENT).max(1);
        let [id, status, when, spent, iterations, waiting, last] = &self.cells;
        let name = pad(id, INDENT - GAP) + &" ".repeat(GAP);
        let indent = " ".repeat(INDENT);
        if self.is_damaged {
            let rows = wrap(&format!("{status}: {last}"), room);
            let place = |(place, row): (usize, &String)| ended(if place == 0 { &name } else { &indent }, row);
            return rows.iter().enumerate().map(place).collect();
        }
        let mut parts = vec![
            status.clone(),
            when.clone(),
            spent.clone(),
            format!("{iterations} {}", of_kind(iterations == "1", "iteration")),
        ];
        match waiting.as_str() {
            "0" => {}
            "1" => parts.push("1 thing waits for you".to_string()),
            more => parts.push(format!("{more} things wait for you")),
        }
        let rows = packed(&parts, room);
        std::iter::once(ended(&name, &fit(last, room))).chain(rows.iter().map(|row| ended(&indent, row))).collect()
    }
}

fn told(summary: &Summary, held_by: Option<u32>, now: Timestamp) -> [String; 7] {
    let held = held_by.map_or(String::new(), |process| format!(", held by process {process}"));
    let rehearsal = match (summary.rehearsal, summary.pretend) {
        (true, _) if summary.brought && !summary.status.is_end() => " (imported rehearsal, can't go on)",
        (true, _) if summary.brought => " (imported rehearsal)",
        (true, _) => " (rehearsal)",
        (false, _) if summary.brought => " (imported)",
        (false, true) => " (pretend money)",
        (false, false) => "",
    };
    [
        summary.id.short().to_string(),
        format!("{}{held}{rehearsal}", summary.status.as_held(held_by.is_some()).phrase_now(summary.things())),
        ago(now.since(summary.updated)),
        format!("{} of {}", summary.spent, limit_phrase(Axis::Cost, summary.cost_limit)),
        summary.iterations.to_string(),
        summary.waiting.to_string(),
        title(&summary.goal),
    ]
}

/// Parts in as few rows as they need; a part that is longer than a row is wrapped.
fn packed(parts: &[String], room: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if cells(row) + 3 + cells(part) <= room => *row += &format!(" · {part}"),
            Some(_) | None => rows.extend(wrap(part, room)),
        }
    }
    rows
}

fn ended(before: &str, row: &str) -> String {
    format!("{}\n", format!("{before}{row}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Limit;
    use crate::domain::id::RUN_ID_LENGTH;
    use crate::domain::id::RunId;
    use crate::domain::time::Span;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::NOW;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::plans;

    fn all() -> Vec<Listed> {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make")]);
        desk.recover();
        let summary = Summary { goal: "fix the failing parser tests 日本語".to_string(), ..Summary::of(&desk.run) };
        let free =
            Summary { cost_limit: Limit::Unlimited, rehearsal: true, waiting: 2, iterations: 1, ..summary.clone() };
        let why = "record 3\nis gone, and what follows it can't be vouched for by anybody who looks at it";
        vec![
            Listed::Run { summary: Box::new(summary), held_by: Some(4711) },
            Listed::Run { summary: Box::new(free), held_by: None },
            Listed::Damaged { id: RunId::from_entropy([9; RUN_ID_LENGTH]), why: why.to_string() },
        ]
    }

    fn check(width: usize, wanted: &str) {
        assert_eq!(runs(&all(), NOW.at.plus(Span::seconds(130)), Some(width)), wanted);
    }

    #[test]
    fn a_pipe_gets_a_line_for_each_run_and_nothing_is_cut() {
        assert_eq!(runs(&[], NOW.at, None), "there are no runs; `tiller \"GOAL\"` starts one\n");
        let table = "\
RUN     STATUS                                              WHEN       SPENT               ITERATIONS  WAITING  GOAL
777777  parked: waiting for approval, held by process 4711  2 min ago  $0.00 of $5.00      2           1        fix the failing parser tests 日本語
777777  parked: waiting for approval (rehearsal)            2 min ago  $0.00 of UNLIMITED  1           2        fix the failing parser tests 日本語
";
        let damaged =
            "999999 damaged record 3 is gone, and what follows it can't be vouched for by anybody who looks at it";
        let text = runs(&all(), NOW.at.plus(Span::seconds(130)), None);
        let (whole, last) = text.split_at(table.len());
        assert_eq!((whole, last.split_whitespace().collect::<Vec<_>>().join(" ").as_str()), (table, damaged));
    }

    #[test]
    fn a_wide_terminal_gets_a_table_and_a_narrow_one_lines() {
        let table = "\
RUN     STATUS                                              WHEN       SPENT               ITERATIONS  WAITING  GOAL
777777  parked: waiting for approval, held by process 4711  2 min ago  $0.00 of $5.00      2           1        fix the failing parser test…
777777  parked: waiting for approval (rehearsal)            2 min ago  $0.00 of UNLIMITED  1           2        fix the failing parser test…
";
        let text = runs(&all(), NOW.at.plus(Span::seconds(130)), Some(140));
        assert!(text.starts_with(table) && text.ends_with(&format!("{:112}it\n", "")), "{text}");
        check(
            80,
            "\
777777  fix the failing parser tests 日本語
        parked: waiting for approval, held by process 4711 · 2 min ago
        $0.00 of $5.00 · 2 iterations · 1 thing waits for you
777777  fix the failing parser tests 日本語
        parked: waiting for approval (rehearsal) · 2 min ago
        $0.00 of UNLIMITED · 1 iteration · 2 things wait for you
999999  damaged: record 3 is gone, and what follows it can't be vouched for by
        anybody who looks at it
",
        );
        check(
            40,
            "\
777777  fix the failing parser tests 日…
        parked: waiting for approval,
        held by process 4711 · 2 min ago
        $0.00 of $5.00 · 2 iterations
        1 thing waits for you
777777  fix the failing parser tests 日…
        parked: waiting for approval
        (rehearsal) · 2 min ago
        $0.00 of UNLIMITED · 1 iteration
        2 things wait for you
999999  damaged: record 3 is gone, and
        what follows it can't be vouched
        for by anybody who looks at it
",
        );
        for width in 1..200 {
            let text = runs(&all(), NOW.at, Some(width));
            let most = width.max(INDENT + 2);
            assert!(text.lines().all(|line| cells(line) <= most), "{width}: {text}");
        }
    }
}
