//! The environment variables that the program reads: for the manual page and the documents.

use crate::llm::endpoint::Provider;

/// A variable, and what it does, in Markdown.
pub type VariableRow = (&'static str, String);

/// Every variable, in the order in which a reader needs them.
pub fn variables() -> Vec<VariableRow> {
    let mut rows = Vec::new();
    for provider in Provider::ALL {
        let word = provider.word();
        // A server of one's own usually has no key.
        let optional = if provider == Provider::Ollama { ", if it needs one" } else { "" };
        rows.push((provider.key_name(), format!("the key of `{word}`{optional}")));
        let url = provider.base_url();
        rows.push((
            provider.address_name(),
            format!("another address of `{word}`; default: `{url}`"),
        ));
    }
    let fixed = [
        ("OPENAI_MODEL", "the model of `openai`, where the scenario names none"),
        ("OPENAI_TIMEOUT_SECONDS", "timeout of one attempt of a live model call, in seconds"),
        (
            "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
            "proxies (`http://` or `https://`), also in lower case; used only with `--proxy env`, which \
             refuses values that it cannot use",
        ),
        (
            "ROUNDTABLE_LOG",
            "filter of the log: `error`, `warn`, `info`, `debug`, `trace`, `off`, or by target",
        ),
        ("XDG_CONFIG_HOME", "folder of the configuration; default: `~/.config`"),
        (
            "LC_ALL, LC_CTYPE, LANG",
            "without UTF-8 in it, the dashboard draws with ASCII characters",
        ),
        ("XDG_STATE_HOME", "folder of kept runs and of the log; default: `~/.local/state`"),
        (
            "ROUNDTABLE_THEME",
            "the theme, where `--theme` names none: `auto`, a shipped one, or a theme file",
        ),
        ("ROUNDTABLE_NATS_USER, ROUNDTABLE_NATS_PASSWORD", "the login at the servers of a cluster"),
        (
            "ROUNDTABLE_NATS_TOKEN, ROUNDTABLE_NATS_NKEY, ROUNDTABLE_NATS_CREDS",
            "other logins: a token, the seed of an nkey, or a file of credentials",
        ),
        ("USER, LOGNAME", "the name that a cluster shows for what is sent from here"),
        ("NO_COLOR", "set to anything: no colours"),
        ("TERM, COLORTERM", "how many colours the terminal has; `TERM=dumb`: no dashboard"),
        ("COLUMNS, LINES", "the size of a terminal that reports none; default: 80 x 24"),
        ("PAGER", "the pager for raw JSON in the dashboard; default: `less`, else `more`"),
        ("VISUAL, EDITOR", "the editor for scenario files; default: `vi`"),
        (
            "TMUX, STY, SSH_TTY, SSH_CONNECTION, WT_SESSION",
            "what the terminal runs in: how text is copied, and what `doctor` says",
        ),
    ];
    rows.extend(fixed.map(|(name, what)| (name, what.to_owned())));
    rows
}
