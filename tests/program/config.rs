//! The configuration: text in, settings or the sentence out. Draws docs/CONFIG.md and compares it.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use tiller::cli::Ask;
use tiller::cli::Options;
use tiller::config::Resume;
use tiller::config::Settings;
use tiller::config::keys::KEYS;
use tiller::config::keys::NAME;
use tiller::config::keys::VARIABLES;
use tiller::config::models::Known;
use tiller::config::models::PROVIDERS;
use tiller::config::read_file;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::budget::Limits;
use tiller::domain::money::Price;
use tiller::policy::keeping::Keep;
use tiller::tui::app::Alerts;

fn options(words: &[&str]) -> Options {
    let line = ["tiller", "run", "goal"].iter().chain(words).map(OsString::from);
    match tiller::cli::parse(line).unwrap() {
        Ask::Start { options, .. } => options,
        other => panic!("{other:?}"),
    }
}

fn merge(file: &str, variables: &[(&str, &str)], words: &[&str]) -> Result<Settings, String> {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_string());
    Settings::merge(Some((Path::new("t.toml"), file)), &variable, &options(words)).map_err(|error| error.to_string())
}

fn known(model: &str) -> Option<Known> {
    let price = Price { input: 250_000, cache_read: 25_000, cache_write: 250_000, output: 2_000_000 };
    (model == "gpt-5-mini").then_some(Known { price, window: 272_000, max_output: 128_000 })
}

/// The sentence that a file is refused with.
fn refused(file: &str, sentence: &str) {
    assert_eq!(merge(file, &[], &[]).map(|_| ()), Err(format!("{sentence}; nothing was started")), "for\n{file}");
}

/// The sentence that a model is refused with, given a file.
fn model_refused(file: &str, name: &str, sentence: &str) {
    let settings = merge(file, &[], &["--model", name]).unwrap();
    let refusal = settings.priced_spec(name, &known).map_err(|error| error.to_string());
    assert_eq!(refusal, Err(format!("--model: {sentence}; nothing was started")), "for {name}");
}

/// The spec of a model in one line.
fn spec(file: &str, name: &str) -> String {
    let spec = merge(file, &[], &[]).unwrap().priced_spec(name, &known).unwrap();
    let price = spec.price.unwrap();
    let key = spec.key_variable.unwrap_or_default();
    format!(
        "{} {} [{key}] window {} output {} price {}/{}/{}/{}",
        spec.address,
        spec.model,
        spec.window,
        spec.max_output,
        price.input,
        price.cache_read,
        price.cache_write,
        price.output
    )
}

