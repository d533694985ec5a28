//! Scrolling over blocks of rows, of which only the visible ones are ever laid out.
//!
//! A position is a block and a row in it, so it survives what is added after it and a new width. Moving is a
//! number of rows that the next frame works out, because only a frame knows how many rows a block has.

use std::collections::BTreeMap;

use ratatui::text::Line;

/// Where the first visible row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// This row of this block.
    At {
        /// The block, from 0.
        block: usize,
        /// The row in it, from 0.
        row: usize,
    },
    /// Wherever the last row is visible: new rows are followed.
    End,
}

/// A position, and the rows to move from it with the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scroll {
    /// The position.
    pub anchor: Anchor,
    /// Rows to move, down where positive.
    pub nudge: isize,
}

impl Scroll {
    /// The start.
    pub const START: Scroll = Scroll { anchor: Anchor::At { block: 0, row: 0 }, nudge: 0 };
    /// The end, followed.
    pub const END: Scroll = Scroll { anchor: Anchor::End, nudge: 0 };

    /// This position moved by so many rows.
    pub fn moved(self, rows: isize) -> Scroll {
        Scroll { nudge: self.nudge.saturating_add(rows), ..self }
    }
}

/// What a frame shows.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// The visible rows.
    pub lines: Vec<Line<'static>>,
    /// The block of the first of them.
    pub first: usize,
    /// The row of that block.
    pub row: usize,
    /// The block of the last of them.
    pub last: usize,
    /// Whether new rows are followed.
    pub is_following: bool,
}

impl Laid {
    /// The position to go on from.
    pub fn scroll(&self) -> Scroll {
        let at = Anchor::At { block: self.first, row: self.row };
        Scroll { anchor: if self.is_following { Anchor::End } else { at }, nudge: 0 }
    }
}

/// Lays out what is visible of `count` blocks in `height` rows.
pub fn lay(count: usize, scroll: Scroll, height: usize, rows: impl FnMut(usize) -> Vec<Line<'static>>) -> Laid {
    let mut blocks = Blocks { count, rows, cache: BTreeMap::new() };
    let bottom = blocks.bottom(height);
    let start = match scroll.anchor {
        Anchor::End => bottom,
        Anchor::At { block, row } => blocks.clamp(block, row),
    };
    let moved = blocks.walk(start, scroll.nudge);
    let top = moved.min(bottom);
    let is_following = top == bottom && (scroll.nudge > 0 || (scroll.anchor == Anchor::End && scroll.nudge == 0));
    blocks.show(top, height, is_following)
}

/// As `lay` at the end, but the rows stay where they were (`hold`) until they reach the bottom, and then move up by
/// half the height: what is read does not creep, and a terminal far away is sent what changed, not all of it.
pub fn follow(
    count: usize,
    hold: Option<(usize, usize)>,
    height: usize,
    rows: impl FnMut(usize) -> Vec<Line<'static>>,
) -> Laid {
    let mut blocks = Blocks { count, rows, cache: BTreeMap::new() };
    let bottom = blocks.bottom(height);
    let Some((block, row)) = hold else { return blocks.show(bottom, height, true) };
    let held = blocks.clamp(block, row);
    let half = isize::try_from(height / 2).unwrap_or(0);
    let top = if held >= bottom && held <= blocks.walk(bottom, half) {
        held
    } else if held < bottom {
        blocks.walk(bottom, half)
    } else {
        bottom
    };
    blocks.show(top, height, true)
}

struct Blocks<F> {
    count: usize,
    rows: F,
    cache: BTreeMap<usize, Vec<Line<'static>>>,
}

