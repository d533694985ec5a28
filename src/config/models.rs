//! From the name of a model to all that a run must know of it: where it is, which variable holds the key, what it
//! costs. A model that nobody knows the price of is refused, because its budget could not be kept.

use std::collections::BTreeSet;

use crate::config::ConfigError;
use crate::config::Origin;
use crate::config::Settings;
use crate::config::keys::nearest;
use crate::config::keys::split_model;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::money::Price;
use crate::model::http;

/// A provider that needs no configuration.
pub struct BuiltIn {
    /// Its name, before the `/` of a model.
    pub name: &'static str,
    /// Where it is.
    pub base_url: &'static str,
    /// The variable that holds its key.
    pub key: Option<&'static str>,
}

/// The providers that are known without configuration, all of one dialect.
pub const PROVIDERS: &[BuiltIn] = &[
    BuiltIn { name: OPENAI, base_url: "https://api.openai.com/v1", key: Some("OPENAI_API_KEY") },
    BuiltIn { name: "ollama", base_url: "http://127.0.0.1:11434/v1", key: None },
    BuiltIn { name: "llamacpp", base_url: "http://127.0.0.1:8080/v1", key: None },
    BuiltIn { name: "vllm", base_url: "http://127.0.0.1:8000/v1", key: None },
    BuiltIn { name: "lmstudio", base_url: "http://127.0.0.1:1234/v1", key: None },
];

/// The provider whose prices are known.
const OPENAI: &str = "openai";
/// The provider that reads its replies from a file: `scripted/PATH`.
pub(crate) const SCRIPTED: &str = "scripted";

/// What is known of a model without configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it costs.
    pub price: Price,
    /// Its context window, in tokens.
    pub window: u64,
    /// The most output that it gives, in tokens.
    pub max_output: u64,
}

impl Settings {
    /// The same, of a model of which somebody knows what it costs. Errors when nobody does.
    pub fn priced_spec(&self, name: &str, known: &dyn Fn(&str) -> Option<Known>) -> Result<ModelSpec, ConfigError> {
        let spec = self.model_spec(name, known)?;
        if spec.price.is_some() {
            return Ok(spec);
        }
        let problem = format!(
            "nobody knows what {name} costs, so its budget can't be kept; set models.\"{name}\".price in tiller.toml"
        );
        Err(ConfigError { origin: self.model_origin(name), problem })
    }

    /// All that is to be known of a model, `provider/model`. `known` tells what is known of a model of OpenAI by
    /// its name on the wire. Errors when the provider is unknown. The price is nothing when
    /// nobody knows it.
    pub fn model_spec(&self, name: &str, known: &dyn Fn(&str) -> Option<Known>) -> Result<ModelSpec, ConfigError> {
        let fail = |problem: String| ConfigError { origin: self.model_origin(name), problem };
        let (provider, model) = split_model(name).map_err(fail)?;
        if provider == SCRIPTED {
            return self.sized(scripted(name, model), None);
        }
        let built_in = PROVIDERS.iter().find(|one| one.name == provider);
        let (address, key) = self.provided_by(provider);
        let address = address.ok_or_else(|| fail(self.unknown_provider(provider)))?;
        let is_built_in = built_in.is_some_and(|one| one.base_url == address);
        let known = if provider == OPENAI && is_built_in { known(model) } else { None };
        let is_here = http::judged(address).is_ok_and(|url| http::is_loopback(&url));
        let free = is_here.then_some(Price::FREE);
        let price = self.price(name)?.or(free).or(known.map(|one| one.price));
        let spec = ModelSpec {
            name: name.to_string(),
            dialect: Dialect::Openai,
            address: address.to_string(),
            model: model.to_string(),
            key_variable: key.map(ToString::to_string),
            window: limits::WINDOW_TOKENS,
            max_output: limits::OUTPUT_TOKENS,
            most_output: None,
            price,
        };
        self.sized(spec, known)
    }

