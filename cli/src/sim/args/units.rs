//! Times and sizes in arguments: a number and a unit.

use std::time::Duration;

/// `90s`, `10m`, `24h`, `7d`, `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write a number and ms, s, m, h or d, such as 90s");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    let ms = match &text[at..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(ms).map(Duration::from_millis).ok_or_else(wrong)
}

/// `1000`, `64KiB`, `256MiB`, `1GiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write a number and KiB, MiB or GiB, such as 256MiB");
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    let scale = match &text[at..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(scale).filter(|n| *n > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        for (text, ms) in [("500ms", 500), ("90s", 90_000), ("10m", 600_000), ("24h", 86_400_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)));
        }
        for (text, size) in [("1000", 1_000), ("64KiB", 65_536), ("1GiB", 1 << 30)] {
            assert_eq!(bytes(text), Ok(size));
        }
        for text in ["", "10", "s", "10x", "-1s", "99999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "0", "10MB", "-1"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