impl<F: FnMut(usize) -> Vec<Line<'static>>> Blocks<F> {
    fn lines(&mut self, block: usize) -> &[Line<'static>] {
        let rows = &mut self.rows;
        self.cache.entry(block).or_insert_with(|| rows(block))
    }

    /// The highest position from which the last row is visible.
    fn bottom(&mut self, height: usize) -> (usize, usize) {
        let mut missing = height;
        for block in (0..self.count).rev() {
            let length = self.lines(block).len();
            if length >= missing {
                return (block, length - missing);
            }
            missing -= length;
        }
        (0, 0)
    }

    fn clamp(&mut self, block: usize, row: usize) -> (usize, usize) {
        let block = block.min(self.count.saturating_sub(1));
        if self.count == 0 {
            return (0, 0);
        }
        let last = self.lines(block).len().saturating_sub(1);
        (block, row.min(last))
    }

    fn walk(&mut self, from: (usize, usize), nudge: isize) -> (usize, usize) {
        let (mut block, mut row) = from;
        let mut left = nudge.unsigned_abs();
        if nudge < 0 {
            while left > row {
                if block == 0 {
                    return (0, 0);
                }
                left -= row + 1;
                block -= 1;
                row = self.lines(block).len().saturating_sub(1);
            }
            return (block, row - left);
        }
        while block < self.count {
            let length = self.lines(block).len();
            if row + left < length {
                return (block, row + left);
            }
            left -= length.saturating_sub(row).min(left);
            block += 1;
            row = 0;
        }
        (self.count, 0)
    }

    fn show(&mut self, top: (usize, usize), height: usize, is_following: bool) -> Laid {
        let mut lines: Vec<Line<'static>> = Vec::with_capacity(height);
        let (first, row) = top;
        let mut last = first;
        for block in first..self.count {
            last = block;
            let skipped = if block == first { row } else { 0 };
            let rows = self.lines(block);
            let room = height - lines.len();
            lines.extend(rows.iter().skip(skipped).take(room).cloned());
            if lines.len() == height {
                break;
            }
        }
        Laid { lines, first, row, last, is_following }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[usize], scroll: Scroll, height: usize, expected: &str) {
        let laid = lay(lengths.len(), scroll, height, |block| {
            (0..lengths[block]).map(|row| Line::raw(format!("{block}.{row}"))).collect()
        });
        assert_eq!(text(&laid), expected, "{lengths:?} {scroll:?} {height}");
    }

    fn text(laid: &Laid) -> String {
        let rows: Vec<String> = laid.lines.iter().map(ToString::to_string).collect();
        format!("{}{}", rows.join(" "), if laid.is_following { "~" } else { "" })
    }

    #[test]
    fn only_what_is_visible_is_shown() {
        let blocks = &[2, 3, 0, 1];
        check(blocks, Scroll::START, 2, "0.0 0.1");
        check(blocks, Scroll::END, 2, "1.2 3.0~");
        check(blocks, Scroll::END, 9, "0.0 0.1 1.0 1.1 1.2 3.0~");
        check(blocks, Scroll::START.moved(3), 2, "1.1 1.2");
        check(blocks, Scroll::START.moved(99), 2, "1.2 3.0~");
        check(blocks, Scroll::END.moved(-1), 2, "1.1 1.2");
        check(blocks, Scroll::END.moved(-99), 2, "0.0 0.1");
        check(blocks, Scroll { anchor: Anchor::At { block: 9, row: 9 }, nudge: 0 }, 2, "1.2 3.0");
        check(blocks, Scroll::START, 6, "0.0 0.1 1.0 1.1 1.2 3.0");
        check(&[], Scroll::END, 3, "~");
        check(blocks, Scroll::START, 0, "");
        check(&[1, 0], Scroll::START, 1, "0.0");
    }

    #[test]
    fn following_moves_by_halves() {
        let rows = |length: usize| move |_: usize| (0..length).map(|row| Line::raw(row.to_string())).collect();
        assert_eq!(text(&follow(1, None, 4, rows(6))), "2 3 4 5~");
        assert_eq!(text(&follow(1, Some((0, 2)), 4, rows(6))), "2 3 4 5~");
        assert_eq!(text(&follow(1, Some((0, 2)), 4, rows(7))), "5 6~");
        assert_eq!(text(&follow(1, Some((0, 5)), 4, rows(8))), "5 6 7~");
        assert_eq!(text(&follow(1, Some((0, 5)), 4, rows(6))), "2 3 4 5~");
    }

    #[test]
    fn ten_thousand_blocks_cost_what_is_seen() {
        let mut asked = 0;
        let laid = lay(10_000, Scroll::END, 40, |_| {
            asked += 1;
            vec![Line::raw("x"); 5]
        });
        assert_eq!(laid.lines.len(), 40);
        assert!(asked < 20, "{asked}");
    }
}
