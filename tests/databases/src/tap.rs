//! A tap on the line between the controller and a PostgreSQL or MariaDB server: it counts messages with statements,
//! and at a given one cuts the line, before the server has heard it or after it has answered. What is between the two
//! is exactly what a crash can leave behind.

use conductor_sql_plan::sql::Dialect;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One message of a workflow: what it says, without what differs from run to run, and the how-manieth time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The statements.
    pub text: String,
    /// From 1.
    pub time: usize,
}

/// Where the line is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere.
    Never,
    /// The server never hears this message.
    Before(Said),
    /// The server has carried it out, and its answer is lost.
    After(Said),
}

#[derive(Debug)]
struct State {
    cut: Cut,
    said: Vec<Said>,
    /// The message to cut at has come.
    is_struck: bool,
    is_cut: bool,
}

/// How long a server may take to answer a lost message. Generous: the machine is shared.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// The tap. Dropped, it closes.
#[derive(Debug)]
pub struct Tap {
    /// Where the controller connects to.
    pub port: u16,
    state: Arc<Mutex<State>>,
    cut: watch::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Tap {
    /// A tap on the line to a server.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn open(dialect: Dialect, server: u16) -> Tap {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let state = Arc::new(Mutex::new(State {
            cut: Cut::Never,
            said: Vec::new(),
            is_struck: false,
            is_cut: false,
        }));
        let (signal, reported) = watch::channel(false);
        let (shared, signal) = (Arc::clone(&state), Arc::new(signal));
        let task = tokio::spawn(async move {
            let mut lines = tokio::task::JoinSet::new();
            while let Ok((ours, _)) = listener.accept().await {
                let Ok(theirs) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                let (shared, signal) = (Arc::clone(&shared), Arc::clone(&signal));
                lines.spawn(line(dialect, ours, theirs, shared, signal));
            }
        });
        Tap { port, state, cut: reported, task }
    }

    /// Forgets what was said so far; from now on the line is cut there.
    pub fn arm(&self, cut: Cut) {
        let mut state = lock(&self.state);
        state.said.clear();
        state.cut = cut;
    }

    /// What was said since, in order.
    pub fn said(&self) -> Vec<Said> {
        lock(&self.state).said.clone()
    }

    /// Waits until the line has been cut.
    pub async fn wait_for_cut(&mut self) {
        let _ = self.cut.wait_for(|is_cut| *is_cut).await;
    }

    /// Whether the message to cut at has come; the cut is at hand, or done.
    pub fn is_struck(&self) -> bool {
        lock(&self.state).is_struck
    }

    /// Repairs the line: nothing is cut any more.
    pub fn repair(&self) {
        let mut state = lock(&self.state);
        (state.cut, state.is_struck, state.is_cut) = (Cut::Never, false, false);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn line(
    dialect: Dialect,
    ours: TcpStream,
    theirs: TcpStream,
    state: Arc<Mutex<State>>,
    signal: Arc<watch::Sender<bool>>,
) {
    let (from_us, to_us) = ours.into_split();
    let (from_them, to_them) = theirs.into_split();
    // A lost answer is dropped.
    let (mute, muted) = watch::channel(Voice::Heard);
    let back = tokio::spawn(pour(from_them, to_us, mute.clone()));
    let _ = forth(dialect, from_us, to_them, &state, &signal, (&mute, muted)).await;
    back.abort();
}

/// What becomes of what the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Heard,
    Muted,
    /// Muted, and it has said something since.
    Answered,
}

