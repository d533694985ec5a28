//! The real program and everything that can be wrong with what it is given: words, folders, configuration, keys, files,
//! models, tools, disks, signals. Each time it says what happened, what was not done and what to do, and loses nothing.

mod credentials;
mod disk;
mod endings;
mod outputs;
mod own_places;
mod store;
mod words;
