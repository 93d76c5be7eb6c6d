//! Charts as inline SVG: lines over time, and bars. They use the page's colours, so that dark mode applies.

use std::fmt::Write;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 22.0;
/// Where bars begin, after their names.
const NAMES: f64 = 160.0;
/// Colour variables in order of use.
const TONES: [&str; 6] = ["--good", "--cool", "--warn", "--bad", "--accent", "--mute"];

/// One line of a chart.
pub(super) struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

/// A line chart over time; `at` in milliseconds.
pub(super) fn lines(at: &[u64], series: &[Series]) -> String {
    let top = series.iter().flat_map(|s| s.values.iter().copied()).fold(1.0, f64::max);
    let last = at.last().copied().unwrap_or(1).max(1) as f64;
    let marks = [0.0, 0.5, 1.0].map(|part| (top * part, grouped(top * part)));
    // The axis is to the right of its widest figure.
    let left = marks.iter().map(|(_, mark)| width_of(mark)).fold(LEFT, |most, one| most.max(one + 12.0));
    let x = |ms: u64| left + (WIDTH - left - 8.0) * ms as f64 / last;
    let y = |value: f64| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value / top);
    let mut svg = open(HEIGHT + 20.0 * ((series.len() as f64) / 3.0).ceil(), "over time");
    for (value, mark) in &marks {
        let height = y(*value);
        let _ = write!(
            svg,
            r#"<line class="axis" x1="{left:.0}" x2="{WIDTH}" y1="{height:.1}" y2="{height:.1}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{mark}</text>"#,
            left - 6.0,
            height + 4.0,
        );
    }
    let column_width = (WIDTH - left) / 3.0;
    for (n, s) in series.iter().enumerate() {
        let tone = TONES[n % TONES.len()];
        let points: Vec<String> =
            at.iter().zip(&s.values).map(|(ms, v)| format!("{:.1},{:.1}", x(*ms), y(*v))).collect();
        let _ = write!(
            svg,
            r#"<polyline fill="none" stroke="var({tone})" stroke-width="2" stroke-linejoin="round" points="{}"><title>{}</title></polyline>"#,
            points.join(" "),
            escape(&s.name)
        );
        let (column, row) = ((n % 3) as f64, (n / 3) as f64);
        let (lx, ly) = (left + column * column_width, HEIGHT + 6.0 + row * 18.0);
        let _ = write!(
            svg,
            r#"<rect x="{lx:.0}" y="{:.0}" width="10" height="10" rx="2" fill="var({tone})"/>{}"#,
            ly,
            label(lx + 15.0, ly + 9.0, &s.name, column_width - 20.0)
        );
    }
    let _ = write!(
        svg,
        r#"<text x="{left:.0}" y="{:.0}">0 s</text><text x="{WIDTH}" y="{:.0}" text-anchor="end">{}</text></svg>"#,
        HEIGHT - 6.0,
        HEIGHT - 6.0,
        duration(last as u64)
    );
    svg
}

/// One bar with its name; `of`: the total that it is a part of.
pub(super) struct Bar {
    pub name: String,
    pub value: f64,
    pub of: Option<f64>,
    pub tone: &'static str,
}

