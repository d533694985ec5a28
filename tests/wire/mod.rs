//! How a server of a test reads a request.

use std::io::Read;

/// One request with its body, so that the answer is not cut off; nothing when the client went away before its end.
pub fn read_request(stream: &mut impl Read) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16_384];
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Ok(Some(text.into_owned()));
        }
    }
}
