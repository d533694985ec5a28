//! Untrusted text made visible: the one sanitiser.
