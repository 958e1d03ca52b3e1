//! Who calls, and for whom: the beginning of every method.

use caribou_core::ids::{RequestId, Scope};
use caribou_proto::v1;
use caribou_runtime::{Caller, Runtime};
use tonic::{Request, Status};

use crate::identity;

/// Who calls, and the scope that the request names.
pub(super) struct Named {
    pub(super) caller: Caller,
    pub(super) scope: Scope,
}

impl Named {
    /// Those of a request.
    ///
    /// # Errors
    /// The caller is nobody, or may not act for that user; or a part of the scope is malformed.
    pub(super) async fn of<T: Sync>(
        runtime: &Runtime,
        request: &Request<T>,
        scope: Option<&v1::Scope>,
    ) -> Result<Self, Status> {
        let caller = identity::caller(runtime, request.metadata(), &request_id(request)).await?;
        let scope = identity::scope(&caller, scope)?;
        Ok(Self { caller, scope })
    }
}

/// The id that the envelope gave the request.
pub(super) fn request_id<T>(request: &Request<T>) -> RequestId {
    request.extensions().get().cloned().unwrap_or_else(|| RequestId::new(""))
}
