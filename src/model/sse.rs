//! Server-sent events: bytes in any pieces to the data of whole events. No IO, no JSON, no clock.
//! Only `data` is kept; comments (heartbeats) and other fields are passed over. Lines may end in LF, CRLF or CR.

use crate::domain::limits::STREAM_EVENT_MAX_BYTES;

/// The bytes are no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// An event is longer than an event may be.
    TooLong,
    /// The data of an event is not UTF-8.
    NotUtf8,
}

/// An event stream that is being read.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The line that has not ended.
    line: Vec<u8>,
    /// The data lines of the event that has not ended.
    data: Option<String>,
    /// The last piece ended with a carriage return: a line feed at the start of the next belongs to it.
    after_return: bool,
    /// A line has ended; a byte order mark can come no more.
    begun: bool,
}

impl EventReader {
    /// Takes the next bytes and adds the data of each event that they complete to `events`.
    ///
    /// # Errors
    /// The stream is broken from here on; events that came before were added.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), SseError> {
        let mut rest = match bytes {
            [b'\n', rest @ ..] if self.after_return => rest,
            _ => bytes,
        };
        self.after_return = self.after_return && bytes.is_empty();
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = rest.split_at(at);
            self.extend_line(line)?;
            self.end_line(events)?;
            rest = match end {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.extend_line(rest)
    }

    /// The stream has ended: adds what the last event had so far, for servers that leave its last line end out.
    /// It may be cut off; whoever reads it must be able to tell.
    ///
    /// # Errors
    /// As for `push`.
    pub fn end(&mut self, events: &mut Vec<String>) -> Result<(), SseError> {
        self.end_line(events)?;
        self.end_line(events)
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), SseError> {
        let length = self.line.len() + part.len() + self.data.as_ref().map_or(0, String::len);
        if length > STREAM_EVENT_MAX_BYTES {
            return Err(SseError::TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<String>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let line = if self.begun { line.as_slice() } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            events.extend(self.data.take());
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            Some(_) | None => return Ok(()),
        };
        let value = std::str::from_utf8(value).map_err(|_| SseError::NotUtf8)?;
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_string()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Reads whole, and in every way to cut it in two, and byte by byte: always the same events.
    fn check(stream: &[u8], expected: &[&str]) {
        let read = |parts: &[&[u8]]| {
            let (mut reader, mut events) = (EventReader::default(), Vec::new());
            for part in parts {
                reader.push(part, &mut events).unwrap();
            }
            events
        };
        assert_eq!(read(&[stream]), expected);
        for at in 0..=stream.len() {
            let (first, second) = stream.split_at(at);
            assert_eq!(read(&[first, second]), expected, "cut at {at}");
            assert_eq!(read(&[first, &[], second]), expected, "cut at {at}, with nothing between");
        }
        assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
        check(b"data: a\r\n\r\ndata:b\r\n\r\n", &["a", "b"]);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
        check(b"\xEF\xBB\xBFdata: a\n\n", &["a"]);
        check(b": hello\n\nevent: x\nid: 1\ndata: a\nretry: 5\ndata:  b\n\n", &["a\n b"]);
        check(b"data\n\ndata:\n\ndatum: x\n\n", &["", ""]);
        check("data: né\n\ndata: ✓\n".as_bytes(), &["né"]);
        check(b"\n\n\n", &[]);
    }

    #[test]
    fn the_end_gives_what_was_left() {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        reader.push(b"data: a\n\ndata: [DONE]", &mut events).unwrap();
        reader.end(&mut events).unwrap();
        assert_eq!(events, ["a", "[DONE]"]);
    }

    #[test]
    fn broken_streams_are_errors_and_keep_what_came() {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        assert_eq!(reader.push(b"data: a\n\ndata: \xFF\n\n", &mut events), Err(SseError::NotUtf8));
        assert_eq!(events, ["a"]);
        let line = vec![b'x'; STREAM_EVENT_MAX_BYTES];
        assert_eq!(EventReader::default().push(&line, &mut events), Ok(()));
        let mut reader = EventReader::default();
        assert_eq!(reader.push(&line, &mut events), Ok(()));
        assert_eq!(reader.push(b"x", &mut events), Err(SseError::TooLong));
        let mut reader = EventReader::default();
        let half = [b"data: ".as_slice(), &line[..STREAM_EVENT_MAX_BYTES / 2], b"\n"].concat();
        assert_eq!(reader.push(&half, &mut events), Ok(()));
        assert_eq!(reader.push(&half, &mut events), Err(SseError::TooLong));
    }
}
