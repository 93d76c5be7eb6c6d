//! MySQL's hash of passwords: SHA-256 in five thousand rounds over password and salt, as `crypt(3)` does for `$5$`; only the
//! length of the salt is MySQL's own.

use sha2::{Digest, Sha256};

/// MySQL's default.
const ROUNDS: usize = 5_000;
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digest of a password with a salt, in the alphabet of `crypt(3)`.
pub(super) fn sha256(password: &[u8], salt: &[u8]) -> String {
    let inner = hash(&[password, salt, password]);
    let mut first = [password, salt, &stretched(&inner, password.len())].concat();
    let mut bits = password.len();
    while bits > 0 {
        first.extend_from_slice(if bits & 1 == 1 { &inner } else { password });
        bits >>= 1;
    }
    let mut digest = hash(&[&first]);
    let of_password = stretched(&hash(&[&password.repeat(password.len())]), password.len());
    let of_salt = stretched(&hash(&[&salt.repeat(16 + usize::from(digest[0]))]), salt.len());
    for round in 0..ROUNDS {
        let (begin, end): (&[u8], &[u8]) = match round % 2 {
            0 => (&digest, &of_password),
            _ => (&of_password, &digest),
        };
        let salted: &[u8] = if round % 3 == 0 { &[] } else { &of_salt };
        let again: &[u8] = if round % 7 == 0 { &[] } else { &of_password };
        digest = hash(&[begin, salted, again, end]);
    }
    written(&digest)
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// A digest, repeated to a length.
fn stretched(digest: &[u8; 32], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Encodes three bytes as four letters, in the order of `crypt(3)`.
fn written(digest: &[u8; 32]) -> String {
    let mut text = String::new();
    let mut push = |mut bits: u32, count: usize| {
        for _ in 0..count {
            text.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    let (mut one, mut two, mut three) = (0, 10, 20);
    for _ in 0..10 {
        let byte = |at: usize| u32::from(digest[at]);
        push(byte(one) << 16 | byte(two) << 8 | byte(three), 4);
        (one, two, three) = (three + 1, one + 1, two + 1);
    }
    push(u32::from(digest[31]) << 8 | u32::from(digest[30]), 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_crypt_and_mysql() {
        // The result of `openssl passwd -5 -salt saltstring 'Hello world!'`.
        assert_eq!(sha256(b"Hello world!", b"saltstring"), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        // A user of MySQL 8.0.15 with this could log in as `secret`.
        assert_eq!(sha256(b"secret", b"abcdefghijklmnopqrst"), "Yy1cVJ5jT.fk4HyAGlowRhOkI55As4SAesbspXHQvFD");
    }
}
