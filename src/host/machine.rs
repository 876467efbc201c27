//! The names of this machine and its user, as other machines see them.

/// A name that may be a part of an address: other characters become `-`.
fn plain(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.chars().map(|c| if fits(c) { c } else { '-' }).take(40).collect()
}

/// Name of this machine.
pub fn machine_name() -> String {
    #[cfg(unix)]
    let found = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let found = String::new();
    let short = found.split('.').next().unwrap_or_default();
    if short.is_empty() { "machine".to_owned() } else { plain(short) }
}

/// A name of this process that no other process of this machine has.
pub fn process_name() -> String {
    format!("{}-{}", machine_name(), std::process::id())
}

/// Who works here: the user and the machine.
pub fn user_name() -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|it| std::env::var(it).ok());
    let user = user.filter(|user| !user.trim().is_empty());
    format!("{}@{}", plain(&user.unwrap_or_else(|| "user".to_owned())), machine_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_character_that_an_address_cannot_have() {
        assert_eq!(plain("Ann O'Neil.local"), "Ann-O-Neil-local");
        assert_eq!(plain(&"x".repeat(99)).len(), 40);
        assert!(process_name().ends_with(&std::process::id().to_string()));
        assert!(user_name().contains('@'));
    }
}
