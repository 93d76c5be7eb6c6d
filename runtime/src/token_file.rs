//! A token in a file (`tokenFile`, or a pod's service account), read again at intervals because it is rotated. Trims white
//! space, as Kubernetes' own client does; the client library would refuse every request with it.

use super::kubeconfig::unfit_for_header;
use http::Request;
use http::header::{AUTHORIZATION, HeaderValue};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a token is used before it is read again.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// The token of a file, as a header.
#[derive(Clone, Debug)]
pub(super) struct TokenFile(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    header: HeaderValue,
    read: Instant,
}

impl TokenFile {
    /// Opens and reads the file.
    ///
    /// # Errors
    /// What is wrong with the file. Its name is not in it: it may be a token that was written to the wrong field.
    pub fn open(path: &Path) -> Result<TokenFile, String> {
        let kept = Kept { path: path.to_owned(), header: read(path)?, read: Instant::now() };
        Ok(TokenFile(Arc::new(Mutex::new(kept))))
    }

    /// Adds the token to a request. If the file cannot be read any more, the last token stays.
    pub fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.read.elapsed() >= READ_AGAIN {
            if let Ok(header) = read(&kept.path) {
                kept.header = header;
            }
            kept.read = Instant::now();
        }
        request.headers_mut().insert(AUTHORIZATION, kept.header.clone());
        request
    }
}

fn read(path: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("the file cannot be read: {error} (its name is not shown, it may be a token)")
    })?;
    let token = text.trim();
    if token.is_empty() {
        return Err("the file is empty: write the token into it".to_owned());
    }
    if let Some(why) = unfit_for_header(token) {
        return Err(format!("the token in the file cannot be used: {why}"));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "the token in the file cannot be used".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_token_is_not_part_of_it() {
        let path = std::env::temp_dir().join(format!("conductor-token-file-{}", std::process::id()));
        std::fs::write(&path, "  a-token\r\n\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        let request = file.authorize(Request::new(()));
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer a-token");
        assert!(!format!("{file:?}").contains("a-token"));
        // Rotated, and then removed: what was read last is used.
        std::fs::write(&path, "another\n").unwrap();
        let age = |file: &TokenFile| file.0.lock().unwrap().read -= READ_AGAIN;
        age(&file);
        assert_eq!(file.authorize(Request::new(())).headers()[AUTHORIZATION], "Bearer another");
        std::fs::remove_file(&path).unwrap();
        age(&file);
        assert_eq!(file.authorize(Request::new(())).headers()[AUTHORIZATION], "Bearer another");
    }

    #[test]
    fn a_file_without_a_usable_token_is_refused() {
        let path = std::env::temp_dir().join(format!("conductor-token-unusable-{}", std::process::id()));
        for (text, expected) in [(" \n", "is empty"), ("one\ntwo\n", "line break"), ("a\u{7}b", "character")]
        {
            std::fs::write(&path, text).unwrap();
            let error = TokenFile::open(&path).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = TokenFile::open(&path).unwrap_err();
        assert!(error.contains("cannot be read") && !error.contains("conductor-token"), "{error}");
    }
}
