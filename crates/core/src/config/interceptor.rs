//! Entries of `mcpInterceptors` (contract 1.1, 8.6; architecture.md §2, §10).
//!
//! Owns what an entry may be and by which name it is spoken of. Whether a built-in one of that name exists is known
//! only where they are made. An entry never fails the load: what cannot be one is warned about and skipped, and a
//! wrong part of one leaves it standing, since an interceptor may be there to keep calls back. A Python path is an
//! error that costs nothing by itself; [`Document::accept`] says what becomes of it.

use std::fmt;
use std::time::Duration;

use super::fields::{Field, Fields};
use super::web_address;
use super::{Document, Problem, Severity};
use crate::bounds;
use crate::masker::Masker;

const BUILTIN: &str = "builtin:";

/// One entry. Written as a string, or as an object that says more: `{"use": "…", "secrets": ["…"],
/// "timeout_seconds": 5}`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InterceptorEntry {
    /// `builtin:NAME`, `grpc://…`, `grpcs://…`, `http://…` or `https://…`.
    pub target: String,
    /// Keys of the request's secrets that it is shown; none unless listed.
    pub secrets: Vec<String>,
    /// How long it may take to answer; `None` = `bounds::INTERCEPTOR_ANSWER`.
    pub timeout: Option<Duration>,
}

impl fmt::Debug for InterceptorEntry {
    /// An address may hold a login or a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterceptorEntry").field("target", &self.name()).finish_non_exhaustive()
    }
}

/// What an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterceptorTarget<'e> {
    /// One that is part of the program, by its name.
    Builtin(&'e str),
    /// A gRPC service.
    Grpc {
        /// Host and port.
        authority: &'e str,
        /// Whether over TLS (`grpcs`).
        tls: bool,
    },
    /// An HTTP service: its address.
    Http(&'e str),
    /// `module:variable`, which only a Python program can run.
    Python,
}

impl InterceptorEntry {
    /// The entry that is nothing but this text.
    pub fn of(target: impl Into<String>) -> Self {
        Self { target: target.into(), ..Self::default() }
    }

    /// What it names; `None` = nothing that could be an interceptor.
    pub fn names(&self) -> Option<InterceptorTarget<'_>> {
        named(&self.target)
    }

    /// How long it may take to answer.
    pub fn answer_within(&self) -> Duration {
        self.timeout.unwrap_or(bounds::INTERCEPTOR_ANSWER)
    }

    /// What keeps the credentials of its address out of messages (invariant O3).
    pub fn masker(&self) -> Masker {
        Masker::new(web_address::secrets(&self.target))
    }

    /// What it is called towards people: its target, without the login, the query and the keys of an address.
    pub fn name(&self) -> String {
        match self.names() {
            Some(InterceptorTarget::Http(address)) => {
                self.masker().mask(&web_address::without_secrets(address).unwrap_or_default())
            }
            Some(_) => self.target.clone(),
            None => "(unknown)".to_owned(),
        }
    }
}

fn named(target: &str) -> Option<InterceptorTarget<'_>> {
    let authority = |rest: &'_ str| {
        let host = rest.rsplit_once(':').filter(|_| !rest.ends_with(']')).map_or(rest, |(host, _)| host);
        !host.is_empty()
            && !rest.contains(['/', '?', '#', '@', '\\'])
            && web_address::is_http(&format!("http://{rest}"))
    };
    let grpc = |scheme: &str, tls| {
        let authority_of = target.strip_prefix(scheme)?;
        let rest = authority_of.strip_suffix('/').unwrap_or(authority_of);
        authority(rest).then_some(InterceptorTarget::Grpc { authority: rest, tls })
    };
    if let Some(name) = target.strip_prefix(BUILTIN) {
        return (!name.is_empty()).then_some(InterceptorTarget::Builtin(name));
    }
    if target.contains("://") {
        let http = || web_address::is_http(target).then_some(InterceptorTarget::Http(target));
        return grpc("grpc://", false).or_else(|| grpc("grpcs://", true)).or_else(http);
    }
    let (module, variable) = target.split_once(':')?;
    let identifier = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    (module.split('.').all(identifier) && variable.split('.').all(identifier)).then_some(InterceptorTarget::Python)
}

/// What is done about entries that only a Python program can run; the setting `interceptors.unsupported`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsupportedInterceptors {
    /// The document is refused: whoever wrote it counts on them.
    #[default]
    Refuse,
    /// They are warned about and left out.
    Skip,
}

