//! Token endpoints as a process asks them that has no record of which refresh token comes next: a single command beside a
//! deployment. A rotating token that it presented would be spent outside the record, and a strict provider would revoke
//! the whole family when a replica presents it again (invariant O1). Tokens that spend nothing are asked for as ever.

use std::sync::Arc;

use caribou_ports::BoxFuture;
use caribou_ports::token_endpoint::{TokenAnswer, TokenEndpoint, TokenRequest, TokenRequestError};

/// Presents no refresh token.
pub(crate) struct Unspent(pub(crate) Arc<dyn TokenEndpoint>);

impl TokenEndpoint for Unspent {
    fn request(&self, request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>> {
        if request.refresh_token.is_none() {
            return self.0.request(request);
        }
        let why = format!(
            "server `{}` has a refresh token, which only a replica may present, since its database knows which one comes \
             next: ask a replica that runs, with --server URL",
            request.server
        );
        Box::pin(std::future::ready(Err(TokenRequestError::NotSent(why))))
    }
}
