//! `roundtable config`: the settings in force without a scenario, and the origin of each. Keys are
//! never shown.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::args::Global;
use super::effective::EffectiveSetting;
use super::exit::Exit;
use super::streams::{StreamStyle, print_message, refuse};
use super::{effective, streams};
use crate::base::refused::Refused;
use crate::base::time::millis;
use crate::base::visible::visible;
use crate::host::config;
use crate::host::config::ConfigFile;
use crate::log::event::safe_json;
use crate::model::endpoint;
use crate::model::endpoint::{EndpointError, SettingOrigin, WithOrigin};
use crate::model::prices::PriceTable;
use crate::scenario::config::{ESCAPE_TIMEOUT, NotifyBy};
use crate::screen::keymap;
use crate::screen::keymap::{BINDINGS, Binding};
use crate::words::format::count_noun;
use crate::words::measure::{columns, padded, wrap};
use crate::words::styled::StyleRole;

/// Arguments of `roundtable config`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Print only the path of the configuration file, whether it exists or not
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub path: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The same as --json, spelled as in `run`
    #[arg(long, value_enum, hide = true, conflicts_with = "json")]
    pub format: Option<ConfigFormat>,
}

/// Output format of `roundtable config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigFormat {
    /// Human-readable
    Text,
    /// JSON, for programs
    Json,
}

/// Widths in columns: a setting's name, its value, a whole line.
const NAME: usize = 18;
const VALUE: usize = 38;
const WIDTH: usize = 80;

/// Prints the settings, or only the path of the file. An invalid file is refused.
pub fn run(args: &ConfigArgs, global: &Global, file: &ConfigFile, paint: &StreamStyle) -> Exit {
    let Some(path) = &file.path else {
        let why = Refused::new("no home directory, so there is no configuration file");
        return refuse(&why.help("set HOME"), Exit::Stopped);
    };
    let path = path.display().to_string();
    if args.path {
        return streams::print(&format!("{}\n", visible(&path)), Exit::Ok);
    }
    for line in file.warnings.iter().chain(&file.errors) {
        print_message(&visible(line));
    }
    if file.failed() {
        return Exit::Usage;
    }
    let found = endpoint::find_here(config::endpoint_defaults());
    let report = Report {
        path,
        exists: file.exists,
        model: match &found {
            Ok(endpoint) => {
                let mut rows = effective::endpoint(endpoint);
                rows.push(effective::timeout(None, endpoint));
                rows.push(effective::price(None, endpoint, &file.config));
                rows
            }
            Err(_) => Vec::new(),
        },
        no_endpoint: found.err(),
        tuning: effective::tuning(None, &file.config.model),
        ui: ui(global),
        keys: keys(),
        prices: prices(file),
    };
    let json = args.json || args.format == Some(ConfigFormat::Json);
    let text = if json {
        safe_json::pretty(&report.json(file)).map(|json| json + "\n").unwrap_or_default()
    } else {
        report.text(paint)
    };
    streams::print(&text, Exit::Ok)
}

/// The contents of the report.
struct Report {
    path: String,
    exists: bool,
    model: Vec<EffectiveSetting>,
    /// Why no live model can be called.
    no_endpoint: Option<EndpointError>,
    tuning: Vec<EffectiveSetting>,
    ui: Vec<EffectiveSetting>,
    keys: Vec<EffectiveSetting>,
    prices: Vec<EffectiveSetting>,
}

/// The display settings.
fn ui(global: &Global) -> Vec<EffectiveSetting> {
    let theme = global.theme_from();
    let (notify, origin) = match global.configured.notify {
        Some(notify) => (notify, SettingOrigin::Config),
        None => (NotifyBy::default(), SettingOrigin::Default),
    };
    let (escape, escape_from) = match global.configured.escape {
        Some(escape) => (escape, SettingOrigin::Config),
        None => (ESCAPE_TIMEOUT, SettingOrigin::Default),
    };
    let escape_ms = millis(escape);
    let switch = |key: &str, switch: WithOrigin<bool>| {
        EffectiveSetting::new(
            key,
            switch.value,
            if switch.value { "yes" } else { "no" },
            switch.origin,
        )
    };
    vec![
        EffectiveSetting::new("theme", theme.value.as_str(), &theme.value, theme.origin),
        switch("ascii", global.ascii_from()),
        switch("animation", global.animation_from()),
        switch("plain", global.plain_from()),
        switch("title", global.title_from()),
        EffectiveSetting::new("notify", notify.word(), notify.word(), origin),
        EffectiveSetting::new("escape_ms", escape_ms, escape_ms.to_string(), escape_from),
    ]
}

