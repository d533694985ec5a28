//! The bounds of the program, by name, with their reasons: of all that is stored, sent, shown and waited for. What bounds
//! nothing but one judgement's own text stands beside that judgement.

use crate::domain::money::MicroUsd;
use crate::domain::time::Span;

/// Longest goal, in characters. Longer text belongs in a file that the goal names.
pub const GOAL_MAX_CHARS: usize = 8_000;
/// Longest list of trusted folders that is read, in bytes: nobody trusts ten thousand.
pub const TRUSTED_MAX_BYTES: u64 = 1024 * 1024;
/// Longest guide of a repository that the model is told, in bytes: of a longer one the middle is left out. Every request
/// has it, so it costs each time.
pub const GUIDE_MAX_BYTES: usize = 32 * 1024;
/// Shortest value of a variable that is taken for a secret, in bytes: a shorter one stands in too many texts.
pub const SECRET_MIN_BYTES: usize = 8;
/// End of a streamed text that is held back because it may still become a secret, in bytes.
pub const HELD_MAX_BYTES: usize = 16 * 1024;
/// Texts that are streamed side by side: a model call's parts and the tools that run.
pub const STREAMS: usize = 16;
/// Longest interjection or answer, in bytes: more would fill the context.
pub const SAY_MAX_BYTES: usize = 64 * 1024;
/// Interjections that may wait to be delivered: a person does not write more between two iterations.
pub const INTERJECTIONS_MAX: usize = 64;
/// Longest interjection that the conversation has whole, in characters: it keeps one message from filling the context.
pub const SAY_INLINE_CHARS: usize = 25_000;

/// Of what the model can take in, the part above which room is made, in percent: estimates are rough.
pub const CONTEXT_PERCENT: u64 = 80;
/// Results of work calls are left out after so many iterations: older ones are rarely read again.
pub const PRUNE_AFTER: u32 = 6;
/// Pairs of a call and its result that stay whole, whatever their age.
pub const PAIRS_KEPT: usize = 3;
/// Iterations before the open one that stay word for word.
pub const ITERATIONS_KEPT: u32 = 2;
/// A shorter result is not left out: the mark in its place would be as long, in bytes.
pub const ELIDED_MIN_BYTES: usize = 256;
/// Arguments of an old call up to this length stay whole, in bytes.
pub const ARGUMENTS_KEPT_BYTES: usize = 2 * 1024;
/// Output asked of the model for a summary, in tokens.
pub const SUMMARY_TOKENS: u64 = 2_048;
/// Replies that may be no usable summary before the engine lists the iterations itself.
pub const SUMMARY_TRIES: u32 = 2;
/// Iterations between two summaries: more often, and the run pays for nothing else.
pub const SUMMARY_DISTANCE: u32 = 4;
/// Of the conversation, what a summary should free at least, in percent.
pub const SUMMARY_FREES_PERCENT: u64 = 20;
/// Summaries in a row that free less before the run parks.
pub const SUMMARIES_POOR: u32 = 2;
/// How often room is made because the provider refused a request for its length, ...
pub const ROOM_ROUNDS: usize = 2;
/// ... in so many iterations.
pub const ROOM_WINDOW: u32 = 8;
/// What the operator said in summarised iterations is kept word for word up to so many bytes, the newest first.
pub const SAID_KEPT_BYTES: usize = 8 * 1024;
/// What was denied in them, up to so many bytes, the newest first.
pub const DENIED_KEPT_BYTES: usize = 4 * 1024;
/// Longest list of iterations that stands for a summary, in bytes: about as long as a summary may be.
pub const LIST_MAX_BYTES: usize = 8 * 1024;

