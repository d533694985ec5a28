//! The words of the command line about a run as a whole: whether its claim is right, and what a resume grants.

use clap::Args;
use clap::ValueEnum;

use crate::cli::Ask;
use crate::cli::Order;

/// What is said of `confirm` below its words.
pub(crate) const CONFIRM_HELP: &str =
    "Example: tiller confirm k7f 5d41402a no \"the second page is missing\" && tiller resume k7f";

/// What a resume grants to a stalled run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// Nothing.
    #[default]
    Nothing,
    /// All its replans, again.
    Replans,
}

/// A word on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnClaim {
    /// The digest of the claim and the question, as it was shown.
    pub digest: String,
    /// Whether the claim is right.
    pub confirmed: bool,
    /// Words for the model, possibly empty.
    pub text: String,
}

#[derive(Args)]
pub(crate) struct ConfirmWords {
    /// The beginning of the run's name
    #[arg(value_parser = crate::cli::values::run_prefix)]
    run: String,
    /// The digest of the claim and the question, as `tiller show` has it
    digest: String,
    /// Your word
    word: YesNo,
    /// Why, for the model
    #[arg(default_value = "", hide_default_value = true)]
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum YesNo {
    /// The goal is reached
    Yes,
    /// It is not
    No,
}

impl ConfirmWords {
    pub(crate) fn ask(self) -> Ask {
        let order =
            Order::Confirm(OnClaim { digest: self.digest, confirmed: self.word == YesNo::Yes, text: self.text });
        Ask::Order { run: self.run, order }
    }
}