/// A bar chart. Reserves room for the figures after the bars.
pub(super) fn bars(bars: &[Bar]) -> String {
    let top = bars.iter().map(|b| b.of.unwrap_or(b.value)).fold(1.0, f64::max);
    let figure = |bar: &Bar| match bar.of {
        Some(of) => format!("{} of {}", grouped(bar.value), grouped(of)),
        None => grouped(bar.value),
    };
    let widest = bars.iter().map(|bar| width_of(&figure(bar))).fold(0.0, f64::max);
    let room = (WIDTH - NAMES - 8.0 - widest).max(40.0);
    let mut svg = open(26.0 * bars.len().max(1) as f64 + 4.0, "bars");
    for (n, bar) in bars.iter().enumerate() {
        let y = n as f64 * 26.0 + 4.0;
        let width = |value: f64| (room * value / top).max(if value > 0.0 { 2.0 } else { 0.0 });
        svg.push_str(&label(0.0, y + 13.0, &bar.name, NAMES - 8.0));
        if let Some(of) = bar.of {
            let _ = write!(
                svg,
                r#"<rect x="{NAMES}" y="{y:.0}" width="{:.1}" height="16" rx="4" fill="var(--line)"/>"#,
                width(of)
            );
        }
        let _ = write!(
            svg,
            r#"<rect x="{NAMES}" y="{y:.0}" width="{:.1}" height="16" rx="4" fill="var({})"/><text x="{:.0}" y="{:.0}">{}</text>"#,
            width(bar.value),
            bar.tone,
            NAMES + 8.0 + width(bar.of.unwrap_or(bar.value)),
            y + 13.0,
            figure(bar)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Estimated width of a text, on the generous side because the font is unknown.
fn width_of(text: &str) -> f64 {
    text.chars().map(|c| if matches!(c, ',' | '.' | ' ') { 5.0 } else { 8.5 }).sum()
}

/// A name cut to the room with an ellipsis, whole in its title.
fn label(x: f64, y: f64, name: &str, room: f64) -> String {
    let most = (room / 8.5) as usize;
    let shown = match name.chars().count() > most {
        true => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => name.to_owned(),
    };
    format!(r#"<text x="{x:.0}" y="{y:.0}">{}<title>{}</title></text>"#, escape(&shown), escape(name))
}

fn open(height: f64, what: &str) -> String {
    format!(
        r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{what}" xmlns="http://www.w3.org/2000/svg">"#
    )
}

/// A number with thousands separators.
pub(super) fn grouped(value: f64) -> String {
    let text = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.extend(fraction.into_iter().flat_map(|fraction| [".", fraction]));
    grouped
}

/// A duration with its unit, not broken across lines.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms}\u{a0}ms"),
        1_000..=119_999 => format!("{:.1}\u{a0}s", ms as f64 / 1_000.0),
        120_000..=7_199_999 => format!("{:.1}\u{a0}min", ms as f64 / 60_000.0),
        _ => format!("{:.1}\u{a0}h", ms as f64 / 3_600_000.0),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of a chart with their start, without those anchored at their end.
    fn texts(svg: &str) -> Vec<(f64, String)> {
        let parts = svg.split("<text x=\"").skip(1).filter(|part| !part.contains("text-anchor=\"end\""));
        let text = |part: &str| {
            let x = part[..part.find('"')?].parse().ok()?;
            let body = &part[part.find('>')? + 1..part.find("</text>")?];
            Some((x, body.split("<title>").next()?.to_owned()))
        };
        parts.filter_map(text).collect()
    }

    #[test]
    fn no_label_is_clipped_however_many_digits_it_has() {
        for value in [7.0, 1_234.0, 98_765.0, 1_234_567.0] {
            let bar = |name: &str, value, of| Bar { name: name.to_owned(), value, of, tone: "--good" };
            let long = "a-namespace-with-a-long-name/and-a-quota-of-its-own";
            let svg = bars(&[bar("bound", value, Some(value)), bar(long, 1.0, None)]);
            for (x, text) in texts(&svg) {
                assert!(x + width_of(&text) <= WIDTH, "{text} at {x} ends beyond {WIDTH}");
                assert!(x > 0.0 || width_of(&text) <= NAMES, "{text} runs into its bar");
            }
            let series = [Series { name: long.to_owned(), values: vec![0.0, value + 0.5] }];
            let svg = lines(&[0, 1_000], &series);
            assert!(texts(&svg).iter().all(|(x, text)| x + width_of(text) <= WIDTH), "{svg}");
            assert!(!svg.contains("x=\"-"), "the axis has room for its figures: {svg}");
        }
        assert_eq!([0.5, 999.0, 1_000.0, 1_234_567.0].map(grouped), ["0.5", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn names_cannot_break_out_of_a_chart() {
        let bar = Bar { name: "<script>\"".to_owned(), value: 1.0, of: None, tone: "--good" };
        let svg = bars(&[bar]);
        assert!(svg.contains("&lt;script&gt;&quot;") && !svg.contains("<script"), "{svg}");
    }
}