/// Default cost limit of a run: small enough to be noticed, large enough for an hour's work.
pub const COST: MicroUsd = MicroUsd(5_000_000);
/// Default limit on what all runs together may cost in 24 hours: one operator's day.
pub const DAILY_COST: MicroUsd = MicroUsd(20_000_000);
/// How long a cost counts towards that.
pub const DAILY_WINDOW: Span = Span::seconds(24 * 60 * 60);
/// Default limit of iterations of phase pursue and replan; peers use 10 to 50.
pub const LOOPS: u64 = 32;
/// Default limit of model calls, all phases and attempts: three for each loop.
pub const MODEL_CALLS: u64 = 96;
/// Default limit of work calls.
pub const TOOL_CALLS: u64 = 300;
/// Default limit of tokens, from the scale of the cost limit.
pub const TOKENS: u64 = 2_000_000;
/// Default limit of active time.
pub const ACTIVE: Span = Span::seconds(2 * 60 * 60);

/// Output asked of a model at most, in tokens, unless configured.
pub const OUTPUT_TOKENS: u64 = 8_192;
/// Output asked for when the work is wrapped up at a limit, in tokens.
pub const WRAP_UP_TOKENS: u64 = 1_024;
/// Output asked for when the model judges a check, in tokens: a yes or no and a reason.
pub const JUDGE_TOKENS: u64 = 1_024;
/// How long a judge may take.
pub const JUDGE_TIMEOUT: Span = Span::seconds(120);
/// Longest part of the talk that a judge is shown, in bytes.
pub const JUDGE_TALK_BYTES: usize = 32 * 1024;
/// Errors that the diagnosis of a stall repeats.
pub const DIAGNOSIS_ERRORS: usize = 3;
/// A table of prices that was not compared with what is charged for so long is said to be old: half a year.
pub const PRICES_OLD: Span = Span::seconds(182 * 24 * 60 * 60);
/// Context window assumed of a model that nobody described, in tokens.
pub const WINDOW_TOKENS: u64 = 32_768;
/// Safety factor on an estimated input, in percent.
pub const INPUT_FACTOR_PERCENT: u64 = 125;
/// The safety factor never rises above this, in percent.
pub const INPUT_FACTOR_MAX_PERCENT: u64 = 200;

/// Todos in a plan: more than a person can watch.
pub const TODOS_MAX: usize = 40;
/// Longest todo title, in characters.
pub const TODO_TITLE_MAX_CHARS: usize = 200;
/// Longest todo note, in characters.
pub const TODO_NOTE_MAX_CHARS: usize = 500;
/// Longest word on when a todo counts as done, in characters.
pub const TODO_ACCEPTANCE_MAX_CHARS: usize = 300;
/// What is read of a text of a todo before it is cleaned, in bytes.
pub const TODO_RAW_MAX_BYTES: usize = 16 * 1024;
/// Dependencies of one todo.
pub const TODO_DEPENDENCIES_MAX: usize = 8;
/// What is looked at of a text that may hold a plan, in bytes: no plan is longer.
pub const PLAN_TEXT_MAX_BYTES: usize = 64 * 1024;
/// Changes of the plan that wait to be told; of more the newest are told, and the plan itself says the rest.
pub const PLAN_NEWS: usize = 40;
/// Attempts at a first plan before the goal itself becomes the plan.
pub const DECOMPOSE_ATTEMPTS: u32 = 2;

