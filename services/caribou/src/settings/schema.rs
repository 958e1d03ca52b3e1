//! The published JSON Schema of `config.yaml`.
//!
//! It is made from the types, so it cannot say anything else than what is accepted; the committed copy is checked by
//! a test.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

use super::Settings;

/// The schema (draft 2020-12), without references, so that a path can be followed in it.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.transforms.push(Box::new(RecursiveTransform(unwrap_lines)));
    });
    settings.into_generator().into_root_schema_for::<Settings>()
}

/// The doc comments behind descriptions are wrapped for the width of our source.
fn unwrap_lines(schema: &mut Schema) {
    if let Some(serde_json::Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// The schema as it is printed and committed.
pub fn schema_text() -> String {
    format!("{:#}\n", schema().as_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../config.schema.json");
        assert!(committed == schema_text(), "run: caribou config schema > services/caribou/config.schema.json");
    }
}
