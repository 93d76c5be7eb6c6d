//! A quantity as Kubernetes writes it, `25Gi` or `500m`, stored as an exact integer of nano-units. Without floats, two
//! spellings of one quantity are equal and sums are exact.

use super::ValueError;
use serde_json::Value;
use std::fmt;

/// An exact quantity, in nano-units.
///
/// # Guarantees
/// `Quantity::parse(&q.to_string()) == Ok(q)` for every `q`; arithmetic never wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const FIX: &str = "write it like 25Gi, 500m or 100";

/// Decimal suffixes with their power of ten, largest first.
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

/// Binary suffixes with their power of two, largest first.
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

impl Quantity {
    /// Zero.
    pub const ZERO: Quantity = Quantity(0);

    /// Parses every form that Kubernetes accepts. Fractions of a nano-unit round away from zero, as in Kubernetes, so that a
    /// request is never rounded down.
    ///
    /// # Errors
    /// The text is not a quantity, or is too large.
    pub fn parse(text: &str) -> Result<Quantity, ValueError> {
        let refuse = |problem: &str| ValueError::new(text, problem, FIX);
        let parts = Parts::split(text).ok_or_else(|| refuse("is not a quantity"))?;
        let scale = Scale::of(parts.suffix).ok_or_else(|| match parts.suffix {
            "K" => ValueError::new(text, "has the unknown suffix `K`", "write k (1000) or Ki (1024)"),
            suffix => refuse(&format!("has the unknown suffix `{}`", suffix.escape_debug())),
        })?;
        scale
            .nanos(parts.whole, parts.fraction)
            .and_then(|nanos| match parts.negative {
                true => 0i128.checked_sub_unsigned(nanos),
                false => 0i128.checked_add_unsigned(nanos),
            })
            .map(Quantity)
            .ok_or_else(|| refuse("is too large"))
    }

    /// Parses a JSON string, or a number by its decimal text.
    ///
    /// # Errors
    /// The value is neither, or its text is not a quantity.
    pub fn from_json(value: &Value) -> Result<Quantity, ValueError> {
        match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            other => Err(ValueError::new(&other.to_string(), "is not a quantity", FIX)),
        }
    }

    /// A quantity of whole units.
    pub const fn from_units(units: i64) -> Quantity {
        // Cannot overflow: 2^63 * 10^9 < 2^127.
        Quantity(units as i128 * NANOS_PER_UNIT)
    }

    /// A quantity of nano-units.
    pub const fn from_nanos(nanos: i128) -> Quantity {
        Quantity(nanos)
    }

    /// The quantity in nano-units.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The sum; None on overflow.
    pub fn checked_add(self, other: Quantity) -> Option<Quantity> {
        self.0.checked_add(other.0).map(Quantity)
    }

    /// The difference; None on overflow.
    pub fn checked_sub(self, other: Quantity) -> Option<Quantity> {
        self.0.checked_sub(other.0).map(Quantity)
    }

    /// The smallest multiple of `step` that is not below this quantity. A step of zero changes nothing.
    pub fn round_up_to(self, step: Quantity) -> Quantity {
        match self.0.checked_rem_euclid(step.0) {
            None | Some(0) => self,
            Some(over) => Quantity(self.0.saturating_add(step.0.saturating_sub(over))),
        }
    }

    /// The sum, saturating.
    pub fn saturating_add(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_add(other.0))
    }

    /// The difference, which may be negative, saturating.
    pub fn saturating_sub(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_sub(other.0))
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Chooses the spelling with fewer significant digits, binary or decimal: 20Gi stays 20Gi although it is a whole number of
/// bytes, and 10G stays 10G although it is 9765625Ki.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        let decimal = spell_decimal(nanos);
        let text = match find_binary_spelling(nanos) {
            Some(binary) if cost(&binary) <= cost(&decimal) => binary,
            _ => decimal,
        };
        if self.is_negative() {
            f.write_str("-")?;
        }
        write!(f, "{}{}", text.0, text.1)
    }
}