/// Iterations without progress before a stall: three alike in a row is a pattern.
pub const STALL_WINDOW: u32 = 3;
/// The same call with the same result in a row before a stall.
pub const STALL_REPEATS: u32 = 3;
/// The same call in a row, whatever it gives, before a stall: what is waited for may take a while.
pub const POLLS: u32 = 10;
/// Longest cycle of iterations that is looked for.
pub const CYCLE_PERIOD_MAX: usize = 4;
/// Full rounds of a cycle before a stall.
pub const CYCLE_PERIODS: usize = 3;
/// Text-only turns with the same text in a row before a stall.
pub const SAME_TEXTS: u32 = 3;
/// Iterations without a moved todo or a new content before a stall, whatever else was new.
pub const UNMOVED: u32 = 12;
/// Errors of one class in a row before the run parks: the third identical refusal will not be the last.
pub const ERRORS_OF_A_CLASS: u32 = 3;
/// How often a tool may break before it is not used any more in the run.
pub const TOOL_FAULTS: u32 = 3;
/// Iterations whose only progress is a never-seen call and result.
pub const NOVELTY_ALLOWANCE: u32 = 6;
/// Replans of a run: enough to change course, not to wander.
pub const REPLANS: u32 = 4;
/// Replans in a row that changed nothing before the run parks.
pub const REPLANS_INEFFECTIVE: u32 = 2;
/// Text-only turns that are nudged; the next one counts as a claim of being finished.
pub const NUDGES: u32 = 2;
/// Rejected claims of being finished before the run parks.
pub const CLAIMS: u32 = 3;
/// Starts of one call before its next is asked about, whatever allows it: what it would touch has drifted each time.
pub const STARTS_UNASKED: u32 = 3;
/// Denials by the operator in a row before the run parks: three times no means the direction is wrong.
pub const DENIALS: u32 = 3;
/// Malformed or unknown calls in a row before the run parks.
pub const MALFORMED: u32 = 3;
/// Calls with arguments of the wrong shape in a row before the run parks.
pub const INVALID_ARGUMENTS: u32 = 5;
/// Replies in a row that reached the output limit before the run parks.
pub const TRUNCATED: u32 = 3;
/// Times that a reply which went in circles is asked for again.
pub const DEGENERATE_RETRIES: u32 = 1;
/// The temperature of that attempt, in hundredths: 0.2 above what providers take where none is said.
pub const TEMPERATURE_AFTER_CIRCLE_PERCENT: u32 = 120;
/// Replies that their provider broke off to go on with, in one iteration.
pub const PAUSES: u32 = 5;
/// Empty replies that are asked again.
pub const EMPTY_RESAMPLES: u32 = 2;
/// Recoveries without progress between them before the run parks instead of crashing in a circle.
pub const RECOVERIES: u32 = 5;

/// Attempts at a model call that met an overloaded or unreachable provider.
pub const RETRIES_OVERLOADED: u32 = 6;
/// Attempts at a model call that met a rate limit.
pub const RETRIES_RATE: u32 = 8;
/// Attempts at a model call whose stream broke or went silent.
pub const RETRIES_STREAM: u32 = 3;
/// Attempts at a model call that no server took on this machine: one that is started anew is there within seconds, and one
/// that is not started is not started by waiting.
pub const RETRIES_NO_SERVER: u32 = 3;
/// Attempts at a model call whose failure nobody expects to pass: it is tried once more, and no further.
pub const RETRIES_ONCE: u32 = 2;
/// First wait before a retry; doubled each time.
pub const BACKOFF_FIRST: Span = Span::seconds(1);
/// Longest wait before a retry inside an iteration.
pub const BACKOFF_MAX: Span = Span::seconds(60);
/// A wait for a provider from this length on does not count as active time.
pub const LONG_WAIT: Span = Span::seconds(60);
/// A provider that asks for a longer wait parks the run instead.
pub const RETRY_AFTER_MAX: Span = Span::seconds(15 * 60);
/// How long a run parked for its provider waits before it tries again by itself.
pub const PROVIDER_WAIT: Span = Span::seconds(10 * 60);

/// How often in a row it does so.
pub const PROVIDER_WAITS: u32 = 6;

/// Names of a folder that a new file's name is compared with, to find one that looks the same. Only a notice depends on
/// it, and it is looked for each time such a call is prepared.
pub const NAMES_COMPARED: usize = 2_000;