/// The keys of each action, in the order of the binding table.
fn keys() -> Vec<EffectiveSetting> {
    let keymap = keymap::in_use();
    let row = |row: &Binding| {
        let action = row.action;
        let keys: Vec<String> = keymap.keys(action).iter().map(|key| key.written()).collect();
        let text = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        let origin = match keymap.is_configured(action) {
            true => SettingOrigin::Config,
            false => SettingOrigin::Default,
        };
        EffectiveSetting::new(action.name(), keys, text, origin)
    };
    BINDINGS.iter().map(row).collect()
}

/// The prices from the configuration file.
fn prices(file: &ConfigFile) -> Vec<EffectiveSetting> {
    let row = |model: &str, price| {
        EffectiveSetting::new(
            model,
            effective::json_of(price),
            effective::price_text(price),
            SettingOrigin::Config,
        )
    };
    file.config.prices.iter().map(|it| row(&it.model, &it.price)).collect()
}

impl Report {
    fn text(&self, paint: &StreamStyle) -> String {
        let mut out = format!("configuration  {}\n", visible(&self.path));
        if !self.exists {
            out += "               the file does not exist yet\n";
        }
        let section = |name: &str| format!("\n{}\n", paint.role(StyleRole::Strong, name));
        out += &section("model");
        if let Some(error) = &self.no_endpoint {
            let (first, advice) = (error.to_string(), error.advice());
            for (at, line) in wrap(&visible(&first), WIDTH - NAME - 2).iter().enumerate() {
                let name = if at == 0 { "endpoint" } else { "" };
                out += &format!("  {}{line}\n", padded(name, NAME));
            }
            for line in wrap(&visible(&advice), WIDTH - NAME - 2) {
                out += &format!("  {}{}\n", " ".repeat(NAME), paint.role(StyleRole::Dim, &line));
            }
        }
        let rows = |rows: &[EffectiveSetting]| -> String {
            rows.iter().map(|it| line(it, paint)).collect()
        };
        out += &rows(&self.model);
        out += &rows(&self.tuning);
        out += &section("ui");
        out += &rows(&self.ui);
        out += &section("prices, in US dollars per million tokens");
        out += &rows(&self.prices);
        let table = PriceTable::shipped();
        let count = count_noun(table.len() as u64, "model");
        let text = format!("table of {}: {count}, from {}", table.date, table.source);
        for line in wrap(&text, WIDTH - 2) {
            out += &format!("  {}\n", paint.role(StyleRole::Dim, &line));
        }
        out += &section("keys");
        out += &rows(&self.keys);
        out
    }

    fn json(&self, file: &ConfigFile) -> Value {
        let table = PriceTable::shipped();
        let mut model = object(self.model.iter().chain(&self.tuning));
        if let Some(error) = &self.no_endpoint {
            model.insert("missing".to_owned(), format!("{error}. {}", error.advice()).into());
        }
        json!({
            "path": self.path,
            "exists": self.exists,
            "warnings": file.warnings,
            "model": model,
            "ui": object(&self.ui),
            "keys": object(&self.keys),
            "prices": object(&self.prices),
            "price_table": { "date": table.date, "source": table.source, "models": table.len() },
        })
    }
}

fn object<'a>(rows: impl IntoIterator<Item = &'a EffectiveSetting>) -> Map<String, Value> {
    let entry = |row: &EffectiveSetting| {
        let value = json!({ "value": row.value, "from": effective::origin_id(row.origin) });
        (row.key.clone(), value)
    };
    rows.into_iter().map(entry).collect()
}

/// A setting on one line, or on two if its value is long.
fn line(row: &EffectiveSetting, paint: &StreamStyle) -> String {
    let name = visible(&row.key);
    let gap = " ".repeat(NAME.saturating_sub(columns(&name)).max(1));
    let origin = paint.role(StyleRole::Dim, &row.from);
    let taken = columns(&row.text) + columns(&name).saturating_sub(NAME - 1);
    if taken < VALUE {
        let rest = " ".repeat(VALUE - taken);
        return format!("  {name}{gap}{}{rest}{origin}\n", row.text);
    }
    let below = " ".repeat(2 + NAME + VALUE);
    format!("  {name}{gap}{}\n{below}{origin}\n", row.text)
}