impl Document {
    /// The document as it is served, its Python interceptors judged.
    ///
    /// # Errors
    /// All its problems, when it has such interceptors and they are to be refused.
    pub fn accept(mut self, unsupported: UnsupportedInterceptors) -> Result<Self, Vec<Problem>> {
        if self.unsupported.is_empty() {
            return Ok(self);
        }
        if unsupported == UnsupportedInterceptors::Refuse {
            return Err(self.problems);
        }
        for problem in self.problems.iter_mut().filter(|problem| self.unsupported.contains(&problem.path)) {
            problem.severity = Severity::Warning;
            "skipped: a Python path, which Caribou cannot run".clone_into(&mut problem.what);
        }
        Ok(self)
    }
}

/// The interceptors of a document, and the paths of those that only Python can run.
pub(super) fn read(root: &Fields<'_>) -> (Vec<InterceptorEntry>, Vec<String>) {
    let (mut entries, mut unsupported) = (Vec::new(), Vec::new());
    let Some(field) = root.get_set("mcpInterceptors") else { return (entries, unsupported) };
    let fields = match field.as_list() {
        Some(fields) => fields.collect(),
        None => vec![field],
    };
    for field in fields {
        let Some((target, entry)) = read_entry(&field) else { continue };
        match entry.names() {
            Some(InterceptorTarget::Python) => {
                target.error(
                    "is a Python path, which Caribou cannot run",
                    "run the interceptor as a service and write \"grpc://host:port\" or \"http://host:port/path\", or \
                     build it in and write \"builtin:NAME\"; the setting interceptors.unsupported: skip goes on without it",
                );
                unsupported.push(target.path);
            }
            Some(_) => entries.push(entry),
            None => skipped(&target),
        }
    }
    (entries, unsupported)
}

/// One entry, and the place of its target.
fn read_entry<'a>(field: &Field<'a>) -> Option<(Field<'a>, InterceptorEntry)> {
    if let Some(text) = field.as_text() {
        return Some((field.clone(), InterceptorEntry::of(text.value.trim())));
    }
    let target = field.as_object().and_then(|fields| Some((fields.get("use")?, fields)));
    let Some((target, fields)) = target else {
        skipped(field);
        return None;
    };
    let Some(text) = target.as_text() else {
        skipped(&target);
        return None;
    };
    fields.note_extras(&["use", "secrets", "timeout_seconds"]);
    let entry = InterceptorEntry {
        secrets: secrets(&fields),
        timeout: timeout(&fields),
        ..InterceptorEntry::of(text.value.trim())
    };
    Some((target, entry))
}

fn skipped(field: &Field<'_>) {
    field.warn(
        "is not the name of an interceptor: skipped",
        "write \"builtin:NAME\", \"grpc://host:port\", \"http://host:port/path\", or an object with one of them as \"use\"",
    );
}

fn secrets(fields: &Fields<'_>) -> Vec<String> {
    let Some(field) = fields.get_set("secrets") else { return Vec::new() };
    let Some(keys) = field.as_list() else {
        field.warn("must be a list of keys: none is shown", "write it as [\"key\"]");
        return Vec::new();
    };
    let key = |key: Field<'_>| {
        let text = key.as_text().map(|text| text.value.clone()).filter(|text| !text.trim().is_empty());
        if text.is_none() {
            key.warn("must be a key of the request's secrets: left out", "write it in double quotes");
        }
        text
    };
    keys.filter_map(key).collect()
}