/// Checks of a run: more are a script, which is one check.
pub const CHECKS_MAX: usize = 100;
/// Calls in one reply; more are a loop, not a plan.
pub const CALLS_PER_REPLY: usize = 64;
/// Reads that run side by side.
pub const CONCURRENT_READS: usize = 4;
/// Longest arguments of a call, in bytes.
pub const ARGUMENTS_MAX_BYTES: usize = 1024 * 1024;
/// Deepest nesting of a call's arguments.
pub const ARGUMENTS_MAX_DEPTH: usize = 64;
/// A piece of a streamed text that may not come again and again, in characters.
pub const REPEAT_CHARS: usize = 50;
/// So often it may not come; peers end a stream at the same number.
pub const REPEAT_TIMES: usize = 10;
/// Within so many characters.
pub const REPEAT_WITHIN_CHARS: usize = 5_000;
/// Content that this version does not know, kept of one reply: pieces of it.
pub const OPAQUE_MAX: usize = 16;
/// Longest such piece, in bytes.
pub const OPAQUE_MAX_BYTES: usize = 4 * 1024;
/// Longest text of one reply, in bytes; an endless stream is cut there.
pub const REPLY_MAX_BYTES: usize = 1024 * 1024;
/// Longest result of a call that goes into the conversation, in bytes.
pub const RESULT_MAX_BYTES: usize = 32 * 1024;
/// Longest preview of a call, in bytes: beyond it the call can't be read by a person and is refused.
pub const PREVIEW_MAX_BYTES: usize = 2 * 1024 * 1024;
/// Largest file that a tool reads or writes, in bytes.
pub const FILE_MAX_BYTES: u64 = 1024 * 1024;
/// Largest `.gitignore` that is obeyed, and of all of them in one walk, in bytes: their patterns are compiled, which
/// takes four hundred times as much memory.
pub const IGNORE_FILE_MAX_BYTES: u64 = 64 * 1024;
/// See there.
pub const IGNORE_FILES_MAX_BYTES: u64 = 1024 * 1024;
/// What is kept of a program's output, from its start and from its end each, in bytes.
pub const OUTPUT_KEPT_BYTES: usize = 256 * 1024;
/// A program that prints more than this is ended, in bytes.
pub const OUTPUT_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Entries that `list_dir` and `search_files` give at most.
pub const ENTRIES_MAX: usize = 500;
/// Files that `search_files` looks into at most.
pub const SEARCH_FILES_MAX: usize = 50_000;
/// Longest line that a search shows, in bytes.
pub const SEARCH_LINE_MAX_BYTES: usize = 400;
/// Longest path that a call may name, in bytes: what the system takes.
pub const PATH_MAX_BYTES: usize = 4_096;
/// Longest line that `read_file` shows whole, in bytes: longer ones are not written by hand.
pub const READ_LINE_MAX_BYTES: usize = 2_000;
/// Lines of context that a search shows at most, before and after a match each.
pub const SEARCH_CONTEXT_MAX: usize = 10;
/// Largest compiled form of a search pattern, in bytes: matching stays linear, and building it is bounded by this.
pub const SEARCH_PATTERN_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Deepest listing of `list_dir`.
pub const LIST_DEPTH_MAX: usize = 8;
/// Longest shell line, in bytes: the kernel takes no longer argument.
pub const COMMAND_MAX_BYTES: usize = 128 * 1024 - 1;
/// A longer shell line is never taken for a plain one, in bytes: nobody types that.
pub const PLAIN_MAX_BYTES: usize = 16 * 1024;
/// Commands of a plain line: what is longer is a program, and a person should read it.
pub const PLAIN_SEGMENTS: usize = 8;
/// Words of a shell line that are looked up, each a few questions to the file system.
pub const TOUCHES: usize = 256;
/// Names below a folder that are looked at before it is read unasked as a whole: 20 to 50 ms.
pub const NAMES_BELOW: usize = 50_000;
/// Longest index of a repository that is looked through for sensitive names, in bytes: of some 100,000 files.
pub const INDEX_MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Longest file that a program in a box can write, in bytes.
pub const BOX_FILE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Room for temporary files in a box, and in its home, in bytes: they lie in memory.
pub const BOX_FOLDER_BYTES: u64 = 1024 * 1024 * 1024;
/// Processes and threads of a box at once: builds need some, and a flood of them must end.
pub const BOX_PROCESSES: u64 = 256;
/// Entries of a workspace that are gone through for files that other programs run by themselves: a box must not take
/// seconds to make.
pub const WATCHED_ENTRIES: usize = 20_000;
/// Such files that are compared by content, each up to so many bytes, ...
pub const WATCHED_BYTES: u64 = 256 * 1024;
/// ... and at most so many of them; so many can be kept from being written, too.
pub const WATCHED_FILES: usize = 200;
/// Changed ones that are named, ...
pub const WATCHED_NAMED: usize = 10;
/// ... and those that are recorded.
pub const WATCHED_RECORDED: usize = 1_000;
/// Folders above them that are held in their place, too: each is mounted by itself.
pub const HELD_FOLDERS: usize = 200;
/// Their paths, and those of what is kept, each in all, in bytes: they are handed over with the box.
pub const KEPT_PATH_BYTES: usize = 32 * 1024;
/// What describes a box, in bytes: it is one word of a command line, for which Linux has so much room.
pub const CELL_BYTES: usize = 128 * 1024;
/// Names that are looked at for groups of processes that a killed tiller left.
pub const GROUPS_SEEN: usize = 1_000;
/// How long a workspace is gone through for such files before or after a command, ...
pub const WATCH_PATIENCE: Span = Span::seconds(20);
/// ... and after one that was cancelled: `LEAVE_PATIENCE` is for both.
pub const WATCH_PATIENCE_CANCELLED: Span = Span::seconds(1);
/// Configurations of git that are read for one repository with all that they include, and of the operator's own; more are
/// told as such, and so is more than each of the following.
pub const GIT_CONFIGURATIONS: usize = 100;
/// What is read of all of them in one look, in bytes.
pub const GIT_BYTES: u64 = 4 * 1024 * 1024;
/// Steps of all paths that are looked up for their words, and entries of folders of hooks, in one look.
pub const GIT_PLACES: usize = 200_000;
/// What is taken apart of one configuration, in bytes of the values that may name something.
pub const GIT_VALUE_BYTES: usize = 128 * 1024;
/// Users whose home is asked for, because a configuration names it: that may ask a server.
pub const GIT_USERS: usize = 16;
/// Programs of the workspace that a shell line names are hashed up to so many bytes in all; beyond it, size and time
/// of change stand for the content.
pub const SCRIPTS_HASHED_BYTES: u64 = 32 * 1024 * 1024;
/// A scrap of a program's output on its way to a screen, in bytes.
pub const SCRAP_MAX_BYTES: usize = 4 * 1024;
/// How long output is awaited when everything that could write it is gone.
pub const PIPE_PATIENCE: Span = Span(250);
/// How long a guard is awaited after it was told to end: its own ladder, and as much again. Then it is killed, and its
/// owner ends what it left.
pub const GUARD_PATIENCE: Span = Span::seconds(4);
/// How long a guard goes on killing what does not die: a program in an endless system call can't be killed.
pub const GUARD_KILL_PATIENCE: Span = Span::seconds(5);
/// How long a shell may take to read a line of which it runs nothing.
pub const SYNTAX_TIMEOUT: Span = Span::seconds(5);
/// Default time limit of a tool call.
pub const TOOL_TIMEOUT: Span = Span::seconds(120);
/// Longest time limit that a call may ask for.
pub const TOOL_TIMEOUT_MAX: Span = Span::seconds(600);
/// Between the request to end and the kill.
pub const KILL_GRACE: Span = Span::seconds(2);
/// What a call with outside effects gets to finish after a graceful cancel.
pub const CANCEL_GRACE: Span = Span::seconds(10);

