//! A terminal view of a replay: step through a recorded history and see what users changed, what the live engine decided,
//! whether the replay agrees, and the state of the cluster.

use anyhow::{Context, Result, bail};
use conductor_simulator::record::Verdict;
use conductor_simulator::replay::{Options, Replay, Sample, replay_with};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListItem, Paragraph, Sparkline, StatefulWidget, Widget};
use std::io::IsTerminal;
use std::path::Path;

/// Most steps that are kept; later ones are dropped.
const STEPS_MAX: usize = 20_000;

/// One step of the history.
struct Step {
    at: u64,
    what: String,
    decisions: Vec<(String, String, bool)>,
    sample: Sample,
}

/// The steps, the current one, and a summary.
pub struct View {
    steps: Vec<Step>,
    at: usize,
    summary: String,
}

/// Refuses to start without a terminal for keys and pictures.
pub fn require_terminal() -> Result<()> {
    match std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        true => Ok(()),
        false => bail!("--tui needs a terminal: run it in one, or draw a page with --html FILE"),
    }
}

/// Replays the recording, and lets the user step through it.
pub fn run(recording: &Path, options: &Options) -> Result<()> {
    let mut view = View::load(recording, options)?;
    let mut terminal = ratatui::try_init().context("cannot draw on the terminal")?;
    let done = view.walk(&mut terminal);
    ratatui::restore();
    done
}

/// The view in the middle of a recording as SVG, as a terminal would show it.
pub fn picture(recording: &Path, options: &Options) -> Result<String> {
    let mut view = View::load(recording, options)?;
    view.at = view.steps.len() / 2;
    let area = Rect::new(0, 0, 120, 32);
    let mut buffer = Buffer::empty(area);
    view.draw(area, &mut buffer);
    Ok(svg(&buffer))
}

/// Draws terminal cells as SVG text, one run of equal style at a time.
fn svg(buffer: &Buffer) -> String {
    let (wide, high) = (8.4, 18.0);
    let Rect { width, height, .. } = buffer.area;
    let (w, h) = (f64::from(width) * wide + 24.0, f64::from(height) * high + 24.0);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0} {h:.0}"><rect width="100%" height="100%" rx="10" fill="#12151b"/><g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" xml:space="preserve">"##
    );
    for y in 0..height {
        let mut x = 0;
        while x < width {
            let style = buffer[(x, y)].style();
            let from = x;
            let mut text = String::new();
            while x < width && buffer[(x, y)].style() == style {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            let reversed = style.add_modifier.contains(Modifier::REVERSED);
            let (left, base) = (12.0 + f64::from(from) * wide, 12.0 + f64::from(y) * high);
            if reversed {
                svg.push_str(&format!(
                    r##"<rect x="{left:.1}" y="{base:.1}" width="{:.1}" height="{high}" fill="#3a4a6b"/>"##,
                    f64::from(x - from) * wide
                ));
            }
            if !text.trim().is_empty() {
                let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                // Plain spaces would collapse.
                let escaped = escaped.replace(' ', "\u{a0}");
                svg.push_str(&format!(
                    r##"<text x="{left:.1}" y="{:.1}" fill="{}" textLength="{:.1}" lengthAdjust="spacingAndGlyphs">{escaped}</text>"##,
                    base + 13.5,
                    colour(style.fg),
                    f64::from(x - from) * wide
                ));
            }
        }
    }
    svg.push_str("</g></svg>\n");
    svg
}

fn colour(colour: Option<Color>) -> &'static str {
    match colour {
        Some(Color::Green) => "#4cc38a",
        Some(Color::Red) => "#f07878",
        Some(Color::Yellow) => "#e0b04f",
        Some(Color::DarkGray) => "#7d8899",
        _ => "#e6eaf0",
    }
}

impl View {
    /// Replays the recording once, and keeps every step.
    pub fn load(recording: &Path, options: &Options) -> Result<View> {
        let mut steps = Vec::new();
        let done = replay_with(recording, options, |step, sample| {
            if (step.what.is_empty() && step.live.is_empty()) || steps.len() >= STEPS_MAX {
                return;
            }
            let decisions =
                step.live.iter().map(|d| (format!("{}/{}", d.ns, d.name), outcome(&d.verdict), step.agrees));
            steps.push(Step {
                at: step.at,
                what: step.what.to_owned(),
                decisions: decisions.collect(),
                sample: sample(),
            });
        })?;
        Ok(View { steps, at: 0, summary: summary(&done) })
    }

