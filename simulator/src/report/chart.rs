//! Charts as inline SVG: areas over time, and bars. Colours are the page's own, so that they follow its dark mode.

use std::fmt::Write;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 22.0;
/// Classes of colour, in the order in which they are used.
const TONES: [&str; 6] = ["--good", "--cool", "--warn", "--bad", "--accent", "--mute"];

/// One line of a chart.
pub(super) struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

/// Lines over time, filled below where there is one; `at` in milliseconds.
pub(super) fn lines(at: &[u64], series: &[Series]) -> String {
    let top = series.iter().flat_map(|s| s.values.iter().copied()).fold(1.0, f64::max);
    let last = at.last().copied().unwrap_or(1).max(1) as f64;
    let x = |ms: u64| LEFT + (WIDTH - LEFT - 8.0) * ms as f64 / last;
    let y = |value: f64| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value / top);
    let mut svg = open(HEIGHT + 20.0 * ((series.len() as f64) / 3.0).ceil(), "over time");
    for part in [0.0, 0.5, 1.0] {
        let (value, height) = (top * part, y(top * part));
        let _ = write!(
            svg,
            r#"<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{height:.1}" y2="{height:.1}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 6.0,
            height + 4.0,
            short(value)
        );
    }
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
        let (lx, ly) = (LEFT + column * 155.0, HEIGHT + 6.0 + row * 18.0);
        let _ = write!(
            svg,
            r#"<rect x="{lx:.0}" y="{:.0}" width="10" height="10" rx="2" fill="var({tone})"/><text x="{:.0}" y="{:.0}">{}</text>"#,
            ly,
            lx + 15.0,
            ly + 9.0,
            escape(&s.name)
        );
    }
    let _ = write!(
        svg,
        r#"<text x="{LEFT}" y="{:.0}">0 s</text><text x="{WIDTH}" y="{:.0}" text-anchor="end">{}</text></svg>"#,
        HEIGHT - 6.0,
        HEIGHT - 6.0,
        duration(last as u64)
    );
    svg
}

/// One bar with its name; `of` is what it is a part of, where it is.
pub(super) struct Bar {
    pub name: String,
    pub value: f64,
    pub of: Option<f64>,
    pub tone: &'static str,
}

/// Bars side by side, the longest first line by line.
pub(super) fn bars(bars: &[Bar]) -> String {
    let top = bars.iter().map(|b| b.of.unwrap_or(b.value)).fold(1.0, f64::max);
    let mut svg = open(26.0 * bars.len().max(1) as f64 + 4.0, "bars");
    for (n, bar) in bars.iter().enumerate() {
        let y = n as f64 * 26.0 + 4.0;
        let width = |value: f64| ((WIDTH - 240.0) * value / top).max(if value > 0.0 { 2.0 } else { 0.0 });
        let name: String = bar.name.chars().take(24).collect();
        let _ = write!(svg, r#"<text x="0" y="{:.0}">{}</text>"#, y + 13.0, escape(&name));
        if let Some(of) = bar.of {
            let _ = write!(
                svg,
                r#"<rect x="160" y="{y:.0}" width="{:.1}" height="16" rx="4" fill="var(--line)"/>"#,
                width(of)
            );
        }
        let told = match bar.of {
            Some(of) => format!("{} of {}", short(bar.value), short(of)),
            None => short(bar.value),
        };
        let _ = write!(
            svg,
            r#"<rect x="160" y="{y:.0}" width="{:.1}" height="16" rx="4" fill="var({})"/><text x="{:.0}" y="{:.0}">{told}</text>"#,
            width(bar.value),
            bar.tone,
            168.0 + width(bar.of.unwrap_or(bar.value)),
            y + 13.0
        );
    }
    svg.push_str("</svg>");
    svg
}

fn open(height: f64, what: &str) -> String {
    format!(
        r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{what}" xmlns="http://www.w3.org/2000/svg">"#
    )
}

fn short(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}k", v / 1_000.0),
        v if v.fract() == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

/// Milliseconds as people say them.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=119_999 => format!("{:.1} s", ms as f64 / 1_000.0),
        120_000..=7_199_999 => format!("{:.1} min", ms as f64 / 60_000.0),
        _ => format!("{:.1} h", ms as f64 / 3_600_000.0),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_a_chart() {
        let bar = Bar { name: "<script>\"".to_owned(), value: 1.0, of: None, tone: "--good" };
        let svg = bars(&[bar]);
        assert!(svg.contains("&lt;script&gt;&quot;") && !svg.contains("<script"), "{svg}");
    }
}