/// Longest time of a fetch, from the first look-up to the last byte.
pub const FETCH_TIMEOUT: Span = Span::seconds(60);
/// Longest URL of a fetch, in bytes.
pub const FETCH_URL_MAX_BYTES: usize = 4_096;
/// Most bytes of a path and a query that a standing rule lets go to its host unasked, and a redirect there, too.
pub const FETCH_QUERY_BYTES: u64 = 256;
/// Redirects that a fetch follows at the same scheme, host and port.
pub const FETCH_REDIRECTS: usize = 5;
/// Longest answer to a fetch that is read, in bytes. None is decompressed, so there is no ratio to bound.
pub const FETCH_BODY_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Connecting to a provider, or to the host of a fetch.
pub const CONNECT_TIMEOUT: Span = Span::seconds(10);
/// Waiting for the first byte of a reply; small local models take 40 s for a prompt.
pub const FIRST_BYTE_TIMEOUT: Span = Span::seconds(120);
/// Between two bytes of a reply.
pub const STREAM_TIMEOUT: Span = Span::seconds(60);
/// Longest error body that is read, in bytes.
pub const ERROR_BODY_MAX_BYTES: usize = 64 * 1024;
/// Longest single event of a stream, or reply that is not streamed, in bytes: a reply of the longest length with
/// every byte escaped, and some room for what stands around it.
pub const STREAM_EVENT_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Longest body of a reply, in bytes, whatever is in it (docs/ENGINE.md §14.5).
pub const REPLY_BODY_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Calls that are read from one reply: room to show that there were too many, not room for an endless list.
pub const CALLS_READ_MAX: usize = 4 * CALLS_PER_REPLY;
/// Longest sentence of a provider that is repeated to the operator, in characters.
pub const PROVIDER_SENTENCE_MAX_CHARS: usize = 400;