#[test]
fn nothing_is_needed() {
    let settings = Settings::merge(None, &|_| None, &Options::default()).unwrap();
    assert_eq!((settings.model(), settings.limits()), (None, Limits::default()));
    assert_eq!(settings.daily(), Limit::At(20_000_000));
    let daily = |text: &str| merge(text, &[], &[]).map(|settings| settings.daily());
    assert_eq!(daily("budget.daily = '7.50'").unwrap(), Limit::At(7_500_000));
    assert_eq!(daily("budget.daily = 'unlimited'").unwrap(), Limit::Unlimited);
    assert!(daily("budget.daily = '0'").is_err());
    let keep = |text: &str| merge(text, &[], &[]).map(|settings| settings.keep());
    assert_eq!(settings.keep(), Keep { days: Limit::At(90), runs: Limit::At(500) });
    let written = keep("[keep]\ndays = 7\nruns = 'unlimited'").unwrap();
    assert_eq!(written, Keep { days: Limit::At(7), runs: Limit::Unlimited });
    assert!(keep("keep.days = 0").is_err() && keep("keep.runs = -1").is_err());
    assert_eq!((settings.alerts(), settings.notify_command()), (Alerts::default(), [].as_slice()));
    let told = merge("[notify]\nbell = true\ncommand = ['notify-send', 'tiller']", &[], &[]).unwrap();
    assert_eq!(told.alerts(), Alerts { bell: true, desktop: false });
    assert_eq!(told.notify_command(), ["notify-send", "tiller"]);
    assert_eq!((settings.web_fetch(), settings.fetch_loopback()), (false, [].as_slice()));
    let fetching =
        merge("[tools]\nweb_fetch = true\nfetch_loopback = ['127.0.0.1:80', '[0::1]:8080']", &[], &[]).unwrap();
    assert_eq!(fetching.fetch_loopback(), ["127.0.0.1:80", "[::1]:8080"]);
    assert!(fetching.web_fetch());
    for wrong in ["['']", "['./x']", "['a/b']", "[1]", "'x'"] {
        let read = merge(&format!("notify.command = {wrong}"), &[], &[]);
        assert!(read.is_err(), "{wrong}");
    }
    let folders =
        |text: &str| merge(text, &[], &[]).map(|all| (all.has_sandbox(), format!("{:?}", all.opened_folders())));
    assert_eq!(folders("").unwrap(), (true, "([], [])".to_string()));
    let written = folders("[sandbox]\nuse = 'none'\nreadable = ['~/.cargo']\nwritable = ['/opt']").unwrap();
    assert_eq!(written, (false, r#"(["~/.cargo"], ["/opt"])"#.to_string()));
    assert!(!merge("", &[("TILLER_SANDBOX", "none")], &[]).unwrap().has_sandbox());
    for wrong in ["use = 'full'", "use = false", "readable = ['x']", "writable = '/opt'", "readable = [1]"] {
        assert!(folders(&format!("sandbox.{wrong}")).is_err(), "{wrong}");
    }
    assert_eq!((settings.checks(), settings.resume(), settings.instructions()), (vec![], Resume::Ask, ""));
    assert_eq!(
        settings.required_model().unwrap_err().to_string(),
        "the configuration: no model is named; write model = \"provider/model\" in tiller.toml, set TILLER_MODEL, or \
         give --model; nothing was started"
    );
}

#[test]
fn a_whole_file() {
    let file = "
        model = 'openai/gpt-5-mini'
        [budget]
        cost = '7.50'
        time = '90m'
        iterations = 2_0
        tool_calls = 'unlimited'
        model_calls = '5'
        tokens = 0x10
        [run]
        checks = ['cargo test', 'true', { file = 'a' }, { file = 'a', matches = '^b' }, { judge = 'good?' }, { confirm = '' }, { tool = 'read_file', arguments = { path = 'a', n = [1, true] } }]
        resume = 'auto'
        instructions = '''be brief'''
        pass_variables = ['CARGO_HOME', 'JAVA_HOME']";
    let settings = merge(file, &[], &[]).unwrap();
    let limits = Limits {
        deadline: Limit::Unlimited,
        active: Limit::At(5_400_000),
        loops: Limit::At(20),
        model_calls: Limit::At(5),
        tool_calls: Limit::Unlimited,
        tokens: Limit::At(16),
        cost: Limit::At(7_500_000),
    };
    assert_eq!((settings.model(), settings.limits()), (Some("openai/gpt-5-mini"), limits));
    assert_eq!(
        settings.checks().iter().map(|check| check.title()).collect::<Vec<_>>(),
        [
            "cargo test",
            "true",
            "there is a",
            "a matches ^b",
            "judged by the model: good?",
            "asked of the operator: Is the goal reached?",
            "read_file {\"n\":[1,true],\"path\":\"a\"}",
        ]
    );
    assert_eq!((settings.resume(), settings.instructions()), (Resume::Auto, "be brief"));
    assert_eq!(settings.pass_variables(), ["CARGO_HOME", "JAVA_HOME"]);
    assert_eq!(settings.origin(&["budget", "cost"]).to_string(), "t.toml, line 4");
    assert_eq!(spec(file, "openai/gpt-5-mini"), {
        let price = "250000/25000/250000/2000000";
        format!("https://api.openai.com/v1 gpt-5-mini [OPENAI_API_KEY] window 272000 output 8192 price {price}")
    });
}

#[test]
fn flags_stand_above_the_environment_and_that_above_the_file() {
    let file = "model = 'a/b'\n[budget]\ncost = 1\niterations = 1\n[run]\nchecks = ['old']";
    let variables = [("TILLER_MODEL", "c/d"), ("TILLER_BUDGET", "2"), ("TILLER_MAX_ITERATIONS", "2")];
    let look = |words: &[&str]| {
        let settings = merge(file, &variables, words).unwrap();
        let limits = settings.limits();
        let from = |path: &[&str]| settings.origin(path).to_string();
        let model = settings.model().unwrap_or_default();
        let (cost, loops) = (limits.on(Axis::Cost), limits.on(Axis::Loops));
        let origins = [from(&["model"]), from(&["budget", "cost"]), from(&["run", "checks"])].join(" ");
        format!("{model} {cost:?} {loops:?} {} {origins}", settings.checks()[0].title())
    };
    assert_eq!(look(&[]), "c/d At(2000000) At(2) old TILLER_MODEL TILLER_BUDGET t.toml, line 6");
    assert_eq!(
        look(&["--model", "e/f", "--budget", "3", "--max-iterations", "unlimited", "--check", "new"]),
        "e/f At(3000000) Unlimited new --model --budget --check"
    );
    let empty = merge(file, &[("TILLER_MODEL", "")], &[]).unwrap();
    assert_eq!(empty.model(), Some("a/b"));
}

#[test]
fn sentences_about_the_environment_and_flags() {
    let say = |variables: &[(&str, &str)], words: &[&str]| merge("", variables, words).unwrap_err();
    assert_eq!(
        say(&[("TILLER_MODEL", "gpt")], &["--model", "a/b"]),
        "TILLER_MODEL: a model is named by its provider and its own name, such as \"openai/gpt-5-mini\"; nothing was \
         started"
    );
    assert_eq!(
        say(&[("TILLER_BUDGET", "0")], &[]),
        "TILLER_BUDGET: a limit of zero on cost would stop the run at once; write unlimited to have none; nothing was \
         started"
    );
    assert_eq!(
        say(&[("TILLER_MAX_ITERATIONS", "many")], &[]),
        "TILLER_MAX_ITERATIONS: the limit of iterations must be a whole number such as 50, or unlimited; nothing was \
         started"
    );
    assert_eq!(
        say(&[], &["--model", "gpt"]),
        "--model: a model is named by its provider and its own name, such as \"openai/gpt-5-mini\"; nothing was started"
    );
    assert_eq!(
        say(&[], &["--check", " "]),
        "--check: a check is empty, and an empty line always succeeds; write a command or leave it out; nothing was \
         started"
    );
}

#[test]
fn unknown_keys_are_named_with_their_nearest() {
    refused("modle = 'a/b'", "t.toml, line 1: unknown key modle; did you mean \"model\"?");
    refused("\n[budget]\ncots = '1'", "t.toml, line 3: unknown key budget.cots; did you mean \"cost\"?");
    refused("[bugdet]\ncost = '1'", "t.toml, line 1: unknown key bugdet; did you mean \"budget\"?");
    refused("[run]\nshell = 'x'", {
        "t.toml, line 2: unknown key run.shell; known here: checks, confirm_finish, instructions, keep_full_trust, pass_variables, resume, trust, \
         wrap_up"
    });
    refused("[providers.mine]\napi_key = 'sk-1234'", {
        "t.toml, line 2: unknown key providers.mine.api_key; known here: base_url, key"
    });
    refused("[models.'a/b']\nprice = { in = '1' }", {
        "t.toml, line 2: unknown key models.\"a/b\".price.in; known here: cache_read, cache_write, input, output"
    });
    refused("[models.gpt-5]\nwindow = 5", {
        "t.toml, line 1: a model is named by its provider and its own name, such as \"openai/gpt-5-mini\""
    });
    refused("[providers.Mine]\nkey = 'K'", {
        "t.toml, line 1: the name of a provider may have only a-z, 0-9, - and _; write another"
    });
    refused("[providers.scripted]\nkey = 'K'", {
        "t.toml, line 1: scripted takes a path, scripted/PATH, and has no settings"
    });
    refused("budget = 5", "t.toml, line 1: budget holds further keys; write [budget]");
    refused("model = 'a/b'\nmodel = 'c/d'", "t.toml, line 2: it is not TOML: duplicate key");
}

#[test]
fn wrong_types_say_what_is_expected() {
    let of = |line: &str, sentence: &str| refused(line, &format!("t.toml, line 1: {sentence}"));
    of("model = 5", "model: expected a model in quotes, \"provider/model\", found a whole number");
    of("budget.cost = 2.50", "budget.cost: money is written in quotes, so that it is exact; write \"2.50\"");
    of("budget.cost = true", {
        "budget.cost: expected dollars in quotes, \"5.00\", or \"unlimited\", found true or false"
    });
    of("budget.cost = 0", {
        "budget.cost: a limit of zero on cost would stop the run at once; write unlimited to have none"
    });
    of("budget.time = 90", {
        "budget.time: expected a time in quotes, \"2h\" or \"30m\", or \"unlimited\", found a whole number"
    });
    of("budget.time = 07:32:00", {
        "budget.time: expected a time in quotes, \"2h\" or \"30m\", or \"unlimited\", found a date"
    });
    of("budget.iterations = -1", {
        "budget.iterations: the limit of iterations must be a whole number such as 50, or unlimited"
    });
    of("budget.iterations = 1.5", {
        "budget.iterations: expected a whole number from 1, or \"unlimited\", found a number with a point"
    });
    of("budget.tokens = 99999999999999999999", {
        "budget.tokens: expected a whole number from 1, or \"unlimited\", found a number that is too large"
    });
    of(
        "run.checks = 'make'",
        "run.checks: expected a list of checks: shell lines and tables, [\"cargo test\", { file = \"dist/app\" }], found a text",
    );
    let forms = "{ file = PATH }, { file = PATH, matches = PATTERN }, { tool = NAME, arguments = { … } }, \
                 { judge = QUESTION } or { confirm = QUESTION }";
    let of_check = |text: &str, found: &str| {
        of(text, &format!("run.checks: a check is a shell line in quotes, or {forms}{found}"))
    };
    of_check("run.checks = ['a', { files = 'b' }]", "");
    of_check("run.checks = ['a', 1]", "; found a whole number");
    of("run.checks = [{ file = 1 }]", "run.checks: file of a check must be a text in quotes");
    of("run.checks = ['']", {
        "run.checks: a check is empty, and an empty line always succeeds; write a command or leave it out"
    });
    of("run.resume = 'yes'", "run.resume: expected \"ask\" or \"auto\"");
    of("run.instructions = {}", "run.instructions: expected a text in quotes, found a table");
    of("tools.fetch_loopback = ['10.0.0.1:80']", {
        "tools.fetch_loopback: expected a port of this machine, 127.0.0.1:8080, [::1]:8080 or localhost:8080"
    });
    of("tools.web_fetch = 'yes'", "tools.web_fetch: expected true or false, found a text");
    of("run.pass_variables = ['A=b']", {
        "run.pass_variables: expected a list of names of environment variables, [\"CARGO_HOME\"]; only the names, \
         never NAME=value"
    });
    of("models.'a/b'.window = 0", "models.\"a/b\".window: expected a whole number from 1");
    of("models.'a/b'.price.input = 0.25", {
        "models.\"a/b\".price.input: money is written in quotes, so that it is exact; write \"0.25\""
    });
    of("models.'a/b'.price.input = '-1'", {
        "models.\"a/b\".price.input: expected dollars per million tokens in quotes, \"0.25\""
    });
    let long = format!("run.instructions = '{}'", "x".repeat(65_537));
    of(&long, "run.instructions: it is longer than 65536 bytes; put it in a file and name the file");
}

#[test]
fn keys_are_never_taken_nor_shown() {
    let sentence = "t.toml, line 1: providers.openai.key: expected the name of an environment variable in capitals, \
                    \"OPENAI_API_KEY\"; what is written is not shown, because it may be the key itself; if it is, \
                    take it out of the file and put it in the environment";
    for secret in ["sk-proj-abc123", "gsk_AbC123xyz", "ABCDEFGHIJ0123456789ABCDEFGHIJ", "hf_aaaa", "", "0ABC", "MY KEY"]
    {
        refused(&format!("providers.openai.key = '{secret}'"), sentence);
    }
    let at = |address: &str| format!("[providers.mine]\nbase_url = '{address}'");
    let plain = "a base URL may hold no user, password, question mark or #; put the key in the environment";
    for address in ["https://me:s3cret@host/v1", "https://s3cret@host/v1", "https://host/v1?key=s3cret"] {
        refused(&at(address), &format!("t.toml, line 2: providers.mine.base_url: {plain}"));
    }
    refused("key = sk-s3cret", "t.toml, line 1: it is not TOML: string values must be quoted, expected literal string");
}

#[test]
fn addresses_are_safe() {
    let at = |address: &str| format!("[providers.mine]\nbase_url = '{address}'");
    let http = "plain http is for this machine only, since others could read along; write https";
    for address in ["http://host/v1", "http://127.0.0.1.evil.org/v1", "http://192.168.1.5:8080/v1", "http://0.0.0.0/"] {
        refused(&at(address), &format!("t.toml, line 2: providers.mine.base_url: {http}"));
    }
    refused(&at("ftp://host"), "t.toml, line 2: providers.mine.base_url: it must begin with https://");
    let no_url = "it is not a URL (relative URL without a base); write https://host/v1";
    refused(&at("host/v1"), &format!("t.toml, line 2: providers.mine.base_url: {no_url}"));
    for address in [
        "http://localhost:1/v1",
        "http://127.1/v1",
        "http://[::1]:8080/v1",
        "http://[::ffff:127.0.0.1]:1/v1",
        "https://host/v1/",
    ] {
        assert!(merge(&at(address), &[], &[]).is_ok(), "{address}");
    }
}

#[test]
fn models_have_a_price_or_are_refused() {
    let unpriced = |name: &str| {
        format!(
            "nobody knows what {name} costs, so its budget can't be kept; set models.\"{name}\".price in tiller.toml"
        )
    };
    model_refused("", "openai/gpt-9", &unpriced("openai/gpt-9"));
    let mine = "[providers.mine]\nbase_url = 'https://host/v1/'\nkey = 'MINE_KEY'\n";
    model_refused(mine, "mine/gpt-5-mini", &unpriced("mine/gpt-5-mini"));
    let proxy = "[providers.openai]\nbase_url = 'https://proxy/v1'";
    model_refused(proxy, "openai/gpt-5-mini", &unpriced("openai/gpt-5-mini"));
    let priced = format!("{mine}[models.'mine/a/b']\nwindow = 100000\nprice = {{ input = '0.25', output = '2' }}");
    assert_eq!(
        spec(&priced, "mine/a/b"),
        "https://host/v1 a/b [MINE_KEY] window 100000 output 8192 price 250000/250000/250000/2000000"
    );
    assert_eq!(
        spec("", "ollama/qwen3:8b"),
        "http://127.0.0.1:11434/v1 qwen3:8b [] window 32768 output 8192 price 0/0/0/0"
    );
    let dear = "models.'ollama/x'.price = { input = '1', output = '1', cache_read = '0.1', cache_write = '1.25' }";
    assert_eq!(
        spec(dear, "ollama/x"),
        "http://127.0.0.1:11434/v1 x [] window 32768 output 8192 price 1000000/100000/1250000/1000000"
    );
    assert_eq!(spec("", "scripted/demo/a.toml"), { "demo/a.toml scripted [] window 32768 output 8192 price 0/0/0/0" });
    let sized = "models.'scripted/a.toml' = { window = 900, max_output = 9 }";
    assert_eq!(spec(sized, "scripted/a.toml"), { "a.toml scripted [] window 900 output 9 price 0/0/0/0" });
}

#[test]
fn sentences_about_models() {
    model_refused("", "opnai/gpt-5", {
        "there is no provider \"opnai\"; did you mean \"openai\"? Else set providers.opnai.base_url in tiller.toml"
    });
    model_refused("", "acme/large", {
        "there is no provider \"acme\"; known are llamacpp, lmstudio, ollama, openai, scripted, vllm; set \
         providers.acme.base_url in tiller.toml"
    });
    model_refused("[providers.acme]\nkey = 'ACME_KEY'", "acme/large", {
        "there is no provider \"acme\"; known are llamacpp, lmstudio, ollama, openai, scripted, vllm; set \
         providers.acme.base_url in tiller.toml"
    });
    model_refused("models.'ollama/x'.window = 8000", "ollama/x", {
        "ollama/x may give 8192 tokens of output and its window has 8000, which leaves nothing for input; set \
         models.\"ollama/x\".max_output lower or models.\"ollama/x\".window higher in tiller.toml"
    });
    let half = merge("models.'ollama/x'.price.input = '1'", &[], &[]).unwrap();
    assert_eq!(
        half.priced_spec("ollama/x", &known).unwrap_err().to_string(),
        "t.toml, line 1: models.\"ollama/x\".price needs both input and output; write the missing one; nothing was \
         started"
    );
    assert_eq!(
        half.priced_spec("gpt-5", &known).unwrap_err().to_string(),
        "the chosen model: a model is named by its provider and its own name, such as \"openai/gpt-5-mini\"; nothing \
         was started"
    );
}

#[test]
fn files_are_read_with_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiller.toml");
    let read = || read_file(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), "PATH"));
    assert_eq!(read(), Ok(None));
    std::fs::write(&path, "model = 'a/b'").unwrap();
    assert_eq!(read(), Ok(Some("model = 'a/b'".to_string())));
    std::fs::write(&path, "#".repeat(262_145)).unwrap();
    assert_eq!(read(), Err("PATH: it is longer than 262144 bytes; shorten it; nothing was started".to_string()));
    std::fs::write(&path, b"\xff\xfe").unwrap();
    let sentence = "PATH: it can't be read (stream did not contain valid UTF-8); it must be a text file in UTF-8";
    assert_eq!(read(), Err(format!("{sentence}; nothing was started")));
}

