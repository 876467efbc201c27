//! The workflow commands of GitHub Actions: lines of a log that begin with `::`. What a model, a
//! tool or a file says never becomes one.

/// An annotation: an error at a line of a file.
pub fn error(file: Option<&str>, line: Option<usize>, title: &str, message: &str) -> String {
    let mut properties = Vec::new();
    if let Some(file) = file {
        properties.push(format!("file={}", property(file)));
    }
    if let Some(line) = line {
        properties.push(format!("line={line}"));
    }
    properties.push(format!("title={}", property(title)));
    format!("::error {}::{}\n", properties.join(","), data(message))
}

/// The start of a group of lines that can be folded.
pub fn group(title: &str) -> String {
    format!("::group::{}\n", data(title))
}

/// The end of a group.
pub const END_OF_GROUP: &str = "::endgroup::\n";

/// A text of which no line is a command. The runner ignores blanks before `::`, and finds the older
/// form, `##[`, anywhere in a line.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\r']) {
        let start = line.len() - line.trim_start().len();
        if line[start..].starts_with("::") {
            out.push_str(&line[..start]);
            out.push('\\');
            out.push_str(&line[start..].replace("##[", "##\\["));
        } else {
            out.push_str(&line.replace("##[", "##\\["));
        }
    }
    out
}

/// The text of a command in one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_is_a_command() {
        for (text, safe) in [
            ("::error::x", "\\::error::x"),
            ("a\n  ::set-env name=A::b\n", "a\n  \\::set-env name=A::b\n"),
            ("a\r::group::", "a\r\\::group::"),
            ("\u{a0}::x", "\u{a0}\\::x"),
            ("say ##[error]x", "say ##\\[error]x"),
            ("::##[a", "\\::##\\[a"),
            ("a::b : :", "a::b : :"),
        ] {
            assert_eq!(harmless(text), safe);
        }
    }

    #[test]
    fn an_annotation_is_one_line_whatever_it_says() {
        let line = error(Some("a,b:c.toml"), Some(3), "x", "50 %\r\n::error::y");
        assert_eq!(line, "::error file=a%2Cb%3Ac.toml,line=3,title=x::50 %25%0D%0A::error::y\n");
        assert_eq!(error(None, None, "x", "y"), "::error title=x::y\n");
        assert_eq!(group("a\nb"), "::group::a%0Ab\n");
    }
}
