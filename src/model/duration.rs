//! Durations as Kubernetes writes them: `30m`, `1h30m`, `90s`. Whole milliseconds, and never negative.

use super::error::ValueError;
use serde_json::Value;

/// Maximum duration: a year.
const MS_MAX: u64 = 366 * 24 * 3_600_000;

/// The milliseconds of a duration.
///
/// # Errors
/// The text is not a duration.
pub fn parse_ms(text: &str) -> Result<i64, ValueError> {
    let wrong =
        |problem: &str| ValueError::new(text, problem.to_owned(), "write it as 90s, 30m or 1h30m".to_owned());
    let (mut sum, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return Err(wrong("is empty"));
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(|| wrong("has no unit"))?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit);
        let each: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 24 * 3_600_000,
            _ => return Err(wrong("has a unit that is not known")),
        };
        let number: u64 = number.parse().map_err(|_| wrong("is not a duration"))?;
        sum = number
            .checked_mul(each)
            .and_then(|ms| sum.checked_add(ms))
            .ok_or_else(|| wrong("is too long"))?;
        rest = next;
    }
    match sum {
        0 => Err(wrong("is zero")),
        sum if sum > MS_MAX => Err(wrong("is longer than a year")),
        sum => i64::try_from(sum).map_err(|_| wrong("is too long")),
    }
}

/// Reads the milliseconds of a duration from JSON.
///
/// # Errors
/// As [`parse_ms`]; the value is not a string.
pub fn from_json(value: &Value) -> Result<i64, ValueError> {
    match value {
        Value::String(text) => parse_ms(text),
        other => parse_ms(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_nonsense_is_refused() {
        for (text, ms) in
            [("90s", 90_000), ("30m", 1_800_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)]
        {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "5", "m", "5x", "-5m", "0s", "1.5h", "99999999999999999999h", "400d", "5 m"] {
            assert!(parse_ms(text).is_err(), "{text}");
        }
    }
}