type Spelling = (u128, &'static str);

/// Significant digits, then length.
fn cost((number, suffix): &Spelling) -> (usize, usize) {
    let digits = number.to_string();
    (digits.trim_end_matches('0').len(), digits.len() + suffix.len())
}

fn spell_decimal(nanos: u128) -> Spelling {
    if nanos == 0 {
        return (0, "");
    }
    let exact = DECIMAL.iter().find_map(|(suffix, power)| {
        let unit = 10u128.checked_pow(u32::try_from(power + 9).ok()?)?;
        nanos.is_multiple_of(unit).then(|| (nanos / unit, *suffix))
    });
    exact.unwrap_or((nanos, "n"))
}

fn find_binary_spelling(nanos: u128) -> Option<Spelling> {
    let nanos_per_unit = NANOS_PER_UNIT.unsigned_abs();
    let units = nanos.is_multiple_of(nanos_per_unit).then(|| nanos / nanos_per_unit)?;
    let (suffix, power) = BINARY.iter().find(|(_, power)| units > 0 && units.trailing_zeros() >= *power)?;
    Some((units >> power, suffix))
}

/// The parts of the text of a quantity.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Option<Parts<'a>> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        has_digits.then_some(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The factor of a suffix: a power of ten or of two.
struct Scale {
    ten: i64,
    two: u32,
}

/// Digits beyond this number on either side of the point do not matter.
const SHIFT_MAX: i64 = 64;

impl Scale {
    fn of(suffix: &str) -> Option<Scale> {
        let decimal = DECIMAL.iter().find(|(name, _)| *name == suffix);
        let binary = BINARY.iter().find(|(name, _)| *name == suffix);
        match (decimal, binary) {
            (Some((_, ten)), _) => Some(Scale { ten: i64::from(*ten), two: 0 }),
            (None, Some((_, two))) => Some(Scale { ten: 0, two: *two }),
            (None, None) => find_exponent(suffix).map(|ten| Scale { ten, two: 0 }),
        }
    }

    /// `whole.fraction` times this factor in nano-units, rounded up; None on overflow.
    fn nanos(&self, whole: &str, fraction: &str) -> Option<u128> {
        let unit = NANOS_PER_UNIT.unsigned_abs() << self.two;
        let (before, after) = move_point(whole, fraction, self.ten)?;
        let units =
            before.into_iter().try_fold(0u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit))?;
        // From the last digit to the first, rounding up at each step, is the same as rounding up
        // once at the end: ceil((ceil(x) + n) / 10) = ceil((x + n) / 10) for a whole n.
        let part = after.into_iter().rev().fold(0u128, |sum, digit| (sum + digit * unit).div_ceil(10));
        units.checked_mul(unit)?.checked_add(part)
    }
}

/// The digits before and after the point after moving it by a power of ten; None if there are too many before it.
fn move_point(whole: &str, fraction: &str, power: i64) -> Option<(Vec<u128>, Vec<u128>)> {
    let digits = whole.bytes().chain(fraction.bytes()).map(|b| u128::from(b.saturating_sub(b'0')));
    let mut digits: Vec<u128> = digits.skip_while(|digit| *digit == 0).collect();
    if digits.is_empty() {
        return Some((Vec::new(), Vec::new()));
    }
    let places_after = i64::try_from(fraction.len()).ok()?.saturating_sub(power);
    let point = i64::try_from(digits.len()).ok()?.saturating_sub(places_after);
    if point > SHIFT_MAX {
        return None;
    }
    let zeros_after = usize::try_from(point.saturating_neg().clamp(0, SHIFT_MAX)).ok()?;
    let before = usize::try_from(point.max(0)).ok()?;
    digits.splice(..0, std::iter::repeat_n(0, zeros_after));
    digits.resize(digits.len().max(before), 0);
    let after = digits.split_off(before);
    Some((digits, after))
}

