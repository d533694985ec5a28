//! What a model says, as Markdown: headings, lists, quotes, tables and code, row by row. Knows no width but that of
//! tables, which is their own. Pure; every piece of text goes through the sanitiser after it was read, so that nothing that
//! Markdown decodes (`&#27;`) reaches a cell as it is.

use pulldown_cmark::CodeBlockKind;
use pulldown_cmark::Event;
use pulldown_cmark::Options;
use pulldown_cmark::Parser;
use pulldown_cmark::Tag;
use pulldown_cmark::TagEnd;

use crate::domain::cells::cells;
use crate::domain::cells::pad;
use crate::domain::visible::transcript;
use crate::tui::theme::Role;

/// Cells by which what is nested is moved to the right, at most.
const INDENT_CELLS: usize = 16;
/// Columns of a table that are drawn beside each other; a wider one is told row by row.
const TABLE_COLUMNS: usize = 12;
/// Widest column of a table, in cells.
const COLUMN_CELLS: usize = 48;
/// Cells of a rule between two parts.
const RULE_CELLS: usize = 24;

/// A piece of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strand {
    /// Its text, sanitised, without line breaks.
    pub text: String,
    /// How it is shown.
    pub role: Role,
}

/// A row of what is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its pieces; none of an empty row.
    pub strands: Vec<Strand>,
    /// Cells by which it stands to the right, and all that follows of it where it does not fit.
    pub hang: usize,
    /// Whether it is cut where it does not fit, and not continued.
    pub is_cut: bool,
}

/// The rows of a text.
pub fn rows(text: &str) -> Vec<Said> {
    let mut page = Page::default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options).for_each(|event| page.take(event));
    page.end_row();
    page.rows
}

/// A list that is open: the number of its next item, if it has numbers.
struct List {
    next: Option<u64>,
}

