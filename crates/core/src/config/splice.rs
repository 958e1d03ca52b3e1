//! Switching one server on or off inside the text of the document, leaving every other byte alone (contract 2.2).
//!
//! Owns where the value stands and how a missing key is laid out: behind the last key, in the layout of that key. The
//! byte-order mark, line ends, indent and the order of keys stay, and no `type` is written. Whether the server may be
//! switched on is judged by the caller.

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;

use super::stored::SERVER_MAPS;
use super::{Problem, Source, json_text};

const ENABLED: &str = "enabled";

/// The text with `enabled` of `server` set; `None` when there is no such server, or it is no object.
///
/// # Errors
/// The text is not UTF-8 or too large; anything else that is wrong with it was refused before.
pub(super) fn with_enabled(source: &Source<'_>, server: &str, enabled: bool) -> Result<Option<Vec<u8>>, Vec<Problem>> {
    let text = json_text::decode(source).map_err(|problem| vec![problem])?;
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
    let edit = parsed
        .ok()
        .and_then(|parsed| parsed.value)
        .and_then(|root| server_object(&root, server).map(|server| edit(text, server, enabled)));
    let Some((start, end, value)) = edit else { return Ok(None) };
    let mark = source.text.len() - text.len();
    let (before, after) = (&source.text[..mark + start], &source.text[mark + end..]);
    Ok(Some([before, value.as_bytes(), after].concat()))
}

fn server_object<'a, 't>(root: &'a Ast<'t>, server: &str) -> Option<&'a Object<'t>> {
    let Ast::Object(root) = root else { return None };
    let servers = SERVER_MAPS.iter().find_map(|name| property(root, name))?;
    let Ast::Object(servers) = &servers.value else { return None };
    match &property(servers, server)?.value {
        Ast::Object(server) => Some(server),
        _ => None,
    }
}

fn property<'a, 't>(object: &'a Object<'t>, key: &str) -> Option<&'a ObjectProp<'t>> {
    object.properties.iter().find(|property| property.name.as_str() == key)
}

/// What to put where: start and end of what goes, and the text that comes.
fn edit(text: &str, server: &Object<'_>, enabled: bool) -> (usize, usize, String) {
    if let Some(property) = property(server, ENABLED) {
        let range = property.value.range();
        return (range.start, range.end, enabled.to_string());
    }
    let Some(last) = server.properties.last() else {
        let at = server.range.start + 1;
        return (at, at, format!("\"{ENABLED}\": {enabled}"));
    };
    let colon = &text[last.name.range().end..last.value.range().start];
    let key_at = last.name.range().start;
    let before = text[..key_at].trim_end_matches([' ', '\t', '\r', '\n']);
    let gap = match &text[before.len()..key_at] {
        // A lone key right behind its brace says nothing about the gap behind a comma.
        "" if server.properties.len() == 1 => colon.trim_start_matches(':'),
        gap => gap,
    };
    let at = last.value.range().end;
    (at, at, format!(",{gap}\"{ENABLED}\"{colon}{enabled}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn spliced(text: &str, enabled: bool) -> Option<String> {
        let source = Source { file: Path::new("x"), text: text.as_bytes() };
        with_enabled(&source, "a", enabled).unwrap().map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn only_the_value_changes_if_it_is_there() {
        // Contract 2.2, PATCH.
        let text = "\u{feff}{\r\n\t\"mcpServers\" : {\"b\":{\"enabled\":true},\r\n\"a\":{\"transport\":\"http\", \"enabled\" : \"$ON\" , \"n\":1.0}}, \"é\":1e2 }\r\n";
        assert_eq!(spliced(text, false), Some(text.replace("\"$ON\"", "false")));
        assert_eq!(spliced(text, true), Some(text.replace("\"$ON\"", "true")));
        let alias = r#"{"mcp_servers": {"\u0061": {"enabled": false}}}"#;
        assert_eq!(spliced(alias, true), Some(alias.replace("false", "true")));
    }

    #[test]
    fn a_missing_key_is_laid_out_like_the_one_before_it() {
        // Contract 2.2, PATCH.
        for (before, after) in [
            ("{}", r#"{"enabled": false}"#),
            ("{ }", r#"{"enabled": false }"#),
            (r#"{"x":1}"#, r#"{"x":1,"enabled":false}"#),
            (r#"{"x": 1}"#, r#"{"x": 1, "enabled": false}"#),
            (r#"{ "x": 1, "y": [2] }"#, r#"{ "x": 1, "y": [2], "enabled": false }"#),
            ("{\r\n\t\"x\": {\r\n\t}\r\n}", "{\r\n\t\"x\": {\r\n\t},\r\n\t\"enabled\": false\r\n}"),
        ] {
            let document = |server: &str| format!("{{\"mcpServers\": {{\"a\": {server}, \"b\": {{}}}}}}");
            assert_eq!(spliced(&document(before), false), Some(document(after)));
        }
    }

    #[test]
    fn what_is_no_server_is_not_found() {
        // Contract 2.2, PATCH, 404.
        for text in ["{}", r#"{"mcpServers": {"b": {}}}"#, r#"{"mcpServers": {"a": "x"}}"#, "[]", ""] {
            assert_eq!(spliced(text, false), None, "{text}");
        }
    }
}
