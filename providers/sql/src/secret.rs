//! Passwords: generated from the system's randomness, never printed, and turned into the verifiers that servers store.

use super::mysql_password;
use conductor_sql_plan::sql::Dialect;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use secrecy::{ExposeSecret, SecretString};
use sha1::{Digest, Sha1};

const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGIT: &[u8] = b"0123456789";
/// Characters without a meaning in an address, a shell or a connection string.
const OTHER: &[u8] = b"-_.~";

/// A password. It neither prints nor serialises.
#[derive(Clone, Debug)]
pub struct Password(SecretString);

impl Password {
    /// Wraps a known password.
    pub fn new(text: String) -> Password {
        Password(SecretString::from(text))
    }

    /// Generates one with every kind of character.
    pub fn make(length: usize) -> Password {
        let (kinds, mut rng) = ([LOWER, UPPER, DIGIT, OTHER], rand::rng());
        let any = kinds.concat();
        let mut bytes: Vec<u8> = kinds.iter().filter_map(|kind| kind.choose(&mut rng).copied()).collect();
        while bytes.len() < length {
            bytes.push(any[rng.random_range(0..any.len())]);
        }
        bytes.shuffle(&mut rng);
        Password::new(bytes.into_iter().map(char::from).collect())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// The verifier that a server stores instead of a password, so that no statement and no log contains one.
pub fn verifier(dialect: Dialect, password: &Password) -> String {
    match dialect {
        Dialect::Postgresql => postgres_protocol::password::scram_sha_256(password.expose().as_bytes()),
        Dialect::Mariadb => {
            let twice = Sha1::digest(Sha1::digest(password.expose().as_bytes()));
            let digits: String = twice.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("*{digits}")
        }
        Dialect::Mysql => {
            let (letters, mut rng) = ([LOWER, UPPER, DIGIT].concat(), rand::rng());
            let salt: String =
                (0..20).map(|_| char::from(letters[rng.random_range(0..letters.len())])).collect();
            let digest = mysql_password::sha256(password.expose().as_bytes(), salt.as_bytes());
            format!("$A$005${salt}{digest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_every_kind_of_character_and_no_other() {
        for length in [15, 32, 99] {
            let password = Password::make(length);
            let text = password.expose();
            assert_eq!(text.len(), length);
            for kind in [LOWER, UPPER, DIGIT, OTHER] {
                assert!(text.bytes().any(|byte| kind.contains(&byte)), "one kind is missing");
            }
            assert_ne!(text, Password::make(length).expose());
            assert!(!format!("{password:?}").contains(text), "it prints");
        }
    }

    #[test]
    fn servers_get_the_verifier_and_never_the_password() {
        let password = Password::new("secret".to_owned());
        let scram = verifier(Dialect::Postgresql, &password);
        assert!(scram.starts_with("SCRAM-SHA-256$4096:") && !scram.contains("secret"), "{scram}");
        // The result of MariaDB's own PASSWORD('secret').
        assert_eq!(verifier(Dialect::Mariadb, &password), "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
    }
}