#[derive(Default)]
struct Page {
    rows: Vec<Said>,
    strands: Vec<Strand>,
    /// Whether the next block stands apart from what is before it.
    is_apart: bool,
    lists: Vec<List>,
    /// Cells that the items which are open move what is in them.
    hangs: Vec<usize>,
    /// Whether the row begins with the mark of an item.
    is_marked: bool,
    quotes: usize,
    strong: usize,
    emphasis: usize,
    struck: usize,
    is_heading: bool,
    is_code: bool,
    /// Where the links lead that are open.
    links: Vec<String>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.put(&format!("`{text}`"), Role::Code),
            Event::Html(text) | Event::InlineHtml(text) => self.lines(&text, Role::Dim),
            // What a model breaks is meant as a break more often than not.
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.begin_block();
                self.put(&"─".repeat(RULE_CELLS), Role::Dim);
                self.end_block();
            }
            Event::TaskListMarker(is_done) => self.put(if is_done { "[x] " } else { "[ ] " }, Role::Strong),
            Event::FootnoteReference(name) => self.put(&format!("[{name}]"), Role::Dim),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.put(&text, Role::Code),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.put(&format!("{} ", "#".repeat(level as usize)), Role::Dim);
                self.is_heading = true;
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.is_code = true;
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.trim().is_empty()
                {
                    self.put(&format!("│ {}", language.trim()), Role::Dim);
                    self.end_line();
                }
            }
            Tag::List(next) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_line();
                }
                self.lists.push(List { next });
            }
            Tag::Item => self.start_item(),
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|table| table.rows.push(Vec::new())),
            Tag::Emphasis => self.emphasis += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.struck += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.to_string()),
            Tag::HtmlBlock => self.begin_block(),
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        self.end_line();
        let mark = match self.lists.last_mut() {
            Some(List { next: Some(number) }) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(List { next: None }) | None => "• ".to_string(),
        };
        self.put(&mark, Role::Strong);
        self.hangs.push(cells(&mark));
        self.is_marked = true;
        self.is_apart = false;
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.is_heading = false;
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.end_line();
                self.is_apart = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.hangs.pop();
                self.is_apart = false;
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    table.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.draw(&table);
                }
                self.end_block();
            }
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.struck = self.struck.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Where a link leads stands behind it: nothing is followed by a click, and nothing leads elsewhere than it says.
    fn end_link(&mut self) {
        let Some(place) = self.links.pop() else { return };
        let is_said = self.strands.last().is_some_and(|last| last.text.ends_with(&place));
        if !place.is_empty() && !is_said {
            self.put(&format!(" ({place})"), Role::Dim);
        }
    }

    fn text(&mut self, text: &str) {
        let role = match self {
            Page { is_code: true, .. } => Role::Code,
            Page { is_heading: true, .. } => Role::Strong,
            Page { strong, .. } if *strong > 0 => Role::Strong,
            Page { emphasis, .. } if *emphasis > 0 => Role::Emphasis,
            Page { struck, .. } if *struck > 0 => Role::Dim,
            Page { .. } => Role::Text,
        };
        self.lines(text, role);
    }

    /// Text that may have line breaks of its own.
    fn lines(&mut self, text: &str, role: Role) {
        for (place, line) in text.split('\n').enumerate() {
            if place > 0 {
                self.end_code_row();
                self.end_line();
            }
            if self.is_code && self.strands.is_empty() && !line.is_empty() {
                self.put("│ ", Role::Dim);
            }
            if !line.is_empty() {
                self.put(line, role);
            }
        }
    }

    /// An empty row of code is one, too.
    fn end_code_row(&mut self) {
        if self.is_code && self.strands.is_empty() {
            self.put("│", Role::Dim);
        }
    }

    fn put(&mut self, text: &str, role: Role) {
        let shown = transcript(text).replace('\n', " ");
        if let Some(table) = &mut self.table {
            table.cell.push_str(&shown);
            return;
        }
        match self.strands.last_mut().filter(|last| last.role == role) {
            Some(last) => last.text.push_str(&shown),
            None => self.strands.push(Strand { text: shown, role }),
        }
    }

    /// Begins what stands apart from what is before it, unless it is the first in its item.
    fn begin_block(&mut self) {
        let is_after_mark = !self.hangs.is_empty() && self.strands.len() == 1;
        if !is_after_mark {
            self.end_row();
        }
        if std::mem::take(&mut self.is_apart) && !self.rows.is_empty() {
            self.rows.push(Said::default());
        }
    }

    fn end_block(&mut self) {
        self.end_row();
        self.is_apart = true;
    }

    /// A line break within a block; in a cell of a table a blank.
    fn end_line(&mut self) {
        match &mut self.table {
            Some(table) => table.cell.push(' '),
            None => self.end_row(),
        }
    }

    fn end_row(&mut self) {
        if self.strands.is_empty() {
            return;
        }
        let mut strands = std::mem::take(&mut self.strands);
        // The mark of an item stands where the item does, what follows it further in.
        let open =
            if std::mem::take(&mut self.is_marked) { self.hangs.len().saturating_sub(1) } else { self.hangs.len() };
        let indent: usize = self.hangs.iter().take(open).sum::<usize>().min(INDENT_CELLS);
        let hang = self.hangs.iter().sum::<usize>().min(INDENT_CELLS);
        let lead = format!("{}{}", " ".repeat(indent), "▏ ".repeat(self.quotes.min(4)));
        if !lead.is_empty() {
            strands.insert(0, Strand { text: lead, role: Role::Dim });
        }
        self.rows.push(Said { strands, hang: hang + 2 * self.quotes.min(4), is_cut: false });
    }

    fn draw(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns > TABLE_COLUMNS {
            for row in &table.rows {
                self.put(&row.join(" │ "), Role::Text);
                self.end_row();
            }
            return;
        }
        let width = |column: usize| {
            let widest = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| cells(cell)).max();
            widest.unwrap_or_default().clamp(1, COLUMN_CELLS)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (place, row) in table.rows.iter().enumerate() {
            let cell = |(column, width): (usize, &usize)| pad(row.get(column).map_or("", String::as_str), *width);
            let text = widths.iter().enumerate().map(cell).collect::<Vec<_>>().join(" │ ");
            let role = if place == 0 { Role::Strong } else { Role::Text };
            self.push_cut(text, role);
            if place == 0 {
                let line = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                self.push_cut(line, Role::Dim);
            }
        }
    }

    fn push_cut(&mut self, text: String, role: Role) {
        let hang = self.hangs.iter().sum::<usize>().min(INDENT_CELLS);
        let text = format!("{}{text}", " ".repeat(hang));
        self.rows.push(Said { strands: vec![Strand { text, role }], hang, is_cut: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows, the roles that are not of plain text in brackets.
    fn told(text: &str) -> Vec<String> {
        let strand = |one: &Strand| match one.role {
            Role::Text => one.text.clone(),
            role => format!("{role:?}[{}]", one.text),
        };
        rows(text).iter().map(|row| row.strands.iter().map(strand).collect()).collect()
    }

    fn plain(text: &str) -> Vec<String> {
        rows(text).iter().map(|row| row.strands.iter().map(|one| one.text.as_str()).collect()).collect()
    }

    #[test]
    fn words_have_their_weight() {
        assert_eq!(
            told("# A *b*\ntext **s** `c` *e*"),
            ["Dim[# ]Strong[A b]", "", "text Strong[s] Code[`c`] Emphasis[e]"]
        );
        assert_eq!(told("one\ntwo\n\nthree"), ["one", "two", "", "three"]);
        assert_eq!(told("see [here](http://a/b) and <http://c>"), ["see hereDim[ (http://a/b)] and http://c"]);
        assert_eq!(told("a <b>c</b>"), ["a Dim[<b>]cDim[</b>]"]);
    }

    #[test]
    fn lists_hang_under_their_marks() {
        let text = "- one\n  more\n  1. in\n  2. in too\n- [x] two\n\nafter";
        assert_eq!(plain(text), ["• one", "  more", "  1. in", "  2. in too", "• [x] two", "", "after"]);
        let hangs: Vec<usize> = rows(text).iter().map(|row| row.hang).collect();
        assert_eq!(hangs, [2, 2, 5, 5, 2, 0, 0]);
        assert_eq!(plain("- a\n\n- b"), ["• a", "• b"]);
        assert_eq!(plain("10. a\n11. b"), ["10. a", "11. b"]);
    }

    #[test]
    fn code_keeps_its_lines() {
        assert_eq!(
            plain("```rust\nfn a() {\n\n    b\n}\n```\nx"),
            ["│ rust", "│ fn a() {", "│", "│     b", "│ }", "", "x"]
        );
        // One that is not closed yet, as it streams in.
        assert_eq!(plain("```\nlet a"), ["│ let a"]);
        assert_eq!(plain("> said\n> so"), ["▏ said", "▏ so"]);
    }

    #[test]
    fn tables_stand_in_columns() {
        let text = "| a | long |\n|---|---|\n| 日本 | b |\n";
        assert_eq!(plain(text), ["a    │ long", "─────┼─────", "日本 │ b   "]);
        assert!(rows(text).iter().all(|row| row.is_cut));
    }

    /// Whatever is said, and whatever Markdown makes of it, nothing that would not be seen is left in it.
    #[test]
    fn nothing_that_is_not_seen_gets_through() {
        for text in
            ["a\u{1b}[2Jb", "&#27;[2J", "`\u{1b}]0;x\u{7}`", "[a\u{202e}b](\u{200b}c)", "| \u{1b}a |\n|-|\n| &#8238; |"]
        {
            for row in plain(text) {
                assert!(
                    !row.chars().any(|one| one.is_control() || "\u{202e}\u{200b}".contains(one)),
                    "{text:?}: {row:?}"
                );
            }
        }
        let deep = format!("{}x", "> - ".repeat(200));
        assert!(rows(&deep).iter().all(|row| row.hang <= INDENT_CELLS + 8));
    }
}
