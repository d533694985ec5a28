//! What help says below the words: examples, and what is good to know.

/// What is said below the words of the command line, or of one command.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tiller                                  open the screen
  tiller \"make the tests pass\"            start a run on the screen
  tiller run \"make the tests pass\" --plain --budget 2 --check \"cargo test\"
  tiller run - --json < goal.txt          read the goal from standard input
  tiller resume --last                    go on where you were
  tiller show k7f                         see in full what waits
  tiller approve k7f c7 1a2b3c4d          allow the call c7 of run k7f, as shown

Run names may be cut to any beginning that fits one run only.
Exit status: 0 completed; 2 usage; 10 waits for approval; 11 budget; 12 stalled or not verified;
13 key, account, rights, model or price; 14 parked for another reason, or the disk is full;
20 failed, or damaged; 21 cancelled; 30 the run is held by another process.";

/// What is said below the words of the command line, or of one command.
pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  tiller run \"make the tests pass\" --check \"cargo test\" --budget 2
  tiller run - --json < goal.txt
Without --plain or --json the screen opens where there is a terminal; elsewhere lines are printed.
A run that needs a decision and has no terminal is parked, and the command that decides is printed.";

/// What is said below the words of the command line, or of one command.
pub(crate) const RAISE_HELP: &str = "\
AXIS and LIMIT:
  cost          dollars: 5, 0.50
  time          a time while running: 30m, 2h, 1h30m
  iterations, tool-calls, model-calls, tokens   a whole number
LIMIT is the new limit, not a difference; `unlimited` takes the limit away.
Example: tiller raise k7f cost 10 && tiller resume k7f";

/// What is said below the words of the command line, or of one command.
pub(crate) const RESOLVE_HELP: &str = "\
Example: tiller resolve k7f c7 happened \"the mail was sent\"
`again` allows the call anew; everything else only tells the run what is so.";
