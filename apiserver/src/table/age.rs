//! Ages as people read them: 5s, 3m20s, 2d4h, 1y12d.

use jiff::Timestamp;

/// How long ago a time was.
pub(super) fn age(text: &str) -> String {
    let Ok(time) = text.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    shown(Timestamp::now().as_second() - time.as_second())
}

fn shown(seconds: i64) -> String {
    let both = |big: i64, unit: char, small: i64, other: char| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{other}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => both(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => both(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => both(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => both(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[test]
fn ages_are_short() {
    for (seconds, expected) in [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3600, "60m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (86_400, "24h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (864_000, "10d"),
        (63_072_000, "2y"),
    ] {
        assert_eq!(shown(seconds), expected, "{seconds}");
    }
}