/// Largest script of a scripted model, in bytes: hundreds of steps, read at once.
pub const SCRIPT_MAX_BYTES: u64 = 1024 * 1024;
/// Longest single wait that a script may ask for: longer than any timeout that it could test.
pub const SCRIPT_WAIT_MAX: Span = Span::seconds(600);

/// Largest value in the store. sled writes up to 17 values as one page, and keeps a page of more than 127 KiB in a file
/// that it does not sync (docs/JOURNAL.md).
pub const VALUE_MAX_BYTES: usize = 7 * 1024;
/// Length of the pieces of what is longer. Part of the format: a stub does not say how many pieces it has.
pub const PIECE_BYTES: usize = 4 * 1024;
/// Longest batch that is written without a transaction: with all that sled writes for it still shorter than one of its
/// segments (docs/JOURNAL.md, "A batch").
pub const PLAIN_BATCH_BYTES: usize = 32 * 1024;
/// Longest record, in bytes, pieces counted together.
pub const RECORD_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Largest file that is read from beside a store, in bytes: a summary, an owner, a draft, whose JSON can be six times
/// as long as its text.
pub const SIDE_FILE_MAX_BYTES: u64 = 512 * 1024;
/// Iterations, or bytes of records, after which a snapshot is due (docs/ENGINE.md §10.5).
pub const SNAPSHOT_ITERATIONS: u64 = 16;
/// See `SNAPSHOT_ITERATIONS`.
pub const SNAPSHOT_BYTES: usize = 256 * 1024;
/// Longest snapshot as JSON: a run of hundreds of thousands of iterations. A longer one is not kept.
pub const SNAPSHOT_MAX_BYTES: usize = 128 * 1024 * 1024;
/// Snapshots of a run that are kept: the newest, and one more in case it is damaged.
pub const SNAPSHOTS_KEPT: usize = 2;
/// Snapshots that are read to open a run: more than are kept. Where none of these is good, the records are folded.
pub const SNAPSHOTS_READ: usize = 8;
/// Requests that wait for the thread of a store: one writer and a few readers, each of whom waits for its answer.
pub const STORE_REQUESTS: usize = 16;
/// Page cache of one store, in bytes. Not a hard bound; a run is read from first to last once, then only appended to.
pub const STORE_CACHE_BYTES: u64 = 8 * 1024 * 1024;
/// Longest ledger of all runs, in bytes: hundreds of thousands of calls in a day.
pub const LEDGER_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Lines that have left the window and stay in the ledger: rewriting it for fewer is not worth it.
pub const LEDGER_SLACK_LINES: usize = 256;
/// Copies of a run that somebody writes to that are looked into, when it is shown or a ledger is made anew: one may be of
/// a moment in which it is half written.
pub const HELD_LOOKS: u32 = 4;
/// How long a store's lock is tried for: it can outlive a killed process by some milliseconds.
pub const LOCK_PATIENCE: Span = Span::seconds(2);
/// Records that are written in one commit where many are there at once, as in an import: about as many as a turn of the
/// loop writes, because damage to a byte of a commit can cost all of it.
pub const RECORDS_PER_COMMIT: usize = 16;
/// Positions of a damaged journal that are looked at: more than any run has, and not what a stray key says.
pub const SURVEY_RECORDS: u64 = 1_000_000;
/// Damaged stores of one run that are kept beside its mended one: each repair keeps what it found.
pub const KEPT_STORES: u32 = 1_000;
/// Days for which a run that has ended is kept, where nothing else is configured.
pub const KEPT_DAYS: u64 = 90;
/// Runs that have ended and are kept, where nothing else is configured.
pub const KEPT_RUNS: u64 = 500;
/// The file with a line for each removed run, in bytes: some ten thousand lines, then a new one is begun.
pub const REMOVED_MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The longest that a process waits at its end for the removal of the run that it is at.
pub const REMOVAL_PATIENCE: Span = Span::seconds(2);
/// The time that a command of the operator's has for being told something.
pub const SINK_TIMEOUT: Span = Span::seconds(10);
/// Before a sink that failed is tried again, the first time; each further wait is twice as long.
pub const SINK_WAIT: Span = Span::seconds(1);
/// The longest of these waits.
pub const SINK_WAIT_MAX: Span = Span::seconds(5 * 60);
/// Failures in a row after which a sink is given up in this process: after some 13 minutes.
pub const SINK_FAILURES: u32 = 11;
/// How long leaving a run waits until what happened at its end is told.
pub const SINK_PATIENCE: Span = Span::seconds(3);
/// Longest file of a store, in bytes: several times what can be imported, packed less well, and rewrites included. A longer
/// one is damage: it would be copied and read for hours.
pub const STORE_MAX_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// Files of a store up to this length, in bytes, are read whatever part of them was written: that takes moments.
pub const STORE_HOLLOW_BYTES: u64 = 64 * 1024 * 1024;
/// A longer file of which less than one part in so many was written is damage. sled writes what it calls its own, and
/// values are packed before, so that no file system can pack them so much further.
pub const STORE_HOLLOW_SHARE: u64 = 16;
/// Longest file that is imported, in bytes: some thousand iterations of the longest results.
pub const IMPORT_MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Commits that fail are tried so often before the engine of the run stops.
pub const STORE_RETRIES: u32 = 3;
/// Free space a run needs to start, in bytes.
pub const FREE_SPACE_MIN_BYTES: u64 = 16 * 1024 * 1024;