/// The exponent in `e3`, `E-3`, `e+3`. One that overflows counts as very large.
fn find_exponent(suffix: &str) -> Option<i64> {
    let power = suffix.strip_prefix(['e', 'E'])?;
    let digits = power.strip_prefix(['-', '+']).unwrap_or(power);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(if power.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn nanos(text: &str) -> i128 {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{error}")).nanos()
    }

    #[test]
    fn reads_every_kubernetes_form() {
        let unit = NANOS_PER_UNIT;
        for (text, want) in [
            ("0", 0),
            ("-0", 0),
            ("100", 100 * unit),
            ("+5", 5 * unit),
            ("-5", -5 * unit),
            ("1.5", 1_500_000_000),
            (".5", 500_000_000),
            ("5.", 5 * unit),
            ("-.5", -500_000_000),
            ("007", 7 * unit),
            ("1n", 1),
            ("1u", 1_000),
            ("500m", 500_000_000),
            ("1k", 1_000 * unit),
            ("1M", 1_000_000 * unit),
            ("1G", 10i128.pow(9) * unit),
            ("1T", 10i128.pow(12) * unit),
            ("1P", 10i128.pow(15) * unit),
            ("1E", 10i128.pow(18) * unit),
            ("1Ki", unit << 10),
            ("1Mi", unit << 20),
            ("25Gi", (25 * unit) << 30),
            ("1Ti", unit << 40),
            ("1Pi", unit << 50),
            ("1Ei", unit << 60),
            ("1.5Gi", (3 * unit) << 29),
            ("0.1Ki", 102_400_000_000),
            ("1e3", 1_000 * unit),
            ("1E3", 1_000 * unit),
            ("1e+3", 1_000 * unit),
            ("1e-3", 1_000_000),
            ("12.5e1", 125 * unit),
            ("0e999999999999999999999", 0),
        ] {
            assert_eq!(nanos(text), want, "{text}");
        }
    }

    #[test]
    fn rounds_what_is_finer_than_nano_away_from_zero() {
        for (text, want) in [
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1.0000000001", 1_000_000_001),
            ("1.0000000000", 1_000_000_000),
            ("1e-10", 1),
            ("1e-99999999999999999999", 1),
            ("-1e-400", -1),
            ("0.00000000000000000000000000000000000000001Ei", 1),
            ("0.0000000001Ki", 103),
        ] {
            assert_eq!(nanos(text), want, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in [
            "", " ", "-", "+", ".", "e3", "1e", "1e-", "1K", "1ki", "1KiB", "1Gb", "1 Gi", " 1", "1 ", "--1",
            "1.2.3", "1,5", "Gi", "0x10", "1e3k", "1e1.5", "NaN", "inf", "½", "１",
        ] {
            let error = Quantity::parse(text).expect_err(text);
            assert_eq!(error.value, text);
            assert!(!error.problem.is_empty() && !error.fix.is_empty());
        }
    }

    #[test]
    fn says_what_to_write_instead() {
        let message = |text: &str| Quantity::parse(text).expect_err(text).to_string();
        assert_eq!(message("lots"), "`lots` is not a quantity: write it like 25Gi, 500m or 100");
        assert_eq!(message("5GB"), "`5GB` has the unknown suffix `GB`: write it like 25Gi, 500m or 100");
        assert_eq!(message("5K"), "`5K` has the unknown suffix `K`: write k (1000) or Ki (1024)");
        assert_eq!(message("1e40"), "`1e40` is too large: write it like 25Gi, 500m or 100");
    }

    #[test]
    fn refuses_overflow_instead_of_wrapping() {
        let most = i128::MAX.to_string() + "n";
        assert_eq!(nanos(&most), i128::MAX);
        assert_eq!(nanos(&format!("{}n", i128::MIN)), i128::MIN);
        for text in [
            "170141183460469231731687303715884105728n",
            "1e30",
            "-1e30",
            "999999999999Ei",
            "1e9223372036854775807",
        ] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
        let most = Quantity::from_nanos(i128::MAX);
        assert_eq!(most.checked_add(Quantity::from_nanos(1)), None);
        assert_eq!(most.saturating_add(most), most);
        assert_eq!(Quantity::from_nanos(i128::MIN).checked_sub(most), None);
    }

    #[test]
    fn shows_the_spelling_people_write() {
        for (text, want) in [
            ("20Gi", "20Gi"),
            ("20480Mi", "20Gi"),
            ("1.5Gi", "1536Mi"),
            ("1024", "1Ki"),
            ("1000", "1k"),
            ("10G", "10G"),
            ("1000Ki", "1000Ki"),
            ("100", "100"),
            ("1023", "1023"),
            ("0", "0"),
            ("-0", "0"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("0.0005", "500u"),
            ("1n", "1n"),
            ("-2Gi", "-2Gi"),
            ("1e21", "1000E"),
            ("2048Ei", "2048Ei"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), want, "{text}");
        }
    }

    #[test]
    fn reads_json_strings_and_numbers() {
        for (value, want) in [
            (json!("25Gi"), Some(Quantity::from_units(25 << 30))),
            (json!(100), Some(Quantity::from_units(100))),
            (json!(-3), Some(Quantity::from_units(-3))),
            (json!(1.5), Some(Quantity::from_nanos(1_500_000_000))),
            (json!(0.1), Some(Quantity::from_nanos(100_000_000))),
            (json!(1e20), Some(Quantity::parse("100E").unwrap())),
            (json!(u64::MAX), Some(Quantity::parse("18446744073709551615").unwrap())),
            (json!(1e300), None),
            (json!(true), None),
            (json!(null), None),
            (json!(["1"]), None),
            (json!({"a": 1}), None),
        ] {
            assert_eq!(Quantity::from_json(&value).ok(), want, "{value}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "\\PC*") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Quantity::parse(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn never_panics_on_what_looks_like_a_quantity(text in "[-+]?[0-9]{0,50}\\.?[0-9]{0,50}([eE][-+]?[0-9]{0,20}|[numkKMGTPE]i?)?") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn display_reads_back_as_the_same_quantity(nanos in any::<i128>()) {
            let quantity = Quantity::from_nanos(nanos);
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }

        #[test]
        fn display_of_round_amounts_reads_back(units in any::<i64>(), shift in 0u32..30) {
            let quantity = Quantity::from_nanos((i128::from(units) * NANOS_PER_UNIT) << shift >> (shift / 2));
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }

        #[test]
        fn decimal_text_means_what_it_says(units in 0i64.., nanos in 0i128..NANOS_PER_UNIT) {
            let text = format!("{units}.{nanos:09}");
            prop_assert_eq!(Quantity::parse(&text).unwrap().nanos(), i128::from(units) * NANOS_PER_UNIT + nanos);
        }

        #[test]
        fn a_binary_fraction_is_rounded_up_once(digits in 0u32.., places in 0usize..12, at in 3usize..6) {
            let (suffix, power) = BINARY[at];
            let text = format!("{digits:012}");
            let (whole, fraction) = text.split_at(12 - places);
            let scaled = (u128::from(digits) * 1_000_000_000) << power;
            let want = scaled.div_ceil(10u128.pow(places as u32));
            let got = Quantity::parse(&format!("{whole}.{fraction}{suffix}")).unwrap();
            prop_assert_eq!(got.nanos(), want as i128);
        }

        #[test]
        fn an_exponent_moves_the_point(digits in 1u32.., power in 0usize..12) {
            let moved = Quantity::parse(&format!("{digits}e-{power}")).unwrap();
            let want = (u128::from(digits) * 1_000_000_000).div_ceil(10u128.pow(power as u32));
            prop_assert_eq!(moved.nanos(), want as i128);
            let zeros = "0".repeat(power);
            prop_assert_eq!(Quantity::parse(&format!("{digits}e{power}")), Quantity::parse(&format!("{digits}{zeros}")));
        }

        #[test]
        fn never_panics_on_any_json_number(real in any::<f64>(), whole in any::<i64>()) {
            let _ = Quantity::from_json(&json!(real));
            prop_assert_eq!(Quantity::from_json(&json!(whole)), Ok(Quantity::from_units(whole)));
        }

        #[test]
        fn a_suffix_multiplies(units in -1000i64..1000, at in 0usize..6) {
            let (suffix, power) = BINARY[at];
            let want = (i128::from(units) * NANOS_PER_UNIT) << power;
            prop_assert_eq!(Quantity::parse(&format!("{units}{suffix}")).unwrap().nanos(), want);
        }
    }
}
