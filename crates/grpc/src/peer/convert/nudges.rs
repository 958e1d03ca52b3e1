//! Hints.

use caribou_core::ids::{Scope, ServerName, ThreadId, UserId};
use caribou_ports::peers::{Change, Listed, Nudge};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::nudge_request::About;

/// On its way to a peer.
pub(in crate::peer) fn nudge(nudge: Nudge) -> v1::NudgeRequest {
    let plain = |about: About, subject: String| v1::NudgeRequest { about: about.into(), subject, ..Default::default() };
    let lists = |about: About, listed: Listed| {
        let text = |name: Option<String>| name.unwrap_or_default();
        let subject = text(listed.server.map(|server| server.to_string()));
        v1::NudgeRequest { user: text(listed.owner.map(|owner| owner.to_string())), ..plain(about, subject) }
    };
    match nudge {
        Nudge::Generations => plain(About::Generations, String::new()),
        Nudge::Work => plain(About::Work, String::new()),
        Nudge::Chains => plain(About::Chains, String::new()),
        Nudge::Replicas => plain(About::Replicas, String::new()),
        Nudge::Told(Change::Tools(listed)) => lists(About::Tools, listed),
        Nudge::Told(Change::Prompts(listed)) => lists(About::Prompts, listed),
        Nudge::Told(Change::Resources(listed)) => lists(About::Resources, listed),
        Nudge::Told(Change::Client(session)) => plain(About::Client, session),
        Nudge::Told(Change::Visited(Scope { user, thread }, visit)) => {
            v1::NudgeRequest { user: user.to_string(), thread: thread.to_string(), ..plain(About::Visited, visit) }
        }
    }
}

/// As it came; `None` = a newer replica says something that we have no word for.
pub(in crate::peer) fn nudged(request: v1::NudgeRequest) -> Option<Nudge> {
    let about = request.about();
    let v1::NudgeRequest { subject, user, thread, .. } = request;
    let lists = |subject: String, user: String| Listed {
        server: Some(subject).filter(|server| !server.is_empty()).map(ServerName::new),
        owner: Some(user).filter(|user| !user.is_empty()).map(UserId::new),
    };
    Some(match about {
        About::Generations => Nudge::Generations,
        About::Work => Nudge::Work,
        About::Chains => Nudge::Chains,
        About::Replicas => Nudge::Replicas,
        About::Tools => Nudge::Told(Change::Tools(lists(subject, user))),
        About::Prompts => Nudge::Told(Change::Prompts(lists(subject, user))),
        About::Resources => Nudge::Told(Change::Resources(lists(subject, user))),
        About::Client => Nudge::Told(Change::Client(subject)),
        About::Visited => {
            let scope = Scope { user: UserId::new(user), thread: ThreadId::new(thread) };
            Nudge::Told(Change::Visited(scope, subject))
        }
        About::Unspecified => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_comes_back_as_it_went() {
        let own = Listed { server: None, owner: Some(UserId::new("ann")) };
        let visited = Change::Visited(Scope::new(Some("ann"), Some("t")), "v".to_owned());
        let told = [
            Change::Tools(Listed::of("s".into())),
            Change::Prompts(own.clone()),
            Change::Resources(Listed { server: Some("s".into()), ..own }),
            Change::Client("c".to_owned()),
            visited,
        ];
        let plain = [Nudge::Generations, Nudge::Work, Nudge::Chains, Nudge::Replicas];
        let all = plain.into_iter().chain(told.map(Nudge::Told));
        for hint in all {
            assert_eq!(nudged(nudge(hint.clone())), Some(hint));
        }
        assert_eq!(nudged(v1::NudgeRequest::default()), None);
    }
}
