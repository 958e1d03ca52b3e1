//! The settings of tasks (contract 6.1): their defaults, and that a value out of range is named with its range.

use caribou_tests::Setup;
use serde_json::Value;

use super::stand::mcp_tasks;

/// Each setting with its default, its least and its greatest value (contract 6.1; the last one of architecture.md §10).
const ROWS: [(&str, u64, u64, u64); 9] = [
    ("poll_interval_seconds", 5, 1, 300),
    ("lease_seconds", 120, 5, 3_600),
    ("max_concurrent_polls", 8, 1, 64),
    ("max_poll_backoff_seconds", 300, 1, 3_600),
    ("input_required_poll_interval_seconds", 60, 5, 3_600),
    ("tracking_degraded_after_errors", 3, 1, 100),
    ("max_result_bytes", 65_536, 1_024, 10_485_760),
    ("result_preview_max_chars", 2_000, 64, 100_000),
    ("max_status_bytes", 67_108_864, 65_536, 1_073_741_824),
];

/// What `caribou check` says of these settings, and whether it is content.
async fn checked(yaml: &str) -> (bool, String) {
    let setup = Setup::new();
    let file = setup.home().write("config.yaml", yaml);
    let output = setup.command(&["check", "--config"]).arg(file).output().await.unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), told)
}

fn all(value: impl Fn(&(&str, u64, u64, u64)) -> String) -> String {
    let settings: Vec<String> = ROWS.iter().map(|row| format!("{}: {}", row.0, value(row))).collect();
    mcp_tasks(&settings.join(", "))
}

#[tokio::test]
async fn the_ends_of_each_range_are_taken_and_what_lies_beyond_is_named_with_its_range() {
    // Contract 6.1, min and max.
    for content in [all(|row| row.2.to_string()), all(|row| row.3.to_string())] {
        let (is_content, told) = checked(&content).await;
        assert!(is_content, "{told}");
    }
    for beyond in [all(|row| (row.2 - 1).to_string()), all(|row| (row.3 + 1).to_string()), all(|_| "many".to_owned())] {
        let (is_content, told) = checked(&beyond).await;
        assert!(!is_content, "{told}");
        let (name, _, _, _) = ROWS[0];
        assert!(told.contains(name), "{told}");
    }
    for (name, _, least, most) in ROWS {
        for value in [least - 1, most + 1] {
            let (is_content, told) = checked(&mcp_tasks(&format!("{name}: {value}"))).await;
            assert!(!is_content, "{name}: {value}: {told}");
            for word in [name, &least.to_string(), &most.to_string()] {
                assert!(told.contains(word), "{word} of {name} is not in {told}");
            }
        }
    }
}

#[tokio::test]
async fn the_defaults_are_written_where_the_ranges_are() {
    // Contract 6.1, default.
    let output = Setup::new().command(&["config", "schema"]).output().await.unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tasks = &schema["properties"]["mcp_tasks"]["properties"];
    for (name, default, least, most) in ROWS {
        let one = &tasks[name];
        let numbers = [&one["default"], &one["minimum"], &one["maximum"]].map(Value::as_u64);
        assert_eq!(numbers, [default, least, most].map(Some), "{name}: {one}");
    }
    assert!(tasks["enabled"]["default"].is_null(), "on when there is a database");
    assert_eq!(tasks["missing_tool"]["default"], "fail_all");
}
