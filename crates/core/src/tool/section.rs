//! Tagged sections of a system prompt: nothing that servers or operators wrote can end one early (contract 9.2, 9.3).

/// `lines`, each ended, between the tags `name`; empty when there is no line.
pub(super) fn section(name: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("<{name}>\n{lines}</{name}>") }
}

/// `text` with `&`, `<` and `>` written as HTML does.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
