//! An interceptor over gRPC: the service `caribou.v1.Interceptor`.
//!
//! Connects when it is first asked, and again when the connection was lost; a silent one is noticed by keepalives.
//! Texts of a failed status are not shown: they may repeat what was sent.

use std::time::Duration;

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use caribou_core::config::Secret;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::{Before, InterceptedCall, InterceptorHeader};
use caribou_proto::v1::before_response::Decision;
use caribou_proto::v1::interceptor_client::InterceptorClient;
use caribou_proto::v1::{self, AfterRequest, BeforeRequest, Header, Proceed};
use serde_json::value::RawValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::callout::{Trouble, Wire};

/// How often a sign of life is asked for, and how long it may take: a cut connection is known within half a minute.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
const SIGN_OF_LIFE_WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct Grpc {
    client: InterceptorClient<Channel>,
    answer_within: Duration,
}

impl Grpc {
    /// The service at `authority`, over TLS if there are authorities to trust beside the public ones, even if they are
    /// none. Must be called inside a tokio runtime.
    pub(crate) fn to(authority: &str, tls: Option<&[u8]>, answer_within: Duration) -> Result<Self, String> {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"));
        let mut endpoint = endpoint
            .map_err(|_| "its address is not host:port".to_owned())?
            .connect_timeout(answer_within)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(SIGN_OF_LIFE)
            .keep_alive_timeout(SIGN_OF_LIFE_WITHIN)
            .keep_alive_while_idle(true);
        if let Some(authorities) = tls {
            let mut certificates = ClientTlsConfig::new().with_webpki_roots();
            if !authorities.is_empty() {
                certificates = certificates.ca_certificate(Certificate::from_pem(authorities));
            }
            endpoint = endpoint.tls_config(certificates).map_err(|_| "TLS cannot be set up for it".to_owned())?;
        }
        let client = InterceptorClient::new(endpoint.connect_lazy())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(usize::MAX);
        Ok(Self { client, answer_within })
    }

    /// A request that tells the service how long we wait.
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.answer_within);
        request
    }

    fn trouble(&self, status: &Status) -> Trouble {
        match status.code() {
            Code::Unavailable => Trouble::Unconnected,
            // The library and the service keep the deadline that the request names, and may be first to say so.
            Code::Cancelled | Code::DeadlineExceeded => Trouble::Late(self.answer_within),
            // How the decoder refuses a message over its bound.
            Code::OutOfRange => Trouble::TooLarge(MAX_MESSAGE_BYTES),
            code => Trouble::Status(format!("gRPC status {code:?}")),
        }
    }
}

impl Wire for Grpc {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, Trouble>> {
        Box::pin(async move {
            let request = self.request(BeforeRequest { call: Some(message(call)) });
            let answer = self.client.clone().before(request).await.map_err(|status| self.trouble(&status))?;
            match answer.into_inner().decision {
                Some(Decision::Proceed(Proceed { arguments, headers })) => Ok(Before::Proceed {
                    arguments: arguments.map(|text| json(text, "its arguments are not JSON")).transpose()?,
                    headers: headers.into_iter().map(header).collect(),
                }),
                Some(Decision::Answer(text)) => Ok(Before::Answer(json(text, "its answer is not JSON")?)),
                Some(Decision::Deny(text)) => Ok(Before::Deny(text)),
                None => Err(Trouble::Malformed("it decides nothing")),
            }
        })
    }

    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<Box<RawValue>>, Trouble>> {
        Box::pin(async move {
            let request = AfterRequest { call: Some(message(call)), result: result.get().to_owned() };
            let answer =
                self.client.clone().after(self.request(request)).await.map_err(|status| self.trouble(&status))?;
            answer.into_inner().result.map(|text| json(text, "its result is not JSON")).transpose()
        })
    }
}

fn message(call: &InterceptedCall) -> v1::InterceptedCall {
    let pair = |(name, value): &(String, Secret)| (name.clone(), value.expose().to_owned());
    let headers = call.headers.iter().map(pair);
    v1::InterceptedCall {
        server: call.server.to_string(),
        tool: call.raw_name.to_string(),
        visible_tool: call.visible_name.to_string(),
        user_id: call.scope.user.to_string(),
        thread_id: call.scope.thread.to_string(),
        run_id: call.run_id.as_deref().map(str::to_owned),
        tool_call_id: call.tool_call_id.as_deref().map(str::to_owned),
        request_id: call.request_id.to_string(),
        arguments: call.arguments.as_ref().map(|arguments| arguments.get().to_owned()),
        headers: headers.map(|(name, value)| Header { name, value, per_call: false }).collect(),
        secrets: call.secrets.iter().map(pair).collect(),
    }
}

fn header(Header { name, value, per_call }: Header) -> InterceptorHeader {
    InterceptorHeader { name, value: Secret::new(value), per_call }
}

fn json(text: String, what: &'static str) -> Result<Box<RawValue>, Trouble> {
    RawValue::from_string(text).map_err(|_| Trouble::Malformed(what))
}