fn timeout(fields: &Fields<'_>) -> Option<Duration> {
    let field = fields.get_set("timeout_seconds")?;
    let timeout = field.as_seconds();
    if timeout.is_none() {
        field.warn("must be a finite number of seconds above 0: the default holds", "write it without quotes");
    }
    timeout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::read;

    fn document(value: &str) -> Document {
        read(format!("{{\"mcpInterceptors\": {value}}}").as_bytes()).expect(value)
    }

    fn targets(value: &str) -> (Vec<String>, usize) {
        let document = document(value);
        (document.interceptors.into_iter().map(|entry| entry.target).collect(), document.problems.len())
    }

    #[test]
    fn interceptors_are_one_entry_or_a_list_and_never_fail_the_load() {
        // Contract 1.1.
        assert_eq!(targets(r#""builtin:a""#), (vec!["builtin:a".to_owned()], 0));
        assert_eq!(targets(r#"{"use": "builtin:a"}"#), (vec!["builtin:a".to_owned()], 0));
        assert_eq!(
            targets(r#"["grpc://a:1", 1, " ", {"use": "http://b/c"}, {}, {"use": 1}, "ftp://x"]"#),
            (vec!["grpc://a:1".to_owned(), "http://b/c".to_owned()], 5)
        );
        assert_eq!(targets("1"), (vec![], 1));
        assert_eq!(targets("null"), (vec![], 0));
        assert!(document(r#"[1, {}, "ftp://x"]"#).problems.iter().all(|p| p.severity == Severity::Warning));
    }

    #[test]
    fn an_object_says_which_secrets_and_how_long() {
        let entries = document(r#"[{"use": "builtin:a", "secrets": ["k", "l"], "timeout_seconds": 0.5}, "builtin:b"]"#);
        let [a, b] = &entries.interceptors[..] else { panic!("{entries:?}") };
        assert_eq!(
            (a.secrets.as_slice(), a.answer_within()),
            (&["k".to_owned(), "l".to_owned()][..], Duration::from_millis(500))
        );
        assert_eq!((b.secrets.len(), b.answer_within()), (0, bounds::INTERCEPTOR_ANSWER));
    }

    #[test]
    fn a_wrong_part_is_warned_about_and_the_interceptor_stands() {
        for part in [r#""secrets": "k""#, r#""secrets": [1]"#, r#""timeout_seconds": 0"#, r#""timeout_seconds": "5""#] {
            let document = document(&format!(r#"{{"use": "builtin:a", {part}}}"#));
            assert_eq!(document.interceptors, [InterceptorEntry::of("builtin:a")], "{part}");
            assert_eq!(document.problems.len(), 1, "{part}");
            assert_eq!(document.problems[0].severity, Severity::Warning, "{part}");
        }
        assert!(document(r#"{"use": "builtin:a", "secret": []}"#).problems[0].mend.contains("secrets"));
    }

    #[test]
    fn what_an_entry_names_is_told_by_its_form() {
        use InterceptorTarget::{Builtin, Grpc, Http, Python};
        for (text, target) in [
            ("builtin:request-id", Some(Builtin("request-id"))),
            ("grpc://h:1", Some(Grpc { authority: "h:1", tls: false })),
            ("grpcs://[::1]:1/", Some(Grpc { authority: "[::1]:1", tls: true })),
            ("http://h/p?q", Some(Http("http://h/p?q"))),
            ("https://h", Some(Http("https://h"))),
            ("my_pkg.mcp.auth:build", Some(Python)),
            ("auth:build.interceptor", Some(Python)),
            ("builtin:", None),
            ("grpc://", None),
            ("grpc://u@h:1", None),
            ("grpc://h:1/p", None),
            ("auth", None),
            ("auth:", None),
            ("my-pkg:build", None),
            ("ftp://h", None),
            ("h:80", None),
        ] {
            assert_eq!(InterceptorEntry::of(text).names(), target, "{text}");
        }
    }

    #[test]
    fn a_name_leaves_out_what_may_be_secret() {
        let entry = InterceptorEntry::of("https://ann:pw@h:1/hook?key=k#f");
        assert_eq!(entry.name(), "https://h:1/hook");
        assert!(!format!("{entry:?}").contains("pw") && !format!("{entry:?}").contains("key"));
        assert_eq!(InterceptorEntry::of("builtin:a").name(), "builtin:a");
    }

    #[test]
    fn a_python_path_refuses_the_document_unless_it_is_to_be_skipped() {
        // Architecture.md §10, Python interceptors.
        let text = r#"["builtin:a", "pkg.auth:build", {"use": "pkg:b", "secrets": ["k"]}]"#;
        let problems = document(text).accept(UnsupportedInterceptors::Refuse).expect_err("refused");
        assert_eq!(problems.len(), 2);
        assert!(problems.iter().all(|problem| problem.severity == Severity::Error && problem.mend.contains("grpc://")));
        assert_eq!(problems[0].path, "$.mcpInterceptors[1]");
        let served = document(text).accept(UnsupportedInterceptors::Skip).expect("served");
        assert_eq!(served.interceptors, [InterceptorEntry::of("builtin:a")]);
        assert!(served.problems.iter().all(|problem| problem.severity == Severity::Warning), "{:?}", served.problems);
        assert!(document(r#""builtin:a""#).accept(UnsupportedInterceptors::Refuse).is_ok());
    }
}