/// Commands that wait for the driver.
pub const INBOX: usize = 64;
/// Scraps of streamed text on their way to a screen: a second of fast streaming.
pub const DELTAS: usize = 1_024;
/// Groups of events that one input may lead to; more is a bug in the loop.
pub const GROUPS_PER_TURN: usize = 256;
/// How long leaving waits for running work to end before it is left as unknown: longer than `GUARD_PATIENCE`, so that
/// what a killed guard leaves is ended too.
pub const LEAVE_PATIENCE: Span = Span::seconds(6);

/// How still the approvals pane must be before a deciding key counts, as browsers guard their prompts.
pub const KEY_GUARD: Span = Span(500);
/// How still it must be after a decision: a held key repeats first after 660 ms at most, by the usual settings, and
/// must not decide about the next call.
pub const KEY_GUARD_AFTER_DECISION: Span = Span(800);
/// How long a letter that decides waits for others to follow: letters that are pasted or sent by a program come closer
/// together, keys of a person hardly ever; and a person does not feel it.
pub const KEY_ALONE: Span = Span(40);
/// Live text that a screen keeps, in bytes; the whole text comes with its record.
pub const LIVE_TEXT_MAX_BYTES: usize = 64 * 1024;
/// Deltas alone cause at most this many frames a second.
pub const FRAMES_PER_SECOND: u64 = 30;
/// Longest line that a transcript shows, in cells; wrapping longer ones would stall a frame.
pub const LINE_MAX_CELLS: usize = 4_096;
/// Notes about the past that a screen keeps: a hundred iterations and more in full.
pub const NOTES_MAX: usize = 2_000;
/// Longest such note, in bytes.
pub const NOTE_MAX_BYTES: usize = 4 * 1024;
/// Lines of output or text that the activity shows of one thing before it folds.
pub const FOLD_LINES: usize = 4;
/// Iterations that were put away, as a screen keeps them once read: several pages of them.
pub const REREAD_ITERATIONS: usize = 128;
/// Bytes of such iterations. What one frame shows is kept even where it is more.
pub const REREAD_BYTES: usize = 8 * 1024 * 1024;
/// Iterations before those that are shown which are read in advance, so that scrolling back meets texts.
pub const REREAD_AHEAD: u32 = 8;
/// Earlier drafts that the composer can bring back.
pub const DRAFTS_MAX: usize = 100;
/// How long a note above the composer stays.
pub const NOTICE: Span = Span::seconds(6);
/// Two presses of Ctrl-C within this time leave a run that is not running.
pub const LEAVE_TWICE: Span = Span::seconds(1);
/// How often a list of runs is read anew.
pub const RUNS_REFRESH: Span = Span::seconds(3);

