//! Shows and changes what is stored of a user's connections.
//!
//! A change is judged before anything is written: masked values are restored, the definition must load, and what it
//! starts must be allowed. It is stored only over what it was made from; of two at the same time, the one without a
//! condition is made again over the other's. What is shown hides secrets by the rules of the configuration.

use caribou_core::bounds::MAX_DEFINITION_BYTES;
use caribou_core::config::{ETag, IfMatch, Secret, personal};
use caribou_core::failure::{Class, Code};
use caribou_core::ids::{ServerName, UserId};
use caribou_ports::store::{Expected, Put, StoreError, StoredConnection};
use serde_json::{Map, Value, json};

use super::user::definition;
use super::users::{Users, unread};
use crate::error::VerbError;

/// How often a change without a condition is made again because another one came first.
const ATTEMPTS: usize = 5;

/// One connection as its owner is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionView {
    /// What its owner calls it.
    pub name: String,
    /// What it is called in lists of servers, sessions and audit rows.
    pub runtime_name: ServerName,
    /// Whether it takes part.
    pub enabled: bool,
    /// Its definition, every field filled in and secrets masked; `None` when it cannot be decrypted.
    pub definition: Option<Value>,
    /// Why it does not take part although it is enabled.
    pub problem: Option<String>,
    /// Names this state of it.
    pub etag: ETag,
}

/// All connections of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionsView {
    /// By name.
    pub connections: Vec<ConnectionView>,
    /// Names this state of all of them.
    pub etag: ETag,
}

impl Users {
    /// All of a user's, by name.
    pub(crate) async fn read(&self, user: &UserId) -> Result<ConnectionsView, VerbError> {
        let stored = self.ground.personal.connections.of_user(user.clone()).await.map_err(unread)?;
        let states: Vec<_> = stored.iter().map(|one| json!([one.name, one.runtime_name, one.enabled])).collect();
        let etag = ETag::of(Value::from(states).to_string().as_bytes());
        Ok(ConnectionsView { connections: stored.iter().map(|one| self.view(one)).collect(), etag })
    }

    /// One of a user's.
    pub(crate) async fn read_one(&self, user: &UserId, name: &str) -> Result<ConnectionView, VerbError> {
        let stored = self.stored(user, name).await?;
        stored.map(|stored| self.view(&stored)).ok_or_else(|| not_found(name))
    }

    /// Makes or replaces one.
    pub(crate) async fn put(
        &self,
        user: &UserId,
        name: &str,
        written: &Map<String, Value>,
        condition: &IfMatch,
    ) -> Result<ConnectionView, VerbError> {
        if !personal::is_name(name) {
            let detail = "`name` must have 1 to 64 characters of A-Z a-z 0-9 _ -";
            return Err(VerbError::new(Code::Invalid, detail));
        }
        for _ in 0..ATTEMPTS {
            let before = self.stored(user, name).await?;
            demand(condition, before.as_ref())?;
            let connection = self.made(user, name, written, before.as_ref())?;
            let personal = &self.ground.personal;
            let put = personal.connections.put(connection.clone(), expected(before.as_ref()), personal.max_per_user);
            match put.await.map_err(|error| unwritten(&error))? {
                Put::Stored => {
                    self.changed(user, before.filter(|before| before.runtime_name != connection.runtime_name)).await;
                    return Ok(self.view(&connection));
                }
                Put::Full => {
                    let detail = format!(
                        "this user has {} personal connections already, and that is as many as it may have; delete one",
                        personal.max_per_user
                    );
                    return Err(VerbError::new(Code::Conflict, detail));
                }
                Put::Unexpected => {}
            }
        }
        Err(overtaken(name))
    }

    /// Deletes one.
    pub(crate) async fn delete(&self, user: &UserId, name: &str, condition: &IfMatch) -> Result<(), VerbError> {
        for _ in 0..ATTEMPTS {
            let before = self.stored(user, name).await?;
            demand(condition, before.as_ref())?;
            let Some(before) = before else { return Err(not_found(name)) };
            let connections = &self.ground.personal.connections;
            let deleted = connections.delete(user.clone(), name.to_owned(), expected(Some(&before))).await;
            if deleted.map_err(|error| unwritten(&error))? {
                self.changed(user, Some(before)).await;
                return Ok(());
            }
        }
        Err(overtaken(name))
    }

