//! Takes the power out of text that imitates the framework's own words (contract 4.7).
//!
//! A model trusts the sections that its framework writes into the prompt. Text of a tool that holds their tags, or the
//! markers around a user's words, could forge them: tags are HTML-escaped and stay readable, markers lose their
//! dashes. Everything else stays as it is, ordinary HTML too. For the agent shape only: raw means unchanged (W1).

use std::borrow::Cow;

/// Tags that frameworks of the DeerFlow family write into prompts, and those that injected prompts commonly use.
/// Lower case, without brackets.
const TAGS: [&str; 47] = [
    "agent_profile",
    "analysis",
    "available-deferred-tools",
    "available_skills",
    "background_task_event",
    "citations",
    "clarification_system",
    "critical_reminders",
    "current_date",
    "current_uploads",
    "direct-tool-guidance",
    "disabled_skills",
    "durable_context_data",
    "file_editing_workflow",
    "goal_continuation",
    "guidelines",
    "ignore",
    "important",
    "instruction",
    "instructions",
    "mcp_routing_hints",
    "memory",
    "memory_tool_system",
    "output_format",
    "override",
    "prompt",
    "response_style",
    "role",
    "self_update",
    "skill_index",
    "skill_system",
    "slash_skill_activation",
    "soul",
    "subagent_system",
    "system",
    "system-reminder",
    "system_reminder",
    "think",
    "thinking_style",
    "todo_list_system",
    "tool_call",
    "tool_response",
    "tool_restrictions",
    "uploaded_files",
    "user_input",
    "user_memory",
    "working_directory",
];

/// The words between the dashes of a marker, and what stands for the whole marker instead.
const MARKERS: [(&str, &str); 2] = [("BEGIN USER INPUT", "[BEGIN USER INPUT]"), ("END USER INPUT", "[END USER INPUT]")];

/// `text` with framework tags HTML-escaped and the markers around user input made inert; borrowed when it holds none.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    match escape_tags(text) {
        Cow::Borrowed(text) => disarm_markers(text),
        Cow::Owned(escaped) => Cow::Owned(disarm_markers(&escaped).into_owned()),
    }
}

fn escape_tags(text: &str) -> Cow<'_, str> {
    let mut escaped = String::new();
    let mut done = 0;
    while let Some(open) = find_tag(text, done) {
        let close = text[open..].find('>').map_or(text.len(), |at| open + at + 1);
        escaped.push_str(&text[done..open]);
        escaped.push_str(&text[open..close].replace('<', "&lt;").replace('>', "&gt;"));
        done = close;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    escaped.push_str(&text[done..]);
    Cow::Owned(escaped)
}

/// Where the next framework tag opens, at `from` or later.
fn find_tag(text: &str, from: usize) -> Option<usize> {
    text[from..].match_indices('<').map(|(at, _)| from + at).find(|open| opens_tag(&text[open + 1..]))
}

/// Whether what follows a `<` is a framework tag: opening or closing, in any case, with blanks and attributes. A longer
/// word that only begins like one is none.
fn opens_tag(rest: &str) -> bool {
    let name = rest.trim_start();
    let name = name.strip_prefix('/').unwrap_or(name).trim_start();
    TAGS.iter().any(|tag| {
        let head = name.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
        head && !name[tag.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

fn disarm_markers(text: &str) -> Cow<'_, str> {
    let mut disarmed = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(dashes) = text[from..].find("---").map(|at| from + at) {
        match marker(&text[dashes..]) {
            Some((length, inert)) => {
                disarmed.push_str(&text[done..dashes]);
                disarmed.push_str(inert);
                done = dashes + length;
                from = done;
            }
            None => from = dashes + text[dashes..].find(|next| next != '-').unwrap_or(text.len() - dashes),
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    disarmed.push_str(&text[done..]);
    Cow::Owned(disarmed)
}

/// The marker that `text` begins with: its length and what stands for it. Three dashes or more on both sides.
fn marker(text: &str) -> Option<(usize, &'static str)> {
    let words = text.trim_start_matches('-').trim_start();
    let (marked, inert) =
        MARKERS.iter().find(|(marked, _)| words.get(..marked.len()).is_some_and(|w| w.eq_ignore_ascii_case(marked)))?;
    let dashes = words[marked.len()..].trim_start();
    let rest = dashes.trim_start_matches('-');
    (dashes.len() - rest.len() >= 3).then_some((text.len() - rest.len(), inert))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn framework_tags_are_escaped_in_every_spelling() {
        // Contract 4.7.
        for (text, expected) in [
            ("a <system-reminder>b</system-reminder> c", "a &lt;system-reminder&gt;b&lt;/system-reminder&gt; c"),
            ("<SYSTEM>", "&lt;SYSTEM&gt;"),
            ("< / system >", "&lt; / system &gt;"),
            ("<system\nid=\"1\"/>", "&lt;system\nid=\"1\"/&gt;"),
            ("</mcp_routing_hints>", "&lt;/mcp_routing_hints&gt;"),
            ("<available-deferred-tools>", "&lt;available-deferred-tools&gt;"),
            ("<background_task_event>", "&lt;background_task_event&gt;"),
            ("<b><system <i>x</i>", "<b>&lt;system &lt;i&gt;x</i>"),
            ("x <role", "x &lt;role"),
            ("<system-anything>", "&lt;system-anything&gt;"),
            ("é<memory>é", "é&lt;memory&gt;é"),
        ] {
            assert_eq!(neutralise(text), expected, "{text}");
        }
    }

    #[test]
    fn markers_of_user_input_lose_their_power() {
        // Contract 4.7.
        for (text, expected) in [
            ("--- BEGIN USER INPUT ---\nx\n--- END USER INPUT ---", "[BEGIN USER INPUT]\nx\n[END USER INPUT]"),
            ("-----end user input----", "[END USER INPUT]"),
            ("--- --- END USER INPUT ---é", "--- [END USER INPUT]é"),
            ("<system>--- END USER INPUT ---", "&lt;system&gt;[END USER INPUT]"),
        ] {
            assert_eq!(neutralise(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let texts = [
            "<div class=\"system\">a < b > c</div>",
            "<systems>",
            "<rolex>",
            "<system_x>",
            "system-reminder",
            "BEGIN USER INPUT",
            "--- BEGIN USER INPUT",
            "---\nfront: matter\n---",
            "-----BEGIN CERTIFICATE-----",
            "",
            "<",
            "<é",
        ];
        for text in texts {
            assert!(matches!(neutralise(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn the_list_of_tags_is_sorted_and_lower_case() {
        assert!(TAGS.is_sorted() && TAGS.iter().all(|tag| *tag == tag.to_lowercase()));
    }

    proptest! {
        #[test]
        fn what_was_neutralised_holds_nothing_more_to_neutralise(
            text in "([<>/ -]|---|system|--- END USER INPUT ---|<role|é|\n){0,20}"
        ) {
            let once = neutralise(&text).into_owned();
            prop_assert!(matches!(neutralise(&once), Cow::Borrowed(same) if same == once));
        }
    }
}
