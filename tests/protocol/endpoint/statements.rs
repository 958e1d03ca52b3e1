//! The 68 statements of mcp.md §17, each with the tests that hold it, by name, or with why nothing does.

use std::collections::BTreeSet;
use std::path::Path;

const STATEMENTS: &str = "
| statement | held by |
| --- | --- |
| C1 | a_modern_request_carries_its_own_metadata |
| C2 | headers_mirror_the_body |
| C3 | methods_are_mirrored_by_what_they_are_about |
| C4 | plain_ascii_is_mirrored_as_it_is_and_all_else_encoded |
| C5 | annotated_arguments_are_mirrored_in_order |
| C5 | null_absent_and_nested_arguments_have_no_header |
| C6 | a_tool_with_a_bad_annotation_is_left_out_with_a_warning_and_the_others_stay |
| C7 | a_call_refused_for_its_headers_leads_to_one_list_and_one_retry |
| C8 | a_recognised_modern_error_never_leads_to_initialize |
| C8 | a_refusal_without_a_modern_error_leads_to_initialize |
| C9 | a_refusal_of_both_eras_leads_to_http_sse_on_the_same_url |
| C9 | a_url_of_another_origin_is_refused_and_gets_no_request |
| C10 | a_refused_credential_ends_the_search_and_teaches_no_era |
| C11 | the_era_of_a_stdio_server_is_found |
| C11 | silence_leads_to_initialize |
| C11 | a_refused_revision_is_offered_again_once_with_a_named_one |
| C12 | the_era_is_remembered_and_asked_again_when_it_proves_wrong |
| C13 | the_era_of_an_http_server_is_found |
| C13 | headers_of_the_session_go_on_every_request_and_leave_one_field |
| C14 | a_forgotten_session_is_opened_once_for_all_and_the_calls_go_again |
| C14 | a_session_that_is_forgotten_twice_is_reported |
| C15 | a_session_is_ended_at_the_server_when_it_is_closed |
| C15 | closing_ends_the_session_upstream_once_and_fails_what_is_in_flight |
| C16 | a_stream_with_ids_is_resumed_where_it_broke |
| C16 | a_modern_stream_is_never_resumed |
| C17 | json_and_event_stream_answers_pass_byte_for_byte |
| C17 | comments_unknown_fields_and_empty_events_are_ignored |
| C18 | giving_a_call_up_closes_its_stream_and_says_nothing |
| C18 | a_call_that_is_given_up_is_cancelled_once_by_its_own_id |
| C19 | capabilities_are_added_and_answers_are_parameters |
| C19 | a_question_of_a_modern_server_reaches_its_client_and_only_that_client_answers |
| C20 | a_modern_result_of_an_unknown_type_is_an_error |
| C21 | only_an_answer_of_the_modern_era_makes_a_task_of_a_plain_call |
| C21 | a_task_in_answer_to_anything_but_a_call_is_an_error |
| C22 | a_group_that_ignores_sigterm_is_killed_after_its_grace |
| C22 | the_whole_group_ends_also_after_its_leader_left |
| C23 | framing_and_noise_of_all_kinds_are_accepted |
| C23 | an_endless_line_ends_the_session_after_what_came_before_it |
| C24 | a_child_sees_only_the_environment_it_was_given |
| C25 | — tokens are asked for at the address that is configured; nobody is sent to an authorization page |
| C26 | another_origin_never_sees_the_credentials |
| C26 | a_token_that_was_moved_to_another_row_is_not_read |
| C27 | a_personal_connection_reaches_no_private_network |
| C27 | a_private_address_is_refused_unless_the_operator_lists_it |
| C28 | a_bottomless_schema_is_passed_over_or_refused_but_never_overflows |
| S1 | what_the_modern_era_demands_is_told_by_code |
| S1 | what_a_request_lacks_is_told_by_status_and_code |
| S2 | what_a_request_lacks_is_told_by_status_and_code |
| S3 | what_the_modern_era_demands_is_told_by_code |
| S3 | arguments_that_a_tool_wants_mirrored_are_compared_with_their_headers |
| S4 | what_a_request_lacks_is_told_by_status_and_code |
| S5 | a_request_needs_no_session_and_every_result_says_what_it_is |
| S5 | what_any_server_offers_is_offered_of_all |
| S6 | a_modern_client_reads_kind_identity_and_hints_besides |
| S6 | a_legacy_client_reads_what_a_legacy_server_wrote_byte_for_byte |
| S7 | a_request_needs_no_session_and_every_result_says_what_it_is |
| S8 | other_hosts_and_foreign_origins_are_refused |
| S8 | once_callers_are_told_apart_any_host_is_served_and_foreign_origins_still_are_not |
| S9 | a_request_needs_no_session_and_every_result_says_what_it_is |
| S10 | everything_else_is_refused |
| S11 | progress_comes_with_the_clients_token_and_log_messages_only_when_asked_for |
| S12 | a_client_that_goes_away_cancels_its_call |
| S12 | a_client_cancels_by_name_and_not_by_going_away |
| S13 | a_question_of_a_modern_server_reaches_its_client_and_only_that_client_answers |
| S14 | a_question_of_a_modern_server_reaches_its_client_and_only_that_client_answers |
| S15 | a_question_of_a_modern_server_reaches_its_client_and_only_that_client_answers |
| S16 | a_subscription_is_acknowledged_first_and_names_itself_in_every_message |
| S16 | a_modern_client_hears_what_it_asked_for_and_nothing_else |
| S17 | log_messages_are_told_from_the_level_that_was_asked_for |
| S17 | progress_comes_with_the_clients_token_and_log_messages_only_when_asked_for |
| S18 | what_is_not_there_is_told_in_the_words_of_each_era |
| S19 | a_session_is_opened_used_and_ended |
| S19 | a_session_is_served_by_every_replica_and_its_end_is_its_end_everywhere |
| S20 | a_session_of_one_caller_is_not_there_for_another |
| S21 | every_name_of_a_server_is_shown_once_and_within_the_charset |
| S22 | a_client_without_a_token_is_told_where_they_come_from |
| S22 | a_modern_client_is_told_all_scopes_that_a_use_requires_and_may_come_back_with_them |
| S23 | what_belongs_to_a_hop_goes_no_further_and_all_else_does |
| S23 | secrets_of_a_request_reach_the_headers_that_ask_for_them_and_nothing_else_of_it_goes_on |
| S24 | what_is_no_request_is_refused_by_its_kind |
| S25 | a_task_is_there_at_another_replica_as_soon_as_its_client_hears_of_it |
| S25 | a_modern_server_is_offered_tasks_only_for_a_client_that_takes_them |
| S26 | what_fails_in_a_toolset_is_a_result_that_says_so_and_a_failure_in_the_legacy_era |
| B1 | the_official_suite_finds_nothing_but_what_is_listed |
| B2 | arguments_results_and_errors_pass_byte_for_byte |
| B3 | a_call_goes_on_when_its_answers_come_and_is_answered_twice_but_made_once |
| B4 | everything_asks_at_one_replica_and_is_answered_at_another |
| B4 | a_call_that_waits_at_a_replica_that_is_killed_is_lost_and_never_made_again |
| B5 | a_state_is_good_once_and_for_its_own_caller |
| B6 | a_question_of_a_modern_server_is_asked_on_the_calls_own_stream |
| B7 | a_visit_that_is_required_is_a_question_of_the_modern_era_and_stays_an_error_of_the_other |
| B8 | a_task_of_a_legacy_server_is_driven_by_get_and_update_only |
| B9 | a_wish_for_a_task_is_kept_though_the_server_answers_at_once |
| B10 | whichever_replica_notices_every_client_hears |
| B10 | a_stream_outlives_the_replica_that_holds_what_it_watches |
| B10 | a_modern_servers_lost_stream_is_opened_again_and_the_gap_told_as_one_change |
| B11 | lists_go_on_where_servers_have_more_and_one_that_fails_is_absent |
| B12 | — nothing that a server answered is kept for anybody, and every list is told to be `private` |
| B13 | lists_go_on_where_servers_have_more_and_one_that_fails_is_absent |
| B13 | a_bad_neighbour_hides_nobody_else |
| B14 | a_rolling_restart_fails_no_call_and_leaves_no_session_with_whoever_stopped |
";

/// Each row: the statement, and the test or the reason.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = STATEMENTS.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(statement, _)| statement.starts_with(['C', 'S', 'B']))
}

/// The names of all functions of the tree that are tests, or look like one.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(').map(|(name, _)| name));
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_statement_names_tests_that_exist_or_says_why_there_is_none() {
    let mut found = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for folder in ["crates", "services", "tests"] {
        functions(&root.join(folder), &mut found);
    }
    for (statement, held_by) in rows() {
        match held_by.strip_prefix("— ") {
            Some(reason) => assert!(reason.split(' ').count() > 4, "{statement}: {reason}"),
            None => assert!(found.contains(held_by), "{statement}: there is no test `{held_by}`"),
        }
    }
    let told: BTreeSet<&str> = rows().map(|(statement, _)| statement).collect();
    let all = [("C", 28), ("S", 26), ("B", 14)];
    let all = all.iter().flat_map(|(kind, count)| (1..=*count).map(move |number| format!("{kind}{number}")));
    let missing: Vec<String> = all.filter(|statement| !told.contains(&**statement)).collect();
    assert_eq!((missing, told.len()), (Vec::new(), 68));
}
