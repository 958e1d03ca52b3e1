//! Which task somebody means who wants one cancelled, and what a request changes (contract 6.10).

use super::id::TaskId;
use super::status::Status;

/// Names that are listed when several tasks could be meant.
const LISTED: usize = 5;

/// What a request to cancel means for a task in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is stored, the poll in flight is fenced (invariant C2), and the remote is asked as soon as possible.
    Now,
    /// It was asked before: nothing changes, and an attempt under way goes on.
    Already,
    /// The task has ended: nothing changes.
    TooLate,
    /// Nobody was told of the task yet.
    NotThere,
}

/// Decides about a request to cancel.
pub fn asked(status: Status, was_asked: bool) -> Asked {
    match status {
        Status::Intended => Asked::NotThere,
        _ if status.is_terminal() => Asked::TooLate,
        _ if was_asked => Asked::Already,
        _ => Asked::Now,
    }
}

/// Why no task was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// None has this name, or there is none.
    #[error("no active background task matches")]
    None,
    /// Several could be meant.
    #[error("several active background tasks match: {}", .0.join(", "))]
    Several(Vec<String>),
}

/// The one of the `active` tasks, each with its name, that `wanted` means: its exact id or its name in any case.
/// Without a name the only one.
///
/// # Errors
/// None matches, or several do.
pub fn choose(active: &[(TaskId, String)], wanted: Option<&str>) -> Result<TaskId, NotChosen> {
    let folded = wanted.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let matches: Vec<&(TaskId, String)> = match &folded {
        None => active.iter().collect(),
        Some(wanted) => match active.iter().find(|(id, _)| id.to_string() == *wanted) {
            Some(exact) => vec![exact],
            None => active.iter().filter(|(_, name)| name.trim().to_lowercase() == *wanted).collect(),
        },
    };
    match matches[..] {
        [] => Err(NotChosen::None),
        [(id, _)] => Ok(*id),
        _ => Err(NotChosen::Several(matches.iter().take(LISTED).map(|(_, name)| name.clone()).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_request_for_a_running_task_changes_anything() {
        // Contract 6.10, request.
        for (status, was_asked, means) in [
            (Status::Submitted, false, Asked::Now),
            (Status::Working, false, Asked::Now),
            (Status::InputRequired, false, Asked::Now),
            (Status::Working, true, Asked::Already),
            (Status::Completed, false, Asked::TooLate),
            (Status::Cancelled, true, Asked::TooLate),
            (Status::Unknown, false, Asked::TooLate),
            (Status::Intended, false, Asked::NotThere),
        ] {
            assert_eq!(asked(status, was_asked), means, "{status:?} {was_asked}");
        }
    }

    #[test]
    fn a_task_is_meant_by_its_id_by_its_name_in_any_case_or_by_being_the_only_one() {
        // Contract 6.10, natural-language cancel.
        let task = |number: u8, name: &str| (TaskId([number; 16]), name.to_owned());
        let active = [task(1, "Report"), task(2, "index"), task(3, "INDEX")];
        assert_eq!(choose(&active, Some(&TaskId([2; 16]).to_string())), Ok(TaskId([2; 16])));
        assert_eq!(choose(&active, Some(" rePORT ")), Ok(TaskId([1; 16])));
        assert_eq!(choose(&active, Some("mail")), Err(NotChosen::None));
        let several = choose(&active, Some("index")).unwrap_err();
        assert_eq!(several, NotChosen::Several(vec!["index".to_owned(), "INDEX".to_owned()]));
        assert_eq!(choose(&active[..1], None), Ok(TaskId([1; 16])));
        assert_eq!(choose(&[], None), Err(NotChosen::None));
        let many: Vec<_> = (0..9).map(|number| task(number, "same")).collect();
        let NotChosen::Several(names) = choose(&many, None).unwrap_err() else { panic!("several") };
        assert_eq!(names.len(), 5);
    }
}