    /// Whether a provider is set up that is at this address and has its key in this variable. One on this machine that needs
    /// no key counts as set up.
    pub fn is_set_up(&self, address: &str, key: Option<&str>) -> bool {
        let is_here = http::judged(address).is_ok_and(|url| http::is_loopback(&url));
        let mut names = PROVIDERS.iter().map(|one| one.name).chain(self.providers.keys().map(String::as_str));
        (is_here && key.is_none()) || names.any(|name| self.provided_by(name) == (Some(address), key))
    }

    /// Where a provider is, and the variable that holds its key, as far as either is known.
    fn provided_by(&self, name: &str) -> (Option<&str>, Option<&str>) {
        let built_in = PROVIDERS.iter().find(|one| one.name == name);
        let set = self.providers.get(name);
        let address = set.and_then(|one| one.base_url.as_deref()).or(built_in.map(|one| one.base_url));
        (address, set.and_then(|one| one.key.as_deref()).or(built_in.and_then(|one| one.key)))
    }

    /// A model with the sizes that are set for it, else those that are known of it, else its own.
    fn sized(&self, spec: ModelSpec, known: Option<Known>) -> Result<ModelSpec, ConfigError> {
        let name = &spec.name;
        let set = self.models.get(name).copied().unwrap_or_default();
        let window = set.window.or(known.map(|one| one.window)).unwrap_or(spec.window);
        let most = known.map_or(u64::MAX, |one| one.max_output).min(spec.max_output);
        let max_output = set.max_output.unwrap_or(most);
        if max_output >= window {
            let problem = format!(
                "{name} may give {max_output} tokens of output and its window has {window}, which leaves nothing for \
                 input; set models.\"{name}\".max_output lower or models.\"{name}\".window higher in tiller.toml"
            );
            return Err(ConfigError { origin: self.model_origin(name), problem });
        }
        let most_output = known.map(|one| one.max_output);
        Ok(ModelSpec { window, max_output, most_output, ..spec })
    }

    /// Where the name of a model was written, if it is the one that is set.
    fn model_origin(&self, name: &str) -> Origin {
        if self.model() == Some(name) { self.origin(&["model"]) } else { Origin::Chosen }
    }

    fn unknown_provider(&self, provider: &str) -> String {
        let configured = self.providers.keys().map(String::as_str);
        let names: BTreeSet<&str> = PROVIDERS
            .iter()
            .map(|one| one.name)
            .chain([SCRIPTED])
            .chain(configured)
            .filter(|one| *one != provider)
            .collect();
        let hint = match nearest(provider, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"? Else"),
            None => format!("known are {};", names.iter().copied().collect::<Vec<_>>().join(", ")),
        };
        format!("there is no provider \"{provider}\"; {hint} set providers.{provider}.base_url in tiller.toml")
    }

    fn price(&self, name: &str) -> Result<Option<Price>, ConfigError> {
        let set = self.models.get(name).copied().unwrap_or_default();
        if let (Some(input), Some(output)) = (set.input, set.output) {
            let (read, write) = (set.cache_read.unwrap_or(input), set.cache_write.unwrap_or(input));
            return Ok(Some(Price { input, output, cache_read: read, cache_write: write }));
        }
        let parts = [
            ("input", set.input),
            ("output", set.output),
            ("cache_read", set.cache_read),
            ("cache_write", set.cache_write),
        ];
        match parts.iter().find(|(_, price)| price.is_some()) {
            None => Ok(None),
            Some((part, _)) => Err(ConfigError {
                origin: self.origin(&["models", name, "price", part]),
                problem: format!("models.\"{name}\".price needs both input and output; write the missing one"),
            }),
        }
    }
}

fn scripted(name: &str, path: &str) -> ModelSpec {
    ModelSpec {
        name: name.to_string(),
        dialect: Dialect::Scripted,
        address: path.to_string(),
        model: SCRIPTED.to_string(),
        key_variable: None,
        window: limits::WINDOW_TOKENS,
        max_output: limits::OUTPUT_TOKENS,
        most_output: None,
        price: Some(Price::FREE),
    }
}