    fn walk(&mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<()> {
        loop {
            terminal.draw(|frame| self.draw(frame.area(), frame.buffer_mut()))?;
            let Event::Key(key) = event::read()? else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            let interrupted = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if interrupted || !self.press(key.code) {
                return Ok(());
            }
        }
    }

    /// Handles a key; false ends the view.
    pub fn press(&mut self, key: KeyCode) -> bool {
        let last = self.steps.len().saturating_sub(1);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Right | KeyCode::Down | KeyCode::Char('j' | 'l' | ' ') => {
                self.at = (self.at + 1).min(last)
            }
            KeyCode::Left | KeyCode::Up | KeyCode::Char('k' | 'h') => self.at = self.at.saturating_sub(1),
            KeyCode::PageDown => self.at = (self.at + 20).min(last),
            KeyCode::PageUp => self.at = self.at.saturating_sub(20),
            KeyCode::Home | KeyCode::Char('g') => self.at = 0,
            KeyCode::End | KeyCode::Char('G') => self.at = last,
            // Skip to the next divergence.
            KeyCode::Char('d') => {
                let next = self.steps.iter().enumerate().skip(self.at + 1);
                let next =
                    next.filter(|(_, s)| s.decisions.iter().any(|(_, _, agrees)| !agrees)).map(|(at, _)| at);
                self.at = next.min().unwrap_or(self.at);
            }
            _ => {}
        }
        true
    }

    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let [top, middle, bottom, keys] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Min(6),
            Constraint::Length(6),
            Constraint::Length(1),
        ])
        .areas(area);
        let [history, now] =
            Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(middle);
        Paragraph::new(self.summary.as_str()).block(Block::bordered().title(" Replay ")).render(top, buffer);
        self.history(history, buffer);
        self.now(now, buffer);
        self.waiting(bottom, buffer);
        Paragraph::new(" ←/→ step   PgUp/PgDn twenty   d next divergence   g/G ends   q quit")
            .style(Style::new().fg(Color::DarkGray))
            .render(keys, buffer);
    }

    fn history(&self, area: Rect, buffer: &mut Buffer) {
        let items = self.steps.iter().map(|step| {
            let bad = step.decisions.iter().any(|(_, _, agrees)| !agrees);
            let mark = match (step.decisions.is_empty(), bad) {
                (true, _) => Span::raw("  "),
                (false, false) => Span::styled("● ", Style::new().fg(Color::Green)),
                (false, true) => Span::styled("▲ ", Style::new().fg(Color::Red)),
            };
            let time = format!("{:>9.3}s ", step.at as f64 / 1_000.0);
            let first = step.decisions.first().map(|(claim, verdict, _)| format!("{claim} {verdict}"));
            let text = if step.what.is_empty() { first.unwrap_or_default() } else { step.what.clone() };
            ListItem::new(Line::from(vec![
                Span::styled(time, Style::new().fg(Color::DarkGray)),
                mark,
                Span::raw(text),
            ]))
        });
        let title = format!(" History {}/{} ", (self.at + 1).min(self.steps.len()), self.steps.len());
        let list = List::new(items.collect::<Vec<_>>())
            .block(Block::bordered().title(title))
            .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = ratatui::widgets::ListState::default().with_selected(Some(self.at));
        StatefulWidget::render(list, area, buffer, &mut state);
    }

    fn now(&self, area: Rect, buffer: &mut Buffer) {
        let Some(step) = self.steps.get(self.at) else {
            return Paragraph::new("this recording has no steps")
                .block(Block::bordered())
                .render(area, buffer);
        };
        let Sample { bound, provisioning, waiting, lost, classes, reasons, .. } = &step.sample;
        let mut lines = vec![Line::from(step.what.clone())];
        for (claim, verdict, agrees) in &step.decisions {
            let (word, colour) = if *agrees { ("agrees", Color::Green) } else { ("differs", Color::Red) };
            lines.push(Line::from(format!("live: {claim} {verdict}")));
            lines.push(Line::from(Span::styled(format!("replay {word}"), Style::new().fg(colour))));
        }
        lines.push(Line::default());
        lines.push(Line::from(format!(
            "bound {bound}  provisioning {provisioning}  pending {waiting}  lost {lost}"
        )));
        for (reason, count) in reasons {
            lines.push(Line::from(format!("  {count} × {reason}")));
        }
        for (class, (held, all)) in classes {
            let name = if class.is_empty() { "classless" } else { class };
            lines.push(Line::from(format!("{name}: {held} of {all} in use")));
        }
        Paragraph::new(lines)
            .wrap(ratatui::widgets::Wrap { trim: true })
            .block(Block::bordered().title(" Now "))
            .render(area, buffer);
    }

    fn waiting(&self, area: Rect, buffer: &mut Buffer) {
        let width = usize::from(area.width.saturating_sub(2)).max(1);
        let from = (self.at + 1).saturating_sub(width);
        let values: Vec<u64> =
            self.steps.iter().take(self.at + 1).skip(from).map(|s| s.sample.waiting as u64).collect();
        Sparkline::default()
            .data(&values)
            .style(Style::new().fg(Color::Yellow))
            .block(Block::bordered().title(" Pending claims "))
            .render(area, buffer);
    }
}

fn summary(done: &Replay) -> String {
    let percent =
        done.agreement.percent.map_or("nothing verified".to_owned(), |percent| format!("{percent} %"));
    format!(
        "{} of {} decisions agree ({percent})   {} changes, {} by users   {:.1} s",
        done.agreement.agreed,
        done.agreement.decisions,
        done.events,
        done.inputs,
        done.duration_ms as f64 / 1_000.0
    )
}

fn outcome(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Bind { resource } => format!("bound to {resource}"),
        Verdict::Provision { class } => format!("provisioned from {class}"),
        Verdict::Refuse { reason } => format!("pending: {reason}"),
        Verdict::Lost { reason } => format!("lost: {reason}"),
    }
}