#[test]
fn defaults_that_are_written_are_those_in_force() {
    for key in KEYS {
        let is_toml = key.default.starts_with(['"', '[']) || key.default.parse::<u64>().is_ok();
        if !is_toml || key.path.contains(&NAME) {
            continue;
        }
        let settings = merge(&format!("{} = {}", key.path.join("."), key.default), &[], &[]).unwrap();
        assert_eq!((settings.limits(), settings.checks()), (Limits::default(), vec![]), "{:?}", key.path);
        assert_eq!((settings.resume(), settings.instructions()), (Resume::Ask, ""), "{:?}", key.path);
    }
}

#[test]
fn the_commented_file_is_sound_and_has_every_key() {
    let text = std::fs::read_to_string(root().join("assets/tiller.toml")).unwrap();
    let is_prose = |line: &str| line.ends_with(['.', ',']);
    let bare: String = text.lines().map(|line| line.trim_start_matches("# ")).filter(|line| !is_prose(line)).fold(
        String::new(),
        |mut all, line| {
            writeln!(all, "{line}").unwrap();
            all
        },
    );
    let settings = merge(&bare, &[], &[]).unwrap();
    assert_eq!((settings.limits(), settings.checks()), (Limits::default(), vec![]));
    assert!(settings.priced_spec("mine/large", &known).is_ok());
    for key in KEYS {
        let last = key.path.last().unwrap();
        assert!(*last == "cache_write" || bare.contains(&format!("{last} = ")), "{:?} is missing", key.path);
    }
}

