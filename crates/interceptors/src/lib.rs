//! Interceptors of the operator: built in, over gRPC, over HTTP.
