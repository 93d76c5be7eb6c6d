//! The two requests that tests send to etcd itself, by its JSON gateway: which revision it is at, and to forget the
//! older ones. No client library: two requests do not need one.

use crate::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The newest revision.
pub(crate) fn revision(port: u16) -> Result<String, Error> {
    // Any read returns it; the key need not exist.
    let answer = post(port, "/v3/kv/range", r#"{"key":"AA=="}"#)?;
    let found = answer.split_once("\"revision\":\"").and_then(|(_, rest)| rest.split('"').next());
    found.map(str::to_owned).ok_or_else(|| Error::Etcd { answer: answer.clone() })
}

/// Forgets every revision before this one, and waits until it has.
pub(crate) fn compact(port: u16, revision: &str) -> Result<(), Error> {
    let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
    let answer = post(port, "/v3/kv/compaction", &body)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(Error::Etcd { answer }) }
}

fn post(port: u16, path: &str, body: &str) -> Result<String, Error> {
    let failed = |error| Error::Run { what: format!("etcd {path}"), error };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(failed)?;
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    Ok(answer)
}
