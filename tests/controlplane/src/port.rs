//! Loopback ports for servers of tests. A port is not held: it is chosen so that no other process takes it meanwhile.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports below are other people's by habit.
const LOWEST: u16 = 10_000;
/// How far apart two processes that start together begin to look.
const STRIDE: u32 = 61;
/// Ports given out by this process so far: none is given twice.
static GIVEN: AtomicU16 = AtomicU16::new(0);

/// A port to listen on. The kernel's own choice would do until a client's end of some connection gets the same
/// port before the server listens, so it is taken from below the range that clients' ends come from.
///
/// # Errors
/// When no port of that range is free.
pub fn free_port() -> io::Result<u16> {
    let ports = u32::from(first_of_clients().max(LOWEST + 1) - LOWEST);
    let begin = std::process::id().wrapping_mul(STRIDE);
    for _ in 0..ports {
        let step = u32::from(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = LOWEST + u16::try_from(begin.wrapping_add(step) % ports).unwrap_or_default();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "every port that clients leave alone is taken"))
}

/// The first port of the kernel's range for outgoing connections.
fn first_of_clients() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768)
}

#[test]
fn ports_are_given_once_and_clients_get_none_of_them() {
    let mut ports: Vec<u16> = (0..500).map(|_| free_port().unwrap()).collect();
    assert!(ports.iter().all(|port| (LOWEST..first_of_clients()).contains(port)), "{ports:?}");
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 500);
}
