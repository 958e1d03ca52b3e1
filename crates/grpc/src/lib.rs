//! The gRPC API that platform services use.
