//! A receiver that speaks just enough HTTP, so that it can also hang up in the middle of an answer.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// How it is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// With a status and a body.
    With(u16, String),
    /// With a head that promises more than comes.
    Torn,
    /// The receiver hangs up.
    Dropped,
}

/// Answers every request with what `answer` says of it; for as long as the test's runtime lives.
pub(crate) async fn receiver(answer: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(serve(stream, move |asked| answer(asked)));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, answer: impl Fn(Asked) -> Answer) {
    while let Some(asked) = read(&mut stream).await {
        let text = match answer(asked) {
            Answer::With(status, body) => {
                format!("HTTP/1.1 {status} X\r\nlocation: /elsewhere\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
            Answer::Torn => {
                let torn = "HTTP/1.1 202 X\r\ncontent-length: 1000\r\n\r\n{\"run_id\":";
                let _ = stream.write_all(torn.as_bytes()).await;
                return;
            }
            Answer::Dropped => return,
        };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut body = bytes.split_off(end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked { method: first.next()?, path: first.next()?, headers, body })
}
