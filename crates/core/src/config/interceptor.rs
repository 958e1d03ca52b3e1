//! Entries of `mcpInterceptors` (contract 1.1, 8.6; architecture.md §2).

/// One entry. Written as a string, or as an object that says more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterceptorEntry {
    /// `builtin:NAME`, `grpc://…`, `http://…`, `https://…`; a Python path `module:variable` is recognised elsewhere.
    pub target: String,
    /// Keys of the request's secrets that it is shown; none unless listed.
    pub secrets: Vec<String>,
}
