//! The chat-completions adapter, against servers of our own and one that nobody here wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod wire;

mod providers {
    mod chat_completions;
    mod peer_llama;
}