#[test]
fn the_document_is_drawn_from_the_tables() {
    let path = root().join("docs/CONFIG.md");
    let drawn = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == drawn,
        "docs/CONFIG.md is not what the tables say; UPDATE_DOCS=1 cargo test --test program config"
    );
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         <!-- Drawn from the tables in src/config/ by tests/program/config.rs; UPDATE_DOCS=1 cargo test --test program config -->\n\n\
         tiller reads `$XDG_CONFIG_HOME/tiller/tiller.toml`, which is `~/.config/tiller/tiller.toml` where nothing else \
         is set. The file may be missing. What the command line says stands above the environment, and that above the \
         file. A value that can't be meant is an error that names its place; it is never skipped, and nothing is \
         started.\n\n\
         A run keeps what it was started with: a changed file changes new runs only. `tiller raise` changes the limits \
         of a run.\n\n\
         ## Keys\n\n`NAME` stands for a name of yours: of a provider, or of a model as `\"provider/model\"` in quotes.\n\n\
         | key | holds | without it | what it does |\n| --- | --- | --- | --- |\n",
    );
    for key in KEYS {
        let cells = [format!("`{}`", key.path.join(".")), key.holds.form().into(), key.default.into(), key.does.into()];
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    }
    text.push_str(
        "\nMoney is written in quotes, as decimal dollars, so that it is exact. Zero is no limit: it is refused, and \
         having none must be said, `\"unlimited\"`.\n\n\
         ## Checks\n\n`run.checks` is a list. A text is a shell line that must exit with status 0. A table is \
         `{ file = PATH }`, there must be such a file or folder; `{ file = PATH, matches = PATTERN }`, the file must \
         match; `{ tool = NAME, arguments = { … } }`, the call must end well; `{ judge = QUESTION }`, a model call of \
         its own must find that it holds; `{ confirm = QUESTION }`, you must say yes (`tiller confirm`). They are \
         made in this order, and the first that fails rejects the claim.\n\n\
         ## Environment\n\n| variable | sets |\n| --- | --- |\n",
    );
    for (name, path) in VARIABLES {
        writeln!(text, "| `{name}` | `{}` |", path.join(".")).unwrap();
    }
    text.push_str(
        "| `TILLER_LOG` | how much is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`; without it `info` |\n\n\
         An empty variable counts as not set.\n\n\
         ## Providers\n\n| name | where | variable of the key |\n| --- | --- | --- |\n",
    );
    for one in PROVIDERS {
        let key = one.key.map_or("none".to_string(), |key| format!("`{key}`"));
        writeln!(text, "| `{}` | `{}` | {key} |", one.name, one.base_url).unwrap();
    }
    text.push_str(
        "| `scripted` | a file, `scripted/PATH` | none |\n\n\
         Any other provider that speaks OpenAI's chat completions needs a `base_url`. Keys are read from the \
         environment and stand in no file, no journal and no log.\n\n\
         ## Prices\n\nA budget can be kept only where the price is known. tiller knows those of common models of \
         OpenAI at OpenAI's own address; a model on this machine costs nothing unless you say otherwise; any other \
         model is refused until `models.\"provider/model\".price` is set. A cache without a price of its own costs what \
         input costs.\n\n\
         ## A file to start from\n\n```toml\n",
    );
    text.push_str(include_str!("../../assets/tiller.toml"));
    text.push_str("```\n");
    text
}