    async fn stored(&self, user: &UserId, name: &str) -> Result<Option<StoredConnection>, VerbError> {
        let stored = self.ground.personal.connections.of_user(user.clone()).await.map_err(unread)?;
        Ok(stored.into_iter().find(|stored| stored.name == name))
    }

    /// What is to be stored, sealed. A definition that cannot be decrypted is as good as none: what a mask stood for is
    /// lost with it.
    fn made(
        &self,
        user: &UserId,
        name: &str,
        written: &Map<String, Value>,
        before: Option<&StoredConnection>,
    ) -> Result<StoredConnection, VerbError> {
        let invalid = |detail: String| VerbError::new(Code::Invalid, detail);
        let personal = &self.ground.personal;
        let before = before.and_then(|before| definition(personal, before).ok());
        let made = personal::written(name, written, before.as_ref()).map_err(|error| invalid(error.to_string()))?;
        personal::read(user, name, &made, personal.stdio.as_ref()).map_err(invalid)?;
        let text = Value::Object(made.clone()).to_string();
        if text.len() > MAX_DEFINITION_BYTES {
            return Err(invalid(format!("the definition is larger than {MAX_DEFINITION_BYTES} bytes")));
        }
        let mut connection = StoredConnection {
            user: user.clone(),
            name: name.to_owned(),
            runtime_name: personal::runtime_name(user, name, &made),
            sealed: Vec::new(),
            enabled: personal::is_enabled(&made),
        };
        connection.sealed = personal.vault.seal(&connection.place(), &Secret::new(text));
        Ok(connection)
    }

    /// Puts in force what is stored now, and tells the user's clients; `gone` is what is no more. The change is made whatever comes of it: the next
    /// request of its user looks again.
    async fn changed(&self, user: &UserId, gone: Option<StoredConnection>) {
        match self.of(user).await {
            Ok(held) => {
                held.look_again();
                if let Err(error) = held.look(&self.ground).await {
                    tracing::warn!("a change of personal connections is stored and not in force yet: {error}");
                }
            }
            Err(error) => tracing::warn!("a change of personal connections is stored and not in force yet: {error}"),
        }
        self.ground.actor.dirty.changes.tell_owner(user, &self.ground.actor.router.homes);
        if let Some(gone) = gone {
            self.ground.chains.forget(&ServerName::new(&*gone.runtime_name)).await;
        }
    }

    fn view(&self, stored: &StoredConnection) -> ConnectionView {
        let personal = &self.ground.personal;
        let definition = definition(personal, stored);
        let problem = match &definition {
            Ok(definition) => personal::read(&stored.user, &stored.name, definition, personal.stdio.as_ref()).err(),
            Err(error) => Some(format!("its definition cannot be read: {error}")),
        };
        ConnectionView {
            name: stored.name.clone(),
            runtime_name: ServerName::new(&*stored.runtime_name),
            enabled: stored.enabled,
            definition: definition.ok().map(|definition| personal::shown(&definition)),
            problem: problem.filter(|_| stored.enabled),
            etag: etag(stored),
        }
    }
}

/// Equal runtime names mean equal definitions.
fn etag(stored: &StoredConnection) -> ETag {
    ETag::of(json!([stored.runtime_name, stored.enabled]).to_string().as_bytes())
}

fn expected(before: Option<&StoredConnection>) -> Expected {
    before.map_or(Expected::Nothing, |before| Expected::Exactly {
        runtime_name: before.runtime_name.clone(),
        enabled: before.enabled,
    })
}

fn demand(condition: &IfMatch, stored: Option<&StoredConnection>) -> Result<(), VerbError> {
    if condition.allows(stored.map(etag)) {
        return Ok(());
    }
    let detail = "`If-Match` does not name what is stored; read it again";
    Err(VerbError::new(Code::Conflict, detail))
}

fn not_found(name: &str) -> VerbError {
    let shown = if personal::is_name(name) { format!(" `{name}`") } else { String::new() };
    VerbError::new(Code::NotFound, format!("there is no personal connection{shown} of this user"))
}

fn overtaken(name: &str) -> VerbError {
    VerbError::new(Code::Conflict, format!("the personal connection `{name}` keeps being changed by others; try again"))
}

fn unwritten(error: &StoreError) -> VerbError {
    let code = match error.class() {
        Class::Unknown => Code::OutcomeUnknown,
        Class::Conflict => Code::Conflict,
        _ => Code::Unavailable,
    };
    VerbError::new(code, format!("the personal connection was not stored: {error}"))
}
