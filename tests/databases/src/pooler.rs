//! What some poolers are to a client: a PostgreSQL server that takes no start-up options. It passes on everything else
//! as it is; it shares no connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// As PgBouncer words it.
const REFUSAL: &[u8] = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";

/// The pooler. Dropped, it closes.
#[derive(Debug)]
pub struct Pooler {
    /// Where clients connect to.
    pub port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Pooler {
    /// One in front of a server.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn open(server: u16) -> Pooler {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let task = tokio::spawn(async move {
            let mut lines = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                lines.spawn(serve(client, server));
            }
        });
        Pooler { port, task }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The first message has its length in front: its own four bytes, the version of the protocol, names and values.
async fn serve(mut client: TcpStream, server: u16) -> std::io::Result<()> {
    let length = client.read_u32().await?;
    let mut rest = vec![0; usize::try_from(length).unwrap_or(4).saturating_sub(4)];
    client.read_exact(&mut rest).await?;
    if rest.windows(8).any(|some| some == b"options\0") {
        client.write_u8(b'E').await?;
        client.write_u32(u32::try_from(REFUSAL.len() + 4).unwrap_or(0)).await?;
        return client.write_all(REFUSAL).await;
    }
    let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
    server.write_u32(length).await?;
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
