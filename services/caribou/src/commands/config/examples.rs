//! The example servers: every documented one, all switched off.

/// The text of `extensions_config.json` as it is written for an operator to begin with.
pub(super) const EXAMPLES: &str = include_str!("extensions_config.example.json");

#[cfg(test)]
mod tests {
    use std::path::Path;

    use caribou_core::config::{Severity, Source, parse};

    use super::*;

    #[test]
    fn every_example_is_sound_and_off() {
        let source = Source { file: Path::new("/x.json"), text: EXAMPLES.as_bytes() };
        let document = parse(&source, &|name| Some(format!("value of {name}"))).unwrap();
        assert_eq!(document.servers.len(), 11);
        for server in &document.servers {
            assert!(!server.config.as_ref().unwrap().enabled, "{}", server.name);
        }
        let complaints = document.problems.iter().filter(|problem| problem.severity != Severity::Note);
        assert_eq!(complaints.map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    }

    #[test]
    fn every_example_would_be_sound_if_it_were_on() {
        let text = EXAMPLES.replace("\"enabled\": false", "\"enabled\": true");
        let document = parse(&Source { file: Path::new("/x.json"), text: text.as_bytes() }, &|_| Some("v".to_owned()));
        assert!(document.unwrap().servers.iter().all(|server| server.config.is_ok()));
    }
}
