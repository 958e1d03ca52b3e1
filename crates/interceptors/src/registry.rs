//! From entries to interceptors.
//!
//! Owns the names of the built-in ones and what is shared: an entry outside of this process has one connection and one
//! breaker, however many servers it stands before. An entry that leads nowhere is an error text without its secrets;
//! the runtime warns and goes on with the others (contract 8.6).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use caribou_core::config::{InterceptorEntry, InterceptorTarget};
use caribou_core::ids::ServerName;
use caribou_ports::interceptor::{Interceptor, Interceptors};

use crate::builtin::RequestIdHeader;
use crate::callout::Callout;
use crate::grpc::Grpc;
use crate::http::{Http, client};

/// Makes the instance of one built-in interceptor for one server. `Ok(None)` = it wants nothing to do with that server;
/// the text of an error says what is wrong.
pub type Constructor = Arc<dyn Fn(&ServerName) -> Result<Option<Arc<dyn Interceptor>>, String> + Send + Sync>;

/// The HTTP client cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client of interceptors cannot be set up: {0}")]
pub struct NoHttpClient(#[from] reqwest::Error);

/// Those of one entry, shared by its servers; gone with the last of them.
type Shared = HashMap<(String, Duration), Weak<dyn Interceptor>>;

/// Makes the interceptors of `mcpInterceptors`.
pub struct Registry {
    builtin: HashMap<String, Constructor>,
    client: reqwest::Client,
    /// Certificates in PEM that gRPC interceptors are trusted by, beside the public ones.
    authorities: Vec<u8>,
    shared: Mutex<Shared>,
}

impl Registry {
    /// The registry with the interceptors that are shipped.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn new() -> Result<Self, NoHttpClient> {
        Self::over(reqwest::Client::builder().no_proxy())
    }

    /// The same, with HTTP interceptors reached as `builder` says: whom it trusts, which proxy it asks.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn over(builder: reqwest::ClientBuilder) -> Result<Self, NoHttpClient> {
        let registry = Self {
            builtin: HashMap::new(),
            client: client(builder)?,
            authorities: Vec::new(),
            shared: Mutex::default(),
        };
        Ok(registry.with("request-id", |_| Ok(Some(Arc::new(RequestIdHeader)))))
    }

    /// With `grpcs` interceptors trusted by these certificates too, in PEM.
    #[must_use]
    pub fn trusting(mut self, authorities: Vec<u8>) -> Self {
        self.authorities = authorities;
        self
    }

    /// With one more that entries name as `builtin:<name>`; the later one of a name wins.
    #[must_use]
    pub fn with(
        mut self,
        name: &str,
        constructor: impl Fn(&ServerName) -> Result<Option<Arc<dyn Interceptor>>, String> + Send + Sync + 'static,
    ) -> Self {
        self.builtin.insert(name.to_owned(), Arc::new(constructor));
        self
    }

    fn builtin(&self, name: &str, server: &ServerName) -> Result<Option<Arc<dyn Interceptor>>, String> {
        let Some(constructor) = self.builtin.get(name) else {
            let mut names: Vec<&str> = self.builtin.keys().map(String::as_str).collect();
            names.sort_unstable();
            return Err(format!("there is no built-in interceptor of that name; there are: {}", names.join(", ")));
        };
        constructor(server)
    }

    /// The one of this entry if it is in use, else a new one.
    fn shared(
        &self,
        entry: &InterceptorEntry,
        make: impl FnOnce() -> Result<Arc<dyn Interceptor>, String>,
    ) -> Result<Option<Arc<dyn Interceptor>>, String> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, interceptor| interceptor.strong_count() > 0);
        let key = (entry.target.clone(), entry.answer_within());
        if let Some(known) = shared.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(known));
        }
        let made = make()?;
        shared.insert(key, Arc::downgrade(&made));
        Ok(Some(made))
    }
}

impl Interceptors for Registry {
    fn build(&self, entry: &InterceptorEntry, server: &ServerName) -> Result<Option<Arc<dyn Interceptor>>, String> {
        let (name, within) = (entry.name(), entry.answer_within());
        match entry.names() {
            Some(InterceptorTarget::Builtin(name)) => self.builtin(name, server),
            Some(InterceptorTarget::Grpc { authority, tls }) => self.shared(entry, || {
                Ok(Arc::new(Callout::new(
                    name,
                    within,
                    Grpc::to(authority, tls.then_some(&*self.authorities), within)?,
                )))
            }),
            Some(InterceptorTarget::Http(address)) => {
                self.shared(entry, || Ok(Arc::new(Callout::new(name, within, Http::to(address, self.client.clone())?))))
            }
            Some(InterceptorTarget::Python) => Err("a Python path cannot be run by Caribou".to_owned()),
            None => Err("it names no interceptor".to_owned()),
        }
    }
}
