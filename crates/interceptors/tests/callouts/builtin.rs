//! What is part of the program, what an embedder adds, and entries that lead nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::ids::ServerName;
use caribou_interceptors::Registry;
use caribou_ports::interceptor::{Before, InterceptorHeader, Interceptors};

use crate::call::{call, made, raw};

#[tokio::test]
async fn request_id_names_the_request_and_says_nothing_about_who_calls() {
    let interceptor = made(&InterceptorEntry::of("builtin:request-id"));
    let Before::Proceed { arguments: None, headers } = interceptor.before(&call()).await.unwrap() else {
        panic!("it lets every call pass")
    };
    let expected = InterceptorHeader { name: "X-Request-Id".into(), value: Secret::new("q1"), per_call: true };
    assert_eq!(headers, [expected]);
    assert_eq!(interceptor.after(&call(), raw("{}")).await.unwrap().get(), "{}");
}

#[test]
fn an_embedder_registers_its_own_and_may_leave_servers_out() {
    // Contract 8.6, builder returns null; instances.
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let registry = Registry::new().unwrap().with("mine", move |server| {
        counter.fetch_add(1, Ordering::SeqCst);
        let wanted = Registry::new().unwrap().build(&InterceptorEntry::of("builtin:request-id"), server)?;
        Ok(wanted.filter(|_| server.as_str() != "other"))
    });
    let entry = InterceptorEntry::of("builtin:mine");
    assert!(registry.build(&entry, &ServerName::from("github")).unwrap().is_some());
    assert!(registry.build(&entry, &ServerName::from("other")).unwrap().is_none());
    assert_eq!(made.load(Ordering::SeqCst), 2, "one instance for each server");
}

#[tokio::test]
async fn an_entry_that_leads_nowhere_says_why_and_not_what_it_holds() {
    // Contract 8.6, path cannot be resolved, builder raises.
    let registry = Registry::new().unwrap().with("broken", |_| Err("it lacks its licence".to_owned()));
    for (target, why) in [
        ("builtin:nobody", "there are: broken, request-id"),
        ("builtin:broken", "it lacks its licence"),
        ("pkg.auth:build", "Python"),
        ("ftp://hunter22", "it names no interceptor"),
    ] {
        let error = registry.build(&InterceptorEntry::of(target), &ServerName::from("s")).err().unwrap();
        assert!(error.contains(why) && !error.contains("hunter22"), "{target}: {error}");
    }
}

#[tokio::test]
async fn servers_share_what_one_entry_names_and_different_entries_do_not() {
    let registry = Registry::new().unwrap();
    let of = |target: &str, server: &str| {
        let built = registry.build(&InterceptorEntry::of(target), &ServerName::from(server)).unwrap().unwrap();
        (Arc::as_ptr(&built).cast::<()>(), built)
    };
    for target in ["grpc://127.0.0.1:1", "grpcs://127.0.0.1:1", "http://127.0.0.1:1/i"] {
        let ((one, _kept), (other, _also)) = (of(target, "a"), of(target, "b"));
        assert_eq!(one, other, "{target}");
    }
    let ((one, _kept), (other, _also)) = (of("http://127.0.0.1:1/i", "a"), of("http://127.0.0.1:1/j", "a"));
    assert_ne!(one, other);
}
