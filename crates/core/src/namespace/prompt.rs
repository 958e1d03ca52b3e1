//! Names of the prompts of many servers: prefixed as the tools of their server are, so that the name of its server may
//! be taken off again.

use crate::config::ServerConfig;

/// The name that a prompt of this server is shown by.
pub fn shown_prompt(server: &ServerConfig, name: &str) -> String {
    if server.tool_name_prefix { format!("{}_{name}", server.shown_name()) } else { name.to_owned() }
}

/// The server's own name for a prompt that is shown by this one; `None` = it is surely none of this server's. Another
/// server's name may begin with this one's: then both may know it.
pub fn raw_prompt<'n>(server: &ServerConfig, shown: &'n str) -> Option<&'n str> {
    if !server.tool_name_prefix {
        return Some(shown);
    }
    shown.strip_prefix(server.shown_name())?.strip_prefix('_')
}
