//! `web_fetch` as the engine calls it, against servers and names on loopback that misbehave in every way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fetch {
    mod answers;
    mod cases;
    mod names;
    mod redirects;
    mod stage;
}
