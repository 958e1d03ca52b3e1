//! Interceptors that cannot be asked: the error names them and nothing else, and after some failures comes at once.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use caribou_core::bounds::INTERCEPTOR_FAILURES;
use caribou_core::config::InterceptorEntry;
use tokio::net::TcpListener;

use crate::call::{call, made};
use crate::over_http::serve;

/// An address that nobody listens on.
async fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

/// A listener that accepts and says nothing.
async fn mute() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            kept.push(connection);
        }
    });
    address
}

#[tokio::test]
async fn one_that_nobody_serves_is_named_without_its_secrets() {
    // Invariant O3.
    let address = nobody().await;
    for target in [format!("grpc://{address}"), format!("http://ann:hunter22@{address}/i?k=hunter22")] {
        let error = made(&InterceptorEntry::of(target)).before(&call()).await.err().unwrap().to_string();
        assert!(error.contains(&address) && error.contains("cannot be reached"), "{error}");
        assert!(!error.contains("hunter22"), "{error}");
    }
}

#[tokio::test]
async fn one_that_is_mute_is_given_up_at_its_deadline() {
    let address = mute().await;
    for target in [format!("grpc://{address}"), format!("http://{address}")] {
        let within = Duration::from_millis(200);
        let entry = InterceptorEntry { timeout: Some(within), ..InterceptorEntry::of(target) };
        let began = Instant::now();
        let error = made(&entry).before(&call()).await.err().unwrap().to_string();
        assert!(error.contains("0.2 s"), "{error}");
        assert!(began.elapsed() >= within, "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn after_some_failures_in_a_row_it_is_not_asked() {
    let (address, answers) = serve(StatusCode::INTERNAL_SERVER_ERROR, "hunter22").await;
    let interceptor = made(&InterceptorEntry::of(format!("http://{address}")));
    for _ in 0..INTERCEPTOR_FAILURES {
        let error = interceptor.before(&call()).await.err().unwrap().to_string();
        assert!(error.contains("HTTP status 500") && !error.contains("hunter22"), "{error}");
    }
    let error = interceptor.before(&call()).await.err().unwrap().to_string();
    assert!(error.contains("cannot be reached") && error.contains("asked again in"), "{error}");
    assert_eq!(answers.asked.lock().unwrap().len(), INTERCEPTOR_FAILURES as usize);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_an_endless_answer_is_cut_off() {
    let (address, _answers) = serve(StatusCode::TEMPORARY_REDIRECT, "{\"proceed\":{}}").await;
    let error = made(&InterceptorEntry::of(format!("http://{address}"))).before(&call()).await.err().unwrap();
    assert!(error.to_string().contains("HTTP status 307"), "{error}");
    let (address, _answers) = serve(StatusCode::OK, &" ".repeat(17 << 20)).await;
    let error = made(&InterceptorEntry::of(format!("http://{address}"))).before(&call()).await.err().unwrap();
    assert!(error.to_string().contains("more than 16777216 bytes"), "{error}");
}
