//! What a controller counts, read where it shows it.

use conductor_controller::Options;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(20);

/// The page with the figures of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Metrics {
    port: u16,
}

impl Metrics {
    /// On a port that is free.
    ///
    /// # Panics
    /// When none is.
    pub fn choose() -> Metrics {
        Metrics { port: conductor_controlplane::free_port().expect("a port is free") }
    }

    /// How a controller runs that shows them there.
    pub fn options(self) -> Options {
        Options {
            lease: None,
            databases: true,
            listen: Some(([127, 0, 0, 1], self.port).into()),
            ..Options::default()
        }
    }

    /// All of them, as text; nothing where the controller does not answer.
    pub async fn text(self) -> String {
        let read = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
            let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await.ok()?;
            Some(text)
        };
        tokio::time::timeout(WITHIN, read).await.ok().flatten().unwrap_or_default()
    }

    /// The sum of one figure over its labels; nothing where it is not shown.
    pub async fn sum(self, name: &str) -> Option<f64> {
        let text = self.text().await;
        let of = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            (series.split('{').next() == Some(name)).then(|| value.trim().parse::<f64>().ok()).flatten()
        };
        let mut found = text.lines().filter_map(of).peekable();
        found.peek()?;
        Some(found.sum())
    }
}