/// Records that a client is given at once: enough to catch up fast, little enough to draw between.
pub const RECORDS_PER_UPDATE: usize = 256;
/// Times that the loop of a run may break down in one process before it is not started again: the first is repaired
/// unasked, and the others were each asked for by the operator.
pub const ENGINE_PANICS: u32 = 5;
/// Between two attempts at a commit that failed.
pub const STORE_RETRY_WAIT: Span = Span(700);

/// Longest configuration file, in bytes: far more than a person writes.
pub const CONFIG_MAX_BYTES: u64 = 256 * 1024;
/// Log files that are kept, one a day.
pub const LOG_FILES: usize = 7;
/// Log lines that wait for the disk; more are dropped, since a slow disk must not slow a run.
pub const LOG_LINES: usize = 4_096;

/// What lines show of a tool's or a check's output, in bytes: its head and its tail. The journal has more.
pub const LINES_EXCERPT_BYTES: usize = 2 * 1024;
/// Lines of a waiting call that are printed with its prompt: about a screenful.
pub const PROMPT_LINES: usize = 40;
/// Texts that wait to be printed where a reader is slow.
pub const PRINTS: usize = 64;
/// Typed lines that wait to be read.
pub const TYPED_LINES: usize = 16;

/// Programs of the workspace that a decision about one shell line is bound to one by one; those beyond as one.
pub const SCRIPTS_BOUND: usize = 32;
/// Files that are looked at for them, and folders that the line may go into: each takes some fifty questions to the
/// system.
pub const SCRIPTS_LOOKED_AT: usize = 4_096;
/// Names that are looked for in the folders that a line names, each in each: every one is a question to the system.
pub const SCRIPT_NAMES_IN_FOLDERS: usize = 128 * 1024;
/// Questions about calls that a person can mean to answer, each by itself, ...
pub const ASKS: usize = 30;
/// ... in this time. After more the run is parked.
pub const ASKS_SPAN: Span = Span::seconds(60);
/// Most rules of an operator: each is looked at for each call.
pub const RULES: usize = 1_000;
/// Longest file of rules, in bytes.
pub const RULES_FILE_BYTES: u64 = 1024 * 1024;
/// How long arguments that the operator changed are tried before they count. What takes longer is judged after that, as
/// any call is.
pub const EDIT_TRIED: Span = Span::seconds(5);
/// How long a run waits for the file of rules: longer than the lock on it is waited for.
pub const RULES_PATIENCE: Span = Span::seconds(20);