/// Bytes from the server, as they come, unless they are to be swallowed.
async fn pour(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, voice: watch::Sender<Voice>) {
    let mut buffer = vec![0; 16_384];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        if *voice.borrow() != Voice::Heard {
            voice.send_replace(Voice::Answered);
        } else if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Messages to the server, one at a time.
async fn forth(
    dialect: Dialect,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &Mutex<State>,
    signal: &watch::Sender<bool>,
    (mute, mut muted): (&watch::Sender<Voice>, watch::Receiver<Voice>),
) -> std::io::Result<()> {
    let mut is_first = true;
    loop {
        if lock(state).is_cut {
            return Ok(());
        }
        let message = read_message(dialect, &mut from, is_first).await?;
        is_first = false;
        let Some(statement) = statement(dialect, &message) else {
            to.write_all(&message).await?;
            continue;
        };
        let (said, cut) = {
            let mut state = lock(state);
            let text = plain(&statement);
            let time = state.said.iter().filter(|before| before.text == text).count() + 1;
            let said = Said { text, time };
            state.said.push(said.clone());
            let cut = state.cut.clone();
            state.is_struck |= matches!(&cut, Cut::Before(at) | Cut::After(at) if *at == said);
            (said, cut)
        };
        match cut {
            Cut::Before(at) if at == said => {
                lock(state).is_cut = true;
                let _ = signal.send(true);
                return Ok(());
            }
            Cut::After(at) if at == said => {
                mute.send_replace(Voice::Muted);
                to.write_all(&message).await?;
                // Servers answer when they have done it.
                let answered = muted.wait_for(|voice| *voice == Voice::Answered);
                let _ = tokio::time::timeout(ANSWER_WITHIN, answered).await;
                lock(state).is_cut = true;
                let _ = signal.send(true);
                return Ok(());
            }
            Cut::Never | Cut::Before(_) | Cut::After(_) => to.write_all(&message).await?,
        }
    }
}

async fn read_message(
    dialect: Dialect,
    from: &mut OwnedReadHalf,
    is_first: bool,
) -> std::io::Result<Vec<u8>> {
    let (head, length): (Vec<u8>, usize) = match dialect {
        Dialect::Postgresql => {
            let mut head = vec![0; if is_first { 4 } else { 5 }];
            from.read_exact(&mut head).await?;
            let length = &head[head.len() - 4..];
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            (head, length.saturating_sub(4))
        }
        Dialect::Mariadb | Dialect::Mysql => {
            let mut head = vec![0; 4];
            from.read_exact(&mut head).await?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            (head, length)
        }
    };
    let mut message = head;
    let start = message.len();
    message.resize(start + length, 0);
    from.read_exact(&mut message[start..]).await?;
    Ok(message)
}

/// The text of a message with a statement.
fn statement(dialect: Dialect, message: &[u8]) -> Option<String> {
    let text = match dialect {
        Dialect::Postgresql if message.first() == Some(&b'Q') => message.get(5..)?,
        // A command begins a conversation anew: number 0, then COM_QUERY.
        Dialect::Mariadb if message.get(3) == Some(&0) && message.get(4) == Some(&3) => message.get(5..)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

/// A statement without what differs from run to run: runs of hexadecimal digits, and what stands for a password.
pub fn plain(statement: &str) -> String {
    let mut text = String::new();
    for token in statement.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"_-$+/=:".contains(c)) {
        let (token, end) = match token.char_indices().last() {
            Some((at, last)) if !last.is_ascii_alphanumeric() && !"_-$+/=:".contains(last) => {
                token.split_at(at)
            }
            _ => (token, ""),
        };
        let is_uid =
            token.len() >= 26 && token.chars().filter(char::is_ascii_hexdigit).count() + 8 >= token.len();
        text.push_str(match () {
            () if token.starts_with("SCRAM-SHA-256") => "VERIFIER",
            () if token.starts_with("conductor:") => "MARK",
            () if token.starts_with("c_") && token.ends_with("_a") => "C_a",
            () if token.starts_with("c_") && token.ends_with("_b") => "C_b",
            () if token.starts_with("c_") && token.ends_with("_q") => "C_q",
            () if token.starts_with("c_") => "C",
            () if is_uid => "HEX",
            () => token,
        });
        text.push_str(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let stem = format!("c_{}", "0a".repeat(20));
        let text = format!(
            "ALTER ROLE \"{stem}_b\" LOGIN PASSWORD 'SCRAM-SHA-256$4096:a/b=$c:d'; COMMENT ON ROLE \"{stem}\" IS 'conductor:12-ab 7'"
        );
        let expected = "ALTER ROLE \"C_b\" LOGIN PASSWORD 'VERIFIER'; COMMENT ON ROLE \"C\" IS 'MARK 7'";
        assert_eq!(plain(&text), expected);
    }
}
